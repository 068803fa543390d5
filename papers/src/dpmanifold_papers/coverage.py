"""How often private regions hold the truth and private tests reject, on populations whose mean is known."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.inference import ConfidenceRegion, VarianceInterval
from dpmanifold.inference.hotelling import exceedance
from dpmanifold.manifolds import SPD, Euclidean, Hyperbolic, KendallShapes, Manifold, Sphere
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import GDP, Promise
from dpmanifold.stats import private_region, private_statistic, private_two_sample_test
from dpmanifold.stats.inputs import EACH_RECORD

UNITS = 600
GROUP = 300
SHIFTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
FLAT_DIMENSIONS = (15, 45)


def in_ball(d: int, radius: float, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw n vectors, uniform in a ball of R^d."""
    v = rng.standard_normal((n, d))
    return np.asarray(v * (radius * rng.random(n) ** (1 / d) / np.linalg.norm(v, axis=1))[:, None])


def _about(
    space: Manifold, truth: Array, ball: Ball, spread: float, rng: np.random.Generator
) -> tuple[Array, Ball, Array]:
    return space.exp_coords(truth, in_ball(space.dim, spread, UNITS, rng)), ball, truth


def sphere_five(rng: np.random.Generator) -> tuple[Array, Ball, Array]:
    """S^5, uniform in normal coordinates up to 0.6."""
    space = Sphere(5)
    return _about(space, space.origin, Ball(space, space.origin, 0.6), 0.6, rng)


def hyperbolic_plane(rng: np.random.Generator) -> tuple[Array, Ball, Array]:
    """H^2, up to 1.5."""
    space = Hyperbolic(2)
    return _about(space, space.origin, Ball(space, space.origin, 1.5), 1.5, rng)


def tensors(rng: np.random.Generator) -> tuple[Array, Ball, Array]:
    """SPD(3), log-Euclidean, with very different spreads in its six directions."""
    space = SPD(3)
    v = in_ball(6, 1.0, UNITS, rng) * np.array([1.0, 0.5, 0.2, 0.1, 0.1, 0.1])
    return space.exp_coords(np.eye(3), v), Ball(space, np.eye(3), 1.5), np.eye(3)


def far_from_center(rng: np.random.Generator) -> tuple[Array, Ball, Array]:
    """SPD(2), affine-invariant, the mean at distance 4 from the ball's centre."""
    space = SPD(2, metric="riemann")
    truth = space.exp_coords(np.eye(2), np.array([math.sqrt(8), -math.sqrt(8), 0.0]))
    return _about(space, truth, Ball(space, np.eye(2), 5.0), 1.0, rng)


def flat(d: int, rng: np.random.Generator) -> tuple[Array, Ball, Array]:
    """R^d with spreads from 1 down to 1/20 of the ball's radius."""
    space = Euclidean(d)
    return in_ball(d, 1.0, UNITS, rng) * np.linspace(1, 0.05, d), Ball(space, np.zeros(d), 1.0), np.zeros(d)


def shapes(rng: np.random.Generator) -> tuple[Array, Ball, Array]:
    """Planar shapes of 8 landmarks, drawn with replacement from a fixed population, whose mean is the truth."""
    population, ball, truth = _skulls()
    return population[rng.integers(0, len(population), UNITS)], ball, truth


@lru_cache
def _skulls() -> tuple[Array, Ball, Array]:
    space = KendallShapes(8)
    folder = os.environ.get("DPM_DATA")
    if folder:
        with np.load(os.path.join(folder, "planar_landmarks.npz")) as file:
            landmarks = file["apes"]
    else:
        rng = np.random.default_rng(8)
        landmarks = rng.standard_normal((8, 2)) + 0.15 * rng.standard_normal((167, 8, 2)) * rng.random((8, 1))
    population = space.project(landmarks)
    middle = frechet.mean(population, space).value
    ball = Ball(space, middle, 0.3, "made around the population of a simulation", simulated=True)
    return population, ball, frechet.mean(population, ball).value


CASES: dict[str, Callable[[np.random.Generator], tuple[Array, Ball, Array]]] = {
    "S^5": sphere_five,
    "H^2": hyperbolic_plane,
    "SPD(3), log-Euclidean": tensors,
    "shapes of 8 landmarks": shapes,
    "SPD(2), mean at distance 4": far_from_center,
    **{f"flat, d = {d}": partial(flat, d) for d in FLAT_DIMENSIONS},
}


