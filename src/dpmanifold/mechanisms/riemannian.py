"""The Riemannian mechanisms: laws of the distance from the mean.

The Laplace law of Reimherr, Bharath and Soto (2021), on the whole space or truncated to the ball, and the Gaussian one
of Jiang, Chang and Hu (2025) on spheres, planar shapes and products of them.
"""

from __future__ import annotations

import math
from functools import lru_cache

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds import Manifold
from dpmanifold.mechanisms.base import Calibration, Forecast, Law, pure_epsilon
from dpmanifold.mechanisms.shared import PURE, AboutMean, LaplaceNoise
from dpmanifold.noise import RiemannianGaussian, RiemannianLaplace
from dpmanifold.noise.distance import flat_law
from dpmanifold.noise.products import gaussian_law, has_gaussian_law
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP, calibrate_gaussian, gaussian_scale
from dpmanifold.privacy.calibrate import laplace_scale
from dpmanifold.privacy.profile import has_exact_profile
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


class RiemannianGaussianMechanism(AboutMean):
    """Density exp(-rho^2/(2 sigma^2)) about the mean; sigma = Delta/mu keeps mu-GDP on positively curved spaces."""

    name = "riemannian-gaussian"
    title = "Riemannian Gaussian"
    noise = "gaussian"
    about = "mean"

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: another space than a sphere or shapes, or a pure promise."""
        space = ball.space
        if space.is_hadamard:
            return "Delta/mu is too small where curvature is negative, and on flat spaces it is the wrapped Gaussian"
        if not has_gaussian_law(space):
            return (
                "Delta/mu is proven for spheres and complex projective spaces, such as planar shapes, and for products "
                "of them and flat spaces. Ask for the tangent mean, which every space has"
            )
        if isinstance(privacy, PureDP):
            return "Gaussian noise keeps no pure promise"
        return None

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return Delta/mu (Jiang and others 2025, Theorem 1)."""
        sensitivity = self.bound(ball, n, bound)
        rule = "Delta/mu, analytic mu" if isinstance(privacy, ApproxDP) else "Delta/mu"
        return Calibration(self.name, privacy, gaussian_scale(sensitivity.value, privacy), sensitivity, rule)

    def forecast(self, ball: Ball, n: int, calibration: Calibration) -> Forecast:
        """Return the law of the radius, exactly; on products that of a flat space, which is larger."""
        if ball.space.gaussian_proof != "product":
            law = RiemannianGaussian(ball.frame, ball.frame.origin, calibration.scale)
            return Forecast(law.radius, law.radius_is_exact)
        return Forecast(flat_law("gaussian", ball.space.dim, calibration.scale).radius, exact=False)

    def law(self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints) -> Law:
        """Return the law about the mean."""
        return gaussian_law(ball.frame, mean, calibration.scale)


class ExactGaussianMechanism(RiemannianGaussianMechanism):
    """The same law with the smallest scale whose exact privacy profile keeps the promise (docs/theory/profile.md)."""

    name = "riemannian-gaussian-exact"
    title = "Riemannian Gaussian, calibrated by its exact profile"
    automatic = False
    standalone = True

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: profiles are known on spheres and shapes alone."""
        if not ball.space.is_hadamard and not has_exact_profile(ball.space):
            return "exact profiles are known on spheres and complex projective spaces, such as planar shapes"
        return super().refusal(ball, privacy)

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return the certified scale: never above Delta/mu, and far below it at large scales. Takes up to seconds."""
        sensitivity = self.bound(ball, n, bound)
        # mu-GDP is mu^2/2-zCDP.
        promise = GDP(math.sqrt(2 * privacy.rho) * (1 - 1e-15)) if isinstance(privacy, ZCDP) else privacy
        scale = _exact_scale(ball.frame, sensitivity.value, promise)
        return Calibration(self.name, privacy, scale, sensitivity, "exact privacy profile")


@lru_cache(maxsize=256)
def _exact_scale(space: Manifold, distance: float, promise: Promise) -> float:
    """Calibrate, or take from a cache: public numbers only."""
    return calibrate_gaussian(space, distance, promise)
