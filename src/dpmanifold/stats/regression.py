"""Geodesic regression on a covariate in a public range (theory: regression)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifold import features
from dpmanifold._check import FloatArray, open_fraction
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.features.regression_features import Geodesic, MarkedMoments
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference.design import MOMENTS, Range, are_moments, checked_range
from dpmanifold.inference.geodesic_regression import GeodesicRegression, curve_of, radius_of
from dpmanifold.mechanisms import Calibration, Forecast
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.release import Clipping, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Statistic, Step
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.ball_estimation import RadiusPlan
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import Hidden, additive, additive_forecast, checked_arithmetic, refuse_overflow
from dpmanifold.stats.featured import FeatureStatistic
from dpmanifold.stats.inputs import checked_flag, divide
from dpmanifold.stats.marks import MarkedPoints, Scored
from dpmanifold.stats.moment_chain import gaussian
from dpmanifold.stats.program import Declared, Drawing, Program, together
from dpmanifold.stats.query import LEVEL, REFINE, Query
from dpmanifold.stats.ranges import Limits
from dpmanifold.stats.refine import REFINEMENT, SKIPPED
from dpmanifold.stats.samples import WithCovariate
from dpmanifold.stats.shaping import coverage_of, flat_ball

# Of mu^2: what a coarse curve, the radius of what it leaves, and the step from it get.
SHARES = (0.2, 0.1, 0.7)
# A coarse curve whose noise is more than this part of the radius is not made: at the ends of the range it has twice as
# much, and what is found about it would not make up for it.
_MOST_NOISE = 0.11
# Residuals beyond the radius still pull the curve, in their direction: to hold more of them costs more noise than it
# saves.
_MOST_COVERED = 0.9
# Curves that noise moved, and residuals from them, reach so many radii at most.
_ROOM = 8
_PUBLIC = frozenset(MOMENTS)


class RegressionMoments(FeatureStatistic):
    """Averages of residuals from a curve, of residuals times the covariate, of their products, and of t and t^2.

    Parameters
    ----------
    radius : what residuals are clipped to; the ball's if left out
    moments : the averages of t, t^2, ..., where the covariate is public
    """

    name, words = "regression", "moments of a geodesic regression on a covariate"
    proof = "regression"
    details = SKIPPED | _PUBLIC

    def __init__(self, radius: float | None = None, moments: FloatArray | None = None) -> None:
        super().__init__(MarkedMoments())
        self._radius, self._moments = radius, moments

    def reach(self, ball: Ball) -> float:
        """Return what residuals are clipped to."""
        return ball.radius if self._radius is None else self._radius

    def as_stated(self, release: Release) -> RegressionMoments:
        """Return it with the radius that the steps of a release found."""
        return RegressionMoments(radius_of(release))

    @property
    def registered(self) -> Statistic:
        """The statistic as it is registered: the radius is that of a step."""
        return REGRESSION

    # ---------------------------------------------------------------- the average

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Refuse: records alone do not say what to regress on."""
        raise InvalidArgumentError(
            "a regression needs a covariate beside the records: call private_regression (dpm regression)."
        )

    def average(self, points: Scored) -> FloatArray:  # type: ignore[override]
        """Return the average of the features of units' scores."""
        return points.units.mean_of(self.features.of, self.bound(points.ball))

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Bound the change of the average: the same for all balls, as residuals are over the radius."""
        found = features.sensitivity_of(self.features, ball.frame.dim, n, self.name)
        return replace(found, proof=self.proof)

    def limits_of(self, ball: Ball) -> Limits:
        """Return what averages of the features can be; of a public covariate the last two are known."""
        limits = super().limits_of(ball)
        if self._moments is None:
            return limits
        known = self._moments[:2] / self.features.units(ball.frame.dim, self.reach(ball))[-2:]
        return limits._replace(low=np.append(limits.low[:-2], known), high=np.append(limits.high[:-2], known))

    # ---------------------------------------------------------------- for people

    def error(self, ball: Ball, calibration: Calibration) -> Forecast:
        """Return the law of the noise on the average residual, in the data's units."""
        return additive_forecast(replace(calibration, scale=2 * calibration.scale * self.reach(ball)), ball.frame.dim)

    def clipping(self, release: Release) -> Clipping | None:
        """Return None: residuals are clipped about the curve, which shortens its correction, and shows there."""
        return None

    def notes(self, release: Release) -> list[str]:
        """Say what scale and error are about."""
        swamped = "the noise is as large as the ball: this says nothing. Use more units or a weaker promise"
        about = (
            "scale and sensitivity are of residuals over twice the radius they were clipped to; the error is that of "
            "the average residual"
        )
        skipped = "no coarse curve was looked for first: public numbers say that it could not help"
        return [
            about,
            *([skipped] if release.details.keys() >= SKIPPED else []),
            *([swamped] if release.is_swamped else []),
        ]

    def conclusion(self, release: Release) -> GeodesicRegression:
        """Return the regression, with the covariate as it was brought to [-1, 1]."""
        return GeodesicRegression(release)


