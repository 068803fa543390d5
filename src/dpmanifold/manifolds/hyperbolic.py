"""Hyperbolic space H^d of a given curvature, as the upper sheet of a hyperboloid in R^(d+1).

A point is x = (x_0, x_1, ..., x_d) with -x_0^2 + x_1^2 + ... + x_d^2 = 1/curvature and x_0 > 0. The
spatial entries decide the point; x_0 is recomputed from them, so that no point is off the sheet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from flint import arb

from dpmanifold._check import Array, FloatArray, positive_float, positive_int
from dpmanifold.errors import InvalidArgumentError, Message, Public
from dpmanifold.linalg.exact_sums import ExactSum, weighted_sum
from dpmanifold.linalg.vector_sums import HYPERBOLIC, completed_sums
from dpmanifold.manifolds.base import POINT_TOLERANCE
from dpmanifold.manifolds.coordinate_systems import ON_HYPERBOLOIDS, Coordinates
from dpmanifold.manifolds.exact_points import ExactPoints, norm, total
from dpmanifold.manifolds.symmetric_spaces import ConstantCurvature
from dpmanifold.manifolds.vectors import EPS, shorten, unit_direction, vector_norm

# Beyond this many curvature radii from the origin products of two points' entries would overflow. Noise stays below.
_FARTHEST, _NOISE_TO = 300.0, 290.0


class Hyperbolic(ConstantCurvature):
    """H^d in the hyperboloid model: points have shape (d+1,), the time-like entry first.

    The frame at p comes from the Lorentz boost that takes the origin to p.

    Parameters
    ----------
    d : dimension
    curvature : below 0

    Examples
    --------
    >>> h2 = Hyperbolic(2)
    >>> p = h2.exp_coords(h2.origin, [3.0, 0.0])
    >>> round(float(h2.dist(h2.origin, p)), 12)
    3.0
    """

    injectivity_radius = math.inf
    is_hadamard = True

    def __init__(self, d: int, curvature: float = -1.0) -> None:
        self.dim = positive_int(d, "d")
        if not isinstance(curvature, (int, float)) or not curvature < 0:
            raise InvalidArgumentError(
                "curvature must be below 0 on hyperbolic space, got {curvature!r}.", curvature=Public(curvature)
            )
        self._kappa = -positive_float(-curvature, "-curvature")
        self.unit = 1 / math.sqrt(-self._kappa)
        self.shape = (self.dim + 1,)
        self.is_flat = self.dim == 1  # a line, whatever the curvature is called
        self.curvature = (0.0, 0.0) if self.is_flat else (self._kappa, self._kappa)
        self.origin = self.unit * np.eye(self.dim + 1)[0]
        self.exact_points = _ExactCoordinates(self)

    def _arguments(self) -> str:
        return str(self.dim) if self._kappa == -1 else f"{self.dim}, curvature={self._kappa!r}"

    # ---------------------------------------------------------------- for people

    example = (2,)
    coordinates: ClassVar[Mapping[str, Coordinates]] = ON_HYPERBOLOIDS

    @classmethod
    def sizes_of(cls, shape: tuple[int, ...], kind: str = "f") -> tuple[int, ...] | None:
        """One less than the number of entries."""
        return (shape[0] - 1,) if shape else None

    def describe(self) -> str:
        """Points of hyperbolic space."""
        return f"points of hyperbolic space of dimension {self.dim}"

    # ---------------------------------------------------------------- points

    def _faults(self, array: Array) -> list[tuple[Array, Message]]:
        with np.errstate(over="ignore", invalid="ignore"):
            x = array / self.unit
            far = ~(vector_norm(x[..., 1:]) <= math.sinh(_FARTHEST))
            off = ~(np.abs(x[..., 0] - _time(x[..., 1:])[..., 0]) <= POINT_TOLERANCE * np.abs(x[..., 0]))
        return [
            (far, Message("the point{where} is too far from the origin for double precision. Rescale the data.")),
            (
                off,
                Message(
                    "the vector{where} is not on the hyperboloid x_0 = sqrt({square:.6g} + |x|^2). Put the time-like "
                    "entry first, or rebuild it from the others (space.project).",
                    square=Public(self.unit**2),
                ),
            ),
        ]

    def project(self, p: object) -> Array:
        """Recompute the time-like entry from the spatial ones."""
        spatial = self._array(p)[..., 1:]
        return np.concatenate([np.hypot(self.unit, vector_norm(spatial))[..., None], spatial], axis=-1)

    def _lift(self, spatial: Array) -> Array:
        return np.concatenate([_time(spatial), spatial], axis=-1) * self.unit

    def _random(self, batch: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.exp_coords(self.origin, self.unit * rng.standard_normal((*batch, self.dim)))

    @property
    def farthest(self) -> float:
        """Some curvature radii before entries overflow, whatever the dimension."""
        return _NOISE_TO * self.unit

    def _spatial(self, p: object, name: str = "p") -> Array:
        return self._array(p, name)[..., 1:] / self.unit

    def dist(self, p: Array, q: Array) -> FloatArray:
        """Geodesic distance from distances and directions seen from the origin: a sum without cancellation."""
        x, y = self._spatial(p), self._spatial(q, "q")
        a, b = vector_norm(x), vector_norm(y)
        # sinh^2(D/2) = sinh^2((alpha - beta)/2) + sinh(alpha) sinh(beta) sin^2(angle/2), sinh(alpha) = a.
        difference = ((x - y) * (x + y)).sum(axis=-1)
        scale = a * np.hypot(1.0, b) + b * np.hypot(1.0, a)
        along = np.sinh(np.arcsinh(difference / np.where(scale == 0, 1.0, scale)) / 2)
        chord = vector_norm(unit_direction(x, a) - unit_direction(y, b)) / 2
        across = np.sqrt(a) * np.sqrt(b) * chord
        return np.asarray(2 * self.unit * np.arcsinh(np.hypot(along, across)))

    def to_origin(self, p: Array, q: Array) -> Array:
        """Apply the inverse boost; of the difference, which is exact for close points."""
        x, y = self._spatial(p), self._spatial(q, "q")
        gap = y - x
        time = _time(x)
        gap_time = (gap * (x + y)).sum(axis=-1, keepdims=True) / (time + _time(y))
        weight = gap_time - (x * gap).sum(axis=-1, keepdims=True) / (1 + time)
        return self._lift(gap - x * weight)

    def from_origin(self, p: Array, q: Array) -> Array:
        """Apply the boost that takes the origin to p."""
        x, y = self._spatial(p), self._spatial(q, "q")
        weight = _time(y) + (x * y).sum(axis=-1, keepdims=True) / (1 + _time(x))
        return self._lift(y + x * weight)

    def log_coords(self, p: Array, q: Array) -> FloatArray:
        """Normal coordinates, read off after the boost to the origin."""
        y = self._spatial(self.to_origin(p, q))
        length = vector_norm(y)
        return unit_direction(y, length) * (np.arcsinh(length) * self.unit)[..., None]

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
        """Exact sums of normal coordinates at curvature -1, in one pass of the kernels."""
        return completed_sums(
            HYPERBOLIC, self.unit, p, stored, bound, self.log_coords, group=group, rows=rows, sums=sums
        )

    def from_log_words(self, p: Array, sums: ExactSum) -> FloatArray:
        """Return sums of normal coordinates."""
        return np.asarray(sums.total() * self.unit)

    def exp_coords(self, p: Array, c: FloatArray) -> Array:
        """Follow the geodesic from the origin, then boost."""
        c = self._coordinates(c)
        length = vector_norm(c)
        if (length > _FARTHEST * self.unit).any():
            raise InvalidArgumentError(
                "c must be at most {farthest:.6g} long: the end point overflows.",
                farthest=Public(_FARTHEST * self.unit),
            )
        y = unit_direction(c, length) * np.sinh(length / self.unit)[..., None]
        return self.from_origin(p, self._lift(y))

    def coords(self, p: Array, v: Array) -> FloatArray:
        """Coordinates in the boosted frame."""
        x, v = self._spatial(p), self._array(v, "v")
        return np.asarray(v[..., 1:] - x * v[..., :1] / (1 + _time(x)))

    def vector(self, p: Array, c: FloatArray) -> Array:
        """Return the combination of the boosted frame's vectors."""
        x, c = self._spatial(p), self._coordinates(c)
        head = (x * c).sum(axis=-1, keepdims=True)
        return np.concatenate([head, c + x * head / (1 + _time(x))], axis=-1)

    def extrinsic_mean(self, points: Array, weights: FloatArray) -> Array:
        """Return the mean vector in Minkowski space, scaled back to the sheet."""
        mean = weighted_sum(points, weights) / self.unit
        spatial = vector_norm(mean[..., 1:])
        return self._lift(mean[..., 1:] / np.sqrt((mean[..., 0] - spatial) * (mean[..., 0] + spatial)))

    def dist_error(self, center: Array, radius: float) -> float:
        """Rounding grows with the distance from the origin: the hyperboloid's entries do."""
        a = float(vector_norm(self._spatial(center)))
        reach = radius / self.unit
        far = math.asinh(a) + reach
        if far > _FARTHEST:
            return math.inf
        size = 1 + reach + math.sqrt(a) * math.sqrt(math.sinh(far))
        return (4 * self.dim + 32) * EPS * size * self.unit

    def log_error(self, radius: float) -> float:
        """Rounding of the boost: the product of both points' entries."""
        reach = radius / self.unit
        return math.inf if reach > _FARTHEST else (8 * self.dim + 64) * EPS * math.cosh(reach) ** 2 * self.unit


