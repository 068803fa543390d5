"""Draws: everything that leaves a private call, each a noisy output with its cost (theory: exact noise).

A draw holds what it hides and how noise is added: exactly, on a public grid, or in double precision. A release of the
library's own bits is exact wherever its mechanism allows. Simulations with a seed keep the same laws in double
precision, which is faster, unless exact draws are asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray, shown
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError, InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds import Euclidean
from dpmanifold.mechanisms import Calibration, Forecast, Mechanism, candidates, choose
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.mechanisms.shared import VectorMechanism
from dpmanifold.noise import RiemannianGaussian, RiemannianLaplace
from dpmanifold.noise.distance import DistanceLaw
from dpmanifold.noise.exact_vector_noise import grid_of, likeliest, noisy_vector
from dpmanifold.noise.source import RandomSource, Rng, as_source
from dpmanifold.noise.tails import Tail
from dpmanifold.privacy import Promise, PromiseError, PureDP, gaussian_scale, laplace_scale
from dpmanifold.release import EXACT, FLOAT, Drawn
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import Header, Statistic, Step
from dpmanifold.stats.ranges import DRAWN_ROUNDING, SURELY, Limits, baseline_faults, is_beyond

AUTO = "auto"
# Whether a smaller scale would help is seen at this share of the calibrated one.
_TINY = 1e-6
RADIAL: dict[str, type[DistanceLaw]] = {"laplace": RiemannianLaplace, "gaussian": RiemannianGaussian}
# On curved spaces quantiles so near to 0 are quadratures, and volumes are those of flat balls: half of it is on the
# safe side.
_CURVED = 0.5

T = TypeVar("T")
U = TypeVar("U")

Chosen = tuple[Mechanism, Calibration, Forecast]
"""A mechanism, its scale and what to expect of it: what :func:`dpmanifold.mechanisms.choose` returns."""


class Bits(NamedTuple):
    """Where random bits come from, whether they make a private release, and whether noise is exact where it can be."""

    source: RandomSource
    private: bool
    exact: bool


def fresh_bits(rng: Rng, ball: Ball, arithmetic: str = AUTO) -> Bits:
    """Return the bits that an `rng=` and an `arithmetic=` stand for.

    Only bits that the library itself takes from the operating system make a private release, and only on a ball that
    was not found by a simulation: whatever was handed in could be predicted by whoever made it.
    """
    exact = rng is None if checked_arithmetic(arithmetic) == AUTO else arithmetic == EXACT
    return Bits(as_source(rng), rng is None and not ball.simulated, exact)


def checked_arithmetic(arithmetic: object) -> str:
    """Return "auto", "exact" or "float", or refuse anything else."""
    if isinstance(arithmetic, str) and arithmetic in (AUTO, EXACT, FLOAT):
        return arithmetic
    raise InvalidArgumentError(f'`arithmetic` must be "auto", "exact" or "float", got {shown(arithmetic)}.')


def drawn_as(arithmetic: str, mechanism: Mechanism, ball: Ball, calibration: Calibration) -> str:
    """Return "exact" or "float": how a release of the library's own bits would draw a point's noise."""
    return FLOAT if arithmetic == FLOAT or not mechanism.offers_exact(ball, calibration) else EXACT


def refuse_inexact(arithmetic: str, mechanism: Mechanism, ball: Ball, calibration: Calibration) -> None:
    """Refuse a mechanism that draws doubles where exact noise was asked for, before anything is spent."""
    if checked_arithmetic(arithmetic) == EXACT and not mechanism.offers_exact(ball, calibration):
        depends = mechanism.offers_exact(ball, replace(calibration, scale=_TINY * calibration.scale))
        why = f" with a scale of {calibration.scale:.3g}, only with a smaller one" if depends else ""
        raise PromiseError(
            f'mechanism "{mechanism.name}" cannot be drawn exactly on {ball.space!r}{why}. `mechanism="auto"` takes '
            'one that can, where any of those that keep the promise can. Otherwise use `arithmetic="float"`, against '
            "which an attacker who reads all digits wins."
        )


# -------------------------------------------------------------------- what is hidden


class Hidden(Generic[T]):
    """Something that is computed of the records. NOT PRIVATE: it is computed once a draw is made of it, and not before.

    A program passes it on without looking at it.

    Parameters
    ----------
    compute : gives it; whatever that raises is a loss
    """

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute
        self._known: list[T] = []

    def then(self, compute: Callable[[T], U], fallback: Callable[[T], U] | None = None) -> Hidden[U]:
        """Return what is computed of it, or the public value that stands in where that fails numerically."""

        def total() -> U:
            value = self.reveal()
            if fallback is None:
                return compute(value)
            return with_fallback(lambda: compute(value), lambda: fallback(value))

        return Hidden(total)

    def reveal(self) -> T:
        """Return it: for draws alone."""
        if not self._known:
            self._known.append(self._compute())
        return self._known[0]


# -------------------------------------------------------------------- draws


class Draw(ABC):
    """A noisy output.

    Attributes
    ----------
    share : what it costs
    grid : the exponent of the public grid of exact draws; None where there are none
    """

    share: Promise
    grid: int | None

    @abstractmethod
    def draw(self, bits: Bits) -> Drawn:
        """Compute what is hidden and draw, once."""

    @abstractmethod
    def faults(self, drawn: Drawn) -> list[str]:
        """Return why no units in the ball and no noise come to these numbers, which lie on the grid."""

    def apart(self, one: Drawn, other: Drawn) -> float:
        """Return how far apart two outputs are, where the noise is."""
        return float(np.linalg.norm(one.numbers - other.numbers))

    def nearest(self, drawn: Drawn, alarm: float) -> float:
        """Return how near such an output comes to given numbers with that probability at most; below 0 if it may."""
        return -1.0


@dataclass(frozen=True, eq=False)
class VectorDraw(Draw):
    """Numbers plus noise: normal, or Laplace's with a density of exp(-|z|/scale).

    Attributes
    ----------
    hidden : the numbers, (size,)
    calibration : the law ("gaussian" or "laplace"), its scale and what it costs
    largest : a public bound on their length, for the grid
    limits : returns what the numbers can be
    """

    hidden: Hidden[FloatArray]
    calibration: Calibration
    largest: float
    limits: Callable[[], Limits]

    @property
    def share(self) -> Promise:  # type: ignore[override]
        """What it costs."""
        return self.calibration.privacy

    @property
    def grid(self) -> int:  # type: ignore[override]
        """The exponent of the grid."""
        return grid_of(self.calibration.scale, self.largest)

    def draw(self, bits: Bits) -> Drawn:
        """Add noise to the numbers."""
        law, scale, source = self.calibration.mechanism, self.calibration.scale, bits.source
        numbers = np.atleast_1d(np.asarray(self.hidden.reveal(), dtype=np.float64))
        if bits.exact:
            return Drawn(noisy_vector(numbers, law, scale, self.grid, source), self.grid)
        if law == "laplace":
            length = scale * source.exponential(len(numbers)).sum()
            return Drawn(numbers + length * source.direction((), len(numbers)))
        return Drawn(numbers + scale * source.normal(numbers.shape))

    def tail(self, drawn: Drawn) -> Tail:
        """Return how far noise carries numbers."""
        return Tail(self.calibration.mechanism, self.calibration.scale, len(drawn.numbers), drawn.grid)

    def faults(self, drawn: Drawn) -> list[str]:
        """Return which numbers lie where no average and no noise carry them."""
        limits = self.limits()
        if drawn.numbers.shape != limits.low.shape:
            return [f"drawn: there are {len(limits.low)} numbers in it"]
        return limits.faults("drawn", drawn.numbers, self.tail(drawn))

    def nearest(self, drawn: Drawn, alarm: float) -> float:
        """Return how near noise comes to given numbers."""
        return self.tail(drawn).nearest(alarm)


@dataclass(frozen=True, eq=False)
class PointDraw(Draw):
    """A point of the ball's frame, by a mechanism that hides a mean of the units.

    Attributes
    ----------
    ball : the ball that the units' points are in
    chosen : the mechanism, its scale and what to expect of it
    units : their points
    """

    ball: Ball
    chosen: Chosen
    units: Hidden[UnitPoints]

    @property
    def share(self) -> Promise:  # type: ignore[override]
        """What it costs."""
        return self.chosen[1].privacy

    @property
    def grid(self) -> int | None:  # type: ignore[override]
        """The exponent of the mechanism's grid; None where it draws doubles."""
        mechanism, calibration, _ = self.chosen
        return mechanism.grid(self.ball, calibration) if mechanism.offers_exact(self.ball, calibration) else None

    def draw(self, bits: Bits) -> Drawn:
        """Solve the mean of the points and draw about it."""
        points, (mechanism, calibration, _) = self.units.reveal(), self.chosen
        # Other means are averages of the points themselves, which the mechanism gets anyway.
        mean = self.ball.frame.origin if mechanism.estimand != FRECHET else self._solved(points)
        return draw_about(self.ball, mechanism, calibration, mean, points, bits)

    def _solved(self, points: UnitPoints) -> Array:
        frame = self.ball.frame

        def solved() -> Array:
            mean = hidden_mean(self.ball, self.chosen[0], points)
            if frame.check(mean) is not None:
                raise FloatingPointError("what was solved is no point")
            return mean

        return with_fallback(solved, lambda: frame.origin)

    def place(self, drawn: Drawn) -> Array:
        """Return the point of the frame that was drawn, the origin in place of what is none: post-processing.

        A baseline's numbers need not be a point.
        """
        return with_fallback(lambda: self._placed(drawn), lambda: self.ball.frame.origin)

    def _placed(self, drawn: Drawn) -> Array:
        if drawn.grid is not None:
            return self.chosen[0].place(self.ball, drawn.numbers)
        return drawn.numbers.view(self._doubles.dtype).reshape(self._doubles.shape)

    @property
    def _doubles(self) -> Array:
        """What doubles are drawn as: a point of the frame, by baselines the numbers that a point is stored as."""
        return self.ball.space.origin if self.chosen[0].baseline else self.ball.frame.origin

    def faults(self, drawn: Drawn) -> list[str]:
        """Return whether the point is farther away than noise carries one."""
        ball, (mechanism, _, forecast) = self.ball, self.chosen
        size = mechanism.size(ball) if drawn.grid is not None else _as_doubles(self._doubles).size
        if drawn.numbers.shape != (size,):
            return [f"drawn: there are {size} numbers in it"]
        noise, point = float(forecast.quantile(SURELY)), self.place(drawn)
        if drawn.grid is None and not mechanism.baseline and not self._is_canonical(point):
            return ["drawn: not the array that stands for a point of the ball's frame"]
        if mechanism.baseline:
            stored = ball.space.stored
            return [] if stored is None else baseline_faults(ball, stored.carried(ball.center, point), noise)
        far = is_beyond(ball.in_frame, point, ball.radius + noise)
        return ["drawn: no noise of that scale carries a draw so far from the ball"] if far else []

    def _is_canonical(self, point: Array) -> bool:
        canonical = with_fallback(lambda: canonical_in_frame(self.ball, point), lambda: self.ball.frame.origin)
        return bool(np.abs(canonical - point).max() <= DRAWN_ROUNDING * np.abs(point).max())

    @property
    def _on_space(self) -> bool:
        """Whether noise is on a curved space, and not on the numbers themselves."""
        return not (self.ball.space.is_flat or isinstance(self.chosen[0], VectorMechanism))

    def apart(self, one: Drawn, other: Drawn) -> float:
        """Return how far apart two outputs are, where the noise is."""
        if not self._on_space:
            return super().apart(one, other)
        return float(self.ball.frame.dist(self.place(one), self.place(other)))

    def nearest(self, drawn: Drawn, alarm: float) -> float:
        """Return how near a draw comes to given numbers; below 0 where the mechanism's law is not known."""
        (mechanism, calibration, _), frame = self.chosen, self.ball.frame
        if mechanism.noise not in RADIAL:
            return super().nearest(drawn, alarm)
        size = frame.dim if self._on_space else len(drawn.numbers)
        found = Tail(mechanism.noise, calibration.scale, size, drawn.grid).nearest(alarm)
        if not self._on_space:
            return found
        # Where there is no curvature above 0 the law is spread out more than on a flat space.
        if frame.curvature[1] > 0:
            try:
                law = RADIAL[mechanism.noise](frame, frame.origin, calibration.scale)
                found = min(found, float(law.radius.quantile(alarm)))
            except DPManifoldError:  # of products the law of a distance is not known: draws that are equal are copies
                found = min(found, 0.0)
        return _CURVED * found


