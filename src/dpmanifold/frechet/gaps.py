"""How far tangent and extrinsic means can be from the Fréchet mean (theory: estimands). Public numbers only."""

from __future__ import annotations

import math

from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds.vectors import EPS

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
