"""Regions and intervals as Jiang, Chang and Hu (2025) state them, for comparison.

Their constants: the published sensitivities of mean, variance, covariance and Hessian, a third of mu^2 for each of the
three releases, and nothing added where noise swamps an estimate. Nothing here is fit for a release: the variance and
the region are taken about a mean that need not lie in the ball, for which their bounds do not hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import special

from dpmanifold import frechet, sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.inference.hotelling import squared_length
from dpmanifold.linalg import from_vecd, symmetrize, to_vecd
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.base import shorten
from dpmanifold.noise import RiemannianGaussian, WrappedGaussian
from dpmanifold.noise.source import RandomSource, Rng, as_source
from dpmanifold.privacy import GDP
from dpmanifold.stats import private_region, private_variance_interval
from dpmanifold.stats.inputs import EACH_RECORD
from dpmanifold_papers.jiang2025.populations import DATA, UNITS, true_variance
from dpmanifold_papers.jiang2025.printed import MU

# Central differences on spaces whose curvature is of order 1: the error is of order step^2 and eps/step.
_STEP = 1e-5


@dataclass(frozen=True, eq=False)
class PublishedRegion:
    """An ellipsoid in coordinates at a base point of the ball's frame.

    Attributes
    ----------
    space : the frame
    mean : the released mean, in the frame
    base : the point at which coordinates are taken: the frame's origin, or the mean
    center, covariance : of the ellipsoid, in these coordinates
    at_mean : the covariance in an orthonormal frame at the released mean
    bound : the squared radius, in units of the covariance
    """

    space: Manifold
    mean: Array
    base: Array
    center: FloatArray
    covariance: FloatArray
    at_mean: FloatArray
    bound: float

    @property
    def effective_radius(self) -> float:
        """Root of the covariance's trace, in the frame at the released mean."""
        return math.sqrt(np.trace(self.at_mean))

    def contains(self, q: Array) -> Array:
        """Return whether points (..., *shape) of the frame are inside, a boolean each."""
        c = self.space.log_coords(self.base, q) - self.center
        return np.asarray(squared_length(self.covariance, c) <= self.bound)


@dataclass(frozen=True, eq=False)
class Published:
    """Data in the frame of a ball and their Fréchet mean, from which regions and intervals at any mu are made.

    Parameters
    ----------
    space : the frame
    points : records in it, in the ball of radius `radius` about its origin
    mean : their Fréchet mean
    radius : r of the published bounds
    sensitivity : of the mean, as published
    """

    space: Manifold
    points: Array
    mean: Array
    radius: float
    sensitivity: float

    @staticmethod
    def of(X: object, ball: Ball) -> Published:
        """Clip data into a ball and find their mean."""
        points = ball.to_frame(X)
        mean = frechet.mean(points, ball.in_frame).in_frame
        return Published(
            ball.frame, points, mean, ball.radius, sensitivity.of_mean(ball, len(points), bound="published").value
        )

    def release(self, share: float, source: RandomSource) -> tuple[Array, float]:
        """Return their mean at `share`-GDP and the scale of its noise; with an infinite share, the mean itself."""
        if not math.isfinite(share):
            return self.mean, 0.0
        sigma = self.sensitivity / share
        law: WrappedGaussian | RiemannianGaussian
        if self.space.is_hadamard:
            law = WrappedGaussian(self.space, self.space.origin, self.mean, sigma)
        else:
            law = RiemannianGaussian(self.space, self.mean, sigma)
        return np.asarray(law.sample(rng=source)), sigma

    def region(self, mu: float, rng: Rng, level: float = 0.95, reach: float = 2.0) -> PublishedRegion:
        """Return their region at mu-GDP; with an infinite mu, the one without privacy.

        `reach` is R/r of their Assumption 3: 2 holds by itself for a mean in the ball, and for 1 they cut the vectors.
        """
        space, n, d = self.space, len(self.points), self.space.dim
        share, source = mu / math.sqrt(3), as_source(rng)
        at, sigma = self.release(share, source)
        far = reach * self.radius
        v = space.log_coords(at, self.points)
        v = shorten(v, far) if math.isfinite(mu) else v
        covariance = np.cov(v.T)
        values, directions = space.hessian_spectrum(v)
        hessian = 2 * np.einsum("nij,nj,nkj->ik", directions, values, directions) / n
        if math.isfinite(mu):
            covariance = _noisy(covariance, 6 * far**2 / n / share, source)
            # B_H bounds the Frobenius norm of one Hessian of the squared distance.
            bound = 2 * math.sqrt(1 + (d - 1) * space.hessian_bounds(far)[1] ** 2)
            hessian = _noisy(hessian, 2 * bound / n / share, source)
        inverse = np.linalg.inv(hessian)
        eigenvalues, vectors = np.linalg.eigh(symmetrize(inverse @ (4 * covariance) @ inverse) / n)
        spread = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
        base = space.origin if space.is_hadamard else at
        inner = _derivative(space, base, at)
        outer = np.linalg.inv(inner)
        total = spread + sigma**2 * symmetrize(outer @ outer.T)
        return PublishedRegion(
            space, at, base, space.log_coords(base, at), symmetrize(inner @ total @ inner.T), total,
            float(special.chdtri(d, 1 - level)),
        )  # fmt: skip

    def interval(self, mu: float, rng: Rng, level: float = 0.95) -> tuple[float, float]:
        """Return their interval for the variance at mu-GDP, as value and half width; an infinite mu for no privacy."""
        n, r = len(self.points), self.radius
        share, source = mu / math.sqrt(3), as_source(rng)
        at, _ = self.release(share, source)
        away = self.space.dist(at, self.points)
        noise = (4 * r**2 / n / share) if math.isfinite(mu) else 0.0
        value = float((away**2).mean()) + noise * float(source.normal(()))
        spread = float((away**4).mean()) - value**2
        if math.isfinite(mu):
            spread += 16 * r**4 / n / share * float(source.normal(()))
        z = float(special.ndtri(0.5 + level / 2))
        return value, z * math.sqrt(max(spread, 0.0) / n + noise**2)


