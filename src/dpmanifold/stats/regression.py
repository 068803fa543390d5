"""Geodesic regression on a covariate in a public range (theory: regression)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifold import features
from dpmanifold._check import FloatArray, open_fraction
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.features.geodesics import Geodesic
from dpmanifold.features.marked import MarkedMoments
from dpmanifold.inference.curve_fit import curve_of, radius_of
from dpmanifold.inference.design import MOMENTS, Range, are_moments, checked_range
from dpmanifold.inference.regression import GeodesicRegression
from dpmanifold.mechanisms import Calibration, Forecast
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.accounts import Account
from dpmanifold.release import Clipping, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import NEIGHBOURS, NEIGHBOURS_BY_COVARIATE, STATISTICS, Header, Prepared, Step
from dpmanifold.stats.additive import additive, additive_forecast, refuse_overflow
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.averaged import AveragePlan
from dpmanifold.stats.chain import gaussian
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import Bits, checked_arithmetic
from dpmanifold.stats.featured import FeatureStatistic
from dpmanifold.stats.inputs import checked_flag, divide
from dpmanifold.stats.marks import MarkedPoints, Scored
from dpmanifold.stats.query import LEVEL, REFINE, Query
from dpmanifold.stats.radius import RadiusPlan, radius_recipe
from dpmanifold.stats.ranges import same_number, tail_of, within
from dpmanifold.stats.recipes import Recipe, together
from dpmanifold.stats.refine import SKIPPED
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
_EITHER = (NEIGHBOURS, NEIGHBOURS_BY_COVARIATE)


class RegressionMoments(FeatureStatistic):
    """Averages of residuals from a curve, of residuals times the covariate, of their products, and of t and t^2.

    Parameters
    ----------
    radius : what residuals are clipped to; the ball's if left out
    """

    name, words = "regression", "moments of a geodesic regression on a covariate"
    proof = "docs/theory/regression.md"
    details = SKIPPED | _PUBLIC

    def __init__(self, radius: float | None = None) -> None:
        super().__init__(MarkedMoments())
        self._radius = radius

    def reach(self, ball: Ball) -> float:
        """Return what residuals are clipped to."""
        return ball.radius if self._radius is None else self._radius

    def as_stated(self, release: Release) -> RegressionMoments:
        """Return it with the radius that the steps of a release found."""
        return RegressionMoments(radius_of(release))

    # ---------------------------------------------------------------- the average

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Prepared:
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

    def value(self, numbers: FloatArray, ball: Ball) -> FloatArray:
        """Return the noisy average in the data's own units."""
        return numbers * self.features.units(ball.frame.dim, self.reach(ball))

    def numbers(self, value: Any, ball: Ball) -> FloatArray:
        """Return the average that a value stands for."""
        return np.asarray(value, dtype=np.float64).ravel() / self.features.units(ball.frame.dim, self.reach(ball))

    # ---------------------------------------------------------------- what verify recomputes

    def recipes(self) -> Sequence[Recipe]:
        """Return: a step from the ball's centre, or a coarse curve, a radius about it and a step from there."""
        other: dict[str, Any] = {"projected": False, "neighbours": _EITHER}
        plain = Recipe(self.name, ("gaussian",), optional=(SKIPPED, _PUBLIC), **other)
        coarse = Recipe(self.name, ("gaussian",), SHARES[:1], optional=(_PUBLIC,), **other)
        radius = replace(radius_recipe(SHARES[:2], coarse), neighbours=_EITHER)
        return [plain, Recipe(self.name, ("gaussian",), SHARES, radius, optional=(_PUBLIC,), **other)]

    def details_faults(self, release: Release, recipe: Recipe, shares: list[Promise]) -> list[str]:
        """Return what is wrong with the moments of a public covariate."""
        found = []
        if any(release.details.get(name, 1.0) != 1 for name in SKIPPED):
            found.append("refine skipped: it is stated as 1, or not at all")
        public = release.details.keys() >= _PUBLIC
        if public != (release.neighbours == NEIGHBOURS_BY_COVARIATE):
            found.append("neighbours: they have the same covariates if these are public, and only then")
        if public:
            stated = np.array([release.details[name] for name in MOMENTS])
            if not are_moments(stated):
                found.append(f"{MOMENTS[0]}: no covariate between -1 and 1 has such moments")
            scales = self.noise_scales(release)[-2:]
            surely = tail_of(release.share)
            drawn = np.asarray(release.value)[-2:]
            if not all(within(drawn[i], stated[i], stated[i], surely * scales[i]) for i in range(2)):
                found.append(f"{MOMENTS[0]}: no noise of that scale comes from there to what was drawn")
        return found

    def step_faults(self, release: Release, step: Release) -> list[str] | None:
        """Return what is wrong with the chain of steps: balls, what the radius is asked to hold, the covariate."""
        ball, coarse, found = release.ball, step.steps[0], []
        if step.ball != _tube(ball):
            found.append("step 'radius': it was not looked for among residuals as long as the ball's radius")
        if coarse.ball != ball:
            found.append("step 'regression': it is on another ball")
        if not same_number(step.details["coverage"], _coverage(ball, step.n, step.share, release.share)):
            found.append("step 'radius': it was to hold another share of the units")
        if any(coarse.details.get(name) != release.details.get(name) for name in MOMENTS):
            found.append("step 'regression': its covariate has other moments")
        return found

    # ---------------------------------------------------------------- for people

    def error(self, ball: Ball, calibration: Calibration) -> Forecast:
        """Return the law of the noise on the average residual, in the data's units."""
        return additive_forecast(replace(calibration, scale=2 * calibration.scale * self.reach(ball)), ball.frame.dim)

    def forecast(self, release: Release) -> Forecast:
        """Return the law of the noise on the average residual."""
        return self.as_stated(release).error(release.ball, release.calibration)

    def noise_scales(self, release: Release) -> FloatArray:
        """Return the standard deviation of the noise on every number, in the data's own units."""
        return release.scale * self.features.units(release.ball.frame.dim, radius_of(release))

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


