"""Which spaces have exact draws about a point, and which module makes them.

A class of spaces that is not registered here gets draws in doubles from laws about a point, and exact ones wherever
noise is added to a vector. Classes are looked up as they are: a subclass may have another geometry. A space brings its
sampler in the file it is written in, by :func:`register_exact_sampler`.
"""

from __future__ import annotations

from typing import Protocol

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import SPD, Hyperbolic, KendallShapes, Manifold, Product, Sphere
from dpmanifold.noise import exact_curved, exact_hadamard, products
from dpmanifold.noise.source import RandomSource


class ExactSampler(Protocol):
    """What a module that draws exactly about a point offers."""

    def usable(self, space: Manifold, law: str, scale: float) -> bool:
        """Return whether the law can be drawn there, from public numbers."""

    def size(self, space: Manifold) -> int:
        """Return how many numbers are drawn."""

    def largest(self, space: Manifold, radius: float) -> float:
        """Return a bound on the numbers of a point within `radius` of the origin: the grid is chosen for it."""

    def riemannian_point(
        self, space: Manifold, footpoint: Array, law: str, scale: float, grid: int, source: RandomSource
    ) -> FloatArray:
        """Draw numbers about a footpoint, rounded to the grid."""

    def place_point(self, space: Manifold, numbers: FloatArray) -> Array:
        """Make a point of them."""


_NEEDED = ("usable", "size", "largest", "riemannian_point", "place_point")
_SAMPLERS: dict[type[Manifold], ExactSampler] = {}


def register_exact_sampler(kind: type[Manifold], sampler: ExactSampler) -> None:
    """Have points of a class of spaces drawn exactly by `sampler`, a module or object.

    That the draws are exact is the sampler's own claim: releases repeat it (theory: exact).

    Parameters
    ----------
    kind : the class itself, which has no sampler yet; subclasses of it are not meant
    sampler : with the functions of :class:`ExactSampler`

    Examples
    --------
    >>> register_exact_sampler(Sphere, exact_hadamard)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: Sphere has an exact sampler already: register a subclass of your own.
    """
    if not (isinstance(kind, type) and issubclass(kind, Manifold)):
        raise InvalidArgumentError(f"kind must be a subclass of Manifold, got {shown(kind)}.")
    missing = [name for name in _NEEDED if not callable(getattr(sampler, name, None))]
    if missing:
        raise InvalidArgumentError(
            f"sampler must have the functions {', '.join(_NEEDED)}; {shown(sampler)} has no {', '.join(missing)}."
        )
    if _SAMPLERS.setdefault(kind, sampler) is not sampler:
        raise InvalidArgumentError(f"{kind.__name__} has an exact sampler already: register a subclass of your own.")


register_exact_sampler(Sphere, exact_curved)
register_exact_sampler(KendallShapes, exact_curved)
register_exact_sampler(Hyperbolic, exact_hadamard)
register_exact_sampler(SPD, exact_hadamard)
register_exact_sampler(Product, products)


def exact_sampler(space: Manifold) -> ExactSampler | None:
    """Return what draws exactly about points of a space; None where only doubles can be drawn.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> exact_sampler(Sphere(2)) is exact_curved, exact_sampler(Euclidean(2))
    (True, None)
    """
    return _SAMPLERS.get(type(space))
