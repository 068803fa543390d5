"""BASELINES: the papers' extrinsic mechanisms, which add noise to the numbers a point is stored as.

For comparison only. What they release need not be a point of the space: a noisy matrix may have negative
eigenvalues, a noisy direction has another length. They are never chosen by "auto".
"""

from __future__ import annotations

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds.facts import StoredNumbers
from dpmanifold.mechanisms.base import ROUND_UP, Calibration, Forecast, Law, Mechanism, pure_epsilon
from dpmanifold.mechanisms.shared import PlacedLaw
from dpmanifold.noise.distance import flat_law
from dpmanifold.privacy import Promise, PureDP
from dpmanifold.privacy.calibrate import gaussian_scale, laplace_scale
from dpmanifold.sensitivity import Sensitivity, of_mean


class ExtrinsicMechanism(Mechanism):
    """Noise on the coordinates of the surrounding space, as they are in the ball's frame."""

    baseline = True
    standalone = True

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: it is written for spheres and matrices."""
        if ball.space.stored is None:
            return "the extrinsic baselines are for spheres and SPD matrices"
        return ball.space.stored.refusal(ball.center)

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Bound the change of the mean's stored numbers."""
        return self.bound(ball, n, of_mean(ball, n))

    def bound(self, ball: Ball, n: int, given: Sensitivity | None) -> Sensitivity:
        """Bound the change of a point's stored numbers: what a distance can be in them."""
        intrinsic = of_mean(ball, n) if given is None else given
        factor = _stored(ball).stretch(ball.effective_radius)
        return Sensitivity(
            intrinsic.value * factor * ROUND_UP, f"{intrinsic.statistic}, extrinsic", intrinsic.bound, intrinsic.proof
        )

    _noise: str

    def forecast(self, ball: Ball, n: int, calibration: Calibration) -> Forecast:
        """Return the law of the noise's length in the surrounding space (not a distance on the space)."""
        return Forecast(flat_law(self._noise, _stored(ball).size, calibration.scale).radius, exact=True)

    def law(self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints) -> Law:
        """Return the noisy numbers' law, in the surrounding space of the frame."""
        numbers = _stored(ball)
        stored = numbers.from_frame(mean)
        return PlacedLaw(
            flat_law(self._noise, numbers.size, calibration.scale), lambda z: numbers.with_noise(stored, z)
        )


def _stored(ball: Ball) -> StoredNumbers:
    assert ball.space.stored is not None  # or the mechanism had refused
    return ball.space.stored


class ExtrinsicLaplaceMechanism(ExtrinsicMechanism):
    """Euclidean Laplace noise on the stored numbers."""

    name = "extrinsic-laplace"
    title = "BASELINE: Laplace on the stored numbers"
    _noise = "laplace"

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return Delta/epsilon with the extrinsic sensitivity."""
        sensitivity = self.bound(ball, n, bound)
        scale = laplace_scale(sensitivity.value, PureDP(pure_epsilon(privacy)))
        return Calibration(self.name, privacy, scale, sensitivity, "Delta/epsilon")


class ExtrinsicGaussianMechanism(ExtrinsicMechanism):
    """Gaussian noise on the stored numbers."""

    name = "extrinsic-gaussian"
    title = "BASELINE: Gaussian on the stored numbers"
    _noise = "gaussian"

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: another space, or a pure promise."""
        if isinstance(privacy, PureDP):
            return "Gaussian noise keeps no pure promise"
        return super().refusal(ball, privacy)

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return Delta/mu with the extrinsic sensitivity."""
        sensitivity = self.bound(ball, n, bound)
        return Calibration(self.name, privacy, gaussian_scale(sensitivity.value, privacy), sensitivity, "Delta/mu")
