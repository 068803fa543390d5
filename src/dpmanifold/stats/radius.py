"""A radius nobody told us: how far from the centre of a public ball most of the units lie (theory section 8, refine).

As the search of a smaller ball, without a draw of its centre: for few units in many dimensions that draw would be off
by more than it could save. Shaped means look for their radius in this way, in their own norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifold._check import FloatArray, fraction
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import Calibration
from dpmanifold.noise.exact import grid_of
from dpmanifold.privacy import Promise, PromiseError
from dpmanifold.release import DRAW_COVERED, EXACT, FLOAT, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind, Prepared, Statistic, Step
from dpmanifold.stats.additive import ADDITIVE, additive
from dpmanifold.stats.ball import TOO_FEW, found_faults, source_of
from dpmanifold.stats.draws import Bits, checked_arithmetic, noisy, stated
from dpmanifold.stats.ranges import tail_of, within
from dpmanifold.stats.recipes import EITHER, Recipe
from dpmanifold.stats.search import MOST_ERROR, RadiusSearch
from dpmanifold.stats.steps import Alone

_DETAILS = frozenset({"coverage", "units inside", "count noise"})
_COUNT = Sensitivity(1.0, "number of units", "tight", "docs/theory/refine.md")


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
        law, rule = additive(_COUNT, self.search.last_share).mechanism, "counts"
        return Calibration(law, self.share, self.search.count_noise, _COUNT, rule)

    def step(self, header: Header) -> Step:
        """Return the draw to come; a count has no error that would say anything of what it is for."""
        made, arithmetic = self.calibration, FLOAT if header.arithmetic == FLOAT else EXACT
        return Step(
            RADIUS.name, made.mechanism, made.privacy, made.scale, made.rule, None, None, True, arithmetic=arithmetic
        )

    def release(self, points: UnitPoints, header: Header, bits: Bits, steps: tuple[Release, ...] = ()) -> Release:
        """Find it, given units' points in the outer ball's frame. Never raises."""
        search, outer, radii = self.search, self.outer, self.radii
        asked = np.concatenate([search.radii, radii])
        origin = outer.frame.origin
        counts = with_fallback(lambda: points.within(origin, asked), lambda: np.full(len(asked), float(self.n)))
        found = search.find_by(counts[: len(radii)], bits)
        law = self.calibration.mechanism
        inside = noisy(float(counts[len(radii) + found]), law, search.count_noise, self.n, bits)
        source = source_of(header.privacy, outer)
        # A ball so small may be beyond double precision: decided by the release.
        value = with_fallback(
            lambda: Ball(outer.space, outer.center, float(radii[found]), source, simulated=not bits.private),
            lambda: outer,
            InvalidArgumentError,
        )
        details = {
            "coverage": self.coverage,
            "count noise": search.count_noise,
            "units inside": float(inside.numbers[0]),
        }
        return Release.of(
            RADIUS, value, header.inside(outer), self.calibration, steps, details, tol=0.0, projected=True,
            private=bits.private, timing=DRAW_COVERED, **stated(inside),
        )  # fmt: skip


class Radius(Statistic):
    """A ball about the public centre that holds most of the units."""

    name, words, kind = "radius", "a smaller ball about the same centre that holds most of the units", Kind.BALL
    details = _DETAILS

    def prepared(self, header: Header, *, coverage: float = 0.95, mechanism: Any = "auto") -> Prepared:
        """Plan the search, or refuse where counts would be too noisy."""
        require_ball(header.ball)
        checked_arithmetic(header.arithmetic)
        plan = RadiusPlan(header.ball, header.n, header.privacy, fraction(coverage, "coverage"))
        additive(_COUNT, plan.search.last_share, mechanism)
        obstacle = plan.obstacle()
        if obstacle is not None:
            raise PromiseError(f"no radius can be found: {obstacle}. Use more units or a weaker promise.")
        return Alone(header, plan)

    def recipes(self) -> Sequence[Recipe]:
        """Return: by itself; before another statistic it is a step of that one."""
        return (radius_recipe(),)

    def _plan(self, release: Release) -> RadiusPlan:
        return RadiusPlan(release.ball, release.n, release.share, release.details["coverage"])

    def calibrated(self, release: Release) -> tuple[Calibration, float]:
        """Return the noise on the counts."""
        plan = self._plan(release)
        return plan.calibration, tail_of(plan.search.share) * plan.search.count_noise

    def grid(self, release: Release, calibration: Calibration) -> int | None:
        """Return the grid of the counts."""
        return grid_of(calibration.scale, release.n)

    def details_faults(self, release: Release, recipe: Recipe, shares: list[Promise]) -> list[str]:
        """Return what a search would not have stated."""
        numbers = release.details
        if not 0 < numbers["coverage"] <= 1:
            return ["coverage: it is a share above 0 and at most 1"]
        found = [] if numbers["count noise"] == release.scale else ["count noise: it is the scale"]
        if not within(numbers["units inside"], 0.0, release.n, tail_of(release.share) * release.scale):
            found.append("units inside: no count of the units and no noise of that scale come to it")
        smaller = isinstance(release.value, Ball) and release.value.radius < release.ball.radius
        if smaller and numbers["units inside"] < self._plan(release).search.surely_counted:
            found.append(TOO_FEW)
        return found

    def value_faults(self, release: Release, noise: float) -> list[str]:
        """Return why a search could not have ended with this ball."""
        value, outer = release.value, release.ball
        if value == outer:
            return []
        if value.space != outer.space or not np.array_equal(value.center, outer.center):
            return ["value: it is a ball about another centre"]
        return found_faults(release, self._plan(release).radii)

    def drawn_faults(self, release: Release, noise: float) -> list[str]:
        """Return whether the count is not what was drawn."""
        drawn = release.drawn
        same = drawn is not None and drawn.shape == (1,) and drawn[0] == release.details["units inside"]
        return [] if same else ["units inside: not what was drawn"]

    def step_faults(self, release: Release, step: Release) -> list[str] | None:
        """Return nothing: whoever looks for a radius in another norm checks what that norm rests on."""
        return []


RADIUS = Radius()
STATISTICS.register(RADIUS.name, RADIUS)


def radius_recipe(shares: tuple[float, ...] = (1.0,), step: Recipe | None = None) -> Recipe:
    """Return how a radius is found, by itself or on the way to another statistic."""
    return Recipe(RADIUS.name, ADDITIVE, shares, step, _DETAILS, projected=True, neighbours=EITHER)
