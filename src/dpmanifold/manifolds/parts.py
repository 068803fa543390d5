"""How points of several spaces lie in one array: what a product of spaces splits and joins.

Neighbouring factors that are the same space form a *run* and are worked on together, stacked along one axis. Where all
factors are the same space, points are stacked, (..., m, *shape); elsewhere their entries lie one after the other in a
row of real numbers, complex ones as pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.base import Manifold

# A list of more pieces than this is written out: a sum of many is neither read nor parsed with ease.
_MOST_PIECES = 20


@dataclass(frozen=True)
class Run:
    """Some neighbouring factors that are the same space.

    Attributes
    ----------
    space : the space
    count : how many factors
    first : the number of the first
    entries, coordinates : where they lie in a row of entries, and in coordinates
    """

    space: Manifold
    count: int
    first: int
    entries: slice
    coordinates: slice

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of their points, stacked."""
        return (self.count, *self.space.shape)

    def one(self, array: Array, j: int) -> Array:
        """Return what belongs to factor `j` of the run, from stacked points (..., count, *shape)."""
        return np.asarray(np.take(array, j, axis=array.ndim - len(self.space.shape) - 1))


def runs_of(factors: Sequence[Manifold]) -> list[Run]:
    """Group neighbouring factors.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD, Sphere
    >>> [(run.space, run.count, run.coordinates) for run in runs_of([SPD(2), SPD(2), Sphere(2)])]
    [(SPD(2), 2, slice(0, 6, None)), (Sphere(2), 1, slice(6, 8, None))]
    """
    found: list[Run] = []
    first = entry = coordinate = 0
    for space, group in itertools.groupby(factors):
        count = len(list(group))
        wide = count * math.prod(space.shape) * (2 if space.dtype.kind == "c" else 1)
        long = count * space.dim
        found.append(Run(space, count, first, slice(entry, entry + wide), slice(coordinate, coordinate + long)))
        first, entry, coordinate = first + count, entry + wide, coordinate + long
    return found


def as_row(array: Array, axes: int) -> FloatArray:
    """Return the last `axes` axes of an array as one row of real numbers, complex ones as pairs.

    Examples
    --------
    >>> as_row(np.array([[1.0 + 2.0j, 3.0]]), 1)
    array([[1., 2., 3., 0.]])
    """
    batch = array.shape[: array.ndim - axes]
    flat = np.ascontiguousarray(array).reshape(*batch, math.prod(array.shape[len(batch) :]))
    return np.asarray(flat.view(np.float64), dtype=np.float64)


def from_row(row: FloatArray, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """Undo :func:`as_row`: the last axis becomes axes of this shape and type.

    Examples
    --------
    >>> from_row(np.array([[1.0, 2.0, 3.0, 0.0]]), (2,), np.dtype(complex))
    array([[1.+2.j, 3.+0.j]])
    """
    flat = np.ascontiguousarray(row)
    if dtype.kind == "c":
        flat = flat.view(np.complex128)
    return np.asarray(flat.reshape(*row.shape[:-1], *shape))


def runs_text(words: Sequence[str]) -> str:
    """Write a list, neighbours that are alike as a multiple: what `Product` and its texts show.

    Examples
    --------
    >>> runs_text(["SPD(3)", "SPD(3)", "Sphere(2)"])
    '[SPD(3)] * 2 + [Sphere(2)]'
    >>> runs_text(["1.0", "2.0"])
    '[1.0, 2.0]'
    """
    pieces: list[str] = []
    single: list[str] = []
    for word, group in itertools.groupby(words):
        count = len(list(group))
        if count == 1:
            single.append(word)
            continue
        if single:
            pieces.append(f"[{', '.join(single)}]")
            single = []
        pieces.append(f"[{word}] * {count}")
    if single:
        pieces.append(f"[{', '.join(single)}]")
    return " + ".join(pieces) if len(pieces) <= _MOST_PIECES else f"[{', '.join(words)}]"
