"""How a covariate in [-1, 1] is spread, as far as its moments tell: exact ones if it is public, else noisy ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifold._check import FloatArray, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.release import Release

MOMENTS = tuple(f"covariate_moment_{power}" for power in range(1, 5))
"""What a release states where the covariate is public: the moments of what it is brought to, in [-1, 1]."""
# Less variance than this, of at most 1, is taken for none: slopes could not be told.
_LEAST_VARIANCE = 1e-3
# A variance of so many times its own noise is told: below it the error of a slope has no law that could be stated.
_TOLD = 4.0
# How many times its standard deviation noise on the variance is allowed for, of either sign: at 99 %.
_FARTHEST = 2.58
# How far means and variances of covariates usually are from those of a uniform one: a choice, from a mean at a third of
# the way to either end and variances between those of half the range and of two ends. It decides about curves from
# which another step follows, and where slopes cannot be told; no stated error rests on it.
_USUAL_MEAN, _USUAL_VARIANCE, _UNIFORM = 0.3, 0.15, 1 / 3

Range = tuple[float, float]


def checked_range(given: object) -> Range:
    """Return the ends of the public range of a covariate, or refuse.

    Examples
    --------
    >>> checked_range((7, 150))
    (7.0, 150.0)
    """
    try:
        low, high = (float(end) for end in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low = high = math.nan
    if not (low < high and math.isfinite(low) and math.isfinite(high) and math.isfinite(high - low)):
        raise InvalidArgumentError(
            "`covariate_range` must be two numbers, the lowest and the highest that the covariate can be: public "
            f"knowledge, never read off the data; got {_ends_shown(given)}."
        )
    return low, high


def _ends_shown(given: object) -> str:
    """Describe a wrong range: two numbers as they are."""
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return f"({shown(given[0])}, {shown(given[1])})"
    return shown(given)


def are_moments(stated: FloatArray) -> bool:
    """Return whether numbers are the means of t, ..., t^4 of a covariate between -1 and 1, rounding aside.

    They are if the means of p(t)^2 and of (1 - t^2) p(t)^2 are not negative, for every polynomial p that they tell.

    Examples
    --------
    >>> are_moments(np.array([0.0, 1 / 3, 0.0, 1 / 5])), are_moments(np.array([0.0, 1 / 3, 0.2, 1 / 5]))
    (True, False)
    """
    means = np.append(1.0, stated)
    squares = means[np.add.outer(np.arange(3), np.arange(3))]
    places = np.add.outer(np.arange(2), np.arange(2))
    return all(float(np.linalg.eigvalsh(matrix)[0]) >= -1e-9 for matrix in (squares, means[places] - means[places + 2]))


def as_marks(x: Any, covariate_range: Range) -> FloatArray:
    """Return values of a covariate brought to [-1, 1] and clipped there; what is no number becomes 0, the middle.

    Examples
    --------
    >>> as_marks(np.array([0.0, 5.0, 12.0, np.nan]), (0.0, 10.0))
    array([-1.,  0.,  1.,  0.])
    """
    low, high = covariate_range
    with np.errstate(all="ignore"):
        t = (np.asarray(x, dtype=np.float64) - (low / 2 + high / 2)) / (high / 2 - low / 2)
        return np.asarray(np.clip(np.where(np.isnan(t), 0.0, t), -1.0, 1.0))


@dataclass(frozen=True, eq=False)
class Design:
    """Moments of a covariate in [-1, 1].

    Attributes
    ----------
    moments : (5,), the averages of 1, t, ..., t^4, as a covariate can have them
    noise : standard deviations of the noise on those of t and t^2
    drawn : (5,), the same with those of t and t^2 as they were drawn: noise enters them in a straight line, and no
        covariate may have such ones
    times_noise : the variance of t over the standard deviation of the noise on it, as drawn
    """

    moments: FloatArray
    noise: tuple[float, float]
    drawn: FloatArray
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
            exact = np.array([1.0, *(release.details[name] for name in MOMENTS)])
            return Design(exact, (0.0, 0.0), exact)
        first, second = (float(number) for number in np.asarray(release.value)[-2:])
        units = release.definition.noise_scales(release)
        noise = (float(np.asarray(units)[-2]), float(np.asarray(units)[-1]))
        variance, doubt = second - first**2, noise_of_variance(first, noise)
        drawn = beta_moments(first, variance)
        drawn[1:3] = first, second
        as_drawn = variance > _TOLD * doubt and not steady
        spread = (first, variance) if as_drawn else steadied(first, second, noise)
        return Design(beta_moments(*spread), noise, drawn, variance / doubt)

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
