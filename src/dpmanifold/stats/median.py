"""The geometric median: one step from a released centre, as long as normal data ask for (theory: median)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from dpmanifold import features, sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import DPManifoldError, InvalidArgumentError, InvalidDataError
from dpmanifold.features import Directions, slope_of_directions
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds import Euclidean
from dpmanifold.manifolds.base import shorten
from dpmanifold.manifolds.embedding import TangentMap
from dpmanifold.mechanisms import Calibration, Forecast, choose, usual
from dpmanifold.mechanisms.error_forecasts import carried_over
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise, PromiseError, PureDP
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.release import REFINE_SKIPPED, Clipping, Drawn, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind, Statistic, Step
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.ball_estimation import BallSearch, RadiusPlan, moved_into, source_of
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import (
    RADIAL,
    Chosen,
    Hidden,
    VectorDraw,
    additive,
    additive_step,
    checked_arithmetic,
    mean_step,
    refuse_inexact,
    refuse_overflow,
)
from dpmanifold.stats.inputs import checked_flag, divide
from dpmanifold.stats.mean import MEAN, draw_mean, placed
from dpmanifold.stats.program import Drawing, Program, step_of, together
from dpmanifold.stats.query import REFINE, Query
from dpmanifold.stats.ranges import limits_of_length
from dpmanifold.stats.refine import SKIPPED
from dpmanifold.stats.samples import Units
from dpmanifold.stats.search import RadiusSearch

# Fixed in advance, chosen on simulations: what the ball's centre, its radius, the mean in it, the median distance and
# the step get, of epsilon or of mu^2. Without a smaller ball the first two are left out.
REFINED_SHARES = (0.05, 0.10, 0.15, 0.10, 0.60)
PLAIN_SHARES = (0.20, 0.10, 0.70)
# The ball is to hold so many of the units: as many outliers as are left out cannot reach its radius.
BALL_COVERAGE = 0.6
# The scale is the median distance.
SCALE_COVERAGE = 0.5
# A median distance is refused where counts may be off by more than this share of the units.
MOST_MISCOUNTED = 0.4


def mean_for(privacy: Promise) -> str:
    """Return the mechanism of the means on the way: every space has a tangent mean, and it is drawn exactly.

    Examples
    --------
    >>> mean_for(PureDP(1.0))
    'tangent-mean-laplace'
    """
    return usual("tangent", noise="laplace" if isinstance(privacy, PureDP) else "gaussian").name


@dataclass(frozen=True)
class Approach:
    """How the centre and the scale of a median's step will be found, from public numbers alone.

    Attributes
    ----------
    header : what it is about
    search : how a smaller ball is looked for; None if it is not
    skipped : why it is not although that was asked for, or None
    shares : how the promise is divided, the step's share last
    """

    header: Header
    search: BallSearch | None
    skipped: str | None
    shares: tuple[Promise, ...]

    @staticmethod
    def make(header: Header, refine: bool) -> Approach:
        """Make every choice, or refuse where the median distance cannot be told."""
        # Whether a smaller ball helps is no close call: the same numbers say so everywhere.
        found = Approach._refined(header) if refine else None
        if found is None or found.skipped is not None:
            shares = tuple(divide(header.privacy, PLAIN_SHARES))
            found = Approach(header, None, None if found is None else found.skipped, shares)
        obstacle = found.scale_in(header.ball).obstacle(MOST_MISCOUNTED)
        if obstacle is not None:
            raise PromiseError(
                f"no median can be released: its scale is a median distance, and {obstacle}. Use more units or a "
                "weaker promise, or ask for a mean."
            )
        mechanism, calibration, _ = found.mean_in(header.ball)
        refuse_inexact(header.arithmetic, mechanism, header.ball, calibration)
        return found

    @staticmethod
    def _refined(header: Header) -> Approach:
        """Return the way by a smaller ball; `skipped` says why public numbers are against it."""
        shares = tuple(divide(header.privacy, REFINED_SHARES))
        try:
            plan = BallSearch.make(header, shares[:2], BALL_COVERAGE, mean_for(shares[0]))
        except DPManifoldError as problem:
            return Approach(header, None, str(problem).rstrip("."), shares)
        return Approach(header, plan, plan.obstacle, shares)

    def mean_in(self, ball: Ball) -> Chosen:
        """Return the mechanism of the mean in a ball, its scale and what to expect of it."""
        share = self.shares[-3]
        return choose(mean_for(share), ball, self.header.n, share)

    def scale_in(self, ball: Ball) -> RadiusPlan:
        """Return the search for the median distance from a ball's centre."""
        return RadiusPlan(ball, self.header.n, self.shares[-2], SCALE_COVERAGE)

    def steps(self) -> tuple[Step, ...]:
        """Return the draws, as public numbers foresee them: in the public ball, which is the most they can have."""
        header = self.header
        first = () if self.search is None else (self.search.step(header),)
        return (*first, mean_step(MEAN, header, self.mean_in(header.ball)), self.scale_in(header.ball).step(header))

    def draws(self, units: Hidden[UnitPoints]) -> Drawing[tuple[Release, Hidden[UnitPoints]]]:
        """Draw them one after the other; return the last, and the units' points in its ball."""
        header, paid, steps = self.header, self.shares[:-1], tuple[Release, ...]()
        inside, moved, chosen = header, units, self.mean_in(header.ball)
        if self.search is not None:
            found: Release = yield from self.search.draws(units, header.promising(together(paid[:2])))
            steps = (found,)
            # Where the released ball does not suit the mean the outer one is used: decided by the release.
            suited = with_fallback(lambda: self.mean_in(found.value), lambda: None, InvalidArgumentError, PromiseError)
            if suited is not None:
                inside, moved, chosen = header.inside(found.value), moved_into(found.value, units), suited
        mean = yield from draw_mean(moved, inside.promising(together(paid[:-1])), chosen, True, steps)
        near = about(mean)
        moved = moved_into(near, units)
        scale = yield from self.scale_in(near).draws(moved, header.promising(together(paid)), (mean,))
        return scale, moved


