"""The Riemannian Gaussian mechanism of Jiang, Chang and Hu (2025) on spheres, planar shapes and products of them."""

from __future__ import annotations

import math
from functools import lru_cache

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds import Euclidean, Manifold
from dpmanifold.mechanisms.about import AboutMean
from dpmanifold.mechanisms.base import Calibration, Forecast, Law
from dpmanifold.noise import RiemannianGaussian
from dpmanifold.noise.products import gaussian_law, has_gaussian_law
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP, calibrate_gaussian, gaussian_scale
from dpmanifold.privacy.profile import has_exact_profile
from dpmanifold.sensitivity import Sensitivity


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
        flat = Euclidean(ball.space.dim)
        return Forecast(RiemannianGaussian(flat, flat.origin, calibration.scale).radius, exact=False)

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
