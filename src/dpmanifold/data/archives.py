"""Arrays in .npy files and .npz archives: memory-mapped where they are stored as they are, never unpickled.

`np.load` maps .npy files only, and allocates what a header says before it looks at the file. Here uncompressed
members of an archive are mapped too, and every size is held against the file first.
"""

from __future__ import annotations

import contextlib
import math
import pathlib
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Literal, cast

import numpy as np

from dpmanifold._check import Array, shown
from dpmanifold.data._files import ARRAY, DataFile, Stream, bad_file, fill, one_column, plausible_size, read_exactly
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Names, Public

_BROKEN = "it is damaged, incomplete or not what its name says. Copy or download it again."
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # of a zip member: signature, ..., lengths of name and extra field
_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class ArrayHeader:
    """What the header of an array in numpy's format says; how long it is, and where it begins.

    `begins` is None where the array is compressed, and can only be read from front to back.
    """

    shape: tuple[int, ...]
    order: str
    dtype: np.dtype[np.generic]
    length: int
    begins: int | None = 0

    @property
    def size(self) -> int:
        """How many bytes the array takes."""
        return math.prod(self.shape) * self.dtype.itemsize


def npy_header(path: pathlib.Path) -> ArrayHeader:
    """Return what the header of a .npy file says, held against its size."""
    try:
        with path.open("rb") as stream:
            header = _read_header(stream, path, "the array")
            if header.length + header.size > path.stat().st_size:
                raise bad_file(path, "it ends before its last number. Copy or download it again.")
            return header
    except InvalidDataError:
        raise
    except (OSError, ValueError, EOFError):
        raise bad_file(path, _BROKEN) from None


def read_npy(path: pathlib.Path) -> Array:
    """Return the array of a .npy file, memory-mapped and read-only.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.npy")
    ...     np.save(path, np.eye(2))
    ...     print(type(read_npy(path)).__name__)
    memmap
    """
    header = npy_header(path)
    try:
        return _mapped(path, header)
    except (OSError, ValueError):
        raise bad_file(path, _BROKEN) from None


def archive_keys(path: pathlib.Path) -> list[str]:
    """Return the names of the arrays in an .npz archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile):
        raise bad_file(path, _BROKEN) from None


def chosen_key(path: pathlib.Path, key: object) -> str:
    """Return the name of the array that `key` means; without a key there must be one array only."""
    keys = archive_keys(path)
    if key is None and len(keys) == 1:
        return keys[0]
    if key is None:
        raise InvalidArgumentError(
            "{key} is needed: {name!r} holds {contents}.", key=ARRAY, name=path.name, contents=_contents(keys)
        )
    if not (isinstance(key, str) and key in keys):
        raise InvalidArgumentError(
            "{key} {got} is not in {name!r}, which holds {contents}.",
            key=ARRAY,
            got=shown(key),
            name=path.name,
            contents=_contents(keys),
        )
    return key


def read_npz(path: pathlib.Path, key: str | None = None) -> Array:
    """Return one array of an .npz archive: mapped if it was saved by `np.savez`, read if by `np.savez_compressed`.

    The checksum of a mapped array is not verified, which would read all of it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.npz")
    ...     np.savez(path, images=np.zeros((3, 8, 8)), labels=np.zeros(3))
    ...     images = read_npz(path, "images")
    ...     print(type(images).__name__, images.shape)
    memmap (3, 8, 8)
    """
    name = chosen_key(path, key)
    header = npz_header(path, name)
    if header.begins is not None:
        with _readable(path, name):
            return _mapped(path, header)
    with _member(path, name) as (stream, _):
        return _read(stream, _read_header(stream, path, f"array {name!r}"), path)


def npz_header(path: pathlib.Path, name: str) -> ArrayHeader:
    """Return what the header of an array in an .npz archive says, held against the archive's own size."""
    with _member(path, name) as (stream, member):
        return _held_header(stream, path, member)


