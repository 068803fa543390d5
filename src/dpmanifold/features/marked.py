"""The feature map of regressions: residuals, residuals times a covariate, their products, and the covariate itself."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.features.base import Block, Cut, FeatureMap, combined, of_length
from dpmanifold.features.maps import joint_cuts
from dpmanifold.linalg import outer_products, to_vecd

# All of them free: no larger, and the diameter would grow (theory: regression).
_PRODUCTS = Fraction(1, 2)
_MARK = Fraction(1, 16)
_SQUARE = Fraction(8, 5)
ROOT3 = math.sqrt(3.0)


class MarkedMoments(FeatureMap):
    """(z, sqrt(1/2) vecd(z z'), t/4, sqrt(8/5) t^2) with z = (v, sqrt(3) t v)/2: a regression at the price of a mean.

    v is a record's residual over a radius, of length at most 1, and t its covariate, from -1 to 1. A unit with several
    records has the averages of z, t and t^2 in their place. Two units' features are no farther apart than 2, whether
    or not they have the same covariate (theory: regression).

    Examples
    --------
    >>> MarkedMoments().size(3), MarkedMoments().diameter(3)
    (29, 2.0)
    >>> scores = MarkedMoments.scores(np.array([[1.0, 0.0]]), np.array([1.0]))
    >>> scores.round(3)
    array([[0.5  , 0.   , 0.866, 0.   , 1.   , 1.   ]])
    >>> MarkedMoments().of(scores).shape
    (1, 16)
    """

    name, degree = "marked moments", 2

    @staticmethod
    def scores(v: FloatArray, t: FloatArray) -> FloatArray:
        """Return (z, t, t^2) of records, (b, 2 dim + 2), given residuals (b, dim) and covariates (b,)."""
        mark = t[:, None]
        return np.hstack([v / 2, (ROOT3 / 2) * mark * v, mark, mark * mark])

    def blocks(self, dim: int) -> list[Block]:
        """Return scores, their products, t and t^2."""
        return [Block(2 * dim), Block.products(2 * dim, _PRODUCTS), Block(1, 0, _MARK), Block(1, 0, _SQUARE)]

    def of(self, v: FloatArray) -> FloatArray:
        """Return the features of units' averages of :meth:`scores`, (b, 2 dim + 2)."""
        z, marks = v[:, :-2], v[:, -2:]
        return np.hstack([z, math.sqrt(_PRODUCTS) * outer_products(z), marks * np.sqrt([float(_MARK), float(_SQUARE)])])

    def diameter(self, dim: int) -> float:
        """Return 2."""
        return 2.0

    def rounding(self, dim: int) -> float:
        """Return 12 lengths: an average of scores is off by at most four spacings, a product by five more."""
        return 12 * self.longest(dim)

    def units(self, dim: int, radius: float) -> FloatArray:
        """Return what makes (v, sqrt(3) t v), their products, t and t^2 of the features."""
        return super().units(dim, 2 * radius)

    def limits(self, dim: int) -> tuple[FloatArray, FloatArray]:
        """Return what scores, their products, t and t^2 can be.

        |v|/2 is at most 1/2. The product of two different coordinates, averaged with t or without, is at most 1/2, as
        the sum of their squares is at most 1.
        """
        own = (np.ones((dim, dim)) + np.eye(dim)) / 2
        most: FloatArray = np.kron(np.array([[1.0, ROOT3], [ROOT3, 3.0]]) / 4, own).astype(np.float64)
        z, high = np.sqrt(np.diag(most)), math.sqrt(_PRODUCTS) * to_vecd(most)
        low = np.concatenate([np.zeros(2 * dim), -high[2 * dim :]])
        mark, square = math.sqrt(_MARK), math.sqrt(_SQUARE)
        return np.concatenate([-z, low, [-mark, 0.0]]), np.concatenate([z, high, [mark, square]])

    def cuts(self, x: FloatArray, dim: int) -> list[Cut]:
        """Return those of scores and their products, of t beside t^2, and of products beside t^2."""
        mark, square, root = math.sqrt(_MARK), math.sqrt(_SQUARE), math.sqrt(_PRODUCTS)
        size, t = len(x), float(x[-2]) / mark
        own, times = slice(2 * dim, 3 * dim), slice(3 * dim, 4 * dim)  # the diagonal of the products
        return [
            *joint_cuts(x, 2 * dim, root),
            of_length("residuals", x, slice(0, dim), 0.5),
            of_length("residuals times the covariate", x, slice(dim, 2 * dim), ROOT3 / 2),
            Cut("products of residuals", combined(size, (own, 1 / root)), 0.25),
            # |avg(t v)|^2 is at most avg(t^2), |v| being at most 1.
            Cut(
                "products of residuals times the covariate",
                combined(size, (times, 1 / root), (-1, -0.75 / square)),
                0.0,
            ),
            Cut("covariate beside its square", combined(size, (-2, 2 * t / mark), (-1, -1 / square)), t * t, 2),
        ]
