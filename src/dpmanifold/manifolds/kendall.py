"""Kendall's space of planar shapes: k landmarks in the plane, up to translation, scale and rotation.

A configuration is a complex vector z of k landmarks; centred and of unit norm it is a *pre-shape*, and a
shape is a pre-shape up to a unit complex factor. The space is the complex projective space CP^(k-2) with
curvature between 1 and 4. Any representative stands for its shape; distances, coordinates and Hessians do
not depend on which.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from flint import acb, arb

from dpmanifold._check import Array, FloatArray, numeric_array, positive_int
from dpmanifold.errors import InvalidDataError, Message, Public
from dpmanifold.linalg import from_vecd, outer_products
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.linalg.vector_sums import SHAPE, completed_sums
from dpmanifold.manifolds.base import POINT_TOLERANCE
from dpmanifold.manifolds.embedding import SLACK, Embedding
from dpmanifold.manifolds.exact_points import ExactPoints, total
from dpmanifold.manifolds.layouts import Layout, plain_layouts
from dpmanifold.manifolds.optional_properties import RankOne
from dpmanifold.manifolds.symmetric_spaces import SymmetricSpace
from dpmanifold.manifolds.vectors import EPS, complete_basis, u_cot_u, unit_direction, vector_norm

# A configuration whose centred norm is below this share of its entries is one point to working precision.
_COINCIDENT = 64 * EPS


# Shapes whose products are held at a time.
_MOMENT_BLOCK = 1024


class KendallShapes(SymmetricSpace):
    """Planar shapes of k landmarks. Points are complex pre-shapes (k,): centred, of unit norm.

    Real landmarks of shape (..., k, 2) are taken wherever points are: they are read as x + iy, centred
    and scaled. Complex arrays must already be pre-shapes (`space.project` makes them so). The origin is
    the regular k-gon.

    Parameters
    ----------
    k : number of landmarks, at least 3

    Examples
    --------
    >>> triangles = KendallShapes(3)
    >>> right = triangles.project([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> moved = triangles.project([[5.0, 5.0], [5.0, 7.0], [3.0, 5.0]])     # shifted, doubled, turned
    >>> bool(triangles.dist(right, moved) < 1e-15)
    True
    """

    dtype = np.dtype(np.complex128)
    injectivity_radius = diameter = math.pi / 2
    is_flat = False
    is_hadamard = False
    gaussian_proof = "rank-one"

    def __init__(self, k: int) -> None:
        self.landmarks = positive_int(k, "k", minimum=3)
        self.dim = 2 * self.landmarks - 4
        self.shape = (self.landmarks,)
        self.curvature = (4.0, 4.0) if self.landmarks == 3 else (1.0, 4.0)
        self._helmert = helmert_rows(self.landmarks)
        angles = 2 * np.pi * np.arange(self.landmarks) / self.landmarks
        self.origin = self.project(np.exp(1j * angles))
        # A unitary map that takes the origin's Helmert coordinates to the first basis vector: the shapes
        # are then projective space with its usual base point.
        self._turn = np.conj(complete_basis(self._helmert @ self.origin).T) @ self._helmert
        # Shapes of triangles are a sphere of radius 1/2.
        self.rank_one = RankOne(1.0, 0.5, self.dim - 2, 1, "complex")
        self.exact_points = _ExactShape(self)

    def _arguments(self) -> str:
        return str(self.landmarks)

    # ---------------------------------------------------------------- for people

    example = (8,)
    picture = "shape"
    table_reader = "landmarks"
    natural_center = None  # no shape is the middle of all

    @classmethod
    def spellings(cls) -> dict[str, dict[str, Any]]:
        """By the name of the man."""
        return {"kendall": {}}

    @classmethod
    def sizes_of(cls, shape: tuple[int, ...], kind: str = "f") -> tuple[int, ...] | None:
        """As many as there are pairs of real numbers, x1, y1, x2, y2, ..., or complex ones."""
        if not shape:
            return None
        return (shape[0] // 2 if len(shape) == 1 and kind != "c" else shape[0],)

    def describe(self) -> str:
        """Shapes of so many landmarks."""
        return f"shapes of {self.landmarks} landmarks in the plane"

    @cached_property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        """Real landmarks (k, 2), or a complex pre-shape (k,)."""
        return {"f": (self.landmarks, 2), "c": self.shape}

    def layouts(self) -> list[Layout]:
        """Landmarks or pre-shapes as they are, or 2k columns."""
        k = self.landmarks
        real, flat, preshapes = plain_layouts(self.record_shapes)
        return [real, replace(flat, words=f"{2 * k} columns x1, y1, x2, y2, ..."), preshapes]

    # ---------------------------------------------------------------- points

    def _array(self, p: object, name: str = "p") -> Array:
        """Return pre-shapes: landmarks are centred and scaled, complex arrays are taken as they are."""
        complex_form = self._configuration(p, name)
        return self._preshape(complex_form) if np.asarray(p).dtype.kind != "c" else complex_form

    def _configuration(self, p: object, name: str = "p") -> Array:
        """Return landmarks as complex numbers, of any position and size."""
        return super()._array(self._as_complex(p), name)

    def _as_complex(self, p: object) -> Array:
        """Read real (..., k, 2) as x + iy; leave everything else alone."""
        array = numeric_array(p, "the landmarks")
        if array.dtype.kind == "f" and array.ndim >= 2 and array.shape[-2:] == (self.landmarks, 2):
            return np.asarray(np.ascontiguousarray(array).view(np.complex128)[..., 0])
        return array

    def shape_hint(self, shape: tuple[int, ...]) -> str | None:
        """Return what to do about landmarks in space, besides what is said of every array.

        Examples
        --------
        >>> KendallShapes(8).shape_hint((20, 8, 3))
        'These are shapes in the plane: of landmarks x, y, z give two coordinates, seen from one side.'
        """
        if shape[-2:] == (self.landmarks, 3) or shape[1:] == (3 * self.landmarks,):
            return "These are shapes in the plane: of landmarks x, y, z give two coordinates, seen from one side."
        return super().shape_hint(shape)

    def _entries_reason(self, p: object, first: int = 0) -> tuple[Array | None, Message | None]:
        """Read landmarks (..., k, 2) as pre-shapes, those without a shape as zeros; take complex arrays as they are."""
        try:
            raw = numeric_array(p, "it")
        except InvalidDataError as problem:
            return None, problem.message
        if raw.dtype.kind == "c":
            return super()._entries_reason(raw, first)
        if raw.shape[-2:] != (self.landmarks, 2):
            return None, Message(
                "expected real landmarks (..., {k}, 2) or complex pre-shapes (..., {k}), got a real array of shape "
                "{got}. {hint}",
                k=Public(self.landmarks),
                got=Public(raw.shape),
                hint=Public(self._form_hint(raw, "Give x and y as the last axis.")),
            )
        array, reason = super()._entries_reason(self._as_complex(raw), first)
        if array is None:
            return array, reason
        # One record that is not finite must not change how the others are read.
        finite = np.asarray(np.isfinite(array).all(axis=-1))[..., None]
        usable = np.where(finite, array, 0.0)
        shaped = np.where(self.degenerate(usable)[..., None], 0.0, self._preshape(usable))
        return np.where(finite, shaped, np.nan), reason

    def _faults(self, array: Array) -> list[tuple[Array, Message]]:
        degenerate = self.degenerate(array)
        size = vector_norm(array)
        off = ~(np.abs(size - 1) <= POINT_TOLERANCE) | ~(np.abs(unit_sized(array).sum(axis=-1)) <= POINT_TOLERANCE)
        return [
            (degenerate, Message("all landmarks coincide{where}, which has no shape. Remove these records.")),
            (
                off,
                Message(
                    "the configuration{where} is not centred with unit norm. Make pre-shapes with space.project, or "
                    "give real landmarks (..., k, 2)."
                ),
            ),
        ]

    def degenerate(self, p: Array) -> Array:
        """Return which configurations have all landmarks in one place."""
        scaled = unit_sized(self._configuration(p))
        return np.asarray(vector_norm(centre(scaled)) <= _COINCIDENT)

    def project(self, p: object) -> Array:
        """Centre and scale configurations, complex (..., k) or real (..., k, 2); pre-shapes stay as they are."""
        return self._preshape(self._configuration(p))

    def _preshape(self, array: Array) -> Array:
        rounding = (self.landmarks + 8) * EPS
        # Scaled before anything else, by a power of two and as real numbers: nothing overflows, nothing is rounded.
        scaled = unit_sized(array)
        # Centred twice: far from the origin the first mean is rounded by as much as the shape is large.
        centred = centre(unit_sized(centre(scaled)))
        size = vector_norm(array)
        exact = (np.abs(size - 1) <= rounding) & (np.abs(scaled.sum(axis=-1)) <= rounding)
        return np.where(exact[..., None], array, unit_direction(centred, vector_norm(centred)))

    def to_landmarks(self, p: Array) -> FloatArray:
        """Return shapes as landmarks (..., k, 2), centred, of unit size and turned to have their longest axis level.

        Examples
        --------
        >>> KendallShapes(4).to_landmarks(KendallShapes(4).origin).shape
        (4, 2)
        """
        z = self._array(p)
        # The sum of squares of a shape turns twice as fast as the shape: halving its angle finds the long axis.
        moment = times(z, z).sum(axis=-1, keepdims=True)
        level = times(z, np.conj(np.sqrt(unit_phase(moment))))
        return np.stack([level.real, level.imag], axis=-1)

    def _random(self, batch: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.project(rng.standard_normal((*batch, self.landmarks, 2)))

    def _turned(self, p: object, name: str = "p") -> Array:
        """Coordinates in C^(k-1) in which the origin is the first basis vector."""
        return self._turn_each(self._array(p, name))

    def _turn_each(self, z: Array) -> Array:
        # One small product per configuration: a result does not depend on its batch.
        return np.asarray((self._turn @ z[..., None])[..., 0])

    def _unturned(self, y: Array) -> Array:
        return np.asarray((np.conj(self._turn.T) @ y[..., None])[..., 0])

    def dist(self, p: Array, q: Array) -> FloatArray:
        """Geodesic distance in [0, pi/2], from both legs of the triangle: exact for close shapes."""
        p, q = self._array(p), self._array(q, "q")
        real = (p.real * q.real + p.imag * q.imag).sum(axis=-1)
        imag = (p.real * q.imag - p.imag * q.real).sum(axis=-1)
        across_real = q.real - (real[..., None] * p.real - imag[..., None] * p.imag)
        across_imag = q.imag - (real[..., None] * p.imag + imag[..., None] * p.real)
        across = np.hypot(vector_norm(across_real), vector_norm(across_imag))
        return np.asarray(np.arctan2(across, np.hypot(real, imag)))

    def to_origin(self, p: Array, q: Array) -> Array:
        """Apply the unitary map that takes p to the origin, to the representative of q aligned with p."""
        return self._unturned(self._moved(p, q))

    def _moved(self, p: Array, q: Array) -> Array:
        x, y = self._turned(p), self._turned(q, "q")
        overlap = times(np.conj(x), y).sum(axis=-1, keepdims=True)
        aligned = times(y, np.conj(unit_phase(overlap)))
        return np.concatenate([modulus(overlap) + 0j, to_unitary_frame(x, aligned - x)], axis=-1)

    def from_origin(self, p: Array, q: Array) -> Array:
        """Apply the unitary map that takes the origin to p, to the representative of q aligned with the origin.

        How q was turned must not show: a draw about a private mean comes aligned with that mean.
        """
        x, y = self._turned(p), self._turned(q, "q")
        overlap = y[..., :1]
        across = times(y[..., 1:], np.conj(unit_phase(overlap)))
        return self._unturned(times(modulus(overlap) + 0j, x) + from_unitary_frame(x, across))

    def log_coords(self, p: Array, q: Array) -> FloatArray:
        """Normal coordinates: real parts, then imaginary parts."""
        moved = self._moved(p, q)
        length = vector_norm(moved[..., 1:])
        angle = np.arctan2(length, moved[..., 0].real)
        return np.asarray(as_real(unit_direction(moved[..., 1:], length)) * angle[..., None])

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
        """Exact sums of horizontal vectors, in one pass of the kernels."""
        return completed_sums(
            SHAPE, 1.0, p, stored, bound, self.log, numbers=as_doubles, group=group, rows=rows, sums=sums
        )

    def from_log_words(self, p: Array, sums: ExactSum) -> FloatArray:
        """Turn sums of vectors into the frame."""
        return self.coords(p, sums.total().view(np.complex128))

    def exp_coords(self, p: Array, c: FloatArray) -> Array:
        """Follow the horizontal great circle."""
        x, u = self._turned(p), as_pairs(self._coordinates(c))
        angle = vector_norm(u)[..., None]
        across = from_unitary_frame(x, scale_by(u, np.sinc(angle / np.pi)))
        return self.project(self._unturned(scale_by(x, np.cos(angle)) + across))

    def coords(self, p: Array, v: Array) -> FloatArray:
        """Coordinates in the frame at the shape (turning p and v together leaves them unchanged)."""
        return as_real(to_unitary_frame(self._turned(p), self._turn_each(self._configuration(v, "v"))))

    def vector(self, p: Array, c: FloatArray) -> Array:
        """Return the horizontal vector with coordinates `c`."""
        return self._unturned(from_unitary_frame(self._turned(p), as_pairs(self._coordinates(c))))

    def hessian_spectrum(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """1 along the geodesic, 2t cot 2t along i times it, t cot t across both."""
        c = self._coordinates(c)
        t = vector_norm(c)
        m = self.dim // 2
        basis = complete_basis(as_pairs(unit_direction(c, t)))
        values = np.broadcast_to(u_cot_u(t)[..., None], c.shape).copy()
        values[..., 0] = 1.0
        values[..., m] = u_cot_u(2 * t)
        # Column j of the unitary basis gives two real directions, itself and i times itself.
        directions = np.concatenate([basis, 1j * basis], axis=-1)
        return values, np.concatenate([directions.real, directions.imag], axis=-2)

    def hessian_diameter(self, distance: float) -> float:
        """(1 - 2t cot 2t) max(sqrt 2, sqrt(1 + (d - 2) q^2)), q = (1 - t cot t)/(1 - 2t cot 2t)."""
        steep = 1 - self.hessian_bounds(distance)[0]
        gentle = 1 - float(u_cot_u(np.asarray(distance)))
        return max(math.sqrt(2) * steep, math.hypot(steep, math.sqrt(self.dim - 2) * gentle))

    def curvature_operator(self, second_moment: FloatArray) -> FloatArray:
        """Trace I - M + 3 J M J', J multiplication by i: curvature 4 along i times a direction, 1 across both."""
        moment = np.asarray(second_moment, dtype=np.float64)
        m = self.dim // 2
        turned = np.block([[moment[m:, m:], -moment[m:, :m]], [-moment[:m, m:], moment[:m, :m]]])
        return np.asarray(np.trace(moment) * np.eye(self.dim) - moment + 3 * turned)

    def embedding(self, radius: float) -> Embedding:
        """Return z z*, a Hermitian matrix."""
        return ShapeEmbedding(self, radius)

    def extrinsic_mean(self, points: Array, weights: FloatArray) -> Array:
        """Return the leading eigenvector of the mean of z z*: the full Procrustes mean."""
        size = points.shape[-1]
        sums = ExactSum(2 * size * size, float(np.max(weights)))  # entries of shapes are at most 1 in size
        for start in range(0, len(points), _MOMENT_BLOCK):
            few = points[start : start + _MOMENT_BLOCK]
            products = few[:, :, None] * np.conj(few)[:, None, :] * weights[start : start + _MOMENT_BLOCK, None, None]
            sums.add(products.reshape(len(few), -1).view(np.float64))
        moment = sums.total().view(np.complex128).reshape(size, size)
        return self.project(np.linalg.eigh(moment)[1][:, -1])

    def dist_error(self, center: Array, radius: float) -> float:
        """Rounding of an inner product and of a norm; it does not depend on the radius."""
        return (8 * self.landmarks + 64) * EPS

    def log_error(self, radius: float) -> float:
        """Rounding of the unitary maps and of the angle."""
        return (32 * self.landmarks + 128) * EPS


class _ExactShape(ExactPoints):
    """Landmarks x, y in turn of that representative whose inner product with the origin is real and above 0.

    It is a function of the drawn shape, and not of how the footpoint was turned, which no promise covers.
    """

    def moved(self, footpoint: Array, distance: arb, gaussian: list[arb]) -> list[arb]:
        """Return cos(u) p + sin(u) w, aligned, p the footpoint centred and scaled, w a uniform horizontal vector."""
        p = _centred([acb(z.real, z.imag) for z in footpoint.tolist()])
        size = _size(p)
        p = [z / size for z in p]
        g = _centred([acb(x, y) for x, y in zip(gaussian[::2], gaussian[1::2], strict=True)])
        along = _inner(p, g)
        tangent = [w - along * z for z, w in zip(p, g, strict=True)]
        sine, cosine = distance.sin_cos()
        ahead = sine / _size(tangent)
        drawn = _aligned([cosine * z + ahead * w for z, w in zip(p, tangent, strict=True)], self.space.origin)
        return [part for z in drawn for part in (z.real, z.imag)]


def _aligned(z: list[acb], origin: Array) -> list[acb]:
    """Turn a pre-shape so that its inner product with the origin is real and above 0 (it is 0 with probability 0)."""
    overlap = _inner([acb(entry.real, entry.imag) for entry in origin.tolist()], z)
    turn = overlap.conjugate() / abs(overlap)
    return [turn * entry for entry in z]


def _centred(z: list[acb]) -> list[acb]:
    mean = sum(z, start=acb(0)) / len(z)
    return [entry - mean for entry in z]


def _inner(z: list[acb], w: list[acb]) -> acb:
    return sum((a.conjugate() * b for a, b in zip(z, w, strict=True)), start=acb(0))


def _size(z: list[acb]) -> arb:
    return total([a.real * a.real + a.imag * a.imag for a in z]).sqrt()


class ShapeEmbedding(Embedding):
    """The matrix z z* less its trace, in C^(k-1) with the origin as first basis vector; real, in an orthonormal basis.

    Diagonals against Helmert rows, then real and imaginary parts above the diagonal times sqrt 2.
    """

    longest, farthest = 1.0, math.pi / 2

    def __init__(self, space: KendallShapes, radius: float) -> None:
        super().__init__(space, radius)
        self.rows = space.landmarks - 1
        self.size = self.rows**2 - 1
        column = 2 * (self.rows - 1)
        self.shares = column / 2, (self.size - column) / 2
        # The two largest eigenvalues of an average are at least this far apart; without a bound on the whole space.
        self._gap = max(0.0, math.cos(2 * self.reach))
        self._one = (4 * self.rows + 40) * EPS  # what rounding does to one record's matrix
        self._contrasts = helmert_rows(self.rows)
        self._above = np.triu_indices(self.rows, 1)

    def images(self, points: Array) -> FloatArray:
        """Return vecd of v v', v real and imaginary parts: of the origin's coordinate, real, then of the others."""
        c = self.logarithms(points)
        t = vector_norm(c)[:, None]
        across = np.sinc(t / np.pi) * c
        half = self.rows - 1
        return outer_products(np.hstack([np.cos(t), across[:, :half], across[:, half:]]))

    def coordinates(self, average: FloatArray) -> FloatArray:
        """Return the average matrix in coordinates."""
        moment = from_vecd(average)
        real, skew = moment[: self.rows, : self.rows].copy(), np.zeros((self.rows, self.rows))
        # z = x + iy with y_0 = 0: the real part of z z* is xx' + yy', the imaginary part yx' - xy'.
        real[1:, 1:] += moment[self.rows :, self.rows :]
        skew[1:, :] = moment[self.rows :, : self.rows]
        skew = skew - skew.T
        root = math.sqrt(2)
        return np.concatenate(
            [self._contrasts @ np.diag(real), root * real[self._above], root * skew[self._above]],
        )

    def place(self, vectors: FloatArray) -> Array:
        """Return the shape of the top eigenvector; the origin where all entries are 0."""
        flat = vectors.reshape(-1, self.size)
        # Scaled by a power of two, so that nothing overflows: eigenvectors stay as they are.
        flat = np.ldexp(flat, -np.frexp(np.abs(flat).max(axis=1, keepdims=True))[1])
        pairs = len(self._above[0])
        diagonal, real, imaginary = np.split(flat, [self.rows - 1, self.rows - 1 + pairs], axis=1)
        matrix = np.zeros((len(flat), self.rows, self.rows), dtype=np.complex128)
        matrix[:, *self._above] = (real + 1j * imaginary) / math.sqrt(2)
        matrix += np.conj(matrix.transpose(0, 2, 1))
        index = np.arange(self.rows)
        matrix[:, index, index] = diagonal @ self._contrasts
        matrix[~flat.any(axis=1), 0, 0] = 1.0
        y = np.linalg.eigh(matrix)[1][:, :, -1]
        size = np.abs(y[:, :1])
        y = y * np.where(size > 0, np.conj(y[:, :1]) / np.where(size > 0, size, 1.0), 1.0)
        length = vector_norm(y[:, 1:])
        c = unit_direction(y[:, 1:], length) * np.arctan2(length, size[:, 0])[:, None]
        points = self.space.exp_coords(self.space.origin, np.hstack([c.real, c.imag]))
        return points.reshape(*vectors.shape[:-1], *self.space.shape)

    @property
    def diameter(self) -> float:
        """Sqrt 2 sin 2r."""
        return math.sqrt(2) * math.sin(min(2 * self.reach, math.pi / 2)) + 2 * self._one

    def rounding(self, terms: float) -> float:
        """Rounding of one record's matrix, of its logarithm, and of the matrix product that averages them."""
        product = (2 * terms + 8 * math.pow(self.rows, 1.5)) * EPS
        return product + self._one + 2 * self.space.log_error(self.reach)

    def pull(self) -> tuple[float, float]:
        """1/(4 cos^2 r) and 2r - sin(4r)/2."""
        return 1 / (4 * math.cos(self.reach) ** 2), 2 * self.reach - math.sin(4 * self.reach) / 2

    def error(self, t: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the largest angle, up to pi/2, by which noise turns the top eigenvector.

        With the share s of the noise's squared length t^2 in the eigenvector's column: tan of twice the angle is at
        most sqrt(2 s) t/(gap - sqrt(2 (1 - s)) t).
        """
        left = self._gap - SLACK - np.sqrt(2 * (1 - low)) * t
        return np.where(left > 0, np.arctan2(np.sqrt(2 * high) * t, left) / 2, np.pi / 2)


# -------------------------------------------------------------------- arithmetic with complex vectors

# Complex numbers are multiplied and divided by their real and imaginary parts, never as complex arrays: numpy's complex
# loops round in one of two ways, by where an entry lies in memory, and a record's image would depend on its neighbours.


def unit_sized(z: Array) -> Array:
    """Scale configurations by a power of two so that their largest entry is between 1/2 and 1 (0 stays 0)."""
    parts = np.ascontiguousarray(z).view(np.float64)
    exponent = np.frexp(np.abs(parts).max(axis=-1, keepdims=True))[1]
    return np.asarray(np.ldexp(parts, -exponent).view(np.complex128))


def centre(z: Array) -> Array:
    """Subtract the mean along the last axis."""
    return np.asarray(z - z.mean(axis=-1, keepdims=True))


def helmert_rows(k: int) -> FloatArray:
    """Orthonormal rows (k-1, k), each orthogonal to the constant vector."""
    rows = np.tril(np.ones((k - 1, k)))
    steps = np.arange(1, k)
    rows[np.arange(k - 1), steps] = -steps
    return np.asarray(rows / np.sqrt(steps * (steps + 1))[:, None])


def times(a: Array, b: Array) -> Array:
    """Multiply complex arrays, batches broadcast, in real arithmetic (the module's docstring says why)."""
    real = a.real * b.real - a.imag * b.imag
    result = np.empty(real.shape, dtype=np.complex128)
    result.real = real
    result.imag = a.real * b.imag + a.imag * b.real
    return result


def scale_by(z: Array, factor: FloatArray) -> Array:
    """Multiply complex vectors by real numbers (..., 1)."""
    return np.asarray((np.ascontiguousarray(z).view(np.float64) * factor).view(np.complex128))


def modulus(z: Array) -> FloatArray:
    """Return |z|, entry by entry."""
    return np.asarray(np.hypot(z.real, z.imag))


def unit_phase(z: Array) -> Array:
    """Return z/|z|, and 1 where z = 0."""
    size = modulus(z)
    divisor = np.where(size > 0, size, 1.0)
    result = np.empty(z.shape, dtype=np.complex128)
    result.real = np.where(size > 0, z.real / divisor, 1.0)
    result.imag = np.where(size > 0, z.imag / divisor, 0.0)
    return result


def as_real(c: Array) -> FloatArray:
    """Return real parts, then imaginary parts, along the last axis."""
    return np.concatenate([c.real, c.imag], axis=-1)


def as_pairs(c: FloatArray) -> Array:
    """Undo :func:`as_real`."""
    half = c.shape[-1] // 2
    return np.asarray(c[..., :half] + 1j * c[..., half:])


def to_unitary_frame(x: Array, v: Array) -> Array:
    """Complex coordinates of v in the unitary frame at the unit vector x.

    With the phase of x_0 divided out of both, the frame is b_j = e_j - w conj(x_j)/(1 + x_0), w = x + e_0.
    """
    turn = np.conj(unit_phase(x[..., :1]))
    x, v = times(x, turn), times(v, turn)
    overlap = times(np.conj(x), v).sum(axis=-1, keepdims=True) + v[..., :1]
    return np.asarray(v[..., 1:] - times(x[..., 1:], scale_by(overlap, 1 / (1 + x[..., :1].real))))


def from_unitary_frame(x: Array, c: Array) -> Array:
    """Return the vector with complex coordinates c in the same frame."""
    phase = unit_phase(x[..., :1])
    x = times(x, np.conj(phase))
    overlap = times(np.conj(x[..., 1:]), c).sum(axis=-1, keepdims=True)
    weight = scale_by(overlap, 1 / (1 + x[..., :1].real))
    first = -times(x[..., :1] + 1, weight)
    return times(np.concatenate([first, c - times(x[..., 1:], weight)], axis=-1), phase)


def as_doubles(z: Array) -> FloatArray:
    """Return complex vectors as real and imaginary parts in turn, (..., k) -> (..., 2k).

    >>> as_doubles(np.array([1 + 2j, 3j]))
    array([1., 2., 0., 3.])
    """
    return np.ascontiguousarray(z).view(np.float64)
