"""Features of vectors that have a class: sums and counts by class and one second moment of all, at nearly one price."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpmanifold._check import FloatArray, positive_int
from dpmanifold.features.base import Block, Cut, FeatureMap, Moments, combined, of_matrix, root_up
from dpmanifold.features.maps import JointMoments, checked_weight, joint_cuts
from dpmanifold.linalg import outer_products

COUNT_WEIGHT = "count_weight"
"""What releases state the weight of a class's count as; 0 where labels are public and nothing is counted."""


class ClassMoments(FeatureMap):
    """Coordinates and a one at the place of the class, and products of the coordinates: (e_a (x) (v, b), sqrt(l) vv').

    Unlike other maps this one takes vectors with one more number, that of their class: rows (v, a) with |v| <= 1.
    Those of one class are as far apart as joint moments, those of two classes at most sqrt(2 + 2l + 2 b^2): up to the b
    for which this is no more, the class costs nothing (theory: lda).

    Parameters
    ----------
    classes : how many there are
    weight : l, how much products count
    count : b^2, how much the ones count; 0 leaves them out, and then the bound is for vectors of one class alone

    Examples
    --------
    >>> found = ClassMoments(2, 0.5, 0.5)
    >>> found.diameter(3), found.size(3)
    (2.0, 14)
    >>> found.of(np.array([[0.6, 0.8, 1.0]])).round(3)
    array([[0.   , 0.   , 0.   , 0.6  , 0.8  , 0.707, 0.255, 0.453, 0.48 ]])
    """

    name, degree = "class moments", 2

    def __init__(self, classes: int = 2, weight: float = 1.0, count: float = 0.25) -> None:
        self.classes = positive_int(classes, "classes")
        self._joint = JointMoments(weight)
        self.weight, self.count = self._joint.weight, 0.0 if count == 0 else checked_weight(count, "count")

    def block(self, dim: int) -> int:
        """Return how many numbers each class has: coordinates, and the one where it counts."""
        return dim + (self.count > 0)

    def blocks(self, dim: int) -> list[Block]:
        """Return coordinates, and a one where it counts, of every class, and the products."""
        count = [Block(1, 0, Fraction(self.count), (0.0, 1.0))] if self.count else []
        return [*self.classes * [Block(dim), *count], Block.products(dim, self.weight)]

    def of(self, v: FloatArray) -> FloatArray:
        """Return the features of rows (v, number of the class), (b, dim + 1): each row by itself."""
        v, number = v[:, :-1], v[:, -1]
        length, dim = v.shape
        own = v if self.count == 0 else np.hstack([v, np.full((length, 1), math.sqrt(self.count))])
        placed = np.zeros((length, self.classes, self.block(dim)))
        for place in range(self.classes):
            there = number == place
            placed[there, place] = own[there]
        return np.hstack([placed.reshape(length, -1), math.sqrt(self.weight) * outer_products(v)])

    def diameter(self, dim: int) -> float:
        """Return the larger of the distances within a class and between two; the former if nothing is counted."""
        within, weight = self._joint.diameter(dim), Fraction(self.weight)
        if self.count == 0:
            return within
        # On a line no two vectors are at right angles: both at the ends, or one of them at 0.
        apart = max(Fraction(2), 1 + weight) if dim == 1 else 2 + 2 * weight
        return max(within, root_up(apart + 2 * Fraction(self.count)))

    def longest(self, dim: int) -> float:
        """Return the root of 1 + l + b^2: a vector has one class."""
        return root_up(1 + Fraction(self.weight) + Fraction(self.count))

    def rounding(self, dim: int) -> float:
        """Return 5 lengths: each product is rounded five times, and twice more as a unit's share in a class is."""
        return 5 * self.longest(dim)

    def cuts(self, x: FloatArray, dim: int) -> list[Cut]:
        """Return those of counts, of sums beside counts, and of the second moment beside both."""
        if self.count == 0:
            return self._of_sums(x, dim)
        places, total = self._places(dim)[:, -1], math.sqrt(self.count)
        together = combined(len(x), (places, 1.0))
        return [
            *(Cut("sum of the counts", sign * together, sign * total) for sign in (1, -1)),
            *self._beside(x, dim, Moments.of_diagonal(places, 1 / total)),
        ]

    def cuts_beside(self, counts: FloatArray, x: FloatArray, dim: int) -> list[Cut]:
        """Return what sums and the second moment satisfy where classes have these public shares of the units."""
        return self._beside(x, dim, Moments.of_known(np.diag(counts)))

    def _of_sums(self, x: FloatArray, dim: int) -> list[Cut]:
        """Return what is known of sums without counts: of all together, and of the mean that they add up to."""
        end = self.classes * dim
        sums = x[:end].reshape(self.classes, dim)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        along = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0).ravel()
        found = joint_cuts(np.concatenate([sums.sum(axis=0), x[end:]]), dim, math.sqrt(self.weight))
        return [
            Cut("sums of all classes", combined(len(x), (slice(0, end), along)), 1.0, end),
            *(
                cut._replace(
                    combination=np.concatenate([np.tile(cut.combination[:dim], self.classes), cut.combination[dim:]])
                )
                for cut in found
            ),
        ]

    def _beside(self, x: FloatArray, dim: int, counts: Moments) -> list[Cut]:
        """Return those of every sum beside its count, and of (e_a, v) times itself, which all of it fills."""
        places, root = self._places(dim)[:, :dim], math.sqrt(self.weight)
        end = self.classes * self.block(dim)
        sides = Moments.of_features(places, 1.0)
        return [
            *(self._of_class(x, number, row, counts) for number, row in enumerate(places)),
            *of_matrix("second moment", x, slice(end, len(x)), root),
            counts.bordering(sides, Moments.of_vecd(dim, end, root)).cut("sums and counts beside the second moment", x),
        ]

    @staticmethod
    def _of_class(x: FloatArray, number: int, row: npt.NDArray[np.int64], counts: Moments) -> Cut:
        """Return that the sum of a class is no longer than its count."""
        known, place, factor = (part[number, number] for part in counts)
        length = float(np.linalg.norm(x[row]))
        along = combined(len(x), (row, x[row] / length if length > 0 else 0.0))
        if place >= 0:
            along[place] = -factor
        return Cut(f"sum of class {number + 1}", along, float(known), len(row) + (place >= 0))

    def _places(self, dim: int) -> npt.NDArray[np.int64]:
        """Return where the numbers of each class stand, (classes, block)."""
        return np.arange(self.classes * self.block(dim)).reshape(self.classes, -1)
