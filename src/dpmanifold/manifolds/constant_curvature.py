"""Spaces of constant curvature: spheres, real projective spaces and hyperbolic ones, which follow from four facts."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.manifolds.facts import RankOne
from dpmanifold.manifolds.symmetric import SymmetricSpace
from dpmanifold.manifolds.vectors import complete_basis, u_cot_u, u_coth_u, unit_direction, vector_norm

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
