"""Regions and intervals as Jiang, Chang and Hu (2025) state them, for comparison. Their data sets, too.

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

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.inference.estimate import ReleasedMean
from dpmanifold.linalg import from_vecd, symmetrize, to_vecd
from dpmanifold.manifolds import SPD, Sphere
from dpmanifold.mechanisms import Calibration, get
from dpmanifold.noise.source import RandomSource, Rng, as_source
from dpmanifold.privacy import GDP
from dpmanifold.stats.inference import private_interval, private_region
from dpmanifold.stats.inputs import EACH_RECORD, prepare
from dpmanifold.stats.mean import release_mean

MU = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5)
# Printed in their Tables 1 to 4; the last entry of a row is without privacy.
PAPER = {
    ("sphere", "mean"): (.941, .953, .945, .96, .954, .939, .941, .954, .96, .954),
    ("sphere", "variance"): (.957, .944, .928, .941, .931, .924, .938, .942, .931, .947),
    ("spd", "mean"): (.945, .943, .942, .95, .96, .966, .966, .962, .964, .971),
    ("spd", "variance"): (.95, .964, .939, .948, .937, .937, .946, .947, .95, .954),
}  # fmt: skip


def sphere_data(n: int, rng: np.random.Generator) -> tuple[Array, Ball]:
    """Return n points, uniform in a ball of radius pi/8 about a random point of S^2, and that ball."""
    space = Sphere(2)
    center = space.random_point(rng=rng)
    height = 1 - rng.random(n) * (1 - math.cos(math.pi / 8))
    turn = 2 * np.pi * rng.random(n)
    c = np.arccos(height)[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return space.exp_coords(center, c), Ball(space, center, math.pi / 8)


def spd_data(n: int, rng: np.random.Generator) -> tuple[Array, Ball]:
    """Return n matrices of SPD(2): exponentials of vectors uniform in the ball of radius 1.5 at I, and that ball."""
    space = SPD(2, metric="riemann")
    v = rng.standard_normal((n, 3))
    v *= (1.5 * rng.random(n) ** (1 / 3) / np.linalg.norm(v, axis=1))[:, None]
    return space.exp_coords(np.eye(2), v), Ball(space, np.eye(2), 1.5)


def true_variance(name: str) -> float:
    """Return the Fréchet variance of the population: E rho^2 to the centre, which by symmetry is the mean."""
    if name == "spd":
        return 1.5**2 * 3 / 5
    r = math.pi / 8
    # The density of the distance t is sin t / (1 - cos r).
    return (2 * r * math.sin(r) - (r * r - 2) * math.cos(r) - 2) / (1 - math.cos(r))


DATA = {"sphere": sphere_data, "spd": spd_data}


@dataclass(frozen=True, eq=False)
class PublishedRegion:
    """An ellipsoid in coordinates at a base point of the frame."""

    ball: Ball
    base: Array
    center: FloatArray
    covariance: FloatArray
    effective_radius: float
    bound: float

    def contains(self, q: Array) -> bool:
        """Return whether a point is inside."""
        moved = self.ball.into_frame(q[None])[0]
        c = self.ball.frame.log_coords(self.base, moved) - self.center
        return bool(c @ np.linalg.solve(self.covariance, c) <= self.bound)


def published_region(X: object, ball: Ball, mu: float, rng: Rng, level: float = 0.95) -> PublishedRegion:
    """Return their region at mu-GDP; with an infinite mu, the one without privacy."""
    points, unit = prepare(X, ball, GDP(1.0), EACH_RECORD, "raise")
    n, d, frame = len(points), ball.frame.dim, ball.frame
    share = mu / math.sqrt(3)
    source = as_source(rng)
    mean, sigma = _published_mean(points, ball, share, unit, source)
    at = mean.at
    v = frame.log_coords(at, points)
    far = 2 * ball.radius
    covariance = np.cov(v.T)
    values, directions = frame.hessian_spectrum(v)
    hessian = 2 * np.einsum("nij,nj,nkj->ik", directions, values, directions) / n
    high = frame.hessian_bounds(far)[1]
    if math.isfinite(mu):
        moment_scale = 6 * far**2 / n / share
        covariance = from_vecd(to_vecd(covariance) + moment_scale * source.normal(d * (d + 1) // 2))
        # B_H bounds the Frobenius norm of one Hessian of the squared distance.
        hessian_scale = 2 * (2 * math.sqrt(1 + (d - 1) * high**2)) / n / share
        hessian = from_vecd(to_vecd(hessian) + hessian_scale * source.normal(d * (d + 1) // 2))
    inverse = np.linalg.inv(hessian)
    spread = symmetrize(inverse @ (4 * covariance) @ inverse) / n
    eigenvalues, vectors = np.linalg.eigh(spread)
    spread = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    inner = mean.derivative(mean.base)
    outer = np.linalg.inv(inner)
    total = spread + sigma**2 * symmetrize(outer @ outer.T)
    return PublishedRegion(
        ball, mean.base, mean.coordinates(mean.base), symmetrize(inner @ total @ inner.T),
        math.sqrt(np.trace(total)), float(special.chdtri(d, 1 - level)),
    )  # fmt: skip


def published_interval(X: object, ball: Ball, mu: float, rng: Rng, level: float = 0.95) -> tuple[float, float]:
    """Return their interval for the variance at mu-GDP, as value and half width; an infinite mu for no privacy."""
    points, unit = prepare(X, ball, GDP(1.0), EACH_RECORD, "raise")
    n, r = len(points), ball.radius
    share = mu / math.sqrt(3)
    source = as_source(rng)
    mean, _ = _published_mean(points, ball, share, unit, source)
    away = ball.frame.dist(mean.at, points)
    noise = (4 * r**2 / n / share) if math.isfinite(mu) else 0.0
    value = float((away**2).mean()) + noise * float(source.normal(()))
    spread = float((away**4).mean()) - value**2
    if math.isfinite(mu):
        spread += 16 * r**4 / n / share * float(source.normal(()))
    z = float(special.ndtri(0.5 + level / 2))
    return value, z * math.sqrt(max(spread, 0.0) / n + noise**2)


def _published_mean(
    points: Array, ball: Ball, share: float, unit: str, source: RandomSource
) -> tuple[ReleasedMean, float]:
    """Release a mean with the published sensitivity, or compute it."""
    name = "wrapped-gaussian" if ball.space.is_hadamard else "riemannian-gaussian"
    bound = sensitivity.of_mean(ball, len(points), bound="published")
    private = math.isfinite(share)
    promise = GDP(share if private else 1.0)
    scale = bound.value / share if private else 1e-12 * ball.radius
    calibration = Calibration(name, promise, scale, bound, "Delta/mu")
    release = release_mean(points, ball, promise, unit, (get(name), calibration), True, (source, False))
    return ReleasedMean(release), scale if private else 0.0


def coverage_once(name: str, mu: float, seed: int, n: int = 600) -> tuple[float, ...]:
    """Draw one data set; return what their formulas and ours make of it.

    Returns
    -------
    for theirs, then for ours: is the mean covered, effective radius, distance of the released mean from the truth; is
    the variance covered, half the width, distance of the released variance from the truth. An infinite mu stands for
    no privacy: their formulas alone, twice.
    """
    rng = np.random.default_rng([seed, int(name == "spd")])
    X, ball = DATA[name](n, rng)
    truth, space = true_variance(name), ball.space
    theirs = published_region(X, ball, mu, rng)
    value, half = published_interval(X, ball, mu, rng)
    found = space.dist(ball.center, ball.from_frame(ball.frame.exp_coords(theirs.base, theirs.center)[None])[0])
    row = (
        float(theirs.contains(ball.center)), theirs.effective_radius, float(found),
        float(abs(value - truth) <= half), half, abs(value - truth),
    )  # fmt: skip
    if not math.isfinite(mu):
        return (*row, *row)
    region = private_region(X, ball, GDP(mu), units=EACH_RECORD, rng=rng)
    interval = private_interval(X, ball, GDP(mu), units=EACH_RECORD, rng=rng)
    return (
        *row,
        float(region.contains(ball.center)), region.effective_radius, float(space.dist(ball.center, region.center)),
        float(interval.contains(truth)), (interval.high - interval.low) / 2, abs(interval.value - truth),
    )  # fmt: skip


def coverage_table(name: str, repetitions: int, mus: Sequence[float] = (*MU, math.inf)) -> FloatArray:
    """Return the means of :func:`coverage_once` over repetitions, shape (len(mus), 12); on all processors."""
    jobs = [(name, mu, seed) for mu in mus for seed in range(repetitions)]
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(_once, jobs, chunksize=50))
    return np.asarray(np.asarray(rows).reshape(len(mus), repetitions, 12).mean(axis=1))


def _once(job: tuple[str, float, int]) -> tuple[float, ...]:
    return coverage_once(*job)
