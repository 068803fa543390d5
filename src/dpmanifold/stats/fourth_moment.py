"""The fourth moment about a released mean, of which intervals are made (theory section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import VarianceInterval
from dpmanifold.noise.tails import Tail
from dpmanifold.release import NEIGHBOURS, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind, Prepared
from dpmanifold.stats.chain import AboutMean, gaussian_mean_recipe, moment_recipes
from dpmanifold.stats.moments import Moment, mean_power
from dpmanifold.stats.ranges import Limits, near
from dpmanifold.stats.recipes import Recipe
from dpmanifold.stats.variance import VARIANCE, variance_recipe

# Fixed in advance, as shares of mu^2 (or rho): the mean, the variance and the fourth moment.
INTERVAL_SHARES = (0.25, 0.55, 0.2)


class FourthMoment(Moment):
    """The mean fourth power of the distance from a released mean: with the variance about it, an interval."""

    name, words, kind = "fourth moment", "fourth moment about a released mean, for a confidence interval", Kind.NUMBER
    power = 4

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Prepared:
        """Plan the mean, the variance and this moment."""
        return AboutMean(header, INTERVAL_SHARES, (VARIANCE, self), refine, mechanism)

    def sensitivity(self, ball: Ball, n: int, away: float) -> Sensitivity:
        """Bound its change."""
        return sensitivity.of_fourth_moment(ball, n, away=away)

    def exact(self, points: UnitPoints, at: Array, reach: float) -> FloatArray:
        """Return the mean fourth power."""
        return mean_power(points, at, reach, self.power)

    def value(self, numbers: FloatArray, details: dict[str, float]) -> float:
        """Return the number."""
        return float(numbers[0])

    def limits_of(self, release: Release) -> Limits:
        """Return the range that the released variance leaves: its square at least, and the squared reach times it."""
        most, variance = self._reach(release) ** 2, release.steps[0]
        drawn = VARIANCE.as_drawn(variance)
        if drawn is None:
            return super().limits_of(release)
        low, high = near(float(drawn[0]), Tail(variance.mechanism, variance.scale, 1, variance.grid))
        return Limits(np.full(1, max(low, 0.0) ** 2), np.full(1, most * min(max(high, 0.0), most)))

    def recipes(self) -> Sequence[Recipe]:
        """Return: a mean, a variance, then this; also in a smaller ball."""
        step = variance_recipe(INTERVAL_SHARES[:2], gaussian_mean_recipe(), corrected=False)
        return moment_recipes(self, INTERVAL_SHARES, step, (NEIGHBOURS,))

    def conclusion(self, release: Release) -> VarianceInterval:
        """Return the interval that it is released for."""
        return VarianceInterval(release)


FOURTH_MOMENT = FourthMoment()
STATISTICS.register(FOURTH_MOMENT.name, FOURTH_MOMENT)
