"""Moments about a mean that Gaussian noise hides: what regions, intervals and tests rest on (theory 6, 7).

A moment is the average of a power of the units' distances from a point that is public or was released, or of the
products of their coordinates about it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifold import frechet, sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features.base import Cut, in_vecd, of_matrix
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.linalg import from_vecd, outer_products
from dpmanifold.manifolds.base import shorten
from dpmanifold.mechanisms import choose, get, usual
from dpmanifold.privacy import Promise, PromiseError, PureDP
from dpmanifold.release import Drawn, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind, Statistic, Step
from dpmanifold.stats.draws import (
    Chosen,
    Hidden,
    VectorDraw,
    additive,
    additive_forecast,
    additive_step,
    mean_step,
    refuse_inexact,
    refuse_overflow,
)
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.mean import MEAN, draw_mean
from dpmanifold.stats.program import Drawing, Program, step_of, together
from dpmanifold.stats.ranges import Limits
from dpmanifold.stats.refine import Refinement, Wanted


@dataclass(frozen=True)
class Chain:
    """A mean by Gaussian noise and moments about it, each with what came before as its step.

    Attributes
    ----------
    header : what it is about; its ball may be one that was released before
    rest : what all of them may cost together; a ball that was found before is not in it
    weights, shares : how that is shared out
    moments : in their order
    chosen : the mechanism of the mean
    """

    header: Header
    rest: Promise
    weights: tuple[float, ...]
    moments: tuple[Moment, ...]
    shares: tuple[Promise, ...]
    chosen: Chosen

    @staticmethod
    def make(header: Header, rest: Promise, weights: tuple[float, ...], moments: tuple[Moment, ...]) -> Chain:
        """Choose, and refuse what double precision cannot hold."""
        shares = tuple(divide(gaussian(rest), weights))
        chosen = choose(mean_name(header.ball), header.ball, header.n, shares[0])
        found = Chain(header, rest, weights, moments, shares, chosen)
        refuse_overflow(chosen[1].scale, *(step.scale for step in found._moment_steps()))
        return found

    def suited(self, ball: Ball) -> Chain:
        """Return the chain on a ball that was released, or this one where that does not suit. Never raises."""
        if ball is self.header.ball:
            return self
        return with_fallback(
            lambda: Chain.make(self.header.inside(ball), self.rest, self.weights, self.moments), lambda: self,
            InvalidArgumentError, PromiseError,
        )  # fmt: skip

    def _moment_steps(self) -> tuple[Step, ...]:
        """Return the draws of the moments, about a mean at the edge: the largest."""
        pairs, radius = zip(self.moments, self.shares[1:], strict=True), self.header.ball.radius
        return tuple(moment.step(self.header, share, radius, exact=False) for moment, share in pairs)

    def steps(self) -> tuple[Step, ...]:
        """Return all draws, as public numbers foresee them."""
        return (mean_step(MEAN, self.header, self.chosen), *self._moment_steps())

    def draws(
        self, units: Hidden[UnitPoints], before: tuple[Release, ...], details: dict[str, float]
    ) -> Drawing[Release]:
        """Draw the mean, with what came before as its steps, then the moments about it."""
        paid = [step.privacy for step in before]

        def so_far(count: int) -> Header:
            every = count == len(self.shares)
            return self.header if every else self.header.promising(together([*paid, *self.shares[:count]]))

        last = mean = yield from draw_mean(units, so_far(1), self.chosen, True, before, details)
        for place, moment in enumerate(self.moments, start=1):
            extra = {EXCESS: 0.0} if EXCESS in moment.details else None
            about = np.asarray(mean.value)
            last = yield from moment.after(last).draws(
                units, so_far(place + 1), self.shares[place], about, (last,), extra
            )
        return last


class MomentsProgram(Program[UnitPoints]):
    """A smaller ball if one was asked for, a mean, and moments about it."""

    def __init__(
        self,
        header: Header,
        weights: tuple[float, ...],
        moments: tuple[Moment, ...],
        refine: bool = False,
        mechanism: object = "auto",
    ) -> None:
        ball = header.ball
        if mechanism not in ("auto", mean_name(ball)):
            raise InvalidArgumentError(f'`mechanism` must be "auto" or "{mean_name(ball)}" there, got {mechanism!r}.')
        require_ball(ball)
        self.header = header
        self._refinement = Refinement(header, gaussian(header.privacy), refine, Wanted(mean_name(ball)))
        self._chain = Chain.make(header, self._refinement.rest, weights, moments)
        refuse_inexact(header.arithmetic, self._chain.chosen[0], ball, self._chain.chosen[1])

    def steps(self) -> tuple[Step, ...]:
        """Return all draws; in the public ball, where a smaller one is looked for first."""
        return (*self._refinement.steps(), *self._chain.steps())

    def draws(self, units: Hidden[UnitPoints]) -> Drawing[Release]:
        """Draw them one after the other."""
        ball, moved, before = yield from self._refinement.find(units)
        chain = self._chain.suited(ball)
        there = units if chain is self._chain else moved
        return (yield from chain.draws(there, before, self._refinement.details))


def gaussian(privacy: Promise) -> Promise:
    """Return a promise that Gaussian noise can keep, or refuse a pure one."""
    if isinstance(privacy, PureDP):
        raise PromiseError(
            f"privacy {privacy!r} cannot be kept by what was asked for: it needs Gaussian noise, which keeps no pure "
            "promise. Ask for GDP, ZCDP or ApproxDP."
        )
    return privacy


def mean_name(ball: Ball) -> str:
    """Return the Gaussian mechanism of a space."""
    return usual(noise="gaussian", about="center" if ball.space.is_hadamard else "mean").name


# -------------------------------------------------------------------- averages of a power of the distance


REFERENCE, EXCESS = "reference_to_center", "excess_subtracted"


class Moment(Statistic):
    """The mean of a power of the distances from a point: what differs from one moment to the next is below."""

    details = frozenset({REFERENCE})
    projected: bool = False
    """Whether the value is kept in its range."""

    @abstractmethod
    def sensitivity(self, ball: Ball, n: int, away: float) -> Sensitivity:
        """Bound how far one unit moves it, about a point this far from the ball's centre."""

    @abstractmethod
    def exact(self, points: UnitPoints, at: Array, reach: float) -> FloatArray:
        """Return the moment itself about a point of the frame, one axis. Not private."""

    @abstractmethod
    def value(self, numbers: FloatArray, details: dict[str, float]) -> Any:
        """Return what people get from the noisy numbers: post-processing."""

    def limits_of(self, ball: Ball, reach: float, before: Release | None) -> Limits:
        """Return what a moment can be about a point that no unit is farther from than `reach`.

        `before` is the moment that was released before it, if any was.
        """
        return Limits(np.zeros(1), np.full(1, self.largest(reach)))

    def size(self, ball: Ball) -> int:
        """Return how many numbers it has."""
        return 1

    @property
    def stating(self) -> Moment:
        """The moment that releases state: itself, as it is registered, unless it was given options."""
        return self

    def largest(self, reach: float) -> float:
        """Return a public bound on the size of its numbers, for the grid: a power of the reach."""
        return reach**self.power

    def options(self) -> dict[str, float]:
        """Return what a release states of the options."""
        return {}

    def after(self, step: Release) -> Moment:
        """Return the moment as the step before it makes it: itself, unless that says what to take it along."""
        return self

    def draws(
        self,
        units: Hidden[UnitPoints],
        header: Header,
        share: Promise,
        about: Array,
        steps: tuple[Release, ...] = (),
        details: dict[str, float] | None = None,
    ) -> Drawing[Release]:
        """Draw it about a point of the space that is public or was released."""
        ball = header.ball
        at, apart = located(ball, about)
        # Longer than the bound allows would be rounding: cut, so that the bound holds for what is computed.
        reach = sensitivity.reach(ball, away=apart)
        calibration = additive(self.sensitivity(ball, header.n, apart), share)
        hidden = units.then(lambda points: self.exact(points, at, reach), lambda points: np.zeros(self.size(ball)))
        before = steps[0] if steps else None
        drawn: Drawn = yield VectorDraw(
            hidden, calibration, self.largest(reach), lambda: self.limits_of(ball, reach, before)
        )
        stating = {**(details or {}), **self.options(), REFERENCE: apart}
        return (
            yield from step_of(Release.of(
                self.stating, self.value(drawn.numbers, stating), header, calibration, (drawn,), steps, stating,
                projected=self.projected, tol=frechet.default_tol(ball, header.n),
            ))
        )  # fmt: skip

    def step(self, header: Header, share: Promise, away: float, exact: bool) -> Step:
        """Return its draw as public numbers foresee it, about a point at most this far from the centre."""
        calibration = additive(self.sensitivity(header.ball, header.n, away), share)
        refuse_overflow(calibration.scale)
        error = additive_forecast(calibration, self.size(header.ball)).mean
        most = self.largest(sensitivity.reach(header.ball, away=away))
        return additive_step(self, header, calibration, error, most, exact)


