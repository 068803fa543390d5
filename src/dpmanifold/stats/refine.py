"""A ball nobody told us: found privately inside a large public one (theory section 8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmanifold._check import Array, fraction
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import DPManifoldError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import Calibration, Forecast, Mechanism, choose
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import ApproxDP, Budget, Promise, PromiseError, PureDP, compose
from dpmanifold.release import NEIGHBOURS, RELEASED, Release
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import Bits, draw_mean, fresh_bits, refuse_inexact, stated, timing_of, tolerance_of
from dpmanifold.stats.inputs import Told, checked_flag, divide, prepare, spend
from dpmanifold.stats.sealed import sealed
from dpmanifold.stats.search import RadiusSearch

# Fixed in advance: what the centre, the radius and the statistic get, of epsilon or of mu^2. Data that fill the ball
# lose the first two: 1.11 times the noise for pure promises, 1.12 for the others.
PURE_REFINE_SHARES = (0.04, 0.06, 0.9)
REFINE_SHARES = (0.06, 0.14, 0.8)
# A ball alone: half on its centre, half on its radius.
BALL_SHARES = (0.5, 0.5)
# A refined ball should hold this share of the units, and is not used if its count says fewer than the second.
REFINE_COVERAGE = 0.99
LEAST_INSIDE = 0.92
# A ball that is hardly smaller than the outer one is not worth what it clips.
WORTH_IT = 0.8
# The centre's expected noise, as a share of the outer radius, beyond which no ball about it is small.
_FARTHEST_CENTER = 0.5
# Data that fill less of the ball than this are rare: where not even they would gain this much, nobody does.
SMALL_FILL = 0.1
_LEAST_GAIN = 0.95
# Data that fill the ball may lose this much to the search.
_LARGEST_LOSS = 1.13


def private_ball(
    X: object,
    outer: Ball,
    privacy: Promise,
    *,
    units: object = None,
    coverage: float = 0.95,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | None = None,
    rng: Rng = None,
) -> Release:
    """Release a ball that holds most of the units, inside a public one that may be far too large.

    Half the promise finds a centre, half a radius on a fixed grid. With probability 0.999 the ball holds the wanted
    share of the units less a quarter (at least half of them, for a coverage of 0.75 or more), or it is the outer one;
    where promise and number of units do not allow for that, it is refused before anything is spent. The noisy number
    of units inside is in `details`.

    Parameters
    ----------
    X, privacy, units, invalid, curator, confirm, arithmetic, budget, rng : as in :func:`private_mean`
    outer : the public ball
    coverage : share of the units the new ball should hold, in (0, 1]; met on data that spread like a normal law

    Returns
    -------
    a Release whose value is a Ball; its source says that it was released, and what that cost

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> X = np.random.default_rng(0).normal(5.0, 0.1, (2000, 1))
    >>> release = private_ball(X, Ball(Euclidean(1), [0.0], 100.0), GDP(1.0), units=EACH_RECORD)
    >>> release.value.radius < 2
    True
    """
    coverage = fraction(coverage, "coverage")
    points = prepare(X, outer, privacy, units, invalid, Told(curator, confirm))
    require_ball(outer)
    plan = BallPlan.make(outer, len(points), divide(privacy, BALL_SHARES), coverage)
    if plan.obstacle is not None:
        raise PromiseError(f"no smaller ball can be found: {plan.obstacle}. Use more units or a weaker promise.")
    refuse_inexact(arithmetic, plan.mechanism, outer, plan.calibration)
    bits = fresh_bits(rng, outer, arithmetic)
    spend(budget, privacy, "ball")
    return plan.release(points, privacy, bits)


@dataclass(frozen=True)
class BallPlan:
    """How a ball will be found, from public numbers: the mechanism of the centre and the search for the radius."""

    outer: Ball
    n: int
    mechanism: Mechanism
    calibration: Calibration
    forecast: Forecast
    search: RadiusSearch

    @staticmethod
    def make(outer: Ball, n: int, shares: Sequence[Promise], coverage: float) -> BallPlan:
        """Make every choice: the first share pays for the centre, the second for the radius."""
        mechanism, calibration, forecast = choose("auto", outer, n, shares[0])
        search = RadiusSearch(outer.space.dim, n, outer.radius, shares[1], coverage)
        return BallPlan(outer, n, mechanism, calibration, forecast, search)

    @cached_property
    def obstacle(self) -> str | None:
        """Why no smaller ball can be expected, or None."""
        if not self.search.can_help:
            off = math.ceil(self.search.error)
            return f"counting units privately may be off by {off:,}, more than a quarter of all {self.n:,}"
        if self.forecast.mean > _FARTHEST_CENTER * self.outer.radius:
            return (
                f"its centre would be off by {self.forecast.mean:.3g}, more than half the public radius "
                f"{self.outer.radius:.3g}"
            )
        return None

    def radius(self, fill: float) -> float:
        """Return the radius to expect if the data lie within `fill` times the outer radius of their mean."""
        spread = math.hypot(fill * self.outer.radius, self.forecast.mean)
        found = int(np.searchsorted(self.search.radii, spread * (1 - 1e-12)))
        return self._stretched(min(found, len(self.search.radii) - 1))

    def _stretched(self, index: int) -> float:
        radius = float(self.search.radii[index]) * self.search.stretch
        return radius if radius < WORTH_IT * self.outer.radius else self.outer.radius

    def release(
        self,
        points: UnitPoints,
        total: Promise,
        bits: Bits,
        neighbours: str = NEIGHBOURS,
        least: float = 0.0,
    ) -> Release:
        """Find a centre and a radius from units' points in the outer frame. Never raises.

        If fewer than the share `least` of the units seem to lie inside, the outer ball comes back.
        """
        outer, search, private = self.outer, self.search, bits.private
        draw = draw_mean(outer, self.mechanism, self.calibration, points, bits)
        center = center_of(outer, draw.point)
        away = sealed(lambda: points.each(lambda block: outer.frame.dist(center, block)), lambda: np.zeros(self.n))
        radius = self._stretched(search.find(away, bits))
        inside = search.count(away, radius, bits)
        # Less twice the scale of its noise: a count must not speak against a ball by chance.
        enough = inside >= least * self.n - 2 * search.count_noise
        value = self._ball(center, radius, total, private) if radius < outer.radius and enough else outer
        return Release(
            statistic="ball",
            value=value,
            privacy=total,
            share=self.calibration.privacy,
            mechanism=self.mechanism.name,
            scale=self.calibration.scale,
            rule=self.calibration.rule,
            sensitivity=self.calibration.sensitivity,
            ball=outer,
            n=self.n,
            unit=points.unit,
            tol=tolerance_of(self.mechanism, outer, self.n),
            projected=True,
            private=private,
            timing=timing_of(self.mechanism, ()),
            neighbours=neighbours,
            details={
                "search share": level_of(search.share),
                "coverage": search.coverage,
                "count noise": search.count_noise,
                "units inside": inside,
            },
            **stated(draw),
        )

    def _ball(self, center: Array, radius: float, total: Promise, private: bool) -> Ball:
        outer = self.outer
        said = source_of(total, outer)
        # What was drawn may be no centre for a ball (a matrix singular to working precision): decided by the release.
        return sealed(
            lambda: Ball(outer.space, center_in_space(outer, center), radius, said, simulated=not private),
            lambda: outer,
        )


def center_of(outer: Ball, draw: Array) -> Array:
    """Move a draw into the outer ball, in its frame: on positive curvature the new ball must not reach around."""
    return sealed(lambda: outer.in_frame.pull_in(draw[None])[0], lambda: outer.frame.origin)


def center_in_space(outer: Ball, center: Array) -> Array:
    """Move a centre from the frame to the space."""
    return np.asarray(outer.pull_in(outer.from_frame(center[None]))[0])


@dataclass(frozen=True)
class Wanted:
    """What was asked for: a mechanism's name or "auto", and which mean (None: whatever the mechanism hides)."""

    mechanism: str = "auto"
    estimand: str | None = None

    def choose(self, ball: Ball, n: int, privacy: Promise) -> tuple[Mechanism, Calibration, Forecast]:
        """Return the mechanism that keeps the promise there, or refuse."""
        return choose(self.mechanism, ball, n, privacy, self.estimand)


