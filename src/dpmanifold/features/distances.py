"""The feature map that gives squared distances and their squares from any point (theory: features)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features.base import Block, Cut, FeatureMap, Moments, combined, of_length
from dpmanifold.features.maps import checked_weight, diameter_of_opposites, fourth_cuts, joint_cuts
from dpmanifold.linalg import outer_products

THIRD_WEIGHT = "third_power_weight"
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

    def blocks(self, dim: int) -> list[Block]:
        """Return coordinates, products, |v|^2, v |v|^2 and |v|^4, in this order."""
        square, third, fourth = (Fraction(weight) for weight in self._powers)
        return [
            Block(dim),
            Block.products(dim, self.products),
            Block(1, 2, square, (0.0, 1.0)),
            Block(dim, 3, third),
            Block(1, 4, fourth, (0.0, 1.0)),
        ]

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

    def rounding(self, dim: int) -> float:
        """Return d + 4 lengths, as for :class:`Lengths`: the fourth power is rounded most often."""
        return (dim + 4) * self.longest(dim)

    def cuts(self, x: FloatArray, dim: int) -> list[Cut]:
        """Return those of the mean and the second moment, and of (1, v, |v|^2) times itself, which all of it fills."""
        products, square, third, fourth = (float(root) for root in np.sqrt([self.products, *self._powers]))
        second, size = dim + dim * (dim + 1) // 2, len(x)
        cubes = np.arange(second + 1, second + 1 + dim)
        one = Moments.of_known(np.ones((1, 1)))
        inner = Moments.of_vecd(dim, dim, products).bordering(
            Moments.of_features(cubes[:, None], 1 / third), Moments.of_features([[size - 1]], 1 / fourth)
        )
        first = Moments.of_features(np.append(np.arange(dim), second)[None], 1.0)
        first.factors[0, -1] = 1 / square
        trace = combined(size, (slice(dim, 2 * dim), 1 / products), (second, -1 / square))
        return [
            *joint_cuts(x, dim, products),
            of_length("third power", x, slice(second + 1, second + 1 + dim), third),
            *(Cut("trace beside the squared length", sign * trace, 0.0) for sign in (1, -1)),
            *fourth_cuts(x, (second, square), (size - 1, fourth)),
            self._weighted(x, dim, second),
            one.bordering(first, inner).cut("powers of coordinates beside each other", x),
        ]

    @property
    def _powers(self) -> tuple[float, float, float]:
        return self.square, self.third, self.fourth

    def _weighted(self, x: FloatArray, dim: int, second: int) -> Cut:
        """Return that the averages of w, w v and w |v|^2, w = 1 - |v|^2, are those of a weight that is not negative.

        They are 1 less the mean square, the mean less the third power, and the mean square less the fourth power: a
        2 x 2 matrix of moments, along the difference in the middle.
        """
        a, k, f = (float(root) for root in np.sqrt(self._powers))
        square, fourth = float(x[second]) / a, float(x[-1]) / f
        left = x[:dim] - x[second + 1 : second + 1 + dim] / k
        along = float(np.linalg.norm(left))
        u, v = np.linalg.eigh(np.array([[1 - square, along], [along, square - fourth]]))[1][:, 0]
        direction = left / along if along > 0 else left
        combination = combined(
            len(x),
            (slice(0, dim), -2 * u * v * direction),
            (slice(second + 1, second + 1 + dim), 2 * u * v / k * direction),
            (second, (u * u - v * v) / a),
            (-1, v * v / f),
        )
        return Cut("powers of the length", combination, float(u * u), among=2 * dim + 2)
