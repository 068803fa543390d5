"""A tangent mean in place of the Fréchet mean, where the two are provably close (theory: estimands).

After a smaller ball has been released its centre is a coarse private mean, and the tangent mean there is one Newton
step from it. How far that can be from the Fréchet mean of the same units follows from released numbers: the radius, the
noise of the centre, and the count of the units that the ball leaves out.
"""

from __future__ import annotations

from dpmanifold import frechet
from dpmanifold.ball import Ball
from dpmanifold.mechanisms import Forecast, choose, get, preference
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.privacy import Promise
from dpmanifold.release import TANGENT_GAP, Clipping, Release
from dpmanifold.statistic import Kind
from dpmanifold.stats.draws import Chosen

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
