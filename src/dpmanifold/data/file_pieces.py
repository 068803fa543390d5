"""Files of a data set, what their headers say, and the pieces they are cut into, each read in blocks.

Those are row groups of a Parquet file, rows of an array, a CSV file.

A piece can be pickled: it holds the file's name, size and time of change, and which rows are meant.
"""

from __future__ import annotations

import math
import pathlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa

from dpmanifold._check import Array
from dpmanifold.data._files import Stamp, bad_file, in_file
from dpmanifold.data.archives import ArrayHeader, NpyFile, NpzFile, array_blocks, array_header, chosen_key
from dpmanifold.data.csv_table import CsvTable
from dpmanifold.data.formats import loader_of, open_file
from dpmanifold.data.parquet_table import ParquetTable
from dpmanifold.data.pieces import Beside
from dpmanifold.data.readers import Reading
from dpmanifold.data.table_files import (
    Column,
    Entries,
    Lists,
    StreamedTable,
    as_array,
    as_text,
    first_missing,
    first_respelt,
    text_entries,
)
from dpmanifold.errors import InvalidDataError, Public
from dpmanifold.sources import Block, Piece

# Numbers of a block of an array: it stays near the processor while it is worked on.
_BLOCK_NUMBERS = 2**18


@dataclass(frozen=True)
class Binding:
    """What is read of every file, and how it becomes records.

    Parameters
    ----------
    reading : from rows of numbers to records; its units and labels are columns, or arrays of an archive
    names : the columns that are numbers of a record; of an archive the array
    text : whether ids are text in all files, since they are in one of them
    numbers : whether they are whole numbers in another
    """

    reading: Reading
    names: tuple[str, ...] = ()
    text: bool = False
    numbers: bool = False

    @property
    def beside(self) -> list[str]:
        """The columns beside the numbers: of ids, and of classes."""
        return [name for name in (self.reading.units, self.reading.labels) if name is not None]


@dataclass(frozen=True, repr=False)
class FilePiece(Piece):
    """A part of a file.

    Parameters
    ----------
    stamp : the file, as it was when the source was opened
    binding : what is read of it
    name : for messages to the curator
    rows : how many records it has, where that is known
    look : whether to ask of its first block if it is written in another way than was said
    here : ids and classes of its records, where they stand in arrays of their own
    first : the row of the file that is the first of the piece
    about : roughly how many records it has, where `rows` does not say it
    """

    stamp: Stamp
    binding: Binding
    name: str
    rows: int | None = None
    here: Beside = field(default_factory=Beside)
    first: int = 0
    about: int | None = None
    look: bool = False

    @property
    def path(self) -> pathlib.Path:
        """The file."""
        return pathlib.Path(self.stamp.path)

    def blocks(self) -> Iterator[Block]:
        """Yield its records, after looking that the file is what it was; and again when all of it was read."""
        self.stamp.check()
        done = 0
        try:
            for values, beside in self._rows():
                yield self._block(values, beside, done)
                done += len(values)
            if self.rows not in (None, done):
                raise bad_file(
                    self.path,
                    "it holds {done} records where it says that it has {rows}.",
                    done=Public(done),
                    rows=Public(self.rows),
                )
        except InvalidDataError:
            self.stamp.check()  # what went wrong may be that somebody writes it
            raise
        self.stamp.check()

    @abstractmethod
    def _rows(self) -> Iterator[tuple[Array | Lists, list[Entries]]]:
        """Yield rows of numbers, and the columns beside them."""

    def _block(self, values: Array | Lists, beside: Sequence[Entries], done: int) -> Block:
        reading, columns, here = self.binding.reading, iter(beside), self.here.cut(done, done + len(values))
        try:
            records = reading.records(values, self.look and done == 0)
        except InvalidDataError as problem:
            raise in_file(self.name, problem) from None
        units = here.units if reading.units is None else next(columns)
        return Block(records, units, here.labels if reading.labels is None else as_array(next(columns)))