REGRESSION = RegressionMoments()
STATISTICS.register(REGRESSION.name, REGRESSION)


class RegressionProgram(Program[MarkedPoints]):
    """A coarse curve and a radius about it if that can help, and one draw.

    Every choice and every refusal, from public numbers.
    """

    def __init__(
        self,
        header: Header,
        *,
        covariate_range: Range = (-1.0, 1.0),
        covariate_public: bool = False,
        refine: bool = False,
        mechanism: Any = "auto",
    ) -> None:
        ball, n = header.ball, header.n
        require_ball(ball)
        checked_range(covariate_range)
        checked_arithmetic(header.arithmetic)
        REGRESSION.refuse_wrong_words(ball)
        self.public = checked_flag(covariate_public, "covariate_public")
        self.header = header
        if _ROOM * ball.radius > ball.frame.farthest:
            raise InvalidArgumentError(
                "`ball` must have a radius of at most {farthest:.4g} for a regression on {space!r}, got "
                "{radius:.4g}: curves through it would leave what double precision can hold. {smaller_ball}",
                farthest=Public(ball.frame.farthest / _ROOM),
                space=Public(ball.space),
                radius=Public(ball.radius),
                smaller_ball=Public(ball.space.smaller_ball),
            )
        promise, bound = gaussian(header.privacy), REGRESSION.sensitivity(ball, n)
        self.shares = divide(promise, SHARES)
        self._coarse = additive(bound, self.shares[0], mechanism)
        self.details: dict[str, float] = {}
        self.refined = checked_flag(refine, "refine")
        if self.refined:
            decided = header.decide(REFINEMENT, self._worth, {"used", "skipped"}.__contains__)
            self.refined = decided == "used"
            self.details = {} if self.refined else dict.fromkeys(SKIPPED, 1.0)
        self.calibration = additive(bound, self.shares[2] if self.refined else promise, mechanism)
        largest = float(REGRESSION.features.units(ball.frame.dim, ball.radius).max())
        refuse_overflow(max(1.0, self.calibration.scale) * largest)

    @cached_property
    def _search(self) -> RadiusPlan:
        """The search for a radius among residuals."""
        ball, n = self.header.ball, self.header.n
        coverage = min(_MOST_COVERED, coverage_of(ball.space.dim, n, *self.shares[1:]))
        return RadiusPlan(flat_ball(ball, ball.radius), n, self.shares[1], coverage)

    def _worth(self) -> str:
        """Say whether a coarse curve can help, by its noise and that of the counts."""
        ball = self.header.ball
        noisy = REGRESSION.error(ball, self._coarse).mean > _MOST_NOISE * ball.radius
        return "skipped" if noisy or self._search.obstacle() is not None else "used"

    def steps(self) -> tuple[Step, ...]:
        """Return all draws; the last with residuals as long as the ball's radius, the most that they can be."""
        last = REGRESSION.step(self.header, self.calibration)
        if not self.refined:
            return (last,)
        coarse = REGRESSION.step(self.header, self._coarse)
        return coarse, self._search.step(self.header), replace(last, exact=False)

    def draws(self, units: Hidden[MarkedPoints]) -> Drawing[Release]:
        """Draw a coarse curve and a radius about it, if that was planned, and the moments of what it leaves."""
        header, ball, details = self.header, self.header.ball, self.details
        design: FloatArray | None = None
        if self.public:
            design = yield Declared(units.then(lambda points: points.design(len(MOMENTS))), MOMENTS, _moment_faults)
            details = {**details, **dict(zip(MOMENTS, design.tolist(), strict=True))}
        rest, first = _scored(units, Geodesic.resting(ball.frame), ball.radius), RegressionMoments(None, design)
        if not self.refined:
            return (yield from first.draws(rest, header, self.calibration, (), details))
        paid = header.promising(self.shares[0])
        coarse: Release = yield from first.draws(rest, paid, self._coarse, (), details)
        curve = curve_of(coarse)
        lengths = units.then(lambda points: points.lengths(curve), MarkedPoints.no_lengths)
        found = yield from self._search.draws(lengths, header.promising(together(self.shares[:2])), (coarse,))
        radius = found.value.radius
        last = RegressionMoments(radius, design)
        return (yield from last.draws(_scored(units, curve, radius), header, self.calibration, (found,), details))