@dataclass(frozen=True, eq=False)
class ChoiceDraw(Draw):
    """One of several places, by the exponential mechanism: the fewer units must move to make it right, the likelier.

    Attributes
    ----------
    missing : how many units must move for each place, as exact numbers
    count : how many places there are
    epsilon : of the pure promise that it keeps
    share : what it costs
    """

    missing: Hidden[Sequence[Fraction]]
    count: int
    epsilon: float
    share: Promise
    grid: int = 0

    def draw(self, bits: Bits) -> Drawn:
        """Choose."""
        units = self.missing.reveal()
        if bits.exact:
            rate = Fraction(self.epsilon) / 2
            return Drawn(np.array([float(likeliest([-rate * one for one in units], bits.source))]), self.grid)
        scores = -self.epsilon * np.array(units, dtype=np.float64) / 2
        # The largest of these sums is where the mechanism's draw falls: minus log of an exponential is Gumbel's law.
        return Drawn(np.array([float(np.argmax(scores - np.log(bits.source.exponential(self.count))))]))

    def faults(self, drawn: Drawn) -> list[str]:
        """Return whether there is no such place."""
        return [] if drawn.numbers.shape == (1,) and drawn.numbers[0] in range(self.count) else ["drawn: no such place"]


def draw_about(
    ball: Ball, mechanism: Mechanism, calibration: Calibration, mean: Array, points: UnitPoints, bits: Bits
) -> Drawn:
    """Draw about a point of the frame: once, and whatever goes wrong meanwhile, the release is lost."""
    if bits.exact and mechanism.offers_exact(ball, calibration):
        grid = mechanism.grid(ball, calibration)
        return Drawn(mechanism.numbers(ball, calibration, mean, points, bits.source), grid)
    drawn = mechanism.draw(ball, calibration, mean, points, bits.source)
    if not mechanism.baseline:
        drawn = with_fallback(lambda: canonical_in_frame(ball, drawn), lambda: ball.frame.origin)
    return Drawn(_as_doubles(drawn))


