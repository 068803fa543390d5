"""The Riemannian Gaussian law exp(-rho(footpoint, x)^2 / (2 scale^2)) (theory section 4)."""

from __future__ import annotations

from dpmanifold._check import FloatArray
from dpmanifold.noise.distance import DistanceLaw
from dpmanifold.noise.source import RandomSource


class RiemannianGaussian(DistanceLaw):
    """Density exp(-rho(footpoint, x)^2 / (2 scale^2)) with respect to the volume measure; exists for every scale.

    On a flat space it is the ordinary normal law. Parameters and attributes are those of :class:`DistanceLaw`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import SPD
    >>> law = RiemannianGaussian(SPD(3, metric="riemann"), np.eye(3), scale=0.1)
    >>> law.sample(5, rng=0).shape
    (5, 3, 3)
    >>> law.radius_is_exact, round(law.mean_radius(), 3)
    (False, 0.235)
    """

    def _phi(self, t: FloatArray) -> FloatArray:
        return (t / self.scale) ** 2 / 2

    @staticmethod
    def _log_radial(t: FloatArray, scale: float, rate: float) -> FloatArray:
        # rate * t - t^2/(2 s^2), as a square about its maximum at rate * s^2.
        return -((t / scale - rate * scale) ** 2) / 2

    @staticmethod
    def _radial_slope(t: FloatArray, scale: float, rate: float) -> FloatArray:
        return -(t / scale - rate * scale) / scale

    def _radial_constant(self, rate: float) -> float:
        return (rate * self.scale) ** 2 / 2

    def _require_existence(self) -> None:
        return

    def _flat_coords(self, n: int, source: RandomSource) -> FloatArray:
        return source.normal((n, self.space.dim)) * self.scale