@dataclass(frozen=True)
class _BallAndRest:
    """One way to share out a promise between a ball and the statistic in it."""

    plan: BallPlan
    cost: Promise
    rest: Promise

    @staticmethod
    def make(ball: Ball, n: int, privacy: Promise) -> _BallAndRest | str:
        """Return it, or why no smaller ball can be found."""
        if ball.is_whole:
            return "a smaller ball is looked for inside a public one, and this is the whole space"
        shares = divide(privacy, PURE_REFINE_SHARES if isinstance(privacy, PureDP) else REFINE_SHARES)
        try:
            plan = BallPlan.make(ball, n, shares[:2], REFINE_COVERAGE)
        except DPManifoldError as problem:
            return str(problem).rstrip(".")
        return plan.obstacle or _BallAndRest(plan, compose(shares[:2]), shares[2])

    def noise(self, wanted: Wanted, radius: float) -> float:
        """Return the expected noise in a ball of that radius about the public centre; infinite if it has no law."""
        outer = self.plan.outer
        try:
            return wanted.choose(Ball(outer.space, outer.center, radius), self.plan.n, self.rest)[2].mean
        except DPManifoldError:
            return math.inf

    def forecast(self, wanted: Wanted, fill: float) -> tuple[float, float]:
        """Return radius and stated error to expect if the data lie within `fill` radii of their mean."""
        radius = self.plan.radius(fill)
        if radius == self.plan.outer.radius:
            return radius, self.noise(wanted, radius)
        # A count whose noise is negative puts units outside that are inside: half a scale of it, on average.
        outside = 1 - REFINE_COVERAGE + self.plan.search.count_noise / self.plan.n / 2
        return radius, self.noise(wanted, radius) + outside * radius / 4


