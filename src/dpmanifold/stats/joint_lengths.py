"""A mean, and the mean squared distance and its square from the ball's centre, in one draw (theory: features)."""

from __future__ import annotations

from typing import Any

from dpmanifold.features import FOURTH_WEIGHT, SQUARE_WEIGHT, Lengths, checked_weight
from dpmanifold.frechet import UnitPoints
from dpmanifold.release import Release
from dpmanifold.statistic import STATISTICS, Header
from dpmanifold.stats.featured import FeatureProgram, FeatureStatistic
from dpmanifold.stats.program import Program
from dpmanifold.stats.refine import SKIPPED

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
