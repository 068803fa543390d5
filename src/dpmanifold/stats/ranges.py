"""Where a value can lie: its public range, and beyond it what noise surely stays below.

An honest value is outside with probability below 1e-10, the statistic being what it may.
"""

from __future__ import annotations

import math

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.manifolds.base import EPS
from dpmanifold.privacy import Promise, PureDP
from dpmanifold.release import Release

# In scales: a normal number exceeds 7 in size with probability 3e-12, one by Laplace's law exceeds 30 with 1e-13.
_NORMAL_TAIL, _LAPLACE_TAIL = 7.0, 30.0
# Sums and eigenvalues at the very edge of a range are rounded.
_ROUNDING = 1e-12


def tail_of(share: Promise) -> float:
    """Return how many scales the noise on a number surely stays below: Laplace's for pure promises, else normal.

    Examples
    --------
    >>> tail_of(PureDP(0.1))
    30.0
    """
    return _LAPLACE_TAIL if isinstance(share, PureDP) else _NORMAL_TAIL


def within(value: float, low: float, high: float, tail: float) -> bool:
    """Return whether a number lies in a range, up to noise and rounding.

    Examples
    --------
    >>> within(1.5, 0.0, 1.0, 0.6), within(-1.0, 0.0, 1.0, 0.6)
    (True, False)
    """
    slack = tail + _ROUNDING * max(abs(low), abs(high))
    return low - slack <= value <= high + slack


def moment_faults(release: Release) -> list[str]:
    """Return why a moment about a point at the stated distance could not have been drawn.

    Every distance is at most R, the reach of the ball from there. Eigenvalues of a second moment are then in
    [0, R^2]; symmetric normal noise of scale s on vecd moves them by its operator norm, at most s(sqrt(2 d) + t) but
    for a probability of 2 exp(-t^2/2): its mean is at most s sqrt(2 d), and it is Lipschitz in the noise.
    """
    value, scale, kind = release.value, release.scale, release.statistic
    reach = sensitivity.reach(release.ball, away=release.details["reference to centre"])
    tail = tail_of(release.share) * scale
    match kind:
        case "variance":
            # What noise on the mean adds was subtracted, and nothing is released below 0.
            excess = release.details["excess subtracted"]
            if not value >= 0:
                return ["value: a variance is never below 0"]
            fits = value == 0 or within(value + excess, 0.0, reach**2, tail)
        case "second moment":
            if not np.array_equal(value, value.T):
                return ["value: a second moment is symmetric"]
            least, most = np.linalg.eigvalsh(value)[[0, -1]]
            tail += math.sqrt(2 * len(value)) * scale
            fits = within(least, 0.0, reach**2, tail) and within(most, 0.0, reach**2, tail)
        case _:
            fits = within(value, 0.0, reach**4, tail)
    return [] if fits else [f"value: no {kind} there and no noise of that scale come to it"]


def baseline_faults(ball: Ball, value: Array, noise: float) -> list[str]:
    """Return why stored numbers are farther from the centre's than the ball and noise up to this length allow.

    On a sphere numbers differ by no more than the distance; matrices, seen from the centre, by no more than exp(r) - 1.
    """
    if ball.space.stored is None:
        return [f"mechanism: no baseline is known on {ball.space!r}"]
    apart, far, slack = ball.space.stored.away(ball.center, value, ball.radius)
    return (
        []
        if within(apart, 0.0, far, noise + slack)
        else ["value: no noise of that scale carries stored numbers so far"]
    )


def rounding_of(ball: Ball, point: Array) -> float:
    """Return how far rounding can move a distance from the centre: the distance's own, and that of stored numbers."""
    stored = 4 * math.sqrt(point.size) * EPS * float(np.abs(point).max())
    own = ball.space.dist_error(ball.center, ball.radius) + ball.frame.dist_error(ball.frame.origin, ball.radius)
    return own + stored


def is_beyond(ball: Ball, point: Array, far: float) -> bool:
    """Return whether a point is farther from the centre than this, rounding aside."""
    rounding = rounding_of(ball, point)
    if far > ball.radius:
        rounding += ball.space.dist_error(ball.center, far)
    # Where distances so large cannot be told at all, none is too large.
    return math.isfinite(rounding) and not ball.space.dist(ball.center, point) <= far + rounding
