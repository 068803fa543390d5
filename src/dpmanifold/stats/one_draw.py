"""Whether a region for the Fréchet mean on a curved space is smaller from one draw of joint moments; public numbers.

One draw has less noise than a mean and a second moment about it, but holds the tangent mean: the region is grown by how
far the two can be apart (theory section 7, region). What either way gives is made up for data of an assumed spread.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import FloatArray
from dpmanifold.errors import DPManifoldError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.inference.estimate import mean_hessian
from dpmanifold.inference.hotelling import NoisyCovariance, degrees_of_freedom, spectral_noise
from dpmanifold.linalg import from_vecd, to_vecd
from dpmanifold.privacy import Promise
from dpmanifold.release import Drawn, Release
from dpmanifold.stats.averaged import AverageProgram
from dpmanifold.stats.chain import Chain
from dpmanifold.stats.joint_moments import JOINT_MOMENTS, JointMomentsAboutCenter
from dpmanifold.stats.second_moment import REGION_SHARES, SECOND_MOMENT

# The data assumed: uniform up to this share of the radius about a mean that is so many radii from the centre. Data that
# lie closer together, or about the centre, gain more from one draw.
_FILL, _AWAY = 0.6, 0.3
# One draw is taken where its region has at most this part of the other's radius.
_CLEARLY = 0.9
# Regions made up of each kind; in high dimension one tells enough, as eigenvalues hardly vary there.
_MADE_UP, _MANY_DIMENSIONS = 8, 30
_TAIL = 0.05


def made_up(
    draw: AverageProgram, variance: float, rng: np.random.Generator, center: FloatArray | None = None
) -> Release:
    """Return a release of joint moments of normal data, of a variance along every axis, about a point.

    Parameters
    ----------
    draw : what will be drawn
    variance : along every axis
    rng : a generator with a public seed
    center : where the data lie, (d,) in coordinates at the ball's centre; at that centre if left out
    """
    statistic, header = draw.statistic, draw.header
    assert isinstance(statistic, JointMomentsAboutCenter)
    d, n = header.ball.space.dim, header.n
    # Bartlett: the sample's covariance about its own mean, times n.
    root = np.tril(rng.standard_normal((d, d)), -1)
    root[np.diag_indices(d)] = np.sqrt(rng.chisquare(np.maximum(n - 1 - np.arange(d), 1)))
    mean = math.sqrt(variance / n) * rng.standard_normal(d) + (0.0 if center is None else center)
    moment = variance / n * root @ root.T + np.outer(mean, mean)
    hidden = np.concatenate([mean, to_vecd(moment)])
    units = statistic.features.units(d, header.ball.radius)
    value = hidden + draw.calibration.scale * units * rng.standard_normal(len(hidden))
    return Release.of(
        JOINT_MOMENTS, value, replace(header, private=False), draw.calibration, (Drawn(value / units),),
        details=statistic.stating(), tol=0.0, projected=False,
    )  # fmt: skip


def smaller_in_one_draw(draw: AverageProgram, rest: Promise) -> bool:
    """Return whether a region for the Fréchet mean is clearly smaller from one draw; or the only one that can be made.

    Parameters
    ----------
    draw : of joint moments that stand for the Fréchet mean, in the public ball
    rest : what the mean and the second moment about it may cost together
    """
    ball = draw.header.ball
    d = ball.frame.dim
    try:
        chain = Chain.make(draw.header, rest, REGION_SHARES, (SECOND_MOMENT,))
    except DPManifoldError:
        return True
    rng, count = np.random.default_rng(0), 1 if d > _MANY_DIMENSIONS else _MADE_UP
    variance = (_FILL * ball.radius) ** 2 / (d + 2)
    center = _AWAY * ball.radius * np.eye(d)[0]
    ours = [_squared_radius(ConfidenceRegion(made_up(draw, variance, rng, center), 1 - _TAIL)) for _ in range(count)]
    theirs = [_about_a_mean(chain, variance, rng) for _ in range(count)]
    return float(np.mean(ours)) <= _CLEARLY**2 * float(np.mean(theirs))


def _squared_radius(region: ConfidenceRegion) -> float:
    return region.threshold * float(np.trace(region.covariance))


def _about_a_mean(chain: Chain, variance: float, rng: np.random.Generator) -> float:
    """Return the squared radius of a region from a mean and a second moment about it, near that mean."""
    header, ball = chain.header, chain.header.ball
    n, d = header.n, ball.frame.dim
    reach, known = sensitivity.reach(ball, away=_AWAY * ball.radius), chain.chosen[1].scale ** 2 * np.eye(d)
    scale = SECOND_MOMENT.step(header, chain.shares[1], _AWAY * ball.radius, exact=False).scale
    found, vectors = np.linalg.eigh(variance * np.eye(d) + from_vecd(scale * rng.standard_normal(d * (d + 1) // 2)))
    values = np.clip(found, 0.0, reach**2)
    off = spectral_noise(scale, d)
    low, high = ((vectors * np.clip(values + part, 0.0, reach**2)) @ vectors.T for part in (-off, off))
    inverse = np.linalg.inv(mean_hessian(ball.frame, low, high, reach))
    sampling = inverse @ ((vectors * values) @ vectors.T) @ inverse / (n - 1)
    free = degrees_of_freedom([(sampling, n)], sampling + known)
    if free > d + 1:
        error = NoisyCovariance(sampling + known, scale * float(np.linalg.norm(inverse, 2)) ** 2 / (n - 1), free)
    else:
        error = NoisyCovariance(reach**2 * inverse @ inverse / n + known, 0.0, math.inf)
    return error.threshold(_TAIL) * float(np.trace(error.safe(_TAIL)))
