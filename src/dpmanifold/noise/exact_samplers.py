"""Exact draws about a point (theory section 4): what leaves is the ideal draw, rounded to a public grid.

A distance is drawn (:mod:`dpmanifold.noise.exact_radii`), then normal numbers for a direction; the space moves the
footpoint by them (:class:`~dpmanifold.manifolds.exact_points.ExactPoints`). Uniforms are refined until every decision
and every rounded number is certain (:mod:`dpmanifold.noise.lazy`). The footpoint is looked at only once a distance has
been accepted. A space that does not say how its points are moved gets draws in doubles, and exact ones wherever noise
is added to a vector.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt
from flint import arb

from dpmanifold._check import Array, FloatArray, numeric_array, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold, Product
from dpmanifold.manifolds.exact_points import ExactPoints, precision_kept
from dpmanifold.manifolds.vectors import shorten
from dpmanifold.noise.distance import checked_scale
from dpmanifold.noise.exact_radii import ExactRadius, exact_radius
from dpmanifold.noise.exact_vector_noise import checked_grid, checked_law, noisy_vector
from dpmanifold.noise.lazy import Uniforms, as_doubles, checked_source, normals, rounded, settled
from dpmanifold.noise.source import RandomSource


class ExactSampler(ABC):
    """What draws exactly about points of a space.

    Attributes
    ----------
    space, law : what it was made for; the law is "laplace", density exp(-rho/scale) with respect to volume, or
        "gaussian", density exp(-rho^2/(2 scale^2))
    size : how many numbers are drawn
    """

    size: int

    def __init__(self, space: Manifold, law: str) -> None:
        self.space, self.law = space, checked_law(law)

    @abstractmethod
    def usable(self, scale: float) -> bool:
        """Return whether the law can be drawn at a scale, from public numbers."""

    @abstractmethod
    def largest(self, radius: float) -> float:
        """Return a bound on the numbers of a point within `radius` of the origin: the grid is chosen for it."""

    def draw(self, footpoint: npt.ArrayLike, scale: float, grid: int, source: RandomSource) -> FloatArray:
        """Draw numbers about a footpoint, rounded to the grid.

        Parameters
        ----------
        footpoint : a point of the space; its doubles stand for exactly the numbers that they are
        scale : above 0, and such that :meth:`usable` is True
        grid : exponent of the grid, see :func:`dpmanifold.noise.exact_vector_noise.grid_of`
        source : where the random bits come from; only `source.bits` is used
        """
        grid, source = checked_grid(grid), checked_source(source)
        if not self.usable(scale):
            raise InvalidArgumentError(
                f"scale = {scale:.4g} is too large for exact draws on {self.space!r}. Use a wrapped law, more records "
                "or a smaller ball."
            )
        return self._drawn(np.ascontiguousarray(self._checked(footpoint)), scale, grid, source)

    @abstractmethod
    def _drawn(self, footpoint: Array, scale: float, grid: int, source: RandomSource) -> FloatArray:
        """Do so, with checked arguments."""

    def place(self, numbers: npt.ArrayLike) -> Array:
        """Make a point of drawn numbers, whatever they are: the origin of those that are not finite."""
        array = numeric_array(numbers, "numbers")
        if array.shape != (self.size,) or array.dtype.kind != "f":
            raise InvalidArgumentError(
                f"numbers must be real and of shape ({self.size},) on {self.space!r}, got {shown(array)}."
            )
        if not np.isfinite(array).all():
            return self.space.origin.copy()
        return self._placed(array.astype(np.float64, copy=False))

    @abstractmethod
    def _placed(self, numbers: FloatArray) -> Array:
        """Do so, with finite numbers."""

    def _checked(self, footpoint: object) -> Array:
        """Return the footpoint's entries. The message says nothing of them."""
        array, space = numeric_array(footpoint, "footpoint"), self.space
        if array.shape != space.shape or array.dtype.kind != space.dtype.kind or not np.isfinite(array).all():
            raise InvalidArgumentError(
                f"footpoint must be a point of {space!r}: finite numbers of shape {space.shape}."
            )
        return array


def exact_sampler(space: Manifold, law: str) -> ExactSampler | None:
    """Return what draws exactly about points of a space, by what it states; None where only doubles can be drawn.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> from dpmanifold.noise import as_source
    >>> sphere = Sphere(2)
    >>> sampler = exact_sampler(sphere, "laplace")
    >>> numbers = sampler.draw([0.0, 0.6, 0.8], 0.01, -40, as_source(7))
    >>> bool((numbers % 2.0**-40 == 0).all()), bool(sphere.dist([0.0, 0.6, 0.8], sampler.place(numbers)) < 0.2)
    (True, True)
    """
    own: ExactSampler | None = space.exact_sampler(checked_law(law))
    if own is not None:
        return own
    if space.is_flat:
        return FlatSampler(space, law)
    if space.gaussian_proof == "product":
        product = cast(Product, space)
        parts = [part for factor in product.factors if (part := exact_sampler(factor, law)) is not None]
        return ProductSampler(product, parts) if law == "gaussian" and len(parts) == len(product.factors) else None
    if space.exact_points is None or exact_radius(space, law, 1.0) is None:
        return None
    return DistanceSampler(space, law, space.exact_points)


