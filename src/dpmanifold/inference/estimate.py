"""A released mean with the covariance of its error: sampling plus noise, each in coordinates (theory section 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.linalg import symmetrize
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.base import vector_norm
from dpmanifold.release import Release

# Central differences: the error is of order step^2 and eps/step, both far below what a covariance needs.
_STEP = 1e-5
# From here on the F distribution is a chi-square to all digits that matter.
_MANY = 1e7


def spectral_noise(scale: float, dim: int) -> float:
    """Return the operator norm to allow for in symmetric noise of standard deviation `scale` on vecd.

    Its expectation (the semicircle's edge, less its first correction for a finite dimension), and in low dimension at
    least what keeps the coverage where noise is small (theory section 7, region).

    Examples
    --------
    >>> round(spectral_noise(1.0, 2), 3), round(spectral_noise(1.0, 45), 3)
    (1.413, 9.036)
    """
    edge = math.sqrt(2 * dim) - 0.85 / math.pow(dim, 1 / 6)
    return scale * max(edge, math.sqrt(_second_order(dim)))


def _second_order(dim: int) -> float:
    """Return (d + c)/4, c the 95 % quantile of chi-square: what small noise of variance 1 must add, over x."""
    return (dim + float(special.chdtri(dim, 0.05))) / 4


def safe_covariance(covariance: FloatArray, noise: float) -> FloatArray:
    """Return a covariance that was estimated with noise, enlarged so that dividing by it is safe.

    An eigenvalue x becomes x + a noise^2/(x + a noise), a <= 1 a number of the dimension. Where noise swamps it, the
    noise's own size takes its place; where it is small, what is added is of second order, as much as keeps the coverage
    (theory section 7, region).

    Parameters
    ----------
    covariance : estimated, (d, d)
    noise : its allowance as :func:`spectral_noise` gives it

    Examples
    --------
    >>> safe_covariance(np.diag([0.0, 1.0, 99.0]), 1.0).round(3).diagonal()
    array([ 1.   ,  1.471, 99.009])
    """
    dim = len(covariance)
    share = _second_order(dim) / spectral_noise(1.0, dim) ** 2
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    return symmetrize((vectors * (values + share * noise**2 / (values + share * noise))) @ vectors.T)


def mean_hessian(space: Manifold, low: FloatArray, high: FloatArray, reach: float) -> FloatArray:
    """Bound the mean Hessian of half the squared distance from below, given bounds of the second moment.

    With K the curvature operator of the second moment, it is at least I - a K, where a is the coefficient that the
    comparison with constant curvature has at the largest distance; never below its bound for single records (theory
    section 7, region). On flat spaces it is I.

    Parameters
    ----------
    space : the space
    low, high : second moments in coordinates, (d, d), the true one between them
    reach : no record is farther away than this
    """
    bottom, top = space.curvature
    worst, most = space.hessian_bounds(reach)
    if top > 0:
        slope = (1 - worst) / (top * reach**2)
        result = np.eye(space.dim) - slope * space.curvature_operator(high)
    elif bottom < 0:
        slope = (most - 1) / (-bottom * reach**2)
        result = np.eye(space.dim) - slope * space.curvature_operator(low)
    else:
        return np.eye(space.dim)
    values, vectors = np.linalg.eigh(result)
    return symmetrize((vectors * np.clip(values, worst, most)) @ vectors.T)


GAUSSIAN_MEANS = ("wrapped-gaussian", "riemannian-gaussian")


@dataclass(frozen=True, eq=False)
class ReleasedMean:
    """A mean that a Gaussian mechanism released, in the frame of its ball, and its noise in coordinates.

    Parameters
    ----------
    release : of a mean, by one of `GAUSSIAN_MEANS`
    """

    release: Release

    def __post_init__(self) -> None:
        if self.release.statistic != "mean" or self.release.mechanism not in GAUSSIAN_MEANS:
            raise InvalidArgumentError(
                f"release must be a mean by {' or '.join(GAUSSIAN_MEANS)}, got a {self.release.statistic} by "
                f"{self.release.mechanism}. private_region, private_interval and private_test make one."
            )

    @property
    def ball(self) -> Ball:
        """The public ball."""
        return self.release.ball

    @property
    def wrapped(self) -> bool:
        """Whether the noise is Gaussian in coordinates at the ball's centre, and not about the mean."""
        return self.release.mechanism == "wrapped-gaussian"

    @cached_property
    def at(self) -> Array:
        """The released mean in the ball's frame, clipped."""
        return self.ball.locate(self.release.value)[0]

    @cached_property
    def reach(self) -> float:
        """No record is farther from the released mean than this."""
        return sensitivity.reach(self.ball, away=self.ball.locate(self.release.value)[1])

    @property
    def base(self) -> Array:
        """The point of the frame in whose coordinates the noise is Gaussian."""
        return self.ball.frame.origin if self.wrapped else self.at

    def coordinates(self, base: Array) -> FloatArray:
        """Coordinates of the released mean at a base point of the frame."""
        return self.ball.frame.log_coords(base, self.at)

    def derivative(self, base: Array) -> FloatArray:
        """Derivative of coordinates at `base`, taken at the released mean, (d, d), by central differences."""
        frame = self.ball.frame
        if frame.is_flat or base is self.at or frame.curvature == (0.0, 0.0):
            return np.eye(frame.dim)
        # In units of the radius of curvature, on which alone the derivative depends.
        step = _STEP / math.sqrt(max(abs(bound) for bound in frame.curvature))
        ahead = frame.log_coords(base, frame.exp_coords(self.at, step * np.eye(frame.dim)))
        behind = frame.log_coords(base, frame.exp_coords(self.at, -step * np.eye(frame.dim)))
        return np.asarray((ahead - behind).T / (2 * step))

    @cached_property
    def noise(self) -> FloatArray:
        """Covariance of the noise in the frame at the released mean; a multiple of I in coordinates at `base`."""
        outer = np.linalg.inv(self.derivative(self.base))
        return self.release.scale**2 * symmetrize(outer @ outer.T)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A release of a second moment about a released mean, read as an estimate of the mean with its covariance.

    Parameters
    ----------
    release : statistic "second moment", whose step is the release of a mean by a Gaussian mechanism
    """

    release: Release

    def __post_init__(self) -> None:
        if self.release.statistic != "second moment" or len(self.release.steps) != 1:
            raise InvalidArgumentError(
                f"release must be a second moment about a released mean, got a {self.release.statistic}. "
                "private_region and private_test make one."
            )
        _ = self.mean  # refuses what is no Gaussian mean

    @cached_property
    def mean(self) -> ReleasedMean:
        """The released mean."""
        return ReleasedMean(self.release.steps[0])

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the released mean about the population's, in the frame at the released mean."""
        return safe_covariance(self.sampling + self.mean.noise, self.sampling_noise)

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues of the released second moment, kept in their public range, and its eigenvectors."""
        values, vectors = np.linalg.eigh(symmetrize(np.asarray(self.release.value, dtype=np.float64)))
        return np.clip(values, 0.0, self.mean.reach**2), vectors

    @cached_property
    def moment_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The second moment less and plus an allowance for its noise, within its public range."""
        values, vectors = self._spectrum
        noise = spectral_noise(self.release.scale, len(values))
        low, high = np.maximum(values - noise, 0.0), np.minimum(values + noise, self.mean.reach**2)
        return symmetrize((vectors * low) @ vectors.T), symmetrize((vectors * high) @ vectors.T)

    @cached_property
    def hessian(self) -> FloatArray:
        """Lower bound of the mean Hessian of half the squared distance at the released mean (half of Lambda)."""
        return mean_hessian(self.release.ball.frame, *self.moment_bounds, self.mean.reach)

    @cached_property
    def sampling(self) -> FloatArray:
        """Covariance of the sample mean about the population's as released, in the frame at the released mean."""
        values, vectors = self._spectrum
        return self._sandwich((vectors * values) @ vectors.T)

    @cached_property
    def sampling_noise(self) -> float:
        """Allowance for the noise in `sampling`, as an eigenvalue."""
        stretch = 1 / float(np.linalg.eigvalsh(self.hessian)[0]) ** 2
        return spectral_noise(self.release.scale, len(self.hessian)) * stretch / self.release.n

    @cached_property
    def sampling_at_most(self) -> FloatArray:
        """The same from public numbers alone: for too few units to tell."""
        return self._sandwich(self.mean.reach**2 * np.eye(self.release.ball.frame.dim))

    @cached_property
    def sampling_surely(self) -> FloatArray:
        """The part of it that cannot be the noise of the second moment: what is due to sampling for sure."""
        return self._sandwich(self.moment_bounds[0])

    def _sandwich(self, moment: FloatArray) -> FloatArray:
        inverse = np.linalg.inv(self.hessian)
        return symmetrize(inverse @ moment @ inverse) / self.release.n


def threshold(level: float, d: int, free: float) -> float:
    """Return what Hotelling's statistic in d dimensions stays below with probability `level`.

    Examples
    --------
    >>> round(threshold(0.95, 2, math.inf), 3), round(threshold(0.95, 2, 20.0), 3)
    (5.991, 7.415)
    """
    if free > _MANY:
        return float(special.chdtri(d, 1 - level))
    return float(free * d / (free - d + 1) * special.fdtri(d, free - d + 1, level))


def exceedance(statistic: float, d: int, free: float) -> float:
    """Return the probability that Hotelling's statistic is larger: undoes :func:`threshold`.

    Examples
    --------
    >>> round(exceedance(5.991, 2, math.inf), 4), round(exceedance(7.415, 2, 20.0), 4)
    (0.05, 0.05)
    """
    if free > _MANY:
        return float(special.chdtrc(d, statistic))
    return float(special.fdtrc(d, free - d + 1, statistic * (free - d + 1) / (free * d)))


def degrees_of_freedom(sampling: list[tuple[FloatArray, int]], total: FloatArray) -> float:
    """Return the degrees of freedom of a covariance of which parts were estimated (after Krishnamoorthy and Yu 2004).

    n - 1 for a single group without noise; noise of a known variance counts as known, so that more of it means more
    degrees of freedom. What exceeds the smallest n - 1 is shortened by (d/(n - 1))^2, because with few units small
    eigenvalues look as if they were noise (theory section 7, region).

    Parameters
    ----------
    sampling : covariance and number of units of each group
    total : the covariance of everything, noise included

    Examples
    --------
    >>> round(degrees_of_freedom([(np.eye(3), 25)], np.eye(3)), 9)
    24.0
    """
    d = len(total)
    inverse = np.linalg.inv(total)
    used = 0.0
    for covariance, n in sampling:
        share = inverse @ covariance
        used += (float((share * share.T).sum()) + float(np.trace(share)) ** 2) / (n - 1)
    if used == 0:
        return math.inf
    fewest = min(n for _, n in sampling) - 1
    return fewest + max(0.0, 1 - (d / fewest) ** 2) * ((d + d * d) / used - fewest)


def squared_length(covariance: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return v' covariance^-1 v for vectors (..., d)."""
    factor = np.linalg.cholesky(covariance)
    flat = np.linalg.solve(factor, vectors.reshape(-1, vectors.shape[-1]).T)
    return np.asarray((vector_norm(flat.T) ** 2).reshape(vectors.shape[:-1]))
