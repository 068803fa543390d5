"""What leaves a space as numbers: points that are moved exactly, and vectors whose average is released."""

from __future__ import annotations

import math

import numpy as np
from flint import arb, ctx

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.exact_points import ExactPoints, precision_kept
from dpmanifold.manifolds.laws.samples import fewer, points, reach, require
from dpmanifold.manifolds.vectors import vector_norm

# Digits for what is exact, and what doubles that are made of it may be off by, as a share of how far the laws go.
_BITS, _OFF = 192, 1e-6
# Directions that are looked at, and the standard errors that their second moments may be off by.
_DIRECTIONS, _ERRORS = 200, 7.0


def exact_points_are_moved_as_points_are(space: Manifold, rng: np.random.Generator) -> None:
    """Move footpoints exactly: the distance is kept, directions are uniform, and the numbers are the point's own."""
    exact = space.exact_points
    if exact is None or space.is_flat:
        return
    far = 0.5 * reach(space)
    for p in points(space, rng, 5, far):
        t = far * rng.uniform(0.1, 1.0)
        placed = exact.place(_moved(exact, p, t, rng))
        require(space.check(placed) is None, "exact_points: a moved point is placed where there is none")
        off = abs(float(space.dist(p, placed)) - t)
        require(off <= _OFF * reach(space), f"exact_points: a point moved by {t:.4g} is off by {off:.2g}")
    p, n, d = points(space, rng, 1, far)[0], fewer(space, _DIRECTIONS), space.dim
    c = np.array([space.log_coords(p, exact.place(_moved(exact, p, 0.3 * far, rng))) for _ in range(n)]) / (0.3 * far)
    first, second = np.abs(c.mean(axis=0)).max(), np.abs(c.T @ c / n - np.eye(d) / d).max()
    off = max(first, second / math.sqrt(2)) * math.sqrt(d * n)
    require(off <= _ERRORS, f"exact_points: moments of directions are off by {off:.2g} standard errors")
    # Whichever of a point's arrays stands for it, not moved at all it is the same numbers.
    middles = np.concatenate([points(space, rng, 4, far), space.random_point(6, rng=rng)])
    found = np.array([_moved(exact, space.exp_coords(m, space.log_coords(m, p)), 0.0, rng) for m in middles])
    apart = float(np.abs(found - found[0]).max() / max(1e-300, np.abs(found[0]).max()))
    require(
        apart <= _OFF, f"exact_points: arrays of one point have numbers that differ by {apart:.2g}: they tell of it"
    )
    for numbers in (np.zeros(exact.size), np.full(exact.size, 1e300), rng.standard_normal(exact.size)):
        require(space.check(exact.place(numbers)) is None, "exact_points: some numbers are no point, once placed")


def _moved(exact: ExactPoints, p: Array, t: float, rng: np.random.Generator) -> FloatArray:
    with precision_kept():
        ctx.prec = _BITS
        numbers = exact.moved(p, arb(t), [arb(z) for z in rng.standard_normal(exact.normals).tolist()])
        require(numbers is not None and len(numbers) == exact.size, f"exact_points: moved is not {exact.size} numbers")
        return np.array([float(number) for number in numbers or []])


def embeddings_keep_their_bounds(space: Manifold, rng: np.random.Generator) -> None:
    """Map points of a ball to vectors and back: how far apart they are, where they lead, what noise does to them."""
    r = 0.9 * min(space.radius_limit, reach(space))
    embedding = space.embedding(r)
    if embedding is None:
        return
    x = points(space, rng, 40, far=r)
    vectors = np.array([embedding.coordinates(one) for one in embedding.images(x)])
    require(vectors.shape == (40, embedding.size), f"embedding: vectors are {vectors.shape[1:]}, not {embedding.size}")
    longest = float(vector_norm(vectors).max())
    require(longest <= embedding.longest * (1 + 1e-9), f"embedding: a vector is {longest:.6g} long")
    apart = float(vector_norm(vectors[:, None] - vectors).max())
    require(
        apart <= embedding.diameter, f"embedding: images are {apart:.6g} apart, of {embedding.diameter:.6g} at most"
    )
    off = float(np.max(space.dist(embedding.place(vectors), x)))
    require(off <= _OFF * reach(space), f"embedding: the image of one point is placed {off:.2g} from it")
    for t in np.array([0.01, 0.1, 0.5]) * embedding.longest:
        z = rng.standard_normal(vectors.shape)
        placed = embedding.place(vectors + t * z / vector_norm(z)[:, None])
        most = min(embedding.farthest, float(embedding.error(np.asarray(t), np.zeros(1), np.ones(1))[0]))
        far = float(np.max(space.dist(placed, x)))
        require(far <= most * (1 + 1e-9), f"embedding: noise of length {t:.4g} carries a point {far:.4g} away")
    for vector in (np.zeros(embedding.size), np.full(embedding.size, 1e300)):
        require(space.check(embedding.place(vector)) is None, "embedding: some vectors are no point, once placed")
