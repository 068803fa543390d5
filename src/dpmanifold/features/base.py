"""What a feature map is: numbers made of a unit's coordinates, no two of which lie far apart; and what averages can be.

Each unit's coordinates at the center are clipped, mapped by themselves, and added exactly.

Averages are known by ranges of single numbers, and by inequalities between blocks of them. Every inequality is linear:
some combination a of the features is at most h for every unit, and so for every average. Noise Z moves a combination by
a . Z. If a was fixed in advance that is one number, as long as a times one coordinate of the noise; if a was chosen
with a view of what was drawn it is at most |a| times the length of the noise on the features that a was chosen among.
`verify` holds what was drawn against both (theory: features).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.linalg import from_vecd, to_vecd
from dpmanifold.manifolds.vectors import EPS, shorten
from dpmanifold.sensitivity import Sensitivity

# The product of two coordinates of a vector of length 1 is at most 1/2 in size; vecd has it times the root of 2.
_OFF_DIAGONAL = np.sqrt(0.5)


class Cut(NamedTuple):
    """An inequality that every average satisfies.

    Attributes
    ----------
    what : is too large if it does not hold, in words
    combination : a, (size,)
    most : h, which a . x is not above if x is an average
    among : how many features a was chosen among, looking at what was drawn; 1 if it was fixed in advance
    rows : of a combination w'Sw of the entries of a matrix with so many rows, w a unit vector; else 0
    """

    what: str
    combination: FloatArray
    most: float
    among: int = 1
    rows: int = 0

    def over(self, x: FloatArray) -> float:
        """Return by how much numbers do not satisfy it; not above 0 if they do."""
        return float(self.combination @ x) - self.most


def combined(size: int, *parts: tuple[Any, npt.ArrayLike]) -> FloatArray:
    """Return a combination of `size` features, given places and what the features there count.

    Examples
    --------
    >>> combined(4, (0, 1.0), ([2, 3], [5.0, 6.0]))
    array([1., 0., 5., 6.])
    """
    found = np.zeros(size)
    for places, counts in parts:
        found[places] = counts
    return found


def of_length(what: str, x: FloatArray, places: slice = slice(None), most: float = 1.0) -> Cut:
    """Return that a part of the features is a vector of at most a length, along what was drawn of it.

    Examples
    --------
    >>> cut = of_length("mean", np.array([3.0, 4.0, 9.0]), slice(0, 2))
    >>> cut.combination, cut.most
    (array([0.6, 0.8, 0. ]), 1.0)
    """
    part = x[places]
    return Cut(what, combined(len(x), (places, _direction(part))), most, among=len(part))


def of_matrix(what: str, x: FloatArray, places: slice, root: float = 1.0, most: float = 1.0) -> list[Cut]:
    """Return that a part of the features is vecd of averages of v v' times a root, |v|^2 at most `most`.

    Such a matrix has no negative eigenvalue and at most that trace: along the nearest one, and by itself.

    Examples
    --------
    >>> drawn = to_vecd(np.diag([0.5, -0.2]))
    >>> [(cut.what, round(cut.over(drawn), 3)) for cut in of_matrix("M", drawn, slice(0, 3))]
    [('M', 0.2), ('trace of the M', -0.7), ('smallest eigenvalue of the M', 0.2)]
    """
    values, vectors = np.linalg.eigh(from_vecd(x[places]) / root)
    rows, size = len(values), len(x)
    entries = rows * (rows + 1) // 2
    nearest = _nearest(values, most)
    away = to_vecd((vectors * _direction(values - nearest)) @ vectors.T)
    least = to_vecd(np.outer(vectors[:, 0], vectors[:, 0]))
    diagonal = np.concatenate([np.ones(rows), np.zeros(entries - rows)])
    return [
        Cut(what, combined(size, (places, away)), root * float(nearest @ _direction(values - nearest)), entries),
        Cut(f"trace of the {what}", combined(size, (places, diagonal)), root * most),
        Cut(f"smallest eigenvalue of the {what}", combined(size, (places, -least)), 0.0, entries, rows),
    ]


class Moments(NamedTuple):
    """A matrix of moments, the average of y y': each entry is a known number, or a feature times a number.

    Attributes
    ----------
    known : (m, m), where no feature stands
    places : (m, m), which feature stands there; -1 for none
    factors : (m, m), what it is multiplied by
    """

    known: FloatArray
    places: npt.NDArray[np.int64]
    factors: FloatArray

    @staticmethod
    def of_vecd(dim: int, start: int, root: float) -> Moments:
        """Return the matrix whose vecd times a root are the features from `start` on.

        Examples
        --------
        >>> Moments.of_vecd(2, 4, 1.0).places
        array([[4, 6],
               [6, 5]])
        """
        entries = dim * (dim + 1) // 2
        order = from_vecd(np.arange(start, start + entries, dtype=np.float64) * _once(dim))
        return Moments(np.zeros((dim, dim)), np.rint(order).astype(np.int64), from_vecd(np.ones(entries)) / root)

    @staticmethod
    def of_features(places: npt.ArrayLike, factor: float) -> Moments:
        """Return a matrix, or a row of it, that features fill in the given order.

        Examples
        --------
        >>> Moments.of_features([[0, 1]], 0.5).factors
        array([[0.5, 0.5]])
        """
        found = np.asarray(places)
        return Moments(np.zeros(found.shape), found, np.full(found.shape, factor))

    @staticmethod
    def of_diagonal(places: npt.NDArray[np.int64], factor: float) -> Moments:
        """Return a diagonal matrix that features fill in the given order.

        Examples
        --------
        >>> Moments.of_diagonal(np.array([0, 3]), 1.0).places
        array([[ 0, -1],
               [-1,  3]])
        """
        there = np.eye(len(places), dtype=bool)
        return Moments(np.zeros(there.shape), np.where(there, places, -1), np.where(there, factor, 0.0))

    @staticmethod
    def of_known(known: FloatArray) -> Moments:
        """Return a matrix that is known.

        Examples
        --------
        >>> Moments.of_known(np.ones((1, 1))).places
        array([[-1]])
        """
        return Moments(known, np.full(known.shape, -1), np.zeros(known.shape))

    def bordering(self, side: Moments, block: Moments) -> Moments:
        """Return [[self, side], [side', block]].

        Examples
        --------
        >>> one = Moments.of_known(np.ones((1, 1)))
        >>> one.bordering(Moments.of_features([[0, 1]], 1.0), Moments.of_vecd(2, 2, 1.0)).places
        array([[-1,  0,  1],
               [ 0,  2,  4],
               [ 1,  4,  3]])
        """
        return Moments(*(np.block([[a, b], [b.T, c]]) for a, b, c in zip(self, side, block, strict=True)))

    def cut(self, what: str, x: FloatArray) -> Cut:
        """Return that it has no negative eigenvalue, along the smallest as it was drawn.

        Examples
        --------
        >>> one = Moments.of_known(np.ones((1, 1)))
        >>> both = one.bordering(Moments.of_features([[0]], 1.0), Moments.of_features([[1]], 1.0))
        >>> drawn = np.array([0.9, 0.5])  # no number has a mean of 0.9 and a mean square of 0.5
        >>> round(both.cut("mean beside the square", drawn).over(drawn), 3)
        0.184
        """
        there = self.places >= 0
        u = np.linalg.eigh(np.where(there, x[self.places] * self.factors, self.known))[1][:, 0]
        found = np.zeros(len(x))
        np.subtract.at(found, self.places[there], (np.outer(u, u) * self.factors)[there])
        return Cut(what, found, float(u @ self.known @ u), among=int(np.count_nonzero(found)))


def in_vecd(dim: int, root: float = 1.0, most: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Return the ends between which the numbers of vecd(v v') times a root lie, |v|^2 at most `most`.

    Examples
    --------
    >>> low, high = in_vecd(2)
    >>> low.round(3), high.round(3)
    (array([ 0.   ,  0.   , -0.707]), array([1.   , 1.   , 0.707]))
    """
    off = np.full(dim * (dim - 1) // 2, _OFF_DIAGONAL)
    high = root * most * np.concatenate([np.ones(dim), off])
    return np.concatenate([np.zeros(dim), -high[dim:]]), high


def _once(dim: int) -> FloatArray:
    """Return what vecd multiplies entries with, undone: 1 on the diagonal, the root of 2 beside it."""
    return np.concatenate([np.ones(dim), np.full(dim * (dim - 1) // 2, 1 / _OFF_DIAGONAL)])


def _direction(v: FloatArray) -> FloatArray:
    """Return a vector of length 1 along another, 0 if that is 0."""
    length = float(np.linalg.norm(v))
    return np.asarray(v / length if length > 0 else v)


def _nearest(values: FloatArray, most: float) -> FloatArray:
    """Return the nearest numbers that are not negative and add up to `most` or less."""
    found: FloatArray = np.maximum(values, 0.0)
    if found.sum() <= most:
        return found
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - most) / np.arange(1, len(falling) + 1)
    return np.asarray(np.maximum(values - over[falling > over][-1], 0.0))


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


# -------------------------------------------------------------------- the largest value of a polynomial


# A bound is at most this share above the largest value.
_SLACK = Fraction(1, 2**45)


def largest_on_unit_interval(coefficients: Sequence[Fraction]) -> Fraction:
    """Bound a polynomial on [0, 1] from above, given its coefficients from the constant one on (theory: features).

    In Bernstein's basis a polynomial lies below the largest of its coefficients, the first and the last of which are
    its values at the ends. Intervals are halved until none of them rises above the largest value seen by more than a
    share of 2^-45. Fractions throughout: nothing is rounded. Where the maximum is at an end and the polynomial is
    monotone near it, the bound is the maximum itself.

    Parameters
    ----------
    coefficients : at least one; the polynomial's largest value must be above 0

    Examples
    --------
    >>> largest_on_unit_interval([Fraction(0), Fraction(1)])
    Fraction(1, 1)
    >>> float(largest_on_unit_interval([Fraction(0), Fraction(1), Fraction(-1)]))
    0.25
    """
    degree = len(coefficients) - 1
    bernstein = [
        sum((Fraction(math.comb(j, i), math.comb(degree, i)) * coefficients[i] for i in range(j + 1)), Fraction(0))
        for j in range(degree + 1)
    ]
    pieces, highest = [bernstein], max(bernstein[0], bernstein[-1])
    bound = highest
    while pieces:
        piece = pieces.pop()
        highest = max(highest, piece[0], piece[-1])
        if max(piece) <= highest * (1 + _SLACK):
            bound = max(bound, max(piece))
        else:
            pieces += _halves(piece)
    return bound


def _halves(piece: list[Fraction]) -> list[list[Fraction]]:
    """Return Bernstein's coefficients on both halves of an interval, by de Casteljau's triangle."""
    left, right, row = [piece[0]], [piece[-1]], piece
    while len(row) > 1:
        row = [(a + b) / 2 for a, b in itertools.pairwise(row)]
        left.append(row[0])
        right.append(row[-1])
    return [left, right[::-1]]


def root_up(square: Fraction) -> float:
    """Return a double that is at least the square root of a fraction, and no farther above it than two roundings.

    Examples
    --------
    >>> root_up(Fraction(4)), Fraction(root_up(Fraction(3))) ** 2 >= 3
    (2.0, True)
    """
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


# -------------------------------------------------------------------- averages of features


PROOF = "features"


def average(points: UnitPoints, features: FeatureMap) -> FloatArray:
    """Return the average of the units' features, (size,), in one pass over wherever they lie. NOT PRIVATE.

    Parameters
    ----------
    points : one point per unit, in a ball's frame
    features : the map of their coordinates

    Examples
    --------
    >>> from dpmanifold.features import JointMoments
    >>> from dpmanifold.manifolds import Euclidean
    >>> points = UnitPoints.of(np.array([[1.0, 0.0], [0.0, 2.0]]), Ball(Euclidean(2), [0.0, 0.0], 2.0))
    >>> average(points, JointMoments(0.25))
    array([0.25  , 0.5   , 0.0625, 0.25  , 0.    ])
    """
    ball = points.ball
    most = features.longest(ball.frame.dim)
    # Rounding may carry an entry beyond the bound by a few units in its last place: no harm is done by cutting it.
    return points.mean_of(lambda block: features.of(coordinates(block, ball)), most)


def sensitivity_of(features: FeatureMap, dim: int, n: int, statistic: str = "") -> Sensitivity:
    """Bound how far one of n units moves the computed average: the diameter over n, and rounding (theory: features).

    Parameters
    ----------
    features : the map
    dim : dimension of the space
    n : number of units
    statistic : what the bound says that it is of; the map's name if left out

    Examples
    --------
    >>> from dpmanifold.features import JointMoments
    >>> round(sensitivity_of(JointMoments(0.5), 3, 100).value, 9)
    0.02
    """
    apart = computed_diameter(features, dim)
    return sensitivity.of_average(features.longest(dim), n, statistic or features.name, PROOF, diameter=apart)


def computed_diameter(features: FeatureMap, dim: int) -> float:
    """Bound the distance between the computed features of two units: the diameter, and what rounding adds to it.

    Examples
    --------
    >>> from dpmanifold.features import Tangent
    >>> 2.0 < computed_diameter(Tangent(), 3) < 2.0 + 1e-13
    True
    """
    # Clipped vectors are longer than 1 by at most this share; features grow by no more than the power of their degree.
    stretch = (1 + (dim + 8) * EPS) ** features.degree
    return (features.diameter(dim) * stretch + 2 * features.rounding(dim) * EPS) * (1 + 4 * EPS)


def coordinates(block: Array, ball: Ball) -> FloatArray:
    """Return the units' coordinates at the centre over the radius, none longer than 1: each by itself. Never raises.

    Parameters
    ----------
    block : points (b, *frame.shape) of the ball's frame
    ball : in whose frame they lie

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> ball = Ball(Euclidean(2), [0.0, 0.0], 2.0)
    >>> coordinates(np.array([[1.0, 0.0], [0.0, -6.0]]), ball)
    array([[ 0.5,  0. ],
           [ 0. , -1. ]])
    """
    v = logarithms(block, ball)
    with np.errstate(all="ignore"):
        return shorten(np.nan_to_num(v / ball.radius), 1.0)


def logarithms(block: Array, ball: Ball) -> FloatArray:
    """Return the coordinates (b, dim) of points of the ball's frame at its origin; finite, whatever they are.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> logarithms(np.array([[np.nan]]), Ball(Euclidean(1), [0.0], 2.0))
    array([[0.]])
    """
    frame = ball.frame
    with np.errstate(all="ignore"):
        return np.nan_to_num(frame.log_coords(frame.origin, block))


def products(v: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return A v for rows v, column by column: a product of matrices would round by the length of the batch.

    Examples
    --------
    >>> products(np.array([[1.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 1.0]]))
    array([[3., 2.]])
    """
    found = np.zeros((len(v), len(matrix)))
    for number, column in enumerate(matrix.T):
        found += v[:, number, None] * column
    return found
