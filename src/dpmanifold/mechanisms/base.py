"""What a mechanism is: a law, its calibration, and a forecast of how far off the answer will be.

Everything here is decided from public quantities: the ball, the number of units and the promise. A mechanism draws
in the ball's frame, about the point it is given there; moving the draw back to the space is post-processing.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.noise.source import RandomSource, Rng, Size
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP
from dpmanifold.privacy.exact_decimals import float_down, sqrt_down
from dpmanifold.sensitivity import Sensitivity, of_mean

# Levels at which expectations of a stretched radius are bounded from above, step by step.
_LEVELS = np.concatenate([np.linspace(0, 0.99, 400), 1 - np.geomspace(0.0099, 1e-12, 200)])

# A draw leaves the ball with no more than what is left of this probability, where its error is called exact.
_HARDLY_EVER = 0.999

FRECHET = "frechet"
"""The estimand of a mechanism that says nothing else."""

# A few operations with a relative error of eps each: scales are rounded up by this factor.
ROUND_UP = 1 + 1e-14

# For the pure promise within a Gaussian one: its special functions are within 4 eps together.
_ROUND_DOWN = 1 - 16 * sys.float_info.epsilon
_LINEAR_BELOW, _ROOT_TWO_OVER_PI = 1e-290, math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class Calibration:
    """A scale and why it keeps a promise.

    Attributes
    ----------
    mechanism : its name in the registry
    privacy : the promise it keeps
    scale : of the noise law
    sensitivity : the bound the scale was made from
    rule : how, in a few words ("analytic Gaussian", "Delta/epsilon", ...)
    """

    mechanism: str
    privacy: Promise
    scale: float
    sensitivity: Sensitivity
    rule: str


class LengthLaw(Protocol):
    """The law of a length, or bounds of it: what a forecast is made of."""

    def mean(self) -> float:
        """Return the expected length."""

    def moment(self, power: int) -> float:
        """Return the expected power of it."""

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Return the length that is exceeded with probability 1 - q."""


class Forecast:
    """How far the noise will carry the answer, before any data is touched (theory section 5).

    Attributes
    ----------
    exact : True if it is the law of the error; False if the error is provably smaller in mean and in every quantile
    """

    def __init__(
        self, radius: LengthLaw, exact: bool, stretch: Callable[[FloatArray], FloatArray] | None = None
    ) -> None:
        self._radius, self._stretch = radius, stretch
        self.exact = exact

    @property
    def mean(self) -> float:
        """Expected distance between the answer and what it hides."""
        return self._radius.mean() if self._stretch is None else self._stretched_moment(1)

    @property
    def length(self) -> float:
        """Expected length of the noise, where it is drawn."""
        return self._radius.mean()

    @property
    def second_moment(self) -> float:
        """Expected squared distance."""
        return self._radius.moment(2) if self._stretch is None else self._stretched_moment(2)

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Distance that is exceeded with probability 1 - q."""
        t = self._radius.quantile(q)
        return t if self._stretch is None else self._stretch(t)

    def moved_into(self, ball: Ball) -> Forecast:
        """Return the forecast for a draw that is moved into the ball afterwards, where no error exceeds its diameter.

        The law of the error is known only where draws hardly ever leave the ball.
        """
        exact = self.exact and float(self.quantile(_HARDLY_EVER)) < ball.radius
        return _Capped(self, exact, ball.diameter)

    def _stretched_moment(self, power: int) -> float:
        """Bound an expectation of an increasing function by its upper sum over quantiles."""
        assert self._stretch is not None
        steps = self._stretch(self._radius.quantile(np.append(_LEVELS[1:], 1 - 1e-15))) ** power
        return float(np.diff(np.append(_LEVELS, 1.0)) @ steps)


class _Capped(Forecast):
    """A forecast whose errors never exceed a distance."""

    def __init__(self, found: Forecast, exact: bool, most: float) -> None:
        super().__init__(found._radius, exact, found._stretch)
        self._found, self._most = found, most

    @property
    def mean(self) -> float:
        """Bound of the expected distance."""
        return min(self._found.mean, self._most)

    @property
    def second_moment(self) -> float:
        """Bound of the expected squared distance."""
        return min(self._found.second_moment, self._most**2)

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Distance that is exceeded with probability 1 - q at most."""
        return np.asarray(np.minimum(self._found.quantile(q), self._most))


class Law(Protocol):
    """What a mechanism draws from. It knows the data: it is used and dropped, never kept in a result."""

    def sample(self, size: Size | None = None, rng: Rng = None) -> Array:
        """Draw points, or one point."""


