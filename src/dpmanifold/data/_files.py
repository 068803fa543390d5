"""What all formats of files share: paths, what a file was when it was opened, what it is asked, what is wrong with it.

A new format is one class, and one line: `LOADERS.register("name", MyFile)` (:mod:`dpmanifold.data.formats`), or an
entry point `dpmanifold.loaders` of another distribution.

Messages name the file, the place and a remedy, never a value: what stands in the file is private.
"""

from __future__ import annotations

import os
import pathlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from dpmanifold._check import Array, shown
from dpmanifold.errors import (
    Argument,
    Either,
    InvalidArgumentError,
    InvalidDataError,
    Message,
    Names,
    Public,
    SourceChangedError,
)

PathLike = str | os.PathLike[str]


class Stream(Protocol):
    """What is read from: a file, or the inside of a gzip or zip file."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer, and return by how much."""


# Deflate (gzip, zip) never shrinks data by more than this, so a header that promises more is wrong.
_DEFLATE_RATIO = 1032
_SHOWN_NAMES = 12


def in_words(suffixes: Iterable[str]) -> str:
    """Return suffixes for a message.

    Examples
    --------
    >>> in_words((".csv", ".tsv", ".npy"))
    '.csv, .tsv and .npy'
    """
    *most, last = suffixes
    return f"{', '.join(most)} and {last}" if most else last


def named_twice(files: Iterable[pathlib.Path]) -> tuple[pathlib.Path, pathlib.Path] | None:
    """Return two names of one file, spelt differently or through a link; None where every file is there once.

    Examples
    --------
    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("x")
    >>> [path.name for path in named_twice([folder / "a.csv", folder / "." / "a.csv"])]
    ['a.csv', 'a.csv']
    """
    seen: dict[tuple[int, int] | str, pathlib.Path] = {}
    for path in files:
        about = path.stat()
        # Some systems number no files: there the name without links decides.
        key = (about.st_dev, about.st_ino) if about.st_ino else os.path.realpath(path)
        if key in seen:
            return seen[key], path
        seen[key] = path
    return None


