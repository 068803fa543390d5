"""How a covariate in [-1, 1] is spread, as far as its moments tell: exact ones if it is public, else noisy ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.release import Release

MOMENTS = tuple(f"mean of the covariate to the power {power}" for power in range(1, 5))
"""What a release states where the covariate is public: the moments of what it is brought to, in [-1, 1]."""
# Less variance than this, of at most 1, is taken for none: slopes could not be told.
_LEAST_VARIANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Design:
    """Moments of a covariate in [-1, 1].

    Attributes
    ----------
    moments : (5,), the averages of 1, t, ..., t^4
    noise : standard deviations of the noise on those of t and t^2
    """

    moments: FloatArray
    noise: tuple[float, float]

    @staticmethod
    def of(release: Release) -> Design:
        """Return that of a release of a regression."""
        if release.details.keys() >= set(MOMENTS):
            return Design(np.array([1.0, *(release.details[name] for name in MOMENTS)]), (0.0, 0.0))
        first, second = (float(number) for number in np.asarray(release.value)[-2:])
        units = release.definition.noise_scales(release)
        noise = (float(np.asarray(units)[-2]), float(np.asarray(units)[-1]))
        return Design(beta_moments(first, second, noise[1]), noise)

    @property
    def variance(self) -> float:
        """The variance of the covariate."""
        return float(self.moments[2] - self.moments[1] ** 2)


def beta_moments(first: float, second: float, noise: float = 0.0) -> FloatArray:
    """Return the moments of 1, t, ..., t^4, (5,), of the beta law on [-1, 1] with the first two of these.

    Noisy numbers are moved to where moments can be, with a variance of at least the noise.

    Examples
    --------
    >>> beta_moments(0.0, 1 / 3).round(3)
    array([1.   , 0.   , 0.333, 0.   , 0.2  ])
    """
    mean = min(max(first, -0.99), 0.99)
    most = 1 - mean**2
    variance = min(max(second - mean**2, _LEAST_VARIANCE, min(noise, most / 2)), 0.999 * most)
    # On [0, 1] the mean is p, and the variance p (1 - p)/(weight + 1).
    p = (1 + mean) / 2
    weight = 4 * p * (1 - p) / variance - 1
    raw = [1.0]
    for power in range(4):
        raw.append(raw[-1] * (p * weight + power) / (weight + power))
    return np.array(
        [
            sum(math.comb(power, i) * 2.0**i * raw[i] * (-1.0) ** (power - i) for i in range(power + 1))
            for power in range(5)
        ]
    )
