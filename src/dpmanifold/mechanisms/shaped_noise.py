"""How long noise is that is not the same in all directions: bounds that hold in mean and in every quantile."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from dpmanifold._check import FloatArray
from dpmanifold.ball import Ball
from dpmanifold.mechanisms.base import Forecast
from dpmanifold.mechanisms.forecasts import carried_over


class ShapedLength:
    """Bounds of the length of a vector whose coordinates are noise of scale 1 times `scales` (theory: shaped noise, 4).

    Parameters
    ----------
    scales : (d,), above 0
    law : "gaussian", or "laplace" for noise of density exp(-|z|)

    Examples
    --------
    >>> law = ShapedLength(np.array([3.0, 4.0]), "gaussian")
    >>> law.mean(), law.moment(2), round(float(law.quantile(0.95)), 2)
    (5.0, 25.0, 13.58)
    """

    def __init__(self, scales: FloatArray, law: str) -> None:
        self._squares, self._law, self._d = np.asarray(scales**2), law, len(scales)

    def mean(self) -> float:
        """Root of the mean square; for Laplace noise the mean of its common factor times that of a normal vector."""
        normal = math.sqrt(float(self._squares.sum()))
        if self._law == "gaussian":
            return normal
        # Noise of that density is a normal vector times the root of a chi-square number of d + 1 degrees.
        d = self._d
        return normal * math.sqrt(2) * math.exp(special.gammaln((d + 2) / 2) - special.gammaln((d + 1) / 2))

    def moment(self, power: int) -> float:
        """Mean square, exactly."""
        assert power == 2
        return float(self._squares.sum()) * (1 if self._law == "gaussian" else self._d + 1)

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Return a length that is exceeded with probability 1 - q at most (Laurent and Massart 2000, Lemma 1)."""
        beyond = 1 - np.asarray(q, dtype=np.float64)
        if self._law != "gaussian":
            beyond = beyond / 2  # either factor may be the one that is large
        t = -np.log(np.maximum(beyond, 1e-300))
        w = self._squares
        square = w.sum() + 2 * np.sqrt((w**2).sum() * t) + 2 * w.max() * t
        if self._law != "gaussian":
            square = square * special.chdtri(self._d + 1, beyond)
        return np.asarray(np.sqrt(square))


def shaped_forecast(ball: Ball, scales: FloatArray, law: str) -> Forecast:
    """Return how far such noise on coordinates at the ball's centre carries a point of the ball: a bound.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> shaped_forecast(Ball(Euclidean(2), [0.0, 0.0], 9.0), np.array([3.0, 4.0]), "gaussian").mean
    5.0
    """
    found = carried_over(ball, ShapedLength(scales, law))
    found.exact = False
    return found
