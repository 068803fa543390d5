"""A mechanism in one file: noise of density exp(-largest coordinate/scale) in the coordinates of a flat space.

The K-norm mechanism of Hardt and Talwar (2010) for the cube. Two points at distance D differ by at most D in every
coordinate, so scale = Delta/epsilon keeps epsilon-DP. A draw is a Gamma(d + 1) number times a uniform point of a cube.
"""

import math

import numpy as np

from dpmanifold.mechanisms import Calibration, Forecast, Mechanism
from dpmanifold.mechanisms.base import pure_epsilon
from dpmanifold.noise import RadialLaw, as_source
from dpmanifold.privacy import PureDP, laplace_scale


class CubeLaplace(Mechanism):
    """Noise that is the same in all coordinates' directions: a cube instead of a ball."""

    name = "cube-laplace"
    title = "Laplace by the largest coordinate"

    def refusal(self, ball, privacy):
        """Return why not: the space."""
        return None if ball.space.is_flat else "it is written for flat spaces"

    def calibrate(self, ball, n, privacy, bound=None):
        """Return Delta/epsilon."""
        sensitivity = self.bound(ball, n, bound)
        scale = laplace_scale(sensitivity.value, PureDP(pure_epsilon(privacy)))
        return Calibration(self.name, privacy, scale, sensitivity, "Delta/epsilon")

    def forecast(self, ball, n, calibration):
        """Return a bound: a point of the cube is at most sqrt(d) times its largest coordinate long."""
        d, scale = ball.space.dim, calibration.scale * math.sqrt(ball.space.dim)
        return Forecast(
            RadialLaw(lambda t: d * np.log(t) - t / scale, lambda t: d / t - 1 / scale, [0, math.inf]), False
        )

    def law(self, ball, calibration, mean, points):
        """Return the law of the noisy mean, in coordinates at the center."""
        return CubeLaw(mean, calibration.scale)


class CubeLaw:
    """The law of a vector plus such noise."""

    normalized = True

    def __init__(self, mean, scale):
        self.mean, self.scale = mean, scale

    def sample(self, size=None, rng=None):
        """Draw vectors."""
        source, shape = as_source(rng), () if size is None else np.atleast_1d(size)
        n, d = math.prod(shape), len(self.mean)
        length = source.gamma(d + 1.0, n) * self.scale
        cube = 2 * source.uniform(n * d).reshape(n, d) - 1
        return (self.mean + length[:, None] * cube).reshape(*shape, d)

    def logpdf(self, x):
        """Return the log density."""
        d = len(self.mean)  # the mass of exp(-largest coordinate/scale) is (2 scale)^d d!
        return -np.abs(x - self.mean).max(axis=-1) / self.scale - d * math.log(2 * self.scale) - math.lgamma(d + 1)


CUBE = CubeLaplace()
