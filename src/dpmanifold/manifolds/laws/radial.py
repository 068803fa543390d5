"""Where a space ends, and what depends on the distance alone: geodesics, areas of spheres, radial facts, random points.

Laws of noise are made of these.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from dpmanifold._check import FloatArray
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.facts import Area, RankOne, log_unit_sphere
from dpmanifold.manifolds.laws.samples import directions, fewer, points, reach, require
from dpmanifold.manifolds.vectors import log_sinhc, vector_norm

# Logs of areas and volumes may differ by this.
_LOG = 1e-8
# A right sampler is taken for a wrong one about once in a million times.
_FALSE_ALARMS = 1e-6


def geodesics_stop_where_stated(space: Manifold, rng: np.random.Generator) -> None:
    """Follow geodesics up to the injectivity radius, where they are shortest, and beyond it, where one is not."""
    end, o = space.injectivity_radius, space.origin
    u = np.concatenate([directions(space, rng, 40), np.eye(space.dim)[:40]])
    far = 0.999 * end if math.isfinite(end) else 2.5 * reach(space)
    off = float(np.abs(space.dist(o, space.exp_coords(o, u * far)) - far).max())
    require(off <= 1e-6 * far, f"a geodesic of length {far:.6g} is not shortest, off by {off:.2g}")
    diameter = space.diameter
    require(
        diameter in (end, math.inf),
        f"diameter is {diameter:g}, neither the injectivity radius, {end:g}, nor infinite",
    )
    if math.isfinite(diameter):
        apart = float(np.max(space.dist(o, space.random_point(1000, rng=rng))))
        require(apart <= diameter * (1 + 1e-12), f"points are {apart:.6g} apart, and the diameter is {diameter:.6g}")
    area = space.sphere_area()
    if math.isfinite(end) and area is not None and area.log_ceiling is None:
        # All directions are alike there: noise about a point must reach as far as points go.
        beyond = space.dist(o, space.exp_coords(o, u * (1.01 * end)))
        require(
            np.min(beyond) < 1.0099 * end, f"geodesics are shortest beyond the injectivity radius, {end:.6g}: too small"
        )


def spheres_have_the_stated_area(space: Manifold, rng: np.random.Generator) -> None:
    """Compare the area of spheres, or its ceiling, with the volume density; its slope; and where it ends."""
    if space.is_hadamard:
        _volumes_keep_their_ceiling(space, rng)
    area = space.sphere_area()
    if area is None:
        return
    t = np.linspace(0.05, 0.97, 24) * (area.end if math.isfinite(area.end) else 1.5 * reach(space))
    with np.errstate(all="ignore"):
        _area_is_that_of_volumes(space, area, t, directions(space, rng, 60))
        step = 1e-6 * t
        numeric = (area.log_shape(t + step) - area.log_shape(t - step)) / (2 * step)
        slope = np.asarray(area.slope(t))
    off = np.abs(numeric - slope) / (1e-6 / reach(space) + 1e-5 * np.abs(slope))
    require(off.max() <= 1, "sphere_area: slope is not the derivative of log_shape")
    require(np.diff(slope).max() <= 1e-9 * np.abs(slope).max(), "sphere_area: log_shape is not concave")


def _area_is_that_of_volumes(space: Manifold, area: Area, t: FloatArray, u: FloatArray) -> None:
    end = space.injectivity_radius
    density = np.array([space.log_volume_density(u * x) for x in t])
    flat = log_unit_sphere(space.dim) + (space.dim - 1) * np.log(t)
    stated = np.asarray(area.log_shape(t)) + area.rate * t + area.log_factor
    if area.log_ceiling is None:
        require(
            area.end == end or math.isclose(area.end, end, rel_tol=1e-12),
            f"sphere_area ends at {area.end:.6g}, and geodesics at {end:.6g}",
        )
        off = np.abs(flat[:, None] + density - stated[:, None]).max()
        require(off <= _LOG, f"sphere_area is off by a factor exp({off:.3g}) from log_volume_density")
        return
    require(area.end >= end * (1 - 1e-12), f"sphere_area ends at {area.end:.6g}, before geodesics do, at {end:.6g}")
    ceiling = np.asarray(area.log_ceiling(t))
    require((density <= ceiling[:, None] + 1e-9).all(), "sphere_area: log_ceiling is below log_volume_density")
    require(np.abs(flat + ceiling - stated).max() <= _LOG, "sphere_area is not made with its log_ceiling")


def _volumes_keep_their_ceiling(space: Manifold, rng: np.random.Generator) -> None:
    pairs, rate = space.volume_ceiling()
    for t in np.array([0.1, 0.5, 1.0]) * reach(space):
        ceiling = pairs * float(log_sinhc(np.asarray(rate * t)))
        most = float(np.max(space.log_volume_density(directions(space, rng, 60) * t)))
        require(most <= ceiling + 1e-9, f"volume_ceiling says {ceiling:.6g} at {t:.3g}, and log J is {most:.6g}")


def radial_facts_are_true(space: Manifold, rng: np.random.Generator) -> None:
    """Compare what exact profiles are made of, `rank_one`, with geodesics, volumes, and the sides of triangles."""
    facts = space.rank_one
    if facts is None:
        return
    require(
        math.isclose(facts.reach, space.injectivity_radius, rel_tol=1e-12),
        f"rank_one closes at {facts.reach:.6g}, and geodesics at {space.injectivity_radius:.6g}",
    )
    n = fewer(space, 50)
    far = reach(space)
    u, t = directions(space, rng, n), far * rng.random(n)
    c = u * t[:, None]
    off = np.abs(facts.log_volume(t) - space.log_volume_density(c)).max()
    require(off <= _LOG, f"rank_one has another volume than log_volume_density: a factor exp({off:.3g})")
    if facts.triangle == "":
        return
    e, distance = directions(space, rng, 1)[0], 0.4 * far
    corner = space.exp_coords(space.origin, e * distance)
    third = np.asarray(space.dist(corner, space.exp_coords(space.origin, c)))
    off = np.abs(third - _third_side(space, facts, u, t, e, distance)).max()
    require(off <= 1e-6 * far, f"rank_one has other triangles than dist: a third side differs by {off:.2g}")


def _third_side(
    space: Manifold, facts: RankOne, u: FloatArray, t: FloatArray, e: FloatArray, distance: float
) -> FloatArray:
    """Return the distance of the ends of two geodesics by the law of cosines that is stated."""
    a, b = t / facts.unit, distance / facts.unit
    if facts.triangle == "hyperbolic":
        return np.asarray(facts.unit * np.arccosh(np.cosh(a) * math.cosh(b) - np.sinh(a) * math.sinh(b) * (u @ e)))
    cosine = np.cos(a) * math.cos(b) + np.sin(a) * math.sin(b) * (u @ e)
    if facts.triangle == "complex":
        # The direction i u is the one that is curved most.
        most = np.array([np.linalg.eigh(space.curvature_operator(np.outer(one, one)))[1][:, -1] for one in u])
        cosine = np.hypot(cosine, np.sin(a) * math.sin(b) * (most @ e))
    elif facts.triangle == "real":
        cosine = np.abs(cosine)
    return np.asarray(facts.unit * np.arccos(np.clip(cosine, -1, 1)))


def random_points_are_uniform(space: Manifold, rng: np.random.Generator) -> None:
    """Compare distances of random points from several points, where a space says how large it is."""
    if math.isinf(space.diameter):
        return
    n = 4000
    about_origin = np.sort(space.dist(space.origin, space.random_point(n, rng=rng)))
    for p in points(space, rng, 3):
        about_p = np.sort(space.dist(p, space.random_point(n, rng=rng)))
        both = np.concatenate([about_origin, about_p])
        shares = [np.searchsorted(one, both, side="right") / n for one in (about_origin, about_p)]
        # Kolmogorov and Smirnov's test of two samples, by the limit of its law.
        chance = special.kolmogorov(np.abs(shares[0] - shares[1]).max() * math.sqrt(n / 2))
        require(chance > _FALSE_ALARMS, "random points prefer a region: their distances from two points differ")


def flat_spaces_are_their_coordinates(space: Manifold, rng: np.random.Generator) -> None:
    """Compare distances with those of coordinates, where a space is flat; and sums, where it is a vector space."""
    if not space.is_flat:
        return
    p, x, y = points(space, rng, 1)[0], points(space, rng, 40), points(space, rng, 40)
    a, b = space.log_coords(p, x), space.log_coords(p, y)
    off = float(np.abs(vector_norm(a - b) - space.dist(x, y)).max())
    require(off <= 1e-7 * reach(space), f"is_flat, and distances are off from those of coordinates by {off:.2g}")
    if space.is_vector_space:
        require(np.array_equal(space.exp_coords(x, a), x + a), "is_vector_space, and exp_coords(p, c) is not p + c")
