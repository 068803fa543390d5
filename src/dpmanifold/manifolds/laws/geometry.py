"""What a space's geometry must satisfy: curvature, isometries, where it ends, and what depends on distances alone.

Curvature is one story: operator, bounds, Hessians and volumes, and the distance itself, say the same. Isometries move
points to the origin and back, and what leaves a space shows no way. Laws of noise are made of areas and radial facts.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import special

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.optional_properties import Area, RankOne, log_unit_sphere
from dpmanifold.manifolds.symmetric_spaces import cot_of_root, log_sinc_of_root
from dpmanifold.manifolds.vectors import complete_basis, log_sinhc, vector_norm

# What formulas may differ by from each other, and from differences of distances.
_FORMULAS, _DIFFERENCES = 1e-8, 5e-6


def curvature_is_one_story(space: Manifold, rng: np.random.Generator) -> None:
    """Compare the curvature operator with the stated curvatures, with Hessians and volumes, and with distances."""
    _facts_agree(space)
    far = reach(space)
    for u in directions(space, rng, fewer(space, 12)):
        operator = _operator(space, u)
        values, vectors = np.linalg.eigh(operator)
        for t in np.array([0.1, 0.4, 0.8]) * far:
            wanted = (vectors * cot_of_root(values * t * t)) @ vectors.T
            _hessian_is(space, u * t, wanted)
            density, stated = float(log_sinc_of_root(values * t * t).sum()), float(space.log_volume_density(u * t))
            require(
                abs(stated - density) <= _FORMULAS * (1 + abs(density)),
                f"log_volume_density is {stated:.6g} where curvature_operator makes it {density:.6g}",
            )
    _is_linear(space, rng)
    _hessians_keep_their_bounds(space, rng)
    for _ in range(2):
        _distance_bends_alike(space, rng)


def _facts_agree(space: Manifold) -> None:
    low, high = space.curvature
    require(
        np.shape(space.origin) == space.shape, f"origin has the shape {np.shape(space.origin)} and not {space.shape}"
    )
    wrong = space.check(space.origin)
    require(wrong is None, f"origin is no point of the space: {wrong}")
    require(low <= high, f"curvature is ({low:g}, {high:g}), smallest and largest")
    require(not space.is_flat or low == high == 0, f"is_flat, and curvature is ({low:g}, {high:g})")
    endless = bool(np.isinf(space.injectivity_radius))
    require(
        space.is_hadamard == (high <= 0 and endless),
        f"is_hadamard is {space.is_hadamard}, with curvature up to {high:g} and an injectivity radius of "
        f"{space.injectivity_radius:g}",
    )


def _size(space: Manifold) -> float:
    """Return what curvatures are compared with."""
    return max(*map(abs, space.curvature), 1 / reach(space) ** 2)


def _operator(space: Manifold, u: FloatArray) -> FloatArray:
    """Return w -> R(w, u)u for a unit vector, and look at what every such operator is."""
    operator, size, d = np.asarray(space.curvature_operator(np.outer(u, u))), _size(space), space.dim
    require(operator.shape == (d, d), f"curvature_operator has the shape {operator.shape} and not {(d, d)}")
    require(np.abs(operator - operator.T).max() <= 1e-10 * size, "curvature_operator is not symmetric")
    require(np.abs(operator @ u).max() <= 1e-10 * size, "curvature_operator: R(v, v)v is not 0")
    if d > 1:
        planes = complete_basis(u)[:, 1:]
        across = np.linalg.eigvalsh(planes.T @ operator @ planes)
        low, high = space.curvature
        require(
            across[0] >= low - 1e-9 * size and across[-1] <= high + 1e-9 * size,
            f"curvature_operator has curvatures from {across[0]:.4g} to {across[-1]:.4g}, outside {space.curvature}",
        )
    return operator


def _hessian_is(space: Manifold, c: FloatArray, wanted: FloatArray) -> None:
    values, vectors = space.hessian_spectrum(c)
    square = np.abs(vectors.T @ vectors - np.eye(space.dim)).max()
    require(square <= 1e-10, "hessian_spectrum: directions are not orthonormal")
    off = np.abs((vectors * values) @ vectors.T - wanted).max()
    require(
        off <= _FORMULAS * (1 + np.abs(wanted).max()),
        f"hessian_spectrum is off by {off:.2g} from what curvature_operator makes it",
    )


def _is_linear(space: Manifold, rng: np.random.Generator) -> None:
    a, b = (np.outer(u, u) for u in directions(space, rng, 2))
    one, other, both = (np.asarray(space.curvature_operator(moment)) for moment in (a, b, a + 2 * b))
    require(np.abs(both - one - 2 * other).max() <= 1e-10 * _size(space), "curvature_operator is not linear")


def _hessians_keep_their_bounds(space: Manifold, rng: np.random.Generator) -> None:
    """Look at eigenvalues, and at how far apart two Hessians are: what sensitivities are made of."""
    for share in (0.2, 0.45):
        t = share * reach(space)
        found = [space.hessian_spectrum(u * t) for u in directions(space, rng, fewer(space, 6) + 1)]
        low, high = space.hessian_bounds(t)
        least, most = min(values.min() for values, _ in found), max(values.max() for values, _ in found)
        require(
            least >= low - 1e-9 * abs(low) and most <= high * (1 + 1e-9),
            f"hessian_bounds are {low:.6g} and {high:.6g} at {t:.3g}, and eigenvalues {least:.6g} and {most:.6g}",
        )
        matrices = [np.eye(space.dim), *((vectors * values) @ vectors.T for values, vectors in found)]
        apart = max(np.linalg.norm(a - b) for a, b in itertools.pairwise(matrices))
        require(
            apart <= space.hessian_diameter(t) + 1e-9,
            f"hessian_diameter is {space.hessian_diameter(t):.6g} at {t:.3g}, and two Hessians are {apart:.6g} apart",
        )


def _distance_bends_alike(space: Manifold, rng: np.random.Generator) -> None:
    """Differentiate half the squared distance twice, by differences of the fourth order."""
    p, (u, *e) = points(space, rng, 1)[0], directions(space, rng, 7)
    t, step = 0.3 * min(1.0, reach(space)), 1e-3 * min(1.0, reach(space))
    q, across = space.exp_coords(p, u * t), np.array(e)
    f = [np.asarray(space.dist(space.exp_coords(p, s * step * across), q)) ** 2 / 2 for s in (-2, -1, 0, 1, 2)]
    numeric = (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * step**2)
    values, vectors = np.linalg.eigh(np.asarray(space.curvature_operator(np.outer(u, u))))
    off = np.abs(numeric - ((across @ vectors) ** 2 * cot_of_root(values * t * t)).sum(axis=1)).max()
    require(off <= _DIFFERENCES, f"dist bends otherwise than curvature_operator says: Hessians differ by {off:.2g}")


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


# -------------------------------------------------------------------- what the laws look at: directions, points and len


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