def checked_path(path: object) -> pathlib.Path:
    """Return `path` as the path of something that exists, or say what is wrong with it."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgumentError("`path` must be the name of a file, got {got}.", got=shown(path))
    found = pathlib.Path(os.fsdecode(path))
    if not found.exists():
        raise InvalidArgumentError(
            "`path`: there is no file {found!r}. Check the name and the folder.", found=str(found)
        )
    return found


def checked_file(path: object) -> pathlib.Path:
    """Return `path` as the path of a file, not a folder."""
    found = checked_path(path)
    if not found.is_file():
        raise InvalidArgumentError("`path`: {found!r} is a folder. Name one file in it.", found=str(found))
    return found


def unknown_format(path: pathlib.Path, known: str) -> InvalidArgumentError:
    """Return the error about a file whose name does not say how to read it."""
    return InvalidArgumentError(
        "`path`: the format of {name!r} is not known. Known are {known}.", name=path.name, known=Public(known)
    )


_IN_FILE = "{file}: {fault}"


ARRAY = Either(Argument("key"), Argument("array"))
"""What names an array of an .npz file: `key`, but where a key names a request."""


def bad_file(path: pathlib.Path, template: str, /, **values: object) -> InvalidDataError:
    """Return the error about the content of a file; the message says what, where and what to do.

    Examples
    --------
    >>> print(bad_file(pathlib.Path("folder/faces.csv"), "line {line} is blank. Remove it.", line=3))
    faces.csv: line 3 is blank. Remove it.
    """
    return InvalidDataError(_IN_FILE, file=path.name, fault=Message(template, **values))


def in_file(name: str, problem: InvalidDataError) -> InvalidDataError:
    """Return an error about records with the name of their file, if it does not have it."""
    if problem.message.template == _IN_FILE:
        return problem
    return InvalidDataError(_IN_FILE, file=name, fault=problem)


def listed(names: Iterable[object]) -> str:
    """Return names of columns or arrays for a message, the first dozen of them.

    Examples
    --------
    >>> listed(["x", "y"]), listed(range(14))
    ("'x', 'y'", '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more')
    """
    every = [repr(name) for name in names]
    more = f" and {len(every) - _SHOWN_NAMES} more" if len(every) > _SHOWN_NAMES else ""
    return ", ".join(every[:_SHOWN_NAMES]) + more


def no_option(value: object, name: str, path: pathlib.Path, remedy: str) -> None:
    """Refuse an option that means nothing for this kind of file, so that it is not ignored in silence."""
    if value is not None:
        raise InvalidArgumentError(
            "{name} means nothing for {name2!r}. {remedy}", name=Argument(name), name2=path.name, remedy=Public(remedy)
        )


def plausible_size(expanded: int, compressed: int) -> bool:
    """Return whether `compressed` bytes of deflate may hold `expanded` bytes."""
    return expanded <= _DEFLATE_RATIO * (compressed + 1)


def read_exactly(stream: Stream, count: int) -> Array | None:
    """Return the `count` bytes that are left in the stream as an array (count,), or None if there are fewer or more."""
    values = np.empty(count, dtype=np.uint8)
    return values if fill(stream, values) and not stream.read(1) else None


def fill(stream: Stream, values: Array) -> bool:
    """Fill an array of bytes (n,) from a stream; return whether there were enough."""
    view, filled = values.data, 0
    while filled < len(values):
        # One GB at a time: some decompressors count in 32 bits.
        got = stream.readinto(view[filled : filled + 2**30])
        if not got:
            return False
        filled += got
    return True


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


class DataFile(ABC):
    """A file of records that was opened. `DataFile(path)` opens it, and refuses what is damaged.

    Messages name the file, the place and a remedy, never a value: what stands in the file is private.

    Examples
    --------
    >>> class Pairs(DataFile):                            # a format of two numbers per line
    ...     suffixes = (".pairs",)
    ...     def array(self):
    ...         import numpy as np
    ...         return np.loadtxt(self.path, ndmin=2)
    >>> Pairs.options, len(Pairs.suffixes)
    ((), 1)
    """

    suffixes: ClassVar[tuple[str, ...]]
    """How names of such files end, in small letters."""
    options: ClassVar[tuple[str, ...]] = ()
    """Which options :meth:`array` takes: of "key", "columns", "mask", "order", or the format's own."""
    names: Sequence[str] = ()
    """Names of what :meth:`column` can be asked for: columns of a table, arrays of an archive."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    @abstractmethod
    def array(self, **options: Any) -> Array:
        """Return the records, one per row, (n, ...): a memory map where the file allows it, so that slices stream.

        Missing numbers are NaN and passed on. Options that are not given are None.
        """

    def keep(self, name: str) -> None:
        """Say that a column will be asked for: a format that is read from front to back reads it along with the rest.

        A hint: names that there are not are passed over.
        """
        return

    def column(self, name: str | None = None, text: bool = False, labels: bool = False) -> Array:
        """Return ids or labels, one per record, shape (n,); without a name, the only ones there are.

        `text` keeps numbers as text; `labels` takes words such as NA for what they are.
        """
        if name is not None:
            raise InvalidArgumentError(
                "column {got} is not in {name!r}, which has no columns.", got=shown(name), name=self.path.name
            )
        return one_column(self.array(), self.path, text)

    def ids(self) -> Array | None:
        """Return who the records are of, where the format itself says so; None where it does not."""
        return None


def one_column(stored: Array, path: pathlib.Path, text: bool = False) -> Array:
    """Return a stored array as one value per record, (n,), or refuse its shape."""
    if stored.ndim == 2 and stored.shape[1] == 1:
        stored = stored[:, 0]
    if stored.ndim != 1:
        raise bad_file(
            path,
            "a column has shape (n,), this array {shape}. Give {key}, or save one column.",
            shape=Public(stored.shape),
            key=ARRAY,
        )
    return stored.astype(str) if text else stored


def chosen_name(names: Sequence[str], name: object, path: pathlib.Path) -> str:
    """Return the name of a column; without one there must be one column only."""
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise InvalidArgumentError(
            "column is needed: {name!r} has the columns {names}.", name=path.name, names=Names(names)
        )
    if not (isinstance(name, str) and name in names):
        raise InvalidArgumentError(
            "column {got} is not in {name!r}, which has the columns {names}.",
            got=shown(name),
            name=path.name,
            names=Names(names),
        )
    return name
