"""Do regions and p-values hold the level asked for, far out in the tails? On normal data, seen through noise.

What is counted are the objects that users get, built on releases that are drawn here, from the law that the private
calls draw from: a miss in a thousand needs more of them than the whole call can make. `NormalData` are means with a
second moment about them, as curved spaces have it; `JointData` are joint moments, as flat ones do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.ball import Ball
from dpmanifold.inference import ConfidenceRegion, TwoSampleTest
from dpmanifold.inference.joint import JointEstimate
from dpmanifold.linalg import from_vecd, to_vecd
from dpmanifold.manifolds import Euclidean
from dpmanifold.privacy import GDP
from dpmanifold.release import Release
from dpmanifold.stats import private_region
from dpmanifold.stats.inputs import EACH_RECORD
from dpmanifold_papers.coverage import region_about_a_mean

LEVELS = (0.9, 0.95, 0.99, 0.999)


class NormalData:
    """Releases of isotropic normal data in R^d.

    Parameters
    ----------
    d, n, mu : dimension, units and promise
    relative : standard deviation of the noise in the released covariance of the mean, over its eigenvalues; the spread
        of the data is chosen for it
    seed : of everything drawn
    """

    def __init__(self, d: int, mu: float, relative: float, seed: int, n: int = 1000) -> None:
        self.rng, self.d, self.n = np.random.default_rng(seed), d, n
        ball = Ball(Euclidean(d), np.zeros(d), 1.0)
        self.like = region_about_a_mean(np.zeros((n, d)), ball, GDP(mu), 0).release
        self.noise = self.like.steps[0].scale
        self.total = self.like.scale / n / relative
        """Variance of the released mean along each axis."""
        self.spread = n * (self.total - self.noise**2)
        """Variance of the data along each axis."""

    def release(self, error: FloatArray | None = None) -> Release:
        """Draw a mean and a second moment about it; the mean is off by `error` (d,), or as it happens."""
        d, n, rng = self.d, self.n, self.rng
        # Bartlett: the sample's covariance about its own mean, by n.
        root = np.tril(rng.standard_normal((d, d)), -1)
        root[np.diag_indices(d)] = np.sqrt(rng.chisquare(n - 1 - np.arange(d)))
        away = self.noise * rng.standard_normal(d)
        noise = from_vecd(self.like.scale * rng.standard_normal(d * (d + 1) // 2))
        moment = self.spread / n * root @ root.T + np.outer(away, away) + noise
        if error is None:
            error = away + math.sqrt(self.spread / n) * rng.standard_normal(d)
        return replace(self.like, value=moment, steps=(replace(self.like.steps[0], value=error),))

    @staticmethod
    def mean_of(release: Release) -> FloatArray:
        """Return the released mean, (d,)."""
        return np.asarray(release.steps[0].value)

    def errors(self, count: int) -> FloatArray:
        """Draw errors of the mean, (count, d): the noise on it and sampling."""
        return math.sqrt(self.total) * self.rng.standard_normal((count, self.d))


class JointData(NormalData):
    """Releases of joint moments of isotropic normal data in R^d, whose mean is `away` from the ball's centre."""

    def __init__(self, d: int, mu: float, relative: float, seed: int, n: int = 1000, away: float = 0.3) -> None:
        self.rng, self.d, self.n, self.away = np.random.default_rng(seed), d, n, away
        ball = Ball(Euclidean(d), np.zeros(d), 1.0)
        self.like = private_region(np.zeros((n, d)), ball, GDP(mu), units=EACH_RECORD, rng=0).release
        estimate = JointEstimate(self.like)
        self.noise, self.moment_noise = estimate.mean.scale, estimate.moment_scale
        self.total = self.moment_noise / n / relative
        self.spread = n * (self.total - self.noise**2)

    def release(self, error: FloatArray | None = None) -> Release:
        """Draw joint moments; the mean is off by `error` (d,), or as it happens. Errors are about the true mean."""
        d, n, rng = self.d, self.n, self.rng
        root = np.tril(rng.standard_normal((d, d)), -1)
        root[np.diag_indices(d)] = np.sqrt(rng.chisquare(n - 1 - np.arange(d)))
        noise = self.noise * rng.standard_normal(d)
        if error is None:
            error = noise + math.sqrt(self.spread / n) * rng.standard_normal(d)
        truth = self.away * np.eye(d)[0]
        sample = truth + error - noise
        moment = self.spread / n * root @ root.T + np.outer(sample, sample)
        drawn = to_vecd(moment) + self.moment_noise * rng.standard_normal(d * (d + 1) // 2)
        return replace(self.like, value=np.concatenate([truth + error, drawn]))

    def mean_of(self, release: Release) -> FloatArray:  # type: ignore[override]
        """Return the released mean, (d,)."""
        return np.asarray(release.value)[: self.d]


def excess_misses(data: NormalData, levels: Sequence[float], regions: int, points: int = 2000) -> FloatArray:
    """Return how often regions miss the truth, over how often they may: one number for each level."""
    missed = np.zeros(len(levels))
    for _ in range(regions):
        release = data.release()
        # Given the region, the truth is as far from its centre as a released mean is from the truth. (That the noise
        # on the mean also enters the second moment changes the latter by a share of 1/(n mu) of its noise.)
        truths = data.mean_of(release) + data.errors(points)
        for number, level in enumerate(levels):
            missed[number] += 1 - float(ConfidenceRegion(release, level).contains(truths).mean())
    return np.asarray(missed / regions / (1 - np.asarray(levels)))


def excess_rejections(data: NormalData, sizes: Sequence[float], tests: int, stretch: float) -> FloatArray:
    """Return how often equal means get p-values up to each size, over that size.

    Differences are drawn `stretch` times as long as they come, and weighted for it, so that small p-values are seen.
    """
    p, weight = np.empty(tests), np.empty(tests)
    for number in range(tests):
        z = stretch * data.rng.standard_normal(data.d)
        apart = math.sqrt(2 * data.total) * z
        p[number] = TwoSampleTest(data.release(apart / 2), data.release(-apart / 2)).p_value
        weight[number] = stretch**data.d * math.exp(-float(z @ z) * (1 - stretch**-2) / 2)
    return np.array([(weight * (p <= size)).mean() / size for size in sizes])
