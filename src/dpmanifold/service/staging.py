"""Files below the root, copied to where nobody else can change them: only these are read.

Whoever can write below the root could put a link or a pipe where a file was a moment ago. So every folder on the way is
opened by itself and without following links, what is opened is looked at once more, and the copy is what loaders get.
What would grow when it is unpacked is held to a limit before anything unpacks it.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn, final

from dpmanifold._check import optional_module
from dpmanifold.data.archives import npy_header, refuse_dishonest
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Public

LARGEST = 2**35
"""Bytes that records may take, packed or unpacked (32 GiB)."""

_MOST_FILES, _DEEPEST = 100_000, 16
_MOST_ARRAYS = 1_000  # of an archive
_RATIO = 200  # to which packed files may grow, beyond the size that is no trouble
_NO_TROUBLE = 2**26
_CHUNK = 2**20
_SPARE = 2**27  # bytes that stay free on the vault's volume
_GZIP = b"\x1f\x8b"


@final
@dataclass
class Staging:
    """A folder of the vault that holds copies for one registration.

    Parameters
    ----------
    root : below which files may be named
    folder : where copies go; it exists, and is this process's alone
    """

    root: pathlib.Path
    folder: pathlib.Path
    _bytes: int = field(default=0, init=False)
    _files: int = field(default=0, init=False)

    def take(self, text: object, name: str, where: str) -> pathlib.Path:
        """Copy a file, or a folder of files, and return where the copy is.

        Parameters
        ----------
        text : its path below the root, with / between folders
        name : of the argument, for messages
        where : the name of a new folder for the copy

        Raises
        ------
        InvalidArgumentError : it is not a path below the root, is not there, or is no file and no folder
        InvalidDataError : it is too large, or would be when it is unpacked
        """
        parts = parts_of(text, name)
        target = self.folder / where
        target.mkdir(mode=0o700)
        with _opened_folder(self.root, parts[:-1], name) as folder:
            self._copy(folder, parts[-1], target / parts[-1], name, 0)
        return target / parts[-1]

    def has(self, text: str) -> bool:
        """Return whether there is a file of this name below the root."""
        with contextlib.suppress(InvalidArgumentError, OSError):
            parts = parts_of(text, "path")
            with _opened_folder(self.root, parts[:-1], "path") as folder:
                return stat.S_ISREG(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode)
        return False

    def _copy(self, folder: int, entry: str, target: pathlib.Path, name: str, depth: int) -> None:
        """Copy an entry of an open folder."""
        # Opening a pipe would wait for somebody to write into it; a link is refused by the system.
        try:
            handle = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            _refuse_entry(folder, entry, name)
        try:
            status = os.fstat(handle)
            if stat.S_ISDIR(status.st_mode):
                self._copy_folder(handle, target, name, depth)
            elif stat.S_ISREG(status.st_mode):
                self._copy_file(handle, status.st_size, target)
            else:
                _refuse_kind(entry, name)
        finally:
            os.close(handle)

    def _copy_folder(self, folder: int, target: pathlib.Path, name: str, depth: int) -> None:
        if depth >= _DEEPEST:
            raise InvalidArgumentError(
                "{name} has folders in folders, more than {deepest} deep.",
                name=Argument(name),
                deepest=Public(_DEEPEST),
            )
        target.mkdir(mode=0o700)
        for entry in sorted(os.listdir(folder)):
            if entry.startswith("."):  # what file systems and tools leave there; no loader reads it
                continue
            self._copy(folder, entry, target / entry, name, depth + 1)

    def _copy_file(self, handle: int, size: int, target: pathlib.Path) -> None:
        self._bytes += size
        self._files += 1
        if self._bytes > LARGEST or self._files > _MOST_FILES:
            raise InvalidDataError(
                "{name}: with it there are more than {largest:.0f} GiB or {most_files:,} files. Register less at "
                "a time.",
                name=target.name,
                largest=Public(LARGEST / 2**30),
                most_files=Public(_MOST_FILES),
            )
        if shutil.disk_usage(self.folder).free < 2 * size + _SPARE:
            raise InvalidDataError(
                "{name}: there is no room for it in the vault. Make room on its volume.", name=target.name
            )
        copied = 0
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
            while chunk := os.read(handle, _CHUNK):
                copied += len(chunk)
                if copied > size:  # somebody writes to it, maybe without end
                    raise InvalidDataError(
                        "{name}: it grew while it was read. Wait until it is complete.", name=target.name
                    )
                copy.write(chunk)
        refuse_growing(target)


def parts_of(text: object, name: str) -> list[str]:
    """Return the parts of a path below the root, or refuse.

    Examples
    --------
    >>> parts_of("dti/tensors.csv", "path")
    ['dti', 'tensors.csv']
    >>> parts_of("../etc/passwd", "path")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: path must be the name of a file or a folder below the root, such as
    dti/tensors.csv: without .. and without / at its beginning.
    """
    parts = text.split("/") if isinstance(text, str) else []
    bad = not parts or any(part in ("", ".", "..") or not part.isprintable() or "\\" in part for part in parts)
    if bad or any(part.startswith(".") for part in parts):
        raise InvalidArgumentError(
            "{name} must be the name of a file or a folder below the root, such as dti/tensors.csv: without "
            ".. and without / at its beginning.",
            name=Argument(name),
        )
    return parts


@contextlib.contextmanager
def _opened_folder(root: pathlib.Path, parts: list[str], name: str) -> Iterator[int]:
    """Open a folder below the root, one after the other, following no link; the root itself may be one."""
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as problem:
        raise InvalidArgumentError(
            "the root of records cannot be opened: {strerror}.", strerror=Public(problem.strerror)
        ) from None
    try:
        for part in parts:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                inner = os.open(part, flags, dir_fd=folder)
            except OSError:
                _refuse_entry(folder, part, name)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _refuse_entry(folder: int, entry: str, name: str) -> NoReturn:
    """Say why an entry could not be opened."""
    try:
        mode = os.stat(entry, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        raise InvalidArgumentError(
            "{name}: there is no {entry!r} below the root. Check the name.", name=Argument(name), entry=entry
        ) from None
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        raise InvalidArgumentError(
            "{name}: the worker may not read {entry!r}. Give its user the right to.", name=Argument(name), entry=entry
        )
    _refuse_kind(entry, name)


def _refuse_kind(entry: str, name: str) -> NoReturn:
    raise InvalidArgumentError(
        "{name}: {entry!r} is a link, a pipe or a device. Only files and folders of files are read: put a copy there.",
        name=Argument(name),
        entry=entry,
    )


# -------------------------------------------------------------------- what grows


def refuse_growing(path: pathlib.Path) -> None:
    """Refuse a file that holds Python objects, or far more than it should when it is unpacked; nothing is unpacked."""
    ending = path.name.lower()
    if ending.endswith(".npy"):
        npy_header(path)
    elif ending.endswith(".npz"):
        _refuse_archive(path)
    elif ending.endswith((".parquet", ".pq")):
        _refuse_parquet(path)
    else:
        with path.open("rb") as file:
            if file.read(2) == _GZIP:
                _refuse_gzip(path)


def _refuse_archive(path: pathlib.Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > _MOST_ARRAYS:
                raise InvalidDataError(
                    "{name}: it holds {n_members:,} arrays, more than {most_arrays:,}. Save those that are needed: "
                    "one with a record per row, and what is beside them.",
                    name=path.name,
                    n_members=Public(len(members)),
                    most_arrays=Public(_MOST_ARRAYS),
                )
            _refuse_size(path, sum(one.file_size for one in members), path.stat().st_size)
            refuse_dishonest(archive, path)  # Python objects, and sizes that are not so
    except InvalidDataError:
        raise
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile):
        raise InvalidDataError(
            "{name}: it is no archive of arrays, or damaged. Save it again.", name=path.name
        ) from None


def _refuse_parquet(path: pathlib.Path) -> None:
    parquet = optional_module("pyarrow.parquet", "all", "a parquet file")
    try:
        known = parquet.read_metadata(path)
    except Exception:  # whatever the package raises of a damaged file
        raise InvalidDataError("{name}: it is no parquet file, or damaged. Save it again.", name=path.name) from None
    declared = sum(known.row_group(i).total_byte_size for i in range(known.num_row_groups))
    # A value that repeats takes no room in the file, and its eight bytes in every row of memory.
    _refuse_size(path, max(declared, 8 * known.num_rows * known.num_columns), path.stat().st_size)


def _refuse_gzip(path: pathlib.Path) -> None:
    """Unpack to nowhere, and stop at the limit: gzip does not say how much it holds."""
    size, total = path.stat().st_size, 0
    with path.open("rb") as file:
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        data = file.read(_CHUNK)
        while data:
            try:
                total += len(unpacker.decompress(data, _CHUNK))
            except zlib.error:
                raise InvalidDataError("{name}: it is damaged. Copy it again.", name=path.name) from None
            _refuse_size(path, total, size)
            data = unpacker.unconsumed_tail
            if unpacker.eof:  # further members may follow
                data = unpacker.unused_data or file.read(_CHUNK)
                unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            data = data or file.read(_CHUNK)


def _refuse_size(path: pathlib.Path, unpacked: int, packed: int) -> None:
    if unpacked > LARGEST or (unpacked > _NO_TROUBLE and unpacked > _RATIO * max(1, packed)):
        raise InvalidDataError(
            "{name}: unpacked it would take {unpacked:,.0f} MiB or more, far beyond its size. Save it "
            "unpacked if that is meant.",
            name=path.name,
            unpacked=Public(unpacked / 2**20),
        )
