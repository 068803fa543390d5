"""Products of directions from a released mean, of which principal directions are made (theory: pga)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import WEIGHT, FeatureMap, Signs, computed_diameter
from dpmanifold.frechet import UnitPoints
from dpmanifold.records import LONGEST_VECTOR
from dpmanifold.release import Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind
from dpmanifold.stats.chain import MomentsProgram
from dpmanifold.stats.moments import REFERENCE, Moment
from dpmanifold.stats.program import Program
from dpmanifold.stats.ranges import Limits, limits_of_features

PROOF = "pga"
# Fixed in advance, as shares of mu^2 (or rho): the mean, the directions and the variances along them.
COMPONENT_SHARES = (0.15, 0.7, 0.15)


# How much products of directions count against directions, whose mean is only subtracted.
_WEIGHT = 10.0
# No entry of a direction or of its weighted products is larger.
_LARGEST = 4.0


class FeaturesAboutMean(Moment):
    """The mean of a feature map about a released mean: the numbers are released as they are."""

    kind = Kind.VECTOR
    feature_map: FeatureMap

    def size(self, ball: Ball) -> int:
        """Return how many features there are."""
        return self.feature_map.size(ball.frame.dim)

    def sensitivity(self, ball: Ball, n: int, away: float) -> Sensitivity:
        """Bound how far one of n units moves it, the same wherever the mean is: features have a length of their own."""
        dim = ball.frame.dim
        apart = computed_diameter(self.feature_map, dim)
        return sensitivity.of_average(self.feature_map.longest(dim), n, self.name, PROOF, diameter=apart)

    def value(self, numbers: FloatArray, details: dict[str, float]) -> FloatArray:
        """Return the numbers as they are."""
        return np.asarray(numbers)

    def limits_of(self, ball: Ball, reach: float, before: Release | None) -> Limits:
        """Return what means of the features can be."""
        return limits_of_features(self.feature_map, ball.frame.dim)


class SignMoments(FeaturesAboutMean):
    """The means of u and of u u', u = v/|v| and v the coordinates of a unit at a released mean: the sign covariance.

    Its eigenvectors are the principal directions where the population is elliptical about its mean, in the same order
    (theory: pga). No radius is in it: how far units are away does not count. The mean of u, which is 0 about
    the middle of an elliptical population, undoes what noise on the released mean does to the products.

    Its value has d + d(d+1)/2 numbers: the mean of u, and vecd of that of u u' times the root of the weight.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> X = np.random.default_rng(0).normal(0.0, [1.0, 0.2], (2000, 2))
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 5.0, source="the range of the scale")
    >>> release = dpm.private_statistic(X, ball, dpm.GDP(1.0), statistic="signs", units=dpm.EACH_RECORD)
    >>> len(release.value), dpm.verify(release).ok
    (5, True)
    """

    name = "signs"
    words = "directions from a released mean and their products, for principal directions"
    details = frozenset({REFERENCE, WEIGHT})
    feature_map = Signs(_WEIGHT)

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Plan the mean and this moment."""
        refuse_long(self.name, self.size(header.ball), header.ball)
        return MomentsProgram(header, COMPONENT_SHARES[:2], (self,), refine, mechanism)

    def shape(self, ball: Ball) -> tuple[int, ...]:
        """Return the shape of a value."""
        return (self.size(ball),)

    def largest(self, reach: float) -> float:
        """Return a bound on directions and their weighted products."""
        return _LARGEST

    def options(self) -> dict[str, float]:
        """Return the weight."""
        return {WEIGHT: _WEIGHT}

    def exact(self, points: UnitPoints, at: Array, reach: float) -> FloatArray:
        """Return the means of directions and of their products."""
        frame, signs = points.ball.frame, self.feature_map
        return points.mean_of(
            lambda block: signs.of(np.nan_to_num(frame.log_coords(at, block))), signs.longest(frame.dim)
        )


SIGNS = SignMoments()
STATISTICS.register(SIGNS.name, SIGNS)


def refuse_long(name: str, size: int, ball: Ball) -> None:
    """Refuse more numbers than could be read again, before anything is spent."""
    if size > LONGEST_VECTOR:
        raise InvalidArgumentError(
            f"`ball` must lie in a space of fewer dimensions for {name}, got {ball.space!r}: {size:,} numbers would be "
            f"drawn, and {LONGEST_VECTOR:,} can be read again."
        )
