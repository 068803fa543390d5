"""What squared distances from any point are made of, about the ball's centre, in one draw (theory: features)."""

from __future__ import annotations

from typing import Any

from dpmanifold.features import DISTANCE_WEIGHTS, FOURTH_WEIGHT, SQUARE_WEIGHT, THIRD_WEIGHT, WEIGHT, Distances
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import VarianceInterval
from dpmanifold.release import Release
from dpmanifold.statistic import STATISTICS, Header
from dpmanifold.stats.featured import FeatureProgram, FeatureStatistic
from dpmanifold.stats.program import Program
from dpmanifold.stats.refine import SKIPPED


class DistancesAboutCenter(FeatureStatistic):
    """The averages of v, v v', |v|^2, v |v|^2 and |v|^4, v the units' coordinates at the ball's centre.

    Its value has 2d + d(d+1)/2 + 2 numbers in the data's own units, vecd of the second moment after the mean. On flat
    spaces the mean squared distance from any point, and the mean of its square, follow from them.

    Parameters
    ----------
    square, products, third, fourth : how much |v|^2, v v', v |v|^2 and |v|^4 count against the coordinates (theory:
        features); options of a release

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> X = np.random.default_rng(0).normal(0.0, 1.0, (4000, 2))
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 5.0, source="the range of the scale")
    >>> release = dpm.private_statistic(X, ball, dpm.GDP(1.0), statistic="joint distances", units=dpm.EACH_RECORD)
    >>> bool(abs(release.value[5] - 2.0) < 0.2)
    True
    >>> JOINT_DISTANCES.noise_scales(release).round(4)
    array([0.0032, 0.0032, 0.0323, 0.0323, 0.0323, 0.0086, 0.114 , 0.114 , 0.3606])
    """

    name, words = "joint distances", "mean, and what squared distances from it are made of, in one draw"
    details = frozenset({SQUARE_WEIGHT, WEIGHT, THIRD_WEIGHT, FOURTH_WEIGHT}) | SKIPPED

    def __init__(
        self,
        square: float = DISTANCE_WEIGHTS[0],
        products: float = DISTANCE_WEIGHTS[1],
        third: float = DISTANCE_WEIGHTS[2],
        fourth: float = DISTANCE_WEIGHTS[3],
    ) -> None:
        distances = Distances(square, products, third, fourth)
        super().__init__(distances)
        self.weights = (distances.square, distances.products, distances.third, distances.fourth)

    def prepared(
        self,
        header: Header,
        *,
        refine: bool = False,
        square: float = DISTANCE_WEIGHTS[0],
        products: float = DISTANCE_WEIGHTS[1],
        third: float = DISTANCE_WEIGHTS[2],
        fourth: float = DISTANCE_WEIGHTS[3],
        mechanism: Any = "auto",
    ) -> Program[UnitPoints]:
        """Choose the noise, or refuse.

        Parameters
        ----------
        refine : look for a smaller ball first
        square, products, third, fourth : how much |v|^2, v v', v |v|^2 and |v|^4 count against the coordinates (theory:
            features)
        """
        return FeatureProgram(DistancesAboutCenter(square, products, third, fourth), header, refine, mechanism)

    def stating(self) -> dict[str, float]:
        """Return the weights."""
        return dict(zip((SQUARE_WEIGHT, WEIGHT, THIRD_WEIGHT, FOURTH_WEIGHT), self.weights, strict=True))

    def as_stated(self, release: Release) -> DistancesAboutCenter:
        """Return it with the weights that a release states."""
        stated = release.details
        return DistancesAboutCenter(*(stated[name] for name in (SQUARE_WEIGHT, WEIGHT, THIRD_WEIGHT, FOURTH_WEIGHT)))

    def conclusion(self, release: Release) -> VarianceInterval | None:
        """Return the interval that can be made of it on flat spaces."""
        return VarianceInterval(release) if release.ball.space.is_flat else None


JOINT_DISTANCES = DistancesAboutCenter()
STATISTICS.register(JOINT_DISTANCES.name, JOINT_DISTANCES)
