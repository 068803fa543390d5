"""Exact draws from the Riemannian Laplace law on hyperbolic spaces and affine-invariant matrices (theory section 4).

The density with respect to volume is exp(-rho/scale), rho the distance from a footpoint. Uniforms are refined until
every decision is certain (:mod:`dpmanifold.noise.lazy`); what leaves are coordinates of the drawn point in a chart that
knows nothing of the footpoint, rounded to a public grid. The footpoint's doubles stand for exactly the numbers that
they are: a matrix, or the spatial entries of a point of the hyperboloid, whose time-like entry they decide. Isometries
carry the draw from the origin to the footpoint, which enters last: how many proposals a draw took is a function of
public numbers and of random bits.

Matrices are drawn in :mod:`dpmanifold.noise.exact_matrices`; here are hyperbolic spaces and the choice between the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from flint import arb

from dpmanifold._check import Array, FloatArray, numeric_array, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import SPD, Hyperbolic, Manifold
from dpmanifold.manifolds.vectors import shorten
from dpmanifold.noise import exact_matrices
from dpmanifold.noise.areas import checked_scale
from dpmanifold.noise.exact import checked_grid, checked_law
from dpmanifold.noise.lazy import (
    Uniforms,
    as_doubles,
    checked_source,
    first_bits,
    normals,
    precision_kept,
    rounded,
    settled,
)
from dpmanifold.noise.source import RandomSource

# Radii beyond this many mean distances of the slowest exponential, and beyond what doubles hold, take refinements.
_RARE, _FARTHEST = 44.0, 300.0


def riemannian_point(
    space: Manifold, footpoint: npt.ArrayLike, law: str, scale: float, grid: int, source: RandomSource
) -> FloatArray:
    """Draw a point about a footpoint and return its coordinates in a public chart, rounded to a public grid.

    Parameters
    ----------
    space : Hyperbolic, or SPD(k, metric="riemann") with k at least 2
    footpoint : a point of the space
    law : "laplace"
    scale : above 0, and such that :func:`usable` is True
    grid : exponent of the grid, see :func:`dpmanifold.noise.exact.grid_of`
    source : where the random bits come from; only `source.bits` is used

    Returns
    -------
    array of float64, shape (dim,), multiples of 2^grid. On hyperbolic space normal coordinates at the origin. For a
    matrix T T', T lower triangular with a positive diagonal, the k logarithms of T's diagonal and then, row by row, the
    entries of T below it, each divided by its row's diagonal entry. :func:`place_point` makes a point of them.

    Notes
    -----
    *Hyperbolic space*, in curvature radii: the radius has density proportional to exp(-t/s) sinh(t)^(d-1), which is
    exp(-a t) (1 - exp(-2t))^(d-1) with a = 1/s - (d-1), up to a constant. So exp(-2t) has the law Beta(a/2, d), that
    of a product of independent U_j^(1/(a/2 + j)), j = 0, ..., d-1, and t is the sum of independent exponentials with
    rates a, a + 2, ..., a + 2(d-1). Nothing is rejected. The direction is uniform, and the boost that takes the origin
    to the footpoint moves the point.

    Examples
    --------
    >>> from dpmanifold.noise import as_source
    >>> plane, source = Hyperbolic(2), as_source(7)
    >>> numbers = riemannian_point(plane, [np.cosh(1.0), np.sinh(1.0), 0.0], "laplace", 0.01, -40, source)
    >>> bool((numbers % 2.0**-40 == 0).all()), place_point(plane, numbers).shape
    (True, (3,))
    >>> matrices = SPD(2, metric="riemann")
    >>> riemannian_point(matrices, [[2.0, 1.0], [1.0, 3.0]], "laplace", 0.01, -40, source).shape
    (3,)
    """
    law, scale, grid, source = checked_law(law), checked_scale(scale), checked_grid(grid), checked_source(source)
    if not usable(space, law, scale):
        raise InvalidArgumentError(_why_not(space, law, scale))
    point = _checked_footpoint(space, footpoint)
    with precision_kept():
        multiples = _CHARTS[type(space)].drawn(space, point, scale, grid, source)
    return as_doubles(multiples, grid)


def place_point(space: Manifold, numbers: npt.ArrayLike) -> Array:
    """Turn drawn numbers into a point of the space; numbers that are not finite give the origin.

    Coordinates that would take a point beyond what doubles hold are shortened, and a matrix that is not positive
    definite to working precision is lifted until it is.

    Parameters
    ----------
    space : Hyperbolic or SPD(k, metric="riemann")
    numbers : shape (dim,)

    Returns
    -------
    array, shape `space.shape`

    Examples
    --------
    >>> place_point(SPD(2, metric="riemann"), [0.0, np.log(2.0), 0.5])
    array([[1., 1.],
           [1., 5.]])
    >>> place_point(Hyperbolic(2), [0.0, 0.0])
    array([1., 0., 0.])
    """
    if not _known(space):
        raise InvalidArgumentError(_why_not(space, "laplace", 1.0))
    array = numeric_array(numbers, "numbers")
    if array.shape != (space.dim,) or array.dtype.kind != "f":
        raise InvalidArgumentError(f"numbers must be real, of shape ({space.dim},) on {space!r}, got {shown(array)}.")
    if not np.isfinite(array).all():
        return space.origin.copy()
    return _CHARTS[type(space)].placed(space, array)


def size(space: Manifold) -> int:
    """Return how many numbers are drawn: the coordinates of the chart.

    Examples
    --------
    >>> size(Hyperbolic(2))
    2
    """
    return space.dim


def largest(space: Manifold, radius: float) -> float:
    """Return a bound on the coordinates of a point within `radius` of the origin, for the choice of a grid.

    Examples
    --------
    >>> largest(Hyperbolic(2), 0.5)
    0.5
    """
    return radius


def usable(space: Manifold, law: str, scale: float) -> bool:
    """Return whether the law can be drawn here, from public numbers.

    On hyperbolic space wherever the law exists, 1/scale > (d-1) sqrt(-curvature). On affine-invariant matrices where
    proposals are accepted often enough: wherever :class:`~dpmanifold.noise.RiemannianLaplace` draws.

    Examples
    --------
    >>> usable(Hyperbolic(3), "laplace", 0.49), usable(Hyperbolic(3), "laplace", 0.5)
    (True, False)
    >>> usable(SPD(9, metric="riemann"), "laplace", 0.05), usable(SPD(9, metric="riemann"), "laplace", 0.5)
    (True, False)
    """
    scale = checked_scale(scale)
    return checked_law(law) == "laplace" and _known(space) and _CHARTS[type(space)].usable(space, scale)


def _hyperbolic(space: Manifold, point: FloatArray, scale: float, grid: int, source: RandomSource) -> list[int]:
    """Draw normal coordinates at the origin, as multiples of 2^grid."""
    radius, spatial = float(space.origin[0]), point[1:].tolist()
    d = len(spatial)
    uniforms = Uniforms(d + d + d % 2, first_bits(scale, grid - _bits_lost(radius / scale, d)), source)

    def attempt() -> list[int] | None:
        balls = uniforms.balls()
        slowest = arb(radius) / arb(scale) - (d - 1)
        t = -sum((balls[j].log() / (slowest + 2 * j) for j in range(d)), start=arb(0))
        x = [arb(entry) / arb(radius) for entry in spatial]
        z = _boosted(x, t, normals(balls[d:])[:d])
        length = _norm(z)
        # The number of grid steps that one unit of z stands for.
        steps = arb(radius) * length.asinh() / length * arb((1, -grid))
        return rounded([entry * steps for entry in z])

    return settled(uniforms, attempt)


def _boosted(x: list[arb], t: arb, gaussian: list[arb]) -> list[arb]:
    """Return the spatial entries of the point at distance t from the point with spatial entries x, on the hyperboloid.

    The direction is that of `gaussian`, seen from the origin before the boost.
    """
    sine, cosine = t.sinh_cosh()
    ahead = sine / _norm(gaussian)
    y = [ahead * z for z in gaussian]
    time = (1 + sum((entry * entry for entry in x), start=arb(0))).sqrt()
    weight = cosine + sum((a * b for a, b in zip(x, y, strict=True)), start=arb(0)) / (1 + time)
    return [b + a * weight for a, b in zip(x, y, strict=True)]


def _norm(z: list[arb]) -> arb:
    return sum((entry * entry for entry in z), start=arb(0)).sqrt()


def _bits_lost(inverse: float, d: int) -> int:
    """Return how many bits the boost of a point at a likely distance t may cost: a factor of exp(2t)."""
    slowest = max(inverse - (d - 1), 1 / _FARTHEST)
    reach = sum(1 / (slowest + 2 * j) for j in range(d)) + _RARE / slowest
    return math.ceil(2 * min(reach, _FARTHEST) / math.log(2))


class _Chart(NamedTuple):
    """How one class of spaces is drawn on: the draw, the point that its numbers stand for, and where that works."""

    drawn: Callable[[Manifold, FloatArray, float, int, RandomSource], list[int]]
    placed: Callable[[Manifold, FloatArray], Array]
    usable: Callable[[Manifold, float], bool]
    on_flat: bool


_CHARTS: dict[type[Manifold], _Chart] = {
    Hyperbolic: _Chart(
        _hyperbolic,
        lambda space, numbers: space.exp_coords(space.origin, shorten(numbers, space.farthest)),
        lambda space, scale: Fraction(float(space.origin[0])) > (space.dim - 1) * Fraction(scale),
        on_flat=True,
    ),
    SPD: _Chart(
        lambda space, point, scale, grid, source: exact_matrices.drawn(point, scale, grid, source),
        exact_matrices.placed,
        exact_matrices.usable,
        on_flat=False,
    ),
}


def _known(space: Manifold) -> bool:
    chart = _CHARTS.get(type(space))
    return chart is not None and (chart.on_flat or not space.is_flat)


def _why_not(space: Manifold, law: str, scale: float) -> str:
    if not _known(space):
        return (
            'these draws are known on Hyperbolic and SPD(k, metric="riemann"), k at least 2, got '
            f"{shown(space)}. On flat spaces add noise to coordinates (dpmanifold.noise.exact.noisy_vector)."
        )
    if law != "laplace":
        return f'law must be "laplace" on {space!r}, got {shown(law)}.'
    return (
        f"scale = {scale:.4g} is too large for exact draws on {space!r}. Use a wrapped law, more records or a "
        "smaller ball."
    )


def _checked_footpoint(space: Manifold, footpoint: object) -> Array:
    """Return the footpoint's entries. The message says nothing of them."""
    array = numeric_array(footpoint, "footpoint")
    if array.shape != space.shape or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise InvalidArgumentError(f"footpoint must be a point of {space!r}: finite numbers of shape {space.shape}.")
    return array
