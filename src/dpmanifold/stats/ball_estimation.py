"""A ball, or a radius, nobody told us: found privately inside a large public ball (theory section 8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from dpmanifold._check import Array, FloatArray, fraction, shown
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.frechet import LabelledPoints, UnitPoints
from dpmanifold.mechanisms import Calibration, candidates
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise, PromiseError
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.release import RELEASED, Drawn, Release
from dpmanifold.statistic import STATISTICS, Header, Kind, Statistic, Step
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import (
    Chosen,
    Hidden,
    PointDraw,
    additive,
    additive_step,
    checked_arithmetic,
    choose_for,
    mean_step,
    refuse_inexact,
    tolerance_of,
)
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.program import Alone, Drawing, Program, step_of
from dpmanifold.stats.query import Option, Query
from dpmanifold.stats.samples import Units
from dpmanifold.stats.search import COUNT, MOST_ERROR, RadiusSearch

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
P = TypeVar("P", UnitPoints, LabelledPoints)


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
class BallSearch:
    """How a ball is found, from public numbers: by which mechanism its centre, and by which search its radius.

    Attributes
    ----------
    outer, n : the public ball and the number of units
    chosen : the mechanism of the centre
    search : of the radius
    """

    outer: Ball
    n: int
    chosen: Chosen
    search: RadiusSearch

    @staticmethod
    def make(
        header: Header, shares: Sequence[Promise], coverage: float, mechanism: Any = "auto", decision: str = "center"
    ) -> BallSearch:
        """Make every choice: the first share pays for the centre, the second for the radius."""
        outer, n = header.ball, header.n
        # Any centre near the data will do, and every space has a tangent mean.
        chosen = choose_for(header, mechanism, shares[0], otherwise="tangent", decision=decision)
        return BallSearch(outer, n, chosen, RadiusSearch(outer.space.dim, n, outer.radius, shares[1], coverage))

    @cached_property
    def obstacle(self) -> str | None:
        """Why no smaller ball can be expected, or None."""
        if not self.search.can_help:
            off = math.ceil(self.search.error)
            return f"counting units privately may be off by {off:,}, more than a quarter of all {self.n:,}"
        error = self.chosen[2].mean
        if error > _FARTHEST_CENTER * self.outer.radius:
            return f"its centre would be off by {error:.3g}, more than half the public radius {self.outer.radius:.3g}"
        return None

    def radius(self, fill: float) -> float:
        """Return the radius to expect if the data lie within `fill` times the outer radius of their mean."""
        spread = math.hypot(fill * self.outer.radius, self.chosen[2].mean)
        found = int(np.searchsorted(self.search.radii, spread * (1 - 1e-12)))
        return float(self.stretched[min(found, len(self.stretched) - 1)])

    @cached_property
    def stretched(self) -> FloatArray:
        """Every radius that it may end with, the outer one in place of those that are hardly smaller."""
        radii = self.search.radii * self.search.stretch
        return np.asarray(np.where(radii < WORTH_IT * self.outer.radius, radii, self.outer.radius))

    def step(self, header: Header) -> Step:
        """Return the draw of the centre; the counts that find the radius have no error of their own to state."""
        return mean_step(BALL, header, self.chosen)

    def draws(self, units: Hidden[Any], header: Header, least: float = 0.0) -> Drawing[Release]:
        """Find a centre and a radius from units' points in the outer frame.

        If fewer than the share `least` of the units seem to lie inside, the outer ball comes back.
        """
        outer, search, stretched = self.outer, self.search, self.stretched
        draw = PointDraw(outer, self.chosen, units)
        drawn: Drawn = yield draw
        center = center_of(outer, draw.place(drawn))
        # Every radius that the search may end with is public: one pass counts the units within all of them.
        found, searched, inside = yield from search.within(units, center, stretched)
        held = float(inside.numbers[0])
        # Less twice the scale of its noise: a count must not speak against a ball by chance.
        smaller = stretched[found] < outer.radius and held >= least * self.n - 2 * search.count_noise
        value = self._ball(center, float(stretched[found]), header) if smaller else outer
        details = {"coverage": search.coverage, "count_noise": search.count_noise, "units_inside": held}
        mechanism, calibration, _ = self.chosen
        return (
            yield from step_of(Release.of(
                BALL, value, header, calibration, (drawn, *searched, inside), details=details, projected=True,
                tol=tolerance_of(mechanism, outer, self.n), covers_timing=mechanism.covers_timing,
            ))
        )  # fmt: skip

    def _ball(self, center: Array, radius: float, header: Header) -> Ball:
        outer, said = self.outer, source_of(header.privacy, self.outer)
        # What was drawn may be no centre for a ball (a matrix singular to working precision): decided by the release.
        return with_fallback(
            lambda: Ball(outer.space, center_in_space(outer, center), radius, said, simulated=not header.private),
            lambda: outer,
            InvalidArgumentError,
            InvalidDataError,
        )


class BallStatistic(Statistic):
    """A ball inside a public one."""

    name, words, kind = "ball", "a smaller ball that holds most of the units", Kind.BALL
    details = frozenset({"count_noise", "coverage", "units_inside"})

    def prepared(self, header: Header, *, coverage: float = 0.95, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Choose the centre's mechanism and the search, or refuse where no smaller ball can be expected."""
        coverage = fraction(coverage, "coverage")
        require_ball(header.ball)
        able = [found.name for found in candidates()]
        if mechanism not in ("auto", *able):
            raise InvalidArgumentError(
                f'`mechanism` must be "auto" or one of {", ".join(able)} for a ball, got {shown(mechanism)}.'
            )
        search = BallSearch.make(header, divide(header.privacy, BALL_SHARES), coverage, mechanism)
        if search.obstacle is not None:
            raise PromiseError(f"no smaller ball can be found: {search.obstacle}. Use more units or a weaker promise.")
        refuse_inexact(header.arithmetic, search.chosen[0], header.ball, search.chosen[1])
        return Alone(header, search.step(header), lambda units: search.draws(units, header))


