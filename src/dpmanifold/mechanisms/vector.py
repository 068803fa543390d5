"""What mechanisms share whose release is a vector of doubles plus noise, made into a point afterwards.

Such noise can be drawn exactly in every dimension, whatever the space (theory: exact noise).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms.base import Calibration, Mechanism
from dpmanifold.noise.exact import grid_of, noisy_vector
from dpmanifold.noise.source import RandomSource


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