def about(mean: Release) -> Ball:
    """Return the ball about a released mean, as large as the one it was drawn in; that one, where there is none."""
    ball: Ball = mean.ball
    # What the mean's promise has paid for includes a ball before it: seen from outside there is the public one alone.
    said = source_of(mean.privacy, mean.steps[0].ball if mean.steps else ball)
    return with_fallback(
        lambda: Ball(ball.space, mean.value, ball.radius, said, simulated=not mean.private), lambda: ball,
        InvalidArgumentError, InvalidDataError,
    )  # fmt: skip


def outliers_withstood(release: Release) -> float:
    """Return the largest share of the units that cannot make ball and scale larger than the others ask for, at least 0.

    With probability 0.996 the searches err by no more than they say, on either side. Then a radius cannot be carried
    outwards by fewer units than it leaves out, nor inwards by fewer than it holds. The centres about which they are
    looked for are means, and move with every unit (theory: median).
    """
    scale = release.steps[0]
    n, mean = scale.n, scale.steps[0]
    search = RadiusPlan(scale.ball, n, scale.share, SCALE_COVERAGE).search
    found = min(1 - SCALE_COVERAGE, SCALE_COVERAGE) - search.error / n
    for step in mean.steps:
        share = divide(release.privacy, REFINED_SHARES)[1]
        ball = RadiusSearch(step.ball.space.dim, n, step.ball.radius, share, BALL_COVERAGE)
        found = min(found, 1 - BALL_COVERAGE - ball.error / n)
    return max(0.0, found)


PROOF = "median"
# Units nearer to the centre than this part of the median distance pull in proportion to their distance.
CUT = 0.5
# Outliers pull, and do not give way as the centre moves: the step is as long as suits data with this share of them.
FAR_AWAY = 0.05
# What one step leaves of the way to the median, as a part of the step: more than in all studies of the theory page.
LEFT = 0.3
# A step of more than this part of the median distance is called a long one.
_LONG = 0.9
# A count of the units within the radius that was found is believed between these shares.
FEWEST_INSIDE, MOST_INSIDE = 0.2, 0.85


