"""Passes over points that are trusted, wherever they lie: each finds something that adds up, and counts the points.

Points come packed by their frame, in arrays of any size. Not private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import SourceChangedError
from dpmanifold.frechet.passes import Part, Pass, run
from dpmanifold.linalg.cards.arrays import is_card_array
from dpmanifold.linalg.cards.hashes import smallest
from dpmanifold.linalg.exact_sums import ExactSum, IntArray
from dpmanifold.manifolds.base import Manifold

# Numbers that a sum makes of a block at a time (2 MiB of doubles), and of how many points at first.
_PIECE, _FEW = 262_144, 64

# Numbers of points that are unpacked at a time (4 MiB of doubles).
_BLOCK = 524_288

S = TypeVar("S")


class OverPoints(Pass["tuple[S | None, int]"], Generic[S]):
    """A pass that makes something of each array of packed points, and counts them.

    Parameters
    ----------
    of : what packed points give; None where there are none
    together : two such results as one; either may be written to
    """

    def __init__(self, of: Callable[[Array], S | None], together: Callable[[S, S], S]) -> None:
        self._of, self._together = of, together

    def partial(self, item: Iterable[Array]) -> tuple[S | None, int]:
        """Go through the arrays that an item opened as."""
        total: tuple[S | None, int] = (None, 0)
        for stored in item:
            total = self.merge(total, (self._of(stored), len(stored)))
        return total

    def merge(self, a: tuple[S | None, int], b: tuple[S | None, int]) -> tuple[S | None, int]:
        """Add counts and results."""
        one, two = a[0], b[0]
        found = (two if one is None else one) if one is None or two is None else self._together(one, two)
        return found, a[1] + b[1]


def over(work: OverPoints[S], parts: Sequence[Part], n: int, what: str = "computing") -> S | None:
    """Return what a pass over n points finds, or say that they are no longer what they were."""
    found, seen = run(work, parts, what) or (None, 0)
    if seen != n:
        raise SourceChangedError(
            "the records changed while they were read: not every pass found the same number of them. Leave files alone "
            "until the call returns."
        )
    return found


def merged(a: ExactSum, b: ExactSum) -> ExactSum:
    """Return two sums as one: the first, written to."""
    a.merge(b)
    return a


def sum_of(space: Manifold, f: Callable[[Array], FloatArray], bound: float, stored: Array) -> ExactSum | None:
    """Return the exact sum of what a function makes of points (b, *shape): vectors (b, m) with entries within a bound.

    Added up in pieces that keep intermediate results small.
    """
    sums: ExactSum | None = None
    start = 0
    while start < len(stored):
        # How many numbers `f` makes of a point is seen on the first few; pieces are cut accordingly.
        step = _FEW if sums is None else max(1, _PIECE // max(sums.size, stored[0].size))
        values = f(space.unpack(stored[start : start + step]))
        sums = ExactSum(values.shape[1], bound) if sums is None else sums
        sums.add(values)
        start += step
    return sums


def within(space: Manifold, center: Array, distances: FloatArray, stored: Array) -> IntArray:
    """Return how many points lie within each of some distances of a point."""
    order = np.argsort(distances, kind="stable")
    counts = np.zeros(len(order) + 1, dtype=np.int64)
    for some in unpacked(space, stored):
        away = space.dist(center, some)
        counts += np.bincount(np.searchsorted(distances[order], away, side="left"), minlength=len(counts))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.cumsum(counts[:-1])
    return found


class Sample(NamedTuple):
    """Some of many points, packed, and the hashes they were chosen by: the smallest ones."""

    points: Array
    hashes: npt.NDArray[np.uint64]

    def below(self, share: float) -> Array:
        """Return about a share of the points it was taken from."""
        return self.points[self.hashes < np.uint64(min(share, 1.0) * 2.0**63) * np.uint64(2)]


def sample_of(most: int, stored: Array) -> Sample | None:
    """Return the points with the smallest hashes, so many of them: which ones depends on the points' own bits alone.

    They are chosen on a card, where they lie on one; None stands for no points.
    """
    if not len(stored):
        return None
    return _smallest(most, *(smallest(stored, most) if is_card_array(stored) else (stored, _hashes(stored))))


def joined_samples(most: int, a: Sample, b: Sample) -> Sample:
    """Choose among both."""
    return _smallest(most, *(np.concatenate(pair) for pair in zip(a, b, strict=True)))


def sampling(most: int) -> OverPoints[Sample]:
    """Return the pass that chooses so many points."""
    return OverPoints(partial(sample_of, most), partial(joined_samples, most))


def _smallest(most: int, points: Array, hashes: npt.NDArray[np.uint64]) -> Sample:
    if len(hashes) <= most:
        return Sample(np.array(points), hashes)  # a copy: what it was taken from may be large
    places = np.argpartition(hashes, most - 1)[:most]
    return Sample(points[places], hashes[places])


def _hashes(stored: Array) -> npt.NDArray[np.uint64]:
    """Return a hash of two of each point's numbers."""
    numbers = np.ascontiguousarray(stored).reshape(len(stored), -1).view(np.float64)
    with np.errstate(over="ignore"):
        mixed = numbers[:, 0].copy().view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed += numbers[:, numbers.shape[1] // 2].copy().view(np.uint64)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
    return np.asarray(mixed)


def unpacked(space: Manifold, stored: Array) -> Iterable[Array]:
    """Yield packed points as points, in blocks of bounded size."""
    step = max(1, _BLOCK // max(space.dim, int(np.prod(space.shape))))
    return (space.unpack(stored[start : start + step]) for start in range(0, len(stored), step))
