"""What principal directions and the variances along them are made of (theory: pga)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.features.averages import products
from dpmanifold.features.base import Block, Cut, FeatureMap, Moments, combined, root_up
from dpmanifold.features.maps import WithProducts, checked_weight
from dpmanifold.linalg import outer_products, to_vecd


class Signs(WithProducts):
    """The spatial sign u = v/|v|, 0 at v = 0, and its products, (u, sqrt(weight) vecd(u u')).

    The length of v is left out: there is no radius in it, and a vector far away counts no more than one nearby.

    Parameters
    ----------
    weight : how much the products count, as in :class:`JointMoments`, whose farthest vectors are unit vectors

    Examples
    --------
    >>> Signs(1.0).of(np.array([[3e300, 4e300], [0.0, 0.0]])).round(3)
    array([[0.6  , 0.8  , 0.36 , 0.64 , 0.679],
           [0.   , 0.   , 0.   , 0.   , 0.   ]])
    >>> round(Signs(10.0).diameter(45), 6)
    4.695743
    """

    name, degree = "signs", 0

    def of(self, v: FloatArray) -> FloatArray:
        """Return directions and their weighted products, of finite vectors of any length."""
        v = np.ascontiguousarray(v)  # a sum along rows is taken in an order that depends on how they lie in memory
        with np.errstate(under="ignore"):
            largest = np.abs(v).max(axis=-1, keepdims=True)
            # First, so that no square is too large or too small: the largest entry is then 1 in size.
            near = v / np.where(largest > 0, largest, 1.0)
            length = np.sqrt((near * near).sum(axis=-1, keepdims=True))
            return super().of(near / np.where(length > 0, length, 1.0))

    def rounding(self, dim: int) -> float:
        """Return d + 12 lengths: a direction is too long by (d/2 + 4) spacings at most, its products by twice that."""
        return (dim + 12) * self.longest(dim)

    def units(self, dim: int, radius: float) -> FloatArray:
        """Return 1 for directions, one over the root of the weight for products: they have no unit."""
        return super().units(dim, 1.0)


class Squares(FeatureMap):
    """Squared coordinates along given directions, what is left of the squared length, and products of all these.

    With x = ((q_1 . v)^2, ..., (q_k . v)^2, the rest of |v|^2) the features are x, 1 - |v|^2, sqrt(weight) vecd(x x'):
    means and second moments of squares. Entries of x are not negative and add up to 1 at most, whatever the directions
    are: where rounding lets them exceed it, they are divided by their sum. What is missing to 1 costs nothing, and with
    it the noisy squares are known to add up to 1.

    Parameters
    ----------
    directions : orthonormal rows, (k, d)
    weight : how much the products count against the squares

    Examples
    --------
    >>> Squares(np.eye(3)[:1], 0.25).of(np.array([[0.6, 0.0, 0.0]])).round(4)
    array([[0.36  , 0.    , 0.64  , 0.0648, 0.    , 0.    ]])
    """

    name, degree = "squares", 4

    def __init__(self, directions: FloatArray, weight: float) -> None:
        self.directions, self.weight = directions, checked_weight(weight)

    @property
    def count(self) -> int:
        """How many numbers x has: one for each direction, and the rest."""
        return len(self.directions) + 1

    def blocks(self, dim: int) -> list[Block]:
        """Return squares with what is missing to 1, and their products."""
        return [Block(self.count + 1, 2), Block.products(self.count, self.weight, 4)]

    def of(self, v: FloatArray) -> FloatArray:
        """Return squares, what is missing to 1, and weighted products."""
        v = np.ascontiguousarray(v)
        along = products(v, self.directions)
        squares = along * along
        rest = (v * v).sum(axis=-1, keepdims=True) - squares.sum(axis=-1, keepdims=True)
        x = np.hstack([squares, np.maximum(rest, 0.0)])
        x = x / np.maximum(x.sum(axis=-1, keepdims=True), 1.0)
        missing = np.maximum(1.0 - x.sum(axis=-1, keepdims=True), 0.0)
        return np.hstack([x, missing, math.sqrt(self.weight) * outer_products(x)])

    def diameter(self, dim: int) -> float:
        """Return the root of 2 + 2l, which unit vectors along two directions reach; on a line that of 2 + l."""
        return root_up(2 + (1 if dim == 1 else 2) * Fraction(self.weight))

    def rounding(self, dim: int) -> float:
        """Return 3m + 14 lengths, m the entries of x, whose sum may be 1 + (m + 2) spacings; products are rounded."""
        return (3 * self.count + 14) * self.longest(dim)

    def limits(self, dim: int) -> tuple[FloatArray, FloatArray]:
        """Return 0 and 1 for squares and what is missing, 1/4 for products of two; all directions leave no rest."""
        squares, products = np.ones(self.count), np.full((self.count, self.count), 0.25)
        np.fill_diagonal(products, 1.0)
        if len(self.directions) == dim:
            squares[-1] = products[-1] = products[:, -1] = 0.0
        high = np.concatenate([squares, [1.0], math.sqrt(self.weight) * to_vecd(products)])
        return np.zeros(len(high)), high

    def cuts(self, x: FloatArray, dim: int) -> list[Cut]:
        """Return those of the sum of squares, which is 1 with what is missing, and of products beside squares."""
        count, size = self.count, len(x)
        together = combined(size, (slice(0, count + 1), 1.0))
        second = Moments.of_vecd(count, count + 1, math.sqrt(self.weight))
        one, side = Moments.of_known(np.ones((1, 1))), Moments.of_features(np.arange(count)[None], 1.0)
        return [
            *(Cut("sum of the squares", sign * together, float(sign)) for sign in (1, -1)),
            # The others add up to 1 at most, so a square times all of them is no more than that square.
            *(
                Cut(
                    f"products of square {i + 1}", combined(size, (second.places[i], second.factors[i]), (i, -1.0)), 0.0
                )
                for i in range(count)
            ),
            one.bordering(side, second).cut("squares beside their products", x),
        ]
