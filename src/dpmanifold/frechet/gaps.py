"""How far tangent and extrinsic means can be from the Fréchet mean (theory: estimands). Public numbers only."""

from __future__ import annotations

import math

from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError


def tangent_gap(ball: Ball, away: float | None = None) -> float:
    """Bound the distance between the tangent mean at the ball's centre and the Fréchet mean, for data in the ball.

    0 on flat spaces; elsewhere, in small balls, about curvature times away times r^2/3: a centre near the mean makes
    it small.

    Parameters
    ----------
    ball : the ball
    away : how far the Fréchet mean is from the centre at most; anywhere in the ball if left out

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5)
    >>> round(tangent_gap(ball), 4), round(tangent_gap(ball, away=0.1), 4)
    (0.0447, 0.0085)
    """
    require_ball(ball)
    space, r = ball.space, ball.effective_radius
    e = r if away is None else min(float(away), r)
    if not e >= 0:
        raise InvalidArgumentError(f"away must be a distance of at least 0, got {away!r}.")
    bottom, top = space.curvature
    found = 0.0
    if bottom < 0:
        u = math.sqrt(-bottom) * r
        found = e * (space.hessian_bounds(r)[1] - 1) * math.sinh(u) / u
    if top > 0:
        # Factors of a product may be curved either way: the larger bound holds for all of them (theory: product).
        found = max(found, e * (1 - space.hessian_bounds(r + e)[0]) * (r / (r + e)) ** 2)
    # Far out the bound says less than that both points lie in the ball.
    return min(found, e + r)


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
    space, r = ball.space, ball.effective_radius
    if space.extrinsic is None:
        raise InvalidArgumentError(f"ball must lie in a sphere or in the planar shapes, got one in {space!r}.")
    share, moved = space.extrinsic.pull(r)
    return share * moved / (1 - share * (1 - space.hessian_bounds(2 * r)[0]))
