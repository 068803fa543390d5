"""BASELINES: the papers' extrinsic mechanisms, which add noise to the numbers a point is stored as.

For comparison only. What they release need not be a point of the space: a noisy matrix may have negative
eigenvalues, a noisy direction has another length. They are never chosen by "auto".
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.linalg import from_vecd, to_vecd
from dpmanifold.manifolds import SPD, Euclidean, Sphere
from dpmanifold.mechanisms.base import ROUND_UP, Calibration, Forecast, Law, Mechanism, pure_epsilon
from dpmanifold.noise import RiemannianGaussian, RiemannianLaplace
from dpmanifold.noise.distance import DistanceLaw
from dpmanifold.noise.source import Rng, Size, as_shape, as_source
from dpmanifold.privacy import Promise, PureDP
from dpmanifold.privacy.calibrate import gaussian_scale, laplace_scale
from dpmanifold.sensitivity import Sensitivity, of_mean


class ExtrinsicMechanism(Mechanism):
    """Noise on the coordinates of the surrounding space, as they are in the ball's frame."""

    baseline = True

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: it is written for spheres and matrices."""
        if not isinstance(ball.space, (Sphere, SPD)):
            return "the extrinsic baselines are for spheres and SPD matrices"
        if ball.space.is_flat and not np.allclose(ball.center, ball.center[0, 0] * np.eye(ball.space.shape[0])):
            return "on log-Euclidean matrices the baselines need a centre that is a multiple of the identity"
        return None

    def _sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Bound the change of the stored numbers.

        A chord is at most its arc; for matrices |V|_F is at most the largest eigenvalue times |V|_P, and that is at
        most e^r in the ball about the identity.
        """
        intrinsic = of_mean(ball, n)
        factor = math.exp(ball.effective_radius) if isinstance(ball.space, SPD) else 1.0
        return Sensitivity(intrinsic.value * factor * ROUND_UP, "mean, extrinsic", "tight", intrinsic.proof)

    @abstractmethod
    def _law(self, dim: int, scale: float) -> DistanceLaw:
        """Return the noise on R^dim."""

    def _ambient(self, ball: Ball) -> int:
        return ball.space.dim if isinstance(ball.space, SPD) else ball.space.dim + 1

    def forecast(self, ball: Ball, n: int, calibration: Calibration) -> Forecast:
        """Return the law of the noise's length in the surrounding space (not a distance on the space)."""
        return Forecast(self._law(self._ambient(ball), calibration.scale).radius, exact=True)

    def law(self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints) -> Law:
        """Return the noisy numbers' law, in the surrounding space of the frame."""
        return _StoredLaw(ball, mean, self._law(self._ambient(ball), calibration.scale))


class _StoredLaw:
    """The numbers a point of the frame is stored as, plus noise."""

    def __init__(self, ball: Ball, mean: Array, noise: DistanceLaw) -> None:
        self._noise = noise
        flat_matrix = isinstance(ball.space, SPD) and ball.space.is_flat
        self._matrix = isinstance(ball.space, SPD)
        self._stored: Array = ball.space.exp_coords(ball.space.origin, mean) if flat_matrix else mean

    def sample(self, size: Size | None = None, rng: Rng = None) -> Array:
        """Draw arrays of stored numbers; they need not be points."""
        shape = () if size is None else as_shape(size)
        noise, _ = self._noise.sample_coords(math.prod(shape), as_source(rng))
        drawn = from_vecd(to_vecd(self._stored) + noise) if self._matrix else self._stored + noise
        return np.asarray(drawn).reshape(*shape, *self._stored.shape)


class ExtrinsicLaplaceMechanism(ExtrinsicMechanism):
    """Euclidean Laplace noise on the stored numbers."""

    name = "extrinsic-laplace"
    title = "BASELINE: Laplace on the stored numbers"

    def calibrate(self, ball: Ball, n: int, privacy: Promise) -> Calibration:
        """Return Delta/epsilon with the extrinsic sensitivity."""
        sensitivity = self._sensitivity(ball, n)
        scale = laplace_scale(sensitivity.value, PureDP(pure_epsilon(privacy)))
        return Calibration(self.name, privacy, scale, sensitivity, "Delta/epsilon")

    def _law(self, dim: int, scale: float) -> DistanceLaw:
        flat = Euclidean(dim)
        return RiemannianLaplace(flat, flat.origin, scale)


class ExtrinsicGaussianMechanism(ExtrinsicMechanism):
    """Gaussian noise on the stored numbers."""

    name = "extrinsic-gaussian"
    title = "BASELINE: Gaussian on the stored numbers"

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: another space, or a pure promise."""
        if isinstance(privacy, PureDP):
            return "Gaussian noise keeps no pure promise"
        return super().refusal(ball, privacy)

    def calibrate(self, ball: Ball, n: int, privacy: Promise) -> Calibration:
        """Return Delta/mu with the extrinsic sensitivity."""
        sensitivity = self._sensitivity(ball, n)
        return Calibration(self.name, privacy, gaussian_scale(sensitivity.value, privacy), sensitivity, "Delta/mu")

    def _law(self, dim: int, scale: float) -> DistanceLaw:
        flat = Euclidean(dim)
        return RiemannianGaussian(flat, flat.origin, scale)
