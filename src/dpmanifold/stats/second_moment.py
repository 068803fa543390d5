"""The second moment about a released mean, of which regions and tests are made (theory section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifold import frechet, sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.features.limits import Cut, in_vecd, of_matrix
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.linalg import from_vecd, to_vecd
from dpmanifold.manifolds.base import shorten
from dpmanifold.release import Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind, Prepared
from dpmanifold.stats.chain import AboutMean, gaussian_mean_recipe, moment_recipes
from dpmanifold.stats.moments import Moment
from dpmanifold.stats.ranges import Limits
from dpmanifold.stats.recipes import EITHER, Recipe

# Fixed in advance, as shares of mu^2 (or rho): the mean and the second moment.
REGION_SHARES = (0.8, 0.2)


class SecondMoment(Moment):
    """The mean of v v', v the normal coordinates at a released mean: with that mean, a confidence region."""

    name, words, kind = "second moment", "second moment about a released mean, for a confidence region", Kind.MATRIX
    power = 2

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Prepared:
        """Plan the mean and this moment."""
        return AboutMean(header, REGION_SHARES, (self,), refine, mechanism)

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
            lambda block: frechet.outer_products(shorten(frame.log_coords(at, block), reach)), reach**self.power
        )

    def value(self, numbers: FloatArray, details: dict[str, float]) -> FloatArray:
        """Return the symmetric matrix."""
        return from_vecd(numbers)

    def impossible(self, value: FloatArray) -> str:
        """Say that it is symmetric, where it is not."""
        return "" if np.array_equal(value, value.T) else f"a {self.name} is symmetric"

    def numbers(self, release: Release) -> FloatArray | None:
        """Return vecd of the matrix."""
        return to_vecd(np.asarray(release.value, dtype=np.float64))

    def limits_of(self, release: Release) -> Limits:
        """Return what the mean of v v' can be, |v| being at most the reach."""
        most = self._reach(release) ** 2

        def cuts(numbers: FloatArray) -> list[Cut]:
            return of_matrix("second moment", numbers, slice(None), most=most)

        return Limits(*in_vecd(release.ball.frame.dim, most=most), cuts)

    def recipes(self) -> Sequence[Recipe]:
        """Return: a mean, then this; also in a smaller ball, and for either neighbours."""
        return moment_recipes(self, REGION_SHARES, gaussian_mean_recipe(), EITHER)

    def conclusion(self, release: Release) -> ConfidenceRegion:
        """Return the region that it is released for."""
        return ConfidenceRegion(release)


SECOND_MOMENT = SecondMoment()
STATISTICS.register(SECOND_MOMENT.name, SECOND_MOMENT)
