"""The sphere S^d of a given curvature, as vectors of length 1/sqrt(curvature) in R^(d+1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from flint import arb

from dpmanifold._check import Array, FloatArray, positive_float, positive_int
from dpmanifold.errors import Message, Public
from dpmanifold.linalg.exact_sums import ExactSum, weighted_sum
from dpmanifold.linalg.vector_sums import SPHERE, completed_sums
from dpmanifold.manifolds.base import POINT_TOLERANCE
from dpmanifold.manifolds.coordinate_systems import ON_SPHERES, Coordinates
from dpmanifold.manifolds.embedding import SLACK, Embedding
from dpmanifold.manifolds.exact_points import ExactPoints, norm, total
from dpmanifold.manifolds.optional_properties import StoredNumbers
from dpmanifold.manifolds.symmetric_spaces import ConstantCurvature
from dpmanifold.manifolds.vectors import EPS, shorten, unit_direction, vector_norm


class Sphere(ConstantCurvature):
    """S^d: points are vectors (d+1,) of length R = 1/sqrt(curvature).

    The origin is R times the first basis vector. The frame at p comes from the rotation that takes the
    origin to p along the great circle through both (from a reflection on the far hemisphere).

    Parameters
    ----------
    d : dimension (S^2 is the ordinary sphere)
    curvature : above 0

    Examples
    --------
    >>> s2 = Sphere(2)
    >>> float(s2.dist([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])) == np.pi / 2
    True
    """

    is_flat = False
    is_hadamard = False
    gaussian_proof = "rank-one"

    def __init__(self, d: int, curvature: float = 1.0) -> None:
        self.dim = positive_int(d, "d")
        self._kappa = positive_float(curvature, "curvature")
        self.unit = 1 / math.sqrt(self._kappa)
        self.shape = (self.dim + 1,)
        # A circle has no sectional curvature: only its injectivity radius limits a ball on it.
        self.curvature = (self._kappa, self._kappa) if self.dim > 1 else (0.0, 0.0)
        self.injectivity_radius = self.diameter = math.pi * self.unit
        self.origin = self.unit * np.eye(self.dim + 1)[0]
        self.exact_points = _ExactVector(self)
        self.stored = _StoredVector(self)

    def _arguments(self) -> str:
        return str(self.dim) if self._kappa == 1 else f"{self.dim}, curvature={self._kappa!r}"

    # ---------------------------------------------------------------- for people

    example = (2,)
    coordinates: ClassVar[Mapping[str, Coordinates]] = ON_SPHERES
    natural_center = None  # no direction is the middle of all

    @classmethod
    def sizes_of(cls, shape: tuple[int, ...], kind: str = "f") -> tuple[int, ...] | None:
        """One less than the number of entries."""
        return (shape[0] - 1,) if shape else None

    def describe(self) -> str:
        """Directions."""
        return f"directions, unit vectors of {self.shape[0]} numbers"

    @property
    def picture(self) -> str:
        """A globe where there is one."""
        return "sphere" if self.dim == 2 else "tangent"

    # ---------------------------------------------------------------- points

    def _faults(self, array: Array) -> list[tuple[Array, Message]]:
        length = vector_norm(array) / self.unit
        bad = ~(np.abs(length - 1) <= POINT_TOLERANCE)
        found = float(np.atleast_1d(length)[np.atleast_1d(bad)][0] * self.unit) if bad.any() else 0.0
        fault = Message(
            "the vector{where} has length {found:.6g} instead of {radius:.6g}. Normalise it (space.project) if only "
            "its direction matters.",
            found=found,
            radius=Public(self.unit),
        )
        return [(bad, fault)]

    def project(self, p: object) -> Array:
        """Scale non-zero vectors to length R; vectors that have it to rounding stay as they are."""
        array = self._array(p)
        length = vector_norm(array)
        exact = np.abs(length / self.unit - 1) <= (self.dim + 8) * EPS
        return np.where(exact[..., None], array, unit_direction(array, length) * self.unit)

    def _random(self, batch: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.project(rng.standard_normal((*batch, self.dim + 1)))

    def _unit(self, p: object, name: str = "p") -> Array:
        return self._array(p, name) / self.unit

    def dist(self, p: Array, q: Array) -> FloatArray:
        """Great-circle distance, from chord and antichord: exact for close and for opposite points."""
        p, q = self._unit(p), self._unit(q, "q")
        return np.asarray(2 * self.unit * np.arctan2(vector_norm(p - q), vector_norm(p + q)))

    def to_origin(self, p: Array, q: Array) -> Array:
        """Apply the orthogonal map that takes p to the origin."""
        p, q = self._unit(p), self._unit(q, "q")
        # The difference is formed first: for close points it is exact, and the map is linear.
        head = (p * q).sum(axis=-1, keepdims=True)
        return np.concatenate([head, _to_frame(p, q - p)], axis=-1) * self.unit

    def from_origin(self, p: Array, q: Array) -> Array:
        """Apply the orthogonal map that takes the origin to p."""
        p, q = self._unit(p), self._unit(q, "q")
        return (q[..., :1] * p + _from_frame(p, q[..., 1:])) * self.unit

    def log_coords(self, p: Array, q: Array) -> FloatArray:
        """Normal coordinates; an antipode is reached along the frame's first direction."""
        moved = self.to_origin(p, q)
        length = vector_norm(moved[..., 1:])
        angle = np.arctan2(length, moved[..., 0])
        return unit_direction(moved[..., 1:], length) * (angle * self.unit)[..., None]

    def log_words(
        self,
        p: Any,
        stored: Array,
        bound: float,
        *,
        group: Array | None = None,
        rows: Array | None = None,
        sums: ExactSum | None = None,
    ) -> ExactSum:
        """Exact sums of vectors of the space around, in one pass of the kernels."""
        return completed_sums(SPHERE, self.unit, p, stored, bound, self.log, group=group, rows=rows, sums=sums)

    def from_log_words(self, p: Array, sums: ExactSum) -> FloatArray:
        """Turn sums of vectors into the frame."""
        return self.coords(p, sums.total() * self.unit)

    def exp_coords(self, p: Array, c: FloatArray) -> Array:
        """Follow the great circle."""
        p, u = self._unit(p), self._coordinates(c) / self.unit
        angle = vector_norm(u)[..., None]
        q = np.cos(angle) * p + _from_frame(p, np.sinc(angle / np.pi) * u)
        return self.project(q)

    def coords(self, p: Array, v: Array) -> FloatArray:
        """Coordinates in the rotated frame (the normal part of `v` is dropped)."""
        return _to_frame(self._unit(p), self._array(v, "v"))

    def vector(self, p: Array, c: FloatArray) -> Array:
        """Return the combination of the rotated frame's vectors."""
        return _from_frame(self._unit(p), self._coordinates(c))

    def embedding(self, radius: float) -> Embedding:
        """Return the vectors of R^(d+1)."""
        return SphereEmbedding(self, radius)

    def extrinsic_mean(self, points: Array, weights: FloatArray) -> Array:
        """Return the mean vector, scaled back to the sphere."""
        return self.project(weighted_sum(points, weights))

    def dist_error(self, center: Array, radius: float) -> float:
        """Rounding of two norms and of the points' own lengths; it does not depend on the radius."""
        return (4 * self.dim + 32) * EPS * self.unit

    def log_error(self, radius: float) -> float:
        """Rounding of the rotation and of the angle."""
        return (8 * self.dim + 64) * EPS * self.unit


