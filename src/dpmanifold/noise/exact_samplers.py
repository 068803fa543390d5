"""Which spaces have exact draws about a point, and which module makes them.

A class of spaces that is not registered here gets draws in doubles from laws about a point, and exact ones wherever
noise is added to a vector. Classes are looked up as they are: a subclass may have another geometry.
"""

from __future__ import annotations

from typing import Protocol

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds import SPD, Hyperbolic, KendallShapes, Manifold, Sphere
from dpmanifold.noise import exact_curved, exact_hadamard
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


SAMPLERS: dict[type[Manifold], ExactSampler] = {
    Sphere: exact_curved,
    KendallShapes: exact_curved,
    Hyperbolic: exact_hadamard,
    SPD: exact_hadamard,
}


def exact_sampler(space: Manifold) -> ExactSampler | None:
    """Return what draws exactly about points of a space; None where only doubles can be drawn.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> exact_sampler(Sphere(2)) is exact_curved, exact_sampler(Euclidean(2))
    (True, None)
    """
    return SAMPLERS.get(type(space))
