"""A mean and a second moment about the ball's centre, released in one draw, read as a mean with its covariance.

The mean is that of coordinates at the centre: the Fréchet mean on flat spaces, the tangent mean elsewhere (theory
section 7, region).

On a curved space they can be read as an estimate of the Fréchet mean as well. The average logarithm v at the centre is
a mean Hessian H times m, the logarithm of the Fréchet mean there. Public numbers and the released second moment say
between which multiples of the identity H lies: m is v over the middle of them but for a proven distance, by which a
region for v is grown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import WEIGHT, JointMoments
from dpmanifold.inference.estimate import FRECHET, STANDS_OUT, TANGENT, Estimate, ReleasedMean, features_of
from dpmanifold.inference.hotelling import NoisyCovariance, ShrunkCovariance
from dpmanifold.linalg import from_vecd, symmetrize
from dpmanifold.manifolds.base import shorten
from dpmanifold.release import Release

# With fewer units a spread cannot be told from chance.
_FEWEST_UNITS = 6
# With fewer units than dimensions, sampling may be this many times as large as noise before nothing can be said of it.
_LARGEST_SHARE = 3.0


def is_joint(release: Release) -> bool:
    """Return whether a release is of joint moments about the ball's centre."""
    return isinstance(features_of(release), JointMoments)


class CentralMean(ReleasedMean):
    """The mean of a release of joint moments: normal noise in coordinates at the ball's centre."""

    def __post_init__(self) -> None:
        if not is_joint(self.release):
            raise InvalidArgumentError(f"release must be of joint moments, got a {self.release.statistic}.")

    @property
    def value(self) -> Array:
        """The mean itself, a point of the space: in the ball, also where noise carried the draw out of it."""
        return np.asarray(self.ball.from_frame(self.at[None])[0])

    @property
    def wrapped(self) -> bool:
        """True: the noise is normal in coordinates at the centre."""
        return True

    @property
    def middle(self) -> float:
        """What the average logarithm is divided by: nothing is corrected."""
        return 1.0

    @cached_property
    def drawn(self) -> FloatArray:
        """The mean in coordinates at the centre, (d,), as it was drawn: noise may have carried it out of the ball."""
        return np.asarray(self.release.value, dtype=np.float64)[: self.ball.frame.dim]

    @cached_property
    def at(self) -> Array:
        """The mean in the ball's frame, clipped."""
        return self.placed(self.drawn)

    def placed(self, coordinates: FloatArray) -> Array:
        """Return the point of the frame that has such coordinates at the centre, clipped to the ball."""
        frame = self.ball.frame
        return frame.exp_coords(frame.origin, shorten(coordinates, self.ball.radius))

    @cached_property
    def reach(self) -> float:
        """No record is farther from the mean than this."""
        return self.ball.effective_radius + min(float(np.linalg.norm(self.drawn)), self.ball.radius)

    def coordinates(self, base: Array) -> FloatArray:
        """Coordinates at a base point of the frame; at the centre as they were drawn."""
        return self.drawn if base is self.base else super().coordinates(base)

    @property
    def scale(self) -> float:
        """Standard deviation of the noise on each coordinate."""
        return self.release.scale * self.ball.radius


