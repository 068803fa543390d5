"""How far noise on a vector carries the point that is made of it (theory: estimands)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from dpmanifold._check import FloatArray
from dpmanifold.ball import Ball
from dpmanifold.manifolds.vectors import log_sinhc
from dpmanifold.mechanisms.base import Forecast, LengthLaw
from dpmanifold.noise import RadialLaw

# Cells of the noise's length, finer towards its tail, and of its direction. The last ends at the largest error.
_LENGTHS = np.concatenate([np.linspace(0, 0.98, 197), 1 - np.geomspace(0.0195, 1e-12, 100), [1.0]])
_SHARES = np.linspace(0, 1, 201)
# What quantiles may be wrong by, as a share of them or of 1; and public numbers that a bound is made with.
SLACK = 1e-9


def carried_over(ball: Ball, radius: LengthLaw) -> Forecast:
    """Return how far noise in the tangent space of the centre carries a point of the ball, |Z| having this law.

    Flat spaces: exactly |Z|. No curvature below 0: at most |Z|, and at most the space's diameter. Else, between a and
    a + z the exponential stretches by at most sinh(b s)/(b s) at distance s <= r + |z| from the origin, -b^2 the
    smallest curvature; and the error is never above 2r + |z|.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.noise import RiemannianGaussian
    >>> law = RiemannianGaussian(Euclidean(1), [0.0], 1.0)
    >>> round(carried_over(Ball(Euclidean(1), [0.0], 1.0), law.radius).mean, 6)
    0.797885
    """
    space, r = ball.space, ball.effective_radius
    if space.is_flat:
        return Forecast(radius, exact=True)
    lowest = space.curvature[0]
    if lowest >= 0:
        return Forecast(radius, exact=False, stretch=lambda t: np.minimum(t, space.diameter))
    b = math.sqrt(-lowest)

    def stretch(t: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.minimum(2 * r + t, t * np.exp(np.minimum(log_sinhc(b * (r + t)), 700.0)))

    return Forecast(radius, exact=False, stretch=stretch)


class CellForecast(Forecast):
    """An error that depends on the length of the noise and on one share of its squared length, independent of it.

    Both are cut into cells; each cell counts with the largest error in it. The law on the cells is larger than the
    true one in mean and in every quantile.

    Parameters
    ----------
    radius : the law of the length
    beta : parameters of the share's law
    bound : the largest error for a length of at most t and a share between low and high, (t, low, high); it grows in t
    largest : no error is above it
    """

    def __init__(
        self,
        radius: RadialLaw,
        beta: tuple[float, float],
        bound: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
        largest: float,
    ) -> None:
        super().__init__(radius, exact=False)
        self._beta, self._bound, self._largest = beta, bound, largest

    @cached_property
    def _cells(self) -> tuple[FloatArray, FloatArray]:
        """Return the cells' errors, ascending, and their probabilities."""
        t = self._radius.quantile(_LENGTHS[1:-1]) * (1 + SLACK)
        ends = special.betaincinv(*self._beta, _SHARES)
        low, high = np.maximum(ends[:-1] - SLACK, 0.0), np.minimum(ends[1:] + SLACK, 1.0)
        errors = np.full((len(t) + 1, len(low)), self._largest)
        errors[:-1] = np.minimum(self._bound(t[:, None], low, high), self._largest)
        weights = np.diff(_LENGTHS)[:, None] * np.diff(_SHARES)
        order = np.argsort(errors, axis=None)
        return errors.ravel()[order], weights.ravel()[order]

    @property
    def mean(self) -> float:
        """Bound of the expected distance."""
        errors, weights = self._cells
        return min(float(errors @ weights), self._largest)

    @property
    def second_moment(self) -> float:
        """Bound of the expected squared distance."""
        errors, weights = self._cells
        return min(float(errors**2 @ weights), self._largest**2)

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Distance that is exceeded with probability 1 - q at most."""
        errors, weights = self._cells
        reached = np.cumsum(weights) * (1 - SLACK)
        index = np.searchsorted(reached, np.asarray(q, dtype=np.float64))
        return np.asarray(errors[np.minimum(index, len(errors) - 1)])


def turned_direction(radius: RadialLaw, dim: int, size: float, height: float) -> Forecast:
    """Bound how far noise in R^(dim + 1) turns a vector of length at least `height`, on the sphere of radius `size`.

    The angle shrinks with the vector's length, so the shortest is the worst: atan2(t sin phi, height + t cos phi), phi
    the angle between noise and vector. Without a bound (height 0) that is phi: as good as a random point.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.noise import RiemannianGaussian
    >>> law = RiemannianGaussian(Euclidean(3), [0.0, 0.0, 0.0], 0.01)
    >>> bool(0.0125 < turned_direction(law.radius, 2, 1.0, 1.0).mean < 0.0128)
    True
    """
    height = max(0.0, height - SLACK * size)

    def bound(t: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        # (1 + cos phi)/2 is the share: it falls where phi grows.
        first, last = (2 * np.arctan2(np.sqrt(1 - x), np.sqrt(x)) for x in (high, low))
        if height == 0:
            return size * np.broadcast_to(last, np.broadcast_shapes(t.shape, last.shape))
        ends = np.maximum(*(np.arctan2(t * np.sin(phi), height + t * np.cos(phi)) for phi in (first, last)))
        # In between it rises until the noise is at right angles to the sum, if the noise is the shorter one.
        ratio = np.minimum(t / height, 1.0)
        top = np.arccos(-ratio)
        return size * np.where((first < top) & (top < last), np.arcsin(ratio), ends)

    return CellForecast(radius, (dim / 2, dim / 2), bound, math.pi * size)


def turned_eigenvector(radius: RadialLaw, rows: int, gap: float) -> Forecast:
    """Bound how far noise turns the top eigenvector of a Hermitian matrix without trace, as an angle up to pi/2.

    Its two largest eigenvalues are at least `gap` apart. With the share s of the noise's squared length t^2 in the
    eigenvector's column: tan of twice the angle is at most sqrt(2 s) t/(gap - sqrt(2 (1 - s)) t).

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.noise import RiemannianGaussian
    >>> law = RiemannianGaussian(Euclidean(8), [0.0] * 8, 0.001)
    >>> bool(0.0013 < turned_eigenvector(law.radius, 3, 1.0).mean < 0.0014)
    True
    """
    gap = gap - SLACK

    def bound(t: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        left = gap - np.sqrt(2 * (1 - low)) * t
        return np.where(left > 0, np.arctan2(np.sqrt(2 * high) * t, left) / 2, np.pi / 2)

    column, others = 2 * (rows - 1), rows * rows - 1 - 2 * (rows - 1)
    return CellForecast(radius, (column / 2, others / 2), bound, math.pi / 2)
