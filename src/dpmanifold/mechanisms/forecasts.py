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
from dpmanifold.manifolds.embedding import SLACK
from dpmanifold.manifolds.vectors import log_sinhc
from dpmanifold.mechanisms.base import Forecast, LengthLaw
from dpmanifold.noise import RadialLaw

# Cells of the noise's length, finer towards its tail, and of its direction. The last ends at the largest error.
_LENGTHS = np.concatenate([np.linspace(0, 0.98, 197), 1 - np.geomspace(0.0195, 1e-12, 100), [1.0]])
_SHARES = np.linspace(0, 1, 201)


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
