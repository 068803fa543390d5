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
_LEAST_VARIANCE = 1e-3
# A variance of so many times its own noise is told: below it the error of a slope has no law that could be stated.
_TOLD = 4.0
# How many times its standard deviation noise on the variance is allowed for, of either sign: at 99 %.
_FARTHEST = 2.58
# How far means and variances of covariates usually are from those of a uniform one.
_USUAL_MEAN, _USUAL_VARIANCE, _UNIFORM = 0.3, 0.15, 1 / 3


@dataclass(frozen=True, eq=False)
class Design:
    """Moments of a covariate in [-1, 1].

    Attributes
    ----------
    moments : (5,), the averages of 1, t, ..., t^4
    noise : standard deviations of the noise on those of t and t^2
    times_noise : the variance of t over the standard deviation of the noise on it, as drawn
    """

    moments: FloatArray
    noise: tuple[float, float]
    times_noise: float = math.inf

    @staticmethod
    def of(release: Release, steady: bool = False) -> Design:
        """Return that of a release of a regression.

        Parameters
        ----------
        release : of a regression
        steady : move noisy moments towards those of a uniform covariate even where they speak for themselves: for
            curves from which another step follows
        """
        if release.details.keys() >= set(MOMENTS):
            return Design(np.array([1.0, *(release.details[name] for name in MOMENTS)]), (0.0, 0.0))
        first, second = (float(number) for number in np.asarray(release.value)[-2:])
        units = release.definition.noise_scales(release)
        noise = (float(np.asarray(units)[-2]), float(np.asarray(units)[-1]))
        variance, doubt = second - first**2, noise_of_variance(first, noise)
        # As drawn, so that what noise does to the moments enters the equations of the fit in a straight line.
        as_drawn = variance > _TOLD * doubt and not steady
        spread = (first, variance) if as_drawn else steadied(first, second, noise)
        return Design(beta_moments(*spread), noise, variance / doubt)

    @property
    def is_told(self) -> bool:
        """Whether the variance is so many times its own noise that slopes can be told."""
        return self.times_noise > _TOLD

    @property
    def stretch(self) -> float:
        """How much longer errors may be, on the farther side, than to first order in the noise on the moments.

        With a variance of k times its noise, and this larger or smaller by z times its noise, what is divided by it is
        off by up to z/(k - z) of itself, and not z/k.
        """
        return 1 / (1 - _FARTHEST / max(self.times_noise, _TOLD))


def noise_of_variance(first: float, noise: tuple[float, float]) -> float:
    """Return the standard deviation of a variance that is made of noisy moments of t and t^2.

    Examples
    --------
    >>> noise_of_variance(0.5, (0.0, 0.1)), round(noise_of_variance(0.5, (0.1, 0.0)), 4)
    (0.1, 0.101)
    """
    return math.sqrt(noise[1] ** 2 + 4 * first**2 * noise[0] ** 2 + 2 * noise[0] ** 4)


def steadied(first: float, second: float, noise: tuple[float, float]) -> tuple[float, float]:
    """Return the mean and the variance of a covariate that noisy moments of t and t^2 speak for.

    Each is moved towards what a uniform covariate has, 0 and 1/3, by as much as its noise makes it doubtful that it is
    anywhere else: dividing by a variance that noise brought near 0 would send curves anywhere.

    Examples
    --------
    >>> steadied(0.25, 0.5, (0.0, 0.0)), np.round(steadied(0.25, 0.5, (1e9, 1e9)), 6)
    ((0.25, 0.4375), array([0.      , 0.333333]))
    """
    mean = first * _USUAL_MEAN**2 / (_USUAL_MEAN**2 + noise[0] ** 2)
    variance = second - first**2 + noise[0] ** 2
    trust = _USUAL_VARIANCE**2 / (_USUAL_VARIANCE**2 + noise_of_variance(mean, noise) ** 2)
    return mean, trust * variance + (1 - trust) * _UNIFORM


def beta_moments(mean: float, variance: float) -> FloatArray:
    """Return the moments of 1, t, ..., t^4, (5,), of the beta law on [-1, 1] with this mean and variance.

    Numbers that no covariate there can have are moved to where they can be.

    Examples
    --------
    >>> beta_moments(0.0, 1 / 3).round(3)
    array([1.   , 0.   , 0.333, 0.   , 0.2  ])
    """
    mean = min(max(mean, -0.99), 0.99)
    most = 1 - mean**2
    variance = min(max(variance, min(_LEAST_VARIANCE, most / 2)), 0.999 * most)
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
