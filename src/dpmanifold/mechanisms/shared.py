"""What mechanisms share: how the scale of Laplace noise is found, and how draws are made exactly (theory: exact noise).

A vector of doubles plus noise can be drawn exactly in every dimension, whatever the space; a point about the mean where
the space says how its points are moved.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms.base import Calibration, Mechanism, pure_epsilon
from dpmanifold.noise.distance import DistanceLaw
from dpmanifold.noise.exact_samplers import exact_sampler
from dpmanifold.noise.exact_vector_noise import grid_of, noisy_vector
from dpmanifold.noise.source import RandomSource, Rng, Size, as_shape, as_source
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


class PlacedLaw:
    """The law of what noise on a vector is made into; it knows the vector.

    Parameters
    ----------
    noise : its law
    place : from draws of the noise (n, size) to what they make of the vector, (n, ...), each by itself
    """

    def __init__(self, noise: DistanceLaw, place: Callable[[FloatArray], Array]) -> None:
        self._noise, self._place = noise, place

    def sample(self, size: Size | None = None, rng: Rng = None) -> Array:
        """Draw several, or one."""
        shape = () if size is None else as_shape(size)
        placed = self._place(self._noise.sample_coords(math.prod(shape), as_source(rng))[0])
        return placed.reshape(*shape, *placed.shape[1:])


class VectorMechanism(Mechanism):
    """A vector plus Gaussian noise, or noise of density exp(-|z|/sigma), in Euclidean space."""

    @abstractmethod
    def vector(self, ball: Ball, mean: Array, points: UnitPoints) -> FloatArray:
        """Return the doubles that the noise is added to, (d,), from the mean or the units' points in the frame."""

    def hidden(self, ball: Ball, mean: Array, points: UnitPoints) -> FloatArray:
        """Return the same; zeros where it cannot be computed: vectors lie about them."""
        return with_fallback(lambda: self.vector(ball, mean, points), lambda: np.zeros(self.size(ball)))

    def longest(self, ball: Ball) -> float:
        """Return a public bound on the vector's length: the grid is chosen for it."""
        return ball.effective_radius

    @abstractmethod
    def place(self, ball: Ball, numbers: FloatArray) -> Array:
        """Turn a noisy vector into a point of the frame."""

    def offers_exact(self, ball: Ball, calibration: Calibration) -> bool:
        """Return True."""
        return True

    def grid(self, ball: Ball, calibration: Calibration) -> int:
        """Return the exponent of the grid."""
        return grid_of(calibration.scale, self.longest(ball))

    def size(self, ball: Ball) -> int:
        """Return the number of coordinates: the dimension of the space, unless a subclass says otherwise."""
        return ball.space.dim

    def numbers(
        self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints, source: RandomSource
    ) -> FloatArray:
        """Return the noisy vector, rounded to the grid."""
        vector = self.hidden(ball, mean, points)
        return noisy_vector(vector, self.noise, calibration.scale, self.grid(ball, calibration), source)


class AboutMean(Mechanism):
    """A Riemannian law about the mean; its draws are exact on spaces that say how their points are moved."""

    def may_be_exact(self, ball: Ball) -> bool:
        """Return whether the space does."""
        return self._sampler(ball) is not None

    def offers_exact(self, ball: Ball, calibration: Calibration) -> bool:
        """Return whether draws there are accepted often enough as well."""
        sampler = self._sampler(ball)
        return sampler is not None and sampler.usable(calibration.scale)

    def grid(self, ball: Ball, calibration: Calibration) -> int:
        """Return the exponent of the grid: of a chart about the origin, or of the surrounding space's coordinates."""
        name = "exact grid", self.noise, calibration.scale
        if name not in ball.kept:
            ball.kept[name] = grid_of(calibration.scale, self._sampler(ball).largest(ball.effective_radius))
        return int(ball.kept[name])

    def size(self, ball: Ball) -> int:
        """Return the number of coordinates of the chart, or of the surrounding space."""
        return int(self._sampler(ball).size)

    def numbers(
        self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints, source: RandomSource
    ) -> FloatArray:
        """Return the coordinates of a drawn point, rounded to the grid."""
        found: FloatArray = self._sampler(ball).draw(mean, calibration.scale, self.grid(ball, calibration), source)
        return found

    def place(self, ball: Ball, numbers: FloatArray) -> Array:
        """Return the point of the frame at, or next to, the rounded coordinates."""
        return np.asarray(self._sampler(ball).place(numbers))

    def _sampler(self, ball: Ball) -> Any:
        """Return the :class:`ExactSampler` of this law in the ball's frame, made once; None where nothing draws so."""
        if ("exact sampler", self.noise) not in ball.kept:
            ball.kept["exact sampler", self.noise] = exact_sampler(ball.frame, self.noise)
        return ball.kept["exact sampler", self.noise]
