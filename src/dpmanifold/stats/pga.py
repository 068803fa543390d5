"""Private principal components: directions from signs about a released mean, and variances along them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray, open_fraction, positive_int
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.features import WEIGHT, FeatureMap, Signs, Squares, computed_diameter
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import PrincipalComponents
from dpmanifold.inference.principal_components import COUNT, principal_directions
from dpmanifold.manifolds.vectors import shorten
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.release import Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.serialization import LONGEST_VECTOR
from dpmanifold.statistic import STATISTICS, Header, Kind, Step
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import additive, additive_forecast
from dpmanifold.stats.moment_chain import REFERENCE, Moment, MomentsProgram
from dpmanifold.stats.program import Program
from dpmanifold.stats.query import LEVEL, REFINE, Option, Query
from dpmanifold.stats.ranges import Limits, limits_of_features
from dpmanifold.stats.samples import Units

# Of squares and of their products, which only say how far squares vary: so many balance the noise on both.
_WEIGHT = 1 / 3


PROOF = "pga"
# Fixed in advance, as shares of mu^2 (or rho): the mean, the directions and the variances along them.
COMPONENT_SHARES = (0.15, 0.7, 0.15)


# How much products of directions count against directions, whose mean is only subtracted.
_SIGN_WEIGHT = 10.0
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
    feature_map = Signs(_SIGN_WEIGHT)

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
        return {WEIGHT: _SIGN_WEIGHT}

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


# -------------------------------------------------------------------- the query


def private_pga(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    count: int = 3,
    level: float = 0.95,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> PrincipalComponents:
    """Release the directions in which units vary most about their mean, and how much they do (theory: pga).

    0.15 of the promise pays for the mean, 0.7 for directions and 0.15 for the variances along them. Directions are the
    leading eigenvectors of the mean of u u', u a unit's direction from the released mean: the principal directions
    where the population is elliptical about its mean, and for others a robust kind of them. Scores of units are not
    released: whoever holds records computes their own.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`;
        ApproxDP, ZCDP or GDP
    count : how many components; on a space of fewer dimensions, as many as it has
    level : the confidence of each interval, in (0, 1)
    refine : spend a fifth of the promise on a smaller ball first, as in :func:`private_mean`; variances are then those
        of the population clipped to that ball

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> X = np.random.default_rng(0).normal(0.0, [1.0, 0.5, 0.2], (4000, 3))
    >>> found = private_pga(X, Ball(Euclidean(3), np.zeros(3), 4.0), GDP(1.0), units=EACH_RECORD, count=2)
    >>> low, high = found.variance_intervals[0]
    >>> bool(abs(found.directions[0, 0]) > 0.99), bool(0.7 < low < high < 1.5)
    (True, True)
    """
    level = open_fraction(level, "level")
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    question = PGA.asked(count=count, refine=refine)
    return PrincipalComponents(ask(question, Units(X), ball, privacy, terms).release, level)


class ComponentVariances(FeaturesAboutMean):
    """Means of squared coordinates along released directions, of the rest, and of products of these.

    Its value has k + 2 + (k + 1)(k + 2)/2 numbers for k directions, all over the squared reach: no unit is farther
    from the released mean than that. The first k + 2 add up to 1 but for noise: the last of them is what is missing.

    Parameters
    ----------
    count : how many directions
    weight : how much products of squares count against squares (theory: pga)
    directions : orthonormal rows, (count, d), once they are released
    """

    name = "components"
    words = "variances along released principal directions, for components"
    details = frozenset({REFERENCE, COUNT, WEIGHT})
    feature_map: Squares

    def __init__(self, count: int = 3, weight: float = _WEIGHT, directions: FloatArray | None = None) -> None:
        self.count, self.weight = count, weight
        self.feature_map = Squares(np.zeros((count, 1)) if directions is None else directions, weight)

    def prepared(
        self, header: Header, *, count: int = 3, refine: bool = False, mechanism: Any = "auto"
    ) -> Program[UnitPoints]:
        """Plan the mean, the directions and the variances along them.

        Parameters
        ----------
        count : how many components, as in :func:`private_pga`
        refine : look for a smaller ball first
        """
        ball = header.ball
        wanted = ComponentVariances(min(positive_int(count, "count"), ball.frame.dim))
        refuse_long(self.name, max(SIGNS.size(ball), wanted.size(ball)), ball)
        return MomentsProgram(header, COMPONENT_SHARES, (SIGNS, wanted), refine, mechanism)

    # ---------------------------------------------------------------- the draw

    @property
    def stating(self) -> Moment:
        """The statistic as it is registered."""
        return COMPONENTS

    def options(self) -> dict[str, float]:
        """Return how many directions there are, and the weight."""
        return {COUNT: float(self.count), WEIGHT: self.weight}

    def after(self, step: Release) -> Moment:
        """Return it along the directions that the step released."""
        return ComponentVariances(self.count, self.weight, principal_directions(step, self.count)[1])

    def exact(self, points: UnitPoints, at: Array, reach: float) -> FloatArray:
        """Return the means of squares and products along the directions."""
        frame = points.ball.frame
        return points.mean_of(
            lambda block: self.feature_map.of(shorten(np.nan_to_num(frame.log_coords(at, block) / reach), 1.0)), 1.0
        )

    def step(self, header: Header, share: Promise, away: float, exact: bool) -> Step:
        """Return its draw as public numbers foresee it; the error is that of the variances."""
        step = super().step(header, share, away, exact)
        calibration = additive(self.sensitivity(header.ball, header.n, away), share)
        return replace(
            step, error=additive_forecast(calibration, self.count + 1).mean, exact=True
        )  # and that of the rest

    def shape_stated(self, ball: Ball, details: Mapping[str, float]) -> tuple[int, ...]:
        """Return how many numbers there are for the stated number of directions."""
        count, dim = details.get(COUNT, 0.0), ball.frame.dim
        if not (count == int(count) and 1 <= count <= dim):
            raise InvalidDataError(f"{COUNT} must be a whole number between 1 and {dim}, got {count:g}")
        return (ComponentVariances(int(count), details.get(WEIGHT, 0.0)).size(ball),)

    def conclusion(self, release: Release) -> PrincipalComponents:
        """Return the components that it is released for."""
        return PrincipalComponents(release)


COMPONENTS = ComponentVariances()
STATISTICS.register(COMPONENTS.name, COMPONENTS)


COMPONENTS_KEPT = Option("count", "whole", "Components", "How many components; no more than the space has dimensions.")
PGA = Query(
    name="pga",
    title="Principal geodesic analysis",
    call=private_pga,
    sample=Units,
    plan=COMPONENTS.prepared,
    result=PrincipalComponents,
    options=(COMPONENTS_KEPT, LEVEL, REFINE),
    releases=(COMPONENTS.name,),
    figure="dpmanifold.plots.geodesic_plots:components",
    passes=2.0,
    views=("npy", "picture", "links"),
)
