"""Several moments about the ball's centre in one draw (theory: features).

A mean with a second moment, with the mean squared distance and its square, or with all that squared distances from any
point are made of.
"""

from __future__ import annotations

from typing import Any

from dpmanifold.features import (
    DISTANCE_WEIGHTS,
    FOURTH_WEIGHT,
    SQUARE_WEIGHT,
    THIRD_WEIGHT,
    WEIGHT,
    Distances,
    JointMoments,
    Lengths,
    checked_weight,
)
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import ConfidenceRegion, VarianceInterval
from dpmanifold.inference.joint import ABOUT_FRECHET
from dpmanifold.release import Release
from dpmanifold.statistic import STATISTICS, Header
from dpmanifold.stats.featured import FeatureProgram, FeatureStatistic
from dpmanifold.stats.program import Program
from dpmanifold.stats.refine import SKIPPED

FREE_WEIGHT = 0.5
_AIMS = frozenset({ABOUT_FRECHET})


class JointMomentsAboutCenter(FeatureStatistic):
    """The averages of v and of v v', v the units' coordinates at the ball's centre.

    Its value has d + d(d+1)/2 numbers in the data's own units: the average of v, then vecd of that of v v'. With a
    weight of up to 1/2 the second costs nothing: the noise on the first is that of a tangent mean by itself.

    Parameters
    ----------
    weight : how much the products count against the coordinates (theory: features); an option of a release
    about_frechet : whether the mean stands for the Fréchet mean of a curved space, for a region about that

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> X = np.random.default_rng(0).normal([1.0, 2.0], 0.5, (4000, 2))
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 5.0, source="the range of the scale")
    >>> release = dpm.private_statistic(X, ball, dpm.GDP(1.0), statistic="joint moments", units=dpm.EACH_RECORD)
    >>> mean, second = release.value[:2], dpm.linalg.from_vecd(release.value[2:])
    >>> bool(np.abs(mean - [1.0, 2.0]).max() < 0.1)
    True
    >>> covariance = second - np.outer(mean, mean)
    >>> bool(np.abs(covariance - 0.25 * np.eye(2)).max() < 0.3)
    True
    >>> JOINT_MOMENTS.noise_scales(release).round(4)
    array([0.0025, 0.0025, 0.0177, 0.0177, 0.0177])
    """

    name, words = "joint moments", "mean and second moment about the ball's centre, in one draw"
    details = frozenset({WEIGHT}) | SKIPPED | _AIMS

    def __init__(self, weight: float = FREE_WEIGHT, about_frechet: bool = False) -> None:
        joint = JointMoments(weight)
        super().__init__(joint)
        self.weight, self._about_frechet = joint.weight, about_frechet

    def prepared(
        self, header: Header, *, refine: bool = False, weight: float = FREE_WEIGHT, mechanism: Any = "auto"
    ) -> Program[UnitPoints]:
        """Choose the noise, or refuse.

        Parameters
        ----------
        refine : look for a smaller ball first
        weight : how much the products count against the coordinates (theory: features); up to 1/2 is free
        """
        return FeatureProgram(JointMomentsAboutCenter(weight), header, refine, mechanism)

    def stating(self) -> dict[str, float]:
        """Return the weight, and whether the mean stands for the Fréchet mean."""
        return {WEIGHT: self.weight, **(dict.fromkeys(_AIMS, 1.0) if self._about_frechet else {})}

    def as_stated(self, release: Release) -> JointMomentsAboutCenter:
        """Return it with the weight that a release states."""
        return JointMomentsAboutCenter(release.details[WEIGHT], release.details.keys() >= _AIMS)

    def conclusion(self, release: Release) -> ConfidenceRegion:
        """Return the region that can be made of it."""
        return ConfidenceRegion(release)


JOINT_MOMENTS = JointMomentsAboutCenter()
STATISTICS.register(JOINT_MOMENTS.name, JOINT_MOMENTS)


# -------------------------------------------------------------------- lengths


# Those of |v|^2 and |v|^4, which then cost nothing.
FREE_WEIGHTS = (1.5, 1.025)


class LengthsAboutCenter(FeatureStatistic):
    """The averages of v, |v|^2 and |v|^4, v the units' coordinates at the ball's centre.

    Its value has d + 2 numbers in the data's own units. With weights that are free (theory: features) the noise on the
    first d is that of a tangent mean by itself.

    Parameters
    ----------
    square, fourth : how much |v|^2 and |v|^4 count against the coordinates (theory: features); options of a release

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> X = np.random.default_rng(0).normal(0.0, 1.0, (4000, 2))
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 5.0, source="the range of the scale")
    >>> release = dpm.private_statistic(X, ball, dpm.GDP(1.0), statistic="joint lengths", units=dpm.EACH_RECORD)
    >>> bool(abs(release.value[2] - 2.0) < 0.2)
    True
    >>> JOINT_LENGTHS.noise_scales(release).round(4)
    array([0.0025, 0.0025, 0.0102, 0.3087])
    """

    name, words = "joint lengths", "mean, and squared and fourth distance from the ball's centre, in one draw"
    details = frozenset({SQUARE_WEIGHT, FOURTH_WEIGHT}) | SKIPPED

    def __init__(self, square: float = FREE_WEIGHTS[0], fourth: float = FREE_WEIGHTS[1]) -> None:
        lengths = Lengths(square, checked_weight(fourth, "fourth"))
        super().__init__(lengths)
        self.weights = (lengths.square, lengths.fourth)

    def prepared(
        self,
        header: Header,
        *,
        refine: bool = False,
        square: float = FREE_WEIGHTS[0],
        fourth: float = FREE_WEIGHTS[1],
        mechanism: Any = "auto",
    ) -> Program[UnitPoints]:
        """Choose the noise, or refuse.

        Parameters
        ----------
        refine : look for a smaller ball first
        square, fourth : how much |v|^2 and |v|^4 count against the coordinates (theory: features)
        """
        return FeatureProgram(LengthsAboutCenter(square, fourth), header, refine, mechanism)

    def stating(self) -> dict[str, float]:
        """Return the weights."""
        return dict(zip((SQUARE_WEIGHT, FOURTH_WEIGHT), self.weights, strict=True))

    def as_stated(self, release: Release) -> LengthsAboutCenter:
        """Return it with the weights that a release states."""
        return LengthsAboutCenter(release.details[SQUARE_WEIGHT], release.details[FOURTH_WEIGHT])


JOINT_LENGTHS = LengthsAboutCenter()
STATISTICS.register(JOINT_LENGTHS.name, JOINT_LENGTHS)


# -------------------------------------------------------------------- distances from any point


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
