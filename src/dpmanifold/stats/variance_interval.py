"""A private Fréchet variance with a confidence interval for the population's (theory section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray, open_fraction
from dpmanifold.ball import Ball
from dpmanifold.features import DISTANCE_WEIGHTS, FOURTH_WEIGHT, SQUARE_WEIGHT, THIRD_WEIGHT, WEIGHT, Distances
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import VarianceInterval
from dpmanifold.noise.source import Rng
from dpmanifold.noise.tails import Tail
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.accounts import Account
from dpmanifold.release import NEIGHBOURS, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind, Prepared
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.chain import AboutMean, gaussian_mean_recipe, moment_recipes
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.featured import FeaturePlan, FeatureStatistic
from dpmanifold.stats.moments import Moment, mean_power
from dpmanifold.stats.query import LEVEL, REFINE, Query
from dpmanifold.stats.ranges import Limits, near
from dpmanifold.stats.recipes import Recipe
from dpmanifold.stats.refine import SKIPPED
from dpmanifold.stats.samples import Units
from dpmanifold.stats.variance import VARIANCE, variance_recipe


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
    ) -> Prepared:
        """Choose the noise, or refuse.

        Parameters
        ----------
        refine : look for a smaller ball first
        square, products, third, fourth : how much |v|^2, v v', v |v|^2 and |v|^4 count against the coordinates (theory:
            features)
        """
        return FeaturePlan(self, DistancesAboutCenter(square, products, third, fourth), header, refine, mechanism)

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


# Fixed in advance, as shares of mu^2 (or rho): the mean, the variance and the fourth moment.
INTERVAL_SHARES = (0.25, 0.55, 0.2)


class FourthMoment(Moment):
    """The mean fourth power of the distance from a released mean: with the variance about it, an interval."""

    name, words, kind = "fourth moment", "fourth moment about a released mean, for a confidence interval", Kind.NUMBER
    power = 4

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Prepared:
        """Plan the mean, the variance and this moment."""
        return AboutMean(header, INTERVAL_SHARES, (VARIANCE, self), refine, mechanism)

    def sensitivity(self, ball: Ball, n: int, away: float) -> Sensitivity:
        """Bound its change."""
        return sensitivity.of_fourth_moment(ball, n, away=away)

    def exact(self, points: UnitPoints, at: Array, reach: float) -> FloatArray:
        """Return the mean fourth power."""
        return mean_power(points, at, reach, self.power)

    def value(self, numbers: FloatArray, details: dict[str, float]) -> float:
        """Return the number."""
        return float(numbers[0])

    def limits_of(self, release: Release) -> Limits:
        """Return the range that the released variance leaves: its square at least, and the squared reach times it."""
        most, variance = self._reach(release) ** 2, release.steps[0]
        drawn = VARIANCE.as_drawn(variance)
        if drawn is None:
            return super().limits_of(release)
        low, high = near(float(drawn[0]), Tail(variance.mechanism, variance.scale, 1, variance.grid))
        return Limits(np.full(1, max(low, 0.0) ** 2), np.full(1, most * min(max(high, 0.0), most)))

    def recipes(self) -> Sequence[Recipe]:
        """Return: a mean, a variance, then this; also in a smaller ball."""
        step = variance_recipe(INTERVAL_SHARES[:2], gaussian_mean_recipe(), corrected=False)
        return moment_recipes(self, INTERVAL_SHARES, step, (NEIGHBOURS,))

    def conclusion(self, release: Release) -> VarianceInterval:
        """Return the interval that it is released for."""
        return VarianceInterval(release)


FOURTH_MOMENT = FourthMoment()
STATISTICS.register(FOURTH_MOMENT.name, FOURTH_MOMENT)


# Joint distances hold a matrix: beyond this dimension it would be larger than an interval is worth.
LARGEST_DIM = 100


def private_variance_interval(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    level: float = 0.95,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> VarianceInterval:
    """Release the Fréchet variance with a confidence interval for the population's (theory section 6).

    On flat spaces of up to 100 dimensions one draw holds all that is needed: moments about the ball's centre. Elsewhere
    a quarter of the promise pays for the mean, 0.55 of it for the variance and a fifth for a fourth moment.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`;
        ApproxDP, ZCDP or GDP
    level : the confidence, in (0, 1)
    refine : spend a fifth of the promise on a smaller ball first, as in :func:`private_mean`; the interval is then
        about the variance of the population clipped to that ball

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import SPD
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> ball = Ball(SPD(2), np.eye(2), 2.0)
    >>> X = SPD(2).random_point(2000, rng=0)
    >>> interval = private_variance_interval(X, ball, GDP(1.0), units=EACH_RECORD)
    >>> 1 < interval.low < interval.high < 4
    True
    """
    level = open_fraction(level, "level")
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    return VarianceInterval(ask(VARIANCE_INTERVAL.asked(refine=refine), Units(X), ball, privacy, terms).release, level)


def interval_plan(header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Prepared:
    """Return what an interval is made of: joint distances on flat spaces, else a mean and two moments about it.

    Parameters
    ----------
    header : what is known before any data are seen
    refine : as in :func:`private_variance_interval`
    mechanism : "auto", or the name of the Gaussian noise
    """
    ball = header.ball
    if not ball.space.is_flat or ball.frame.dim > LARGEST_DIM:
        return FOURTH_MOMENT.prepared(header, refine=refine, mechanism=mechanism)
    return JOINT_DISTANCES.prepared(header, refine=refine, mechanism=mechanism)


VARIANCE_INTERVAL = Query(
    name="variance-interval",
    title="Variance with a confidence interval",
    call=private_variance_interval,
    sample=Units,
    plan=interval_plan,
    result=VarianceInterval,
    options=(LEVEL, REFINE),
    releases=(JOINT_DISTANCES.name, FOURTH_MOMENT.name),
    figure="dpmanifold.plots.ranges:interval",
    views=("picture",),
)