@dataclass(frozen=True, eq=False)
class JointEstimate:
    """A release of joint moments, read as an estimate of a mean with its covariance, in coordinates at the centre.

    Parameters
    ----------
    release : statistic "joint moments"

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0)
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (5000, 2))
    >>> release = dpm.private_region(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD).release
    >>> bool(np.allclose(JointEstimate(release).spread, np.eye(2) / 12, atol=0.01))
    True
    """

    release: Release

    def __post_init__(self) -> None:
        _ = self.mean  # refuses what has no joint moments

    @cached_property
    def mean(self) -> CentralMean:
        """The released mean."""
        return CentralMean(self.release)

    @property
    def estimand(self) -> str:
        """Which mean it is about: on flat spaces that of coordinates is the Fréchet mean."""
        return FRECHET if self.release.ball.space.is_flat else TANGENT

    @property
    def dim(self) -> int:
        """The dimension."""
        return self.release.ball.frame.dim

    @cached_property
    def moment_scale(self) -> float:
        """Standard deviation of the noise on vecd of the second moment."""
        units = JointMoments(self.release.details[WEIGHT]).units(self.dim, self.release.ball.radius)
        return self.release.scale * float(units[-1])

    @cached_property
    def spread(self) -> FloatArray:
        """Covariance of the units, (d, d): on average that of the sample, by n, and not necessarily positive."""
        p = self.mean.drawn
        moment = from_vecd(np.asarray(self.release.value, dtype=np.float64)[self.dim :])
        # The noise on the mean adds its own variance to p p', which is known.
        return symmetrize(moment - np.outer(p, p) + self.mean.scale**2 * np.eye(self.dim))

    @cached_property
    def _drift(self) -> float:
        """Squared length of the mean without its noise, as far as it can be told, in the ball."""
        noise = self.dim * self.mean.scale**2
        return min(max(float(self.mean.drawn @ self.mean.drawn) - noise, 0.0), self.release.ball.radius**2)

    @cached_property
    def spread_noise(self) -> float:
        """Standard deviation of the noise in `spread`, on vecd: of the second moment, and of p p' on average."""
        variance = self.mean.scale**2
        return math.sqrt(self.moment_scale**2 + 4 * variance * self._drift / self.dim + 2 * variance**2)

    # ---------------------------------------------------------------- the covariance of the mean

    @cached_property
    def sampling(self) -> FloatArray:
        """Covariance of the sample mean about the population's as released."""
        return np.asarray(self.spread / (self.release.n - 1))

    @cached_property
    def sampling_noise(self) -> float:
        """Standard deviation of the noise in `sampling`, on vecd."""
        return self.spread_noise / (self.release.n - 1)

    @property
    def least_trace(self) -> float:
        """The trace of `sampling`, not less than can be told from its noise."""
        return max(float(np.trace(self.sampling)), math.sqrt(self.dim) * self.sampling_noise)

    @property
    def most(self) -> float:
        """No covariance of a sample mean has a larger eigenvalue: from public numbers alone."""
        return self.release.ball.effective_radius**2 / self.release.n

    @property
    def is_identifiable(self) -> bool:
        """Whether there are units enough to tell a spread from chance."""
        n, known = self.release.n, self.mean.scale**2
        many = n - 1 > self.dim + 1
        return n >= _FEWEST_UNITS and (many or float(np.trace(self.sampling)) <= _LARGEST_SHARE * self.dim * known)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the released mean about the population's as released."""
        return self.sampling + self.mean.scale**2 * np.eye(self.dim)

    @cached_property
    def error(self) -> ShrunkCovariance | NoisyCovariance:
        """The same, in coordinates at the centre; with too few units to tell, what public numbers allow."""
        return combined([self])

    @cached_property
    def _outer(self) -> FloatArray:
        """Takes coordinates at the centre to those at the mean, (d, d)."""
        return np.asarray(np.linalg.inv(self.mean.derivative(self.mean.base)))

    def at_center(self, tail: float) -> FloatArray:
        """Return the covariance to divide by, in coordinates at the ball's centre, (d, d)."""
        return self.error.safe(tail)

    def safe(self, tail: float) -> FloatArray:
        """Return the same in the frame at the released mean."""
        return symmetrize(self._outer @ self.at_center(tail) @ self._outer.T)

    def threshold(self, tail: float) -> float:
        """Return the squared radius of a region, in units of that covariance."""
        return self.error.threshold(tail)

    @cached_property
    def surely(self) -> FloatArray:
        """The part of the sampling covariance that cannot be noise, in coordinates at the centre."""
        return self.error.sampling if isinstance(self.error, ShrunkCovariance) else np.zeros((self.dim, self.dim))

    @cached_property
    def sampling_surely(self) -> FloatArray:
        """The same in the frame at the released mean."""
        return symmetrize(self._outer @ self.surely @ self._outer.T)

    @property
    def hessian(self) -> FloatArray:
        """The identity: the mean is an average in coordinates."""
        return np.eye(self.dim)

    @cached_property
    def expected_error(self) -> tuple[float, float]:
        """Squared distance to expect between the released mean and the population's: of sampling, and of the noise.

        Sampling counts only where it stands out of its own noise: less than that would be seen without any.
        """
        found, d, variance = float(np.trace(self.spread)), self.dim, self.mean.scale**2
        noise = math.sqrt(d * self.moment_scale**2 + 4 * variance * self._drift + 2 * d * variance**2)
        return (found if found > STANDS_OUT * noise else 0.0) / (self.release.n - 1), d * variance


