"""The Riemannian Laplace law exp(-rho(footpoint, x)/scale) (theory section 4)."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.noise.distance import DistanceLaw
from dpmanifold.noise.source import RandomSource

# Where the volume density is only known by a ceiling, draws are accepted too rarely below this multiple of its rate.
_CEILING_LIMIT = 1.5


class RiemannianLaplace(DistanceLaw):
    """Density exp(-rho(footpoint, x)/scale) with respect to the volume measure.

    On a flat space the radius is Gamma(dim, scale). On negatively curved spaces volume grows exponentially, and
    the law exists only for small scales: 1/scale > (d - 1) sqrt(c) on hyperbolic space; on affine-invariant
    matrices exact draws need 1/scale >= 1.5 N a, N = k(k-1)/2, a = 1/sqrt(2(k-1)).

    Parameters and attributes are those of :class:`DistanceLaw`.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> law = RiemannianLaplace(Sphere(2), [1.0, 0.0, 0.0], scale=0.1)
    >>> law.sample(5, rng=0).shape
    (5, 3)
    >>> round(law.mean_radius(), 4)
    0.198
    """

    def _phi(self, t: FloatArray) -> FloatArray:
        return t / self.scale

    @staticmethod
    def _log_radial(t: FloatArray, scale: float, rate: float) -> FloatArray:
        return -t * (1 / scale - rate)

    @staticmethod
    def _radial_slope(t: FloatArray, scale: float, rate: float) -> FloatArray:
        return np.full_like(t, rate - 1 / scale)

    def _radial_constant(self, rate: float) -> float:
        return 0.0

    def _require_existence(self) -> None:
        rate = self._area.rate
        if rate == 0:
            return
        bounded = self._area.log_ceiling is not None
        needed = rate * (_CEILING_LIMIT if bounded else 1.0)
        if 1 / self.scale <= needed:
            why = "exact draws become too rare" if bounded else "the law has infinite mass"
            raise InvalidArgumentError(
                f"scale must be below {1 / needed:.6g} for the Laplace law on {self.space!r}, got {self.scale:.6g}: "
                f"beyond it {why}. Use the wrapped Laplace law, which exists for every scale, or truncate to the ball."
            )

    def _flat_coords(self, n: int, source: RandomSource) -> FloatArray:
        d = self.space.dim
        length = source.gamma(float(d), n) if d > 1 else source.exponential(n)
        return source.direction(n, d) * (length * self.scale)[:, None]
