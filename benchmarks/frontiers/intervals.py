"""Intervals for a variance: joint distances about the ball's centre beside moments about a released mean.

Units in a ball of radius 1 of R^d, their mean at its centre or 0.3 away from it: "round" data, uniform in a ball of
radius 0.7, "uneven" data, uniform in an ellipsoid with half axes from 0.7 down to 0.035, and "narrow" data, uniform in
a ball of radius 0.1, for which a smaller ball is also looked for first. Both ways keep the same promise on the same
data, by the calls that users make: `private_variance_interval`, and for the way before a fourth moment about a released
mean. Widths are means over the repetitions, and coverage is that of intervals at 95 %. What joint distances save is
noise: where sampling is most of the width no promise changes it, and the ratio is near 1.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.ball import Ball
from dpmanifold.inference import VarianceInterval
from dpmanifold.manifolds import Euclidean
from dpmanifold.privacy import GDP
from dpmanifold.stats import private_statistic, private_variance_interval
from dpmanifold.stats.inputs import EACH_RECORD
from dpmanifold_papers.coverage import in_ball
from frontiers.regions import half_axes

LEVEL, LEAST, NARROW = 0.95, 0.93, 0.1
# Repetitions that coverage takes: with fewer it is not judged.
FULL = 2000
# n and mu: n mu is 30, 100, 300, 500 and 2,000.
CELLS = ((100, 0.3), (100, 1.0), (100, 3.0), (500, 1.0), (2000, 1.0))
# Up to this n mu noise is most of the width; the widths that are asked for there and elsewhere.
LITTLE, SHORTER, NEVER_ABOVE = 30, 0.9, 1.05


class Case(NamedTuple):
    """Data of a kind, and how they are asked about."""

    population: str
    away: float
    d: int
    n: int
    mu: float
    refine: bool = False

    def __str__(self) -> str:
        where = f"mean {self.away:g} off" if self.away else "mean at the centre"
        first = ", smaller ball first" if self.refine else ""
        return f"{self.population}, {where}, d = {self.d}, n = {self.n}, mu = {self.mu:g}{first}"

    @property
    def axes(self) -> FloatArray:
        """Half axes of the ellipsoid that units lie in."""
        return np.full(self.d, NARROW) if self.population == "narrow" else half_axes(self.population, self.d)

    @property
    def variance(self) -> float:
        """The population's variance."""
        return float((self.axes**2).sum()) / (self.d + 2)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw n units."""
        return np.asarray(in_ball(self.d, 1.0, self.n, rng) * self.axes + self.away * np.eye(self.d)[0])


def _once(job: tuple[Case, int]) -> FloatArray:
    """Return width and covering of both ways on one data set, (2, 2)."""
    case, seed = job
    rng = np.random.default_rng([seed, case.d, case.n, int(10 * case.mu), int(10 * case.away), len(case.population)])
    ball, privacy = Ball(Euclidean(case.d), np.zeros(case.d), 1.0), GDP(case.mu)
    how: dict[str, Any] = {"units": EACH_RECORD, "confirm": True, "refine": case.refine, "rng": rng}
    X = case.sample(rng)
    about = VarianceInterval(private_statistic(X, ball, privacy, statistic="fourth moment", **how), LEVEL)
    joint = private_variance_interval(X, ball, privacy, level=LEVEL, **how)
    both = (about, joint)
    return np.array([[one.high - one.low for one in both], [one.contains(case.variance) for one in both]])


def compare(case: Case, repetitions: int) -> FloatArray:
    """Return mean width and coverage, each (2,): that way, and joint."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = [(case, seed) for seed in range(repetitions)]
        return np.asarray(np.mean(list(pool.map(_once, jobs, chunksize=20)), axis=0))


def _rows(case: Case, repetitions: int) -> list[dict[str, Any]]:
    width, covered = compare(case, repetitions)
    ratio, goal = width[1] / width[0], SHORTER if case.n * case.mu <= LITTLE else NEVER_ABOVE
    judged = repetitions >= FULL
    return [
        {
            "what": f"width, {case}", "today": width[0], "new": width[1], "ratio": ratio,
            "goal": f"<= {goal:g}", "ok": bool(ratio <= goal),
        },
        {
            "what": f"coverage of 95 %, {case}", "today": covered[0], "new": covered[1], "ratio": None,
            "goal": f">= {LEAST:g}" if judged else "reported", "ok": bool(covered[1] >= LEAST) if judged else None,
        },
    ]  # fmt: skip


def cases() -> list[Case]:
    """Return what is measured; narrow data in a ball that is found first as well."""
    kinds = (("round", 0.0), ("round", 0.3), ("uneven", 0.3))
    found = [Case(*kind, d, *cell) for kind in kinds for d in (1, 2, 6, 15) for cell in CELLS]
    return found + [
        Case("narrow", 0.3, d, n, 1.0, refine) for d in (1, 2, 6, 15) for n in (100, 500) for refine in (False, True)
    ]


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Return the rows: 2,000 repetitions for 100 units, 300 for more of them; a tenth if quick."""
    rows = []
    for case in cases():
        repetitions = FULL if case.n == CELLS[0][0] else 300
        rows += _rows(case, max(20, repetitions // (10 if quick else 1)))
    return rows
