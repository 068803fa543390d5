"""A source of which one column is no part of the records, whether somebody asks for it or not."""

from __future__ import annotations

from collections.abc import Sequence

from dpmanifold.manifolds import Manifold
from dpmanifold.sources.base import Piece, Source


class SetApart(Source):
    """Records beside which a column of classes or of numbers stands.

    A table whose columns nobody has chosen has all of them in its records, but those that are asked for by name as ids
    or classes. Who asks for neither would get other records than who does.

    Parameters
    ----------
    source : where they come from
    name : of the column

    Examples
    --------
    >>> class Table(Source):
    ...     rows = 1
    ...     def bound(self, space, units=None, labels=None):
    ...         return [labels]
    >>> SetApart(Table(), "age").bound(None), SetApart(Table(), "age").bound(None, labels="group")
    (['age'], ['group'])
    """

    def __init__(self, source: Source, name: str) -> None:
        self._source, self._name, self.index = source, name, source.index

    @property
    def rows(self) -> int | None:
        """As many as the other has."""
        return self._source.rows

    def numbers(self, name: str) -> Source | None:
        """Return the other's."""
        return self._source.numbers(name)

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return the other's pieces; blocks have the column as labels where no others are asked for."""
        return self._source.bound(space, units, self._name if labels is None else labels)


__all__ = ["SetApart"]
