"""Who is at work: an attempt is alive as long as somebody holds its lock, whatever the clocks say.

On one machine the lock is that of a file, which the system lets go of when its process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import sys
from typing import final

from dpmanifold.errors import LedgerError
from dpmanifold.ledger.stores import Held

if sys.platform != "win32":  # where no ledger is opened: its witness refuses
    import fcntl


class FileAttempts:
    """Attempts of one ledger, each a file in a folder.

    Parameters
    ----------
    folder : made where it is not there
    like : the database; who can read it and write to it can do so with the attempts

    Examples
    --------
    >>> import tempfile
    >>> attempts = FileAttempts(pathlib.Path(tempfile.mkdtemp()) / "study.db.attempts")
    >>> held = attempts.hold("0a1b")
    >>> attempts.alive("0a1b"), attempts.alive("another")
    (True, False)
    >>> held.release()
    >>> attempts.alive("0a1b")
    False
    """

    def __init__(self, folder: pathlib.Path, like: pathlib.Path | None = None) -> None:
        self._folder, self._like = folder, like

    def hold(self, token: str) -> Held:
        """Begin an attempt."""
        path = self._folder / token
        try:
            self._make_folder()
            file = io.FileIO(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666), "r+")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._like is not None:
                os.fchmod(file.fileno(), self._like.stat().st_mode & 0o666)
        except OSError as problem:
            raise LedgerError(f"no attempt can be begun in {self._folder}: {problem.strerror}.") from None
        return _HeldFile(path, file)

    def _make_folder(self) -> None:
        """Make the folder, open to those who can use the database."""
        if self._folder.is_dir():
            return
        self._folder.mkdir(exist_ok=True)
        if self._like is not None:
            mode = self._like.stat().st_mode & 0o666
            self._folder.chmod(mode | (mode & 0o444) >> 2)

    def forget(self, token: str) -> None:
        """Remove the file of an attempt whose holder is gone."""
        with contextlib.suppress(OSError):
            (self._folder / token).unlink()

    def alive(self, token: str) -> bool:
        """Return whether an attempt is held."""
        try:
            handle = os.open(self._folder / token, os.O_RDONLY)
        except FileNotFoundError:  # its holder ended it
            return False
        except OSError as problem:
            raise LedgerError(
                f"whether an attempt in {self._folder} is alive cannot be told: {problem.strerror}. The ledger's users "
                "need to read the files there."
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False


@final
class _HeldFile(Held):
    """A file that is locked while it is open; whoever drops it without a word has released it, too."""

    def __init__(self, path: pathlib.Path, file: io.FileIO) -> None:
        super().__init__()
        self._path, self._file = path, file

    def release(self) -> None:
        if not self._file.closed:
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._file.close()

    def after_fork_in_child(self) -> None:
        """Let go of the file: a lock that a child keeps would outlive its holder."""
        self._file.close()