class Mechanism(ABC):
    """One way to keep a promise about a mean, or about another point that a statistic hides.

    The library's own are in `mechanisms/`, one file each. Another distribution adds one by an entry point in the group
    `dpmanifold.mechanisms`, a script by `MECHANISMS.register`, and either may hand one over as it is. Its promise is
    its author's: what is proven here is proven of the library's own.
    """

    name: str
    """Its name in the registry."""
    title: str
    """What it is, in a few words for people."""
    noise: str = ""
    """The law of its noise where that is "gaussian" or "laplace" (density exp(-distance/scale)): audits read it."""
    about: str = ""
    """What the noise lies about: "center" (coordinates at the ball's centre), or "mean", a law of the distance on the
    whole space, whose exact privacy profile may be known; "" where it is neither."""
    standalone: bool = False
    """True of a variant that is asked for by name: regions, tests and shaped means build on the usual one."""
    baseline: bool = False
    """True for the papers' extrinsic mechanisms: for comparison, never chosen by "auto"."""
    automatic: bool = True
    """False where calibration takes seconds: only by name."""
    searches: bool = False
    """True where calibration is a search: "auto" looks at the others first."""
    covers_timing: bool = True
    """False where the steps of a draw, and so its running time, depend on the data."""
    needs_points: bool = False
    """True where the law depends on every unit's point and not on their mean alone."""
    needs_inside: bool = False
    """True where the law exists only about a point of the ball, not about one that rounding left just outside."""
    estimand: str = FRECHET
    """Which mean it hides: "frechet", "tangent" or "extrinsic" (theory: estimands)."""
    needs_ball: bool = True
    """False where the whole space (`Ball.whole`) will do."""

    @abstractmethod
    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why this mechanism cannot keep the promise on that space, or None."""

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Bound how far one of n units moves the mean that it hides, in the metric of its noise."""
        return of_mean(ball, n)

    @abstractmethod
    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return the scale for n units; may refuse with InvalidArgumentError what only the scale can tell.

        `bound` is the sensitivity, as a distance in the ball's frame, of another statistic whose value is a point of
        the ball; the mean's own if left out.
        """

    def bound(self, ball: Ball, n: int, given: Sensitivity | None) -> Sensitivity:
        """Return the bound to calibrate to, or refuse another statistic where the law is made of the units' points."""
        if given is None:
            return self.sensitivity(ball, n)
        if self.needs_points:
            raise InvalidArgumentError(f'mechanism "{self.name}" hides a mean, and no other {given.statistic}.')
        return given

    @abstractmethod
    def forecast(self, ball: Ball, n: int, calibration: Calibration) -> Forecast:
        """Return what to expect of the noise."""

    @abstractmethod
    def law(self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints) -> Law:
        """Return the law to draw from in the ball's frame, given the mean and the units' points there."""

    def draw(
        self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints, source: RandomSource
    ) -> Array:
        """Draw once in doubles; returns a point of the frame."""
        return self.law(ball, calibration, mean, points).sample(rng=source)

    def exceeds(self, error: float, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> bool:
        """Return whether its expected noise is surely larger than `error`, known before it is calibrated."""
        return False

    # ---------------------------------------------------------------- exact draws (theory: exact noise)

    def may_be_exact(self, ball: Ball) -> bool:
        """Return False where :meth:`offers_exact` does at every scale."""
        return True

    def offers_exact(self, ball: Ball, calibration: Calibration) -> bool:
        """Return whether ideal noise can be drawn and rounded to a public grid there; then the next four work."""
        return False

    def grid(self, ball: Ball, calibration: Calibration) -> int:
        """Return the exponent of the grid, from public numbers."""
        raise NotImplementedError(f"{self.name} draws doubles")

    def size(self, ball: Ball) -> int:
        """Return how many numbers are drawn."""
        raise NotImplementedError(f"{self.name} draws doubles")

    def numbers(
        self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints, source: RandomSource
    ) -> FloatArray:
        """Draw once, exactly; returns the multiples of 2^grid that leave, one axis."""
        raise NotImplementedError(f"{self.name} draws doubles")

    def place(self, ball: Ball, numbers: FloatArray) -> Array:
        """Turn drawn numbers into a point of the frame: post-processing, the same whoever does it."""
        raise NotImplementedError(f"{self.name} draws doubles")


def pure_epsilon(privacy: Promise) -> float:
    """Return an epsilon whose pure promise implies `privacy`, rounded down (theory section 5).

    For GDP the largest there is, for ZCDP the largest by epsilon-DP being min(epsilon, epsilon^2/2)-zCDP, and for
    ApproxDP its own epsilon: one that uses up delta as well would be larger by about delta.

    Examples
    --------
    >>> pure_epsilon(PureDP(1.0)), pure_epsilon(ZCDP(0.5)), round(pure_epsilon(GDP(1.0)), 6)
    (1.0, 1.0, 0.806965)
    """
    match privacy:
        case PureDP(epsilon) | ApproxDP(epsilon, _):
            return epsilon
        case ZCDP(rho):
            return max(rho, sqrt_down(2 * Fraction(rho)))
        case GDP(mu):
            return _pure_of_gdp(mu)
    raise AssertionError("a promise is one of the four kinds")


def _pure_of_gdp(mu: float) -> float:
    """Solve 1/(1 + e^epsilon) = Phi(-mu/2), or tanh(epsilon/2) = erf(mu/sqrt 8), rounded down."""
    if mu < _LINEAR_BELOW:
        # Exactly, as floats this small have few digits. What is left out of the series is above 0.
        return float_down(Fraction(mu) * Fraction(_ROOT_TWO_OVER_PI) * Fraction(_ROUND_DOWN))
    root = mu / math.sqrt(8)
    if mu < 2:
        return 2 * math.atanh(math.erf(root)) * _ROUND_DOWN
    # log of erfc(-root)/erfc(root), where erf would round to 1: a sum of terms above 0.
    epsilon = mu * mu / 8 - math.log(float(special.erfcx(root))) + math.log1p(math.erf(root))
    return min(epsilon * _ROUND_DOWN, sys.float_info.max)
