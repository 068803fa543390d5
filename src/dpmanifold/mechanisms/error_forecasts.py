"""How far noise on a vector carries the point that is made of it (theory: estimands, shaped noise).

Bounds that hold in mean and in every quantile; noise may be longer in some directions than in others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from dpmanifold._check import Array, FloatArray
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


# Terms of the mixture; what they leave out is counted as infinitely long.
_TERMS = 800
# Lighter ones are left out as well.
_NOTHING = 1e-16
# Rounding of the weights, of which there are so many.
_SLACK = 1e-9


# Levels at which quantiles are computed where very many are asked for.
_LEVELS = np.concatenate([np.linspace(0.0, 0.96, 25), 1 - np.geomspace(0.03, 1e-6, 8)])


@lru_cache(maxsize=64)
def _mixture(ratios: bytes) -> tuple[Array, FloatArray]:
    """Return which terms there are, and their weights, together 1 or less, given squares over the smallest of them."""
    rest = 1 - 1 / np.frombuffer(ratios)
    powers = np.cumprod(np.tile(rest, (_TERMS, 1)), axis=0).sum(axis=1)
    weights = np.zeros(_TERMS)
    weights[0] = math.exp(0.5 * float(np.log1p(-rest).sum()))
    for k in range(1, _TERMS):
        weights[k] = powers[:k][::-1] @ weights[:k] / (2 * k)
    known = weights > _NOTHING
    return np.asarray(np.arange(_TERMS)[known]), np.asarray(weights[known] * (1 - _SLACK))


@lru_cache(maxsize=4096)
def _mixed_quantile(ratios: bytes, level: float) -> float:
    """Return a square, over the smallest, that is exceeded with probability 1 - level at most; or infinity."""
    terms, weights = _mixture(ratios)
    squares = np.frombuffer(ratios)
    halves = len(squares) / 2 + terms

    def within(square: float) -> float:
        return float(weights @ special.gammainc(halves, square / 2))

    low, top, most = 0.0, float(squares.sum()), 1e6 * float(squares.sum())
    while not within(top) >= level:
        low, top = top, 2 * top
        if top > most:
            return math.inf
    for _ in range(40):
        middle = (low + top) / 2
        low, top = (low, middle) if within(middle) >= level else (middle, top)
    return top


class ShapedLength:
    """Bounds of the length of a vector whose coordinates are noise of scale 1 times `scales` (theory: shaped noise, 4).

    Its square is a mixture of chi-square numbers of d, d + 2, d + 4, ... degrees, times the smallest square (Ruben
    1962); finitely many of them bound every quantile from above.

    Parameters
    ----------
    scales : (d,), above 0
    law : "gaussian", or "laplace" for noise of density exp(-|z|)

    Examples
    --------
    >>> law = ShapedLength(np.array([3.0, 4.0]), "gaussian")
    >>> round(law.mean(), 3), law.moment(2), round(float(law.quantile(0.95)), 2)
    (4.409, 25.0, 8.74)
    """

    def __init__(self, scales: FloatArray, law: str) -> None:
        self._squares, self._law, self._d = np.asarray(scales**2), law, len(scales)
        self._ratios = (self._squares / self._squares.min()).tobytes()
        terms, self._weights = _mixture(self._ratios)
        self._degrees = self._d + 2 * terms

    def mean(self) -> float:
        """Expected length."""
        total = float(self._squares.sum())
        half = special.gammaln((self._degrees + 1) / 2) - special.gammaln(self._degrees / 2)
        chi = math.sqrt(2 * float(self._squares.min())) * np.exp(half)
        # What is left out has some probability p, and adds at most sqrt(p E Q) by Cauchy and Schwarz.
        beyond = max(0.0, 1 - float(self._weights.sum()))
        normal = min(math.sqrt(total), float(self._weights @ chi) + math.sqrt(beyond * total))
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
        """Return a length that is exceeded with probability 1 - q at most."""
        beyond = 1 - np.asarray(q, dtype=np.float64)
        if self._law == "gaussian":
            return np.asarray(np.sqrt(self._squared_quantile(beyond)))
        # Either of the two factors may be the one that is large.
        return np.asarray(np.sqrt(self._squared_quantile(beyond / 2) * special.chdtri(self._d + 1, beyond / 2)))

    def _squared_quantile(self, beyond: FloatArray) -> FloatArray:
        """Bound the quantile of a normal vector's squared length by Laurent and Massart's lemma and by the mixture."""
        w, t = self._squares, -np.log(np.maximum(beyond, 1e-300))
        high = np.asarray(w.sum() + 2 * np.sqrt((w**2).sum() * t) + 2 * w.max() * t)
        levels = 1 - beyond.reshape(-1)
        # Of many levels each counts as the next of a few: quantiles grow.
        few = levels if levels.size <= len(_LEVELS) else _LEVELS
        found = np.append([_mixed_quantile(self._ratios, float(level)) for level in few], math.inf) * w.min()
        place = np.arange(levels.size) if few is levels else np.searchsorted(_LEVELS, levels)
        return np.asarray(np.minimum(high, found[place].reshape(high.shape)))


def shaped_forecast(ball: Ball, scales: FloatArray, law: str) -> Forecast:
    """Return how far such noise on coordinates at the ball's centre carries a point of the ball: a bound.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> round(shaped_forecast(Ball(Euclidean(2), [0.0, 0.0], 9.0), np.array([3.0, 4.0]), "gaussian").mean, 3)
    4.409
    """
    found = carried_over(ball, ShapedLength(scales, law))
    found.exact = False
    return found
