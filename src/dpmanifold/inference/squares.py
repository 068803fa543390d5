"""Squares along released directions: variances of a population, with what noise and chance add (theory: components)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.features import WEIGHT, checked_weight
from dpmanifold.inference.estimate import ReleasedMean
from dpmanifold.inference.hotelling import average_error, threshold
from dpmanifold.inference.records import Parts
from dpmanifold.linalg import from_vecd
from dpmanifold.release import Release

COUNT = "n_components"
"""What a release states the number of directions as."""
# Of eigenvalues over the third root of n, within which they are not told apart.
_WIDTH = 1.4
# Noise on the mean that is no larger than this share of the total variance does not turn directions.
_SMALL_NOISE = 0.25


def principal_directions(release: Release, count: int) -> tuple[FloatArray, FloatArray]:
    """Return all eigenvalues of the released covariance of directions, (d,), and the leading eigenvectors, (count, d).

    The largest entry of each is positive, so that whoever computes them finds the same.

    Parameters
    ----------
    release : of statistic "signs"
    count : how many

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> X = np.random.default_rng(0).normal(0.0, [1.0, 0.2], (2000, 2))
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 5.0)
    >>> release = dpm.private_statistic(X, ball, dpm.GDP(1.0), statistic="signs", units=dpm.EACH_RECORD)
    >>> bool(principal_directions(release, 1)[1][0, 0] > 0.99)
    True
    """
    d, root = release.ball.frame.dim, math.sqrt(checked_weight(release.details[WEIGHT], WEIGHT))
    mean, products = np.split(np.asarray(release.value, dtype=np.float64), [d])
    # Noise on the mean of the directions adds its own variance to its squared length, which is known.
    length = float(mean @ mean)
    part = max(1 - d * release.scale**2 / length, 0.0) if length > 0 else 0.0
    values, vectors = np.linalg.eigh(from_vecd(products) / root - part * np.outer(mean, mean))
    found = vectors.T[::-1][:count]
    largest = np.abs(found).argmax(axis=1)
    return values[::-1], found * np.where(found[np.arange(len(found)), largest] < 0, -1.0, 1.0)[:, None]


def optimism(values: FloatArray, count: int, n: int) -> FloatArray:
    """Return which share of the variance along leading eigenvectors is chance: they were chosen on the same n units.

    Along its k-th eigenvector a sample varies more than the population, by (1 + c)^2 with c the sum of
    values[j]/(values[k] - values[j]) over all others, over n (theory: components). Gaps are smoothed, so that no two
    eigenvalues are too close; sums below 0 count as none.

    Parameters
    ----------
    values : all eigenvalues, the largest first
    count : how many leading ones
    n : number of units

    Examples
    --------
    >>> optimism(np.array([4.0, 1.0, 1.0]), 1, 100).round(4), optimism(np.ones(50), 1, 10**6).round(4)
    (array([0.0128]), array([0.]))
    """
    leading, others = values[:count, None], np.maximum(values, 0.0)
    gaps = leading - values
    width = _WIDTH * leading / math.sqrt(n)
    chance = (others * gaps / np.maximum(gaps**2 + width**2, np.finfo(float).tiny)).sum(axis=1) / n
    return np.asarray(1 - 1 / (1 + np.maximum(chance, -0.5)) ** 2)


def fitting(values: FloatArray, total: float) -> FloatArray:
    """Return the nearest numbers that are not below 0 and add up to `total`, which is not below 0 either.

    Parameters
    ----------
    values : numbers
    total : their sum, or 0 where that is below 0

    Examples
    --------
    >>> fitting(np.array([3.0, 1.0, -1.0]), 3.0)
    array([2.5, 0.5, 0. ])
    """
    ordered = np.sort(values)[::-1]
    # What all of the m largest must lose to add up to the total; the others become 0.
    loss = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    found = np.maximum(values - loss[np.flatnonzero(ordered >= loss)[-1]], 0.0) if total > 0 else np.zeros(len(values))
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class Squares:
    """Means and second moments of squares along released directions and of the rest, in the data's own units.

    A number is asked for as weights w of the squares, (k + 1,): its mean is w . (variances), the rest last.
    """

    release: Release
    mean: ReleasedMean
    directions: FloatArray
    optimism: FloatArray

    @cached_property
    def _kept(self) -> FloatArray:
        """Which entries add up to 1, as 0 or 1: all, but for the rest where directions are all that there is."""
        kept = np.ones(len(self.directions) + 2)
        kept[-2] = float(len(self.directions) < self.directions.shape[1])
        return kept

    @cached_property
    def _numbers(self) -> tuple[FloatArray, FloatArray, float, float]:
        """Means and second moments of squares, and the standard deviations of the noise on each as it was drawn."""
        release, square = self.release, self.mean.reach**2
        value, root = np.asarray(release.value, dtype=np.float64), math.sqrt(release.details[WEIGHT])
        means, products = np.split(value, [len(self.directions) + 2])
        # They are known to add up to 1: what the noise adds to the sum is taken off in equal parts.
        means = self._kept * (means - (self._kept @ means - 1) / self._kept.sum())
        scale = release.scale * square
        return square * means[:-1], square**2 * from_vecd(products) / root, scale, scale * square / root

    def _known(self, weights: FloatArray) -> float:
        """Return the variance of the noise on a number, as far as it does not come from the mean."""
        kept = self._kept * np.append(weights, 0.0)
        return self._numbers[2] ** 2 * max(float(kept @ kept - kept.sum() ** 2 / self._kept.sum()), 0.0)

    @cached_property
    def _excess(self) -> FloatArray:
        """What noise on the mean adds to the variance along each direction, and to the rest: known."""
        noise = self.mean.noise
        along = ((self.directions @ noise) * self.directions).sum(axis=1)
        return np.append(along, max(float(np.trace(noise) - along.sum()), 0.0))

    @cached_property
    def _correction(self) -> float:
        return self.release.n / (self.release.n - 1)

    @cached_property
    def variances(self) -> FloatArray:
        """Estimates along each direction, and of the rest: what directions had from chance is given to the rest."""
        plain = (self._numbers[0] - self._excess) * self._correction
        chance = self.optimism * np.maximum(plain[:-1], 0.0)
        return np.asarray(plain - np.append(chance, -chance.sum()))

    def turned(self, weights: FloatArray) -> float:
        """Return what noise on the mean may add besides the excess, if it has turned the directions to itself.

        Nothing where it is small against the total: directions are then those of the units.
        """
        everywhere = float(np.trace(self.mean.noise))
        small = everywhere <= _SMALL_NOISE * max(float(self.variances.sum()), 0.0)
        return 0.0 if small else everywhere * float(weights.max()) - float(weights @ self._excess)

    def value(self, weights: FloatArray) -> float:
        """Return the estimate."""
        return float(weights @ self.variances)

    def error(self, weights: FloatArray, tail: float) -> tuple[float, float, Parts]:
        """Return the variance of the estimate, its degrees of freedom and what it is made of."""
        means, second, _, second_scale = self._numbers
        n, length, seen = self.release.n, float(np.linalg.norm(weights)), float(weights @ means)
        # What noise on the mean adds is a quadratic form of it: its variance is twice the trace of a square.
        bent = (self.directions.T * (weights[:-1] - weights[-1])) @ self.directions
        form = (bent + weights[-1] * np.eye(len(bent))) @ self.mean.noise
        drawn = self._known(weights)
        known = drawn + 2 * float((form * form.T).sum())
        spread = float(weights @ second @ weights) - seen**2 + drawn
        noise = math.hypot(second_scale * length**2, 2 * seen * math.sqrt(drawn))
        span = max(float(weights.max()), 0.0) - min(float(weights.min()), 0.0)
        widest = (span * self.mean.reach**2) ** 2 / 4  # no number between such ends varies more
        total, free = average_error(spread, noise, known, widest, n, tail, 2 * seen**2 / n)
        sure = min(max(spread - noise, 0.0), widest) / n
        return total * self._correction**2, free, Parts.of(known, sure, total)

    def off(self, weights: FloatArray, tail: float) -> float:
        """Return how far the estimate is from 0, squared, in units of what it stays below with 1 - tail, less 1."""
        total, free, _ = self.error(weights, tail)
        return self.value(weights) ** 2 / (threshold(tail, 1, free) * total) - 1
