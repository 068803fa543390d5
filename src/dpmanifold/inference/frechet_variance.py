"""Confidence intervals for a Fréchet variance, from squared distances: one draw, or three (theory section 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpmanifold._check import FloatArray, open_fraction
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import FOURTH_WEIGHT, SQUARE_WEIGHT, THIRD_WEIGHT, WEIGHT, Distances
from dpmanifold.inference.estimate import ReleasedMean, features_of, mean_hessian
from dpmanifold.inference.hotelling import average_error, stretched, threshold
from dpmanifold.inference.inference_result import FromRelease, VarianceShares
from dpmanifold.linalg import from_vecd
from dpmanifold.release import Release
from dpmanifold.statistic import Kind
from dpmanifold.summary import all_told


class SquaredDistances(NamedTuple):
    """The mean squared distance of units from their mean, as released, and how much squared distances differ.

    Attributes
    ----------
    moment : the mean squared distance, with what noise on the mean adds to it
    excess : how much that is, on average
    known : variance of the noise in `moment`
    spread : variance of the squared distances, on average, and not necessarily positive
    spread_noise : standard deviation of the noise in `spread`
    reach : no unit is farther from the mean than this
    bend : z standard deviations below `moment`, the truth is z^2 bend/(one of them squared) farther away: noise on the
        mean enters by a square
    """

    moment: float
    excess: float
    known: float
    spread: float
    spread_noise: float
    reach: float
    bend: float = 0.0


def holds_distances(release: Release) -> bool:
    """Return whether a release is of joint distances about the ball's centre."""
    return isinstance(features_of(release), Distances)


def squared_distances(release: Release) -> SquaredDistances:
    """Read a release as squared distances from a mean, or refuse what holds none.

    Parameters
    ----------
    release : of statistic "joint distances", on a flat space; or a fourth moment whose step is the variance, whose step
        is the mean

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0)
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (5000, 2))
    >>> release = dpm.private_variance_interval(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD).release
    >>> found = squared_distances(release)
    >>> abs(found.moment - 1 / 6) < 0.01, abs(found.spread - 1 / 90) < 0.02
    (True, True)
    """
    return _about_the_center(release) if holds_distances(release) else _about_a_mean(release)


def _about_the_center(release: Release) -> SquaredDistances:
    """Move the moments about the centre to the mean, which is in the same draw."""
    ball, d = release.ball, release.ball.frame.dim
    if not ball.space.is_flat:
        raise InvalidArgumentError(
            f"release must be on a flat space: on {ball.space!r} distances from the mean do not follow from "
            "coordinates at the centre. private_variance_interval asks for what is needed there."
        )
    stated = release.details
    weights = Distances(stated[SQUARE_WEIGHT], stated[WEIGHT], stated[THIRD_WEIGHT], stated[FOURTH_WEIGHT])
    ends = np.cumsum([d, d * (d + 1) // 2, 1, d])
    scale = release.scale * weights.units(d, ball.radius)
    mean, products, square, third, fourth = np.split(np.asarray(release.value, dtype=np.float64), ends)
    s_mean, s_products, s_square, s_third, s_fourth = (float(part[0]) for part in np.split(scale, ends))

    # |v|^2 was drawn, and so was the trace of v v': together they say more, and the rest of v v' is left as it is.
    second = from_vecd(products)
    trace, own = float(np.trace(second)), s_square**2 / (s_square**2 + d * s_products**2)
    moment = float(square[0]) + own * (trace - float(square[0]))
    s_moment = s_square * math.sqrt(1 - own)
    second = second + (moment - trace) / d * np.eye(d)

    # The noise on the mean adds its own variance to its squared length, which is known.
    length = float(mean @ mean)
    drift = min(max(length - d * s_mean**2, 0.0), ball.radius**2)
    p: FloatArray = mean * math.sqrt(drift / length) if length > 0 else mean
    variance = moment - length + d * s_mean**2
    # The mean of |v - p|^4, term by term, and what noise on each of them does to it (theory section 6).
    powers = float(fourth[0]) - 4 * float(p @ third) + 4 * float(p @ second @ p) + 2 * drift * moment - 3 * drift**2
    along: FloatArray = 8 * second @ p - 4 * third + 4 * (moment + variance - 3 * drift) * p
    noise = math.hypot(
        s_fourth,
        4 * math.sqrt(drift) * s_third,
        4 * drift * math.sqrt(1 - 1 / d) * s_products,
        (2 * drift + 4 * drift / d - 2 * variance) * s_moment,
        float(np.linalg.norm(along)) * s_mean,
    )
    known = s_moment**2 + 4 * drift * s_mean**2 + 2 * d * s_mean**4
    reach = ball.effective_radius + math.sqrt(drift)
    # Where the mean is seen a off the centre and is a + z s off it, its square is larger by 2 a z s, and by (z s)^2.
    bend = 4 * drift * s_mean**4
    return SquaredDistances(max(variance, 0.0), 0.0, known, powers - variance**2, noise, reach, bend)


def _about_a_mean(release: Release) -> SquaredDistances:
    """Return the moments about a released mean, on any space."""
    chain = [release, *release.steps]
    kinds = [(found.definition.power, found.definition.kind) for found in chain]
    if kinds != [(4, Kind.NUMBER), (2, Kind.NUMBER)] or len(chain[1].steps) != 1:
        raise InvalidArgumentError(
            f"release must be of joint distances or a fourth moment after a variance, got a {release.statistic}. "
            "private_variance_interval makes one."
        )
    variance = chain[1]
    mean = ReleasedMean(variance.steps[0])  # refuses what is no Gaussian mean
    moment = float(variance.value)
    excess, spread = _excess(mean, moment)
    known = variance.scale**2 + spread**2
    return SquaredDistances(moment, excess, known, float(release.value) - moment**2, release.scale, mean.reach)


def _excess(mean: ReleasedMean, moment: float) -> tuple[float, float]:
    """Mean and standard deviation of what noise on the mean adds to the squared distance (theory section 6)."""
    frame, scale = mean.ball.frame, mean.release.scale
    if frame.is_flat:
        return frame.dim * scale**2, math.sqrt(2 * frame.dim) * scale**2
    isotropic = moment / frame.dim * np.eye(frame.dim)
    effect: FloatArray = mean_hessian(frame, isotropic, isotropic, mean.reach) @ mean.noise
    return float(np.trace(effect)), math.sqrt(2 * float((effect * effect.T).sum()))


# Noise on the mean whose effect is larger than this share of the squared radius is cut by clipping: it is only bounded.
_SMALL_NOISE = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class VarianceInterval(FromRelease, format="dpmanifold variance interval 2"):
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
    def _squared_error(self) -> tuple[float, float, VarianceShares]:
        """Variance of the estimate at the level, its degrees of freedom and what it is made of (theory section 6)."""
        found, n = self._distances, self.n
        moment, scale, known = found.moment, found.spread_noise, found.known
        widest = found.reach**4 / 4  # no squared distance below reach^2 varies more
        spread = min(max(found.spread, 0.0), widest)
        # The last term is what the sample mean's own error does, which counts where all distances are alike.
        own = 2 * moment**2 / n
        total, free = average_error(spread, scale, known, widest, n, 1 - self.level, own)
        sure = max(spread - scale, 0.0) / n  # what cannot be noise
        return total, free, VarianceShares.of(known, sure, total)

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
    def variance_shares(self) -> VarianceShares:
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
            ("width", f"squared: {self.variance_shares}"),
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
