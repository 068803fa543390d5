"""Tangent and extrinsic means: noise on an average of vectors, made into a point afterwards (theory: estimands).

They are parameters of their own, close to the Fréchet mean and not equal to it on curved spaces. A record enters them
by itself, so there is no solver and no curvature in their sensitivity, and the noise can be drawn exactly everywhere.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds import Euclidean
from dpmanifold.mechanisms.base import Calibration, Forecast, Law
from dpmanifold.mechanisms.embeddings import Embedding, TangentEmbedding, extrinsic_embedding
from dpmanifold.mechanisms.laplace import LaplaceNoise
from dpmanifold.mechanisms.vector import VectorMechanism
from dpmanifold.noise import RiemannianGaussian, RiemannianLaplace
from dpmanifold.noise.distance import DistanceLaw
from dpmanifold.noise.source import Rng, Size, as_shape, as_source
from dpmanifold.privacy import ApproxDP, Promise, PureDP
from dpmanifold.privacy.calibrate import gaussian_scale
from dpmanifold.sensitivity import Sensitivity


class _Average(LaplaceNoise, VectorMechanism):
    """What they share: an embedding of the ball, and noise on the average in it."""

    needs_points = True

    @abstractmethod
    def _embedding(self, ball: Ball) -> Embedding:
        """Return the map from points to vectors."""

    def _unsuited(self, ball: Ball) -> str | None:
        """Return why the space has no such mean, or None."""
        return None

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: the space, or Gaussian noise for a pure promise."""
        if self.noise == "gaussian" and isinstance(privacy, PureDP):
            return "Gaussian noise keeps no pure promise"
        return self._unsuited(ball)

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Bound the change of the average of the units' vectors."""
        return self._embedding(ball).sensitivity(n)

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return Delta/epsilon, less where the exact profile allows it, or Delta/mu."""
        sensitivity = self.bound(ball, n, bound)
        if self.noise == "laplace":
            return self.laplace(privacy, sensitivity, self.size(ball))
        rule = "analytic Gaussian" if isinstance(privacy, ApproxDP) else "Delta/mu"
        return Calibration(self.name, privacy, gaussian_scale(sensitivity.value, privacy), sensitivity, rule)

    def forecast(self, ball: Ball, n: int, calibration: Calibration) -> Forecast:
        """Return the law of the error on flat spaces, an upper bound of it elsewhere."""
        embedding = self._embedding(ball)
        return embedding.forecast(self._noise(embedding.size, calibration.scale).radius)

    def law(self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints) -> Law:
        """Return the law of the noisy average as a point."""
        embedding = self._embedding(ball)
        return _PlacedLaw(embedding, self.hidden(ball, mean, points), self._noise(embedding.size, calibration.scale))

    def vector(self, ball: Ball, mean: Array, points: UnitPoints) -> FloatArray:
        """Return the average of the units' vectors; the Fréchet mean is not looked at."""
        return self._embedding(ball).average(points)

    def longest(self, ball: Ball) -> float:
        """Return the bound of the embedding."""
        return self._embedding(ball).longest

    def size(self, ball: Ball) -> int:
        """Return the length of the embedding's vectors."""
        return self._embedding(ball).size

    def place(self, ball: Ball, numbers: FloatArray) -> Array:
        """Return the point that a noisy average stands for."""
        return self._embedding(ball).place(numbers)

    def _noise(self, size: int, scale: float) -> DistanceLaw:
        flat = Euclidean(size)
        kind = RiemannianGaussian if self.noise == "gaussian" else RiemannianLaplace
        return kind(flat, flat.origin, scale)


class _PlacedLaw:
    """A vector plus noise, as a point of the frame."""

    def __init__(self, embedding: Embedding, vector: FloatArray, noise: DistanceLaw) -> None:
        self._embedding, self._vector, self._noise = embedding, vector, noise

    def sample(self, size: Size | None = None, rng: Rng = None) -> Array:
        """Draw points, or one point."""
        shape = () if size is None else as_shape(size)
        z, _ = self._noise.sample_coords(math.prod(shape), as_source(rng))
        return self._embedding.place(np.reshape(self._vector + z, (*shape, self._embedding.size)))


class _TangentMean(_Average):
    """The exponential, at the ball's centre, of the average logarithm there."""

    estimand = "tangent"

    def _embedding(self, ball: Ball) -> Embedding:
        return TangentEmbedding(ball)


class TangentMeanGaussian(_TangentMean):
    """Normal noise on the average logarithm at the centre; sigma = 2r/(n mu) on every space."""

    name = "tangent-mean-gaussian"
    title = "tangent mean, Gaussian"
    noise = "gaussian"


class TangentMeanLaplace(_TangentMean):
    """Noise of density exp(-|z|/sigma) on the average logarithm; sigma = 2r/(n epsilon), less for approximate ones."""

    name = "tangent-mean-laplace"
    title = "tangent mean, Laplace"
    noise = "laplace"


class _ExtrinsicMean(_Average):
    """The mean direction on spheres, the full Procrustes mean of planar shapes."""

    estimand = "extrinsic"
    needs_ball = False

    def _unsuited(self, ball: Ball) -> str | None:
        if extrinsic_embedding(ball) is None:
            return "extrinsic means are of spheres and planar shapes; every space has a tangent mean"
        return None

    def _embedding(self, ball: Ball) -> Embedding:
        found = extrinsic_embedding(ball)
        assert found is not None
        return found


class ExtrinsicMeanGaussian(_ExtrinsicMean):
    """Normal noise on the average in the space around; works without a ball too."""

    name = "extrinsic-mean-gaussian"
    title = "extrinsic mean, Gaussian"
    noise = "gaussian"


class ExtrinsicMeanLaplace(_ExtrinsicMean):
    """Noise of density exp(-|z|/sigma) on the average in the space around; works without a ball too."""

    name = "extrinsic-mean-laplace"
    title = "extrinsic mean, Laplace"
    noise = "laplace"
