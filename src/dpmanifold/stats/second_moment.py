"""The second moment about a released mean, of which regions and tests are made (theory section 7)."""

from __future__ import annotations

from typing import Any

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.features.base import Cut, in_vecd, of_matrix
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.linalg import from_vecd, outer_products
from dpmanifold.manifolds.base import shorten
from dpmanifold.release import Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind
from dpmanifold.stats.chain import MomentsProgram
from dpmanifold.stats.moments import Moment
from dpmanifold.stats.program import Program
from dpmanifold.stats.ranges import Limits

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