def canonical_in_frame(ball: Ball, point: Array) -> Array:
    """Return the array that stands for a point of the frame, however it was reached: what leaves tells of no mean."""
    return ball.frame.out_of_frame(ball.frame.origin, point)


def _as_doubles(point: Array) -> FloatArray:
    """Return the numbers that an array of a point holds, of complex ones two each, on one axis."""
    return np.ascontiguousarray(point).view(np.float64).ravel()


def hidden_mean(ball: Ball, mechanism: Mechanism, points: UnitPoints) -> Array:
    """Return the mean of points in the ball's frame that a mechanism hides. NOT PRIVATE, and it may raise."""
    if isinstance(mechanism, VectorMechanism) and mechanism.estimand != FRECHET:
        return mechanism.place(ball, mechanism.vector(ball, ball.frame.origin, points))
    mean = points.mean()
    # Elsewhere nothing is moved after the solver: the sensitivity is about what it returns.
    return ball.in_frame.pull_in(mean[None])[0] if mechanism.needs_inside else mean


def tolerance_of(mechanism: Mechanism, ball: Ball, n: int) -> float:
    """Return the public tolerance that a mean is solved to; 0 where none is solved."""
    if mechanism.estimand != FRECHET:
        return 0.0
    if ("tolerance", n) not in ball.kept:
        ball.kept["tolerance", n] = frechet.default_tol(ball, n)
    return float(ball.kept["tolerance", n])