def combined(
    groups: list[JointEstimate], coefficients: Sequence[float] | None = None
) -> ShrunkCovariance | NoisyCovariance:
    """Return the covariance of a sum or difference of means of independent groups, in coordinates at the centre.

    Parameters
    ----------
    groups : of independent units, on one ball
    coefficients : what the covariance of each group's mean counts with; 1 if left out
    """
    d = groups[0].dim
    parts = list(zip(groups, coefficients or [1.0] * len(groups), strict=True))
    known = sum(times * group.mean.scale**2 for group, times in parts)
    most = sum(times * group.most for group, times in parts)
    if not all(group.is_identifiable for group in groups):
        return NoisyCovariance((known + most) * np.eye(d), 0.0, math.inf)
    total: FloatArray = np.sum([times * group.covariance for group, times in parts], axis=0)
    # How much of the sampling is each group's: not less than can be told.
    traces = [times * group.least_trace for group, times in parts]
    shares = [trace / sum(traces) for trace in traces]
    per_degree = sum(share**2 / (group.release.n - 1) for share, group in zip(shares, groups, strict=True))
    noise = math.hypot(*(times * group.sampling_noise for group, times in parts))
    return ShrunkCovariance(total, known, noise, per_degree, most)


ABOUT_FRECHET = "about_frechet_mean"
"""What joint moments on a curved space state whose mean stands for the Fréchet mean: 1."""
# Of what a region may miss, this part is for a spread of the units beyond what was released.
_FOR_SPREAD = 0.02
# The middle must not depend on the level: it is that of a region of 95 %. It is never below this.
_USUAL_TAIL, _LEAST_MIDDLE = 0.05, 0.5
# How often the farthest that the Fréchet mean can be is bounded anew; every time is a bound.
_ROUNDS = 4


class Grown(NamedTuple):
    """An ellipsoid in coordinates at the centre, for the Fréchet mean.

    Attributes
    ----------
    covariance : (d, d), the distance included
    threshold : its squared radius in units of the covariance
    gap : the proven distance
    share : of the trace of the covariance, the part that is there for this distance
    """

    covariance: FloatArray
    threshold: float
    gap: float
    share: float


class CorrectedMean(CentralMean):
    """The mean of a release of joint moments, over the middle of what the mean Hessian can be."""

    @cached_property
    def middle(self) -> float:
        """What the average logarithm is divided by."""
        low, high = frechet.hessian_range(self.ball, spread=spread_at_most(self.release, _FOR_SPREAD * _USUAL_TAIL))
        return max((low + high) / 2, _LEAST_MIDDLE)

    @cached_property
    def drawn(self) -> FloatArray:
        """The mean in coordinates at the centre, (d,): as it was drawn, over the middle."""
        return CentralMean(self.release).drawn / self.middle

    @property
    def scale(self) -> float:
        """Standard deviation of the noise on each coordinate."""
        return super().scale / self.middle


def spread_at_most(release: Release, tail: float) -> float:
    """Bound the root mean square distance of the population from the centre, but for a probability `tail`.

    Half of it is for the noise on the trace of the second moment, half for sampling: an average of squared distances in
    [0, r^2] of mean t^2 falls below t^2 by more than x with probability exp(-n x^2/(2 r^2 t^2)) at most.
    """
    estimate, r = JointEstimate(release), release.ball.effective_radius
    seen = float(np.trace(from_vecd(np.asarray(release.value, dtype=np.float64)[estimate.dim :])))
    noise = float(-special.ndtri(tail / 2)) * math.sqrt(estimate.dim) * estimate.moment_scale
    chance = math.sqrt(-2 * math.log(tail / 2) / release.n) * r
    # t^2 <= seen + noise + chance t
    return min((chance + math.sqrt(chance**2 + 4 * (max(seen, 0.0) + noise))) / 2, r)


