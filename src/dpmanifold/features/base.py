"""What a feature map is: numbers made of a unit's coordinates, no two of which lie far apart."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.features.limits import Cut, in_vecd, of_length
from dpmanifold.features.polynomials import root_up


class Block(NamedTuple):
    """Features that stand side by side: each is a number times the root of one weight.

    Attributes
    ----------
    size : how many
    power : of the radius, which they grow with
    weight : what their squares count together, at most
    ends : between which the numbers lie; None for the products of two coordinates, as vecd has them
    """

    size: int
    power: int = 1
    weight: Fraction = Fraction(1)
    ends: tuple[float, float] | None = (-1.0, 1.0)

    @staticmethod
    def products(dim: int, weight: float | Fraction, power: int = 2) -> Block:
        """Return the products of `dim` coordinates."""
        return Block(dim * (dim + 1) // 2, power, Fraction(weight), None)

    def limits(self, dim: int) -> tuple[FloatArray, FloatArray]:
        """Return the ends between which each lies, (size,) each, where coordinates are `dim`."""
        root = math.sqrt(self.weight)
        if self.ends is None:
            return in_vecd(dim, root)
        return np.full(self.size, root * self.ends[0]), np.full(self.size, root * self.ends[1])


class FeatureMap(ABC):
    """A map phi of vectors of length at most 1 whose images lie within a proven distance of each other.

    Vectors are the units' coordinates at the ball's centre over its radius. The average of phi over the units is
    released with noise for the `diameter`; see theory: features. A map states its blocks, from which its size, length,
    units and limits follow, and its diameter. Every map satisfies the pair search of the tests.

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
    def blocks(self, dim: int) -> list[Block]:
        """Return what it makes of a vector of `dim`, block by block."""

    def size(self, dim: int) -> int:
        """Return how many numbers it makes of a vector of `dim`."""
        return sum(block.size for block in self.blocks(dim))

    @abstractmethod
    def of(self, v: FloatArray) -> FloatArray:
        """Return the features of vectors (b, dim) of length at most 1, (b, size): each row by itself, bit for bit."""

    @abstractmethod
    def diameter(self, dim: int) -> float:
        """Return a proven bound on |phi(v) - phi(w)| for |v|, |w| <= 1, rounded up: in exact arithmetic."""

    def longest(self, dim: int) -> float:
        """Return a bound on |phi(v)| for |v| <= 1, rounded up: the root of all weights."""
        return root_up(sum((block.weight for block in self.blocks(dim)), Fraction(0)))

    @abstractmethod
    def rounding(self, dim: int) -> float:
        """Return a bound on what rounding moves phi(v) by, |v| <= 1 but for rounding, in spacings of doubles at 1."""

    def units(self, dim: int, radius: float) -> FloatArray:
        """Return what each feature is multiplied by to be in the data's own units, (size,), given the radius."""
        parts = [np.full(block.size, radius**block.power / math.sqrt(block.weight)) for block in self.blocks(dim)]
        return np.concatenate(parts)

    def limits(self, dim: int) -> tuple[FloatArray, FloatArray]:
        """Return the ends between which each feature lies, (size,) each."""
        low, high = zip(*(block.limits(dim) for block in self.blocks(dim)), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def cuts(self, x: FloatArray, dim: int) -> list[Cut]:
        """Return what averages satisfy, near numbers (size,) that were drawn; their length, unless more is known."""
        return [of_length("length", x, most=self.longest(dim))]
