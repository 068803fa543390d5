"""Parquet: some of its row groups, a batch of rows at a time."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpmanifold._check import FloatArray
from dpmanifold.data._files import bad_file
from dpmanifold.data.table_files import (
    MOST_COLUMNS,
    Column,
    Entries,
    Lists,
    StreamedTable,
    TableRows,
    arrow_kind,
    arrow_numbers,
    cells_of,
    text_entries,
)
from dpmanifold.errors import Public

_BATCH = 32_768
# Bytes of a batch, and of a number; rows may be long.
_BATCH_BYTES, _BYTES = 2**23, 8
# Bytes in memory of one column of a row group, and how many times as many as in the file: beyond both it is refused.
_MOST_UNPACKED, _MOST_TIMES = 2**27, 100
# What is read of a column at once: without it, whole row groups are held, and they may be of any size.
_BUFFER = 2**20
# For each column and row group a footer says where it is; a file that says more than this is no table of records.
_LONGEST_FOOTER = 2**26


class ParquetTable(StreamedTable):
    """A Parquet file, read by pyarrow in batches of rows; with `groups`, those of some row groups alone.

    `group_rows` are the numbers of rows of its row groups, and `kinds` say in a word what its columns hold: "whole",
    "number", "text", "object", "lists" or "something else".
    """

    suffixes = (".parquet",)

    def __init__(self, path: pathlib.Path, groups: Sequence[int] | None = None) -> None:
        super().__init__(path)
        self._refuse_footer()
        try:
            with self._open() as file:
                self._schema, self._about = file.schema_arrow, file.metadata
                self.group_rows = [self._about.row_group(i).num_rows for i in range(self._about.num_row_groups)]
        except (pa.ArrowException, OSError, ValueError):
            raise bad_file(path, "it is damaged, incomplete or not Parquet. Write it again.") from None
        self._groups = list(range(len(self.group_rows)) if groups is None else groups)
        self.names = list(self._schema.names)
        self._types = {field.name: field.type for field in self._schema}
        self.kinds = {name: _kind(found) for name, found in self._types.items()}
        self.refuse_width()

    def rows(self, names: Sequence[str] | None, beside: Sequence[str] = ()) -> Iterator[TableRows]:
        """Yield rows, of all row groups or of some; a column of lists gives as many numbers as they are long."""
        names = [self.names[place] for place in self._positions(names)]
        self._positions(beside)
        lists = [name for name in names if self.kinds[name] == "lists"]
        if lists and len(names) > 1:
            raise bad_file(
                self.path,
                "column {lists!r} holds lists, a record each. Choose it alone with `columns=`, or others.",
                lists=lists[0],
            )
        for name in names:
            if self.kinds[name] == "something else":
                raise bad_file(
                    self.path,
                    "column {name!r} is of a type that is not numbers. Choose others with `columns=`.",
                    name=name,
                )
        for batch in self._batches(list(dict.fromkeys([*names, *beside])), self._groups):
            values: FloatArray | Lists = np.empty((batch.num_rows, 0))
            if lists:
                values = _lists(batch.column(lists[0]), self.list_width(lists[0]))
            elif names:
                values = np.concatenate([arrow_numbers(batch.column(name)) for name in names], axis=1)
            yield TableRows(values, [_entries(batch.column(name), self.kinds[name]) for name in beside])

    def place(self, row: int) -> str:
        """Say which row it is."""
        return f"row {row} (the first is 0)"

    def column_named(self, name: str) -> Column:
        """Return what is known of a column: lists are numbers, as many as they are long."""
        kind = self.kinds[name]
        return Column(name, "number", self.list_width(name)) if kind == "lists" else Column(name, kind)

    def list_width(self, name: str) -> int:
        """Return how many numbers the lists of a column hold by its type, 0 where that does not say it.

        What the lists themselves hold is not looked at: one long list would decide how all others are read.
        """
        found, width = self._types[name], 1
        while pa.types.is_fixed_size_list(found):
            width, found = width * found.list_size, found.value_type
        return 0 if _is_list(found) else width

    def _open(self, names: Sequence[str] = ()) -> pq.ParquetFile:
        """Open the file, to read these columns: those of text as the words that occur, which may be long, and codes."""
        words = [name for name in names if self.kinds[name] in ("text", "object")]
        return pq.ParquetFile(
            self.path, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=True, read_dictionary=words
        )

    def _refuse_footer(self) -> None:
        """Refuse a footer that would take minutes and gigabytes to unpack."""
        try:
            with self.path.open("rb") as stream:
                size = stream.seek(-8, 2)
                length, mark = int.from_bytes(stream.read(4), "little"), stream.read(4)
        except OSError:
            return  # too short; what reads it says so
        if length > _LONGEST_FOOTER and mark == b"PAR1" and length <= size:
            raise bad_file(
                self.path,
                "what it says of its own columns and row groups takes {length} bytes: it has far more than "
                "{most_columns} columns, or is damaged. Write it again with larger row groups, or save .npy.",
                length=Public(length),
                most_columns=Public(MOST_COLUMNS),
            )

    def _batches(self, names: list[str], groups: list[int]) -> Iterator[Any]:
        size = self._rows_at_once(names, groups)
        try:
            held, rows = list[Any](), 0
            for batch in self._parts(names, groups, size):
                held.append(batch)
                rows += len(batch)
                if rows >= size:  # words of two row groups come in two batches
                    yield _together(held)
                    held, rows = [], 0
            if held:
                yield _together(held)
        except (pa.ArrowException, OSError, ValueError):
            raise bad_file(
                self.path,
                "{damaged} cannot be read: it is damaged, or written in a way that pyarrow {version} does not "
                "know. Copy it again, write it again, or install a newer pyarrow.",
                damaged=self._damaged(names, groups, size),
                version=Public(pa.__version__),
            ) from None

    def _parts(self, names: list[str], groups: list[int], size: int) -> Iterator[Any]:
        """Yield batches of at most so many rows; a damaged one may have places beyond its words, or bytes for text."""
        with self._open(names) as file:
            for batch in file.iter_batches(size, row_groups=groups, columns=names, use_threads=False):
                batch.validate(full=True)
                yield batch

    def _rows_at_once(self, names: list[str], groups: list[int]) -> int:
        """Return how many rows make a batch, by what the footer says; refuse what unpacks to more than memory has."""
        wide = 0
        paths = {self._about.schema.column(place).path: place for place in range(self._about.num_columns)}
        for name in names:
            kind, most = self.kinds[name], _BYTES
            leaf = paths[name] if name in paths else next(paths[path] for path in paths if path.startswith(f"{name}."))
            for group in groups if kind not in ("whole", "number") else ():
                found, rows = self._about.row_group(group).column(leaf), max(1, self.group_rows[group])
                unpacked = found.num_values * _BYTES if kind == "lists" else found.total_uncompressed_size
                # One row may have nearly all of it, but for lists whose type says how long they are.
                uneven = kind != "lists" or self.list_width(name) == 0
                if uneven and unpacked > max(_MOST_UNPACKED, _MOST_TIMES * found.total_compressed_size):
                    raise bad_file(
                        self.path,
                        "column {name!r} takes {packed} bytes in row group {group} (the first is 0), and {unpacked} "
                        "bytes in memory: more than {most} bytes, and more than {times} times as much. Write it again "
                        "with smaller row groups, or with shorter entries.",
                        name=name,
                        packed=found.total_compressed_size,
                        group=Public(group),
                        unpacked=unpacked,
                        most=Public(_MOST_UNPACKED),
                        times=Public(_MOST_TIMES),
                    )
                most = max(most, math.ceil(unpacked / rows))
            wide += most
        return max(1, min(_BATCH, _BATCH_BYTES // max(1, wide)))

    def _damaged(self, names: list[str], groups: list[int], size: int) -> str:
        """Find the row group that cannot be read."""
        for group in groups:
            try:
                for _ in self._parts(names, [group], size):
                    continue
            except (pa.ArrowException, OSError, ValueError):
                return f"row group {group} (the first is 0)"
        return "one of its row groups"


def _together(batches: list[Any]) -> Any:
    """Return batches as one."""
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()[0]


def _lists(column: Any, width: int) -> FloatArray | Lists:
    """Return lists of numbers: as rows where the type says how long they are, else each as long as it is."""
    if width and pa.types.is_fixed_size_list(column.type) and not _is_list(column.type.value_type):
        return arrow_numbers(column, width)
    rows = len(column)
    owner, whole = np.arange(rows), np.ones(rows, dtype=bool)
    while _is_list(column.type):
        missing = column.is_null().to_numpy(zero_copy_only=False)
        whole[owner[missing]] = False
        column, owner = column.drop_null(), owner[~missing]
        lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
        longest, shortest = np.zeros(rows, np.int64), np.full(rows, np.iinfo(np.int64).max)
        np.maximum.at(longest, owner, lengths)
        np.minimum.at(shortest, owner, lengths)
        whole[owner] &= (longest == shortest)[owner]
        column, owner = column.flatten(), np.repeat(owner, lengths)
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    found = Lists(np.asarray(values), np.bincount(owner, minlength=rows), whole)
    return found.filled(width) if width else found


def _kind(found: Any) -> str:
    if pa.types.is_dictionary(found):
        found = found.value_type
    if _is_list(found):
        numbers = pa.types.is_floating(_innermost(found)) or pa.types.is_integer(_innermost(found))
        return "lists" if numbers else "something else"
    # Unsigned 64-bit numbers may not fit; as ids they would have to be text.
    kind = arrow_kind(found)
    return "number" if kind == "truth" or pa.types.is_uint64(found) else kind


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _innermost(kind: Any) -> Any:
    while _is_list(kind):
        kind = kind.value_type
    return kind


def _entries(column: Any, kind: str) -> Entries:
    """Return ids as an array of whole numbers, or text by a dictionary; what else there is, as it is."""
    if kind == "text":
        return text_entries(column)
    if kind != "whole":
        return cells_of(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    numbers = column.cast(pa.int64())
    return numbers if numbers.null_count else numbers.to_numpy()
