"""How points of several spaces lie in one array: what a product of spaces splits and joins.

Neighbouring factors that are the same space form a *run* and are worked on together, stacked along one axis. Where all
factors are the same space, points are stacked, (..., m, *shape); elsewhere their entries lie one after the other in a
row of real numbers, complex ones as pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.layouts import Layout, plain_layouts

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


def read_parts(runs: Sequence[Run], raw: Array) -> list[Array]:
    """Return records as stacked points of the runs, landmarks as pre-shapes; raw records of the right shape.

    What is not finite stays so.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean, KendallShapes
    >>> from dpmanifold.manifolds.parts import runs_of
    >>> raw = np.arange(14.0).reshape(2, 7) ** 2
    >>> [part.shape for part in read_parts(runs_of([Euclidean(1), KendallShapes(3)]), raw)]
    [(2, 1, 1), (2, 1, 3)]
    """
    if len(runs) == 1:
        return [_read(runs[0], raw)]
    found = []
    for run in runs:
        # A row holds complex numbers as pairs, which are real landmarks.
        shape = run.space.record_shapes.get("f", run.space.shape)
        paired = run.space.dtype.kind == "c" and "f" in run.space.record_shapes
        dtype = np.dtype(np.float64) if paired else run.space.dtype
        found.append(_read(run, from_row(raw[..., run.entries], (run.count, *shape), dtype)))
    return found


def _read(run: Run, raw: Array) -> Array:
    array, reason = run.space._entries_reason(raw)
    assert array is not None, reason  # the shape was looked at before
    return array


def layouts_of(runs: Sequence[Run]) -> list[Layout]:
    """Return the forms: of equal factors each of theirs, stacked or in one row; of others one row of entries.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> from dpmanifold.manifolds.parts import runs_of
    >>> [layout.shape for layout in layouts_of(runs_of([SPD(2)] * 5))]
    [(5, 2, 2), (20,), (5, 4), (5, 3), (15,)]
    """
    if len(runs) > 1:
        return plain_layouts({"f": (runs[-1].entries.stop,)})
    count = runs[0].count
    found: dict[tuple[str, tuple[int, ...]], Layout] = {}
    for one in runs[0].space.layouts():
        for shape in ((count, *one.shape), (count * math.prod(one.shape),)):
            words = f"(n, {', '.join(map(str, shape))})" if len(shape) > 1 else f"{shape[0]} columns"
            if one.orders:
                words += f": {one.words} of each factor"
            layout = replace(one, shape=shape, words=words, becomes=(count, *one.becomes), read=_each(one, count))
            found.setdefault((layout.kind, shape), layout)
    return list(found.values())


def _each(layout: Layout, count: int) -> Callable[[Array, str | None], Array]:
    """Return a reader that reads every factor by itself."""

    def read(values: Array, order: str | None) -> Array:
        n = len(values)
        single = values.reshape(n * count, *layout.shape)
        records = single.reshape(n * count, *layout.becomes) if layout.read is None else layout.read(single, order)
        return np.asarray(records.reshape(n, count, *layout.becomes))

    return read
