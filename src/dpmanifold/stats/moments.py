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
from dpmanifold.mechanisms import Calibration, get
from dpmanifold.noise.exact import grid_of
from dpmanifold.noise.tails import Tail
from dpmanifold.privacy import Promise
from dpmanifold.release import EXACT, FLOAT, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import Header, Kind, Statistic, Step
from dpmanifold.stats.additive import additive, additive_forecast, refuse_overflow
from dpmanifold.stats.draws import Bits, noisy, stated
from dpmanifold.stats.grids import DOES_NOT_FOLLOW, DRAWN_ROUNDING
from dpmanifold.stats.ranges import QUADRATURE, Limits, rounding_of
from dpmanifold.stats.recipes import Recipe

REFERENCE, EXCESS = "reference to centre", "excess subtracted"


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

    def as_drawn(self, release: Release) -> FloatArray | None:
        """Return the numbers that were drawn, of doubles those that the value was made of."""
        return self.numbers(release) if release.drawn is None else release.drawn

    def numbers(self, release: Release) -> FloatArray | None:
        """Return the noisy numbers that the value was made of; None where it does not tell."""
        return np.atleast_1d(np.asarray(release.value, dtype=np.float64))

    def limits_of(self, release: Release) -> Limits:
        """Return what a moment about a point at the stated distance can be."""
        return Limits(np.zeros(1), np.full(1, self.largest(self._reach(release))))

    def impossible(self, value: Any) -> str:
        """Say what no value of this kind is, whatever the noise; empty if it is not that."""
        return ""

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

    def release(
        self,
        points: UnitPoints,
        header: Header,
        share: Promise,
        about: Array,
        bits: Bits,
        steps: tuple[Release, ...] = (),
        details: dict[str, float] | None = None,
    ) -> Release:
        """Release it about a point of the space that is public or was released. Never raises."""
        ball = header.ball
        at, apart = located(ball, about)
        # Longer than the bound allows would be rounding: cut, so that the bound holds for what is computed.
        reach = sensitivity.reach(ball, away=apart)
        calibration = additive(self.sensitivity(ball, header.n, apart), share)
        exact = with_fallback(lambda: self.exact(points, at, reach), lambda: np.zeros(self.size(ball)))
        drawn = noisy(exact, calibration.mechanism, calibration.scale, self.largest(reach), bits)
        stating = {**(details or {}), **self.options(), REFERENCE: apart}
        timing = {"timing": steps[0].timing} if steps else {}
        return Release.of(
            self.stating, self.value(drawn.numbers, stating), header, calibration, steps, stating,
            projected=self.projected, tol=frechet.default_tol(ball, header.n), private=bits.private, **timing,
            **stated(drawn),
        )  # fmt: skip

    def step(self, header: Header, share: Promise, away: float, exact: bool) -> Step:
        """Return its draw as public numbers foresee it, about a point at most this far from the centre."""
        calibration = additive(self.sensitivity(header.ball, header.n, away), share)
        refuse_overflow(calibration.scale)
        error = additive_forecast(calibration, self.size(header.ball)).mean
        most = self.largest(sensitivity.reach(header.ball, away=away))
        drawn = FLOAT if header.arithmetic == FLOAT else EXACT
        return Step(
            self.name, calibration.mechanism, share, calibration.scale, calibration.rule, error, most, exact,
            arithmetic=drawn,
        )  # fmt: skip

    # ---------------------------------------------------------------- what verify recomputes

    def calibrated(self, release: Release) -> tuple[Calibration, float]:
        """Return the noise that the stated share and reference ask for; there is none on a point."""
        away = release.details[REFERENCE]
        return additive(self.sensitivity(release.ball, release.n, away), release.share), 0.0

    def tolerance(self, release: Release) -> float:
        """Return the tolerance that means in this ball are solved to."""
        return frechet.default_tol(release.ball, release.n)

    def _reach(self, release: Release) -> float:
        return sensitivity.reach(release.ball, away=release.details[REFERENCE])

    def grid(self, release: Release, calibration: Calibration) -> int | None:
        """Return the exponent of the grid."""
        return grid_of(release.scale, self.largest(self._reach(release)))

    def value_faults(self, release: Release, noise: float) -> list[str]:
        """Return why a moment about a point at the stated distance could not have been drawn."""
        if reason := self.impossible(release.value):
            return [f"value: {reason}"]
        numbers = self.numbers(release)
        return [] if numbers is None else self._faults("value", numbers, release)

    def drawn_faults(self, release: Release, noise: float) -> list[str]:
        """Return whether the draw is too far, or the value not made of it."""
        drawn = release.drawn
        assert drawn is not None
        made = self.value(drawn, release.details)
        same = release.value == made if self.kind is Kind.NUMBER else _alike(release.value, made)
        return self._faults("drawn", drawn, release) + ([] if same else [DOES_NOT_FOLLOW])

    def _faults(self, what: str, numbers: FloatArray, release: Release) -> list[str]:
        tail = Tail(release.mechanism, release.scale, len(numbers), release.grid)
        return self.limits_of(release).faults(what, numbers, tail)

    def details_faults(self, release: Release, recipe: Recipe, shares: list[Promise]) -> list[str]:
        """Return whether it was not taken about the mean that its steps released, on their ball."""
        away, ball = release.details[REFERENCE], release.ball
        excess, found = release.details.get(EXCESS, 0.0), []
        if recipe.step is None:
            right, excess_right = 0 <= away <= ball.radius, 0 <= excess <= ball.radius**2 / 4
        else:
            mean = release.mean_below
            right = abs(away - located(ball, mean.value)[1]) <= rounding_of(ball, mean.value)
            computed = excess_about(mean, ball) if recipe.corrected else 0.0
            excess_right = bool(np.isclose(excess, computed, rtol=QUADRATURE, atol=0))
        if not right:
            found.append("reference to centre: it is not the distance of the point that the moment is about")
        if not excess_right:
            found.append("excess subtracted: it is not what noise on the mean adds")
        return found


def _alike(stated: FloatArray, made: FloatArray) -> bool:
    return bool(np.allclose(stated, made, rtol=DRAWN_ROUNDING, atol=0))


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
