"""Symmetric positive definite matrices under two metrics: affine-invariant and log-Euclidean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray, positive_int, shown
from dpmanifold.errors import Argument, Either, InvalidArgumentError, Message, Public
from dpmanifold.linalg import (
    ExactSum,
    affine_factor,
    affine_factors,
    clipped_log_sums,
    from_vecd,
    gradient_sums,
    inspect,
    log_euclidean_mean,
    logm,
    pack_triangles,
    symmetrize,
    symmetrize_batch,
    to_vecd,
    unpack_triangles,
    vecd_of_triangles,
    whitened_triangles,
)
from dpmanifold.linalg.cards import CardArray
from dpmanifold.linalg.log_sums import anchored_there
from dpmanifold.linalg.native.passes import LARGEST_SIZE, SMALLEST_SIZE
from dpmanifold.manifolds.base import POINT_TOLERANCE
from dpmanifold.manifolds.exact_matrices import ExactMatrices
from dpmanifold.manifolds.layouts import Layout, plain_layouts
from dpmanifold.manifolds.optional_properties import Area, StoredNumbers, sinh_ceiling
from dpmanifold.manifolds.spd_metrics import AffineInvariantMetric, LogEuclideanMetric
from dpmanifold.manifolds.symmetric_spaces import SymmetricSpace
from dpmanifold.manifolds.throughput import RawFrame, RawPoints, RawSums
from dpmanifold.manifolds.triangles import ORDERS, from_triangles
from dpmanifold.manifolds.vectors import EPS, vector_norm

_METRICS: dict[str, type[LogEuclideanMetric | AffineInvariantMetric]] = {
    "logeuclid": LogEuclideanMetric,
    "riemann": AffineInvariantMetric,
}

# A normal coordinate beyond this would overflow the exponential of some matrix it belongs to.
_LONGEST = 300.0


class SPD(SymmetricSpace):
    """SPD(k): positive definite k x k matrices, with pyRiemann's names for the two metrics.

    `metric="logeuclid"` (default) is flat: distance is the Frobenius norm of the difference of matrix
    logarithms. `metric="riemann"` is the affine-invariant metric, of curvature in [-1/2, 0]: congruences
    x -> a x a' are isometries. The origin is the identity. Frames come from the matrix logarithm's
    derivative on the first, from the Cholesky factor of the base point on the second.

    Parameters
    ----------
    k : size of the matrices
    metric : "logeuclid" or "riemann"

    Examples
    --------
    >>> space = SPD(2, metric="riemann")
    >>> round(float(space.dist(np.eye(2), np.diag([1.0, np.e]))), 12)
    1.0
    """

    injectivity_radius = math.inf
    is_hadamard = True
    farthest = 290.0  # a little before exponentials overflow
    smaller_ball = 'Choose a smaller ball, or metric="logeuclid".'

    def __init__(self, k: int, metric: str = "logeuclid") -> None:
        self.size = positive_int(k, "k")
        if metric not in _METRICS:
            raise InvalidArgumentError(
                'metric must be "logeuclid" or "riemann" (affine-invariant), got {got}.', got=shown(metric)
            )
        self.metric = metric
        self._geometry = _METRICS[metric](self.size)
        self.dim = self._geometry.dim
        self.shape = (self.size, self.size)
        self.is_flat = metric == "logeuclid" or self.size == 1
        self.curvature = (0.0, 0.0) if self.is_flat else (-0.5, 0.0)
        self.origin = np.eye(self.size)
        self.stored = _StoredMatrix(self)
        self.exact_points = None if self.is_flat else ExactMatrices(self)

    def _arguments(self) -> str:
        return str(self.size) if self.metric == "logeuclid" else f'{self.size}, metric="{self.metric}"'

    # ---------------------------------------------------------------- for people

    factor_of = "eigenvalue"
    table_reader = "matrices"

    @classmethod
    def spellings(cls) -> dict[str, dict[str, Any]]:
        """One name for each metric."""
        return {"spd": {}, "spd-riemann": {"metric": "riemann"}}

    @classmethod
    def sizes_of(cls, shape: tuple[int, ...], kind: str = "f") -> tuple[int, ...] | None:
        """The side of a matrix; of a row of numbers, of a whole one if they are a square, of a triangle if not."""
        if len(shape) != 1:
            return shape[:1] or None
        side = math.isqrt(shape[0])
        return (side if side * side == shape[0] else (math.isqrt(8 * shape[0] + 1) - 1) // 2,)

    def describe(self) -> str:
        """Matrices, and how they are compared."""
        metric = "log-Euclidean" if self.is_flat else "affine-invariant"
        return f"{self.size} × {self.size} symmetric positive definite matrices with the {metric} distance"

    @property
    def picture(self) -> str:
        """Ellipsoids where there are some."""
        return "tensors" if self.size in (2, 3) else "matrix"

    def layouts(self) -> list[Layout]:
        """Whole matrices as they are or row by row, or one triangle in one of several orders."""
        width = self.size * (self.size + 1) // 2
        triangle = Layout(
            (width,),
            f"{width} for the upper triangle",
            self.shape,
            read=lambda values, order: from_triangles(values, self, order),
            orders=tuple(ORDERS),
        )
        # Found by shape: one number is the triangle of a matrix of size 1, in any order.
        plain = plain_layouts(self.record_shapes)
        return [*plain, triangle] if self.size > 1 else [triangle, *plain]

    def read_point(self, numbers: Array) -> Array:
        """Take a single number for that multiple of the identity."""
        return float(numbers[0]) * np.eye(self.size) if numbers.shape == (1,) else super().read_point(numbers)

    # ---------------------------------------------------------------- points

    def _faults(self, array: Array) -> list[tuple[Array, Message]]:
        uneven, doubtful = inspect(array, POINT_TOLERANCE)
        singular, smallest = self._singular(array, doubtful)
        return [
            (
                uneven,
                Message("the matrix{where} is not symmetric. Use its symmetric part (a + a')/2 if that is meant."),
            ),
            (
                singular,
                Message(
                    "the matrix{where} is not positive definite to working precision (smallest eigenvalue "
                    "{smallest:.3g}). Use more observations per matrix, add a ridge, drop dependent channels, mask "
                    "empty voxels, or check the order of the columns ({order}).",
                    smallest=smallest,
                    order=Either("data.as_records, order=", Argument("order")),
                ),
            ),
        ]

    def _singular(self, array: Array, doubtful: Array) -> tuple[Array, float]:
        """Return which matrices have a smallest eigenvalue of k eps times the largest or less, and the first such one.

        The rule is applied, matrix by matrix, where a quick look left doubts.
        """
        singular = np.zeros(doubtful.shape, dtype=bool)
        suspects = symmetrize(array[doubtful])
        values = np.linalg.eigvalsh(suspects / _largest_entry(suspects)[:, None, None])
        bad = np.asarray(~(values[:, 0] > self.size * EPS * values[:, -1]))
        singular[doubtful] = bad
        first = values[bad, 0] * _largest_entry(suspects[bad])
        return singular, float(first[0]) if first.size else 0.0

    @property
    def has_card_passes(self) -> bool:
        """Up to the largest matrices that the kernels take."""
        return SMALLEST_SIZE <= self.size <= LARGEST_SIZE

    def project(self, p: object) -> Array:
        """Return the symmetric part."""
        return symmetrize_batch(self._array(p))

    def sphere_area(self) -> Area | None:
        """Ceiling t^(k-1) (sinh(at)/a)^N, N = k(k-1)/2, a = 1/sqrt(2(k-1)), of the affine metric (theory section 4)."""
        return super().sphere_area() if self.is_flat else sinh_ceiling(self.dim, *self.volume_ceiling())

    def volume_ceiling(self) -> tuple[int, float]:
        """Return k(k-1)/2 and 1/sqrt(2(k-1)) on the affine metric (theory section 4)."""
        if self.is_flat:
            return super().volume_ceiling()
        return self.size * (self.size - 1) // 2, 1 / math.sqrt(2 * (self.size - 1))

    def edge_directions(self) -> list[FloatArray]:
        """Return one eigenvalue alone, all alike, and two opposed: directions differ in how curved their planes are."""
        k = self.size
        first, isotropic, opposed = np.zeros((3, self.dim))
        first[0] = 1.0
        isotropic[:k] = 1 / math.sqrt(k)
        if k == 1:
            return [first]
        opposed[:2] = math.sqrt(0.5), -math.sqrt(0.5)
        return [first, isotropic, opposed]

    def _random(self, batch: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.exp_coords(self.origin, rng.standard_normal((*batch, self.dim)))

    def curvature_operator(self, second_moment: FloatArray) -> FloatArray:
        """0, or minus a quarter of the mean square of the commutator with v."""
        if isinstance(self._geometry, LogEuclideanMetric):
            return np.zeros((self.dim, self.dim))
        return self._geometry.curvature_operator(np.asarray(second_moment, dtype=np.float64))

    def extrinsic_mean(self, points: Array, weights: FloatArray) -> Array:
        """Return the log-Euclidean mean."""
        return log_euclidean_mean(points, weights)

    def dist(self, p: Array, q: Array) -> FloatArray:
        """Geodesic distance."""
        return self._geometry.dist(self._array(p), self._array(q, "q"))

    def to_origin(self, p: Array, q: Array) -> Array:
        """Subtract the logarithm of p, or apply the congruence with its inverse Cholesky factor."""
        return self._geometry.to_origin(self._array(p), self._array(q, "q"))

    def from_origin(self, p: Array, q: Array) -> Array:
        """Undo :meth:`to_origin`."""
        return self._geometry.from_origin(self._array(p), self._array(q, "q"))

    def log_coords(self, p: Array, q: Array) -> FloatArray:
        """Normal coordinates: a matrix logarithm, flattened by vecd."""
        return self._geometry.log_coords(self._array(p), self._array(q, "q"))

    def weighted_log(
        self, p: Array, q: Array, weights: FloatArray, reach: float = math.inf
    ) -> tuple[FloatArray, float]:
        """Weighted sum of matrix logarithms, flattened by vecd, without storing them; and the longest."""
        return self._geometry.weighted_log(self._array(p), self._array(q, "q"), weights, reach)

    def clipped_sums(
        self, records: Array, center: Array, radius: float, sums: ExactSum, group: Array | None = None
    ) -> RawSums | None:
        """Sum logarithms of raw matrices, log-Euclidean: the records are read where they are."""
        if not (self.is_flat and self._is_plain(records)):
            return None
        at = None if center is self.origin else logm(self._array(center))
        found = clipped_log_sums(records, at, radius, tolerance=POINT_TOLERANCE, sums=sums, group=group)
        return RawSums(found.clipped, found.faulty, found.clips is not None)

    def addends(self, c: FloatArray) -> FloatArray:
        """Return lower triangles, packed by rows."""
        return pack_triangles(from_vecd(c))

    def from_addends(self, total: FloatArray) -> FloatArray:
        """Return triangles flattened by vecd."""
        return vecd_of_triangles(total)

    def pack(self, points: Array) -> Array:
        """Return lower triangles, packed by rows."""
        return pack_triangles(points)

    def unpack(self, stored: Array) -> Array:
        """Return whole matrices."""
        return unpack_triangles(stored)

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
        """Exact sums of matrix logarithms, in one pass of the kernels: of triangles, where the space is curved."""
        if self.is_flat:
            return super().log_words(p, stored, bound, group=group, rows=rows, sums=sums)
        inverse, power = p if isinstance(p, tuple) else self.at(p)
        if len(inverse) == 1:
            inverse, power = inverse[0], int(power[0])
        return gradient_sums(stored, inverse, power, bound, group=group, rows=rows, sums=sums)

    def at(self, p: Array) -> Any:
        """Return inverse Cholesky factors, and the powers of two that were taken out of them."""
        if self.is_flat:
            return p
        if len(p) == 1:
            inverse, power = affine_factor(p[0])
            return inverse[None], np.array([power])
        return affine_factors(p)

    def log_coords_at(self, at: Any, chosen: Array, p: Array, q: Array) -> FloatArray:
        """Normal coordinates by the inverse factors that are known."""
        if not isinstance(self._geometry, AffineInvariantMetric):
            return self.log_coords(p, q)
        inverse, power = at
        return self._geometry.log_coords_by(inverse[chosen], power[chosen], self._array(q, "q"))

    def from_log_words(self, p: Array, sums: ExactSum) -> FloatArray:
        """Return triangles flattened by vecd; coordinates as they are, where the space is flat."""
        return sums.total() if self.is_flat else vecd_of_triangles(sums.total())

    def moved_records(
        self, records: Array, center: Array, radius: float, out: Array, sums: ExactSum | None = None
    ) -> RawPoints | None:
        """Whiten raw matrices, affine-invariant: the records are read where they are."""
        if self.is_flat or not self._is_plain(records):
            return None
        inverse, power = affine_factor(self._array(center))
        _, found = whitened_triangles(records, inverse, power, radius, tolerance=POINT_TOLERANCE, out=out, sums=sums)
        return RawPoints(found.clipped_places, found.faulty_places)

    def framed_records(self, records: Array) -> RawFrame | None:
        """Whiten raw matrices that lie on a card by their log-Euclidean mean: none of them is fetched."""
        if self.is_flat or not self._is_plain(records):
            return None
        found = anchored_there(records, POINT_TOLERANCE)
        if found is None:
            return None
        return RawFrame(found.odd, found.anchor, found.stored, vecd_of_triangles(found.sums.total()))

    def _is_plain(self, records: Array) -> bool:
        """Return whether the passes over raw records can read an array: of numbers, of this shape, without a mask."""
        plain = type(records) in (np.ndarray, np.memmap, CardArray) and records.dtype.kind in "fiu"
        return plain and records.shape[1:] == self.shape

    def exp_coords(self, p: Array, c: FloatArray) -> Array:
        """Return the matrix with normal coordinates `c` at p."""
        c = self._coordinates(c)
        if (vector_norm(c) > _LONGEST).any():
            raise InvalidArgumentError(
                "c must be at most {longest:g} long: the end point would overflow.", longest=Public(_LONGEST)
            )
        return self._geometry.exp_coords(self._array(p), c)

    def coords(self, p: Array, v: Array) -> FloatArray:
        """Coordinates of a symmetric matrix as a tangent vector."""
        return self._geometry.coords(self._array(p), symmetrize(self._array(v, "v")))

    def vector(self, p: Array, c: FloatArray) -> Array:
        """Return the symmetric matrix that is the tangent vector with coordinates `c`."""
        return self._geometry.vector(self._array(p), self._coordinates(c))

    def log_volume_density(self, c: FloatArray) -> FloatArray:
        """0, or the sum of log(sinh x / x) over pairs of eigenvalues, x half their difference."""
        if isinstance(self._geometry, LogEuclideanMetric):
            return super().log_volume_density(c)
        return self._geometry.log_volume_density(self._coordinates(c))

    def hessian_spectrum(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """1 on matrices that commute with the direction, and 1 or x coth x on the pairs."""
        if isinstance(self._geometry, LogEuclideanMetric):
            return super().hessian_spectrum(c)
        return self._geometry.hessian_spectrum(self._coordinates(c))

    def hessian_diameter(self, distance: float) -> float:
        """(x coth x - 1) sqrt(k), x = distance/sqrt 2; 0 where flat."""
        return 0.0 if self.is_flat else math.sqrt(self.size) * (self.hessian_bounds(distance)[1] - 1)

    def dist_error(self, center: Array, radius: float) -> float:
        """Rounding of logarithms of matrices as ill-conditioned as centre and distance allow."""
        values = np.linalg.eigvalsh(self._array(center, "center"))
        return self._geometry.dist_error(np.log(values), radius)

    def log_error(self, radius: float) -> float:
        """Rounding of logarithms of matrices in the ball about the identity."""
        return self._geometry.log_error(radius)


class _StoredMatrix(StoredNumbers):
    """The entries of a symmetric matrix, flattened by vecd."""

    def __init__(self, space: SPD) -> None:
        self._space = space
        self.size = space.dim

    def refusal(self, center: Array) -> str | None:
        """Return why not: congruences move log-Euclidean matrices only from multiples of the identity."""
        if self._space.is_flat and not np.allclose(center, center[0, 0] * np.eye(self._space.size)):
            return "on log-Euclidean matrices the baselines need a centre that is a multiple of the identity"
        return None

    def stretch(self, radius: float) -> float:
        """Return e^r: |V|_F is at most the largest eigenvalue times |V|_P, in the ball about the identity."""
        return math.exp(radius)

    def from_frame(self, point: Array) -> Array:
        """Return the matrix; of normal coordinates, where the space is flat."""
        return self._space.exp_coords(self._space.origin, point) if self._space.is_flat else point

    def with_noise(self, stored: Array, noise: FloatArray) -> Array:
        """Return symmetric matrices, (n, k, k): with eigenvalues of any sign."""
        return from_vecd(to_vecd(stored) + noise)

    def carried(self, center: Array, stored: Array) -> Array:
        """Apply the congruence with the centre's Cholesky factor."""
        factor = np.linalg.cholesky(center)
        return np.asarray(factor @ stored @ factor.T)

    def away(self, center: Array, stored: Array, radius: float) -> tuple[float, float, float]:
        """Frobenius norms after the congruence is undone: matrices of the ball are within exp(r) - 1."""
        undo = np.linalg.inv(np.linalg.cholesky(center))
        apart = float(np.linalg.norm(undo @ (stored - center) @ undo.T))
        return apart, math.expm1(radius), 16 * EPS * float(np.linalg.cond(center)) * apart


def _largest_entry(matrices: FloatArray) -> FloatArray:
    """Return the largest entry of each of n matrices in size, 1 where all are 0."""
    largest = np.abs(matrices).max(axis=(-1, -2), initial=0.0)
    return np.asarray(np.where(largest > 0, largest, 1.0))