def private_median(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    refine: bool = True,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> Release:
    """Release the geometric (Fréchet) median of the units: the point with the least average distance (theory: median).

    Outliers move a mean in proportion to their distance; a median only by their number. A coarse centre and the median
    distance R from it are released first. Then every unit pulls at the centre with a force of at most 1, whatever its
    distance; the average pull, with noise for a change of 2/n, moves it by one step of a length that suits normal data.
    The steps that the release holds are the ball, the mean in it and R.

    The centre that it starts from is a mean, and moves with outliers. They cannot make ball and R larger than the other
    units ask for, up to a share that the notes of the release state; but how far away they lie still counts, with the
    square of their share (with the share itself if no smaller ball was looked for), and one step makes good only a part
    of it. Proven on flat spaces, with constants that are not small; on curved ones not proven.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`
    refine : look for a smaller ball that holds three fifths of the units first, at 15 % of the promise; where public
        numbers say that none can be found, it is skipped and nothing is spent on it. False: start from the mean in the
        public ball

    Returns
    -------
    a Release whose value is a point. Its noise error is that of the last step; its error allows, besides, for what one
    step leaves of the way to the median: a part of the step that was measured and is not proven

    Examples
    --------
    One record in seven is wrong, far away and on one side:

    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> X = np.random.default_rng(0).normal(0.0, 1.0, (700, 2))
    >>> X[:100] += [15.0, 0.0]
    >>> ball = dpm.Ball(dpm.Euclidean(2), [2.0, 2.0], 20.0, source="the range of the scale")
    >>> release = dpm.private_median(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, rng=0)
    >>> bool(np.linalg.norm(release.value) < 0.5), bool(np.linalg.norm(X.mean(axis=0)) > 2)
    (True, True)
    >>> [step.statistic for step in (release.steps[0], release.steps[0].steps[0])]
    ['radius', 'mean']
    """
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    return ask(MEDIAN_QUERY.asked(refine=refine), Units(X), ball, privacy, terms).release


class Median(Statistic):
    """The geometric median, by one step from a released centre."""

    name, words, kind = "median", "geometric median (least average distance)", Kind.POINT
    details = SKIPPED

    def prepared(self, header: Header, *, refine: bool = True, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Choose how centre, scale and step are drawn, or refuse."""
        return MedianProgram(header, checked_flag(refine, "refine"), mechanism)

    # ---------------------------------------------------------------- the step

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Bound the change of the average direction: 2/n, and rounding; the same in every ball."""
        apart = features.computed_diameter(Directions(CUT), ball.frame.dim)
        return sensitivity.of_average(1.0, n, self.name, PROOF, diameter=apart)

    def average(self, points: UnitPoints, scale: float) -> FloatArray:
        """Return the average direction from the centre of the ball that the points are in, (d,). NOT PRIVATE."""
        return features.average(points, Directions(min(1.0, CUT * scale / points.ball.radius)))

    def placed(self, directions: FloatArray, ball: Ball, scale: float) -> Array:
        """Return the point that an average direction leads to, no farther away than the scale: post-processing."""
        # Seen from far away all directions agree, and the data are about as far away as the median distance.
        step = shorten((stride(ball, scale) * directions)[None], scale)[0]
        return placed(ball, TangentMap(ball.frame, ball.radius).place(step), True)

    def hidden(self, release: Release, points: Callable[[], UnitPoints]) -> tuple[Array, float]:
        """Return where the step leads without noise; no direction is cut. NOT PRIVATE."""
        scale = scale_of(release)
        return self.placed(self.average(points(), scale), release.ball, scale), 0.0

    # ---------------------------------------------------------------- for people

    def states_error(self, release: Release) -> bool:
        """Return True: the law of the noise on the step is known."""
        return True

    def forecast(self, release: Release) -> Forecast:
        """Return how far the noise carries the end of the step; an upper bound, where that is cut to the scale."""
        scale = scale_of(release)
        found = self.error(release.ball, release.calibration, scale)
        found.exact = found.exact and _step_length(release) + float(found.quantile(0.999)) < scale
        return found

    def error(self, ball: Ball, calibration: Calibration, scale: float) -> Forecast:
        """Return how far noise so calibrated carries the end of a step in a ball, given the median distance."""
        law, flat = RADIAL[calibration.mechanism], Euclidean(ball.frame.dim)
        return carried_over(ball, law(flat, flat.origin, calibration.scale * stride(ball, scale)).radius)

    def noise_scales(self, release: Release) -> float:
        """Return the scale of the noise on the step, in the data's own units."""
        return release.scale * stride(release.ball, scale_of(release))

    def clipping(self, release: Release) -> Clipping | None:
        """Return None: directions are not cut, and the ball only says where to start."""
        return None

    def besides_noise(self, release: Release) -> tuple[float, str]:
        """Return what one step is expected to leave of the way to the median: a part of the step, as measured."""
        return LEFT * _step_length(release), "what one step leaves (measured, not proven)"

    def range(self, ball: Ball) -> float | None:
        """Return the radius."""
        return ball.radius

    def notes(self, release: Release) -> list[str]:
        """Say how long the step was, what it may leave, and what outliers can do."""
        scale = scale_of(release)
        notes = [REFINE_SKIPPED] if release.details.keys() >= SKIPPED else []
        if release.is_swamped:
            return [*notes, "the noise is as large as the ball: this says nothing. Use more units or a weaker promise"]
        length = _step_length(release)
        notes.append(
            f"one step of {length:.3g} from a released centre, half of the units lie within {scale:.3g} of that: what "
            f"the step leaves of the way to the median is not in the noise error; the error allows {LEFT:g} of the step"
        )
        if length > _LONG * scale:
            notes.append(
                "the step is as long as the median distance: the centre was far off, and much may be left. Release "
                "again in a smaller ball about this value"
            )
        withstood = outliers_withstood(release)
        notes.append(
            f"outliers: up to {withstood:.0%} of the units, wherever they lie, make neither the ball nor the scale "
            "larger than the others ask for (with 99.6 %), and none pulls at the centre with more than the weight of "
            "one unit"
            if withstood > 0
            else "outliers: the counts are too noisy to say that any share of them leaves ball and scale as they are"
        )
        share = "the square of their share" if release.steps[0].steps[0].steps else "their share"
        notes[-1] += f". The step starts from a mean, which moves with them: their distance counts with {share}"
        if release.noise_error() >= scale:
            notes.append("the noise is as large as the median distance: the centre alone may well be as good")
        return notes


MEDIAN = Median()
STATISTICS.register(MEDIAN.name, MEDIAN)


def _step_length(release: Release) -> float:
    """Return how long the step was, as released."""
    return float(release.ball.space.dist(release.ball.center, release.value))


def scale_of(release: Release) -> float:
    """Return the median distance from the centre that a median's step was made for.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 10.0)
    >>> release = dpm.private_median([[-1.0], [1.0]] * 200, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> 0.1 < scale_of(release) < 10
    True
    """
    return scale_in(release.steps[0])


def scale_in(step: Release) -> float:
    """Return the median distance that a released radius stands for: by the noisy count of the units within it."""
    radius: float = step.value.radius
    return radius * to_median_distance(step.ball.frame.dim, step.details["units_inside"] / step.n)


def to_median_distance(dim: int, held: float) -> float:
    """Return what a radius that holds this share of the units is multiplied by, to have normal data's median distance.

    The search ends at a radius of its grid that holds about half of the units. How many, the count says; shares are
    believed between FEWEST_INSIDE and MOST_INSIDE. Post-processing.

    Examples
    --------
    >>> [round(to_median_distance(2, held), 3) for held in (0.4, 0.5, 0.7)]
    [1.165, 1.0, 0.759]
    """
    held = min(max(held, FEWEST_INSIDE), MOST_INSIDE)
    half, found = special.gammaincinv(dim / 2, [0.5, held])
    return float(np.sqrt(half / found))


def stride(ball: Ball, scale: float) -> float:
    """Return how far a step goes for an average direction of length 1: the median distance over the slope.

    Examples
    --------
    >>> round(stride(Ball(Euclidean(6), [0.0] * 6, 1.0), 0.1), 4)
    0.1164
    """
    return scale / ((1 - FAR_AWAY) * slope_of_directions(ball.frame.dim, CUT))


class MedianProgram(Program[UnitPoints]):
    """A centre, the median distance from it, and one step from there."""

    def __init__(self, header: Header, refine: bool, mechanism: Any = "auto") -> None:
        require_ball(header.ball)
        checked_arithmetic(header.arithmetic)
        self.header = header
        self._approach = Approach.make(header, refine)
        self.calibration = additive(MEDIAN.sensitivity(header.ball, header.n), self._approach.shares[-1], mechanism)
        refuse_overflow(max(1.0, self.calibration.scale) * stride(header.ball, header.ball.radius))

    def steps(self) -> tuple[Step, ...]:
        """Return the draws; the step's as if the median distance were the public radius, the largest it can be."""
        header, ball = self.header, self.header.ball
        error = MEDIAN.error(ball, self.calibration, ball.radius).moved_into(ball).mean
        return (*self._approach.steps(), additive_step(MEDIAN, header, self.calibration, error, ball.radius, False))

    def draws(self, units: Hidden[UnitPoints]) -> Drawing[Release]:
        """Find the centre and the scale, and take the step."""
        before, moved = yield from self._approach.draws(units)
        ball, scale = before.ball, scale_in(before)
        hidden = moved.then(lambda points: MEDIAN.average(points, scale), lambda points: np.zeros(ball.frame.dim))
        drawn: Drawn = yield VectorDraw(hidden, self.calibration, 1.0, lambda: limits_of_length(ball.frame.dim))
        value = with_fallback(lambda: MEDIAN.placed(drawn.numbers, ball, scale), lambda: ball.center)
        details = {} if self._approach.skipped is None else dict.fromkeys(SKIPPED, 1.0)
        return (
            yield from step_of(Release.of(
                MEDIAN, value, self.header.inside(ball), self.calibration, (drawn,), (before,), details, tol=0.0,
                projected=True,
            ))
        )  # fmt: skip


MEDIAN_QUERY = Query(
    name="median",
    title="Geometric median",
    call=private_median,
    sample=Units,
    plan=MEDIAN.prepared,
    options=(replace(REFINE, help="Look for a smaller ball first, at 15 %; skipped where useless."),),
    releases=(MEDIAN.name,),
    squares=False,
    passes=2.0,
    views=("npy", "picture", "links"),
)
