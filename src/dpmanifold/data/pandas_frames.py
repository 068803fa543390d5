"""Data frames of pandas as records. pandas is never imported: who has a frame has imported it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifold._check import Array
from dpmanifold.data.rows import Column, Rows
from dpmanifold.data.tables_in_memory import TableInMemory
from dpmanifold.sources import is_a

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

    def numbers(self, places: Sequence[int]) -> Array:
        """Return the columns side by side; float64, or complex128 where one is complex."""
        kind = np.complex128 if any(self.columns[place].kind == "complex" for place in places) else np.float64
        values = np.empty((len(self), len(places)), dtype=kind)
        for i, place in enumerate(places):
            column = self.frame.iloc[:, place]
            plain = isinstance(column.dtype, np.dtype)
            values[:, i] = column.to_numpy() if plain else column.to_numpy(dtype=np.float64, na_value=np.nan)
        return values

    def entries(self, place: int) -> Array:
        """Return the column's values; of a categorical one, the categories of its rows."""
        return np.asarray(self.frame.iloc[:, place])

    def missing(self, place: int) -> int | None:
        """Ask pandas."""
        gaps = self.frame.iloc[:, place].isna().to_numpy()
        return int(np.argmax(gaps)) if gaps.any() else None


def pandas_columns(frame: Any) -> list[Column]:
    """Return what is known of the columns of a frame, also of one of dask."""
    return [Column(str(name), _kind(dtype)) for name, dtype in zip(frame.columns, frame.dtypes, strict=True)]


def _kind(dtype: Any) -> str:
    """Return in a word what a column of a dtype holds: numpy's, or one of pandas' own."""
    if isinstance(dtype, np.dtype):
        return _KINDS.get(dtype.kind, "something else")
    if hasattr(dtype, "categories"):
        return "object"
    arrow = str(getattr(dtype, "pyarrow_dtype", ""))
    if arrow.startswith("decimal"):
        return "number"
    if arrow.startswith("dictionary"):
        return "object"
    return "text" if dtype.type is str else _KINDS.get(dtype.kind.replace("O", ""), "something else")


def pandas_source(X: object) -> TableInMemory | None:
    """Return a frame of pandas as a source, and None of everything else."""
    return TableInMemory(PandasRows(X), "the DataFrame") if is_a(X, "pandas", "DataFrame") else None


__all__ = ["PandasRows", "pandas_columns", "pandas_source"]
