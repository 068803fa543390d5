"""A smaller ball before a statistic, or none where public numbers say that it cannot help (theory section 8)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError, InvalidDataError
from dpmanifold.frechet import LabelledPoints, UnitPoints
from dpmanifold.mechanisms import choose
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.privacy import ApproxDP, Promise, PureDP, compose
from dpmanifold.release import Release
from dpmanifold.statistic import Decisions, Header, Step
from dpmanifold.stats.ball import (
    LEAST_INSIDE,
    PURE_REFINE_SHARES,
    REFINE_COVERAGE,
    REFINE_SHARES,
    BallSearch,
    moved_into,
)
from dpmanifold.stats.draws import Chosen, Hidden
from dpmanifold.stats.inputs import checked_flag, divide
from dpmanifold.stats.program import Drawing
from dpmanifold.stats.stand_in import expected_gap, stand_in

P = TypeVar("P", UnitPoints, LabelledPoints)

# Data that fill less of the ball than this are rare: where not even they would gain this much, nobody does.
SMALL_FILL = 0.1
_LEAST_GAIN = 0.95
# Data that fill the ball may lose this much to the search. Of an approximate promise they lose, besides, what noise
# calibrated to it by its exact profile saves: a promise that is shared out is kept by way of another one.
_LARGEST_LOSS = 1.13
# What a release states where no smaller ball was looked for.
SKIPPED = frozenset({"refinement_skipped"})
# What is decided of refinement.
REFINEMENT = "refine"
_SKIPPED, _USED, _USED_AS_PURE = "skipped", "used", "used, by a pure guarantee"


@dataclass(frozen=True)
class Wanted:
    """What was asked for: "auto", a mechanism or its name, and which mean (None: whatever the mechanism hides)."""

    mechanism: Any = "auto"
    estimand: str | None = None

    @property
    def is_auto(self) -> bool:
        """Whether the Fréchet mean is wanted by whatever mechanism is best."""
        return isinstance(self.mechanism, str) and self.mechanism == "auto" and self.estimand in (None, FRECHET)

    def choose(self, ball: Ball, n: int, privacy: Promise) -> Chosen:
        """Return the mechanism that keeps the promise there, or refuse."""
        return choose(self.mechanism, ball, n, privacy, self.estimand)


@dataclass(frozen=True)
class _BallAndRest:
    """One way to share out a promise between a ball and the statistic in it."""

    plan: BallSearch
    cost: Promise
    rest: Promise

    @staticmethod
    def make(header: Header, privacy: Promise) -> _BallAndRest | str:
        """Return it, or why no smaller ball can be found."""
        if header.ball.is_whole:
            return "a smaller ball is looked for inside a public one, and this is the whole space"
        shares = divide(privacy, PURE_REFINE_SHARES if isinstance(privacy, PureDP) else REFINE_SHARES)
        try:
            plan = BallSearch.make(header, shares[:2], REFINE_COVERAGE, decision="ball_center_mechanism")
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
            gap = expected_gap(ball, self.plan.chosen[2], self.plan.search.count_noise / n, outer)
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
    skipped : why it is skipped, or None
    rest : the promise that is left for the statistic; all of it if there is no search
    """

    def __init__(self, header: Header, privacy: Promise, refine: bool, wanted: Wanted) -> None:
        self.header, self._wanted = header, wanted
        self._found: _BallAndRest | None = None
        self.skipped: str | None = None
        self.rest = privacy
        if checked_flag(refine, "refine"):
            self._settle(privacy)

    def _settle(self, privacy: Promise) -> None:
        """Share the promise out, or say why no ball is looked for."""
        ways = {_USED: privacy}
        if isinstance(privacy, ApproxDP):
            # What keeps a pure promise keeps an approximate one, and with few units is often the better way to.
            ways[_USED_AS_PURE] = PureDP(privacy.stated["epsilon"])
        made = self.header.decide(REFINEMENT, lambda: self._best(ways, privacy), {_SKIPPED, *ways}.__contains__)
        if made == _SKIPPED:
            self.skipped = self.skipped or "it was not worth it"
            return
        found = _BallAndRest.make(self.header, ways[made])
        if isinstance(found, str):
            raise InvalidDataError(f"no smaller ball can have been looked for: {found}")
        self._found, self.rest = found, found.rest

    def _best(self, ways: dict[str, Promise], privacy: Promise) -> str:
        """Return the way to share the promise out that gains most on a small cloud and loses little on a large one."""
        ball, n, wanted = self.header.ball, self.header.n, self._wanted
        header = replace(self.header, decisions=Decisions())  # nothing is decided yet
        plain = unshared = wanted.choose(ball, n, privacy)[2].mean
        if isinstance(privacy, ApproxDP):
            unshared = max(plain, min(_noise(wanted, ball, n, divide(way, 1)[0]) for way in ways.values()))
        best, least, reasons = _SKIPPED, _LEAST_GAIN * plain, []
        for name, way in ways.items():
            found = _BallAndRest.make(header, way)
            if isinstance(found, str):
                reasons.append(found)
                continue
            small, filled = (found.forecast(wanted, fill)[1] for fill in (SMALL_FILL, 1.0))
            if math.isinf(filled):
                mechanism = getattr(wanted.mechanism, "name", wanted.mechanism)
                reasons.append(f'mechanism "{mechanism}" cannot take the share that a search leaves')
            elif filled > _LARGEST_LOSS * unshared:
                reasons.append(f"data that fill the ball would be off by {filled:.3g} instead of {plain:.3g}")
            elif small > least:
                reasons.append("even for data that fill a tenth of the ball there is hardly anything to gain")
            else:
                best, least = name, small
        self.skipped = reasons[0] if best == _SKIPPED else None
        return best

    @property
    def details(self) -> dict[str, float]:
        """What a release states if it was asked for refinement that could not help."""
        return {} if self.skipped is None else dict.fromkeys(SKIPPED, 1.0)

    def forecast(self, fill: float) -> tuple[float, float] | None:
        """Return radius and expected error if the data lie within `fill` radii of their mean; None if skipped."""
        return None if self._found is None else self._found.forecast(self._wanted, fill)

    def steps(self) -> tuple[Step, ...]:
        """Return the draw of the ball's centre, as public numbers foresee it; nothing, if there is no search."""
        return () if self._found is None else (self._found.plan.step(self.header),)

    def find(self, units: Hidden[P]) -> Drawing[tuple[Ball, Hidden[P], tuple[Release, ...]]]:
        """Release the ball as the first step of a statistic, and return it with the units' points in its frame.

        If there is no search nothing is released, and the public ball comes back.
        """
        if self._found is None:
            return self.header.ball, units, ()
        header = self.header.promising(self._found.cost)
        step: Release = yield from self._found.plan.draws(units, header, LEAST_INSIDE)
        return step.value, moved_into(step.value, units), (step,)
