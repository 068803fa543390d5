"""What mechanisms share that draw about a point of a curved space: where such draws can be exact."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.mechanisms.base import Calibration, Mechanism
from dpmanifold.noise.exact import grid_of
from dpmanifold.noise.exact_curved import place_point, riemannian_point, usable
from dpmanifold.noise.source import RandomSource


class AboutMean(Mechanism):
    """A Riemannian law about the mean; its draws are exact on spaces that the exact samplers know."""

    noise: str
    """"gaussian" or "laplace"."""

    def offers_exact(self, ball: Ball, calibration: Calibration) -> bool:
        """Return whether the space is known and draws there are accepted often enough."""
        return usable(ball.frame, self.noise, calibration.scale)

    def grid(self, ball: Ball, calibration: Calibration) -> int:
        """Return the exponent of the grid of the surrounding space's coordinates."""
        return grid_of(calibration.scale, float(np.abs(ball.frame.origin).max()))

    def numbers(
        self, ball: Ball, calibration: Calibration, mean: Array, points: Array, source: RandomSource
    ) -> FloatArray:
        """Return the coordinates of a drawn point in the surrounding space, rounded to the grid."""
        grid = self.grid(ball, calibration)
        return riemannian_point(ball.frame, mean, self.noise, calibration.scale, grid, source)

    def place(self, ball: Ball, numbers: FloatArray) -> Array:
        """Return the point of the frame next to the rounded coordinates."""
        return place_point(ball.frame, numbers)
