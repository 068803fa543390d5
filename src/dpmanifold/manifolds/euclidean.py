"""Euclidean space R^d: the flat case everything else is compared with."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import Array, FloatArray, positive_int
from dpmanifold.errors import Message
from dpmanifold.linalg.exact_sums import weighted_sum
from dpmanifold.manifolds.symmetric_spaces import SymmetricSpace
from dpmanifold.manifolds.vectors import EPS, vector_norm

_LARGEST = float(np.finfo(np.float64).max)


class Euclidean(SymmetricSpace):
    """R^d with the ordinary metric. Points have shape (d,).

    Parameters
    ----------
    d : dimension

    Examples
    --------
    >>> Euclidean(2).dist([0.0, 0.0], [3.0, 4.0])
    array(5.)
    """

    curvature = (0.0, 0.0)
    injectivity_radius = math.inf
    is_flat = True
    is_hadamard = True
    is_vector_space = True

    def __init__(self, d: int) -> None:
        self.dim = positive_int(d, "d")
        self.shape = (self.dim,)
        self.origin = np.zeros(self.dim)

    def _arguments(self) -> str:
        return str(self.dim)

    # ---------------------------------------------------------------- for people

    def describe(self) -> str:
        """Vectors of so many numbers."""
        return f"vectors of {self.dim} number{'' if self.dim == 1 else 's'}"

    # ---------------------------------------------------------------- points

    def _faults(self, array: Array) -> list[tuple[Array, Message]]:
        return []

    def project(self, p: object) -> Array:
        """Return `p` as float64: every finite array is a point."""
        return self._array(p)

    def _random(self, batch: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.standard_normal((*batch, self.dim))

    def dist(self, p: Array, q: Array) -> FloatArray:
        """Euclidean distance."""
        return vector_norm(self.log_coords(p, q))

    def to_origin(self, p: Array, q: Array) -> Array:
        """Return q - p."""
        return self.log_coords(p, q)

    def from_origin(self, p: Array, q: Array) -> Array:
        """Return p + q."""
        return self.exp_coords(p, q)

    def log_coords(self, p: Array, q: Array) -> FloatArray:
        """Return q - p (at most the largest double, so that it is defined for every finite pair)."""
        p, q = self._array(p), self._array(q, "q")
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(q - p, -_LARGEST, _LARGEST))

    def exp_coords(self, p: Array, c: FloatArray) -> Array:
        """Return p + c."""
        return self._array(p) + self._coordinates(c)

    def coords(self, p: Array, v: Array) -> FloatArray:
        """Return `v`: the standard frame."""
        return np.broadcast_to(self._array(v, "v"), np.broadcast_shapes(np.shape(p), np.shape(v)))

    def vector(self, p: Array, c: FloatArray) -> Array:
        """Return `c`: the standard frame."""
        return self.coords(p, c)

    def curvature_operator(self, second_moment: FloatArray) -> FloatArray:
        """Return 0."""
        return np.zeros((self.dim, self.dim))

    def extrinsic_mean(self, points: Array, weights: FloatArray) -> Array:
        """Return the weighted mean."""
        return weighted_sum(points, weights)

    def dist_error(self, center: Array, radius: float) -> float:
        """Rounding of a difference and of a sum of squares."""
        return (self.dim + 8) * EPS * radius

    def log_error(self, radius: float) -> float:
        """Rounding of a difference."""
        return EPS * 2 * radius * math.sqrt(self.dim)
