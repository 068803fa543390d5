"""What mechanisms share that draw about a point: where such draws can be exact.

On flat spaces the law is a vector plus noise; on curved ones it depends on the space.
"""

from __future__ import annotations

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms.base import Calibration, Mechanism
from dpmanifold.noise.exact import grid_of, noisy_vector
from dpmanifold.noise.exact_samplers import ExactSampler, exact_sampler
from dpmanifold.noise.source import RandomSource


class AboutMean(Mechanism):
    """A Riemannian law about the mean; its draws are exact on spaces that the exact samplers know."""

    def may_be_exact(self, ball: Ball) -> bool:
        """Return whether the space is known."""
        return ball.space.is_flat or exact_sampler(ball.space) is not None

    def offers_exact(self, ball: Ball, calibration: Calibration) -> bool:
        """Return whether the space is known and draws there are accepted often enough."""
        if ball.space.is_flat:
            return True
        sampler = exact_sampler(ball.space)
        return sampler is not None and sampler.usable(ball.frame, self.noise, calibration.scale)

    def grid(self, ball: Ball, calibration: Calibration) -> int:
        """Return the exponent of the grid: of a chart about the origin, or of the surrounding space's coordinates."""
        if ball.space.is_flat:
            return grid_of(calibration.scale, ball.effective_radius)
        return grid_of(calibration.scale, _sampler(ball).largest(ball.frame, ball.effective_radius))

    def size(self, ball: Ball) -> int:
        """Return the number of coordinates of the chart, or of the surrounding space."""
        return ball.space.dim if ball.space.is_flat else _sampler(ball).size(ball.frame)

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


def _sampler(ball: Ball) -> ExactSampler:
    """Return what knows such spaces; asked for only where :meth:`AboutMean.offers_exact` says so."""
    found = exact_sampler(ball.space)
    assert found is not None
    return found