def _moment_faults(moments: FloatArray) -> list[str]:
    return [] if are_moments(moments) else [f"{MOMENTS[0]}: no covariate between -1 and 1 has such moments"]


def _scored(units: Hidden[MarkedPoints], curve: Geodesic, radius: float) -> Hidden[Scored]:
    """Return units' scores about a curve; where they cannot be computed, those of units on it."""
    return units.then(lambda points: points.scored(curve, radius), MarkedPoints.unscored)


def private_regression(
    X: object,
    covariate: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    covariate_range: Range | None,
    covariate_public: bool = False,
    level: float = 0.95,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> GeodesicRegression:
    """Release a geodesic regression: how the mean moves along a geodesic as a covariate changes (theory: regression).

    The covariate is private by default: neighbours may differ in it as in everything else of one unit. A unit may have
    several records, each with a covariate of its own, such as a child measured at several ages; it counts once.

    Parameters
    ----------
    X : records (n, *space.shape), a data frame, or any other source; they are held in memory. Or data that are
        registered with a ledger together with a covariate
    covariate : one number per record, or the name of a column where X has columns. Beyond the range it counts as the
        nearer end. None where X is registered with it
    ball, privacy, units, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`;
        ApproxDP, ZCDP or GDP. With ``invalid="center"`` a covariate that is no number counts as the middle of the
        range; a column with empty cells is refused
    covariate_range : (low, high), the range of the covariate: public knowledge. A range twice as wide as the
        covariates costs twice the noise on the slope, and where they are private with some hundred units all that could
        be said of it (`is_identifiable`). Where more than half of the covariates lie outside, the question is refused
        unless it is confirmed. None for the one that X is registered with
    covariate_public : the covariates are public, as are how many records a unit has: neighbours then have the same
        ones, and how they are spread is known exactly. Of registered data as it was registered, or it is refused
    level : the confidence of the bands, in (0, 1)
    refine : spend a fifth of the promise on a coarse curve and a tenth on a radius about it, and the rest on a step
        from there, in which residuals count that are clipped to this radius. Noise is less, but clipping biases the
        curve where residuals are skewed or their spread changes with the covariate, and bands and test do not allow
        for that bias (docs/limitations.md). Without it, the curve on a curved space is a straight line in coordinates
        at the ball's centre, and no geodesic regression

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> sphere, rng = dpm.Sphere(2), np.random.default_rng(0)
    >>> ball = dpm.Ball(sphere, [0.0, 0.0, 1.0], 0.7, source="the instrument's field of view")
    >>> age = rng.uniform(20, 80, 1000)
    >>> c = np.stack([(age - 50) / 100, np.zeros(1000)], axis=1) + 0.1 * rng.standard_normal((1000, 2))
    >>> X = sphere.exp_coords(ball.center, c)
    >>> found = private_regression(X, age, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, covariate_range=(20, 80))
    >>> found.p_value < 0.001, found.curve([50.0]).shape, dpm.verify(found).ok
    (True, (1, 3), True)
    >>> bool(sphere.dist(found.curve([50.0])[0], ball.center) < 0.05), bool(found.band([50.0]).radius[0] < 0.1)
    (True, True)
    """
    level = open_fraction(level, "level")
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    sample = WithCovariate(X, covariate, covariate_range, covariate_public)
    drawn = ask(REGRESSION_QUERY.asked(refine=refine), sample, ball, privacy, terms)
    return GeodesicRegression(drawn.release, drawn.options["covariate_range"], level)


REGRESSION_QUERY = Query(
    name="regression",
    title="Geodesic regression",
    call=private_regression,
    sample=WithCovariate,
    plan=RegressionProgram,
    result=GeodesicRegression,
    options=(
        LEVEL,
        replace(
            REFINE,
            help="First a coarse curve and a radius, at 30 % of the promise: less noise, but bands and test can be "
            "far off where residuals are skewed or spread unevenly.",
        ),
    ),
    releases=(REGRESSION.name,),
    figure="dpmanifold.plots.geodesic_plots:regression",
    views=("npy", "picture"),
    passes=3.0,
)
