"""What comes before a median: a ball, a mean in it and the median distance from that mean (theory: median)."""

from __future__ import annotations

from dataclasses import dataclass

from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError, InvalidArgumentError, InvalidDataError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import choose, usual
from dpmanifold.privacy import Promise, PromiseError, PureDP
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Step
from dpmanifold.stats.ball import BallSearch, moved_into, source_of
from dpmanifold.stats.draws import Chosen, Hidden, mean_step, refuse_inexact
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.mean import MEAN, draw_mean
from dpmanifold.stats.program import Drawing, together
from dpmanifold.stats.radius import RadiusPlan
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
