"""Tables and batches of pyarrow as records: what databases and other readers hand over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifold._cells import REAL
from dpmanifold._check import Array
from dpmanifold.data.entries import TEXT_TYPES, Entries, arrow_numbers
from dpmanifold.data.rows import Column, Rows
from dpmanifold.data.tables_in_memory import TableInMemory
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.sources import is_a


class ArrowRows(Rows):
    """Rows of a table.

    Parameters
    ----------
    table : pyarrow.Table, or a RecordBatch
    """

    def __init__(self, table: Any, columns: Sequence[Column] | None = None) -> None:
        import pyarrow

        self.table = pyarrow.Table.from_batches([table]) if isinstance(table, pyarrow.RecordBatch) else table
        self.columns = columns or arrow_columns(table.schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getstate__(self) -> tuple[bytes, Sequence[Column]]:
        import pyarrow

        # Pickled as it is, a part would bring along all of the table that it was cut from.
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, self.table.schema) as stream:
            stream.write_table(self.table)
        return sink.getvalue().to_pybytes(), self.columns

    def __setstate__(self, state: tuple[bytes, Sequence[Column]]) -> None:
        import pyarrow

        self.table, self.columns = pyarrow.ipc.open_stream(state[0]).read_all(), state[1]

    def cut(self, start: int, stop: int) -> ArrowRows:
        """Return a view."""
        return ArrowRows(self.table.slice(start, stop - start), self.columns)

    def numbers(self, places: Sequence[int], kind: str = REAL) -> Array:
        """Return the columns side by side, each cell read by itself."""
        parts = [arrow_numbers(self.table.column(place), self.columns[place].width, kind) for place in places]
        return np.concatenate(parts, axis=1)

    def entries(self, place: int) -> Entries:
        """Return whole numbers as they are, and text by the words that occur."""
        column = self.table.column(place)
        return words_of(column) if self.columns[place].kind == "text" else np.asarray(_decoded(column).to_numpy())

    def missing(self, place: int) -> int | None:
        """Count gaps, and look for the first if there are any."""
        column = self.table.column(place)
        gaps = column.is_null().to_numpy() if column.null_count else np.zeros(0, dtype=bool)
        return int(np.argmax(gaps)) if gaps.any() else None


def words_of(column: Any) -> Any:
    """Return text as a `pyarrow.DictionaryArray`, whose words all occur: nobody is counted who has no record.

    Parameters
    ----------
    column : a pyarrow array of text, by a dictionary or not

    Examples
    --------
    >>> import pyarrow
    >>> words_of(pyarrow.array(["b", "a", "b"])[:1]).dictionary.to_pylist()
    ['b']
    """
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if not pyarrow.types.is_dictionary(column.type):
        return column.dictionary_encode()
    if column.null_count:
        return column.dictionary_decode().dictionary_encode()
    codes, words = column.indices.to_numpy(zero_copy_only=False), column.dictionary
    used = np.flatnonzero(np.bincount(codes, minlength=len(words)))
    if len(used) == len(words):
        return column
    rank = np.empty(len(words), dtype=np.int32)
    rank[used] = np.arange(len(used))
    return pyarrow.DictionaryArray.from_arrays(rank[codes], words.take(used))


def _decoded(column: Any) -> Any:
    """Return the entries themselves, where they come by a dictionary."""
    from pyarrow import types

    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def arrow_columns(schema: Any) -> list[Column]:
    """Return what is known of the columns of a schema."""
    return [_column(field.name, field.type) for field in schema]


def _column(name: str, kind: Any) -> Column:
    from pyarrow import types

    if types.is_fixed_size_list(kind) and _kind(kind.value_type) in ("whole", "number"):
        return Column(name, "number", kind.list_size)
    if types.is_dictionary(kind):
        return Column(name, "text" if _kind(kind.value_type) == "text" else "object")
    return Column(name, _kind(kind))


def _kind(kind: Any) -> str:
    """Return in a word what a column of a type holds."""
    from pyarrow import types

    if types.is_integer(kind):
        return "whole"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind):
        return "truth"
    if types.is_null(kind) or str(kind) in ("binary", "large_binary", "binary_view"):
        return "object"
    return "text" if str(kind) in TEXT_TYPES else "something else"


def arrow_source(X: object) -> TableInMemory | None:
    """Return a table or a batch of pyarrow as a source, and None of everything else; refuse what is read only once."""
    if is_a(X, "pyarrow", "RecordBatchReader"):
        raise InvalidArgumentError(
            "`X` is a RecordBatchReader, which can be read only once, and records are read several times. "
            "Give a function that makes one: data.from_blocks(lambda: ...)."
        )
    return TableInMemory(ArrowRows(X), "the Table") if is_a(X, "pyarrow", "Table", "RecordBatch") else None


__all__ = ["ArrowRows", "arrow_columns", "arrow_source", "words_of"]
