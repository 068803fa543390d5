"""One trusted point per unit: what every statistic of private data starts from. Not private."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet.solver import Solved, blocks, default_tol, solve_groups
from dpmanifold.linalg.exact_sums import ExactSum

# Numbers that a sum makes of a block at a time (2 MiB of doubles), and of how many points at first.
_PIECE, _FEW = 262_144, 64

Blocks = Callable[[], Iterator[Array]]
"""Makes every unit's point once, in blocks, as often as it is called."""


class UnitPoints:
    """One point per unit in a ball's frame: validated, clipped, averaged within units. Data: not private.

    Made once, where records come in; nothing here looks at a point again, or raises for what a point is.

    Parameters
    ----------
    ball : the ball in whose frame the points are
    unit : "record" or "unit"
    n : how many there are
    source : makes their blocks, each time anew
    mean : their mean in the frame, where it is known already
    stored : the points themselves, packed by the frame, where they are kept
    first : the sum of their coordinates at the frame's origin, (dim,), where it is known already

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> points = UnitPoints.of(np.array([[1.0], [3.0]]), Ball(Euclidean(1), [0.0], 5.0))
    >>> len(points), points.mean(), points.each(lambda block: block[:, 0] ** 2)
    (2, array([2.]), array([1., 9.]))
    """

    def __init__(
        self,
        ball: Ball,
        unit: str,
        n: int,
        source: Blocks,
        mean: Array | None = None,
        stored: Array | None = None,
        first: FloatArray | None = None,
    ) -> None:
        self.ball, self.unit = ball, unit
        self._n, self._source, self._mean, self._stored, self._first = n, source, mean, stored, first

    @staticmethod
    def of(points: Array, ball: Ball, unit: str = "record") -> UnitPoints:
        """Take points (n, *frame.shape) that are in the ball's frame and were clipped there."""
        parts = blocks(len(points), ball.frame)
        return UnitPoints(ball, unit, len(points), lambda: (points[part] for part in parts))

    @staticmethod
    def packed(stored: Array, ball: Ball, unit: str, first: FloatArray | None = None) -> UnitPoints:
        """Take such points as `ball.frame.pack` keeps them."""
        parts, unpack = blocks(len(stored), ball.frame), ball.frame.unpack
        return UnitPoints(
            ball, unit, len(stored), lambda: (unpack(stored[part]) for part in parts), stored=stored, first=first
        )

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"UnitPoints({self._n} of {self.ball!r})"

    def blocks(self) -> Iterator[Array]:
        """Yield every unit's point once, in blocks (b, *frame.shape) of bounded size."""
        return self._source()

    def array(self) -> Array:
        """Return all points at once, (n, *frame.shape)."""
        return np.concatenate([np.empty((0, *self.ball.frame.shape), self.ball.frame.dtype), *self.blocks()])

    def each(self, f: Callable[[Array], FloatArray]) -> FloatArray:
        """Return one number per unit, (n,): what `f` makes of a block, (b,)."""
        return np.concatenate([np.empty(0), *(f(block) for block in self.blocks())])

    def mean_of(self, f: Callable[[Array], FloatArray], bound: float) -> FloatArray:
        """Return the mean over units of what `f` makes of a block, (b, m), shape (m,).

        Summed as integers, so that neither the order of the units nor the blocks show in a bit of it.

        Parameters
        ----------
        f : a map of each point by itself
        bound : a public number that no entry of `f` exceeds in size
        """
        sums: ExactSum | None = None
        for block in self.blocks():
            start = 0
            while start < len(block):
                # How many numbers `f` makes of a point is seen on the first few; pieces are cut accordingly.
                step = _FEW if sums is None else max(1, _PIECE // sums.size)
                values = f(block[start : start + step])
                sums = ExactSum(values.shape[1], bound) if sums is None else sums
                sums.add(values)
                start += step
        return np.empty(0) if sums is None else sums.total()[0] / self._n

    def mean(self) -> Array:
        """Return the Fréchet mean in the frame, to the public tolerance `default_tol`; solved once and remembered."""
        if self._mean is None:
            self._mean = self.solved(0.0 if self.ball.space.is_flat else default_tol(self.ball, self._n)).points[0]
        return self._mean

    def solved(self, tol: float) -> Solved:
        """Return the mean, as a batch of one, to a tolerance that the ball allows, and how it was found."""
        frame = self.ball.frame
        if frame.is_flat:
            mean = self.mean_of(lambda block: block, self.ball.radius) if self._mean is None else self._mean
            return Solved(mean[None], np.zeros(1), 0)
        points = self.array() if self._stored is None else self._stored
        first = None if self._first is None else self._first[None]
        return solve_groups(frame, self.ball.in_frame, points, None, None, 1, tol, 200, first=first)

    def in_ball(self, inner: Ball) -> UnitPoints:
        """Return the points in the frame of another ball of the same space, clipped to it."""
        if inner is self.ball:
            return self
        moved = [inner.take_over(self.ball, block) for block in self.blocks()]
        return UnitPoints.of(np.concatenate(moved), inner, self.unit)

    def where(self, chosen: Array, total: FloatArray | None = None) -> UnitPoints:
        """Return the points of some units, given a boolean for each; and on a flat space their sum, where known."""
        if self._stored is not None:
            return UnitPoints.packed(self._stored[chosen], self.ball, self.unit)

        def some() -> Iterator[Array]:
            start = 0
            for block in self.blocks():
                yield block[chosen[start : start + len(block)]]
                start += len(block)

        n = int(np.count_nonzero(chosen))
        return UnitPoints(self.ball, self.unit, n, some, None if total is None else total / n)

    def joined(self, other: UnitPoints) -> UnitPoints:
        """Return the units of two groups in one ball together."""

        def both() -> Iterator[Array]:
            yield from self.blocks()
            yield from other.blocks()

        return UnitPoints(self.ball, self.unit, len(self) + len(other), both)
