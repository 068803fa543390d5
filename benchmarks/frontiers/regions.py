"""Regions: joint moments about the ball's centre beside a second moment about a released mean.

Units in a ball of radius 1 of R^d whose mean is 0.3 from the centre: "uneven" data, uniform in an ellipsoid with half
axes from 0.7 down to 0.035, and "round" data, uniform in a ball of radius 0.7. Both ways keep the same promise on the
same data; the regions are the library's, on releases drawn here from the law that the private calls state. Errors of
the covariance are root mean squares in the Frobenius norm against the sample's own; radii are the root of the
covariance's trace, and in brackets the radius of the ball that has the region's volume. Goals for radii are for uneven
data: of round data sampling is most of the radius, and no promise changes that (the note says how much would be left if
the spread were known).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import FloatArray
from dpmanifold.ball import Ball
from dpmanifold.inference import Region
from dpmanifold.inference.joint import JointEstimate
from dpmanifold.linalg import from_vecd, to_vecd
from dpmanifold.manifolds import Euclidean
from dpmanifold.manifolds.base import shorten
from dpmanifold.privacy import GDP
from dpmanifold.release import Release
from dpmanifold.stats import private_region
from dpmanifold.stats.inputs import EACH_RECORD
from dpmanifold.stats.moments import REFERENCE
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


class Releases:
    """Releases of both ways, of n units in the unit ball of R^d, drawn from the laws that the private calls state."""

    def __init__(self, d: int, n: int, mu: float) -> None:
        ball, X = Ball(Euclidean(d), np.zeros(d), 1.0), np.zeros((n, d))
        self.about = region_about_a_mean(X, ball, GDP(mu), 0).release
        self.joint = private_region(X, ball, GDP(mu), units=EACH_RECORD, rng=0).release
        found = JointEstimate(self.joint)
        self.scales = np.repeat([found.mean.scale, found.moment_scale], [d, d * (d + 1) // 2])
        self.least = self.about.scale / sensitivity.reach(ball, away=self.about.details[REFERENCE]) ** 2

    def about_a_mean(self, X: FloatArray, rng: np.random.Generator) -> Release:
        """Draw a mean, and a second moment about it."""
        mean = self.about.steps[0]
        p = shorten(X.mean(axis=0) + mean.scale * rng.standard_normal(X.shape[1]), 1.0)
        away = float(np.linalg.norm(p))
        scale = self.least * sensitivity.reach(mean.ball, away=away) ** 2
        moment = to_vecd((X - p).T @ (X - p) / len(X))
        value = from_vecd(moment + scale * rng.standard_normal(len(moment)))
        return replace(self.about, value=value, scale=scale, details={REFERENCE: away}, steps=(replace(mean, value=p),))

    def jointly(self, X: FloatArray, rng: np.random.Generator) -> Release:
        """Draw joint moments."""
        exact = np.concatenate([X.mean(axis=0), to_vecd(X.T @ X / len(X))])
        return replace(self.joint, value=exact + self.scales * rng.standard_normal(len(exact)))


def _facts(region: Region, truth: FloatArray) -> tuple[float, float, float]:
    d = len(truth)
    size = math.sqrt(region.threshold) * math.exp(float(np.linalg.slogdet(region.covariance)[1]) / (2 * d))
    return float(region.contains(truth)), region.effective_radius, size


def compare(population: str, d: int, n: int, mu: float, repetitions: int) -> dict[str, FloatArray]:
    """Return covering, radius, volume radius and squared error of the covariance, each (2,): that way, and joint."""
    releases, truth, found = Releases(d, n, mu), mean_at(d), np.zeros((4, 2))
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, d, n, int(10 * mu), POPULATIONS.index(population)])
        X = sample(population, d, n, rng)
        covariance = np.cov(X.T, bias=True).reshape(d, d)
        about, joint = Region(releases.about_a_mean(X, rng)), Region(releases.jointly(X, rng))
        found[:3] += np.transpose([_facts(about, truth), _facts(joint, truth)])
        one = np.asarray(about.release.value) - covariance
        two = JointEstimate(joint.release).spread - covariance
        found[3] += [(one**2).sum(), (two**2).sum()]
    return dict(zip(("covered", "radius", "size", "error"), found / repetitions, strict=True))


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
    judged = population == "uneven" or not binding
    known = f"volume radius {size[1] / size[0]:.3f}; known spread {limit(population, d, n, mu) / radius[0]:.3f}"
    rows.append(
        {
            "what": f"effective radius, {name}", "today": radius[0], "new": radius[1], "ratio": ratio,
            "goal": f"<= {goal:g}" if judged else "reported", "ok": bool(ratio <= goal) if judged else None,
            "note": known,
        }
    )  # fmt: skip
    if levels:
        covered = found["covered"]
        judged = repetitions >= FULL
        # As close to the level as the way before, but for two standard errors of the difference.
        error_of = 2 * math.sqrt(2 * LEVEL * (1 - LEVEL) / repetitions)
        as_close = abs(covered[1] - LEVEL) <= abs(covered[0] - LEVEL) + error_of
        rows.append(
            {
                "what": f"coverage of 95 %, {name}", "today": covered[0], "new": covered[1], "ratio": None,
                "goal": ".93 to .985, as close" if judged else "reported",
                "ok": bool(0.93 <= covered[1] <= 0.985 and as_close) if judged else None,
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
