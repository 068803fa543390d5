"""Tangent and extrinsic means: noise on an average of vectors, made into a point afterwards (theory: estimands).

They are parameters of their own, close to the Fréchet mean and not equal to it on curved spaces. A record enters them
by itself, so there is no solver and no curvature in their sensitivity, and the noise can be drawn exactly everywhere.
"""

from __future__ import annotations

from abc import abstractmethod

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds.embedding import Embedding, TangentMap, VectorMap
from dpmanifold.manifolds.optional_properties import StoredNumbers
from dpmanifold.mechanisms.base import ROUND_UP, Calibration, Forecast, Law, Mechanism, pure_epsilon
from dpmanifold.mechanisms.error_forecasts import CellForecast, carried_over
from dpmanifold.mechanisms.shared import LaplaceNoise, PlacedLaw, VectorMechanism
from dpmanifold.noise import RadialLaw
from dpmanifold.noise.distance import flat_law
from dpmanifold.privacy import ApproxDP, Promise, PureDP
from dpmanifold.privacy.calibrate import gaussian_scale, laplace_scale
from dpmanifold.sensitivity import Sensitivity, of_extrinsic_mean, of_mean, of_tangent_mean


class _Average(LaplaceNoise, VectorMechanism):
    """What they share: an embedding of the ball, and noise on the average in it."""

    needs_points = True

    def __init__(self, noise: str) -> None:
        self.noise = noise
        self.name = f"{self.estimand}-mean-{noise}"
        self.title = f"{self.estimand} mean, {noise.title()}"

    @abstractmethod
    def _map(self, ball: Ball) -> VectorMap:
        """Return the map from points to vectors."""

    @abstractmethod
    def _forecast(self, ball: Ball, radius: RadialLaw) -> Forecast:
        """Bound how far noise on the average carries the point, its length having this law."""

    def _unsuited(self, ball: Ball) -> str | None:
        """Return why the space has no such mean, or None."""
        return None

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: the space, or Gaussian noise for a pure promise."""
        if self.noise == "gaussian" and isinstance(privacy, PureDP):
            return "Gaussian noise keeps no pure promise"
        return self._unsuited(ball)

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return Delta/epsilon, less where the exact profile allows it, or Delta/mu."""
        sensitivity = self.bound(ball, n, bound)
        if self.noise == "laplace":
            return self.laplace(privacy, sensitivity, self.size(ball))
        rule = "analytic Gaussian" if isinstance(privacy, ApproxDP) else "Delta/mu"
        return Calibration(self.name, privacy, gaussian_scale(sensitivity.value, privacy), sensitivity, rule)

    def forecast(self, ball: Ball, n: int, calibration: Calibration) -> Forecast:
        """Return the law of the error on flat spaces, an upper bound of it elsewhere."""
        return self._forecast(ball, flat_law(self.noise, self.size(ball), calibration.scale).radius)

    def law(self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints) -> Law:
        """Return the law of the noisy average as a point."""
        vectors, hidden = self._map(ball), self.hidden(ball, mean, points)
        noise = flat_law(self.noise, vectors.size, calibration.scale)
        return PlacedLaw(noise, lambda z: vectors.place(hidden + z))

    def vector(self, ball: Ball, mean: Array, points: UnitPoints) -> FloatArray:
        """Return the average of the units' vectors; the Fréchet mean is not looked at."""
        vectors = self._map(ball)
        return vectors.coordinates(points.mean_of(vectors.images, vectors.bound))

    def longest(self, ball: Ball) -> float:
        """Return the bound of the map."""
        return self._map(ball).longest

    def size(self, ball: Ball) -> int:
        """Return the length of the map's vectors."""
        return self._map(ball).size

    def place(self, ball: Ball, numbers: FloatArray) -> Array:
        """Return the point that a noisy average stands for."""
        return self._map(ball).place(numbers)


class TangentMean(_Average):
    """The exponential, at the ball's centre, of the average logarithm there; sigma is made of 2r/n on every space."""

    estimand = "tangent"

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """2r/n."""
        return of_tangent_mean(ball, n)

    def _map(self, ball: Ball) -> VectorMap:
        return TangentMap(ball.frame, ball.radius)

    def _forecast(self, ball: Ball, radius: RadialLaw) -> Forecast:
        return carried_over(ball, radius)


class ExtrinsicMean(_Average):
    """The mean direction on spheres, the full Procrustes mean of planar shapes; works without a ball too."""

    estimand = "extrinsic"
    needs_ball = False

    def _unsuited(self, ball: Ball) -> str | None:
        if ball.frame.embedding(ball.radius) is None:
            return (
                "extrinsic means are of embedded spaces, as spheres and planar shapes; every space has a tangent mean"
            )
        return None

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Return the diameter of the images over n."""
        return of_extrinsic_mean(ball, n)

    def _map(self, ball: Ball) -> Embedding:
        found = ball.frame.embedding(ball.radius)
        assert found is not None
        return found

    def _forecast(self, ball: Ball, radius: RadialLaw) -> Forecast:
        embedding = self._map(ball)
        return CellForecast(radius, embedding.shares, embedding.error, embedding.farthest)


# -------------------------------------------------------------------- baselines

# The papers' extrinsic mechanisms add noise to the numbers a point is stored as. For comparison only: what they release
# need not be a point of the space. A noisy matrix may have negative eigenvalues, a noisy direction has another length.
# They are never chosen by "auto".


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
