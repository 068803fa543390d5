"""A ball nobody told us: found privately inside a large public one (theory section 8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray, fraction, shown
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import Calibration, Forecast, Mechanism, attempt, candidates, choose, get
from dpmanifold.noise.exact import grid_of
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise, PromiseError
from dpmanifold.privacy.accounts import Account
from dpmanifold.release import RELEASED, Release
from dpmanifold.statistic import STATISTICS, Header, Kind, Prepared, Statistic, Step
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import Bits, draw_mean, refuse_inexact, stated, timing_of, tolerance_of
from dpmanifold.stats.grids import follows, on_grid
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.query import Option, Query
from dpmanifold.stats.ranges import ROUNDING, SURELY, rounding_of, same_number, tail_of, within
from dpmanifold.stats.recipes import Recipe
from dpmanifold.stats.samples import Units
from dpmanifold.stats.search import RadiusSearch
from dpmanifold.stats.steps import Alone, mean_step

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
_DETAILS = frozenset({"search share", "count noise", "coverage", "units inside"})
TOO_FEW = "units inside: a search for so many units ends at no radius that seems to hold so few"


def private_ball(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    coverage: float = 0.95,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> Release:
    """Release a ball that holds most of the units, inside a public one that may be far too large.

    Half the promise finds a centre, half a radius on a fixed grid. With probability 0.999 the ball holds the wanted
    share of the units less a quarter (at least half of them, for a coverage of 0.75 or more), or it is the public one;
    where promise and number of units do not allow for that, it is refused before anything is spent. The noisy number
    of units inside is in `details`.

    Parameters
    ----------
    X, privacy, units, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`
    ball : the public ball, in which a smaller one is looked for
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
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    return ask(BALL_QUERY.asked(coverage=coverage), Units(X), ball, privacy, terms).release


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
    def make(outer: Ball, n: int, shares: Sequence[Promise], coverage: float, mechanism: Any = "auto") -> BallPlan:
        """Make every choice: the first share pays for the centre, the second for the radius."""
        try:
            chosen, calibration, forecast = choose(mechanism, outer, n, shares[0])
        except PromiseError:
            if mechanism != "auto":
                raise
            # Any centre near the data will do, and every space has a tangent mean.
            chosen, calibration, forecast = choose(mechanism, outer, n, shares[0], "tangent")
        search = RadiusSearch(outer.space.dim, n, outer.radius, shares[1], coverage)
        return BallPlan(outer, n, chosen, calibration, forecast, search)

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

    def step(self, header: Header) -> Step:
        """Return the draw of the centre; the counts that find the radius have no error of their own to state."""
        return mean_step(BALL, header, (self.mechanism, self.calibration, self.forecast))

    def release(self, points: UnitPoints, header: Header, bits: Bits, least: float = 0.0) -> Release:
        """Find a centre and a radius from units' points in the outer frame. Never raises.

        If fewer than the share `least` of the units seem to lie inside, the outer ball comes back.
        """
        outer, search, private = self.outer, self.search, bits.private
        draw = draw_mean(outer, self.mechanism, self.calibration, points, bits)
        center = center_of(outer, draw.point)
        # Every radius that the search may end with is public: one pass counts the units within all of them.
        stretched = np.array([self._stretched(index) for index in range(len(search.radii))])
        asked = np.concatenate([search.radii, stretched])
        counts = with_fallback(lambda: points.within(center, asked), lambda: np.full(len(asked), float(self.n)))
        found = search.find_by(counts[: len(stretched)], bits)
        radius = float(stretched[found])
        inside = search.noisy_count(float(counts[len(stretched) + found]), bits)
        # Less twice the scale of its noise: a count must not speak against a ball by chance.
        enough = inside >= least * self.n - 2 * search.count_noise
        smaller = radius < outer.radius and enough
        value = self._ball(center, radius, header.privacy, private) if smaller else outer
        details = {
            "search share": strength_of(search.share),
            "coverage": search.coverage,
            "count noise": search.count_noise,
            "units inside": inside,
        }
        return Release.of(
            BALL, value, header, self.calibration, details=details, tol=tolerance_of(self.mechanism, outer, self.n),
            projected=True, private=private, timing=timing_of(self.mechanism, ()), **stated(draw),
        )  # fmt: skip

    def _ball(self, center: Array, radius: float, total: Promise, private: bool) -> Ball:
        outer = self.outer
        said = source_of(total, outer)
        # What was drawn may be no centre for a ball (a matrix singular to working precision): decided by the release.
        return with_fallback(
            lambda: Ball(outer.space, center_in_space(outer, center), radius, said, simulated=not private),
            lambda: outer,
            InvalidArgumentError,
            InvalidDataError,
        )


def found_faults(release: Release, radii: FloatArray) -> list[str]:
    """Return what is wrong with a ball that was found: its radius, given those that were tried, or what it says."""
    value, found = release.value, []
    if not np.isclose(value.radius, radii, rtol=ROUNDING, atol=0).any():
        found.append("value: the radius is not one that the search tries")
    if value.source != source_of(release.privacy, release.ball):
        found.append("value: the ball's source is not this release")
    if value.simulated == release.private:
        found.append("value: the ball does not say of itself what its release says: private, or simulated")
    return found


class BallStatistic(Statistic):
    """A ball inside a public one."""

    name, words, kind = "ball", "a smaller ball that holds most of the units", Kind.BALL
    details = _DETAILS

    def prepared(self, header: Header, *, coverage: float = 0.95, mechanism: Any = "auto") -> Prepared:
        """Choose the centre's mechanism and the search, or refuse where no smaller ball can be expected."""
        coverage = fraction(coverage, "coverage")
        require_ball(header.ball)
        able = [found.name for found in candidates()]
        if mechanism not in ("auto", *able):
            raise InvalidArgumentError(
                f'`mechanism` must be "auto" or one of {", ".join(able)} for a ball, got {shown(mechanism)}.'
            )
        plan = BallPlan.make(header.ball, header.n, divide(header.privacy, BALL_SHARES), coverage, mechanism)
        if plan.obstacle is not None:
            raise PromiseError(f"no smaller ball can be found: {plan.obstacle}. Use more units or a weaker promise.")
        refuse_inexact(header.arithmetic, plan.mechanism, header.ball, plan.calibration)
        return Alone(header, plan)

    def recipes(self) -> Sequence[Recipe]:
        """Return the ways: by itself; before another statistic it is a step of that one."""
        return (ball_recipe(BALL_SHARES),)

    def calibrated(self, release: Release) -> tuple[Calibration, float]:
        """Return the noise on the centre."""
        return recalibrated(release)

    def tolerance(self, release: Release) -> float:
        """Return the tolerance of the centre."""
        return tolerance_of(get(release.mechanism), release.ball, release.n)

    def timing(self, release: Release) -> str:
        """Say what the running time of the centre's draw tells."""
        return timing_of(get(release.mechanism), release.steps)

    def grid(self, release: Release, calibration: Calibration) -> int | None:
        """Return the grid of the centre."""
        return grid_of_point(release, calibration)

    def details_faults(self, release: Release, recipe: Recipe, shares: list[Promise]) -> list[str]:
        """Return what a search for a radius would not have stated."""
        numbers, found, share = release.details, [], shares[recipe.before + 1]
        if not 0 < numbers["coverage"] <= 1 or (recipe.refined and numbers["coverage"] != REFINE_COVERAGE):
            return ["coverage: it is a share above 0 and at most 1, and a fixed one where a statistic follows"]
        if not same_number(numbers["search share"], strength_of(share)):
            found.append(f"search share: stated {numbers['search share']:.6g}, recomputed {strength_of(share):.6g}")
        search = search_of(release)
        if not same_number(numbers["count noise"], search.count_noise):
            found.append(f"count noise: stated {numbers['count noise']:.6g}, recomputed {search.count_noise:.6g}")
        least = LEAST_INSIDE if recipe.refined else 0.0
        if release.value != release.ball and numbers["units inside"] < least * release.n - 2 * search.count_noise:
            found.append("units inside: a ball that seems to hold so few is not used")
        if release.value != release.ball and numbers["units inside"] < search.surely_counted:
            found.append(TOO_FEW)
        if not within(numbers["units inside"], 0.0, release.n, tail_of(search.share) * search.count_noise):
            found.append("units inside: no count of the units and no noise of that scale come to it")
        return found

    def value_faults(self, release: Release, noise: float) -> list[str]:
        """Return why a search could not have ended with this ball."""
        value, outer = release.value, release.ball
        if value == outer:
            return []
        if value.space != outer.space or not outer.distance_to_center(value.center) <= outer.radius + rounding_of(
            outer, value.center
        ):
            return ["value: the released centre lies outside the outer ball"]
        search = search_of(release)
        radii = search.radii * search.stretch
        return found_faults(release, radii[radii < WORTH_IT * outer.radius])

    def drawn_faults(self, release: Release, noise: float) -> list[str]:
        """Return whether the count is off its grid, or the centre not made of the draw."""
        assert release.drawn is not None
        if not on_grid(release.details["units inside"], grid_of(release.details["count noise"], release.n)):
            return ["units inside: not on the grid of the counts"]
        if release.value == release.ball:
            return []
        drawn = get(release.mechanism).place(release.ball, release.drawn)
        return follows(release, release.value.center, center_in_space(release.ball, center_of(release.ball, drawn)))


BALL = BallStatistic()
STATISTICS.register(BALL.name, BALL)


def ball_recipe(shares: tuple[float, ...], refined: str = "") -> Recipe:
    """Return how a ball is made, by itself or before another statistic ("pure" or "other")."""
    mechanisms = tuple(mechanism.name for mechanism in (*candidates(), *candidates("tangent")))
    return Recipe(BALL.name, mechanisms, shares, None, _DETAILS, (), True, refined=refined)


def recalibrated(release: Release) -> tuple[Calibration, float]:
    """Return the noise of a mechanism that draws points, recomputed, and what its length surely stays below."""
    found = attempted(release, release.ball)
    if isinstance(found, str):
        raise InvalidArgumentError(f"{release.mechanism} cannot keep {release.share} there: {found}")
    calibration, forecast = found
    # A draw that was moved into the ball, and is not stated, may have been anywhere.
    shown = release.raw is not None or release.drawn is not None or not release.projected
    return calibration, float(forecast.quantile(SURELY)) if shown else math.inf


def attempted(release: Release, ball: Ball) -> tuple[Calibration, Forecast] | str:
    """Return the noise of a release's mechanism in a ball, by the rule and bound that it states, or why not."""
    mechanism = get(release.mechanism).following(release.rule)
    bound = None
    if release.sensitivity.bound == "tight" and mechanism.sensitivity(ball, release.n).bound == "sharp":
        bound = mechanism.former_bound(ball, release.n)
    return attempt(mechanism, ball, release.n, release.share, bound)


def grid_of_point(release: Release, calibration: Calibration) -> int | None:
    """Return the grid that a mechanism draws points on; None if it draws doubles."""
    mechanism = get(release.mechanism)
    return mechanism.grid(release.ball, calibration) if mechanism.offers_exact(release.ball, calibration) else None


def center_of(outer: Ball, draw: Array) -> Array:
    """Move a draw into the outer ball, in its frame: on positive curvature the new ball must not reach around."""
    return with_fallback(lambda: outer.in_frame.pull_in(draw[None])[0], lambda: outer.frame.origin)


def moved_into(ball: Ball, points: UnitPoints) -> UnitPoints:
    """Return units' points in the frame of a released ball, all at its centre where that fails. Never raises."""
    return with_fallback(lambda: points.in_ball(ball), lambda: points.at_center(ball))


def center_in_space(outer: Ball, center: Array) -> Array:
    """Move a centre from the frame to the space."""
    return np.asarray(outer.pull_in(outer.from_frame(center[None]))[0])


def strength_of(promise: Promise) -> float:
    """Return the one number of a pure, zero-concentrated or Gaussian promise.

    Examples
    --------
    >>> from dpmanifold.privacy import PureDP
    >>> strength_of(PureDP(0.5))
    0.5
    """
    (strength,) = promise.stated
    return float(getattr(promise, strength))


def source_of(total: Promise, outer: Ball) -> str:
    """Say where a released ball comes from, and what it cost."""
    numbers = ", ".join(f"{name}={getattr(total, name):.6g}" for name in total.stated)
    return f"{RELEASED} {type(total).__name__}({numbers}) inside: {outer.source or outer!r}"


def search_of(release: Release) -> RadiusSearch:
    """Return the search behind the release of a ball, from what the release states."""
    share = type(release.share)(release.details["search share"])  # type: ignore[call-arg]
    outer = release.ball
    return RadiusSearch(outer.space.dim, release.n, outer.radius, share, release.details["coverage"])


COVERAGE = Option(
    "coverage", "fraction", "Share of the units", "Share of the units that the ball is to hold, between 0 and 1."
)
BALL_QUERY = Query(
    name="ball",
    title="A smaller ball",
    call=private_ball,
    sample=Units,
    plan=BALL.prepared,
    options=(COVERAGE,),
    releases=(BALL.name,),
    views=("picture",),
    squares=False,
)
