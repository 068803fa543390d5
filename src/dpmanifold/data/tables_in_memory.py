"""Tables that lie in memory as records: data frames and Arrow tables, cut into pieces without being copied."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpmanifold.data.choosing import places_of
from dpmanifold.data.pieces import Beside, RowsPiece, asked_for, spans
from dpmanifold.data.reading import Reading
from dpmanifold.data.rows import Places, Rows
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import Block, Piece, Source


@dataclass(frozen=True)
class Wanted:
    """Which columns are the records, and how they are written: the words of :func:`load_array`, None if left out."""

    columns: str | Sequence[str] | None = None
    order: str | None = None
    coordinates: str | None = None

    def reading(self, space: Manifold, units: str | None = None, labels: str | None = None) -> Reading:
        """Return how rows become records of a space."""
        return Reading(space, self.columns, self.order, self.coordinates, units, labels)


AS_FOUND = Wanted()  # where nobody chooses: the columns' own names tell


class TableSource(Source):
    """Records in the rows of a table."""

    @abstractmethod
    def wanting(self, wanted: Wanted) -> TableSource:
        """Return the same table with a choice of columns."""


class TableInMemory(TableSource):
    """A table that lies in memory.

    Parameters
    ----------
    table : all of it
    where : what to call it in messages
    wanted : which columns are the records
    """

    def __init__(self, table: Rows, where: str, wanted: Wanted = AS_FOUND) -> None:
        self._table, self._where, self._wanted = table, where, wanted

    @property
    def rows(self) -> int:
        """How many records there are."""
        return len(self._table)

    def wanting(self, wanted: Wanted) -> TableInMemory:
        """Return the same table with a choice of columns."""
        return type(self)(self._table, self._where, wanted)

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return pieces of about 4 million numbers."""
        (unit, ids), (label, classes) = asked_for(units, self.rows, "units"), asked_for(labels, self.rows, "labels")
        places = places_of(self._wanted.reading(space, unit, label), self._table.columns, self._where)
        beside = Beside(ids, classes)
        return [
            MemoryPiece(self._where, places, beside.cut(*span), span, self._table.cut(*span))
            for span in spans(self.rows, space)
        ]


class MemoryPiece(RowsPiece):
    """Some rows of a table in memory."""

    def __init__(self, where: str, places: Places, beside: Beside, span: tuple[int, int], table: Rows) -> None:
        super().__init__(where, places, beside, span[0], span[1] - span[0])
        self._table = table

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of them."""
        return self.cut([self._table])


__all__ = ["AS_FOUND", "TableInMemory", "TableSource", "Wanted"]