class Refinement:
    """A smaller ball before any statistic, or none where public numbers say that it cannot help.

    Attributes
    ----------
    plan : how the ball will be found; None if refinement was not asked for, or is skipped
    skipped : why it is skipped, or None
    rest : the promise that is left for the statistic; all of it if there is no search
    """

    def __init__(self, ball: Ball, n: int, privacy: Promise, refine: bool, wanted: Wanted) -> None:
        self.ball, self.n = ball, n
        self.plan: BallPlan | None = None
        self.skipped: str | None = None
        self.rest = self._cost = privacy
        if checked_flag(refine, "refine"):
            self._settle(wanted, privacy)

    def _settle(self, wanted: Wanted, privacy: Promise) -> None:
        """Take the way to share out the promise that gains most on a small cloud and loses little on a large one."""
        plain = wanted.choose(self.ball, self.n, privacy)[2].mean
        best, reasons = _LEAST_GAIN * plain, []
        # What keeps a pure promise keeps an approximate one, and with few units is often the better way to.
        for way in [privacy, *([PureDP(privacy.epsilon)] if isinstance(privacy, ApproxDP) else [])]:
            found = _BallAndRest.make(self.ball, self.n, way)
            if isinstance(found, str):
                reasons.append(found)
                continue
            small, filled = (found.forecast(wanted, fill)[1] for fill in (SMALL_FILL, 1.0))
            if math.isinf(filled):
                reasons.append(f'mechanism "{wanted.mechanism}" cannot take the share that a search leaves')
            elif filled > _LARGEST_LOSS * plain:
                reasons.append(f"data that fill the ball would be off by {filled:.3g} instead of {plain:.3g}")
            elif small > best:
                reasons.append("even for data that fill a tenth of the ball there is hardly anything to gain")
            else:
                best, self.plan, self.rest, self._cost = small, found.plan, found.rest, found.cost
        self.skipped = reasons[0] if self.plan is None else None

    @property
    def details(self) -> dict[str, float]:
        """What a release states if it was asked for refinement that could not help."""
        return {} if self.skipped is None else {"refine skipped": 1.0}

    def forecast(self, wanted: Wanted, fill: float) -> tuple[float, float] | None:
        """Return radius and expected error if the data lie within `fill` radii of their mean; None if skipped."""
        return None if self.plan is None else _BallAndRest(self.plan, self._cost, self.rest).forecast(wanted, fill)

    def find(self, points: UnitPoints, bits: Bits, neighbours: str = NEIGHBOURS) -> tuple[Release, ...]:
        """Release the ball as the first step of a statistic; nothing, if there is no search. Never raises."""
        if self.plan is None:
            return ()
        return (self.plan.release(points, self._cost, bits, neighbours, LEAST_INSIDE),)

    def move(self, steps: tuple[Release, ...], points: UnitPoints) -> UnitPoints:
        """Return the points in the frame of the ball that was released. Never raises."""
        inner: Ball = steps[0].value if steps else self.ball
        origin = np.broadcast_to(inner.frame.origin, (len(points), *inner.frame.shape))
        return sealed(lambda: points.in_ball(inner), lambda: UnitPoints.of(origin, inner, points.unit))


def level_of(promise: Promise) -> float:
    """Return the one number of a pure, zero-concentrated or Gaussian promise.

    Examples
    --------
    >>> level_of(PureDP(0.5))
    0.5
    """
    (level,) = (value for name, value in promise.to_dict().items() if name != "kind")
    return float(level)


def source_of(total: Promise, outer: Ball) -> str:
    """Say where a released ball comes from, and what it cost."""
    levels = ", ".join(f"{name}={value:.6g}" for name, value in total.to_dict().items() if name != "kind")
    return f"{RELEASED} {type(total).__name__}({levels}) inside: {outer.source or outer!r}"


def search_of(release: Release) -> RadiusSearch:
    """Return the search behind the release of a ball, from what the release states."""
    share = type(release.share)(release.details["search share"])  # type: ignore[call-arg]
    outer = release.ball
    return RadiusSearch(outer.space.dim, release.n, outer.radius, share, release.details["coverage"])
