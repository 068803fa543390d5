"""What mechanisms share that draw about a point: where such draws can be exact.

On flat spaces the law is a vector plus noise; on curved ones it depends on the space.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds import Manifold
from dpmanifold.mechanisms.base import Calibration, Mechanism
from dpmanifold.noise import exact_curved, exact_hadamard
from dpmanifold.noise.exact import grid_of, noisy_vector
from dpmanifold.noise.source import RandomSource


class AboutMean(Mechanism):
    """A Riemannian law about the mean; its draws are exact on spaces that the exact samplers know."""

    noise: str
    """"gaussian" or "laplace"."""

    def offers_exact(self, ball: Ball, calibration: Calibration) -> bool:
        """Return whether the space is known and draws there are accepted often enough."""
        return ball.space.is_flat or _sampler(ball).usable(ball.frame, self.noise, calibration.scale)

    def grid(self, ball: Ball, calibration: Calibration) -> int:
        """Return the exponent of the grid: of a chart about the origin, or of the surrounding space's coordinates."""
        largest = ball.effective_radius if ball.space.is_hadamard else float(np.abs(ball.frame.origin).max())
        return grid_of(calibration.scale, largest)

    def size(self, ball: Ball) -> int:
        """Return the number of coordinates of the chart, or of the surrounding space."""
        return ball.space.dim if ball.space.is_hadamard else ball.frame.origin.view(np.float64).size

    def numbers(
        self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints, source: RandomSource
    ) -> FloatArray:
        """Return the coordinates of a drawn point, rounded to the grid."""
        grid = self.grid(ball, calibration)
        if ball.space.is_flat:
            return noisy_vector(mean, self.noise, calibration.scale, grid, source)
        return _sampler(ball).riemannian_point(ball.frame, mean, self.noise, calibration.scale, grid, source)

    def place(self, ball: Ball, numbers: FloatArray) -> Array:
        """Return the point of the frame at, or next to, the rounded coordinates."""
        return numbers if ball.space.is_flat else _sampler(ball).place_point(ball.frame, numbers)


class _Sampler(Protocol):
    """What a module that draws exactly about a point offers."""

    def usable(self, space: Manifold, law: str, scale: float) -> bool:
        """Return whether the law can be drawn there."""

    def riemannian_point(
        self, space: Manifold, footpoint: Array, law: str, scale: float, grid: int, source: RandomSource
    ) -> FloatArray:
        """Draw numbers about a footpoint."""

    def place_point(self, space: Manifold, numbers: FloatArray) -> Array:
        """Make a point of them."""


def _sampler(ball: Ball) -> _Sampler:
    """Return the module that knows such spaces."""
    return exact_hadamard if ball.space.is_hadamard else exact_curved
