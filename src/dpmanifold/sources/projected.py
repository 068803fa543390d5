"""A source whose records are moved onto their space as they are read: unit length, symmetric. Each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dpmanifold.manifolds import Manifold
from dpmanifold.sources.base import Block, Piece, Source


class ProjectedPiece(Piece):
    """A piece of another source, read through `space.project`."""

    def __init__(self, piece: Piece, space: Manifold) -> None:
        self._piece, self._space = piece, space
        self.name, self.rows, self.about, self.first = piece.name, piece.rows, piece.about, piece.first

    def blocks(self) -> Iterator[Block]:
        """Yield the other's blocks, with records moved onto the space."""
        for block in self._piece.blocks():
            with np.errstate(all="ignore"):
                yield block._replace(records=np.asarray(self._space.project(block.records)))


class Projected(Source):
    """Nearly valid records made valid, in blocks.

    Parameters
    ----------
    source : where they come from

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Sphere
    >>> class Once(Piece):
    ...     name = "here"
    ...     def blocks(self):
    ...         yield Block(np.array([[3.0, 0.0, 4.0]]))
    >>> class One(Source):
    ...     rows = 1
    ...     def bound(self, space, units=None, labels=None):
    ...         return [Once()]
    >>> next(Projected(One()).bound(Sphere(2))[0].blocks()).records
    array([[0.6, 0. , 0.8]])
    """

    def __init__(self, source: Source) -> None:
        self._source, self.index = source, source.index

    @property
    def rows(self) -> int | None:
        """As many as the other has."""
        return self._source.rows

    def numbers(self, name: str) -> Source | None:
        """Return the other's, as they are."""
        return self._source.numbers(name)

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return the other's pieces, read through the space."""
        return [ProjectedPiece(piece, space) for piece in self._source.bound(space, units, labels)]


__all__ = ["Projected", "ProjectedPiece"]
