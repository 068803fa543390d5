"""The Riemannian Laplace mechanism of Reimherr, Bharath and Soto (2021), whole space or truncated to the ball."""

from __future__ import annotations

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms.about import AboutMean
from dpmanifold.mechanisms.base import Calibration, Forecast, Law, pure_epsilon
from dpmanifold.mechanisms.laplace import PURE, LaplaceNoise
from dpmanifold.noise import RiemannianLaplace
from dpmanifold.privacy import Promise, PureDP
from dpmanifold.privacy.calibrate import laplace_scale
from dpmanifold.sensitivity import Sensitivity


class RiemannianLaplaceMechanism(LaplaceNoise, AboutMean):
    """Density exp(-rho/sigma) about the mean on the whole space; sigma = Delta/epsilon.

    On flat spaces less for approximate promises, by the exact profile.

    Every space here is homogeneous, so the normaliser does not depend on the mean and Delta/epsilon suffices, half of
    what the truncated law needs (theory section 5).
    """

    name = "riemannian-laplace"
    title = "Riemannian Laplace, whole space"
    noise = "laplace"
    about = "mean"
    truncated = False

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return None: it keeps every promise a pure one implies, if the scale admits the law."""
        return None

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return Delta/epsilon, or twice that for the truncated law; on flat spaces what the profile allows."""
        sensitivity = self.bound(ball, n, bound)
        if ball.space.is_flat and not self.truncated:
            return self.laplace(privacy, sensitivity, ball.space.dim)
        scale = laplace_scale(sensitivity.value * (2 if self.truncated else 1), PureDP(pure_epsilon(privacy)))
        self._law(ball, scale, ball.frame.origin)  # refuses a scale at which the law does not exist
        return Calibration(self.name, privacy, scale, sensitivity, f"2 {PURE}" if self.truncated else PURE)

    def _law(self, ball: Ball, scale: float, footpoint: Array) -> RiemannianLaplace:
        return RiemannianLaplace(ball.frame, footpoint, scale, ball=ball.in_frame if self.truncated else None)

    def forecast(self, ball: Ball, n: int, calibration: Calibration) -> Forecast:
        """Return the law of the radius: exact on flat and rank-one spaces, a bound on matrices and if truncated.

        Truncation to a convex ball makes the radius smaller: along every ray from the footpoint the ball is left once.
        """
        law = self._law(ball, calibration.scale, ball.frame.origin)
        return Forecast(law.radius, law.radius_is_exact)

    def law(self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints) -> Law:
        """Return the law about the mean."""
        return self._law(ball, calibration.scale, mean)


class TruncatedLaplaceMechanism(RiemannianLaplaceMechanism):
    """The same law given that it falls into the ball; sigma = 2 Delta/epsilon (Reimherr and others 2021, Theorem 3)."""

    name = "riemannian-laplace-truncated"
    title = "Riemannian Laplace, truncated to the ball"
    about = ""
    standalone = True
    truncated = True
    covers_timing = False
    needs_inside = True

    def may_be_exact(self, ball: Ball) -> bool:
        """Return False: whether a draw falls into the ball depends on the mean."""
        return False

    def offers_exact(self, ball: Ball, calibration: Calibration) -> bool:
        """Return False."""
        return False

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return None, or why the ball leaves no room."""
        if ball.space.is_flat:
            return "on flat spaces the law on the whole space needs half the scale and is moved into the ball for free"
        return None
