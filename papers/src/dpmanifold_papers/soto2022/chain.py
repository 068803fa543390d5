"""The Metropolis chain of the paper, for any density: a baseline, never used for a release.

KNG is drawn exactly by :class:`~dpmanifold.noise.GradientLaw` wherever that is possible. A chain that has not mixed
has another law than its promise is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.manifolds import Manifold


def walk(
    space: Manifold,
    log_density: Callable[[Array], FloatArray],
    start: Array,
    step: float,
    rng: np.random.Generator,
) -> Iterator[tuple[Array, float]]:
    """Run random-walk chains side by side; yields their points and the share accepted, after every step.

    A step goes from x to exp_x(v), v normal with standard deviation `step` in every direction: symmetric on a
    homogeneous space.

    Parameters
    ----------
    space : a homogeneous space
    log_density : log of the density with respect to the volume, at points (chains, *shape), up to a constant
    start : where chains begin, (chains, *shape)
    step : standard deviation of proposals, per coordinate
    rng : generator

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> sphere = Sphere(2)
    >>> start = np.tile(sphere.origin, (4, 1))
    >>> states = walk(sphere, lambda x: x[:, 0] / 0.1, start, 0.3, np.random.default_rng(0))
    >>> next(states)[0].shape
    (4, 3)
    """
    x = start.copy()
    height = log_density(x)
    while True:
        new = space.exp_coords(x, step * rng.standard_normal((len(x), space.dim)))
        new_height = log_density(new)
        taken = np.log(rng.random(len(x))) < new_height - height
        x[taken], height[taken] = new[taken], new_height[taken]
        yield x, float(taken.mean())


def shape_gradient_density(ball: Ball, X: Array, scale: float) -> Callable[[Array], FloatArray]:
    """Return x -> -|grad F(x)|/scale on a ball of planar shapes, minus infinity outside: two matrix products.

    Parameters
    ----------
    ball : a ball on KendallShapes(k)
    X : pre-shapes, (n, k)
    scale : of the KNG law

    Examples
    --------
    >>> from dpmanifold.manifolds import KendallShapes
    >>> space = KendallShapes(4)
    >>> density = shape_gradient_density(Ball(space, space.origin, 0.3), space.origin[None], 0.5)
    >>> float(density(space.exp_coords(space.origin, np.array([[0.2, 0.0, 0.0, 0.0]])))[0].round(9))
    -0.4
    """

    def log_density(z: Array) -> FloatArray:
        overlap = np.conj(z) @ X.T
        size = np.minimum(np.abs(overlap), 1.0)
        angle = np.arccos(size)
        ratio = np.where(angle > 1e-6, angle / np.maximum(np.sin(angle), 1e-12), 1.0)
        total = (ratio * np.conj(overlap) / size) @ X - (ratio * size).sum(axis=1, keepdims=True) * z
        value = -np.linalg.norm(total, axis=1) / (len(X) * scale)
        return np.where(ball.space.dist(ball.center, z) <= ball.radius, value, -np.inf)

    return log_density
