"""Joint moments about the ball's centre, read as an estimate of the Fréchet mean on a curved space.

The average logarithm v at the centre is a mean Hessian H times m, the logarithm of the Fréchet mean there. Public
numbers and the released second moment say between which multiples of the identity H lies: m is v over the middle of
them but for a proven distance, by which a region for v is grown (theory section 7, region).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from dpmanifold import frechet
from dpmanifold._check import FloatArray
from dpmanifold.inference.estimate import FRECHET, Estimate
from dpmanifold.inference.joint import CentralMean, JointEstimate, is_joint
from dpmanifold.linalg import from_vecd, symmetrize
from dpmanifold.release import Release

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
