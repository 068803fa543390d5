"""Spaces whose reflections in points are isometries: volumes and Hessians follow from the curvature at one point.

Those of constant curvature, spheres, real projective and hyperbolic spaces, follow from four facts.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.optional_properties import Area, RankOne
from dpmanifold.manifolds.vectors import complete_basis, u_cot_u, u_coth_u, unit_direction, vector_norm


class SymmetricSpace(Manifold):
    """A space that derives from :meth:`~Manifold.curvature_operator` what others state.

    Along a geodesic with velocity v curvature stays w -> R(w, v)v, whose eigenvalues k have the volume density
    sin(s)/s and the Hessian s cot(s), s = sqrt(k). Slow, as matrices of many dimensions are: a space that has formulas
    states them, and laws compare the two.
    """

    def sphere_area(self) -> Area | None:
        """That of the rank-one facts, where there are some."""
        return super().sphere_area() if self.is_flat or self.rank_one is None else self.rank_one.area()

    def log_volume_density(self, c: FloatArray) -> FloatArray:
        """Sum of log(sin s/s) over the curvatures; minus infinity where geodesics end."""
        c = self._coordinates(c)
        length = vector_norm(c)
        if self.is_flat:
            return np.zeros(length.shape)
        if self.rank_one is not None:
            return self.rank_one.log_volume(length)
        values = [curvatures(self, v)[0] for v in c.reshape(-1, self.dim)]
        found = np.array([log_sinc_of_root(x).sum() for x in values]).reshape(length.shape)
        return np.where(length < self.injectivity_radius, found, -np.inf)

    def hessian_spectrum(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return s cot(s) for the curvatures, and their directions."""
        c = self._coordinates(c)
        if self.is_flat:
            return np.ones(c.shape), np.broadcast_to(np.eye(self.dim), (*c.shape, self.dim))
        found = [curvatures(self, v) for v in c.reshape(-1, self.dim)]
        values = np.array([cot_of_root(x) for x, _ in found]).reshape(c.shape)
        return values, np.array([vectors for _, vectors in found]).reshape(*c.shape, self.dim)


def curvatures(space: Manifold, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of w -> R(w, v)v and, as columns, their directions.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> curvatures(Sphere(2), np.array([2.0, 0.0]))[0]
    array([0., 4.])
    """
    values, vectors = np.linalg.eigh(space.curvature_operator(np.outer(v, v)))
    return np.asarray(values, dtype=np.float64), np.asarray(vectors, dtype=np.float64)


def cot_of_root(x: FloatArray) -> FloatArray:
    """Return sqrt(x) cot sqrt(x), for x of either sign.

    Examples
    --------
    >>> cot_of_root(np.array([0.0, -1.0])).round(4)
    array([1.   , 1.313])
    """
    s = np.sqrt(np.abs(np.where(x == 0, 1.0, x)))
    with np.errstate(all="ignore"):
        return np.where(np.abs(x) < 1e-12, 1 - x / 3, np.where(x > 0, s / np.tan(s), s / np.tanh(s)))


def log_sinc_of_root(x: FloatArray) -> FloatArray:
    """Return the log of sin(sqrt x)/sqrt x, for x of either sign.

    Examples
    --------
    >>> log_sinc_of_root(np.array([0.0, -1.0])).round(4) + 0.0
    array([0.    , 0.1614])
    """
    s = np.sqrt(np.abs(np.where(x == 0, 1.0, x)))
    with np.errstate(all="ignore"):
        large = np.where(x > 0, np.log(np.abs(np.sin(s)) / s), np.log(np.sinh(s) / s))
    return np.where(np.abs(x) < 1e-12, -x / 6, large)


# -------------------------------------------------------------------- constant curvature


_TRIANGLES: dict[float, Literal["sphere", "real", "hyperbolic", ""]] = {
    1.0: "sphere",
    0.5: "real",
    math.inf: "hyperbolic",
}


class ConstantCurvature(SymmetricSpace):
    """A space that states `dim`, `curvature`, `injectivity_radius` and `unit`; all laws of curvature follow.

    Attributes
    ----------
    unit : the radius of curvature, 1/sqrt(|curvature|); of a circle or a line, whose curvature is 0, the length that
        stands for one radian
    """

    unit: float

    @cached_property
    def rank_one(self) -> RankOne | None:  # type: ignore[override]
        """Its radial facts: those of a sphere or of hyperbolic space, which end where geodesics do."""
        end = self.injectivity_radius / (math.pi * self.unit)
        end = end if math.isinf(end) else round(2 * end) / 2
        return RankOne(self.unit, end, self.dim - 1, 0, _TRIANGLES.get(end, ""))

    def hessian_spectrum(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """1 along the geodesic, u cot u or u coth u across it."""
        c = self._coordinates(c)
        length = vector_norm(c)
        across = u_coth_u if self.is_hadamard else u_cot_u
        values = np.ones(c.shape)
        values[..., 1:] = across(length / self.unit)[..., None]
        return values, complete_basis(unit_direction(c, length))

    def hessian_diameter(self, distance: float) -> float:
        """|1 - u cot u| max(sqrt 2, sqrt(d - 1)) (theory section 7, hessian); 0 in one dimension."""
        if self.dim == 1:
            return 0.0
        low, high = self.hessian_bounds(distance)
        return math.sqrt(max(2, self.dim - 1)) * ((high - 1) if self.is_hadamard else (1 - low))

    def curvature_operator(self, second_moment: FloatArray) -> FloatArray:
        """Curvature times (trace I - second moment)."""
        moment = np.asarray(second_moment, dtype=np.float64)
        return np.asarray(self.curvature[0] * (np.trace(moment) * np.eye(len(moment)) - moment))
