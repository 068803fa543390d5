"""Where a value can lie: its public range, and beyond it what noise surely stays below.

An honest value is outside with probability below 1e-10, the statistic being what it may.
"""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.manifolds.base import EPS
from dpmanifold.privacy import Promise, PureDP

# In scales: a normal number exceeds 7 in size with probability 3e-12, one by Laplace's law exceeds 30 with 1e-13.
_NORMAL_TAIL, _LAPLACE_TAIL = 7.0, 30.0
# Integrals of a law, computed by quadrature.
QUADRATURE = 1e-10
# Noise stays below this quantile of its law, as far as a check is concerned.
SURELY = 1 - 1e-12
# A few operations with a relative error of eps each: sums and eigenvalues at the very edge of a range are rounded.
ROUNDING = 1e-12


def tail_of(share: Promise) -> float:
    """Return how many scales the noise on a number surely stays below: Laplace's for pure promises, else normal.

    Examples
    --------
    >>> tail_of(PureDP(0.1))
    30.0
    """
    return _LAPLACE_TAIL if isinstance(share, PureDP) else _NORMAL_TAIL


def same_number(one: float, two: float) -> bool:
    """Return whether two numbers are equal to rounding: the same formula on another machine.

    Examples
    --------
    >>> same_number(1.0, 1.0 + 1e-15), same_number(1.0, 1.0 + 1e-9)
    (True, False)
    """
    return math.isclose(one, two, rel_tol=ROUNDING)


def within(value: float, low: float, high: float, tail: float) -> bool:
    """Return whether a number lies in a range, up to noise and rounding.

    Examples
    --------
    >>> within(1.5, 0.0, 1.0, 0.6), within(-1.0, 0.0, 1.0, 0.6)
    (True, False)
    """
    slack = tail + ROUNDING * max(abs(low), abs(high))
    return low - slack <= value <= high + slack


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
