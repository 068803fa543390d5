"""Products of directions from a released mean, of which principal directions are made (theory: components)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import FeatureMap, Signs, computed_diameter
from dpmanifold.frechet import UnitPoints
from dpmanifold.records import LONGEST_VECTOR
from dpmanifold.release import Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Prepared
from dpmanifold.stats.chain import AboutMean, gaussian_mean_recipe, moment_recipes
from dpmanifold.stats.recipes import EITHER, Recipe
from dpmanifold.stats.second_moment import SecondMoment

PROOF = "docs/theory/components.md"
# Fixed in advance, as shares of mu^2 (or rho): the mean, the directions and the variances along them.
COMPONENT_SHARES = (0.15, 0.7, 0.15)


class Directions(SecondMoment):
    """The mean of u u', u = v/|v| and v the coordinates of a unit at a released mean: the sign covariance.

    Its eigenvectors are the principal directions where the population is elliptical about its mean, in the same order
    (theory: components). No radius is in it: how far units are away does not count.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> X = np.random.default_rng(0).normal(0.0, [1.0, 0.2], (2000, 2))
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 5.0, source="the range of the scale")
    >>> release = dpm.private_statistic(X, ball, dpm.GDP(1.0), statistic="directions", units=dpm.EACH_RECORD)
    >>> bool(abs(np.linalg.eigh(release.value)[1][0, -1]) > 0.99)
    True
    """

    name, words = "directions", "products of directions from a released mean, for principal directions"
    power = 0

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Prepared:
        """Plan the mean and this moment."""
        refuse_long(self.name, self.size(header.ball), header.ball)
        return AboutMean(header, COMPONENT_SHARES[:2], (self,), self.name, refine, mechanism)

    def sensitivity(self, ball: Ball, n: int, away: float) -> Sensitivity:
        """Bound its change in the Frobenius norm: the root of 2 over n, wherever the mean is."""
        return of_features(Signs(), ball.frame.dim, n, self.name)

    def exact(self, points: UnitPoints, at: Array, reach: float) -> FloatArray:
        """Return vecd of the mean of u u'."""
        frame, signs = points.ball.frame, Signs()
        return points.mean_of(lambda block: signs.of(np.nan_to_num(frame.log_coords(at, block))), 1.0)

    def recipes(self) -> Sequence[Recipe]:
        """Return: a mean, then this; also in a smaller ball."""
        return moment_recipes(self, COMPONENT_SHARES[:2], gaussian_mean_recipe(), EITHER)

    def conclusion(self, release: Release) -> None:
        """Return None: without variances along them directions say little."""


DIRECTIONS = Directions()
STATISTICS.register(DIRECTIONS.name, DIRECTIONS)


def of_features(features: FeatureMap, dim: int, n: int, name: str) -> Sensitivity:
    """Bound how far one of n units moves the average of features about a released mean."""
    apart = computed_diameter(features, dim)
    return sensitivity.of_average(features.longest(dim), n, name, PROOF, diameter=apart)


def refuse_long(name: str, size: int, ball: Ball) -> None:
    """Refuse more numbers than could be read again, before anything is spent."""
    if size > LONGEST_VECTOR:
        raise InvalidArgumentError(
            f"ball must lie in a space of fewer dimensions for {name}, got {ball.space!r}: {size:,} numbers would be "
            f"drawn, and {LONGEST_VECTOR:,} can be read again."
        )
