"""A released mean with the covariance of its error: sampling plus noise, each in coordinates (theory section 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import FeatureMap
from dpmanifold.inference.hotelling import NoisyCovariance, degrees_of_freedom, spectral_noise
from dpmanifold.linalg import symmetrize
from dpmanifold.manifolds import Manifold
from dpmanifold.mechanisms import get, usual
from dpmanifold.release import Release
from dpmanifold.statistic import Kind

# Which mean a conclusion is about.
FRECHET, TANGENT = "frechet", "tangent"
# Central differences: the error is of order step^2 and eps/step, both far below what a covariance needs.
_STEP = 1e-5
# Standard deviations from which on a noisy variance counts: so many balance stating too much error and too little.
STANDS_OUT = 1.2


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


def features_of(release: Release) -> FeatureMap | None:
    """Return the feature map that a release is the average of: it holds its mean itself; None of others."""
    found = getattr(release.definition, "features", None)
    return found if isinstance(found, FeatureMap) else None


def chart_derivative(frame: Manifold, base: Array, at: Array) -> FloatArray:
    """Return the derivative of coordinates at `base`, taken at another point, (d, d), by central differences."""
    if frame.is_flat or base is at or frame.curvature == (0.0, 0.0):
        return np.eye(frame.dim)
    # In units of the radius of curvature, on which alone the derivative depends.
    step = _STEP / math.sqrt(max(abs(bound) for bound in frame.curvature))
    ahead = frame.log_coords(base, frame.exp_coords(at, step * np.eye(frame.dim)))
    behind = frame.log_coords(base, frame.exp_coords(at, -step * np.eye(frame.dim)))
    return np.asarray((ahead - behind).T / (2 * step))


@dataclass(frozen=True, eq=False)
class ReleasedMean:
    """A mean that a Gaussian mechanism released: the point, and its noise in coordinates.

    Parameters
    ----------
    release : which holds it: of a mean, by the usual Gaussian mechanism at the ball's centre or about the mean
    """

    release: Release

    def __post_init__(self) -> None:
        known = [usual(noise="gaussian", about=about).name for about in ("center", "mean")]
        if self.release.estimand is None or self.release.mechanism not in known:
            raise InvalidArgumentError(
                f"release must be a mean by {' or '.join(known)}, got a {self.release.statistic} by "
                f"{self.release.mechanism}. Regions, intervals of variances and tests make one."
            )

    @property
    def ball(self) -> Ball:
        """The public ball."""
        return self.release.ball

    @property
    def value(self) -> Array:
        """The mean itself, a point of the space."""
        return np.asarray(self.release.value)

    @property
    def wrapped(self) -> bool:
        """Whether the noise is Gaussian in coordinates at the ball's centre, and not about the mean."""
        return get(self.release.mechanism).about == "center"

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
        """Derivative of coordinates at `base`, taken at the released mean, (d, d)."""
        return chart_derivative(self.ball.frame, base, self.at)

    @property
    def scale(self) -> float:
        """Standard deviation of the noise on each coordinate at `base`."""
        return self.release.scale

    @cached_property
    def noise(self) -> FloatArray:
        """Covariance of the noise in the frame at the released mean; a multiple of I in coordinates at `base`."""
        outer = np.linalg.inv(self.derivative(self.base))
        return self.scale**2 * symmetrize(outer @ outer.T)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A release of a second moment about a released mean, read as an estimate of the mean with its covariance.

    Parameters
    ----------
    release : statistic "second moment", whose step is the release of a mean by a Gaussian mechanism
    """

    release: Release
    estimand = FRECHET

    def __post_init__(self) -> None:
        found = self.release.definition
        if (found.power, found.kind) != (2, Kind.MATRIX) or len(self.release.steps) != 1:
            raise InvalidArgumentError(
                f"release must be a second moment about a released mean, got a {self.release.statistic}. "
                "private_region and private_two_sample_test make one."
            )
        _ = self.mean  # refuses what is no Gaussian mean

    @cached_property
    def mean(self) -> ReleasedMean:
        """The released mean."""
        return ReleasedMean(self.release.steps[0])

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the released mean about the population's as released, in the frame at the released mean."""
        return self.sampling + self.mean.noise

    @cached_property
    def error(self) -> NoisyCovariance:
        """The same with its own noise; with too few units to tell, the largest that public numbers allow."""
        free = degrees_of_freedom([(self.sampling, self.release.n)], self.covariance)
        if free > len(self.covariance) + 1:
            return NoisyCovariance(self.covariance, self.sampling_noise, free)
        return NoisyCovariance(self.sampling_at_most + self.mean.noise, 0.0, math.inf)

    def safe(self, tail: float) -> FloatArray:
        """Return the covariance to divide by where the truth may be outside with probability `tail`, (d, d)."""
        return self.error.safe(tail)

    def threshold(self, tail: float) -> float:
        """Return the squared radius of a region, in units of that covariance."""
        return self.error.threshold(tail)

    @cached_property
    def expected_error(self) -> tuple[float, float]:
        """Squared distance to expect between the released mean and the population's: of sampling, and of the noise.

        Sampling counts only where it stands out of its own noise: less than that would be seen without any.
        """
        stretch = np.linalg.matrix_power(np.linalg.inv(self.hessian), 2)
        found = float((stretch * np.asarray(self.release.value)).sum())
        seen = found if found > STANDS_OUT * self.release.scale * float(np.linalg.norm(stretch)) else 0.0
        return seen / (self.release.n - 1), float(np.trace(self.mean.noise))

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
        """Sandwich covariance of the sample mean about the population's, as released, at the released mean."""
        values, vectors = self._spectrum
        return self._sandwich((vectors * values) @ vectors.T, self.release.n - 1)

    @cached_property
    def sampling_noise(self) -> float:
        """Standard deviation of the noise in `sampling`, on vecd."""
        stretch = 1 / float(np.linalg.eigvalsh(self.hessian)[0]) ** 2
        return self.release.scale * stretch / (self.release.n - 1)

    @cached_property
    def sampling_at_most(self) -> FloatArray:
        """The same from public numbers alone: for too few units to tell."""
        return self._sandwich(self.mean.reach**2 * np.eye(self.release.ball.frame.dim), self.release.n)

    @cached_property
    def sampling_surely(self) -> FloatArray:
        """The part of it that cannot be the noise of the second moment: what is due to sampling for sure."""
        return self._sandwich(self.moment_bounds[0], self.release.n - 1)

    def _sandwich(self, moment: FloatArray, count: int) -> FloatArray:
        """Sandwich covariance H^-1 M H^-1/count of a mean; count is n, or n - 1 where M is the sample's own."""
        inverse = np.linalg.inv(self.hessian)
        return symmetrize(inverse @ moment @ inverse) / count