class FlatSampler(ExactSampler):
    """Noise on coordinates at the origin: the footpoint's, as they are computed, stand for what they are."""

    def __init__(self, space: Manifold, law: str) -> None:
        super().__init__(space, law)
        self.size = space.dim

    def usable(self, scale: float) -> bool:
        """Return True."""
        return True

    def largest(self, radius: float) -> float:
        """Return the radius."""
        return radius

    def _drawn(self, footpoint: Array, scale: float, grid: int, source: RandomSource) -> FloatArray:
        return noisy_vector(self.space.log_coords(self.space.origin, footpoint), self.law, scale, grid, source)

    def _placed(self, numbers: FloatArray) -> Array:
        return self.space.exp_coords(self.space.origin, shorten(numbers, self.space.farthest))


class DistanceSampler(ExactSampler):
    """A distance and a direction, in numbers of the space's own."""

    def __init__(self, space: Manifold, law: str, points: ExactPoints) -> None:
        super().__init__(space, law)
        self._points, self.size = points, points.size

    def radius(self, scale: float) -> ExactRadius:
        """Return the law of the distance."""
        found = exact_radius(self.space, self.law, scale)
        assert found is not None  # at every scale, as at 1
        return found

    def usable(self, scale: float) -> bool:
        """Return whether the law exists and proposals are accepted often enough."""
        return self.radius(checked_scale(scale)).usable

    def largest(self, radius: float) -> float:
        """Return what the space says."""
        return self._points.largest(radius)

    def _drawn(self, footpoint: Array, scale: float, grid: int, source: RandomSource) -> FloatArray:
        self._points.require_footpoint(footpoint)
        radius = self.radius(scale)
        with precision_kept():
            uniforms = self._accepted(radius, radius.bits(self.largest(0.0), grid), source)

            def attempt() -> list[int] | None:
                numbers = self._points.moved(footpoint, radius.distance(uniforms), self._gaussian(radius, uniforms))
                step = arb((1, -grid))
                return None if numbers is None else rounded([number * step for number in numbers])

            multiples = settled(uniforms, attempt)
        return as_doubles(multiples, grid)

    def _accepted(self, radius: ExactRadius, bits: int, source: RandomSource) -> Uniforms:
        """Return the uniforms of an accepted distance and direction. They know nothing of the footpoint."""
        while True:
            uniforms = Uniforms(radius.needs, bits, source)
            if settled(uniforms, partial(radius.accepted, uniforms)):
                uniforms.add(self._points.normals + self._points.normals % 2)  # normal numbers come in pairs
                gaussian = partial(self._gaussian, radius, uniforms)
                if settled(uniforms, partial(radius.direction_accepted, uniforms, gaussian)):
                    return uniforms

    def _gaussian(self, radius: ExactRadius, uniforms: Uniforms) -> list[arb]:
        return normals(uniforms.balls(radius.needs))[: self._points.normals]

    def _placed(self, numbers: FloatArray) -> Array:
        return self._points.place(numbers)


class ProductSampler(ExactSampler):
    """The Gaussian law of a product: independent ones on the factors, of scale/weight each (theory: product).

    What leaves are the factors' own numbers, those of a factor with a large weight times a power of two, so that one
    grid is as fine for all of them.
    """

    space: Product

    def __init__(self, space: Product, parts: list[ExactSampler]) -> None:
        super().__init__(space, "gaussian")
        self._each = list(zip(parts, space.weights.tolist(), strict=True))
        self.size = sum(part.size for part in parts)

    def usable(self, scale: float) -> bool:
        """Return whether all factors' are."""
        return all(part.usable(own_scale(checked_scale(scale), a)) for part, a in self._each)

    def largest(self, radius: float) -> float:
        """Return the largest of the factors'."""
        return max(math.ldexp(part.largest(radius / a), _power(a)) for part, a in self._each)

    def _drawn(self, footpoint: Array, scale: float, grid: int, source: RandomSource) -> FloatArray:
        found = []
        for (part, a), own in zip(self._each, self.space.split(footpoint), strict=True):
            numbers = part.draw(own, own_scale(scale, a), grid - _power(a), source)
            found.append(np.ldexp(numbers, _power(a)))
        return np.concatenate(found)

    def place(self, numbers: npt.ArrayLike) -> Array:
        """Return the point that numbers stand for, factor by factor.

        Examples
        --------
        >>> from dpmanifold.manifolds import Product, Sphere
        >>> exact_sampler(Product([Sphere(1)] * 2), "gaussian").place(np.array([2.0, 0.0, 0.0, 3.0]))
        array([[1., 0.],
               [0., 1.]])
        """
        return self._placed(np.asarray(numbers))

    def _placed(self, numbers: FloatArray) -> Array:
        ends = np.cumsum([part.size for part, _ in self._each])
        parts = zip(self._each, np.split(numbers, ends[:-1]), strict=True)
        return self.space.join(tuple(part.place(np.ldexp(own, -_power(a))) for (part, a), own in parts))


def own_scale(scale: float, weight: float) -> float:
    """Return the scale in a factor's units, rounded up: never too little noise.

    Examples
    --------
    >>> own_scale(1.0, 4.0) > 0.25
    True
    """
    return math.nextafter(scale / weight, math.inf)


def _power(weight: float) -> int:
    """Return the power of two that a factor's numbers are multiplied by: about its weight."""
    return math.frexp(weight)[1] - 1
