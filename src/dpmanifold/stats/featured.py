"""Statistics that are averages of features: of coordinates at the ball's centre, by a map with a proven diameter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpmanifold import features
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball, require_ball
from dpmanifold.features import FeatureMap
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import Calibration, Forecast, usual
from dpmanifold.registry import is_own
from dpmanifold.release import Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import Header, Kind, Step
from dpmanifold.stats.averaged import AveragedStatistic, AverageProgram
from dpmanifold.stats.draws import Hidden, additive, additive_forecast, checked_arithmetic, refuse_overflow
from dpmanifold.stats.moment_chain import gaussian
from dpmanifold.stats.program import Drawing, Program
from dpmanifold.stats.ranges import Limits, limits_of_features
from dpmanifold.stats.refine import Refinement, Wanted


class FeatureStatistic(AveragedStatistic):
    """The average of a feature map of the units' coordinates at the ball's centre, by Gaussian noise.

    The value is in the data's own units: the first `dim` numbers are the average of the coordinates, in the basis of
    the ball's frame. Noise is for the map's proven diameter, not for twice its bound.

    Parameters
    ----------
    features : the map
    """

    kind = Kind.VECTOR
    proof = "features"
    error_of = "mean"

    def __init__(self, features: FeatureMap) -> None:
        self.features = features

    # ---------------------------------------------------------------- the average

    def reach(self, ball: Ball) -> float:
        """Return what coordinates are cut to, and count as shares of: the radius, unless a subclass says otherwise."""
        return ball.radius

    def size(self, ball: Ball) -> int:
        """Return how many features there are."""
        return self.features.size(ball.frame.dim)

    def bound(self, ball: Ball) -> float:
        """Return the longest features."""
        return self.features.longest(ball.frame.dim)

    def per_unit(self, block: Array, ball: Ball) -> FloatArray:
        """Return the features of clipped coordinates."""
        return self.features.of(features.coordinates(block, ball))

    @property
    def is_own(self) -> bool:
        """Whether statistic and map are the library's own."""
        return is_own(self) and is_own(self.features)

    def average(self, points: UnitPoints) -> FloatArray:
        """Return their average: nothing is cut to the bound, as the diameter is the map's own."""
        ball = points.ball
        return points.mean_of(lambda block: self.seen(block, ball), self.bound(ball))

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Bound the change of the average: the same for all balls, as coordinates are over the radius."""
        return features.sensitivity_of(self.features, ball.frame.dim, n, self.name)

    def value(self, numbers: FloatArray, ball: Ball) -> FloatArray:
        """Return the noisy average in the data's own units."""
        return numbers * self.features.units(ball.frame.dim, self.reach(ball))

    def numbers(self, value: Any, ball: Ball) -> FloatArray:
        """Return the average that a value stands for."""
        return super().numbers(value, ball) / self.features.units(ball.frame.dim, self.reach(ball))

    # ---------------------------------------------------------------- asking

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Choose the noise, and whether to look for a smaller ball first, or refuse."""
        return FeatureProgram(self, header, refine, mechanism)

    def limits_of(self, ball: Ball) -> Limits:
        """Return what is known of averages of the features, block by block."""
        return limits_of_features(self.features, ball.frame.dim)

    # ---------------------------------------------------------------- for people

    def error(self, ball: Ball, calibration: Calibration) -> Forecast:
        """Return the law of the error of the first part, the average of the coordinates, in the data's units."""
        return additive_forecast(replace(calibration, scale=calibration.scale * ball.radius), ball.frame.dim)

    def noise_scales(self, release: Release) -> FloatArray:
        """Return the standard deviation of the noise on every number, in the data's own units."""
        stated = self.as_stated(release)
        return release.scale * stated.features.units(release.ball.frame.dim, stated.reach(release.ball))

    def range(self, ball: Ball) -> float | None:
        """Return the radius: noise on the coordinates as large leaves nothing."""
        return ball.radius

    def notes(self, release: Release) -> list[str]:
        """Say what scale and error are about, besides what is said of every average."""
        about = (
            "scale and sensitivity are of coordinates over the ball's radius; the error is that of the first "
            f"{release.ball.frame.dim} numbers, the average of the coordinates at the ball's centre"
        )
        half = not release.is_swamped and release.noise_error() >= release.ball.radius / 2
        large = "the noise on the mean is half the ball or more: the public centre may well be the better answer"
        return [about, *super().notes(release), *([large] if half else [])]


class FeatureProgram(AverageProgram):
    """A smaller ball if one was asked for, and one draw in it.

    Parameters
    ----------
    statistic : with the options that were asked for
    """

    statistic: FeatureStatistic

    def __init__(self, statistic: FeatureStatistic, header: Header, refine: bool, mechanism: Any = "auto") -> None:
        ball, n = header.ball, header.n
        require_ball(ball)
        checked_arithmetic(header.arithmetic)
        statistic.refuse_wrong_words(ball)
        if not statistic.is_own:  # a stranger's is tried first
            statistic.refuse_wrong_map(ball)
        # The tangent mean's noise is that of the first part, or in proportion to it.
        self._refinement = Refinement(
            header, gaussian(header.privacy), refine, Wanted(usual("tangent", noise="gaussian").name)
        )
        calibration = additive(statistic.sensitivity(ball, n), self._refinement.rest, mechanism)
        # A smaller ball has smaller units: what can be written here can be written there.
        largest = float(statistic.features.units(ball.frame.dim, ball.radius).max())
        refuse_overflow(max(1.0, calibration.scale) * largest)
        super().__init__(statistic, header, calibration)

    def steps(self) -> tuple[Step, ...]:
        """Return the draws; the features' in the public ball, where a smaller one is looked for first."""
        return (*self._refinement.steps(), *super().steps())

    def draws(self, units: Hidden[Any]) -> Drawing[Release]:
        """Find a ball if that was planned, and draw in it: the scale, over the radius, is the same in every ball."""
        ball, moved, before = yield from self._refinement.find(units)
        return (
            yield from self.statistic.draws(
                moved, self.header.inside(ball), self.calibration, before, self._refinement.details
            )
        )
