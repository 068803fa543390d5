"""What a feature map is: numbers made of a unit's coordinates, no two of which lie far apart."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.features.limits import Cut, of_length


class FeatureMap(ABC):
    """A map phi of vectors of length at most 1 whose images lie within a proven distance of each other.

    Vectors are the units' coordinates at the ball's centre over its radius. The average of phi over the units is
    released with noise for the `diameter`; see theory: features. Every map satisfies the pair search of the tests.

    Attributes
    ----------
    name : in words
    degree : phi(t v) is made of t, t^2, ... of phi(v), up to this power

    Examples
    --------
    >>> from dpmanifold.features import FEATURES
    >>> {name: (found.size(3), round(found.diameter(3), 2)) for name, found in FEATURES.items()}
    {'tangent': (3, 2.0), 'joint moments': (9, 2.0), 'lengths': (4, 2.0), 'distances': (14, 2.58), ...}
    """

    name: str
    degree: int

    @abstractmethod
    def size(self, dim: int) -> int:
        """Return how many numbers it makes of a vector of `dim`."""

    @abstractmethod
    def of(self, v: FloatArray) -> FloatArray:
        """Return the features of vectors (b, dim) of length at most 1, (b, size): each row by itself, bit for bit."""

    @abstractmethod
    def diameter(self, dim: int) -> float:
        """Return a proven bound on |phi(v) - phi(w)| for |v|, |w| <= 1, rounded up: in exact arithmetic."""

    @abstractmethod
    def longest(self, dim: int) -> float:
        """Return a bound on |phi(v)| for |v| <= 1, rounded up."""

    @abstractmethod
    def rounding(self, dim: int) -> float:
        """Return a bound on what rounding moves phi(v) by, |v| <= 1 but for rounding, in spacings of doubles at 1."""

    @abstractmethod
    def units(self, dim: int, radius: float) -> FloatArray:
        """Return what each feature is multiplied by to be in the data's own units, (size,), given the radius."""

    def limits(self, dim: int) -> tuple[FloatArray, FloatArray]:
        """Return the ends between which each feature lies, (size,) each; as far as `longest` says, unless known."""
        high = np.full(self.size(dim), self.longest(dim))
        return -high, high

    def cuts(self, x: FloatArray, dim: int) -> list[Cut]:
        """Return what averages satisfy, near numbers (size,) that were drawn; their length, unless more is known."""
        return [of_length("length", x, most=self.longest(dim))]