class _ExactVector(ExactPoints):
    """The entries of a vector of R^(d+1)."""

    def moved(self, footpoint: Array, distance: arb, gaussian: list[arb]) -> list[arb]:
        """Return R (cos(u) p + sin(u) w), p the footpoint scaled to length 1, w a uniform unit tangent, u the angle."""
        radius = arb(float(self.space.origin[0]))
        p = [arb(x) for x in footpoint.tolist()]
        length = norm(p)
        p = [x / length for x in p]
        along = total([x * z for x, z in zip(p, gaussian, strict=True)])
        tangent = [z - along * x for x, z in zip(p, gaussian, strict=True)]
        sine, cosine = (distance / radius).sin_cos()
        ahead = radius * sine / norm(tangent)
        return [radius * cosine * x + ahead * z for x, z in zip(p, tangent, strict=True)]


class SphereEmbedding(Embedding):
    """The point itself, a vector of R^(d+1), seen from the centre of the Euclidean ball about the cap."""

    def __init__(self, space: Sphere, radius: float) -> None:
        super().__init__(space, radius)
        self.size, self.shares = space.dim + 1, (space.dim / 2, space.dim / 2)
        self._unit = float(space.origin[0])
        self.farthest = math.pi * self._unit
        self.height, self.longest = cap_ball(self._unit, self.reach)
        self._shift = np.zeros(self.size)
        self._shift[0] = self.height
        # What the computed lengths of shortened vectors may miss, as a share of them.
        self._missed = (space.dim + 9) * EPS

    def images(self, points: Array) -> FloatArray:
        """Return vectors, less the centre of the Euclidean ball."""
        return shorten(points - self._shift, self.longest)

    def place(self, vectors: FloatArray) -> Array:
        """Return the direction, as a point; the origin where there is none."""
        return self.space.project(vectors + self._shift)

    @property
    def diameter(self) -> float:
        """2 R sin(r/R)."""
        return 2 * self.longest * (1 + self._missed)

    def rounding(self, terms: float) -> float:
        """Rounding of a difference and of a length."""
        return self._unit * self._missed

    def pull(self) -> tuple[float, float]:
        """1/(2(1 + cos r)) and 2r - sin 2r, on the unit sphere."""
        turn = self.reach / self._unit
        return 1 / (2 * (1 + math.cos(turn))), self._unit * (2 * turn - math.sin(2 * turn))

    def error(self, t: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the largest angle by which noise turns a vector of at least the cap's height.

        The angle shrinks with the vector's length, so the shortest is the worst: atan2(t sin phi, height + t cos phi),
        phi the angle between noise and vector. Without a bound (height 0) that is phi: as good as a random point.
        """
        height = max(0.0, self.height - SLACK * self._unit)
        # (1 + cos phi)/2 is the share: it falls where phi grows.
        first, last = (2 * np.arctan2(np.sqrt(1 - x), np.sqrt(x)) for x in (high, low))
        if height == 0:
            return self._unit * np.broadcast_to(last, np.broadcast_shapes(t.shape, last.shape))
        ends = np.maximum(*(np.arctan2(t * np.sin(phi), height + t * np.cos(phi)) for phi in (first, last)))
        # In between it rises until the noise is at right angles to the sum, if the noise is the shorter one.
        ratio = np.minimum(t / height, 1.0)
        top = np.arccos(-ratio)
        return self._unit * np.where((first < top) & (top < last), np.arcsin(ratio), ends)


class _StoredVector(StoredNumbers):
    """The entries of a vector of R^(d+1)."""

    def __init__(self, space: Sphere) -> None:
        self._space = space
        self.size = space.dim + 1

    def stretch(self, radius: float) -> float:
        """Return 1: a chord is at most its arc."""
        return 1.0

    def with_noise(self, stored: Array, noise: FloatArray) -> Array:
        """Return sums, (n, d+1): of any length."""
        return stored + noise

    def carried(self, center: Array, stored: Array) -> Array:
        """Apply the orthogonal map that takes the origin to the centre."""
        return self._space.from_origin(center, stored)

    def away(self, center: Array, stored: Array, radius: float) -> tuple[float, float, float]:
        """Euclidean distances, which orthogonal maps leave alone."""
        return float(np.linalg.norm(stored - center)), radius, 0.0


def cap_ball(size: float, radius: float) -> tuple[float, float]:
    """Return the Euclidean ball about a cap of the sphere of radius `size`: its centre's height, and its radius.

    Examples
    --------
    >>> [round(x, 4) for x in cap_ball(1.0, 0.6)], cap_ball(1.0, math.pi)
    ([0.8253, 0.5646], (0.0, 1.0))
    """
    angle = radius / size
    if angle >= math.pi / 2:
        return 0.0, size
    return size * math.cos(angle), size * math.sin(angle)


def _to_frame(p: Array, v: Array) -> Array:
    """Coordinates of v in the frame b_j = e_j - w p_j / (1 + |p_0|), w = p + sign(p_0) e_0, at unit p."""
    sign = np.where(p[..., :1] >= 0, 1.0, -1.0)
    weight = ((p * v).sum(axis=-1, keepdims=True) + sign * v[..., :1]) / (1 + np.abs(p[..., :1]))
    return np.asarray(v[..., 1:] - p[..., 1:] * weight)


def _from_frame(p: Array, c: Array) -> Array:
    """Return the vector with coordinates c in the same frame."""
    sign = np.where(p[..., :1] >= 0, 1.0, -1.0)
    weight = (p[..., 1:] * c).sum(axis=-1, keepdims=True) / (1 + np.abs(p[..., :1]))
    head = -(p[..., :1] + sign) * weight
    return np.concatenate([head, c - p[..., 1:] * weight], axis=-1)
