"""The fourth moment about a released mean, of which intervals are made (theory section 6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import VarianceInterval
from dpmanifold.noise.tails import Tail
from dpmanifold.release import Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind
from dpmanifold.stats.chain import MomentsProgram
from dpmanifold.stats.moments import Moment, mean_power
from dpmanifold.stats.program import Program
from dpmanifold.stats.ranges import Limits, near
from dpmanifold.stats.variance import VARIANCE

# Fixed in advance, as shares of mu^2 (or rho): the mean, the variance and the fourth moment.
INTERVAL_SHARES = (0.25, 0.55, 0.2)


class FourthMoment(Moment):
    """The mean fourth power of the distance from a released mean: with the variance about it, an interval."""

    name, words, kind = "fourth moment", "fourth moment about a released mean, for a confidence interval", Kind.NUMBER
    power = 4

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Plan the mean, the variance and this moment."""
        return MomentsProgram(header, INTERVAL_SHARES, (VARIANCE, self), refine, mechanism)

    def sensitivity(self, ball: Ball, n: int, away: float) -> Sensitivity:
        """Bound its change."""
        return sensitivity.of_fourth_moment(ball, n, away=away)

    def exact(self, points: UnitPoints, at: Array, reach: float) -> FloatArray:
        """Return the mean fourth power."""
        return mean_power(points, at, reach, self.power)

    def value(self, numbers: FloatArray, details: dict[str, float]) -> float:
        """Return the number."""
        return float(numbers[0])

    def limits_of(self, ball: Ball, reach: float, before: Release | None) -> Limits:
        """Return the range that the released variance leaves: its square at least, and the squared reach times it."""
        assert before is not None
        most, (drawn,) = reach**2, before.draws
        low, high = near(float(drawn.numbers[0]), Tail(before.mechanism, before.scale, 1, drawn.grid))
        return Limits(np.full(1, max(low, 0.0) ** 2), np.full(1, most * min(max(high, 0.0), most)))

    def conclusion(self, release: Release) -> VarianceInterval:
        """Return the interval that it is released for."""
        return VarianceInterval(release)


FOURTH_MOMENT = FourthMoment()
STATISTICS.register(FOURTH_MOMENT.name, FOURTH_MOMENT)
