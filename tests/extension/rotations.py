"""Rotations in space, SO(3), as unit quaternions q and -q: a space of which two arrays are one point.

The distance is the angle of the rotation between. The 3-sphere of radius 2 with opposite points identified: curvature
1/4, geodesics are shortest up to half a turn.
"""

import math

import numpy as np

from dpmanifold.errors import Message
from dpmanifold.manifolds.base import EPS, POINT_TOLERANCE
from dpmanifold.manifolds.constant_curvature import ConstantCurvature
from dpmanifold.manifolds.vectors import unit_direction, vector_norm


def times(p, q):
    """Return the product of quaternions, entry by entry: its bits do not depend on the batch."""
    (a, b, c, d), (e, f, g, h) = (np.moveaxis(x, -1, 0) for x in np.broadcast_arrays(p, q))
    return np.stack(
        [a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g,
         a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e], axis=-1,
    )  # fmt: skip


def inverse(q):
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def positive(q):
    """Return the one of q and -q whose first entry that is not 0 is positive."""
    first = np.take_along_axis(q, np.argmax(q != 0, axis=-1)[..., None], axis=-1)
    return np.where(first < 0, -q, q)


class Rotations(ConstantCurvature):
    """Unit quaternions (4,), up to their sign."""

    dim, shape, origin = 3, (4,), np.array([1.0, 0.0, 0.0, 0.0])
    curvature, unit = (0.25, 0.25), 2.0
    injectivity_radius = diameter = math.pi
    is_flat = is_hadamard = False
    gaussian_proof = "normal-homogeneous"  # a compact group with a bi-invariant metric
    example = ()

    def _arguments(self):
        return ""

    def _faults(self, array):
        off = ~(np.abs(vector_norm(array) - 1) <= POINT_TOLERANCE)
        return [(off, Message("the quaternion{where} is not of length 1. Normalise it (space.project)."))]

    def project(self, p):
        q = self._array(p)
        length = vector_norm(q)
        return np.where((np.abs(length - 1) <= 12 * EPS)[..., None], q, unit_direction(q, length))

    def canonical(self, p):
        return positive(p)

    def _random(self, batch, rng):
        return self.project(rng.standard_normal((*batch, 4)))

    def to_origin(self, p, q):
        return times(inverse(self._array(p)), self._array(q, "q"))

    def from_origin(self, p, q):
        return times(self._array(p), self._array(q, "q"))

    def _between(self, p, q):
        return positive(self.to_origin(p, q))

    def dist(self, p, q):
        found = self._between(p, q)
        return 2 * np.arctan2(vector_norm(found[..., 1:]), found[..., 0])

    def log_coords(self, p, q):
        found = self._between(p, q)
        length = vector_norm(found[..., 1:])
        return unit_direction(found[..., 1:], length) * (2 * np.arctan2(length, found[..., 0]))[..., None]

    def exp_coords(self, p, c):
        c = self._coordinates(c)
        half = vector_norm(c)[..., None] / 2
        return times(self._array(p), np.concatenate([np.cos(half), np.sinc(half / np.pi) * c / 2], axis=-1))

    def coords(self, p, v):
        return 2 * times(inverse(self._array(p)), self._array(v, "v"))[..., 1:]

    def vector(self, p, c):
        c = self._coordinates(c)
        return times(self._array(p), np.concatenate([np.zeros((*c.shape[:-1], 1)), c / 2], axis=-1))

    def dist_error(self, center, radius):
        return 64 * EPS

    def log_error(self, radius):
        return 64 * EPS
