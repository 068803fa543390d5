"""Whether a file is still what it was: a source is read several times, and must be the same each time."""

from __future__ import annotations

import os
from dataclasses import dataclass

from dpmanifold.errors import SourceChangedError


@dataclass(frozen=True)
class Stamp:
    """Size of a file and the time of its last change, when a source was opened.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("x")
    >>> stamp = Stamp.of(path)
    >>> stamp.check()
    >>> _ = path.write_text("another")
    >>> stamp.check()
    Traceback (most recent call last):
    ...
    dpmanifold.errors.SourceChangedError: a.csv: it was changed or removed while it was being read. Leave it
    alone, and start again.
    """

    path: str
    size: int
    changed: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Stamp:
        """Return what a file is now."""
        found = os.stat(path)
        return cls(os.fspath(path), found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Refuse a file that is not what it was."""
        try:
            if Stamp.of(self.path) == self:
                return
        except OSError:
            pass
        raise SourceChangedError(
            "{basename}: it was changed or removed while it was being read. Leave it alone, and start again.",
            basename=os.path.basename(self.path),
        )
