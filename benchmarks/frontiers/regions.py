"""Regions: joint moments about the ball's centre beside a second moment about a released mean.

Units in a ball of radius 1 of R^d whose mean is 0.3 from the centre: "uneven" data, uniform in an ellipsoid with half
axes from 0.7 down to 0.035, and "round" data, uniform in a ball of radius 0.7. Both ways keep the same promise on the
same data, by the calls that users make: `private_region`, and for the way before a second moment about a released mean.
Errors of the covariance are root mean squares in the Frobenius norm, of what was released, against the sample's own;
radii are the root of the covariance's trace, and the note has the ratio of the radii of balls with the regions' volume.
Where sampling is most of the radius no promise changes it: the note says what would be left if the spread were known.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.ball import Ball
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.inference.joint import JointEstimate
from dpmanifold.manifolds import Euclidean
from dpmanifold.privacy import GDP
from dpmanifold.stats import private_region
from dpmanifold.stats.inputs import EACH_RECORD
from dpmanifold_papers.coverage import in_ball, region_about_a_mean

AWAY, FILL, LEVEL = 0.3, 0.7, 0.95
POPULATIONS = ("uneven", "round")
# Repetitions that coverage takes: with fewer it is not judged.
FULL = 2000
# n and mu: n mu is 30, 100, 300 and 500.
CELLS = ((100, 0.3), (100, 1.0), (100, 3.0), (500, 1.0))


def half_axes(population: str, d: int) -> FloatArray:
    """Return the half axes of the ellipsoid that units lie in."""
    return FILL * (np.linspace(1.0, 0.05, d) if population == "uneven" and d > 1 else np.ones(d))


def mean_at(d: int) -> FloatArray:
    """Return the population's mean."""
    return AWAY * np.eye(d)[0]


def sample(population: str, d: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw n units."""
    return np.asarray(in_ball(d, 1.0, n, rng) * half_axes(population, d) + mean_at(d))


def _facts(region: ConfidenceRegion, truth: FloatArray) -> tuple[float, float, float]:
    d = len(truth)
    size = math.sqrt(region.threshold) * math.exp(float(np.linalg.slogdet(region.covariance)[1]) / (2 * d))
    return float(region.contains(truth)), region.effective_radius, size


def _once(job: tuple[str, int, int, float, int]) -> FloatArray:
    """Return covering, radius, volume radius and squared error of the covariance of one data set, (4, 2)."""
    population, d, n, mu, seed = job
    rng = np.random.default_rng([seed, d, n, int(10 * mu), POPULATIONS.index(population)])
    X, truth = sample(population, d, n, rng), mean_at(d)
    ball, privacy = Ball(Euclidean(d), np.zeros(d), 1.0), GDP(mu)
    about = region_about_a_mean(X, ball, privacy, rng)
    joint = private_region(X, ball, privacy, units=EACH_RECORD, rng=rng)
    covariance = np.cov(X.T, bias=True).reshape(d, d)
    errors = [np.asarray(about.release.value) - covariance, JointEstimate(joint.release).spread - covariance]
    facts = np.transpose([_facts(about, truth), _facts(joint, truth)])
    return np.vstack([facts, [(error**2).sum() for error in errors]])


def compare(population: str, d: int, n: int, mu: float, repetitions: int) -> dict[str, FloatArray]:
    """Return covering, radius, volume radius and squared error of the covariance, each (2,): that way, and joint."""
    jobs = [(population, d, n, mu, seed) for seed in range(repetitions)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = np.mean(list(pool.map(_once, jobs, chunksize=10)), axis=0)
    return dict(zip(("covered", "radius", "size", "error"), found, strict=True))


def limit(population: str, d: int, n: int, mu: float) -> float:
    """Return the radius of a region if the spread were known, and the noise that of a mean alone."""
    return math.sqrt(float((half_axes(population, d) ** 2).sum()) / (d + 2) / n + d * (2 / (n * mu)) ** 2)


def _rows(population: str, d: int, n: int, mu: float, repetitions: int, levels: bool) -> list[dict[str, Any]]:
    found = compare(population, d, n, mu, repetitions)
    name = f"{population}, d = {d}, n = {n}, mu = {mu:g}"
    error = np.sqrt(found["error"])
    ratio = error[1] / error[0]
    binding = d > 2
    rows = [
        {
            "what": f"covariance error, {name}", "today": error[0], "new": error[1], "ratio": ratio,
            "goal": "<= 0.55" if binding else "<= 1", "ok": bool(ratio <= (0.55 if binding else 1.0)),
        }
    ]  # fmt: skip
    radius, size = found["radius"], found["size"]
    ratio, goal = radius[1] / radius[0], 0.9 if binding else 1.0
    known = f"volume radius {size[1] / size[0]:.3f}; known spread {limit(population, d, n, mu) / radius[0]:.3f}"
    rows.append(
        {
            "what": f"effective radius, {name}", "today": radius[0], "new": radius[1], "ratio": ratio,
            "goal": f"<= {goal:g}", "ok": bool(ratio <= goal),
            "note": known,
        }
    )  # fmt: skip
    if levels:
        covered = found["covered"]
        judged = repetitions >= FULL
        closer = abs(covered[1] - LEVEL) <= abs(covered[0] - LEVEL)
        rows.append(
            {
                "what": f"coverage of 95 %, {name}", "today": covered[0], "new": covered[1], "ratio": None,
                "goal": ".93 to .985, closer" if judged else "reported",
                "ok": bool(0.93 <= covered[1] <= 0.985 and closer) if judged else None,
            }
        )  # fmt: skip
    return rows


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Return the rows: 2,000 repetitions for coverage, 20 in 45 dimensions; a tenth if quick, too few for coverage."""
    rows = []
    for population in POPULATIONS:
        for d in (2, 6, 15, 45):
            for n, mu in CELLS:
                levels = d <= 15 and n == CELLS[0][0]
                repetitions = FULL if levels else 1000 if d <= 6 else 200 if d <= 15 else 20
                rows += _rows(population, d, n, mu, max(10, repetitions // (10 if quick else 1)), levels)
    return rows
