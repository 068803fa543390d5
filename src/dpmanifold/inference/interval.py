"""Confidence intervals for a Fréchet variance (theory section 6)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifold._check import FloatArray, open_fraction
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.facts import all_told
from dpmanifold.inference.estimate import ReleasedMean, degrees_of_freedom, mean_hessian, threshold
from dpmanifold.inference.records import FromRelease, read_conclusion
from dpmanifold.records import read_record
from dpmanifold.release import Release

FORMAT = "dpmanifold interval 1"
# Noise on the mean whose effect is larger than this share of the squared radius is cut by clipping: it is only bounded.
_SMALL_NOISE = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class Interval(FromRelease):
    """An interval that holds the population's Fréchet variance with a given confidence, computed from a release.

    The population is that of units clipped into the ball.

    Parameters
    ----------
    release : a fourth moment whose step is the variance, whose step is the mean, as :func:`private_interval` makes them
    level : the confidence, in (0, 1)

    Examples
    --------
    >>> from dpmanifold.ball import Ball
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD, private_interval
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 1))
    >>> interval = private_interval(X, Ball(Euclidean(1), [0.0], 1.0), GDP(1.0), units=EACH_RECORD)
    >>> 0 < interval.low < interval.value < interval.high < 0.5
    True
    """

    release: Release
    level: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", open_fraction(self.level, "level"))
        chain = [self.release, *self.release.steps]
        if [r.statistic for r in chain] != ["fourth moment", "variance"] or len(chain[1].steps) != 1:
            raise InvalidArgumentError(
                f"release must be a fourth moment after a variance, got a {self.release.statistic}. "
                "private_interval makes one."
            )
        _ = self._mean  # refuses what is no Gaussian mean

    @property
    def variance(self) -> Release:
        """The release of the mean squared distance from the released mean."""
        return self.release.steps[0]

    @cached_property
    def _mean(self) -> ReleasedMean:
        return ReleasedMean(self.variance.steps[0])

    # ---------------------------------------------------------------- the numbers

    @cached_property
    def _excess(self) -> tuple[float, float]:
        """Mean and standard deviation of what noise on the mean adds to the squared distance (theory section 6)."""
        frame = self.ball.frame
        if frame.is_flat:
            return frame.dim * self._mean.release.scale**2, math.sqrt(2 * frame.dim) * self._mean.release.scale**2
        isotropic = float(self.variance.value) / frame.dim * np.eye(frame.dim)
        effect: FloatArray = mean_hessian(frame, isotropic, isotropic, self._mean.reach) @ self._mean.noise
        return float(np.trace(effect)), math.sqrt(2 * float((effect * effect.T).sum()))

    @cached_property
    def _numbers(self) -> tuple[float, float, float, float]:
        """Value, lower and upper end, and the share of the squared width that is there for privacy."""
        moment, n = float(self.variance.value), self.n
        reach = self._mean.reach
        spread = min(max(float(self.release.value) - moment**2, 0.0), reach**4 / 4)
        excess, excess_noise = self._excess
        known = self.variance.scale**2 + excess_noise**2
        # Noise swamping the fourth moment must not shrink the interval: its own standard deviation is added.
        # The last term is what the sample mean's own error does, which counts where all distances are alike.
        sampling = (min(spread + self.release.scale, reach**4 / 4) + 2 * moment**2 / n) / n
        free = degrees_of_freedom([(np.array([[sampling]]), n)], np.array([[sampling + known]]))
        if free <= 2:
            sampling, free = reach**4 / 4 / n, math.inf
        sure = max(spread - self.release.scale, 0.0) / n  # what cannot be noise of the fourth moment
        half = math.sqrt(threshold(self.level, 1, free) * (sampling + known))
        plain, correction = moment - excess, n / (n - 1)
        small = excess <= _SMALL_NOISE * self.ball.radius**2
        highest = (plain if small else moment) * correction
        # A variance that came out too small goes with a width that is too small: the upper end is stretched for it.
        stretch = math.exp(half / (2 * max(plain, half)))
        ends = np.clip([plain * correction, plain - half, highest + stretch * half], 0.0, self.ball.effective_radius**2)
        return *(float(x) for x in ends), 1 - sure / (sampling + known)  # type: ignore[return-value]

    @property
    def value(self) -> float:
        """The estimate: the released moment less what noise on the mean added, never below 0."""
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
    def privacy_share(self) -> float:
        """Share of the squared width that is there for privacy and not for sampling, in [0, 1]."""
        return self._numbers[3]

    def contains(self, variance: float) -> bool:
        """Return whether a variance lies in the interval."""
        return self.low <= variance <= self.high

    # ---------------------------------------------------------------- for people and machines

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("variance", f"{self.value:.5g}, between {self.low:.5g} and {self.high:.5g}"),
            ("promise", f"{self.privacy} for each {self.release.unit}, {self.n:,} of them"),
            ("width", f"{100 * self.privacy_share:.0f} % of its square is there for privacy"),
            ("ball", repr(self.ball)),
        ]

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return f"{100 * self.level:g} % confidence interval for a Fréchet variance"

    def _numbers_told(self) -> dict[str, Any]:
        return all_told(self, "value", "low", "high")

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, ready for JSON."""
        release = self.release.to_dict(answers=False)
        return {"format": FORMAT, "level": self.level, "release": release, "answers": self.answers()}

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Interval:
        """Rebuild an interval from :meth:`to_dict`."""
        return read_conclusion(record, FORMAT, Interval, "release")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Interval:
        """Read an interval written by :meth:`save`."""
        return Interval.from_dict(read_record(path))
