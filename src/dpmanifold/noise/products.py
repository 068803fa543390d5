"""The Gaussian law about a point of a product of round and flat spaces: independent ones (theory: product).

The squared distance is a weighted sum, so exp(-rho^2/(2 scale^2)) is a product of Gaussian densities on the factors,
of scale/weight each. This module draws from it in doubles, and exactly as :mod:`dpmanifold.noise.exact_samplers` wants
it: what leaves are the factors' own numbers, those of a factor with a large weight times a power of two, so that one
grid is as fine for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold, Product
from dpmanifold.manifolds.vectors import shorten
from dpmanifold.noise import exact_curved
from dpmanifold.noise.areas import checked_scale
from dpmanifold.noise.exact import checked_law, noisy_vector
from dpmanifold.noise.gaussian import RiemannianGaussian
from dpmanifold.noise.source import RandomSource, Rng, Size, as_source


class ProductGaussian:
    """Density exp(-rho^2/(2 scale^2)) about a point of a product whose factors are spheres, shapes or flat spaces.

    Parameters
    ----------
    space : the product
    footpoint : one point of it
    scale : above 0

    Attributes
    ----------
    normalized : whether `logpdf` includes the normaliser

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> space = Product([Sphere(2)] * 2, weights=[1.0, 2.0])
    >>> ProductGaussian(space, space.origin, 0.1).sample(5, rng=0).shape
    (5, 2, 3)
    """

    name = "riemannian-gaussian"

    def __init__(self, space: Manifold, footpoint: object, scale: float) -> None:
        self.space = _checked(space)
        parts = self.space.split(self.space.as_points(footpoint, "footpoint", batch=False))
        each = zip(self.space.factors, self._scales(checked_scale(scale)), parts, strict=True)
        self._laws = [_law(factor, own, part) for factor, own, part in each]
        self.normalized: bool = all(law.normalized for law in self._laws)

    def _scales(self, scale: float) -> Iterator[float]:
        return (_own(scale, a) for a in self.space.weights.tolist())

    def sample(self, size: Size | None = None, rng: Rng = None) -> Array:
        """Draw points, shape (*size, *space.shape); one point if size is None."""
        source = as_source(rng)
        return self.space.join(tuple(law.sample(size, source) for law in self._laws))

    def logpdf(self, x: object) -> FloatArray:
        """Log density at points (..., *space.shape) with respect to the volume measure of the product."""
        parts = self.space.split(self.space.as_points(x, "x"))
        # A factor's volume is its own times its weight to the power of its dimension.
        each = zip(self.space.factors, self.space.weights.tolist(), strict=True)
        volume = sum(factor.dim * math.log(a) for factor, a in each)
        return np.asarray(sum(law.logpdf(part) for law, part in zip(self._laws, parts, strict=True)) - volume)


def _law(factor: Manifold, scale: float, footpoint: Array) -> RiemannianGaussian | ProductGaussian:
    known = factor.rank_one is not None or factor.is_flat
    return RiemannianGaussian(factor, footpoint, scale) if known else ProductGaussian(factor, footpoint, scale)


# -------------------------------------------------------------------- exact draws


def usable(space: Manifold, law: str, scale: float) -> bool:
    """Return whether the law can be drawn: a Gaussian one, on products of spheres, shapes and flat spaces.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD, Sphere
    >>> usable(Product([Sphere(2), SPD(3)]), "gaussian", 0.1), usable(Product([Sphere(2)]), "laplace", 0.1)
    (True, False)
    """
    if checked_law(law) != "gaussian" or not space.has_gaussian or not hasattr(space, "factors"):
        return False
    each = zip(cast(Product, space).factors, cast(Product, space).weights.tolist(), strict=True)
    return all(f.is_flat or _sampler(f).usable(f, law, _own(checked_scale(scale), a)) for f, a in each)


def size(space: Manifold) -> int:
    """Return how many numbers are drawn: those of all factors, coordinates on flat ones.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD, Sphere
    >>> size(Product([Sphere(2), SPD(3)]))
    9
    """
    return sum(_size(factor) for factor in _checked(space).factors)


def largest(space: Manifold, radius: float) -> float:
    """Return a bound on the numbers of a point within `radius` of the origin.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean, Sphere
    >>> largest(Product([Sphere(2), Euclidean(1)], weights=[1.0, 4.0]), 0.5)
    1.0
    """
    each = zip(_checked(space).factors, _checked(space).weights.tolist(), strict=True)
    return max(math.ldexp(radius / a if f.is_flat else _sampler(f).largest(f, radius / a), _power(a)) for f, a in each)


def riemannian_point(
    space: Manifold, footpoint: Array, law: str, scale: float, grid: int, source: RandomSource
) -> FloatArray:
    """Draw every factor about its footpoint; returns the factors' numbers, rounded to the grid.

    On flat factors the footpoint's computed coordinates at the origin stand for exactly the numbers that they are.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> from dpmanifold.noise import as_source
    >>> space = Product([Sphere(2)] * 2, weights=[1.0, 2.0])
    >>> riemannian_point(space, space.origin, "gaussian", 0.1, -40, as_source(7)).shape
    (6,)
    """
    where = _checked(space)
    if not usable(where, law, scale):
        raise InvalidArgumentError(f'law must be "gaussian" on {space!r}, at a scale at which it can be drawn.')
    found = []
    for factor, a, part in zip(where.factors, where.weights.tolist(), where.split(footpoint), strict=True):
        own, power = _own(scale, a), _power(a)
        if factor.is_flat:
            c = factor.log_coords(factor.origin, part)
            numbers = noisy_vector(c, law, own, grid - power, source)
        else:
            numbers = _sampler(factor).riemannian_point(factor, part, law, own, grid - power, source)
        found.append(np.ldexp(numbers, power))
    return np.concatenate(found)


def place_point(space: Manifold, numbers: FloatArray) -> Array:
    """Return the point that numbers stand for, factor by factor.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> place_point(Product([Sphere(1)] * 2), np.array([2.0, 0.0, 0.0, 3.0]))
    array([[1., 0.],
           [0., 1.]])
    """
    where = _checked(space)
    parts, start = [], 0
    for factor, a in zip(where.factors, where.weights.tolist(), strict=True):
        own = np.ldexp(np.asarray(numbers)[start : start + _size(factor)], -_power(a))
        start += _size(factor)
        if factor.is_flat:
            usable_numbers = own if np.isfinite(own).all() else np.zeros(factor.dim)
            parts.append(factor.exp_coords(factor.origin, shorten(usable_numbers, factor.farthest)))
        else:
            parts.append(_sampler(factor).place_point(factor, own))
    return where.join(tuple(parts))


class _Here:
    """The functions above, for products within products."""

    usable, size, largest = staticmethod(usable), staticmethod(size), staticmethod(largest)
    riemannian_point, place_point = staticmethod(riemannian_point), staticmethod(place_point)


def _sampler(factor: Manifold) -> _Here:
    return cast(_Here, exact_curved) if factor.rank_one is not None else _Here()


def _size(factor: Manifold) -> int:
    return factor.dim if factor.is_flat else _sampler(factor).size(factor)


def _own(scale: float, weight: float) -> float:
    """Return the scale in a factor's units, rounded up: never too little noise."""
    return math.nextafter(scale / weight, math.inf)


def _power(weight: float) -> int:
    """Return the power of two that a factor's numbers are multiplied by: about its weight."""
    return math.frexp(weight)[1] - 1


def _checked(space: Manifold) -> Product:
    if not space.has_gaussian:
        raise InvalidArgumentError(
            f"a Gaussian law is known on products of spheres, shapes and flat spaces, got {space!r}. Add noise in the "
            "tangent space of a public centre instead."
        )
    return cast(Product, space)
