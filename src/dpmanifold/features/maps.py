"""Feature maps of the library: coordinates, products, powers of their length, directions (theory: features, pga)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy import special

from dpmanifold._check import FloatArray, fraction, positive_float
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features.base import (
    Block,
    Cut,
    FeatureMap,
    Moments,
    combined,
    largest_on_unit_interval,
    of_length,
    of_matrix,
    products,
    root_up,
)
from dpmanifold.linalg import outer_products, to_vecd
from dpmanifold.manifolds.vectors import vector_norm

WEIGHT = "second_moment_weight"
"""What releases state the weight of :class:`JointMoments` as."""
SQUARE_WEIGHT, FOURTH_WEIGHT = "squared_length_weight", "fourth_power_weight"
"""What they state the weights of :class:`Lengths` as."""

# Weights beyond this, or below its inverse, leave nothing of one part.
_LARGEST_WEIGHT = 1e6


class Tangent(FeatureMap):
    """The coordinates themselves: their average is the tangent mean.

    Examples
    --------
    >>> Tangent().diameter(3)
    2.0
    """

    name, degree = "tangent", 1

    def blocks(self, dim: int) -> list[Block]:
        """Return coordinates."""
        return [Block(dim)]

    def of(self, v: FloatArray) -> FloatArray:
        """Return v."""
        return v

    def diameter(self, dim: int) -> float:
        """Return 2."""
        return 2.0

    def rounding(self, dim: int) -> float:
        """Return 0: nothing is computed."""
        return 0.0


class WithProducts(FeatureMap):
    """Vectors of length at most 1 and their products, (v, sqrt(weight) vecd(v v')).

    Parameters
    ----------
    weight : how much the products count. Up to 1/2 they are free: the diameter is 2, that of v alone. Beyond, it is
        sqrt(2 + 2 weight + 1/(2 weight)) from two dimensions on
    """

    def __init__(self, weight: float = 0.5) -> None:
        self.weight = checked_weight(weight)

    def blocks(self, dim: int) -> list[Block]:
        """Return coordinates and their products."""
        return [Block(dim), Block.products(dim, self.weight)]

    def of(self, v: FloatArray) -> FloatArray:
        """Return coordinates and weighted products."""
        return np.hstack([v, math.sqrt(self.weight) * outer_products(v)])

    def diameter(self, dim: int) -> float:
        """Return 2 for weights up to 1/2, else the root of 2 + 2l + 1/(2l); on a line, that of `Lengths`."""
        if dim == 1:
            return Lengths(self.weight).diameter(1)
        weight = Fraction(self.weight)
        return 2.0 if weight <= Fraction(1, 2) else root_up(2 + 2 * weight + 1 / (2 * weight))

    def cuts(self, x: FloatArray, dim: int) -> list[Cut]:
        """Return those of the mean, of the second moment, and of both: no variance is negative."""
        return joint_cuts(x, dim, math.sqrt(self.weight))


class JointMoments(WithProducts):
    """Coordinates and their products: a mean and a second moment at one price.

    Examples
    --------
    >>> free, more = JointMoments(0.5), JointMoments(1.0)
    >>> free.diameter(3), round(more.diameter(3), 6)
    (2.0, 2.12132)
    """

    name, degree = "joint moments", 2

    def rounding(self, dim: int) -> float:
        """Return 4 lengths: each product is rounded five times, by half a spacing."""
        return 4 * self.longest(dim)


class Lengths(FeatureMap):
    """Coordinates, squared length and, if it has a weight, its square: a mean, a variance and a fourth moment.

    Parameters
    ----------
    square : weight of |v|^2: the feature is sqrt(square) |v|^2. Free, at a diameter of 2, up to (11 + 5 sqrt 5)/8 =
        2.7725 if there is no fourth power
    fourth : weight of |v|^4; 0 leaves that feature out. (2, 0.657), (1.5, 1.025) and (1, 1.345) are free

    Examples
    --------
    >>> Lengths(2.7725).diameter(3), Lengths(1.0, 1.345).diameter(3), round(Lengths(4.0).diameter(3), 4)
    (2.0, 2.0, 2.2682)
    """

    name = "lengths"

    def __init__(self, square: float = 2.0, fourth: float = 0.0) -> None:
        self.square = checked_weight(square, "square")
        self.fourth = 0.0 if fourth == 0 else checked_weight(fourth, "fourth")
        self.degree = 4 if self.fourth else 2

    def blocks(self, dim: int) -> list[Block]:
        """Return coordinates, and powers of the length, which are not negative."""
        powers = [(2, self.square), (4, self.fourth)]
        return [Block(dim), *(Block(1, power, Fraction(weight), (0.0, 1.0)) for power, weight in powers if weight)]

    def of(self, v: FloatArray) -> FloatArray:
        """Return coordinates and weighted powers of the length."""
        square = (v * v).sum(axis=-1, keepdims=True)
        parts = [v, math.sqrt(self.square) * square]
        if self.fourth:
            parts.append(math.sqrt(self.fourth) * (square * square))
        return np.hstack(parts)

    def diameter(self, dim: int) -> float:
        """Return the root of the largest (1 + t)^2 + square (1 - t^2)^2 + fourth (1 - t^4)^2, t in [0, 1]."""
        return diameter_of_opposites(self.square, 0.0, self.fourth)

    def rounding(self, dim: int) -> float:
        """Return d + 4 lengths: the fourth power is rounded 2d + 5 times, by half a spacing."""
        return (dim + 4) * self.longest(dim)

    def cuts(self, x: FloatArray, dim: int) -> list[Cut]:
        """Return those of the mean, of the mean square beside it, and of the fourth power beside both."""
        root = math.sqrt(self.square)
        along, square = of_length("mean", x, slice(0, dim)), float(x[dim]) / root
        # 2 m v - v^2 is at most m^2, with v = |v| along the mean that was drawn.
        size = float(np.linalg.norm(x[:dim]))
        found = [
            along,
            Cut(
                "mean beside the mean square",
                2 * size * along.combination - combined(len(x), (dim, 1 / root)),
                size**2,
                dim + 1,
            ),
        ]
        if self.fourth:
            last = math.sqrt(self.fourth)
            found += fourth_cuts(x, (dim, root), (dim + 1, last))
            # A length is at most a + b |v|^2 - c |v|^4, which is right at r and at 1 and touches it at r.
            r = math.sqrt(min(max((square - float(x[dim + 1]) / last) / max(1 - square, 1e-3), 1e-3), 0.999))
            touching = np.array([[1.0, r**2, -(r**4)], [0.0, 2 * r, -4 * r**3], [1.0, 1.0, -1.0]])
            a, b, c = np.linalg.solve(touching, np.array([r, 1.0, 1.0]))
            powers = combined(len(x), (dim, -b / root), (dim + 1, c / last))
            found.append(Cut("mean beside both powers", along.combination + powers, float(a), dim + 2))
        return found


def joint_cuts(x: FloatArray, dim: int, root: float) -> list[Cut]:
    """Return what the averages of v and of vecd(v v') times a root satisfy, |v| <= 1: the first numbers of x."""
    entries = slice(dim, dim + dim * (dim + 1) // 2)
    one, side = Moments.of_known(np.ones((1, 1))), Moments.of_features(np.arange(dim)[None], 1.0)
    return [
        of_length("mean", x, slice(0, dim)),
        *of_matrix("second moment", x, entries, root),
        one.bordering(side, Moments.of_vecd(dim, dim, root)).cut("mean beside the second moment", x),
    ]


def fourth_cuts(x: FloatArray, second: tuple[int, float], fourth: tuple[int, float]) -> list[Cut]:
    """Return that a mean fourth power is at most the mean square and at least its square; each a place and a root."""
    (place, root), (last, fourth_root) = second, fourth
    square = float(x[place]) / root
    return [
        Cut("fourth power above the square", combined(len(x), (place, -1 / root), (last, 1 / fourth_root)), 0.0),
        Cut(
            "fourth power beside the square",
            combined(len(x), (place, 2 * square / root), (last, -1 / fourth_root)),
            square**2,
            2,
        ),
    ]


@lru_cache(maxsize=256)
def diameter_of_opposites(square: float | Fraction, third: float, fourth: float) -> float:
    """Return how far apart weighted powers of opposite vectors can be, with v itself among them, rounded up.

    It is the root of the largest (1 + t)^2 + square (1 - t^2)^2 + third (1 + t^3)^2 + fourth (1 - t^4)^2, t in [0, 1].

    Examples
    --------
    >>> diameter_of_opposites(1.5, 0.0, 1.025), round(diameter_of_opposites(1.5, 0.5, 1.025), 4)
    (2.0, 2.4495)
    """
    a, k, b, zero = Fraction(square), Fraction(third), Fraction(fourth), Fraction(0)
    # From the constant coefficient to that of t^8.
    powers = [1 + a + k + b, Fraction(2), 1 - 2 * a, 2 * k, a - 2 * b, zero, k, zero, b]
    return root_up(largest_on_unit_interval(powers))


def checked_weight(weight: object, name: str = "weight") -> float:
    """Return a weight, or refuse what is none.

    Examples
    --------
    >>> checked_weight(1)
    1.0
    """
    value = positive_float(weight, name)
    if not 1 / _LARGEST_WEIGHT <= value <= _LARGEST_WEIGHT:
        raise InvalidArgumentError(
            f"{name} must lie between {1 / _LARGEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}, got {value:g}: beyond, noise "
            "hides all of one part. Choose one near 1."
        )
    return value


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


# -------------------------------------------------------------------- squared distances, from any point


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


# -------------------------------------------------------------------- principal directions and the variances along them


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
