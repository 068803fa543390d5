"""A curved space in one file: rotations in space, SO(3), as unit quaternions q and -q.

The distance of two rotations is the angle of the rotation between them. SO(3) is the 3-sphere of radius 2 with opposite
points identified: its curvature is 1/4, and geodesics are shortest up to half a turn.
"""

import math

import numpy as np
from flint import arb

from dpmanifold.errors import Message
from dpmanifold.manifolds import Layout
from dpmanifold.manifolds.base import EPS, POINT_TOLERANCE
from dpmanifold.manifolds.embedding import SLACK, Embedding
from dpmanifold.manifolds.exact_points import ExactPoints, norm
from dpmanifold.manifolds.symmetric_spaces import ConstantCurvature
from dpmanifold.manifolds.vectors import unit_direction, vector_norm


def times(p, q):
    """Return the product of quaternions, entry by entry: its bits do not depend on the batch."""
    a, b, c, d = p
    e, f, g, h = q
    return [
        a * e - b * f - c * g - d * h,
        a * f + b * e + c * h - d * g,
        a * g - b * h + c * e + d * f,
        a * h + b * g - c * f + d * e,
    ]


def product(p, q):
    """Return the products of arrays of quaternions (..., 4)."""
    apart = (np.moveaxis(x, -1, 0) for x in np.broadcast_arrays(p, q))
    return np.stack(times(*apart), axis=-1)