# -------------------------------------------------------------------- draws as public numbers foresee them


def choose_for(
    header: Header,
    mechanism: Any,
    share: Promise,
    estimand: str | None = None,
    otherwise: str = "",
    decision: str = "mechanism",
) -> Chosen:
    """Return the mechanism that keeps a share in the header's ball, or refuse; of "auto" which one is a decision.

    Parameters
    ----------
    header : what it is about
    mechanism : "auto", a name or an object
    share : what the draw may cost
    estimand : as in :func:`~dpmanifold.mechanisms.choose`
    otherwise : the estimand to fall back on where no mechanism of the first keeps the share
    decision : the name of the decision
    """
    ball, n = header.ball, header.n
    if mechanism != AUTO:
        return choose(mechanism, ball, n, share, estimand)
    found: list[Chosen] = []

    def best() -> str:
        try:
            found.append(choose(AUTO, ball, n, share, estimand))
        except PromiseError:
            if not otherwise:
                raise
            found.append(choose(AUTO, ball, n, share, otherwise))
        return found[0][0].name

    name = header.decide(decision, best, lambda name: is_candidate(name, estimand, otherwise))
    return found[0] if found else choose(name, ball, n, share)


def is_candidate(name: str, *estimands: str | None) -> bool:
    """Return whether "auto" looks at a mechanism of that name for one of these means."""
    return any(one.name == name for estimand in estimands if estimand != "" for one in candidates(estimand))