def _tube(ball: Ball) -> Ball:
    """Return the vectors among which residuals are looked for."""
    return flat_ball(ball, ball.radius)


def _coverage(ball: Ball, n: int, search: Promise, rest: Promise) -> float:
    """Return the share of the residuals that a radius is asked to hold, given what the search and the step promise."""
    return min(_MOST_COVERED, coverage_of(ball.space.dim, n, search, rest))


class RegressionPlan(Prepared):
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
        self.header = replace(header, neighbours=NEIGHBOURS_BY_COVARIATE if self.public else NEIGHBOURS)
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
        self.skipped = self._obstacle(bound, mechanism) if checked_flag(refine, "refine") else "it was not asked for"
        self.refused = refine and self.skipped is not None
        self.calibration = additive(bound, promise if self.skipped else self.shares[2], mechanism)
        largest = float(REGRESSION.features.units(ball.frame.dim, ball.radius).max())
        refuse_overflow(max(1.0, self.calibration.scale) * largest)

    @cached_property
    def _search(self) -> RadiusPlan:
        ball, n = self.header.ball, self.header.n
        return RadiusPlan(_tube(ball), n, self.shares[1], _coverage(ball, n, *self.shares[1:]))

    def _obstacle(self, bound: Sensitivity, mechanism: Any) -> str | None:
        """Return why a coarse curve could not help, or None."""
        ball = self.header.ball
        self._coarse = additive(bound, self.shares[0], mechanism)
        noise = REGRESSION.error(ball, self._coarse).mean
        if noise > _MOST_NOISE * ball.radius:
            return f"a coarse curve would be off by {noise:.3g}, more than {_MOST_NOISE:.0%} of the radius"
        return self._search.obstacle()

    def steps(self) -> tuple[Step, ...]:
        """Return all draws; the last with residuals as long as the ball's radius, the most that they can be."""
        last = AveragePlan(REGRESSION, self.header, self.calibration).steps()
        if self.skipped:
            return last
        coarse = AveragePlan(REGRESSION, self.header, self._coarse).steps()
        return (*coarse, self._search.step(self.header), replace(last[0], exact=False))

    def release(self, points: MarkedPoints, bits: Bits) -> Release:  # type: ignore[override]
        """Draw a coarse curve and a radius about it, if that was planned, and the moments of what it leaves."""
        header, ball = self.header, self.header.ball
        details = dict(zip(MOMENTS, points.design(len(MOMENTS)).tolist(), strict=True)) if self.public else {}
        rest = Geodesic.resting(ball.frame)
        if self.skipped:
            plan, refused = AveragePlan(REGRESSION, header, self.calibration), dict.fromkeys(SKIPPED, 1.0)
            stated = {**details, **(refused if self.refused else {})}
            return plan.drawn(self._scored(points, rest, ball.radius), REGRESSION, bits, (), stated)  # type: ignore[arg-type]
        plan = AveragePlan(REGRESSION, header.promising(self.shares[0]), self._coarse)
        coarse = plan.drawn(self._scored(points, rest, ball.radius), REGRESSION, bits, (), details)  # type: ignore[arg-type]
        curve = curve_of(coarse)
        so_far = header.promising(together(self.shares[:2]))
        lengths = with_fallback(lambda: points.lengths(curve), points.no_lengths)
        found = self._search.release(lengths, so_far, bits, (coarse,))  # type: ignore[arg-type]
        radius = found.value.radius
        last = AveragePlan(RegressionMoments(radius), header, self.calibration)
        return last.drawn(self._scored(points, curve, radius), REGRESSION, bits, (found,), details)  # type: ignore[arg-type]

    @staticmethod
    def _scored(points: MarkedPoints, curve: Geodesic, radius: float) -> Scored:
        """Return units' scores about a curve; where they cannot be computed, those of units on it. Never raises."""
        return with_fallback(lambda: points.scored(curve, radius), points.unscored)


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
        be said of it (`can_tell`). Where more than half of the covariates lie outside, the question is refused unless
        it is confirmed. None for the one that X is registered with
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
    plan=RegressionPlan,
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
    figure="dpmanifold.plots.regression:regression",
    views=("npy", "picture"),
    passes=3.0,
)
