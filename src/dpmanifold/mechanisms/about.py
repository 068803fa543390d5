"""What mechanisms share that draw about a point: where such draws can be exact.

On flat spaces the law is a vector plus noise; on curved ones it depends on what the space states.
"""

from __future__ import annotations

from functools import lru_cache

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms.base import Calibration, Mechanism
from dpmanifold.noise.exact import grid_of
from dpmanifold.noise.exact_samplers import ExactSampler, exact_sampler
from dpmanifold.noise.source import RandomSource


class AboutMean(Mechanism):
    """A Riemannian law about the mean; its draws are exact on spaces that say how their points are moved."""

    def may_be_exact(self, ball: Ball) -> bool:
        """Return whether the space does."""
        return _sampler(ball, self.noise) is not None

    def offers_exact(self, ball: Ball, calibration: Calibration) -> bool:
        """Return whether draws there are accepted often enough as well."""
        sampler = _sampler(ball, self.noise)
        return sampler is not None and sampler.usable(calibration.scale)

    def grid(self, ball: Ball, calibration: Calibration) -> int:
        """Return the exponent of the grid: of a chart about the origin, or of the surrounding space's coordinates."""
        return grid_of(calibration.scale, self._sampler(ball).largest(ball.effective_radius))

    def size(self, ball: Ball) -> int:
        """Return the number of coordinates of the chart, or of the surrounding space."""
        return self._sampler(ball).size

    def numbers(
        self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints, source: RandomSource
    ) -> FloatArray:
        """Return the coordinates of a drawn point, rounded to the grid."""
        return self._sampler(ball).draw(mean, calibration.scale, self.grid(ball, calibration), source)

    def place(self, ball: Ball, numbers: FloatArray) -> Array:
        """Return the point of the frame at, or next to, the rounded coordinates."""
        return self._sampler(ball).place(numbers)

    def _sampler(self, ball: Ball) -> ExactSampler:
        """Return what draws there; asked for only where :meth:`offers_exact` says so."""
        found = _sampler(ball, self.noise)
        assert found is not None
        return found


def _sampler(ball: Ball, law: str) -> ExactSampler | None:
    return (exact_sampler if ball.space.foreign else _remembered_sampler)(ball.frame, law)


# Spaces of others need not be told apart by what they say they are.
_remembered_sampler = lru_cache(maxsize=64)(exact_sampler)
