"""What the laws look at: directions, points and lengths of a space, from a seeded generator."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.base import Manifold

# How far from the origin points are taken where a space has no end, in units in which its curvature is at least -1.
_FAR = 2.0


class BrokenLawError(Exception):
    """A law does not hold; the text says what is wrong."""


def require(holds: object, wrong: str) -> None:
    """Raise BrokenLawError unless something holds."""
    if not holds:
        raise BrokenLawError(wrong)


def reach(space: Manifold) -> float:
    """Return how far from the origin the laws go: short of where geodesics end, and of where doubles lose a space."""
    bottom = space.curvature[0]
    far = _FAR / math.sqrt(-bottom) if bottom < 0 else _FAR
    return min(0.98 * space.injectivity_radius, far)


def directions(space: Manifold, rng: np.random.Generator, n: int) -> FloatArray:
    """Return n unit vectors of coordinates."""
    c = rng.standard_normal((n, space.dim))
    return np.asarray(c / np.linalg.norm(c, axis=1, keepdims=True))


def points(space: Manifold, rng: np.random.Generator, n: int, far: float | None = None) -> Array:
    """Return n points within a distance of the origin."""
    lengths = (reach(space) if far is None else far) * np.sqrt(rng.random(n))
    return space.exp_coords(space.origin, directions(space, rng, n) * lengths[:, None])


def fewer(space: Manifold, n: int, usual: int = 30) -> int:
    """Return n, or less where a space has more than the `usual` number of dimensions: matrices of them take long."""
    return max(1, round(n * min(1.0, (usual / space.dim) ** 2)))
