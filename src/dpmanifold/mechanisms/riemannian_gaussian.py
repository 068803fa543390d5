"""The Riemannian Gaussian mechanism of Jiang, Chang and Hu (2025) on spheres and planar shapes."""

from __future__ import annotations

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.manifolds import KendallShapes, Sphere
from dpmanifold.mechanisms.base import Calibration, Forecast, Mechanism
from dpmanifold.noise import RiemannianGaussian
from dpmanifold.noise.source import RandomSource
from dpmanifold.privacy import ApproxDP, Promise, PureDP
from dpmanifold.privacy.calibrate import gaussian_scale
from dpmanifold.sensitivity import of_mean


class RiemannianGaussianMechanism(Mechanism):
    """Density exp(-rho^2/(2 sigma^2)) about the mean; sigma = Delta/mu keeps mu-GDP on positively curved spaces."""

    name = "riemannian-gaussian"
    title = "Riemannian Gaussian"

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: another space than a sphere or shapes, or a pure promise."""
        if not isinstance(ball.space, (Sphere, KendallShapes)):
            return "Delta/mu is too small where curvature is negative, and on flat spaces it is the wrapped Gaussian"
        if isinstance(privacy, PureDP):
            return "Gaussian noise keeps no pure promise"
        return None

    def calibrate(self, ball: Ball, n: int, privacy: Promise) -> Calibration:
        """Return Delta/mu (Jiang and others 2025, Theorem 1)."""
        sensitivity = of_mean(ball, n)
        rule = "Delta/mu, analytic mu" if isinstance(privacy, ApproxDP) else "Delta/mu"
        return Calibration(self.name, privacy, gaussian_scale(sensitivity.value, privacy), sensitivity, rule)

    def forecast(self, ball: Ball, n: int, calibration: Calibration) -> Forecast:
        """Return the law of the radius, exactly."""
        law = RiemannianGaussian(ball.frame, ball.frame.origin, calibration.scale)
        return Forecast(law.radius, law.radius_is_exact)

    def draw(self, ball: Ball, calibration: Calibration, mean: Array, points: Array, source: RandomSource) -> Array:
        """Draw about the mean."""
        return RiemannianGaussian(ball.frame, mean, calibration.scale).sample(rng=source)