class _ExactCoordinates(ExactPoints):
    """Normal coordinates at the origin. Of a footpoint the spatial entries count, which decide the other one."""

    def __init__(self, space: Hyperbolic) -> None:
        super().__init__(space)
        self.size = self.normals = space.dim

    def moved(self, footpoint: Array, distance: arb, gaussian: list[arb]) -> list[arb]:
        """Follow the direction of the normal numbers from the origin, then apply the boost to the footpoint."""
        radius = arb(float(self.space.origin[0]))
        x = [arb(entry) / radius for entry in footpoint[1:].tolist()]
        sine, cosine = (distance / radius).sinh_cosh()
        ahead = sine / norm(gaussian)
        y = [ahead * z for z in gaussian]
        time = (1 + total([a * a for a in x])).sqrt()
        weight = cosine + total([a * b for a, b in zip(x, y, strict=True)]) / (1 + time)
        z = [b + a * weight for a, b in zip(x, y, strict=True)]
        length = norm(z)
        stretch = radius * length.asinh() / length
        return [entry * stretch for entry in z]

    def largest(self, radius: float) -> float:
        """Return the radius."""
        return radius

    def place(self, numbers: FloatArray) -> Array:
        """Return the exponential, of numbers shortened to what doubles hold."""
        return self.space.exp_coords(self.space.origin, shorten(numbers, self.space.farthest))


def _time(spatial: Array) -> Array:
    """Return x_0 of unit-hyperboloid points from their spatial entries, keeping the last axis."""
    return np.hypot(1.0, vector_norm(spatial))[..., None]
