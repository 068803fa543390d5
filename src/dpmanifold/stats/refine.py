"""A smaller ball before a statistic, or none where public numbers say that it cannot help (theory section 8).

After it has been released its centre is a coarse private mean, and the tangent mean there is one Newton step from it:
where the two are provably close it is taken in place of the Fréchet mean (theory: estimands). How far it can be from
the Fréchet mean of the same units follows from released numbers: the radius, the noise of the centre, and the count of
the units that the ball leaves out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dpmanifold import frechet
from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError, InvalidDataError
from dpmanifold.frechet import LabelledPoints, UnitPoints
from dpmanifold.mechanisms import Forecast, choose, get, preference
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.privacy import ApproxDP, Promise, PureDP, compose
from dpmanifold.release import TANGENT_GAP, Clipping, Release
from dpmanifold.statistic import Decisions, Header, Kind, Step
from dpmanifold.stats.ball_estimation import (
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

TANGENT = "tangent"
# What a release states whose value is a tangent mean that stands for the Fréchet mean.
STANDS_IN = frozenset({TANGENT_GAP})
# With this probability the centre's noise, and with the same the count, stays within what the distance allows for.
_SURELY = 0.999
# Of the units, for a forecast: what a search leaves out by design, and how far a count may be off, in its scale.
_LEFT_OUT, _NORMAL_TAIL = 0.01, 3.1
# "auto" takes it where the distance is at most this part of the expected noise.
_SMALL = 0.1


def gap_of(ball: Ball, n: int, steps: tuple[Release, ...]) -> float:
    """Bound the distance between tangent and Fréchet mean of n units in a ball, from what was released.

    In a ball that was released before as the first of the steps the bound holds with probability 0.998: the centre is a
    noisy mean of the units in the outer ball, and clipping to the smaller one moves that mean by no more than the count
    allows. In any ball the Fréchet mean is no farther from the centre than the radius.
    """
    step = next((step for step in steps if step.definition.kind is Kind.BALL and step.value == ball != step.ball), None)
    if step is None:
        return frechet.tangent_gap(ball)
    mechanism = get(step.mechanism)
    away = float(mechanism.forecast(step.ball, step.n, step.calibration).quantile(_SURELY))
    if mechanism.estimand == TANGENT:
        away += frechet.tangent_gap(step.ball)
    return frechet.tangent_gap(ball, away + Clipping.of(step, n).bound)


def stated_gap(release: Release) -> float:
    """Bound the same distance with what the draw itself says; all of it holds with probability 0.997.

    The average logarithm is no longer than the released one and the noise together, and the Fréchet mean's is off from
    it by at most a share of its own length, known from the ball: which bounds how far that mean is from the centre.
    """
    ball = release.ball
    before = gap_of(ball, release.n, release.steps)
    share = frechet.tangent_gap(ball) / ball.effective_radius
    if share >= 1:
        return before
    seen = float(ball.distance_to_center(release.value))
    if release.projected and seen >= ball.radius * (1 - 1e-9):  # the draw may have been anywhere outside
        return before
    noise = float(get(release.mechanism).forecast(ball, release.n, release.calibration).quantile(_SURELY))
    return min(before, frechet.tangent_gap(ball, (seen * (1 + 1e-9) + noise) / (1 - share)))


def expected_gap(ball: Ball, center: Forecast, share: float, outer: Ball) -> float:
    """Forecast :func:`gap_of` for a ball to be found, whose centre has this noise and whose count this, over n."""
    beyond = max(0.0, outer.radius - ball.radius) * (_LEFT_OUT + _NORMAL_TAIL * share)
    return frechet.tangent_gap(ball, float(center.quantile(_SURELY)) + beyond)


def stand_in(usual: Chosen, ball: Ball, n: int, share: Promise, gap: float) -> Chosen | None:
    """Return the tangent mean that "auto" takes for the Fréchet mean in a ball, or None; from public numbers.

    Its distance must be at most a tenth of the noise. Then it is taken if it can be drawn exactly and the usual
    mechanism cannot, as on products of curved spaces; or if noise and distance together are below the usual noise.
    """
    if ball.space.is_flat:
        return None
    found = choose("auto", ball, n, share, TANGENT)
    error = found[2].mean
    ours, theirs = (preference(one[0], ball, *one[1:])[:2] for one in (found, usual))
    better = (*ours, error + gap) < (*theirs, usual[2].mean)
    return found if better and gap <= _SMALL * error else None


def aims_at_frechet(mechanism: object, estimand: str | None) -> bool:
    """Return whether a tangent mean was asked for by the name of its mechanism, as an estimator of the Fréchet mean."""
    return estimand == FRECHET and mechanism != "auto" and get(mechanism).estimand == TANGENT  # type: ignore[arg-type]


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
