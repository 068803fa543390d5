"""What mechanisms share that add noise of density exp(-|z|/sigma) to a vector: how its scale is found.

For approximate promises by the exact profile of that noise (docs/theory/profile.md, section 9), for all others by the
pure promise that implies them.
"""

from __future__ import annotations

from dpmanifold.ball import Ball
from dpmanifold.mechanisms.base import Calibration, Mechanism, pure_epsilon
from dpmanifold.privacy import ApproxDP, Promise, PureDP
from dpmanifold.privacy.calibrate import laplace_scale
from dpmanifold.privacy.laplace_profile import is_broken
from dpmanifold.sensitivity import Sensitivity

PURE, PROFILED = "Delta/epsilon", "exact profile"
# Expected lengths are quadratures, right to many more digits than this leaves.
_MARGIN = 1 + 1e-6


class LaplaceNoise(Mechanism):
    """A mechanism whose noise may be of that density in a flat space."""

    searches = True

    def laplace(self, privacy: Promise, sensitivity: Sensitivity, dim: int) -> Calibration:
        """Return the calibration of noise in R^dim."""
        if isinstance(privacy, ApproxDP):
            scale = laplace_scale(sensitivity.value, privacy, dim=dim)
            return Calibration(self.name, privacy, scale, sensitivity, PROFILED)
        scale = laplace_scale(sensitivity.value, PureDP(pure_epsilon(privacy)))
        return Calibration(self.name, privacy, scale, sensitivity, PURE)

    def exceeds(self, error: float, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> bool:
        """Return whether, on a flat space, an approximate promise is broken at the scale of that expected length."""
        if not (isinstance(privacy, ApproxDP) and ball.space.is_flat):
            return False
        dim = ball.space.dim
        return is_broken(dim, dim * self.bound(ball, n, bound).value / (error * _MARGIN), privacy)
