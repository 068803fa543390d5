"""How exactly a mean is solved: public tolerances and bounds, from the ball and the number of units alone."""

from __future__ import annotations

import math

from dpmanifold._check import positive_float
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds.base import EPS

# A tolerance beyond this share of the radius would say next to nothing about the mean.
_WORST_TOL = 0.01

# The tolerance private callers get by default, as a share of 2r/n, the flat sensitivity.
_TOL_SHARE = 1e-9


def gradient_rounding(ball: Ball, n: int) -> float:
    """Bound the rounding error of the computed gradient of F, anywhere in the ball (theory: rounding).

    One logarithm's error plus that of a sum over n records: the term of a pairwise sum of doubles, of which an exact
    sum needs a thirtieth; it stays so that tolerances, and releases that state them, do. Public quantities only.

    >>> from dpmanifold.manifolds import Sphere
    >>> gradient_rounding(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 1000) < 1e-13
    True
    """
    return ball.frame.log_error(ball.effective_radius) + (60 + math.log2(n)) * EPS * 2 * ball.effective_radius


def lowest_tol(ball: Ball, n: int) -> float:
    """Return the smallest tolerance that rounding lets the solver guarantee in a ball, or refuse the ball.

    >>> from dpmanifold.manifolds import Sphere
    >>> lowest_tol(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 1000) < 1e-12
    True
    """
    lowest = 8 * gradient_rounding(ball, n)
    if not lowest <= _WORST_TOL * ball.radius:
        raise InvalidArgumentError(
            f"a radius of {ball.radius:.4g} on {ball.space!r} is too large for a mean with a guarantee: points so far "
            f"apart lose too many digits in double precision. {ball.space.smaller_ball}"
        )
    return lowest


def default_tol(ball: Ball, n: int) -> float:
    """Return the public tolerance for n units in a ball: 1e-9 of 2r/n, or what rounding allows.

    >>> from dpmanifold.manifolds import Sphere
    >>> default_tol(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 1000)
    1e-12
    """
    return max(_TOL_SHARE * 2 * ball.radius / n, lowest_tol(ball, n))


def public_tol(ball: Ball, n: int, tol: float | None) -> float:
    """Return the tolerance asked for, the default if none was, or refuse one that rounding would hide.

    >>> from dpmanifold.manifolds import Sphere
    >>> public_tol(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 1000, 1e-6)
    1e-06
    """
    require_ball(ball)
    if tol is None:
        return default_tol(ball, n)
    lowest = lowest_tol(ball, n)
    if positive_float(tol, "tol") < lowest:
        raise InvalidArgumentError(
            f"tol must be at least {lowest:.3g} for {n} units in this ball, got {tol:.3g}: rounding hides a smaller "
            "gradient. Give a larger tol or leave it out."
        )
    return float(tol)


def reach(ball: Ball) -> float:
    """Return what no computed logarithm of one point of the ball at another exceeds; at the origin where flat.

    >>> from dpmanifold.manifolds import Euclidean
    >>> round(reach(Ball(Euclidean(1), [0.0], 2.0)), 6)
    2.0
    """
    away = ball.effective_radius
    return away if ball.frame.is_flat else 2 * away + ball.frame.log_error(away)
