"""The wrapped mechanisms: Laplace or Gaussian noise in the tangent space of the public centre.

The tangent Gaussian of Utpala and others (2023), with classical and with analytic calibration, and the
exponential-wrapped Gaussian of Jiang and others (2025) are the Gaussian one.
"""

from __future__ import annotations

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds.vectors import shorten
from dpmanifold.mechanisms.base import Calibration, Forecast, Law
from dpmanifold.mechanisms.error_forecasts import carried_over
from dpmanifold.mechanisms.shared import LaplaceNoise, VectorMechanism
from dpmanifold.noise import WrappedGaussian, WrappedLaplace
from dpmanifold.noise.wrapped_distributions import WrappedLaw
from dpmanifold.privacy import ApproxDP, Promise, PureDP
from dpmanifold.privacy.calibrate import gaussian_scale
from dpmanifold.sensitivity import Sensitivity

_NOT_HADAMARD = "it needs a flat or Hadamard space: elsewhere the logarithm stretches distances"


class _Wrapped(VectorMechanism):
    """What the wrapped mechanisms share: the law at the frame's origin, and the forecast."""

    about = "center"
    kind: type[WrappedLaw]

    def _make(self, ball: Ball, scale: float, mean: Array) -> WrappedLaw:
        return self.kind(ball.frame, ball.frame.origin, mean, scale)

    def forecast(self, ball: Ball, n: int, calibration: Calibration) -> Forecast:
        """Return the law of |Z|: exact on flat spaces; on curved ones the largest error over the ball, a bound."""
        return carried_over(ball, self._make(ball, calibration.scale, ball.frame.origin).radius)

    def law(self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints) -> Law:
        """Return the law of noise on the logarithm of the mean at the frame's origin."""
        return self._make(ball, calibration.scale, mean)

    def vector(self, ball: Ball, mean: Array, points: UnitPoints) -> FloatArray:
        """Return the logarithm of the mean at the frame's origin, not longer than the ball (theory: rounding)."""
        return shorten(ball.frame.log_coords(ball.frame.origin, mean), ball.radius)

    def place(self, ball: Ball, numbers: FloatArray) -> Array:
        """Return the exponential, of numbers shortened to what double precision can carry over."""
        frame = ball.frame
        return frame.exp_coords(frame.origin, shorten(numbers, frame.farthest))


class WrappedLaplaceMechanism(LaplaceNoise, _Wrapped):
    """Noise of density exp(-|z|/sigma) in the tangent space; sigma = Delta/epsilon, or less for approximate promises.

    The logarithm at the centre makes no distance larger, so the profile at Delta speaks for all neighbours.
    """

    name = "wrapped-laplace"
    title = "Laplace in the tangent space of the centre"
    kind = WrappedLaplace
    noise = "laplace"

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: positive curvature."""
        return None if ball.space.is_hadamard else _NOT_HADAMARD

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return Delta/epsilon, or what the exact profile allows."""
        return self.laplace(privacy, self.bound(ball, n, bound), ball.space.dim)


class WrappedGaussianMechanism(_Wrapped):
    """Normal noise in the tangent space; sigma = Delta/mu, mu the best the promise allows (analytic for ApproxDP)."""

    name = "wrapped-gaussian"
    title = "Gaussian in the tangent space of the centre"
    kind = WrappedGaussian
    noise = "gaussian"

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: positive curvature, or a pure promise."""
        if not ball.space.is_hadamard:
            return _NOT_HADAMARD
        if isinstance(privacy, PureDP):
            return "Gaussian noise keeps no pure promise"
        return None

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return Delta/mu."""
        sensitivity = self.bound(ball, n, bound)
        rule = "analytic Gaussian" if isinstance(privacy, ApproxDP) else "Delta/mu"
        return Calibration(self.name, privacy, gaussian_scale(sensitivity.value, privacy), sensitivity, rule)


class ClassicalGaussianMechanism(WrappedGaussianMechanism):
    """The tangent Gaussian as first published: Delta sqrt(2 ln(1.25/delta))/epsilon, for epsilon below 1."""

    name = "wrapped-gaussian-classical"
    title = "Gaussian in the tangent space, classical calibration"
    standalone = True

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: only approximate promises with epsilon below 1."""
        if not ball.space.is_hadamard:
            return _NOT_HADAMARD
        if not isinstance(privacy, ApproxDP):
            return "the classical calibration is for approximate promises"
        if privacy.epsilon >= 1:
            return f"the classical calibration needs epsilon below 1, got {privacy.epsilon:g}"
        return None

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return the classical scale."""
        sensitivity = self.bound(ball, n, bound)
        scale = gaussian_scale(sensitivity.value, privacy, method="classical")
        return Calibration(self.name, privacy, scale, sensitivity, "classical Gaussian")