def published_region(X: object, ball: Ball, mu: float, rng: Rng, level: float = 0.95) -> PublishedRegion:
    """Return their region at mu-GDP for data in a ball; with an infinite mu, the one without privacy."""
    return Published.of(X, ball).region(mu, rng, level)


def published_interval(X: object, ball: Ball, mu: float, rng: Rng, level: float = 0.95) -> tuple[float, float]:
    """Return their interval for the variance at mu-GDP, as value and half width; an infinite mu for no privacy."""
    return Published.of(X, ball).interval(mu, rng, level)


def _noisy(matrix: FloatArray, scale: float, source: RandomSource) -> FloatArray:
    """Add Gaussian noise to the entries of vecd."""
    flat = to_vecd(matrix)
    return from_vecd(flat + scale * source.normal(flat.shape))


def _derivative(space: Manifold, base: Array, at: Array) -> FloatArray:
    """Derivative of coordinates at `base`, taken at another point, (d, d), by central differences."""
    if base is at or space.curvature == (0.0, 0.0):
        return np.eye(space.dim)
    steps = _STEP * np.eye(space.dim)
    ahead = space.log_coords(base, space.exp_coords(at, steps))
    behind = space.log_coords(base, space.exp_coords(at, -steps))
    return np.asarray((ahead - behind).T / (2 * _STEP))


# -------------------------------------------------------------------- theirs and ours on the same data


def region_row(data: Published, mu: float, rng: np.random.Generator, reach: float = 2.0) -> tuple[float, float, float]:
    """Return theirs on simulated data: is the mean covered, effective radius, distance from the truth."""
    region = data.region(mu, rng, reach=reach)
    truth = data.space.origin
    return float(region.contains(truth)), region.effective_radius, float(data.space.dist(truth, region.mean))


def interval_row(data: Published, mu: float, truth: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return theirs on simulated data: is the variance covered, half the width, distance from the truth."""
    value, half = data.interval(mu, rng)
    return float(abs(value - truth) <= half), half, abs(value - truth)


def our_region_row(X: Array, ball: Ball, mu: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return ours on simulated data: is the mean covered, effective radius, distance from the truth."""
    region = private_region(X, ball, GDP(mu), units=EACH_RECORD, confirm=True, rng=rng)
    away = float(ball.space.dist(ball.center, region.center))
    return float(region.contains(ball.center)), region.effective_radius, away


def our_interval_row(
    X: Array, ball: Ball, mu: float, truth: float, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return ours on simulated data: is the variance covered, half the width, distance from the truth."""
    interval = private_variance_interval(X, ball, GDP(mu), units=EACH_RECORD, confirm=True, rng=rng)
    return float(interval.contains(truth)), (interval.high - interval.low) / 2, abs(interval.value - truth)


def coverage_once(name: str, mu: float, seed: int, n: int = UNITS) -> tuple[float, ...]:
    """Draw one data set; return what their formulas and ours make of it.

    Returns
    -------
    for theirs, then for ours: is the mean covered, effective radius, distance of the released mean from the truth; is
    the variance covered, half the width, distance of the released variance from the truth. An infinite mu stands for
    no privacy: their formulas alone, twice.
    """
    rng = np.random.default_rng([seed, int(name == "spd")])
    X, ball = DATA[name](n, rng)
    truth, data = true_variance(name), Published.of(X, ball)
    row = (*region_row(data, mu, rng), *interval_row(data, mu, truth, rng))
    if not math.isfinite(mu):
        return (*row, *row)
    return (*row, *our_region_row(X, ball, mu, rng), *our_interval_row(X, ball, mu, truth, rng))


def coverage_table(name: str, repetitions: int, mus: Sequence[float] = (*MU, math.inf)) -> FloatArray:
    """Return the means of :func:`coverage_once` over repetitions, shape (len(mus), 12); on all processors."""
    jobs = [(name, mu, seed) for mu in mus for seed in range(repetitions)]
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(_once, jobs, chunksize=50))
    return np.asarray(np.asarray(rows).reshape(len(mus), repetitions, 12).mean(axis=1))


def _once(job: tuple[str, float, int]) -> tuple[float, ...]:
    return coverage_once(*job)
