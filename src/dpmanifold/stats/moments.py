"""Moments: averages of a power of the units' distances from a point that is public or was released (theory 6, 7).

What the variance, the second and the fourth moment share.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from dpmanifold import frechet, sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import get
from dpmanifold.privacy import Promise
from dpmanifold.release import Drawn, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import Header, Statistic, Step
from dpmanifold.stats.additive import additive, additive_forecast, refuse_overflow
from dpmanifold.stats.draws import Hidden, VectorDraw, additive_step
from dpmanifold.stats.program import Drawing, step_of
from dpmanifold.stats.ranges import Limits

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
