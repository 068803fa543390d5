"""Whether several independent means are equal: their squared distances from a common one, added up (theory: k-sample).

The Welch-James statistic, but for the covariance that it measures by. All of them are measured by one covariance, which
the groups estimate together: a metric that noise hides less than it hides each group's own. Unequal numbers of units
and unequal covariances enter by weights and by degrees of freedom. Public and released numbers come in, nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from dpmanifold._check import Array, FloatArray
from dpmanifold.inference.estimate import Estimate
from dpmanifold.inference.hotelling import MANY, NoisyCovariance, ShrunkCovariance, degrees_of_freedom, free_of
from dpmanifold.inference.joint import JointEstimate, combined
from dpmanifold.linalg import symmetrize

# Below this many degrees of freedom an F variable has no variance, by which it is fitted.
_FEWEST = 4.0


class Located(NamedTuple):
    """A released mean in coordinates that all groups share, with what its covariance is made of.

    Attributes
    ----------
    at : the mean, (d,)
    noise : covariance of its noise, (d, d), known
    sampling : covariance of the sample mean as released, (d, d), and the largest that public numbers allow
    hidden : standard deviation of the noise in `sampling`, on vecd
    n : how many units
    """

    at: FloatArray
    noise: FloatArray
    sampling: FloatArray
    most: FloatArray
    hidden: float
    n: int

    @staticmethod
    def of(group: JointEstimate) -> Located:
        """Return a group of joint moments, in coordinates at the ball's centre."""
        one = np.eye(group.dim)
        noise, most = group.mean.scale**2 * one, group.most * one
        return Located(group.mean.drawn, noise, group.sampling, most, group.sampling_noise, group.release.n)

    @staticmethod
    def about(group: Estimate, base: Array) -> Located:
        """Return a mean with a second moment about it, in coordinates at a base point of the frame."""
        inner = group.mean.derivative(base)
        noise, sampling, most = (
            symmetrize(inner @ covariance @ inner.T)
            for covariance in (group.mean.noise, group.sampling, group.sampling_at_most)
        )
        hidden = group.sampling_noise * float(np.linalg.norm(inner, 2)) ** 2
        return Located(group.mean.coordinates(base), noise, sampling, most, hidden, group.release.n)

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the mean as released."""
        return self.noise + self.sampling

    @property
    def relative_error(self) -> float:
        """Variance of the trace of `covariance` about the truth, over its square: of noise, and of sampling."""
        d, found = len(self.at), max(float(np.trace(self.sampling)), 0.0)
        squares = max(float((self.sampling**2).sum()) - d * (d + 1) / 2 * self.hidden**2, found**2 / d)
        total = max(float(np.trace(self.covariance)), float(np.trace(self.noise)))
        return (d * self.hidden**2 + 2 * squares / (self.n - 1)) / total**2


class Omnibus(NamedTuple):
    """What a test of equal means by the Welch-James statistic finds.

    Attributes
    ----------
    statistic : the sum of squared distances of the means from their weighted mean, in units of the common covariance
    p_value : how probable a larger one is if the means are equal
    dof : degrees of freedom of the F variable that it is a multiple of: (K - 1) d for equal covariances, fewer for
        others; and what estimated covariances leave
    """

    statistic: float
    p_value: float
    dof: tuple[float, float]


def omnibus_of_joint(groups: Sequence[JointEstimate]) -> Omnibus:
    """Compare means of joint moments on one ball, in coordinates at its centre.

    Parameters
    ----------
    groups : two or more, of different units
    """
    located, d = [Located.of(group) for group in groups], groups[0].dim
    if not all(group.is_identifiable for group in groups):
        return _at_most(located)
    means = _Weighted(located, [1 / (group.mean.scale**2 + group.least_trace / d) for group in groups])
    error = combined(list(groups), means.coefficients)
    assert isinstance(error, ShrunkCovariance)
    found = error.spectrum
    first = means.degrees(error.safe(1.0))
    free = free_of(found.together, found.apart, d, means.count)
    statistic = error.statistic(means.vectors)
    law = _Law(means.count * d * found.stretch, first, free).with_weights(means.count * d, means.uncertain)
    return Omnibus(statistic, law.exceedance(statistic), (law.first, law.second))


def omnibus_of(groups: Sequence[Located]) -> Omnibus:
    """Compare means with second moments about them, in any coordinates that the groups share.

    Parameters
    ----------
    groups : two or more, of different units
    """
    d = len(groups[0].at)
    means = _Weighted(groups, [d / float(np.trace(group.covariance)) for group in groups])
    parts = list(zip(groups, means.coefficients, strict=True))
    total: FloatArray = np.sum([times * group.covariance for group, times in parts], axis=0)
    free = degrees_of_freedom([(times * group.sampling, group.n) for group, times in parts], total)
    # With fewer the statistic has no mean, and the sum of several no variance.
    if free <= d + (1 if means.count == 1 else 3):
        return _at_most(groups)
    # The groups' noises are independent: their variances add up.
    hidden = math.hypot(*(times * group.hidden for group, times in parts))
    first = means.degrees(total)
    error = SeveralErrors(total, hidden, free, means.count, first, means.uncertain)
    statistic = error.statistic(means.vectors)
    return Omnibus(statistic, error.exceedance(statistic), (error.law.first, error.law.second))


def _at_most(groups: Sequence[Located]) -> Omnibus:
    """Compare means by the largest covariances that public numbers allow, where released ones do not tell.

    Each group's is below a multiple of the identity, so that the statistic is below a chi-square variable.
    """
    d = len(groups[0].at)
    most = [float(np.linalg.eigvalsh(group.noise + group.most)[-1]) for group in groups]
    means = _Weighted(groups, [1 / value for value in most])
    statistic, first = means.unit * float((means.vectors**2).sum()), float(means.count * d)
    return Omnibus(statistic, float(special.chdtrc(first, statistic)), (first, math.inf))


class _Weighted:
    """Several means and the weights they count with."""

    def __init__(self, groups: Sequence[Located], weights: Sequence[float]) -> None:
        self._groups = groups
        self.unit = max(weights)
        """What weights are given in: products of them stay finite, and what is measured by their sum has none."""
        self._weights = np.array(weights) / self.unit
        self.count = len(groups) - 1
        share = self._weights / self._weights.sum()
        means = np.array([group.at for group in groups])
        self.vectors: FloatArray = np.sqrt(self._weights)[:, None] * (means - share @ means)
        """Distances from the weighted mean times roots of weights, (K, d): K - 1 errors' worth, if means are equal."""
        # By the sum of their squares: the covariance of a mean counts with what it has of it.
        self._forms = np.diag(self._weights) - np.outer(self._weights, share)
        self.coefficients: list[float] = (np.diag(self._forms) / self.count).tolist()
        """What the covariance of each mean counts with in that of one error."""

    @property
    def uncertain(self) -> float:
        """What weights that were estimated add to the mean of the statistic, as a share of it (after Welch 1951).

        That the common covariance is estimated with them is allowed for by whoever measures by it, and taken off here:
        nothing is left for two groups.
        """
        m, share = self.count, self._weights / self._weights.sum()
        errors = np.array([group.relative_error for group in self._groups])
        return (m - 1) / m**2 * float((errors * (1 - share) ** 2).sum())

    def degrees(self, metric: FloatArray) -> float:
        """Return the degrees of freedom of the statistic: (K - 1) d, less where weighted covariances differ.

        The statistic is a sum of chi-squares with different weights; a multiple of one has the same mean and variance
        if it has these degrees of freedom (Satterthwaite 1946, Box 1954).
        """
        most = self.count * len(metric)
        inverse = np.linalg.inv(metric)
        shares = [inverse @ group.covariance for group in self._groups]
        products = np.array([[float((one * other.T).sum()) for other in shares] for one in shares])
        equal = self.count * np.outer(self.coefficients, self.coefficients)
        excess = float(((self._forms**2 - equal) * products).sum())
        # Squares of what was released with noise, and of samples, are too large by what is known on average.
        for group, own in zip(self._groups, np.diag(self._forms), strict=True):
            sampling = inverse @ group.sampling
            noise = group.hidden**2 / 2 * (float(np.trace(inverse)) ** 2 + float((inverse**2).sum()))
            chance = (float(np.trace(sampling)) ** 2 + float((sampling * sampling.T).sum())) / (group.n - 1)
            excess -= own**2 * (1 - 1 / self.count) * (noise + chance)
        return most**2 / (most + min(max(excess, 0.0), most * (most - 1.0)))


