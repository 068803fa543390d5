"""A smaller ball before a statistic, or none where public numbers say that it cannot help (theory section 8)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import Calibration, Forecast, Mechanism, choose
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.privacy import ApproxDP, Promise, PureDP, compose
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Step
from dpmanifold.stats.ball import (
    LEAST_INSIDE,
    PURE_REFINE_SHARES,
    REFINE_COVERAGE,
    REFINE_SHARES,
    BallPlan,
    ball_recipe,
    moved_into,
)
from dpmanifold.stats.draws import Bits
from dpmanifold.stats.inputs import checked_flag, divide
from dpmanifold.stats.recipes import Recipe
from dpmanifold.stats.stand_in import expected_gap, stand_in

# Data that fill less of the ball than this are rare: where not even they would gain this much, nobody does.
SMALL_FILL = 0.1
_LEAST_GAIN = 0.95
# Data that fill the ball may lose this much to the search. Of an approximate promise they lose, besides, what noise
# calibrated to it by its exact profile saves: a promise that is shared out is kept by way of another one.
_LARGEST_LOSS = 1.13
# What a release states where no smaller ball was looked for.
SKIPPED = frozenset({"refine skipped"})


@dataclass(frozen=True)
class Wanted:
    """What was asked for: "auto", a mechanism or its name, and which mean (None: whatever the mechanism hides)."""

    mechanism: Any = "auto"
    estimand: str | None = None

    @property
    def is_auto(self) -> bool:
        """Whether the Fréchet mean is wanted by whatever mechanism is best."""
        return isinstance(self.mechanism, str) and self.mechanism == "auto" and self.estimand in (None, FRECHET)

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
        """Return the expected noise in a ball of that radius about the public centre; infinite if it has no law.

        With the distance from the Fréchet mean, if a tangent mean is to be expected in its place.
        """
        outer, n = self.plan.outer, self.plan.n
        ball = Ball(outer.space, outer.center, radius)
        if wanted.is_auto and radius < outer.radius:
            gap = expected_gap(ball, self.plan.forecast, self.plan.search.count_noise / n, outer)
            try:
                found = stand_in(wanted.choose(ball, n, self.rest), ball, n, self.rest, gap)
            except DPManifoldError:
                return math.inf
            if found is not None:
                return found[2].mean + gap
        return _noise(wanted, ball, n, self.rest)

    def forecast(self, wanted: Wanted, fill: float) -> tuple[float, float]:
        """Return radius and stated error to expect if the data lie within `fill` radii of their mean."""
        radius = self.plan.radius(fill)
        if radius == self.plan.outer.radius:
            return radius, self.noise(wanted, radius)
        # A count whose noise is negative puts units outside that are inside: half a scale of it, on average.
        outside = 1 - REFINE_COVERAGE + self.plan.search.count_noise / self.plan.n / 2
        return radius, self.noise(wanted, radius) + outside * radius / 4


def _noise(wanted: Wanted, ball: Ball, n: int, privacy: Promise) -> float:
    """Return the expected noise, infinite where nothing keeps the promise."""
    try:
        return wanted.choose(ball, n, privacy)[2].mean
    except DPManifoldError:
        return math.inf


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
        plain = unshared = wanted.choose(self.ball, self.n, privacy)[2].mean
        # What keeps a pure promise keeps an approximate one, and with few units is often the better way to.
        ways = [privacy]
        if isinstance(privacy, ApproxDP):
            ways.append(PureDP(privacy.stated["epsilon"]))
            unshared = max(plain, min(_noise(wanted, self.ball, self.n, divide(way, 1)[0]) for way in ways))
        best, reasons = _LEAST_GAIN * plain, []
        for way in ways:
            found = _BallAndRest.make(self.ball, self.n, way)
            if isinstance(found, str):
                reasons.append(found)
                continue
            small, filled = (found.forecast(wanted, fill)[1] for fill in (SMALL_FILL, 1.0))
            if math.isinf(filled):
                name = getattr(wanted.mechanism, "name", wanted.mechanism)
                reasons.append(f'mechanism "{name}" cannot take the share that a search leaves')
            elif filled > _LARGEST_LOSS * unshared:
                reasons.append(f"data that fill the ball would be off by {filled:.3g} instead of {plain:.3g}")
            elif small > best:
                reasons.append("even for data that fill a tenth of the ball there is hardly anything to gain")
            else:
                best, self.plan, self.rest, self._cost = small, found.plan, found.rest, found.cost
        self.skipped = reasons[0] if self.plan is None else None

    @property
    def details(self) -> dict[str, float]:
        """What a release states if it was asked for refinement that could not help."""
        return {} if self.skipped is None else dict.fromkeys(SKIPPED, 1.0)

    def forecast(self, wanted: Wanted, fill: float) -> tuple[float, float] | None:
        """Return radius and expected error if the data lie within `fill` radii of their mean; None if skipped."""
        return None if self.plan is None else _BallAndRest(self.plan, self._cost, self.rest).forecast(wanted, fill)

    def steps(self, header: Header) -> tuple[Step, ...]:
        """Return the draw of the ball's centre, as public numbers foresee it; nothing, if there is no search."""
        return () if self.plan is None else (self.plan.step(header),)

    def find(self, points: UnitPoints, header: Header, bits: Bits) -> tuple[Release, ...]:
        """Release the ball as the first step of a statistic; nothing, if there is no search. Never raises."""
        if self.plan is None:
            return ()
        return (self.plan.release(points, header.promising(self._cost), bits, LEAST_INSIDE),)

    def move(self, steps: tuple[Release, ...], points: UnitPoints) -> UnitPoints:
        """Return the points in the frame of the ball that was released. Never raises."""
        inner: Ball = steps[0].value if steps else self.ball
        return moved_into(inner, points)


def in_smaller_ball(recipe: Recipe, way: str = "other") -> Recipe:
    """Return a recipe with a ball found first, which takes all but the last of the shares of refinement.

    Parameters
    ----------
    recipe : of the statistic by itself
    way : "pure" or "other", how promises are shared out
    """
    *ball, rest = PURE_REFINE_SHARES if way == "pure" else REFINE_SHARES
    weights = (*ball, *(rest * share / sum(recipe.shares) for share in recipe.shares))

    def after(part: Recipe) -> Recipe:
        step = ball_recipe(tuple(ball), way) if part.step is None else after(part.step)
        optional = tuple(group for group in part.optional if group != SKIPPED)
        return replace(part, shares=weights[: len(ball) + len(part.shares)], step=step, optional=optional, refined=way)

    return after(recipe)