def region_about_a_mean(X: Array, ball: Ball, privacy: Promise, rng: Rng, level: float = 0.95) -> ConfidenceRegion:
    """Return a region from a mean and a second moment about it, as curved spaces have it, on any space."""
    return ConfidenceRegion(
        private_statistic(X, ball, privacy, statistic="second moment", units=EACH_RECORD, confirm=True, rng=rng), level
    )


def interval_about_a_mean(X: Array, ball: Ball, privacy: Promise, rng: Rng, level: float = 0.95) -> VarianceInterval:
    """Return an interval from a mean and two moments about it, as curved spaces have it, on any space."""
    return VarianceInterval(
        private_statistic(X, ball, privacy, statistic="fourth moment", units=EACH_RECORD, confirm=True, rng=rng), level
    )


def region_coverage(name: str, mu: float, repetitions: int) -> FloatArray:
    """Return, for each repetition: is the truth in the 95 % region, effective radius, privacy share; (n, 3)."""
    with ProcessPoolExecutor() as pool:
        jobs = [(name, mu, seed) for seed in range(repetitions)]
        return np.asarray(list(pool.map(_region_once, jobs, chunksize=20)))


def _region_once(job: tuple[str, float, int], about_a_mean: bool = False) -> tuple[float, float, float]:
    name, mu, seed = job
    rng = np.random.default_rng([seed, 3])
    X, ball, truth = CASES[name](rng)
    if about_a_mean:
        region = region_about_a_mean(X, ball, GDP(mu), rng)
    else:
        region = private_region(X, ball, GDP(mu), units=EACH_RECORD, confirm=True, rng=rng)
    return float(region.contains(truth)), region.effective_radius, region.privacy_share


# -------------------------------------------------------------------- two groups

GROUPS = {
    "S^2, r = 0.6": (Sphere(2), 0.6),
    "SPD(2) affine, r = 1.5": (SPD(2, metric="riemann"), 1.5),
    "SPD(3) log-Euclidean, r = 1": (SPD(3), 1.0),
}


def rejections(name: str, mu: float, repetitions: int, shifts: Sequence[float]) -> list[float]:
    """Return how often equality is rejected at 5 % if the second group's mean is moved by a share of the radius.

    An infinite mu is Hotelling's test in the tangent space of the pooled mean, without privacy.
    """
    rates = []
    with ProcessPoolExecutor() as pool:
        for shift in shifts:
            jobs = [(name, mu, shift, seed) for seed in range(repetitions)]
            rates.append(float(np.mean(list(pool.map(_test_once, jobs, chunksize=20)))))
    return rates


def _test_once(job: tuple[str, float, float, int]) -> float:
    name, mu, shift, seed = job
    space, radius = GROUPS[name]
    rng = np.random.default_rng([seed, 5])
    ball = Ball(space, space.origin, radius)
    moved = np.zeros(space.dim)
    moved[0] = shift * radius
    truth = space.exp_coords(space.origin, moved)
    X = space.exp_coords(space.origin, in_ball(space.dim, 0.7 * radius, GROUP, rng))
    Y = space.exp_coords(truth, in_ball(space.dim, 0.7 * radius, GROUP, rng))
    if math.isfinite(mu):
        return float(
            private_two_sample_test(X, Y, ball, GDP(mu), units=EACH_RECORD, confirm=True, rng=rng).p_value < 0.05
        )
    return float(hotelling_p_value(X, Y, ball) < 0.05)


def hotelling_p_value(X: Array, Y: Array, ball: Ball) -> float:
    """Return the p-value of Hotelling's two-sample test in the tangent space of the pooled mean. Not private."""
    space = ball.space
    pooled = frechet.mean(np.concatenate([X, Y]), ball).value
    a, b = space.log_coords(pooled, X), space.log_coords(pooled, Y)
    n, m = len(a), len(b)
    spread = ((n - 1) * np.cov(a.T) + (m - 1) * np.cov(b.T)) / (n + m - 2)
    apart = a.mean(axis=0) - b.mean(axis=0)
    statistic = n * m / (n + m) * apart @ np.linalg.solve(spread, apart)
    return exceedance(float(statistic), space.dim, float(n + m - 2))
