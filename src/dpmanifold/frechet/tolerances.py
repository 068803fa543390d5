"""How exactly a mean is solved, and how far other means can be from it: public numbers alone."""

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


# -------------------------------------------------------------------- how far other means can be (theory: estimands)


# Of a Hessian bound, absolute; of a few products and roots, relative. Beyond the last the hyperbolic sine overflows.
_ROUNDING, _ROUND_UP, _LARGEST = 16 * EPS, 1 + 64 * EPS, 700.0


def tangent_gap(ball: Ball, away: float | None = None, spread: float | None = None) -> float:
    """Bound the distance between the tangent mean at the ball's centre and the Fréchet mean, for data in the ball.

    0 on flat spaces; elsewhere, in small balls, about curvature times away times r^2/3: a centre near the mean makes
    it small, and so do data near the centre. Rounded up.

    Parameters
    ----------
    ball : the ball
    away : how far the Fréchet mean is from the centre at most; anywhere in the ball if left out
    spread : root mean square distance of the data from the centre, at most; the ball's radius if left out

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5)
    >>> round(tangent_gap(ball), 4), round(tangent_gap(ball, away=0.1), 4), round(tangent_gap(ball, 0.1, 0.2), 4)
    (0.0447, 0.0085, 0.0014)
    """
    require_ball(ball)
    r = ball.effective_radius
    e, s = _distance(away, r, "away"), _distance(spread, r, "spread")
    bottom = ball.space.curvature[0]
    gap = e * max(_deviations(ball, e, s)) * _ROUND_UP
    if bottom >= 0:
        return gap
    u = math.sqrt(-bottom) * r
    # Far out the bound says less than that both points lie in the ball.
    return min(gap * math.sinh(min(u, _LARGEST)) / u, (e + r) * _ROUND_UP)


def hessian_range(ball: Ball, away: float | None = None, spread: float | None = None) -> tuple[float, float]:
    """Bound the mean Hessian of half the squared distance between the ball's centre and the Fréchet mean.

    The average logarithm at the centre is an operator times the logarithm of the Fréchet mean, and that operator, an
    average of Hessians on the way between the two points, lies between these multiples of the identity. 1 and 1 on flat
    spaces. Rounded outwards.

    Parameters
    ----------
    ball, away, spread : as in :func:`tangent_gap`

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> low, high = hessian_range(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 0.1, 0.2)
    >>> round(low, 4), round(high, 4)
    (0.9863, 1.0)
    """
    require_ball(ball)
    r = ball.effective_radius
    flatter, steeper = _deviations(ball, _distance(away, r, "away"), _distance(spread, r, "spread"))
    return 1 - flatter * _ROUND_UP, 1 + steeper * _ROUND_UP


def _deviations(ball: Ball, e: float, s: float) -> tuple[float, float]:
    """Bound how far below and above the identity that operator can be."""
    space, r = ball.space, ball.effective_radius
    bottom, top = space.curvature
    # 1 less a Hessian bound cancels in small balls: what rounding may have taken is given back.
    flatter = (1 - space.hessian_bounds(r + e)[0] + _ROUNDING) * (s / (r + e)) ** 2 if top > 0 else 0.0
    steeper = space.hessian_bounds(s)[1] - 1 + _ROUNDING if bottom < 0 else 0.0
    return flatter, steeper


def _distance(given: float | None, radius: float, name: str) -> float:
    """Return a distance from the centre, at most the radius."""
    if given is None:
        return radius
    if not float(given) >= 0:
        raise InvalidArgumentError(f"{name} must be a distance of at least 0, got {given!r}.")
    return min(float(given), radius)


def extrinsic_gap(ball: Ball) -> float:
    """Bound the distance between the extrinsic and the Fréchet mean, for data in a ball of a sphere or of shapes.

    About r^3/3 on the unit sphere and 4 r^3/3 on shapes, for small balls.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> round(extrinsic_gap(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5)), 4)
    0.0467
    """
    require_ball(ball)
    embedding = ball.frame.embedding(ball.radius)
    if embedding is None:
        raise InvalidArgumentError(f"`ball` must lie in a space with extrinsic means, got one in {ball.space!r}.")
    share, moved = embedding.pull()
    return share * moved / (1 - share * (1 - ball.space.hessian_bounds(ball.diameter)[0]))
