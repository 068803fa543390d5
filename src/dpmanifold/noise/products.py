"""The Gaussian law about a point of a product of round and flat spaces: independent ones (theory: product).

The squared distance is a weighted sum, so exp(-rho^2/(2 scale^2)) is a product of Gaussian densities on the factors,
of scale/weight each. This module draws from it in doubles; :mod:`dpmanifold.noise.exact_samplers` does so exactly.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold, Product
from dpmanifold.noise.distance import RiemannianGaussian, checked_scale
from dpmanifold.noise.exact_samplers import own_scale
from dpmanifold.noise.source import Rng, Size, as_source


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

    def __init__(self, space: Manifold, footpoint: object, scale: float) -> None:
        if not has_gaussian_law(space):
            raise InvalidArgumentError(
                f"a Gaussian law is known on products of spheres, shapes and flat spaces, got {space!r}. Add noise in "
                "the tangent space of a public centre instead."
            )
        self.space, scale = cast(Product, space), checked_scale(scale)
        parts = self.space.split(self.space.as_points(footpoint, "footpoint", batch=False))
        each = zip(self.space.factors, self.space.weights.tolist(), parts, strict=True)
        self._laws = [gaussian_law(factor, part, own_scale(scale, a)) for factor, a, part in each]
        self.normalized: bool = all(law.normalized for law in self._laws)

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


def gaussian_law(space: Manifold, footpoint: object, scale: float) -> RiemannianGaussian | ProductGaussian:
    """Return the Gaussian law about a point: of a product, where that is why it is known to be private.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> type(gaussian_law(Sphere(2), [1.0, 0.0, 0.0], 0.1)).__name__
    'RiemannianGaussian'
    """
    kind = ProductGaussian if space.gaussian_proof == "product" else RiemannianGaussian
    return kind(space, footpoint, scale)


def has_gaussian_law(space: Manifold) -> bool:
    """Return whether Gaussian noise about a point is known to be private, and how it is drawn.

    Examples
    --------
    >>> from dpmanifold.manifolds import Hyperbolic, Sphere
    >>> has_gaussian_law(Product([Sphere(2)] * 2)), has_gaussian_law(Hyperbolic(2))
    (True, False)
    """
    if space.gaussian_proof == "product":
        return all(map(has_gaussian_law, cast(Product, space).factors))
    return space.has_gaussian and space.sphere_area() is not None
