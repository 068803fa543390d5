"""A mean and a second moment about the ball's centre, in one draw (theory: features)."""

from __future__ import annotations

from typing import Any

from dpmanifold.features import WEIGHT, JointMoments
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import ConfidenceRegion
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
