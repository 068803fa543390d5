"""Locks that end with their holder: the system lets go of them when its process ends, and no clock decides."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import sys
from abc import ABC, abstractmethod
from typing import final

from dpmanifold.files import closed_if_it_fails
from dpmanifold.storage.forks import Forkable

if sys.platform != "win32":  # where no ledger is opened: its witness refuses
    import fcntl


class AlreadyHeldError(Exception):
    """Somebody else has the lock."""


class Held(Forkable, ABC):
    """A lock that is held until this is released, or its process ends, however it ends. A child does not hold it."""

    @abstractmethod
    def release(self) -> None:
        """Let go of it."""

    @abstractmethod
    def is_held(self) -> bool:
        """Return whether it is held still: a session may have been ended, and a file removed."""


@final
class HeldFile(Held):
    """A file that is locked while it is open; whoever drops it without a word has released it, too.

    Parameters
    ----------
    path : of the file, which is made where there is none, and removed in the end
    mode : who may use it

    Raises
    ------
    AlreadyHeldError : somebody else has it
    OSError : it cannot be made
    """

    def __init__(self, path: pathlib.Path, mode: int) -> None:
        self._path, self._file = path, io.FileIO(os.open(path, os.O_CREAT | os.O_RDWR, mode), "r+")
        with closed_if_it_fails(self._file):
            lock_file(self._file.fileno(), wait=False)
            if not self.is_held():  # it was removed by who had it before
                raise AlreadyHeldError
            with contextlib.suppress(PermissionError):  # somebody else made it
                os.fchmod(self._file.fileno(), mode)
        super().__init__()

    def release(self) -> None:
        """Remove the file, and let go of it."""
        if self.is_held():
            with contextlib.suppress(OSError):
                self._path.unlink()
        self._file.close()

    def is_held(self) -> bool:
        """Return whether it is open, and nobody has removed it."""
        with contextlib.suppress(OSError):
            return not self._file.closed and os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        return False

    def after_fork_in_child(self) -> None:
        """Let go of the file: a lock that a child keeps would outlive its holder."""
        self._file.close()


def is_locked(path: pathlib.Path) -> bool:
    """Return whether somebody has the lock of a file, which need not be there."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:  # or its holder ended it
        try:
            lock_file(file.fileno(), shared=True, wait=False)
        except AlreadyHeldError:
            return True
    return False


def lock_file(handle: int, *, shared: bool = False, wait: bool = True) -> None:
    """Lock an open file; an AlreadyHeldError where others have it, and they are not to be waited for."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise AlreadyHeldError from None


def unlock_file(handle: int) -> None:
    """Let go of a file's lock in words: a child that was forked meanwhile has the file open, and with it the lock."""
    fcntl.flock(handle, fcntl.LOCK_UN)
