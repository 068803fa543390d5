"""What some spaces can say of themselves and others cannot: kinds of facts that :class:`Manifold` may offer.

A space that has nothing to say returns None, and whatever needs the fact is refused there, with a reason.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.areas import Area, closed_area, sinh_area
from dpmanifold.manifolds.vectors import log_sinc, log_sinhc


@dataclass(frozen=True)
class RankOne:
    """A space whose directions are all alike: what its volume density is, where it ends, and its law of cosines.

    J(t) = (sin u/u)^single (sin 2u/2u)^double with u = t/unit; with sinh for sin where `end` is infinite. Everything is
    stated, nothing is computed from something else: real projective spaces have the volume of a sphere and another end.

    Attributes
    ----------
    unit : the length of one radian
    end : how many half turns of a geodesic, pi units each, are shortest: 1 on spheres, 1/2 on projective spaces
    single, double : exponents; together d - 1
    triangle : the law of cosines; "sphere", "real" or "complex" (projective), "hyperbolic", or "" where none is known
    """

    unit: float
    end: float
    single: int
    double: int
    triangle: Literal["sphere", "real", "complex", "hyperbolic", ""]

    @property
    def reach(self) -> float:
        """The length at which geodesics meet again."""
        return self.unit * (math.pi * self.end)

    def log_volume(self, t: FloatArray) -> FloatArray:
        """Log of J at distance t, minus infinity from the end on."""
        u = t / self.unit
        if math.isinf(self.end):
            return np.asarray(self.single * log_sinhc(u) + self.double * log_sinhc(2 * u))
        with np.errstate(invalid="ignore"):
            inside = self.single * log_sinc(u)
            if self.double:
                inside = inside + self.double * log_sinc(2 * u)
        return np.where(t < self.reach, inside, -np.inf)

    def area(self) -> Area:
        """Area of geodesic spheres."""
        if math.isinf(self.end):
            return sinh_area(self.single + self.double + 1, self.single, 1 / self.unit)
        return closed_area(self.single + self.double + 1, self.double, self.unit, self.reach)


class StoredNumbers(ABC):
    """The numbers that a point is stored as, to which the papers' extrinsic baselines add noise.

    Attributes
    ----------
    size : how many of them are free
    """

    size: int

    @abstractmethod
    def refusal(self, center: Array) -> str | None:
        """Return why the baselines cannot be used in a ball about this centre, or None."""

    @abstractmethod
    def stretch(self, radius: float) -> float:
        """Bound how far numbers move, in terms of the distance that their points move, in a ball about the origin."""

    @abstractmethod
    def from_frame(self, point: Array) -> Array:
        """Return the numbers of a point of a ball's frame, about the space's origin."""

    @abstractmethod
    def with_noise(self, stored: Array, noise: FloatArray) -> Array:
        """Add noise (n, size) to the numbers of one point; they need not be a point's any more."""

    @abstractmethod
    def carried(self, center: Array, stored: Array) -> Array:
        """Apply the linear map by which the isometry from the origin to the centre acts on numbers."""

    @abstractmethod
    def away(self, center: Array, stored: Array, radius: float) -> tuple[float, float, float]:
        """Return how far numbers are from the centre's, how far those of the ball's points are, and the rounding.

        All three are taken after the map is undone: noise is as long there as it was drawn.
        """
