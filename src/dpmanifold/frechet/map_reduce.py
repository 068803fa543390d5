"""Work on points or records that lie in many places: a partial result for each, merged as they come. Not private.

A pass knows nothing of engines: it adds what one item gives to a total, and merges two totals. Merging adds integers,
so neither the places nor the order in which they are done leave a trace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray
from dpmanifold.engines import Engine
from dpmanifold.errors import SourceChangedError
from dpmanifold.linalg.cards.arrays import is_card_array, smallest
from dpmanifold.linalg.exact_sums import ExactSum, IntArray
from dpmanifold.manifolds.base import Manifold
from dpmanifold.progress import bar

# Numbers that a sum makes of a block at a time (2 MiB of doubles), and of how many points at first.
_PIECE, _FEW = 262_144, 64

# Numbers of points that are unpacked at a time (4 MiB of doubles).
_BLOCK = 524_288

P = TypeVar("P")
S = TypeVar("S")


class Pass(ABC, Generic[P]):
    """What is done in one pass; can be pickled, with functions in it by those who pickle functions."""

    @abstractmethod
    def extend(self, total: P | None, item: Any) -> P:
        """Return a total with what one more item gives, None before the first; it may be written to."""

    @abstractmethod
    def merge(self, a: P, b: P) -> P:
        """Return two totals together; either may be written to."""


@dataclass(frozen=True)
class Part:
    """Items that are worked on in one place, and how to open one.

    Attributes
    ----------
    items : pieces of a source, results that an engine holds, or arrays
    opened : what a pass is given for an item: a function of it alone, to be called where the work is done
    engine : who does the work; None does it here, one item after the other
    """

    items: Sequence[Any]
    opened: Callable[[Any], Any]
    engine: Engine | None = None

    def results(self, partial: Callable[[Any], P], what: str) -> Iterator[P]:
        """Yield a partial result of each item, in any order."""
        opened = self.opened
        if self.engine is None:
            return (partial(opened(item)) for item in self.items)
        return self.engine.map(lambda value: partial(opened(value)), self.items, what)

    def totals(self, extend: Callable[[P | None, Any], P], what: str) -> Iterator[P]:
        """Yield totals of the items, each of as many as come together where the work is done."""
        opened = self.opened
        if self.engine is None:
            found: P | None = None
            for item in self.items:
                found = extend(found, opened(item))
            return iter(() if found is None else (found,))
        return self.engine.reduce(lambda total, value: extend(total, opened(value)), self.items, what)

    def then(self, more: Callable[[Any], Any]) -> Part:
        """Return the same items with one more step in opening them."""
        opened = self.opened
        return Part(self.items, lambda value: more(opened(value)), self.engine)


def run(work: Pass[P], parts: Sequence[Part], what: str = "reading") -> P | None:
    """Return what a pass over all parts gives; None where there is nothing at all.

    Examples
    --------
    >>> class Total(Pass[int]):
    ...     def extend(self, total, item): return (total or 0) + item**2
    ...     def merge(self, a, b): return a + b
    >>> run(Total(), [Part([1, 2, 3], lambda item: item + 1)])
    29
    """
    total: P | None = None
    for part in parts:
        for found in part.totals(work.extend, what):
            total = found if total is None else work.merge(total, found)
    return total


def solving(parts: Sequence[Part]) -> AbstractContextManager[object]:
    """Show that a solver works on parts of an engine, without a total: the number of its passes is data."""
    return nullcontext() if all(part.engine is None for part in parts) else bar("solving")


# -------------------------------------------------------------------- over points that are trusted, packed by a frame


class OverPoints(Pass["tuple[S | None, int]"], Generic[S]):
    """A pass that makes something of each array of packed points, and counts them.

    Parameters
    ----------
    of : what packed points give; None where there are none
    together : two such results as one; either may be written to
    """

    def __init__(self, of: Callable[[Array], S | None], together: Callable[[S, S], S]) -> None:
        self._of, self._together = of, together

    def extend(self, total: tuple[S | None, int] | None, item: Iterable[Array]) -> tuple[S | None, int]:
        """Go through the arrays that an item opened as."""
        found: tuple[S | None, int] = (None, 0)
        for stored in item:
            found = self.merge(found, (self._of(stored), len(stored)))
        return found if total is None else self.merge(total, found)

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
