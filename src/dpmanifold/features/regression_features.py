"""Geodesics with a parameter from -1 to 1, and the features that tell how far points lie from one (theory: regression).

Everything about geodesics is written with exponentials and logarithms alone. On a symmetric space, as all of the
library's are, the reflection at a point is an isometry, and reflections carry vectors along a geodesic by parallel
transport. The features are residuals, residuals times a covariate, their products, and the covariate itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.features.base import Block, Cut, FeatureMap, combined, of_length
from dpmanifold.features.maps import joint_cuts
from dpmanifold.linalg import outer_products, to_vecd
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.vectors import shorten

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


# -------------------------------------------------------------------- geodesics


# Central differences: the error is of order step^2 and eps/step, in units of the radius of curvature.
_STEP = 1e-5


def reflected(frame: Manifold, at: Array, points: Array) -> Array:
    """Return points (b, *shape) reflected at others, (*shape) or (b, *shape): each by itself.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> reflected(Euclidean(1), np.array([1.0]), np.array([[0.0], [3.0]]))
    array([[ 2.],
           [-1.]])
    """
    return frame.exp_coords(at, -frame.log_coords(at, points))


@dataclass(frozen=True, eq=False)
class Geodesic:
    """The geodesic t -> exp_base(t velocity), t from -1 to 1, in a ball's frame.

    Parameters
    ----------
    frame : the space
    base : the point at t = 0
    velocity : (dim,), in coordinates at the base point

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> line = Geodesic(Euclidean(1), np.array([1.0]), np.array([2.0]))
    >>> line.at(np.array([-1.0, 0.5]))
    array([[-1.],
           [ 2.]])
    >>> line.residuals(np.array([[0.0], [2.5]]), np.array([-1.0, 0.5]))
    array([[1. ],
           [0.5]])
    """

    frame: Manifold
    base: Array
    velocity: FloatArray

    @staticmethod
    def resting(frame: Manifold) -> Geodesic:
        """Return the one that stays at the frame's origin."""
        return Geodesic(frame, np.asarray(frame.origin), np.zeros(frame.dim))

    @property
    def rests(self) -> bool:
        """Whether it stays where it is."""
        return not self.velocity.any()

    def at(self, t: FloatArray) -> Array:
        """Return its points at some parameters, (k, *shape)."""
        return self.frame.exp_coords(self.base, t[:, None] * self.velocity)

    def residuals(self, points: Array, t: FloatArray) -> FloatArray:
        """Return the logarithms of points (b, *shape) at its points at t (b,), carried to the base point, (b, dim).

        Each row depends on its own point and parameter alone. Finite, whatever they are.
        """
        frame = self.frame
        with np.errstate(all="ignore"):
            if self.rests:
                return np.nan_to_num(frame.log_coords(self.base, points))
            halfway = frame.exp_coords(self.base, (t / 2)[:, None] * self.velocity)
            # The reflection halfway takes the point at t to the base point, and turns what it carries round.
            return np.nan_to_num(-frame.log_coords(self.base, reflected(frame, halfway, points)))

    def beside(self, t: float, residuals: FloatArray) -> Array:
        """Return the points whose residuals at t these are, (b, *shape): undoes :meth:`residuals`."""
        frame = self.frame
        carried = frame.exp_coords(self.base, -residuals)
        return reflected(frame, frame.exp_coords(self.base, t / 2 * self.velocity), carried)

    def moved(self, a: FloatArray, b: FloatArray) -> Geodesic:
        """Return the one whose base point is moved by a, and whose velocity is changed by b, both (dim,).

        One that rests becomes the geodesic through exp(a) that is nearest to exp(a + t b).
        """
        base, velocity = self._moved(a[None], b[None])
        return Geodesic(self.frame, base[0], velocity[0])

    def _moved(self, a: FloatArray, b: FloatArray) -> tuple[Array, FloatArray]:
        """Return base points and velocities for several changes, (m, dim) each."""
        frame = self.frame
        base = frame.exp_coords(self.base, a)
        if self.rests and not frame.is_flat:
            ahead, behind = (frame.log_coords(base, frame.exp_coords(self.base, a + side * b)) for side in (1.0, -1.0))
            return base, (ahead - behind) / 2
        halfway = frame.exp_coords(self.base, a / 2)
        end = frame.exp_coords(self.base, self.velocity + b)
        return base, -frame.log_coords(base, reflected(frame, halfway, end))

    def within(self, radius: float) -> Geodesic:
        """Return it with its base point and its velocity shortened to a radius, seen from the frame's origin."""
        frame = self.frame
        base = frame.exp_coords(frame.origin, shorten(frame.log_coords(frame.origin, self.base), radius))
        return Geodesic(frame, base, shorten(self.velocity, radius))

    def derivative(self, a: FloatArray, b: FloatArray, t: FloatArray) -> FloatArray:
        """Return how the points at t (k,) of `moved(a, b)` move with (a, b), (k, dim, 2 dim): Jacobi fields.

        In coordinates that are carried to the base point of `moved(a, b)`; by central differences.
        """
        frame, d = self.frame, self.frame.dim
        if frame.is_flat or (self.rests and not (a.any() or b.any())):
            eye = np.eye(d)
            return np.stack([np.hstack([eye, each * eye]) for each in t])
        curvature = max(abs(bound) for bound in frame.curvature)
        step = _STEP / math.sqrt(curvature) if curvature else _STEP
        changes = step * np.vstack([np.eye(2 * d), -np.eye(2 * d)])
        base, velocity = self._moved(a + changes[:, :d], b + changes[:, d:])
        points = frame.exp_coords(np.repeat(base, len(t), axis=0), (velocity[:, None] * t[:, None]).reshape(-1, d))
        ends = self.moved(a, b).residuals(points, np.tile(t, 4 * d)).reshape(4 * d, len(t), d)
        return np.asarray(np.moveaxis(ends[: 2 * d] - ends[2 * d :], 0, -1) / (2 * step))
