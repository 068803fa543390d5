"""The feature map that gives squared distances and their squares from any point (theory: features)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features.base import FeatureMap
from dpmanifold.features.maps import checked_weight, diameter_of_opposites
from dpmanifold.features.polynomials import root_up
from dpmanifold.frechet import outer_products

THIRD_WEIGHT = "weight of the third power"
"""What releases state the weight of v |v|^2 in :class:`Distances` as."""

DISTANCE_WEIGHTS = (3.5, 0.25, 0.5, 1.25)
"""Of |v|^2, v v', v |v|^2 and |v|^4: for short intervals, the mean at the centre or 0.3 radii off it (theory 6)."""
# Beyond, two vectors that are not opposite may be the farthest apart.
_MOST_PRODUCTS = 0.5


class Distances(FeatureMap):
    """Coordinates, their products and powers of their length: the moments of |v - p|^2, for every p.

    |v - p|^2 and its square are linear in v, v v', |v|^2, v |v|^2 and |v|^4. These are the features, each times the
    root of its weight; |v|^2 is there for its own sake, as the noise on a trace of products grows with the dimension.

    Parameters
    ----------
    square, products, third, fourth : weights of |v|^2, vecd(v v'), v |v|^2 and |v|^4; that of products at most 1/2

    Examples
    --------
    >>> Distances().size(3), round(Distances().diameter(3), 4)
    (14, 2.5804)
    """

    name, degree = "distances", 4

    def __init__(
        self,
        square: float = DISTANCE_WEIGHTS[0],
        products: float = DISTANCE_WEIGHTS[1],
        third: float = DISTANCE_WEIGHTS[2],
        fourth: float = DISTANCE_WEIGHTS[3],
    ) -> None:
        self.square, self.products = checked_weight(square, "square"), checked_weight(products, "products")
        self.third, self.fourth = checked_weight(third, "third"), checked_weight(fourth, "fourth")
        if self.products > _MOST_PRODUCTS:
            raise InvalidArgumentError(
                f"products must be at most {_MOST_PRODUCTS}, got {self.products:g}: the diameter is proven up to there."
            )

    def size(self, dim: int) -> int:
        """Return 2d + d(d+1)/2 + 2."""
        return 2 * dim + dim * (dim + 1) // 2 + 2

    def of(self, v: FloatArray) -> FloatArray:
        """Return coordinates, weighted products, and weighted |v|^2, v |v|^2 and |v|^4, in this order."""
        square = (v * v).sum(axis=-1, keepdims=True)
        return np.hstack(
            [
                v,
                math.sqrt(self.products) * outer_products(v),
                math.sqrt(self.square) * square,
                math.sqrt(self.third) * (v * square),
                math.sqrt(self.fourth) * (square * square),
            ]
        )

    def diameter(self, dim: int) -> float:
        """Return that of opposite vectors, the root of the largest value of a polynomial on [0, 1]."""
        return diameter_of_opposites(Fraction(self.square) + Fraction(self.products), self.third, self.fourth)

    def longest(self, dim: int) -> float:
        """Return the root of 1 and all weights."""
        weights = (self.square, self.products, self.third, self.fourth)
        return root_up(1 + sum((Fraction(weight) for weight in weights), Fraction(0)))

    def rounding(self, dim: int) -> float:
        """Return d + 4 lengths, as for :class:`Lengths`: the fourth power is rounded most often."""
        return (dim + 4) * self.longest(dim)

    def units(self, dim: int, radius: float) -> FloatArray:
        """Return the radius and its powers, over the roots of the weights."""
        powers = [
            np.full(dim, radius),
            np.full(dim * (dim + 1) // 2, radius**2 / math.sqrt(self.products)),
            np.full(1, radius**2 / math.sqrt(self.square)),
            np.full(dim, radius**3 / math.sqrt(self.third)),
            np.full(1, radius**4 / math.sqrt(self.fourth)),
        ]
        return np.concatenate(powers)