def inverse(q):
    """Return the inverses of unit quaternions."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def positive(q):
    """Return the one of q and -q whose first entry that is not 0 is positive."""
    first = np.take_along_axis(q, np.argmax(q != 0, axis=-1)[..., None], axis=-1)
    return np.where(first < 0, -q, q)


def squares(m):
    """Return 4 q q' - 1 of rotation matrices (..., 3, 3), which is linear in them: (..., 4, 4)."""
    x, y, z = np.moveaxis(np.diagonal(m, axis1=-2, axis2=-1), -1, 0)
    (a, b, c), (h, g, f) = _across(m, -1), _across(m, 1)
    rows = [[x + y + z, a, b, c], [a, x - y - z, f, g], [b, f, y - x - z, h], [c, g, h, z - x - y]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrices(m, order=None):
    """Return quaternions of rotation matrices (n, 3, 3): the longest row of 4 q q', which is at least 1 long."""
    rows = squares(m) + np.eye(4)
    longest = np.argmax(np.diagonal(rows, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(rows, longest[..., None, None], axis=-2)[..., 0, :]
    q = positive(unit_direction(q, vector_norm(q)))
    off = np.abs(to_matrices(q) - m).max(axis=(-1, -2))  # what is no rotation is no point either: NaN
    return np.where((off <= 4 * POINT_TOLERANCE)[..., None], q, np.nan)


def _across(m, sign):
    """Return sums (1) or differences (-1) of entries across the diagonal: of 32 and 23, 13 and 31, 21 and 12."""
    return [m[..., i, j] + sign * m[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))]


def to_matrices(q):
    """Return the matrices (..., 3, 3) of unit quaternions."""
    w, x, y, z = np.moveaxis(np.asarray(q), -1, 0)
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def turn(c):
    """Return the quaternions of rotation vectors."""
    half = vector_norm(c)[..., None] / 2
    return np.concatenate([np.cos(half), np.sinc(half / np.pi) * c / 2], axis=-1)


class Rotations(ConstantCurvature):
    """Rotations in space: unit quaternions (4,), the real part first, of which q and -q are one point."""

    # ---------------------------------------------------------------- facts

    dim, shape, origin = 3, (4,), np.array([1.0, 0.0, 0.0, 0.0])
    curvature, unit = (0.25, 0.25), 2.0  # from which volumes, Hessians and the law of angles follow
    injectivity_radius = diameter = math.pi
    is_flat = is_hadamard = False

    def __init__(self):
        self.exact_points = ExactRotations(self)

    def embedding(self, radius):
        """Return rotation matrices, whose average has a nearest rotation: the extrinsic mean."""
        return Matrices(self, radius)

    # ---------------------------------------------------------------- for people

    example = ()
    natural_center = None  # no rotation is the middle of all

    def describe(self):
        """Say what its points are."""
        return "rotations in space, unit quaternions with the real part first"

    def layouts(self):
        """Take matrices too."""
        return [*super().layouts(), Layout((3, 3), "(n, 3, 3) rotation matrices", self.shape, read=from_matrices)]

    # ---------------------------------------------------------------- points

    def _arguments(self):
        return ""

    def _faults(self, array):
        off = ~(np.abs(vector_norm(array) - 1) <= POINT_TOLERANCE)
        return [(off, Message("the quaternion{where} is not of length 1. Normalize it (space.project)."))]

    def project(self, p):
        """Normalize quaternions; those that are of length 1 to rounding stay as they are."""
        q = self._array(p)
        length = vector_norm(q)
        return np.where((np.abs(length - 1) <= 12 * EPS)[..., None], q, unit_direction(q, length))

    def canonical(self, p):
        """Return one of q and -q: which of them was computed would tell of the private mean it was drawn about."""
        return positive(p)

    def _random(self, batch, rng):
        return self.project(rng.standard_normal((*batch, 4)))

    # ---------------------------------------------------------------- geometry

    def to_origin(self, p, q):
        """Return p^-1 q."""
        return product(inverse(self._array(p)), self._array(q, "q"))

    def from_origin(self, p, q):
        """Return p q."""
        return product(self._array(p), self._array(q, "q"))

    def _between(self, p, q):
        return positive(self.to_origin(p, q))

    def dist(self, p, q):
        """Return the angle between: twice that of the quaternion."""
        found = self._between(p, q)
        return 2 * np.arctan2(vector_norm(found[..., 1:]), found[..., 0])

    def log_coords(self, p, q):
        """Return rotation vectors: axis times angle."""
        found = self._between(p, q)
        length = vector_norm(found[..., 1:])
        return unit_direction(found[..., 1:], length) * (2 * np.arctan2(length, found[..., 0]))[..., None]

    def exp_coords(self, p, c):
        """Rotate further by rotation vectors."""
        return product(self._array(p), turn(self._coordinates(c)))

    def coords(self, p, v):
        """Return the coordinates of tangent arrays."""
        return 2 * product(inverse(self._array(p)), self._array(v, "v"))[..., 1:]

    def vector(self, p, c):
        """Return tangent arrays of coordinates."""
        c = self._coordinates(c)
        return product(self._array(p), np.concatenate([np.zeros((*c.shape[:-1], 1)), c / 2], axis=-1))

    # ---------------------------------------------------------------- rounding

    def dist_error(self, center, radius):
        """Return a bound on the error of an angle, whatever its size.

        Angles do not depend on how long quaternions are, so stored ones are exact. An entry of a product is four
        products, which add up to at most 1, and three sums: off by 2 EPS, all four together by 4 EPS. A norm adds 3
        EPS. The angle of a pair of length 1 is off by as much as the pair, and by 2 EPS for the arc tangent; twice that
        is 18 EPS.
        """
        return 64 * EPS

    def log_error(self, radius):
        """Return a bound for rotation vectors.

        The axis is off by 8 EPS over the length of the imaginary part, which the angle is at most pi times: by 26 EPS,
        to which the 18 EPS of the angle are added.
        """
        return 64 * EPS


# -------------------------------------------------------------------- exact noise


class ExactRotations(ExactPoints):
    """Quaternions in numbers that are refined until they are certain; the library draws angle and direction."""

    def __init__(self, space):
        super().__init__(space)
        self.normals = 3

    def moved(self, footpoint, distance, gaussian):
        """Return the footpoint, scaled to length 1, turned by an angle about the axis that the numbers give."""
        start, ahead = list(map(arb, footpoint.tolist())), (distance / 2).sin() / norm(gaussian)
        step = [(distance / 2).cos(), *(ahead * z for z in gaussian)]
        drawn = times([entry / norm(start) for entry in start], step)
        # q and -q are one rotation, and which of them was computed no promise covers: the real part is above 0.
        if drawn[0] < 0:
            return [-entry for entry in drawn]
        return drawn if drawn[0] > 0 else None  # open: more digits are needed


# -------------------------------------------------------------------- extrinsic means


class Matrices(Embedding):
    """Rotation matrices, nine numbers; half the distance of two is that of q q' of their quaternions.

    So all is proven as for planar shapes (docs/theory/estimands.md), with q for z and half angles for distances: the
    largest eigenvalue of an average of q q' is at least cos^2(r/2), the second one cos r below it.
    """

    size, longest, farthest = 9, math.sqrt(3) * (1 + 64 * EPS), math.pi
    shares = 3 / 2, 6 / 2  # of nine dimensions three turn the eigenvector
    ONE = 64 * EPS  # what rounding does to one matrix

    def images(self, points):
        """Return matrices of logarithms, which are no longer than the radius: each by itself."""
        return to_matrices(turn(self.logarithms(points))).reshape(-1, 9)

    def place(self, vectors):
        """Return the nearest rotation: the top eigenvector of q q'; the origin where all entries are 0."""
        flat = vectors.reshape(-1, 9)
        # Scaled by a power of two, so that nothing overflows: eigenvectors stay as they are.
        flat = np.ldexp(flat, -np.frexp(np.abs(flat).max(axis=1, keepdims=True))[1])
        matrix = squares(flat.reshape(-1, 3, 3))
        matrix[~flat.any(axis=1), 0, 0] = 1.0
        points = self.space.canonical(np.linalg.eigh(matrix)[1][:, :, -1])
        return points.reshape(*vectors.shape[:-1], 4)

    @property
    def diameter(self):
        """2 sqrt 2 sin r: of rotations at an angle t it is 2 sqrt 2 sin(t/2)."""
        return 2 * math.sqrt(2) * math.sin(min(self.reach, math.pi / 2)) + 2 * self.ONE

    def rounding(self, terms):
        """Rounding of one matrix, and of its logarithm: matrices move by sqrt 2 times the angle."""
        return self.ONE + 2 * self.space.log_error(self.reach)

    def pull(self):
        """1/(4 cos^2(r/2)) and 2r - sin 2r."""
        return 1 / (4 * math.cos(self.reach / 2) ** 2), 2 * self.reach - math.sin(2 * self.reach)

    def error(self, t, low, high):
        """Return the largest angle by which noise turns the nearest rotation: twice that of the eigenvector."""
        half = t / 2
        left = max(0.0, math.cos(self.reach)) - SLACK - np.sqrt(2 * (1 - low)) * half
        return np.where(left > 0, np.arctan2(np.sqrt(2 * high) * half, left), np.pi)
