"""Confidence intervals for a Fréchet variance (theory section 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifold._check import open_fraction
from dpmanifold.facts import all_told
from dpmanifold.inference.distances import SquaredDistances, holds_distances, squared_distances
from dpmanifold.inference.hotelling import average_error, stretched, threshold
from dpmanifold.inference.records import FromRelease, Parts
from dpmanifold.release import Release

FORMAT = "dpmanifold variance interval 2"
# Noise on the mean whose effect is larger than this share of the squared radius is cut by clipping: it is only bounded.
_SMALL_NOISE = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class VarianceInterval(FromRelease, format=FORMAT):
    """An interval that holds the population's Fréchet variance with a given confidence, computed from a release.

    The population is that of units clipped into the ball.

    Parameters
    ----------
    release : joint distances, or a fourth moment whose step is the variance, whose step is the mean, as
        :func:`private_variance_interval` makes them
    level : the confidence, in (0, 1)

    Examples
    --------
    >>> from dpmanifold.ball import Ball
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD, private_variance_interval
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 1))
    >>> interval = private_variance_interval(X, Ball(Euclidean(1), [0.0], 1.0), GDP(1.0), units=EACH_RECORD)
    >>> 0 < interval.low < interval.value < interval.high < 0.5
    True
    """

    release: Release
    level: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", open_fraction(self.level, "level"))
        _ = self._distances  # refuses what holds no squared distances from a mean

    @property
    def variance(self) -> Release:
        """The release that holds the mean squared distance from the released mean: its own, or the joint one."""
        return self.release if holds_distances(self.release) else self.release.steps[0]

    # ---------------------------------------------------------------- the numbers

    @cached_property
    def _distances(self) -> SquaredDistances:
        return squared_distances(self.release)

    @cached_property
    def _squared_error(self) -> tuple[float, float, Parts]:
        """Variance of the estimate at the level, its degrees of freedom and what it is made of (theory section 6)."""
        found, n = self._distances, self.n
        moment, scale, known = found.moment, found.spread_noise, found.known
        widest = found.reach**4 / 4  # no squared distance below reach^2 varies more
        spread = min(max(found.spread, 0.0), widest)
        # The last term is what the sample mean's own error does, which counts where all distances are alike.
        own = 2 * moment**2 / n
        total, free = average_error(spread, scale, known, widest, n, 1 - self.level, own)
        sure = max(spread - scale, 0.0) / n  # what cannot be noise
        return total, free, Parts.of(known, sure, total)

    @cached_property
    def _numbers(self) -> tuple[float, float, float]:
        """Value, lower and upper end."""
        total, free, _ = self._squared_error
        quantile = threshold(1 - self.level, 1, free)
        half = math.sqrt(quantile * total)
        bend = quantile * self._distances.bend / total if self._distances.bend else 0.0
        moment, excess = self._distances.moment, self._distances.excess
        plain, correction = moment - excess, self.n / (self.n - 1)
        small = excess <= _SMALL_NOISE * self.ball.radius**2
        highest = (plain if small else moment) * correction
        ends = np.array([plain * correction, plain - half - bend, highest + stretched(plain, half)])
        ends = np.clip(ends, 0.0, self.ball.effective_radius**2)
        return float(ends[0]), float(ends[1]), float(ends[2])

    @property
    def value(self) -> float:
        """The estimate: the mean squared distance less what noise on the mean added, never below 0."""
        return self._numbers[0]

    @property
    def low(self) -> float:
        """Lower end, at least 0."""
        return self._numbers[1]

    @property
    def high(self) -> float:
        """Upper end, at most the squared radius of the ball, which no variance in it exceeds."""
        return self._numbers[2]

    @property
    def parts(self) -> Parts:
        """What its squared width is made of: noise, sampling, and the allowance for the noise on the spread."""
        return self._squared_error[2]

    def contains(self, variance: float) -> bool:
        """Return whether a variance lies in the interval."""
        return self.low <= variance <= self.high

    # ---------------------------------------------------------------- for people and machines

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("variance", f"{self.value:.5g}, between {self.low:.5g} and {self.high:.5g}"),
            ("promise", f"{self.privacy} for each {self.release.unit}, {self.n:,} of them"),
            ("width", f"squared: {self.parts}"),
            ("ball", repr(self.ball)),
        ]

    def _worth(self) -> list[str]:
        most = self.ball.effective_radius**2
        if self.low <= 0.0 and self.high >= most:
            return [
                "the interval holds every variance that there can be in the ball: it says nothing. Use more units or a "
                "weaker promise"
            ]
        if self.high - self.low >= most / 2:
            return ["the interval holds half or more of what the variance can be in the ball: it says little"]
        return []

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return f"{100 * self.level:g} % confidence interval for a Fréchet variance"

    def _numbers_told(self) -> dict[str, Any]:
        return all_told(self, "value", "low", "high")
