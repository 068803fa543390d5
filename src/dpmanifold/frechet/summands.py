"""What gradients are sums over: points in one array, or in many places. Sums are exact; nothing here is private."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet.passes import OverPoints, Part, Sample, merged, over, sample_of, sampling, unpacked
from dpmanifold.frechet.tolerances import reach
from dpmanifold.linalg.cards.arrays import is_card_array
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.linalg.log_sums import longest_triangle
from dpmanifold.linalg.native.library import card_in_use
from dpmanifold.manifolds.base import Manifold
from dpmanifold.progress import quietly

# The bound of sums of points that all are at the origin.
_SMALLEST_BOUND = 1e-200

# The first step of a solver is tried on about so many points, and not if they come to more than four times as many.
TRIAL = 256
MOST_TRIED = 4 * TRIAL


class Summands(ABC):
    """Points in groups, to be added up as logarithms at one base point for each group.

    Attributes
    ----------
    n : how many there are
    counts : (groups,), how many points each group has
    shares : whether sums are weighted by shares that add up to 1
    """

    n: int
    counts: Array
    shares: bool = False

    @abstractmethod
    def sums(self, x: Array, active: Array | None, at: object) -> FloatArray:
        """Return sums of logarithms at x, (groups, dim); with `active`, a boolean each, for these groups alone.

        `at` is what the space makes of x.
        """

    def some(self) -> Array:
        """Return about TRIAL points of the only group, packed, chosen by their own bits; any, if over MOST_TRIED."""
        raise NotImplementedError  # pragma: no cover - asked for one group alone


class Stored(Summands):
    """Points in one array, by groups or all in one, with weights that add up to 1 in each group or without.

    Parameters are those of :func:`~dpmanifold.frechet.solver.solve_groups`.
    """

    def __init__(
        self,
        space: Manifold,
        ball: Ball | None,
        points: Array,
        weights: FloatArray | None,
        group: Array | None,
        groups: int,
    ) -> None:
        self._space, self.n = space, len(points)
        packed = space.pack(points) if points.shape[1:] == space.shape else points
        self._there = is_card_array(packed)
        self._stored = packed if self._there else np.ascontiguousarray(packed)
        self._group = None if group is None else np.ascontiguousarray(group, dtype=np.int64)
        self.counts = np.full(1, self.n) if self._group is None else np.bincount(self._group, minlength=groups)
        equal = 1 / np.maximum(self.counts, 1)
        if weights is not None and np.array_equal(weights, equal[np.zeros(self.n, int) if group is None else group]):
            weights = None
        self._weights, self.shares = weights, weights is not None
        self._spread: float | None = None  # the farthest point's distance from the origin, where no ball bounds it
        self._reach = None if ball is None else reach(ball)

    def sums(self, x: Array, active: Array | None, at: object) -> FloatArray:
        """Add them up in one pass."""
        rows = None
        if active is not None and self._group is not None and not active.all():
            rows = np.flatnonzero(active[self._group])
        space, bound = self._space, self._bound(x)
        if self._weights is not None:
            return space.log_sums(x, self._stored, bound, group=self._group, rows=rows, weights=self._weights)
        return space.from_log_words(x, space.log_words(at, self._stored, bound, group=self._group, rows=rows))

    def _bound(self, x: Array) -> float:
        """Return what no logarithm of a point at x exceeds: public with a ball."""
        space = self._space
        if self._reach is not None:
            return self._reach
        if self._spread is None and self._there and card_in_use(lies_there=True):
            self._spread = longest_triangle(self._stored)
        if self._spread is None:
            self._spread = max(float(space.dist(space.origin, part).max()) for part in unpacked(space, self._stored))
        # Nothing is private here, and a maximum does not depend on the order either; 1 % for rounding.
        return max(1.01 * (self._spread + float(space.dist(space.origin, x).max())), _SMALLEST_BOUND)

    def some(self) -> Array:
        """Choose them."""
        sample = sample_of(MOST_TRIED + 1, self._stored)
        return self._stored[:0] if sample is None else sample.below(TRIAL / self.n)


class Spread(Summands):
    """The points of one group, in parts that open as packed points of a ball's frame, in arrays of any size.

    Parameters
    ----------
    ball : in whose frame the points are
    parts : where they are
    n : how many there are
    sample : some of them, by a pass of :func:`sampling`, where one was made already
    """

    def __init__(self, ball: Ball, parts: Sequence[Part], n: int, sample: Sample | None = None) -> None:
        self._ball, self._parts, self.n, self._sample = ball, parts, n, sample
        self._bound = reach(ball)
        self.counts = np.full(1, n)

    def sums(self, x: Array, active: Array | None, at: object) -> FloatArray:
        """Broadcast the base point and merge the integers that come back."""
        frame = self._ball.frame
        with quietly():  # how many passes there are is data
            words = over(OverPoints(partial(_log_words, frame, at, self._bound), merged), self._parts, self.n)
        return frame.from_log_words(x, ExactSum(frame.dim, self._bound) if words is None else words)

    def some(self) -> Array:
        """Choose within every part, and then among those."""
        if self._sample is None:
            with quietly():
                self._sample = over(sampling(MOST_TRIED + 1), self._parts, self.n)
        assert self._sample is not None  # there are points
        return self._sample.below(TRIAL / self.n)


def _log_words(space: Manifold, at: object, bound: float, stored: Array) -> ExactSum | None:
    """Return exact sums of logarithms at one base point, (1, *shape), or what the space made of it."""
    return space.log_words(at, stored, bound) if len(stored) else None
