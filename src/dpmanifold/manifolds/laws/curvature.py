"""Curvature is one story: operator, bounds, Hessians and volumes, and the distance itself, say the same."""

from __future__ import annotations

import itertools

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.laws.samples import directions, fewer, points, reach, require
from dpmanifold.manifolds.symmetric import cot_of_root, log_sinc_of_root
from dpmanifold.manifolds.vectors import complete_basis

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
