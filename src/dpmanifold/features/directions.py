"""Directions, cut near zero: what a step towards the geometric median averages (theory: median)."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from dpmanifold._check import FloatArray, fraction
from dpmanifold.features.base import Block, FeatureMap
from dpmanifold.manifolds.vectors import vector_norm


class Directions(FeatureMap):
    """The direction of a vector, v/|v|, and v/cut where it is shorter than `cut`.

    No image is longer than 1, however long the vector is: a unit pulls with its direction, not with its distance.

    Parameters
    ----------
    cut : the length below which a vector counts in proportion to its own; above 0, at most 1

    Examples
    --------
    >>> Directions(0.5).of(np.array([[0.1, 0.0], [0.0, -0.8]]))
    array([[ 0.2,  0. ],
           [ 0. , -1. ]])
    >>> Directions(0.5).diameter(3)
    2.0
    """

    name, degree = "directions", 1

    def __init__(self, cut: float) -> None:
        self.cut = fraction(cut, "cut")

    def blocks(self, dim: int) -> list[Block]:
        """Return coordinates without units: a direction has none."""
        return [Block(dim, 0)]

    def of(self, v: FloatArray) -> FloatArray:
        """Return v over its length, or over the cut if that is longer."""
        return np.asarray(v / np.maximum(vector_norm(v), self.cut)[:, None])

    def diameter(self, dim: int) -> float:
        """Return 2."""
        return 2.0

    def rounding(self, dim: int) -> float:
        """Return d + 4: a length is rounded d + 2 times by half a spacing, and the quotient once."""
        return dim + 4.0


def slope_of_directions(dim: int, cut: float) -> float:
    """Return how fast the average direction falls as the centre moves by the median distance R, of normal data.

    It is R ((d - 1)/d E[1/|Y|; |Y| > cut R] + P(|Y| <= cut R)/(cut R)) for Y normal in d dimensions, |Y| with median R:
    1 in many dimensions. On a line only the second term is left.

    Parameters
    ----------
    dim : the dimension d
    cut : the length below which vectors count in proportion to their own, as a part of R

    Examples
    --------
    >>> [round(slope_of_directions(dim, 0.25), 3) for dim in (1, 2, 3, 6, 100)]
    [0.536, 0.737, 0.818, 0.906, 0.994]
    """
    half = dim / 2
    median = math.sqrt(2 * float(special.gammaincinv(half, 0.5)))
    square = (cut * median) ** 2 / 2
    found = float(special.gammainc(half, square)) / cut
    if dim > 1:
        inverse = math.exp(special.gammaln(half - 0.5) - special.gammaln(half)) / math.sqrt(2)
        found += median * (dim - 1) / dim * inverse * float(special.gammaincc(half - 0.5, square))
    return found
