"""Data frames of pandas as records. pandas is never imported: who has a frame has imported it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifold._cells import REAL, numbers_of
from dpmanifold._check import Array
from dpmanifold.data.arrow_tables import words_of
from dpmanifold.data.entries import Entries
from dpmanifold.data.rows import Column, Rows
from dpmanifold.data.tables_in_memory import TableInMemory
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import Piece, is_a
from dpmanifold.stats.inputs import is_each_record

# Entries of a column of objects that tell what it holds.
_LOOKED_AT = 1000

_KINDS = {"i": "whole", "u": "whole", "f": "number", "c": "complex", "b": "truth", "O": "object"}


class PandasRows(Rows):
    """Rows of a frame.

    Parameters
    ----------
    frame : pandas.DataFrame
    """

    def __init__(self, frame: Any, columns: Sequence[Column] | None = None) -> None:
        self.frame = frame
        self.columns = columns or pandas_columns(frame)

    def __len__(self) -> int:
        return len(self.frame)

    def cut(self, start: int, stop: int) -> PandasRows:
        """Return a view."""
        return PandasRows(self.frame.iloc[start:stop], self.columns)

    def numbers(self, places: Sequence[int], kind: str = REAL) -> Array:
        """Return the columns side by side, each cell read by itself."""
        return np.stack([_numbers(self.frame.iloc[:, place], kind) for place in places], axis=1)

    def entries(self, place: int) -> Entries:
        """Return text by the words that occur, and everything else as it is."""
        column = self.frame.iloc[:, place]
        if self.columns[place].kind != "text":
            return np.asarray(column)
        import pyarrow

        try:
            return words_of(pyarrow.array(column, from_pandas=True))
        except (pyarrow.ArrowException, ValueError, TypeError):
            # Not all of it is text after all: whoever groups ids says so.
            return np.asarray(column)

    def missing(self, place: int) -> int | None:
        """Ask pandas."""
        gaps = self.frame.iloc[:, place].isna().to_numpy()
        return int(np.argmax(gaps)) if gaps.any() else None


def _numbers(column: Any, kind: str) -> Array:
    """Return a column (m,) as numbers."""
    dtype = column.dtype
    if not isinstance(dtype, np.dtype) and dtype.kind in "iufb":
        column = column.to_numpy(dtype=np.float64, na_value=np.nan)  # one of pandas' own types, with gaps
    return numbers_of(np.asarray(column) if isinstance(dtype, np.dtype) else np.asarray(column, dtype=object), kind)


def pandas_columns(frame: Any) -> list[Column]:
    """Return what is known of the columns of a frame, also of one of dask; of objects, whether they seem to be text."""
    found = [Column(str(name), _kind(dtype)) for name, dtype in zip(frame.columns, frame.dtypes, strict=True)]
    if not isinstance(getattr(frame, "shape", (None,))[0], int):
        return found  # dask's rows are not here
    for place, column in enumerate(found):
        if column.kind == "object" and _seems_text(np.asarray(frame.iloc[:_LOOKED_AT, place]).tolist()):
            found[place] = Column(column.name, "text")
    return found


def _seems_text(entries: list[Any]) -> bool:
    """Return whether there is text among the first entries and nothing else but gaps: pandas 2 has no type for text."""
    kinds = {type(entry).__name__ for entry in entries if not (isinstance(entry, float) and entry != entry)}
    return kinds - {"NoneType", "NAType", "NaTType"} == {"str"}


def _kind(dtype: Any) -> str:
    """Return in a word what a column of a dtype holds: numpy's, or one of pandas' own."""
    if isinstance(dtype, np.dtype):
        return _KINDS.get(dtype.kind, "something else")
    if hasattr(dtype, "categories"):
        return "text" if _kind(dtype.categories.dtype) == "text" else "object"
    arrow = str(getattr(dtype, "pyarrow_dtype", ""))
    if arrow.startswith("decimal"):
        return "number"
    if arrow.startswith("dictionary"):
        return "object"
    return "text" if dtype.type is str else _KINDS.get(dtype.kind.replace("O", ""), "something else")


class PandasTable(TableInMemory):
    """A frame."""

    @property
    def index(self) -> Any:
        """The labels of its rows."""
        return self._table.frame.index if isinstance(self._table, PandasRows) else None

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return its pieces; names of several levels can be left alone, but not asked for."""
        named = self._wanted.columns is not None or any(
            isinstance(given, str) and not is_each_record(given) for given in (units, labels)
        )
        if named and isinstance(self._table, PandasRows) and self._table.frame.columns.nlevels > 1:
            raise InvalidArgumentError(
                "columns of the DataFrame have names of several levels. Join them: "
                "frame.columns = ['_'.join(map(str, name)) for name in frame.columns]."
            )
        return super().bound(space, units, labels)


def pandas_source(X: object) -> TableInMemory | None:
    """Return a frame of pandas as a source, and None of everything else."""
    return PandasTable(PandasRows(X), "the DataFrame") if is_a(X, "pandas", "DataFrame") else None


__all__ = ["PandasRows", "pandas_columns", "pandas_source"]
