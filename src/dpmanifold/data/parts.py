"""A file of a data set: what its header says, and the pieces it is cut into."""

from __future__ import annotations

import math
import pathlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from dpmanifold.data._files import bad_file
from dpmanifold.data.archives import ArrayHeader, NpyFile, NpzFile, array_header, chosen_key
from dpmanifold.data.csv_table import CsvTable
from dpmanifold.data.entries import Column
from dpmanifold.data.file_pieces import ArrayPiece, Binding, FilePiece, TablePiece, groups_in_pieces
from dpmanifold.data.formats import loader_of, open_file
from dpmanifold.data.parquet_table import ParquetTable
from dpmanifold.data.pieces import Beside
from dpmanifold.data.stamps import Stamp
from dpmanifold.data.tables import StreamedTable
from dpmanifold.errors import Public

# Numbers of a piece: large enough that opening a file costs nothing, small enough that there is work for everybody.
_PIECE_NUMBERS = 9 * 2**20


@dataclass(frozen=True)
class Part:
    """A file that was opened: what its header says, and none of its records.

    Attributes
    ----------
    stamp : the file, as it was
    columns : of a table
    header, keys : of an array, and what other arrays are in its archive
    groups : how many rows each row group of a Parquet file has
    about : roughly how many records it has, where `rows` does not say it
    """

    stamp: Stamp
    columns: tuple[Column, ...] = ()
    header: ArrayHeader | None = None
    groups: tuple[int, ...] | None = None
    keys: tuple[str, ...] = ()
    about: int | None = None

    @property
    def path(self) -> pathlib.Path:
        """The file."""
        return pathlib.Path(self.stamp.path)

    @property
    def rows(self) -> int | None:
        """How many records it has, where that is known before it is read."""
        if self.header is not None:
            return self.header.shape[0]
        return None if self.groups is None else sum(self.groups)


def opened_part(path: pathlib.Path, key: str | None) -> Part:
    """Open a file and read what it says about itself."""
    try:
        stamp = Stamp.of(path)
    except OSError:
        raise bad_file(path, "it cannot be opened. It was removed, or may not be read.") from None
    if stamp.size == 0:
        raise bad_file(path, "it is empty, without even a header. Write it again, or leave it out.")
    kind = loader_of(path)
    if kind in (NpyFile, NpzFile):
        header = array_header(path, key)
        if len(header.shape) < 2:
            raise bad_file(
                path, "it must hold one record per row, this is an array of shape {shape}.", shape=Public(header.shape)
            )
        if header.dtype.kind not in "fiuc":
            raise bad_file(path, "it must hold numbers, this is an array of {dtype}.", dtype=header.dtype)
        keys = tuple(open_file(path).names)
        taken = None if kind is NpyFile else chosen_key(path, key)
        return Part(stamp, header=header, keys=tuple(name for name in keys if name != taken))
    table = cast(StreamedTable, open_file(path))
    if isinstance(table, ParquetTable):
        columns = tuple(_parquet_column(table, name) for name in table.names)
        return Part(stamp, columns, groups=tuple(table.group_rows))
    columns = tuple(Column(name, "number") for name in table.names)
    return Part(stamp, columns, about=_about(table))


def _about(table: StreamedTable) -> int | None:
    """Return roughly how many rows a table of text has, if its beginning can be read: what reads it all says if not."""
    try:
        return cast(CsvTable, table).about()
    except (OSError, EOFError, zlib.error):
        return None


def _parquet_column(table: ParquetTable, name: str) -> Column:
    """Return what is known of a column: lists are numbers, as many as they are long."""
    kind = table.kind(name)
    return Column(name, "number", table.list_width(name)) if kind == "lists" else Column(name, kind)


def column_of(part: Part, name: str) -> Column:
    """Return what is known of a column of a file, or say that it has none of that name."""
    found = next((column for column in part.columns if column.name == name), None)
    if found is None:
        raise bad_file(part.path, "it has no column {name!r}.", name=name)
    return found


def pieces_of(part: Part, binding: Binding, beside: Beside, done: int) -> Iterator[FilePiece]:
    """Yield the pieces of a file, of which the first record is the `done`-th of all."""
    name = part.path.name
    if part.header is not None:
        rows = part.header.shape[0]
        # What is compressed can only be read from its beginning.
        keys = [binding.names[0] if binding.names else None, *binding.beside]
        packed = any(array_header(part.path, key).begins is None for key in keys)
        step = rows if packed else max(1, _PIECE_NUMBERS // max(1, math.prod(part.header.shape[1:])))
        for start in range(0, max(1, rows), max(1, step)):
            stop = min(start + step, rows)
            here = beside.cut(done + start, done + stop)
            yield ArrayPiece(
                part.stamp, binding, name, stop - start, False, here.units, here.labels, start, key=keys[0]
            )
        return
    if part.groups is None:
        yield TablePiece(part.stamp, binding, name, about=part.about)
        return
    width = sum(max(1, column_of(part, column).width) for column in binding.names)
    first = 0
    for groups in groups_in_pieces(part.groups, max(1, _PIECE_NUMBERS // max(1, width))):
        rows = sum(part.groups[group] for group in groups)
        here = beside.cut(done + first, done + first + rows)
        yield TablePiece(part.stamp, binding, name, rows, False, here.units, here.labels, first, groups=groups)
        first += rows


__all__ = ["Part", "column_of", "opened_part", "pieces_of"]
