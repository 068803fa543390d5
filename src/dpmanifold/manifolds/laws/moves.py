"""Isometries: moving to the origin and back, reflections, translations; and what leaves a space shows no way."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import Array
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.laws.samples import directions, points, reach, require

# What distances may be off by, as a share of how far the laws go.
_OFF = 1e-7


def moving_to_the_origin_is_undone(space: Manifold, rng: np.random.Generator) -> None:
    """Move points by the isometries: distances, coordinates and the points themselves stay what they were."""
    p, q, r = (points(space, rng, 30) for _ in range(3))
    slack = 10 * _OFF * reach(space)
    moved_q, moved_r = space.to_origin(p, q), space.to_origin(p, r)
    off = _most(space.dist(moved_q, moved_r) - space.dist(q, r))
    require(off <= slack, f"to_origin changes a distance by {off:.2g}")
    off = _most(space.dist(space.from_origin(p, moved_q), q))
    require(off <= slack, f"from_origin does not undo to_origin: {off:.2g} away")
    off = _most(space.dist(space.to_origin(p, p), space.origin))
    require(off <= slack, f"to_origin(p, p) is not the origin: {off:.2g} away")
    off = _most(space.log_coords(space.origin, moved_q) - space.log_coords(p, q))
    require(off <= slack, f"coordinates at p are not those at the origin after to_origin: {off:.2g} away")


def a_point_leaves_as_one_array(space: Manifold, rng: np.random.Generator) -> None:
    """Reach one point from several others: nothing covers what its array would tell of these, which are private."""
    if space.is_flat:
        return  # coordinates leave there
    limit = 0.9 * min(space.radius_limit, reach(space))
    center, target = points(space, rng, 1)[0], points(space, rng, 1, far=0.3 * limit)[0]
    # Near the origin as means are, and anywhere: arrays of either kind, where a point has several.
    means = np.concatenate([points(space, rng, 6, far=0.6 * limit), space.random_point(10, rng=rng)])
    found = []
    for mean in means:
        drawn = space.exp_coords(mean, space.log_coords(mean, target))
        found.append(space.out_of_frame(center, drawn[None])[0])
    away = max(float(space.dist(found[0], one)) for one in found)
    require(away <= _OFF * max(1.0, reach(space)), f"exp_coords does not undo log_coords: {away:.2g} away")
    apart = max(_most(one - found[0]) for one in found) / _most(found[0])
    require(
        apart <= _OFF,
        f"one point, reached from several means, leaves as arrays that differ by {apart:.2g}: the array tells of the "
        "private mean. Give the space a canonical(p)",
    )


def reflections_are_isometries(space: Manifold, rng: np.random.Generator) -> None:
    """Reflect points in a point: what a symmetric space is, on which regions and regressions rest."""
    far = 0.45 * reach(space)
    p = points(space, rng, 1, far)[0]
    x, y = points(space, rng, 40, far), points(space, rng, 40, far)
    off = _most(space.dist(_mirrored(space, p, x), _mirrored(space, p, y)) - space.dist(x, y))
    require(off <= _OFF * reach(space), f"a reflection in a point changes a distance by {off:.2g}: not symmetric")


def translations_bend_squares_at_most_once(space: Manifold, rng: np.random.Generator) -> None:
    """Follow half the squared distance along translations, where `has_gaussian` is claimed: its hypothesis."""
    if not space.has_gaussian or space.is_flat:
        return
    require(
        math.isfinite(space.injectivity_radius),
        "has_gaussian, and the space is neither flat nor closed: the scale would be too small at every mu",
    )
    o, h = space.origin, 0.02 * min(1.0, reach(space))
    x = space.random_point(60, rng=rng)
    for e in np.concatenate([directions(space, rng, 3), np.eye(space.dim)[:2]]):
        f = [
            np.asarray(space.dist(o, _mirrored(space, space.exp_coords(o, e * a / 2), _mirrored(space, o, x)))) ** 2 / 2
            for a in (-h, 0.0, h)
        ]
        most = float(((f[0] - 2 * f[1] + f[2]) / h**2).max())
        require(most <= 1 + 1e-6, f"has_gaussian, and half the squared distance bends {most:.6g} times, more than once")


def _mirrored(space: Manifold, p: Array, x: Array) -> Array:
    return space.exp_coords(p, -space.log_coords(p, x))


def _most(values: Array) -> float:
    return float(np.abs(values).max())
