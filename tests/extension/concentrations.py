"""A space in one file: tables of positive numbers, compared by their ratios.

The concentrations of p substances at n times; the distance of two tables is the root of the sum of squared logarithms
of the ratios of their entries. The logarithm makes it flat. What is not written here comes from the base class.
"""

import math

import numpy as np

from dpmanifold._check import positive_int
from dpmanifold.errors import Message
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.base import EPS
from dpmanifold.manifolds.vectors import vector_norm

# Entries beyond this, or below its inverse, would overflow or vanish when they are moved.
_LARGEST = 1e300


class Concentrations(Manifold):
    """Tables (n, p) of positive numbers with the distance of their logarithms."""

    curvature = (0.0, 0.0)
    injectivity_radius = math.inf
    is_flat = True
    is_hadamard = True

    def __init__(self, n, p):
        self.times, self.substances = positive_int(n, "n"), positive_int(p, "p")
        self.shape = (self.times, self.substances)
        self.dim = self.times * self.substances
        self.origin = np.ones(self.shape)

    def _arguments(self):
        return f"{self.times}, {self.substances}"

    # ---------------------------------------------------------------- for people

    example = (2, 3)
    factor_of = "concentration"

    @classmethod
    def sizes_of(cls, shape, kind="f"):
        """Two axes are both sizes; a row of numbers does not say how it is cut."""
        return shape if len(shape) == 2 else None

    def describe(self):
        return f"concentrations of {self.substances} substances at {self.times} times"

    # ---------------------------------------------------------------- points

    def _faults(self, array):
        inside = ((array >= 1 / _LARGEST) & (array <= _LARGEST)).all(axis=(-1, -2))
        fault = Message("the table{where} has an entry that is not positive. Remove it, or add the detection limit.")
        return [(~inside, fault)]

    def project(self, p):
        return self._array(p)

    def _random(self, batch, rng):
        return np.exp(rng.standard_normal((*batch, *self.shape)))

    # ---------------------------------------------------------------- geometry

    def _flat(self, table):
        return table.reshape(*table.shape[:-2], self.dim)

    def _table(self, vector):
        return vector.reshape(*vector.shape[:-1], *self.shape)

    def log_coords(self, p, q):
        p, q = self._array(p), self._array(q, "q")
        return self._flat(np.log(q) - np.log(p))

    def exp_coords(self, p, c):
        limit = math.log(_LARGEST)
        return np.exp(np.clip(np.log(self._array(p)) + self._table(self._coordinates(c)), -limit, limit))

    def coords(self, p, v):
        p, v = self._array(p), self._array(v, "v")
        return self._flat(v / p)

    def vector(self, p, c):
        return self._array(p) * self._table(self._coordinates(c))

    def dist(self, p, q):
        return vector_norm(self.log_coords(p, q))

    def to_origin(self, p, q):
        p, q = self._array(p), self._array(q, "q")
        return q / p

    def from_origin(self, p, q):
        p, q = self._array(p), self._array(q, "q")
        return q * p

    def log_volume_density(self, c):
        return np.zeros(self._coordinates(c).shape[:-1])

    def hessian_spectrum(self, c):
        c = self._coordinates(c)
        return np.ones(c.shape), np.broadcast_to(np.eye(self.dim), (*c.shape, self.dim))

    def curvature_operator(self, second_moment):
        return np.zeros((self.dim, self.dim))

    # ---------------------------------------------------------------- rounding

    def _log_rounding(self, largest, radius):
        """Two logarithms of at most `largest` and their difference of at most `radius`, each entry rounded."""
        return EPS * math.sqrt(self.dim) * (2 * largest + radius)

    def dist_error(self, center, radius):
        far = float(np.abs(np.log(self._array(center, "center"))).max())
        return self._log_rounding(2 * far + radius, radius) + (self.dim + 8) * EPS * radius

    def log_error(self, radius):
        return self._log_rounding(2 * radius, 2 * radius)