def mean_step(statistic: Statistic, header: Header, chosen: Chosen, project: bool = True) -> Step:
    """Return the draw of a point by a mechanism; without a ball no error can be stated.

    Parameters
    ----------
    statistic : which the draw is of
    header : the question
    chosen : the mechanism, its scale and what to expect of it
    project : whether the draw is moved into the ball
    """
    mechanism, calibration, drawn = chosen
    ball, whole = header.ball, header.ball.is_whole
    forecast = placed_forecast(chosen, ball, project)
    return Step(
        statistic.name,
        mechanism.name,
        calibration.privacy,
        calibration.scale,
        calibration.rule,
        None if whole else forecast.mean,
        None if whole else ball.radius,
        drawn.exact,
        mechanism.covers_timing,
        drawn_as(header.arithmetic, mechanism, ball, calibration),
        error_exact=forecast.exact,
    )


def placed_forecast(chosen: Chosen, ball: Ball, project: bool = True) -> Forecast:
    """Return what to expect of the point that is released: draws are moved into the ball, but for those of baselines.

    Parameters
    ----------
    chosen : the mechanism, its scale and what to expect of its draw
    ball : the public ball, or the whole space
    project : whether the draw is moved into the ball
    """
    mechanism, _, drawn = chosen
    return drawn.moved_into(ball) if project and not (ball.is_whole or mechanism.baseline) else drawn


def additive_step(
    statistic: Statistic,
    header: Header,
    calibration: Calibration,
    error: float | None,
    most: float | None,
    exact: bool = True,
) -> Step:
    """Return the draw of numbers with noise.

    Parameters
    ----------
    statistic, header, calibration : which the draw is of, the question and the noise
    error, most : the error to expect, and the size that it is held against
    exact : whether the scale is the one to come, and not a bound
    """
    arithmetic = FLOAT if header.arithmetic == FLOAT else EXACT
    made = calibration
    return Step(
        statistic.name, made.mechanism, made.privacy, made.scale, made.rule, error, most, exact, arithmetic=arithmetic
    )


# -------------------------------------------------------------------- noise that is added to numbers (theory: averages)


ADDITIVE = ("laplace", "gaussian")
"""The laws by name: density proportional to exp(-|z|/scale), and the normal one."""
# The squares of larger numbers are no doubles.
_LARGEST_SCALE = 1e150


def additive(bound: Sensitivity, share: Promise, mechanism: object = "auto") -> Calibration:
    """Return the noise that hides a change of this length: Laplace's for pure promises, else normal.

    Examples
    --------
    >>> bound = Sensitivity(0.5, "average", "tight", "averages")
    >>> additive(bound, PureDP(2.0)).scale
    0.25
    """
    pure = isinstance(share, PureDP)
    law = ADDITIVE[0 if pure else 1]
    if mechanism not in ("auto", *ADDITIVE):
        raise InvalidArgumentError(f'`mechanism` must be "auto", "laplace" or "gaussian", got {shown(mechanism)}.')
    if mechanism not in ("auto", law):
        raise PromiseError(
            f'mechanism "{mechanism}" cannot keep {share!r}: numbers get Laplace noise under pure promises and '
            'Gaussian noise under others. Leave it at "auto".'
        )
    scale = laplace_scale(bound.value, share) if isinstance(share, PureDP) else gaussian_scale(bound.value, share)
    return Calibration(law, share, scale, bound, "Delta/epsilon" if pure else "Gaussian")


def additive_forecast(calibration: Calibration, size: int) -> Forecast:
    """Return the law of the length of such noise on a vector of `size` numbers: exact.

    Examples
    --------
    >>> bound = Sensitivity(0.5, "average", "tight", "averages")
    >>> round(additive_forecast(additive(bound, PureDP(2.0)), 3).mean, 6)  # three times the scale
    0.75
    """
    law = RiemannianLaplace if calibration.mechanism == ADDITIVE[0] else RiemannianGaussian
    return Forecast(law(Euclidean(size), np.zeros(size), calibration.scale).radius, exact=True)


def refuse_overflow(*scales: float) -> None:
    """Refuse noise whose square no double can hold, before anything is spent."""
    if not max(scales) < _LARGEST_SCALE:
        raise PromiseError(
            f"noise of scale {max(scales):.3g} is beyond double precision. Use more units, a weaker promise or a "
            "smaller ball."
        )
