"""A private Fréchet variance with a confidence interval for the population's (theory section 6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray, open_fraction
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import VarianceInterval
from dpmanifold.noise.source import Rng
from dpmanifold.noise.tails import Tail
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.release import Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.joint_moments import JOINT_DISTANCES
from dpmanifold.stats.moment_chain import Moment, MomentsProgram, mean_power
from dpmanifold.stats.program import Program
from dpmanifold.stats.query import LEVEL, REFINE, Query
from dpmanifold.stats.ranges import Limits, near
from dpmanifold.stats.samples import Units
from dpmanifold.stats.variance import VARIANCE

# Joint distances hold a matrix: beyond this dimension it would be larger than an interval is worth.
LARGEST_DIM = 100


# Fixed in advance, as shares of mu^2 (or rho): the mean, the variance and the fourth moment.
INTERVAL_SHARES = (0.25, 0.55, 0.2)


class FourthMoment(Moment):
    """The mean fourth power of the distance from a released mean: with the variance about it, an interval."""

    name, words, kind = "fourth moment", "fourth moment about a released mean, for a confidence interval", Kind.NUMBER
    power = 4

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Plan the mean, the variance and this moment."""
        return MomentsProgram(header, INTERVAL_SHARES, (VARIANCE, self), refine, mechanism)

    def sensitivity(self, ball: Ball, n: int, away: float) -> Sensitivity:
        """Bound its change."""
        return sensitivity.of_fourth_moment(ball, n, away=away)

    def exact(self, points: UnitPoints, at: Array, reach: float) -> FloatArray:
        """Return the mean fourth power."""
        return mean_power(points, at, reach, self.power)

    def value(self, numbers: FloatArray, details: dict[str, float]) -> float:
        """Return the number."""
        return float(numbers[0])

    def limits_of(self, ball: Ball, reach: float, before: Release | None) -> Limits:
        """Return the range that the released variance leaves: its square at least, and the squared reach times it."""
        assert before is not None
        most, (drawn,) = reach**2, before.draws
        low, high = near(float(drawn.numbers[0]), Tail(before.mechanism, before.scale, 1, drawn.grid))
        return Limits(np.full(1, max(low, 0.0) ** 2), np.full(1, most * min(max(high, 0.0), most)))

    def conclusion(self, release: Release) -> VarianceInterval:
        """Return the interval that it is released for."""
        return VarianceInterval(release)


FOURTH_MOMENT = FourthMoment()
STATISTICS.register(FOURTH_MOMENT.name, FOURTH_MOMENT)


# -------------------------------------------------------------------- the query


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


def interval_plan(header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Program[UnitPoints]:
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
    figure="dpmanifold.plots.numbers:interval",
    views=("picture",),
)