class _Law(NamedTuple):
    """The law of a statistic: a multiple of an F variable, by its mean and degrees of freedom."""

    mean: float
    first: float
    second: float

    def with_weights(self, dimension: int, uncertain: float) -> _Law:
        """Return the law where weights were estimated: a larger mean, and fewer degrees of freedom."""
        if uncertain == 0:
            return self
        second = 1 / (1 / self.second + uncertain / (dimension + 2))
        return _Law(self.mean * (1 + uncertain), self.first, max(second, _FEWEST))

    def exceedance(self, statistic: float) -> float:
        """Return how probable more is."""
        if self.second > MANY:
            return float(special.chdtrc(self.first, statistic / self.mean * self.first))
        return float(special.fdtrc(self.first, self.second, statistic / self.mean * self.second / (self.second - 2)))


@dataclass(frozen=True, eq=False)
class SeveralErrors(NoisyCovariance):
    """A covariance estimated with noise, by which the squared lengths of several errors are measured and added up.

    Parameters
    ----------
    covariance, noise, free : as of one error
    count : how many errors
    first : degrees of freedom of their sum: count d, fewer if their covariances differ
    uncertain : what estimated weights add to its mean, as a share

    Examples
    --------
    >>> from dpmanifold.inference.hotelling import exceedance
    >>> one = SeveralErrors(np.eye(2), 0.0, 20.0, 1, 2.0)
    >>> round(one.exceedance(7.415), 4), round(exceedance(7.415, 2, 20.0), 4)
    (0.05, 0.05)
    """

    count: int = 1
    first: float = 1.0
    uncertain: float = 0.0

    @cached_property
    def law(self) -> _Law:
        """The law of the sum: that of Lawley and Hotelling's trace, after McKeon (1974)."""
        d, m, free = len(self.covariance), self.count, self.free
        if free > MANY:
            return _Law(m * d, self.first, math.inf).with_weights(m * d, self.uncertain)
        second = free - d + 1
        if m > 1:
            ratio = (free + m - d - 1) * (free - 1) / ((free - d - 3) * (free - d))
            second = 4 + (m * d + 2) / (ratio - 1)
        return _Law(m * d * free / (free - d - 1), self.first, second).with_weights(m * d, self.uncertain)

    def exceedance(self, statistic: float) -> float:
        """Return how probable a larger sum is."""
        return self.law.exceedance(statistic)
