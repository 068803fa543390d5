"""Files that are written whole or not at all, and what is closed at the end."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any, Self

if sys.platform == "darwin":
    import fcntl

_NOT_FOR_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # what file systems answer that cannot


class Closable:
    """What is open until it is closed, at the end of a `with` block at the latest."""

    def close(self) -> None:
        """Close what is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


@contextlib.contextmanager
def closed_if_it_fails(thing: Any) -> Iterator[None]:
    """Close what was opened where the block, which makes it ready for others, raises anything."""
    try:
        yield
    except BaseException:
        thing.close()
        raise


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file beside `path` that takes its place when the block ends well, and vanishes if it does not.

    What it holds is on the disk before it takes the place, so that a power cut leaves the old file or the new one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
    >>> with whole_file(target) as file:
    ...     _ = file.write("whole")
    >>> target.read_text(encoding="utf-8")
    'whole'
    """
    target = pathlib.Path(path)
    encoding = None if "b" in mode else "utf-8"
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, mode, encoding=encoding) as file:
            yield file
            file.flush()
            sync_file(file.fileno())
        # A private temporary file becomes one with the permissions that any new file would have.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    sync_folder(target.parent)


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two names are one file: spelt differently, or through a symbolic or a hard link.

    Examples
    --------
    >>> same_file("docs/../mean.json", "mean.json"), same_file("a.json", "b.json")
    (True, False)
    """
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    with contextlib.suppress(OSError):  # what does not exist is nobody's link
        return os.path.samefile(one, other)
    return False


def sync_file(handle: int) -> None:
    """Have what was written to an open file on the disk, not in a cache of the system or of the drive."""
    if sys.platform == "darwin":  # there fsync leaves it in the drive's cache
        with contextlib.suppress(OSError):  # not every file system has it
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Have the names in a folder on the disk, where the system can do that for folders.

    Examples
    --------
    >>> sync_folder(".")
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # folders cannot be opened on Windows, nor those that may be written to and not read
        return
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno not in _NOT_FOR_FOLDERS:
            raise
    finally:
        os.close(handle)