@dataclass(frozen=True, eq=False)
class CorrectedEstimate:
    """Joint moments on a curved space, read as an estimate of the Fréchet mean with its covariance.

    Parameters
    ----------
    release : statistic "joint moments", stating that its mean stands for the Fréchet mean
    """

    release: Release
    estimand = FRECHET

    @cached_property
    def tangent(self) -> JointEstimate:
        """The same, read as an estimate of the tangent mean."""
        return JointEstimate(self.release)

    @cached_property
    def mean(self) -> CorrectedMean:
        """The released mean, moved by half of what the distance can be."""
        return CorrectedMean(self.release)

    def grown(self, tail: float) -> Grown:
        """Return the ellipsoid for the Fréchet mean, about `mean.drawn`, outside of which it is with that tail."""
        ball, middle, d = self.release.ball, self.mean.middle, self.tangent.dim
        spread, kept = spread_at_most(self.release, _FOR_SPREAD * tail), (1 - _FOR_SPREAD) * tail
        error = self.tangent.error
        covariance, threshold = error.safe(kept), error.threshold(kept)
        longest = math.sqrt(threshold * float(np.linalg.eigvalsh(covariance)[-1]))
        farthest = float(np.linalg.norm(self.tangent.mean.drawn)) + longest
        away = ball.effective_radius
        for _ in range(_ROUNDS):
            low, high = frechet.hessian_range(ball, away, spread)
            away = min(away, farthest / low) if low > 0 else away
        gap = away * max(high - middle, middle - low)
        # The smallest ellipsoid, by its trace, around the sum of an ellipsoid and a ball.
        size = math.sqrt(threshold * float(np.trace(covariance)) / d)
        around = (1 + gap / size) * covariance + (gap + size) * gap / threshold * np.eye(d)
        share = 1 - float(np.trace(covariance) / np.trace(around))
        return Grown(symmetrize(around) / middle**2, threshold, gap / middle, share)

    @cached_property
    def _outer(self) -> FloatArray:
        """Takes coordinates at the centre to those at the mean, (d, d)."""
        return np.asarray(np.linalg.inv(self.mean.derivative(self.mean.base)))

    def at_center(self, tail: float) -> FloatArray:
        """Return the covariance to divide by, in coordinates at the ball's centre, (d, d)."""
        return self.grown(tail).covariance

    def safe(self, tail: float) -> FloatArray:
        """Return the same in the frame at the released mean."""
        return symmetrize(self._outer @ self.at_center(tail) @ self._outer.T)

    def threshold(self, tail: float) -> float:
        """Return the squared radius of the region, in units of that covariance."""
        return self.grown(tail).threshold

    @cached_property
    def sampling_surely(self) -> FloatArray:
        """The part of the sampling covariance that cannot be noise, in the frame at the released mean."""
        return symmetrize(self._outer @ self.tangent.surely @ self._outer.T) / self.mean.middle**2

    @property
    def hessian(self) -> FloatArray:
        """Lower bound of the mean Hessian between the centre and the Fréchet mean."""
        spread = spread_at_most(self.release, _FOR_SPREAD * _USUAL_TAIL)
        return frechet.hessian_range(self.release.ball, spread=spread)[0] * np.eye(self.tangent.dim)

    @cached_property
    def expected_error(self) -> tuple[float, float]:
        """Squared distance to expect between the released mean and the population's: of sampling, and of the noise.

        With the first, the most that the mean Hessian may differ from its middle.
        """
        spread, middle = spread_at_most(self.release, _FOR_SPREAD * _USUAL_TAIL), self.mean.middle
        low, high = frechet.hessian_range(self.release.ball, spread=spread)
        off = max(high - middle, middle - low) / middle * float(np.linalg.norm(self.mean.drawn))
        sampling, noise = self.tangent.expected_error
        return sampling / middle**2 + min(off, self.release.ball.effective_radius) ** 2, noise / middle**2


def estimate_of(release: Release) -> Estimate | JointEstimate | CorrectedEstimate:
    """Return what a release says about a mean and its error: joint moments, or a second moment about a mean."""
    if not is_joint(release):
        return Estimate(release)
    return CorrectedEstimate(release) if ABOUT_FRECHET in release.details else JointEstimate(release)
