"""Rows of records that lie in memory for a moment: of an array, a data frame, a batch of a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from dpmanifold._cells import REAL
from dpmanifold._check import Array
from dpmanifold.data.entries import Column, Entries
from dpmanifold.data.readers import Reading
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.sources import Block


class Rows(ABC):
    """Some rows of records."""

    columns: Sequence[Column] = ()
    """All columns in their order; none where the rows are an array's."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many rows there are."""

    @abstractmethod
    def cut(self, start: int, stop: int) -> Rows:
        """Return some of the rows."""

    @abstractmethod
    def numbers(self, places: Sequence[int], kind: str = REAL) -> Array:
        """Return the columns at these places, (m, numbers in them), read cell by cell; of an array all there is.

        Whatever is not a number of that kind, "f" real or "c" complex, is NaN.
        """

    @abstractmethod
    def entries(self, place: int) -> Entries:
        """Return one column (m,) of ids or labels."""

    @abstractmethod
    def missing(self, place: int) -> int | None:
        """Return the first row that has nothing in a column of ids or labels, or None."""


class ArrayRows(Rows):
    """Rows of an array; ids and classes stand beside it."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def cut(self, start: int, stop: int) -> ArrayRows:
        """Return a view."""
        return ArrayRows(self.array[start:stop])

    def numbers(self, places: Sequence[int], kind: str = REAL) -> Array:
        """Return the array."""
        return self.array

    def entries(self, place: int) -> Array:
        """Refuse: there are no columns."""
        raise InvalidArgumentError("an array has no columns of ids. Give one id per record in an array.")

    def missing(self, place: int) -> int | None:
        """Return None: there are no columns."""
        return None


@dataclass(frozen=True)
class Places:
    """Where the columns are that make a block of rows.

    Parameters
    ----------
    reading : how their numbers become records
    numbers : of the columns that are numbers of a record, in their order; none where rows are an array's
    units, labels : of the columns of ids and classes, where they are columns
    kind : of the numbers, "f" real or "c" complex
    """

    reading: Reading
    numbers: tuple[int, ...] = ()
    units: int | None = None
    labels: int | None = None
    kind: str = REAL

    def narrowed(self) -> tuple[list[int], Places]:
        """Return the places of the columns that are needed, and where they are in a table of these alone.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> needed, narrow = Places(Reading(Euclidean(2)), (4, 2), units=0).narrowed()
        >>> needed, narrow.numbers, narrow.units
        ([0, 2, 4], (2, 1), 0)
        """
        apart = [place for place in (self.units, self.labels) if place is not None]
        needed = sorted({*self.numbers, *apart})
        where = {place: i for i, place in enumerate(needed)}
        units, labels = (None if place is None else where[place] for place in (self.units, self.labels))
        return needed, Places(self.reading, tuple(where[place] for place in self.numbers), units, labels, self.kind)

    def block(self, rows: Rows, look: bool = False, units: Array | None = None, labels: Array | None = None) -> Block:
        """Return rows as a block; `units` and `labels` are those that stand beside them."""
        return Block(
            self.reading.records(rows.numbers(self.numbers, self.kind), look),
            units if self.units is None else rows.entries(self.units),
            labels if self.labels is None else rows.entries(self.labels),
        )


__all__ = ["ArrayRows", "Places", "Rows"]