def located(ball: Ball, point: Array) -> tuple[Array, float]:
    """Return a released point in the ball's frame and its distance from the origin there. Never raises."""
    return with_fallback(lambda: ball.locate(point), lambda: (ball.frame.origin, 0.0))


def excess_about(mean: Release, ball: Ball) -> float:
    """Return what noise on a released mean adds to a moment about it, where a simple correction is right."""
    forecast = get(mean.mechanism).forecast(mean.ball, mean.n, mean.calibration)
    # Moving the draw into the ball cuts noise that is large against it: no simple correction is right then.
    small = forecast.exact and forecast.second_moment <= ball.radius**2 / 4
    return forecast.second_moment if small else 0.0


def mean_power(points: UnitPoints, at: Array, reach: float, power: int) -> FloatArray:
    """Return the mean of a power of the units' distances from a point of the frame, none counted beyond `reach`."""
    frame = points.ball.frame
    return points.mean_of(lambda block: np.minimum(frame.dist(at, block), reach)[:, None] ** power, reach**power)


# -------------------------------------------------------------------- the second moment


# Fixed in advance, as shares of mu^2 (or rho): the mean and the second moment.
REGION_SHARES = (0.8, 0.2)


class SecondMoment(Moment):
    """The mean of v v', v the normal coordinates at a released mean: with that mean, a confidence region."""

    name, words, kind = "second moment", "second moment about a released mean, for a confidence region", Kind.MATRIX
    power = 2

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Plan the mean and this moment."""
        return MomentsProgram(header, REGION_SHARES, (self,), refine, mechanism)

    def sensitivity(self, ball: Ball, n: int, away: float) -> Sensitivity:
        """Bound its change in the Frobenius norm."""
        return sensitivity.of_second_moment(ball, n, away=away)

    def size(self, ball: Ball) -> int:
        """Return the entries of a symmetric matrix."""
        return ball.frame.dim * (ball.frame.dim + 1) // 2

    def exact(self, points: UnitPoints, at: Array, reach: float) -> FloatArray:
        """Return vecd of the mean of v v'."""
        frame = points.ball.frame
        return points.mean_of(
            lambda block: outer_products(shorten(frame.log_coords(at, block), reach)), reach**self.power
        )

    def value(self, numbers: FloatArray, details: dict[str, float]) -> FloatArray:
        """Return the symmetric matrix."""
        return from_vecd(numbers)

    def limits_of(self, ball: Ball, reach: float, before: Release | None) -> Limits:
        """Return what the mean of v v' can be, |v| being at most the reach."""
        most = reach**2

        def cuts(numbers: FloatArray) -> list[Cut]:
            return of_matrix("second moment", numbers, slice(None), most=most)

        return Limits(*in_vecd(ball.frame.dim, most=most), cuts)

    def conclusion(self, release: Release) -> ConfidenceRegion:
        """Return the region that it is released for."""
        return ConfidenceRegion(release)


SECOND_MOMENT = SecondMoment()
STATISTICS.register(SECOND_MOMENT.name, SECOND_MOMENT)