def refuse_dishonest(archive: zipfile.ZipFile, path: pathlib.Path) -> None:
    """Refuse an open archive of which an array holds Python objects, or is not as large as it says."""
    for member in archive.infolist():
        if member.filename.endswith(".npy"):
            with _readable(path, member.filename.removesuffix(".npy")), archive.open(member) as stream:
                _held_header(stream, path, member)


def _held_header(stream: IO[bytes], path: pathlib.Path, member: zipfile.ZipInfo) -> ArrayHeader:
    name = member.filename.removesuffix(".npy")
    header = _read_header(stream, path, f"array {name!r}")
    # Held against the file itself: what the archive says of its own sizes may be wrong.
    known = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    honest = known and plausible_size(member.file_size, min(member.compress_size, path.stat().st_size))
    if header.length + header.size != member.file_size or not honest:
        raise bad_file(path, "array {name!r} has another size than its header says. Save it again.", name=name)
    stored = member.compress_type == zipfile.ZIP_STORED
    return replace(header, begins=_data_offset(path, member) if stored else None)


def array_header(path: pathlib.Path, key: str | None = None) -> ArrayHeader:
    """Return the header of the array in a .npy file, or of one in an .npz archive."""
    return npy_header(path) if path.suffix.lower() == ".npy" else npz_header(path, chosen_key(path, key))


