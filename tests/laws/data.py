"""Data for tests: random and hostile records in a ball."""

import numpy as np


def in_ball(ball, n, rng, edge=False):
    """Records spread over the ball, or all of them on its edge."""
    space = ball.space
    c = rng.standard_normal((n, space.dim))
    c /= np.linalg.norm(c, axis=1, keepdims=True)
    share = np.ones(n) if edge else rng.random(n)
    return space.project(space.exp_coords(ball.center, c * (0.999999 * ball.radius * share)[:, None]))


def hostile(ball, n):
    """Named data sets that are hard for a solver: opposite edges, an outlier, one point repeated."""
    space, r = ball.space, 0.9999999 * ball.radius
    first = np.zeros(space.dim)
    first[0] = r
    ends = space.project(space.exp_coords(ball.center, np.stack([first, -first])))
    half = ends[np.arange(n) % 2]
    outlier = ends[np.minimum(np.arange(n), 1)]
    edge = in_ball(ball, n, np.random.default_rng(7), edge=True)
    return {"two edges": half, "one outlier": outlier, "all at one point": ends[np.zeros(n, int)], "edge": edge}
