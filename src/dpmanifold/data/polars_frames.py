"""Data frames of polars as records, also lazy ones. polars is never imported: who has a frame has imported it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpmanifold._cells import REAL, from_polars, numbers_of, objects
from dpmanifold._check import Array
from dpmanifold.data.arrow_tables import words_of
from dpmanifold.data.choosing import places_of
from dpmanifold.data.entries import Entries, numbers_in_text
from dpmanifold.data.pieces import Beside, asked_for, rows_of_block
from dpmanifold.data.rows import Column, Places, Rows
from dpmanifold.data.steady import SteadyPiece
from dpmanifold.data.tables_in_memory import AS_FOUND, TableInMemory, TableSource, Wanted
from dpmanifold.errors import InvalidDataError, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import Block, Piece, is_a

_LAZY = "the LazyFrame"


class PolarsRows(Rows):
    """Rows of a frame.

    Parameters
    ----------
    frame : polars.DataFrame
    """

    def __init__(self, frame: Any, columns: Sequence[Column] | None = None) -> None:
        self.frame = frame
        self.columns = columns or polars_columns(frame.schema)

    def __len__(self) -> int:
        return int(self.frame.height)

    def cut(self, start: int, stop: int) -> PolarsRows:
        """Return a view."""
        return PolarsRows(self.frame.slice(start, stop - start), self.columns)

    def numbers(self, places: Sequence[int], kind: str = REAL) -> Array:
        """Return the columns side by side, each cell read by itself."""
        return np.concatenate([self._numbers(place, kind) for place in places], axis=1)

    def _numbers(self, place: int, kind: str) -> Array:
        """Return a column (m, width)."""
        column, polars = self.frame.to_series(place), sys.modules["polars"]
        if self.columns[place].width > 1:
            width = self.columns[place].width
            return np.asarray(column.cast(polars.Array(polars.Float64, width)).to_numpy()).reshape(-1, width)
        if self.columns[place].kind == "text":
            return numbers_in_text(column.cast(polars.String).to_arrow(), kind)[:, None]
        if column.dtype.is_float() or column.dtype.is_integer() or column.dtype == polars.Boolean:
            return numbers_of(column.cast(polars.Float64).to_numpy(), kind)[:, None]
        return numbers_of(objects(column.to_list()), kind)[:, None]

    def entries(self, place: int) -> Entries:
        """Return whole numbers as they are, and text by the words that occur."""
        column = self.frame.to_series(place)
        if self.columns[place].kind != "text":
            return from_polars(column, column.name)
        return words_of(column.cast(sys.modules["polars"].String).to_arrow())

    def missing(self, place: int) -> int | None:
        """Count gaps, and look for the first if there are any."""
        column = self.frame.to_series(place)
        return int(np.argmax(column.is_null().to_numpy())) if column.null_count() else None


def polars_columns(schema: Any) -> list[Column]:
    """Return what is known of the columns of a schema."""
    return [_column(name, kind) for name, kind in schema.items()]


def _column(name: str, kind: Any) -> Column:
    word = kind.base_type().__name__
    if word == "Array" and len(kind.shape) == 1 and kind.inner.is_numeric():
        return Column(name, "number", kind.shape[0])
    if kind.is_numeric():
        return Column(name, "whole" if kind.is_integer() else "number")
    kinds = {"Boolean": "truth", "Object": "object", "Null": "object", "Binary": "object"} | dict.fromkeys(
        ("String", "Categorical", "Enum"), "text"
    )
    return Column(name, kinds.get(word, "something else"))


class LazyTable(TableSource):
    """A query of polars: computed again for each pass over the records, a batch at a time.

    Parameters
    ----------
    frame : polars.LazyFrame
    wanted : which columns are the records
    """

    def __init__(self, frame: Any, wanted: Wanted = AS_FOUND) -> None:
        self._frame, self._wanted = frame, wanted

    @property
    def rows(self) -> None:
        """Not known."""
        return None

    def wanting(self, wanted: Wanted) -> LazyTable:
        """Return the same query with a choice of columns."""
        return LazyTable(self._frame, wanted)

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return the query as one piece: polars itself works on it with several threads."""
        (unit, ids), (label, classes) = asked_for(units, None, "units"), asked_for(labels, None, "labels")
        try:
            schema = self._frame.collect_schema()
        except Exception:
            # Whatever a query raises; its message may quote data.
            raise InvalidDataError(
                "{lazy} cannot be computed. Try frame.collect_schema().", lazy=Public(_LAZY)
            ) from None
        columns = polars_columns(schema)
        needed, places = places_of(self._wanted.reading(space, unit, label), columns, _LAZY).narrowed()
        # What is not asked for is not computed.
        frame = self._frame.select([columns[place].name for place in needed])
        return [LazyPiece(frame, places, Beside(ids, classes))]


class LazyPiece(SteadyPiece):
    """All of a query."""

    def __init__(self, frame: Any, places: Places, beside: Beside) -> None:
        super().__init__(_LAZY, places, beside)
        self._frame = frame

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of its rows."""
        return self.cut(self._parts())

    def _parts(self) -> Iterator[Rows]:
        """Yield the batches in their order; a polars that cannot do that computes all of it at once."""
        try:
            if not hasattr(self._frame, "collect_batches"):
                yield PolarsRows(self._frame.collect())
                return
            size = rows_of_block(self.places.reading.space)
            for batch in self._frame.collect_batches(chunk_size=size, maintain_order=True):
                yield PolarsRows(batch)
        except sys.modules["polars"].exceptions.PolarsError:
            raise InvalidDataError("{lazy} cannot be computed. Try frame.collect().", lazy=Public(_LAZY)) from None


def polars_source(X: object) -> TableInMemory | LazyTable | None:
    """Return a frame of polars as a source, and None of everything else."""
    if is_a(X, "polars", "LazyFrame"):
        return LazyTable(X)
    return TableInMemory(PolarsRows(X), "the DataFrame") if is_a(X, "polars", "DataFrame") else None


__all__ = ["PolarsRows", "polars_source"]