def array_blocks(
    path: pathlib.Path, keys: Sequence[str | None], rows: slice, numbers: int
) -> Iterator[tuple[Array, ...]]:
    """Yield rows of arrays that stand side by side in one file, as many at a time as have so many numbers in the first.

    They are read and not mapped: a map that has its file cut off beneath it ends the process.

    Parameters
    ----------
    path : a .npy file or an .npz archive
    keys : which arrays of an archive; None for the only one
    rows : which rows; all of them where an array is compressed
    numbers : of the first array, in a block

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.npz")
    ...     np.savez(path, x=np.arange(6.0).reshape(3, 2), who=np.array([7, 7, 8]))
    ...     [who.tolist() for _, who in array_blocks(path, ["x", "who"], slice(0, 3), 4)]
    [[7, 7], [8]]
    """
    headers = [array_header(path, key) for key in keys]
    size = max(1, numbers // max(1, math.prod(headers[0].shape[1:])))
    with contextlib.ExitStack() as stack:
        takers = [_taker(stack, path, key, header, rows) for key, header in zip(keys, headers, strict=True)]
        for start in range(rows.start, rows.stop, size):
            count = min(size, rows.stop - start)
            yield tuple(taker(start, count) for taker in takers)


def _taker(
    stack: contextlib.ExitStack, path: pathlib.Path, key: str | None, header: ArrayHeader, rows: slice
) -> Callable[[int, int], Array]:
    """Return what takes rows of an array, one block after the other, from a file that the stack closes."""
    whole = header.order == "F" or header.dtype.hasobject or header.size == 0
    if whole:
        array = read_npy(path) if path.suffix.lower() == ".npy" else read_npz(path, key)
        return lambda start, count: array[start : start + count]
    shape = header.shape[1:]
    if header.begins is None:
        name = chosen_key(path, key)
        stream, _ = stack.enter_context(_member(path, name))
        _read_header(stream, path, f"array {name!r}")
    else:
        stream = stack.enter_context(path.open("rb"))
        stream.seek(header.begins + header.length + rows.start * math.prod(shape) * header.dtype.itemsize)

    def take(start: int, count: int) -> Array:
        values = np.empty((count, *shape), dtype=header.dtype)
        with _readable(path, key):
            if not fill(cast(Stream, stream), values.reshape(-1).view(np.uint8)):
                raise bad_file(
                    path, "it ends before row {start}. Copy or download it again.", start=Public(start + count)
                )
        return values

    return take


@contextlib.contextmanager
def _member(path: pathlib.Path, name: str) -> Iterator[tuple[IO[bytes], zipfile.ZipInfo]]:
    """Open an array of an archive, from its header on."""
    with _readable(path, name), zipfile.ZipFile(path) as archive:
        try:
            member = archive.getinfo(name + ".npy")
        except KeyError:
            raise bad_file(path, "there is no array {name!r} in it.", name=name) from None
        with archive.open(member) as stream:
            yield stream, member


@contextlib.contextmanager
def _readable(path: pathlib.Path, name: str | None) -> Iterator[None]:
    """Say of what cannot be read that it cannot."""
    try:
        yield
    except InvalidDataError:
        raise
    # RuntimeError: encrypted; NotImplementedError: compressed by a method that Python does not know.
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        what = "it" if name is None else f"array {name!r}"
        raise bad_file(path, "{what} cannot be read: {broken}", what=Argument(what), broken=Public(_BROKEN)) from None


class NpyFile(DataFile):
    """One array, memory-mapped."""

    suffixes = (".npy",)

    def array(self, **options: Any) -> Array:
        """Return the array as it is stored."""
        return read_npy(self.path)


class NpzFile(DataFile):
    """Arrays by name, memory-mapped where they are not compressed."""

    suffixes = (".npz",)
    options = ("key",)

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        self.names = archive_keys(path)

    def array(self, *, key: str | None = None, **options: Any) -> Array:
        """Return the array of that name; not needed if there is one."""
        return read_npz(self.path, key)

    def column(self, name: str | None = None, text: bool = False, labels: bool = False) -> Array:
        """Return an array as it is stored, one value per record."""
        return one_column(read_npz(self.path, name), self.path, text)


def _contents(keys: list[str]) -> Message:
    return Message("the arrays {names}", names=Names(keys)) if keys else Message("no arrays")


def _read_header(stream: IO[bytes], path: pathlib.Path, what: str) -> ArrayHeader:
    """Read the header of numpy's format, and refuse what is not plain numbers or text."""
    version = np.lib.format.read_magic(stream)
    # Version 3 is for structured arrays whose fields have names beyond Latin-1.
    reader = _HEADER_READERS.get(version)
    try:
        shape, fortran, dtype = ((), False, np.dtype([("", "V1")])) if reader is None else reader(stream)
    except Exception:
        # The header is a line of Python that numpy parses; damaged ones raise whatever its parser raises.
        raise bad_file(path, _BROKEN) from None
    if dtype.hasobject:
        raise bad_file(
            path,
            "{what} holds Python objects, which are never unpickled because that could run any program. Save "
            "numbers or text: np.save(file, np.array(values, dtype=float)).",
            what=Argument(what),
        )
    if dtype.kind == "V":
        raise bad_file(
            path, "{what} is a structured array. Save its fields as arrays of their own.", what=Argument(what)
        )
    if any(side < 0 for side in shape) or dtype.itemsize == 0:
        raise bad_file(path, _BROKEN)
    return ArrayHeader(shape, "F" if fortran else "C", dtype, stream.tell())


def _mapped(path: pathlib.Path, header: ArrayHeader) -> Array:
    """Map an array that stands as it is in the file; an empty one cannot be mapped, and is made."""
    if header.size == 0 or header.begins is None:
        return np.empty(header.shape, header.dtype)
    order, offset = "F" if header.order == "F" else "C", header.begins + header.length
    return np.memmap(path, header.dtype, mode="r", offset=offset, shape=header.shape, order=order)  # type: ignore[call-overload, no-any-return]


def _read(stream: IO[bytes], header: ArrayHeader, path: pathlib.Path) -> Array:
    """Read an array from a compressed member; at its end zipfile compares the checksum."""
    values = read_exactly(cast(Stream, stream), header.size)
    if values is None:
        raise bad_file(path, _BROKEN)
    if header.size == 0:
        return np.empty(header.shape, header.dtype)
    order: Literal["C", "F"] = "F" if header.order == "F" else "C"
    return np.asarray(values.view(header.dtype).reshape(header.shape, order=order))


def _data_offset(path: pathlib.Path, member: zipfile.ZipInfo) -> int:
    """Return where the bytes of a stored member begin: its own header may be longer than the table of contents says."""
    with path.open("rb") as stream:
        stream.seek(member.header_offset)
        signature, name_length, extra_length = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
    if signature != b"PK\x03\x04":
        raise ValueError("not a local header")
    return int(member.header_offset + _LOCAL_HEADER.size + name_length + extra_length)