BALL = BallStatistic()
STATISTICS.register(BALL.name, BALL)


def center_of(outer: Ball, draw: Array) -> Array:
    """Move a draw into the outer ball, in its frame: on positive curvature the new ball must not reach around."""
    return with_fallback(lambda: outer.in_frame.pull_in(draw[None])[0], lambda: outer.frame.origin)


def moved_into(ball: Ball, units: Hidden[P]) -> Hidden[P]:
    """Return units' points in the frame of a released ball, all at its centre where that fails."""
    return units.then(lambda points: points.in_ball(ball), lambda points: points.at_center(ball))


def center_in_space(outer: Ball, center: Array) -> Array:
    """Move a centre from the frame to the space."""
    return np.asarray(outer.pull_in(outer.from_frame(center[None]))[0])


def source_of(total: Promise, outer: Ball) -> str:
    """Say where a released ball comes from, and what it cost."""
    numbers = ", ".join(f"{name}={getattr(total, name):.6g}" for name in total.stated)
    return f"{RELEASED} {type(total).__name__}({numbers}) inside: {outer.source or outer!r}"


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


# -------------------------------------------------------------------- a radius

# As the search of a smaller ball, without a draw of its centre: for few units in many dimensions that draw would be off
# by more than it could save. Shaped means look for their radius in this way, in their own norm.


@dataclass(frozen=True)
class RadiusPlan:
    """How a radius will be found, from public numbers alone.

    Attributes
    ----------
    outer : the public ball
    n : number of units
    share : the promise of the search
    coverage : share of the units that it should hold
    """

    outer: Ball
    n: int
    share: Promise
    coverage: float

    @cached_property
    def search(self) -> RadiusSearch:
        """The search."""
        return RadiusSearch(self.outer.space.dim, self.n, self.outer.radius, self.share, self.coverage)

    def obstacle(self, most: float = MOST_ERROR) -> str | None:
        """Return why it cannot be found, counts being allowed to be off by this share of the units; or None."""
        off = self.search.error
        if off <= most * self.n:
            return None
        return f"counting units privately may be off by {off:,.0f}, more than {most:.0%} of all {self.n:,}"

    @cached_property
    def radii(self) -> FloatArray:
        """Every radius that it may end with."""
        return np.asarray(np.minimum(self.search.radii * self.search.stretch, self.outer.radius))

    @property
    def calibration(self) -> Calibration:
        """The noise on the count of the units within; the promise is that of the whole search."""
        law = additive(COUNT, self.search.last_share).mechanism
        return Calibration(law, self.share, self.search.count_noise, COUNT, "counts")

    def step(self, header: Header) -> Step:
        """Return the draw to come; a count has no error that would say anything of what it is for."""
        return additive_step(RADIUS, header, self.calibration, None, None)

    def draws(self, units: Hidden[Any], header: Header, steps: tuple[Release, ...] = ()) -> Drawing[Release]:
        """Find it, given units' points in the outer ball's frame."""
        outer = self.outer
        found, searched, inside = yield from self.search.within(units, outer.frame.origin, self.radii)
        source = source_of(header.privacy, outer)
        # A ball so small may be beyond double precision: decided by the release.
        value = with_fallback(
            lambda: Ball(outer.space, outer.center, float(self.radii[found]), source, simulated=not header.private),
            lambda: outer,
            InvalidArgumentError,
        )
        details = {
            "coverage": self.coverage,
            "count_noise": self.search.count_noise,
            "units_inside": float(inside.numbers[0]),
        }
        return (
            yield from step_of(Release.of(
                RADIUS, value, header.inside(outer), self.calibration, (*searched, inside), steps, details, tol=0.0,
                projected=True,
            ))
        )  # fmt: skip


class Radius(Statistic):
    """A ball about the public centre that holds most of the units."""

    name, words, kind = "radius", "a smaller ball about the same centre that holds most of the units", Kind.BALL
    details = frozenset({"coverage", "units_inside", "count_noise"})

    def prepared(self, header: Header, *, coverage: float = 0.95, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Plan the search, or refuse where counts would be too noisy."""
        require_ball(header.ball)
        checked_arithmetic(header.arithmetic)
        plan = RadiusPlan(header.ball, header.n, header.privacy, fraction(coverage, "coverage"))
        additive(COUNT, plan.search.last_share, mechanism)
        obstacle = plan.obstacle()
        if obstacle is not None:
            raise PromiseError(f"no radius can be found: {obstacle}. Use more units or a weaker promise.")
        return Alone(header, plan.step(header), lambda units: plan.draws(units, header))


RADIUS = Radius()
STATISTICS.register(RADIUS.name, RADIUS)
