"""What a region or a test would be worth, before any data: for data of an assumed spread, from public numbers alone.

Releases of such data are made up, by the laws of the sample's moments and of the noise, and read as real ones are. The
numbers are the same for the same question: the simulation has a seed of its own.

By them it is decided, too, whether a region for the Fréchet mean on a curved space is smaller from one draw of joint
moments. One draw has less noise than a mean and a second moment about it, but holds the tangent mean: the region is
grown by how far the two can be apart (theory section 7, region).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from scipy import special

from dpmanifold import sensitivity
from dpmanifold._check import FloatArray, fraction
from dpmanifold.errors import DPManifoldError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.inference.estimate import mean_hessian
from dpmanifold.inference.hotelling import NoisyCovariance, degrees_of_freedom, spectral_noise
from dpmanifold.inference.joint import JointEstimate, combined
from dpmanifold.linalg import from_vecd, to_vecd
from dpmanifold.privacy import Promise
from dpmanifold.release import Drawn, Release
from dpmanifold.stats.averaged import AverageProgram
from dpmanifold.stats.joint_moments import JOINT_MOMENTS, JointMomentsAboutCenter
from dpmanifold.stats.moment_chain import REGION_SHARES, SECOND_MOMENT, Chain
from dpmanifold.stats.program import Parallel, Program

# The data assumed: uniform up to this share of the radius about a mean that is so many radii from the centre. Data that
# lie closer together, or about the centre, gain more from one draw.
_FILL, _AWAY = 0.6, 0.3
# One draw is taken where its region has at most this part of the other's radius.
_CLEARLY = 0.9
# Regions made up of each kind; in high dimension one tells enough, as eigenvalues hardly vary there.
_REGIONS, _MANY_DIMENSIONS = 8, 30
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
    rng, count = np.random.default_rng(0), 1 if d > _MANY_DIMENSIONS else _REGIONS
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


USUAL_FILL = 0.5
"""The share of the radius that data are assumed to fill, unless something else is said."""
LEVEL, POWER = 0.95, 0.8
# Share of normal data that lie within the assumed part of the radius.
_INSIDE = 0.95
# How many releases are made up, up to which dimension; beyond the last, none are.
_MADE_UP = {12: 100, 60: 40}
# Differences of means that are tried with each.
_DIFFERENCES = 20


@dataclass(frozen=True)
class Prospect:
    """What a region or a test would be worth. Public: no data was touched.

    Attributes
    ----------
    fill : the data are assumed to be normal, spread alike in all directions, with 95 % of them within this share of the
        radius of their mean
    size : of a region, the effective radius to expect at a level of 0.95; of a test, how far apart means are whose
        difference it finds at 5 % in 80 of 100 studies; infinite where it finds none in the ball. Of several groups it
        is the two smallest whose difference is found, among all pairs
    plain : the same without noise: what sampling alone leaves
    pairs : of how many pairs of groups each is one; 1 where there are two groups
    unknown : why neither can be told, in words; both are nan then. Empty where they can
    """

    of_test: bool
    fill: float
    size: float
    plain: float
    unknown: str = ""
    pairs: int = 1

    @property
    def verdict(self) -> str:
        """Say in words what to expect."""
        if self.unknown:
            return (
                f"How {'small a difference the test finds' if self.of_test else 'large the region will be'} is not "
                + (f"told beforehand: {self.unknown}. Simulate with made-up data to see.")
            )
        said = f"If the data lie within {self.fill:g} of the radius of their mean, "
        if not self.of_test:
            return said + (
                f"expect a {LEVEL:.0%} region of effective radius {self.size:.3g}; without noise it would be "
                f"{self.plain:.3g}."
            )
        if math.isinf(self.size):
            if self.pairs > 1:
                return said + "the two smallest groups are hardly found to differ, however far apart their means are."
            return said + "the test will hardly find a difference, however far apart the means are."
        if self.pairs > 1:
            return said + (
                f"any two groups whose means are {self.size:.3g} apart are found to differ in {100 * POWER:.0f} of 100 "
                f"studies or more, among all {self.pairs} pairs; without noise {self.plain:.3g} would do."
            )
        return said + (
            f"the test finds means that are {self.size:.3g} apart in {100 * POWER:.0f} of 100 studies; without noise "
            f"{self.plain:.3g} would do."
        )


def joint_draws(plan: Program[Any] | Parallel) -> list[AverageProgram]:
    """Return the draws of joint moments that a plan of a region or a test consists of; none where it has others."""
    draws = getattr(plan, "joint", [plan])
    joint = [
        draw
        for draw in draws
        if isinstance(draw, AverageProgram) and isinstance(draw.statistic, JointMomentsAboutCenter)
    ]
    return joint if len(joint) == len(plan.steps()) else []


def prospect(draws: Sequence[AverageProgram], fill: float, of_test: bool, dim: int) -> Prospect:
    """Return what one draw of joint moments is worth as a region, or several as a test; or why it is not known.

    Of several groups it is told for the two smallest, at a size that all pairs share equally: the pairs' p-values are
    adjusted by less than that, and for larger groups means nearer to each other will do.

    Parameters
    ----------
    draws : what will be drawn of each group: joint moments, all on one ball; none where something else is drawn
    fill : as in :class:`Prospect`
    of_test : whether it is about a test
    dim : dimension of the space

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> from dpmanifold.statistic import Header
    >>> from dpmanifold.stats.joint_moments import JOINT_MOMENTS
    >>> header = Header(dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0), 100, dpm.GDP(1.0))
    >>> found = prospect([JOINT_MOMENTS.prepared(header)], 0.5, of_test=False, dim=2)
    >>> round(found.size, 2), round(found.plain, 2)
    (0.04, 0.03)
    """
    fill = fraction(fill, "fill")
    count = next((count for most, count in _MADE_UP.items() if dim <= most), 0)
    if not draws or count == 0:
        why = (
            f"the space has {dim} dimensions, more than {max(_MADE_UP)}" if draws else "it takes draws of several kinds"
        )
        return Prospect(of_test, fill, math.nan, math.nan, why)
    pairs = math.comb(len(draws), 2)
    draws = sorted(draws, key=lambda draw: draw.header.n)[:2] if pairs > 1 else draws
    radius = draws[0].header.ball.radius
    rng = np.random.default_rng(0)
    variance = (fill * radius) ** 2 / float(special.chdtri(dim, 1 - _INSIDE))
    made = [[made_up(draw, variance, rng) for draw in draws] for _ in range(count)]
    if not of_test:
        size = float(np.mean([ConfidenceRegion(one, LEVEL).effective_radius for (one,) in made]))
        return Prospect(of_test, fill, size, math.sqrt(dim * variance / draws[0].header.n))
    size, numbers = (1 - LEVEL) / pairs, [draw.header.n for draw in draws]
    found, plain = _found_apart(made, variance, rng, size), _found_without_noise(dim, numbers, variance, size)
    return Prospect(of_test, fill, found, plain, pairs=pairs)


def _found_apart(made: list[list[Release]], variance: float, rng: np.random.Generator, size: float) -> float:
    """Return how far apart means are that tests of this size of such releases find with the wanted probability."""
    inverses, limits, spreads = [], [], []
    for releases in made:
        groups = [JointEstimate(release) for release in releases]
        error = combined(groups)
        inverses.append(np.linalg.inv(error.safe(size)))
        limits.append(error.threshold(size))
        spreads.append(math.sqrt(sum(group.mean.scale**2 + variance / group.release.n for group in groups)))
    measures, dim = np.array(inverses), len(inverses[0])
    # How far off a difference is hardly depends on how far off its covariance is.
    off = np.array(spreads)[:, None, None] * rng.standard_normal((len(made), _DIFFERENCES, dim))

    def missing(distance: float) -> float:
        moved = off + distance * np.eye(dim)[0]
        found = np.einsum("kmi,kij,kmj->km", moved, measures, moved) > np.array(limits)[:, None]
        return POWER - float(found.mean())

    farthest = 2 * made[0][0].ball.radius
    return math.inf if missing(farthest) > 0 else _first_root(missing, farthest)


def _found_without_noise(dim: int, numbers: list[int], variance: float, size: float) -> float:
    """Return the same of Hotelling's test of the data themselves; infinite where there are too few units for one."""
    free = sum(numbers) - dim - 1
    if free < 1:
        return math.inf
    limit = float(special.fdtri(dim, free, 1 - size))
    central = scipy.optimize.brentq(lambda square: POWER - 1 + special.ncfdtr(dim, free, square, limit), 1e-9, 1e4)
    return math.sqrt(float(central) * variance * sum(1 / n for n in numbers))


def _first_root(f: Callable[[float], float], high: float) -> float:
    """Bisect a falling step function, to a hundredth of the answer."""
    low = 0.0
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) > 0 else (low, middle)
    return high
