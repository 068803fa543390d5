"""What comes before a median: a ball, a mean in it and the median distance from that mean (theory: median)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError, InvalidArgumentError, InvalidDataError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import choose
from dpmanifold.privacy import Promise, PromiseError, PureDP
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Step
from dpmanifold.stats.ball import BallPlan, ball_recipe, moved_into, search_of, source_of
from dpmanifold.stats.draws import Bits, refuse_inexact
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.mean import MEAN, release_mean
from dpmanifold.stats.radius import RadiusPlan, radius_recipe
from dpmanifold.stats.recipes import Recipe, together
from dpmanifold.stats.steps import Chosen, mean_step

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
MEANS = ("tangent-mean-gaussian", "tangent-mean-laplace")


def mean_for(privacy: Promise) -> str:
    """Return the mechanism of the means on the way: every space has a tangent mean, and it is drawn exactly.

    Examples
    --------
    >>> mean_for(PureDP(1.0))
    'tangent-mean-laplace'
    """
    gaussian, laplace = MEANS
    return laplace if isinstance(privacy, PureDP) else gaussian


@dataclass(frozen=True)
class Approach:
    """How the centre and the scale of a median's step will be found, from public numbers alone.

    Attributes
    ----------
    header : what it is about
    search : how a smaller ball is looked for; None if it is not
    skipped : why it is not although that was asked for, or None
    weights, shares : how the promise is divided, the step's share last
    """

    header: Header
    search: BallPlan | None
    skipped: str | None
    weights: tuple[float, ...]
    shares: tuple[Promise, ...]

    @staticmethod
    def make(header: Header, refine: bool) -> Approach:
        """Make every choice, or refuse where the median distance cannot be told."""
        found = Approach._refined(header) if refine else None
        if found is None or found.skipped is not None:
            shares = tuple(divide(header.privacy, PLAIN_SHARES))
            found = Approach(header, None, None if found is None else found.skipped, PLAIN_SHARES, shares)
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
            plan = BallPlan.make(header.ball, header.n, shares[:2], BALL_COVERAGE, mean_for(shares[0]))
        except DPManifoldError as problem:
            return Approach(header, None, str(problem).rstrip("."), REFINED_SHARES, shares)
        return Approach(header, plan, plan.obstacle, REFINED_SHARES, shares)

    @cached_property
    def before(self) -> int:
        """How many of the shares are spent before the step."""
        return len(self.shares) - 1

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

    def release(self, points: UnitPoints, bits: Bits) -> tuple[Release, UnitPoints]:
        """Release them one after the other; return the last, and the points in its ball. Never raises."""
        header, ball = self.header, self.header.ball
        steps: tuple[Release, ...] = ()
        moved, chosen = points, self.mean_in(ball)
        if self.search is not None:
            found = self.search.release(points, header.promising(together(list(self.shares[:2]))), bits)
            steps = (found,)
            # Where the released ball does not suit the mean the outer one is used: decided by the release.
            suited = with_fallback(lambda: self.mean_in(found.value), lambda: None, InvalidArgumentError, PromiseError)
            if suited is not None:
                chosen, ball = suited, found.value
                moved = moved_into(ball, points)
        paid = self.shares[: self.before - 1]
        mean = release_mean(moved, header.inside(ball).promising(together(list(paid))), chosen, True, bits, steps)
        near = about(mean)
        moved = moved_into(near, points)
        total = together(list(self.shares[: self.before]))
        scale = self.scale_in(near).release(moved, header.promising(total), bits, (mean,))
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


def faults_before(release: Release) -> list[str]:
    """Return what is wrong with the steps of a median: balls, and what they are asked to hold."""
    scale = release.steps[0]
    mean = scale.steps[0]
    near, found = about(mean), []
    if scale.ball != near:
        found.append("step 'radius': it was not looked for about the released mean")
    if release.ball != near:
        found.append("the ball is not the one about the released mean")
    if scale.details["coverage"] != SCALE_COVERAGE:
        found.append("step 'radius': the scale of a median is the distance that half of the units keep")
    if any(step.details["coverage"] != BALL_COVERAGE for step in mean.steps):
        found.append("step 'ball': before a median it is to hold another share of the units")
    return found


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
        found = min(found, 1 - BALL_COVERAGE - search_of(step).error / n)
    return max(0.0, found)


def recipes_before() -> Iterator[tuple[tuple[float, ...], Recipe]]:
    """Give the shares and the recipe of the last step, in a smaller ball and without."""
    for weights, first in ((REFINED_SHARES, ball_recipe(REFINED_SHARES[:2])), (PLAIN_SHARES, None)):
        mean = Recipe(MEAN.name, MEANS, weights[:-2], first, projected=True)
        yield weights, radius_recipe(weights[:-1], mean)