@dataclass(frozen=True, repr=False)
class TablePiece(FilePiece):
    """A CSV file, or some row groups of a Parquet file.

    Parameters
    ----------
    groups : which of the row groups; None for a file without
    """

    groups: tuple[int, ...] | None = None

    def _rows(self) -> Iterator[tuple[Array | Lists, list[Entries]]]:
        table = CsvTable(self.path) if self.groups is None else ParquetTable(self.path, self.groups)
        done = self.first
        for values, entries in table.rows(self.binding.names, self.binding.beside):
            if self.binding.reading.units is not None:
                entries[0] = self._ids(table, entries[0], self.binding.reading.units, done)
            yield values, entries
            done += len(values)

    def _ids(self, table: StreamedTable, column: Entries, name: str, done: int) -> Entries:
        """Return ids as those of all files are, or refuse them where one is missing.

        Text such as 007 is refused where another file has numbers, of which 7 may be the same person.
        """
        table.refuse_missing(column, name, done)
        place = first_respelt(column) if self.binding.numbers else None
        if place is not None:
            raise bad_file(
                self.path,
                "{place} has an id in column {units!r} that is a whole number in another form, and others have "
                'numbers: 7 and "07" may be one person or two. Write ids in one way.',
                place=Public(table.place(done + place)),
                units=name,
            )
        return as_text(column) if self.binding.text else column


@dataclass(frozen=True, repr=False)
class ArrayPiece(FilePiece):
    """Rows of an array in a .npy file or an .npz archive.

    Parameters
    ----------
    key : of the array, in an archive
    """

    key: str | None = None

    def _rows(self) -> Iterator[tuple[Array, list[Entries]]]:
        rows, done = slice(self.first, self.first + (self.rows or 0)), self.first
        for values, *beside in array_blocks(self.path, [self.key, *self.binding.beside], rows, _BLOCK_NUMBERS):
            entries = [_entries(column) for column in beside]
            missing = None if self.binding.reading.units is None else first_missing(entries[0])
            if missing is not None:
                raise bad_file(
                    self.path,
                    "array {name!r} has nothing, or a word such as NA or None, at index {done}, and a record belongs "
                    "to somebody. Fill it in, or drop the record.",
                    name=self.binding.reading.units,
                    done=Public(done + missing),
                )
            yield values, entries
            done += len(values)


def _entries(stored: Array) -> Entries:
    """Return stored ids as tables give them: text by a dictionary, and everything else as it is."""
    column = stored[:, 0] if stored.ndim == 2 else stored
    return text_entries(pa.array(np.asarray(column))) if column.dtype.kind == "U" else np.asarray(column)


def groups_in_pieces(rows: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    """Yield row groups that follow one another, with at most so many rows together where one has not more by itself.

    Examples
    --------
    >>> list(groups_in_pieces([5, 5, 5, 20, 1], 10))
    [(0, 1), (2,), (3,), (4,)]
    """
    taken: list[int] = []
    for group, count in enumerate(rows):
        if taken and sum(rows[one] for one in taken) + count > most:
            yield tuple(taken)
            taken = []
        taken.append(group)
    if taken:
        yield tuple(taken)


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
        return Part(stamp, tuple(map(table.column_named, table.names)), groups=tuple(table.group_rows))
    columns = tuple(Column(name, "number") for name in table.names)
    return Part(stamp, columns, about=cast(CsvTable, table).about())


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
            yield ArrayPiece(part.stamp, binding, name, stop - start, here, start, key=keys[0])
        return
    if part.groups is None:
        yield TablePiece(part.stamp, binding, name, about=part.about)
        return
    width = sum(max(1, column_of(part, column).width) for column in binding.names)
    first = 0
    for groups in groups_in_pieces(part.groups, max(1, _PIECE_NUMBERS // max(1, width))):
        rows = sum(part.groups[group] for group in groups)
        here = beside.cut(done + first, done + first + rows)
        yield TablePiece(part.stamp, binding, name, rows, here, first, groups=groups)
        first += rows
