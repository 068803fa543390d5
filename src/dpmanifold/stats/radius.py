"""A radius nobody told us: how far from the centre of a public ball most of the units lie (theory section 8, refine).

As the search of a smaller ball, without a draw of its centre: for few units in many dimensions that draw would be off
by more than it could save. Shaped means look for their radius in this way, in their own norm.
"""

from __future__ import annotations

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
from dpmanifold.privacy import Promise, PromiseError
from dpmanifold.release import Release
from dpmanifold.statistic import STATISTICS, Header, Kind, Statistic, Step
from dpmanifold.stats.ball import source_of
from dpmanifold.stats.draws import Hidden, additive, additive_step, checked_arithmetic
from dpmanifold.stats.program import Alone, Drawing, Program, step_of
from dpmanifold.stats.search import COUNT, MOST_ERROR, RadiusSearch


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
