"""Groups: one test of several means beside tests of all pairs, at the same promise.

Units lie in ellipsoids about their groups' means, uniformly in coordinates there, which are 0.3 of the radius from the
ball's centre. *Sizes*: equal means, unequal numbers of units and unequal covariances (scale and shape), 2,000
repetitions, at 5 %. *Power*: 100 units in each of 4 groups, GDP(1), 400 repetitions; one group is shifted, or all
four lie apart, in the directions of the second and third axes. *Coverage*: how often the 95 % intervals of all six
distances hold together, 1,000 repetitions. Without privacy: Welch and James's test with Johansen's degrees of freedom
(1980) of the records in coordinates. The simplest private way tests all pairs at 5 % over their number; each unit is in
three of six tests, so that each test keeps GDP(1/sqrt 3): by `private_two_sample_test` ("pairs"), or with a mean and a
second moment about it, as tests were made before joint moments ("pairs before"). Notes have the power of
the same test if it knew all covariances, with the noise of a mean alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.inference import TwoSampleTest
from dpmanifold.manifolds import SPD, Euclidean, KendallShapes, Manifold, Sphere
from dpmanifold.privacy import GDP
from dpmanifold.stats import EACH_RECORD, private_k_sample_test, private_two_sample_test
from dpmanifold_papers.coverage import in_ball, region_about_a_mean

AWAY, TAIL = 0.3, 0.05


class Size(NamedTuple):
    """Groups with equal means: the space, the ball's radius, numbers of units, the promise and what is asked."""

    space: Manifold
    radius: float
    numbers: tuple[int, ...]
    mu: float = 1.0
    estimand: str = "frechet"
    refine: bool = False

    @property
    def name(self) -> str:
        """What is tested, in a few words."""
        kind = "" if self.space.is_flat else f", {self.estimand} means"
        refined = ", refined" if self.refine else ""
        numbers = ", ".join(map(str, self.numbers))
        return f"{self.space!r}{kind}{refined}, K = {len(self.numbers)}, n = {numbers}, mu = {self.mu:g}"


SIZES = (
    Size(Euclidean(1), 1.0, (60, 100, 250)),
    Size(Euclidean(2), 1.0, (250, 100, 60)),
    Size(Euclidean(2), 1.0, (30, 60, 100, 200)),
    Size(Euclidean(6), 1.0, (60, 100, 250)),
    Size(Euclidean(6), 1.0, (200, 100, 60, 30)),
    Size(Euclidean(6), 1.0, (100, 150, 200, 300), mu=3.0),
    Size(Euclidean(6), 3.0, (200, 300, 500), refine=True),
    Size(Euclidean(15), 1.0, (60, 100, 150, 250)),
    Size(SPD(3), 1.5, (60, 100, 150, 250)),
    Size(Sphere(2), 0.6, (60, 100, 250)),
    Size(Sphere(2), 0.6, (250, 150, 100, 60), estimand="tangent"),
    Size(SPD(2, metric="riemann"), 1.5, (60, 100, 150, 250)),
    Size(KendallShapes(8), 0.3, (60, 100, 250)),
    Size(KendallShapes(8), 0.3, (250, 150, 100, 60), estimand="tangent"),
)


def unequal_axes(d: int, count: int) -> list[FloatArray]:
    """Return half axes of ellipsoids in a ball of radius 1, unequal in size and in shape, one for each group."""
    line = np.linspace(1.0, 0.05, d) if d > 1 else np.ones(1)
    return [(0.25 + 0.45 * a / (count - 1)) * (line if a % 2 else line[::-1]) for a in range(count)]


def sample(space: Manifold, base: Array, at: FloatArray, axes: FloatArray, n: int, rng: np.random.Generator) -> Array:
    """Draw units about a point that is given in coordinates at a base point."""
    return space.exp_coords(base, at + in_ball(space.dim, 1.0, n, rng) * axes)


def size_once(job: tuple[int, int]) -> tuple[bool, bool]:
    number, seed = job
    case = SIZES[number]
    rng = np.random.default_rng([seed, number, 19])
    space, d = case.space, case.space.dim
    ball = Ball(space, space.origin, case.radius)
    filled = 1.0 if case.refine else case.radius
    truth = AWAY * filled * np.eye(d)[0]
    # Fréchet means are equal if units lie evenly about one point, tangent means if they do in the ball's coordinates.
    tangent = case.estimand == "tangent"
    base = space.origin if tangent else space.exp_coords(space.origin, truth)
    at = truth if tangent else np.zeros(d)
    axes = [filled * one for one in unequal_axes(d, len(case.numbers))]
    groups = [sample(space, base, at, one, n, rng) for one, n in zip(axes, case.numbers, strict=True)]
    labels = np.repeat(np.arange(len(groups)), case.numbers)
    found = private_k_sample_test(
        np.concatenate(groups), labels, ball, GDP(case.mu), units=EACH_RECORD, classes=range(len(groups)),
        estimand=case.estimand, refine=case.refine, rng=rng,
    )  # fmt: skip
    middle = base if tangent or space.is_flat else frechet.mean(np.concatenate(groups), ball).value
    plain = johansen([space.log_coords(middle, X) for X in groups])
    return plain < TAIL, found.p_value < TAIL


def johansen(groups: Sequence[FloatArray]) -> float:
    """Return the p-value of Welch and James's test of equal means (Johansen 1980). Not private."""
    d, m = groups[0].shape[1], len(groups) - 1
    weights = [np.linalg.inv(np.atleast_2d(np.cov(X.T)) / len(X)) for X in groups]
    total = np.linalg.inv(np.sum(weights, axis=0))
    means = [X.mean(axis=0) for X in groups]
    middle = total @ np.sum([w @ x for w, x in zip(weights, means, strict=True)], axis=0)
    statistic = sum(float((x - middle) @ w @ (x - middle)) for w, x in zip(weights, means, strict=True))
    rests = [np.eye(d) - total @ w for w in weights]
    a = sum((np.trace(r @ r) + np.trace(r) ** 2) / (len(X) - 1) for r, X in zip(rests, groups, strict=True)) / 2
    p = d * m
    return float(stats.f.sf(statistic / (p + 2 * a - 6 * a / (p + 2)), p, p * (p + 2) / (3 * a)))


# -------------------------------------------------------------------- power

UNITS, MU, GROUPS = 100, 1.0, 4
APART = {
    "one apart": np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]]),
    "all apart": np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]) / math.sqrt(2),
}
"""Means in units of the shift; all apart lie on a circle, neighbours one shift apart."""
PAIRS_NOW, PAIRS_BEFORE = "pairs", "pairs before"
SHIFTS = {
    PAIRS_NOW: {
        ("one apart", 2): (0.07, 0.085),
        ("one apart", 6): (0.09, 0.11),
        ("one apart", 15): (0.11, 0.13),
        ("all apart", 2): (0.055, 0.065),
        ("all apart", 6): (0.06, 0.08),
        ("all apart", 15): (0.08, 0.09),
    },
    PAIRS_BEFORE: {
        ("one apart", 2): (0.1, 0.12),
        ("one apart", 6): (0.2, 0.22),
        ("one apart", 15): (0.4, 0.41),
        ("all apart", 2): (0.07, 0.08),
        ("all apart", 6): (0.13, 0.15),
        ("all apart", 15): (0.28, 0.3),
    },
}
"""Shifts that each way of testing pairs finds in about a tenth to three tenths of all cases."""


def half_axes(d: int) -> FloatArray:
    """Return the half axes of the ellipsoids, the same for all groups."""
    return 0.6 * np.linspace(1.0, 0.3, d)


def shifted(kind: str, d: int, shift: float, rng: np.random.Generator) -> tuple[list[FloatArray], FloatArray]:
    """Return the units of four groups and their means."""
    axes = half_axes(d)
    means = AWAY * np.tile(np.eye(d)[0], (GROUPS, 1))
    means[:, [1, 2 if d > 2 else 0]] += shift * APART[kind]
    return [at + in_ball(d, 1.0, UNITS, rng) * axes for at in means], means


def power_once(job: tuple[str, str, int, float, int]) -> tuple[bool, bool, bool]:
    """Return whether each way rejects: without privacy, pairs in one way, ours."""
    way, kind, d, shift, seed = job
    rng = np.random.default_rng([seed, d, list(APART).index(kind), round(1000 * shift)])
    groups, _ = shifted(kind, d, shift, rng)
    ball, part = Ball(Euclidean(d), np.zeros(d), 1.0), GDP(MU / math.sqrt(GROUPS - 1))
    found = []
    for one, two in combinations(groups, 2):
        if way == PAIRS_NOW:
            test = private_two_sample_test(one, two, ball, part, units=EACH_RECORD, rng=rng)
        else:
            test = TwoSampleTest(*(region_about_a_mean(X, ball, part, rng).release for X in (one, two)))
        found.append(test.p_value)
    return johansen(groups) < TAIL, min(found) < TAIL / len(found), _groups_of(groups, ball, rng).p_value < TAIL


def limit(kind: str, d: int, shift: float) -> float:
    """Return the power of the test that knows the covariances, with the noise of a mean alone."""
    variances = (half_axes(d) ** 2 / (d + 2) / UNITS + (2 / (UNITS * MU)) ** 2)[[1, 2 if d > 2 else 0]]
    means = shift * APART[kind]
    away = float((((means - means.mean(axis=0)) ** 2) / variances).sum())
    free = d * (GROUPS - 1)
    return float(stats.ncx2.sf(stats.chi2.isf(TAIL, free), free, away))


def _groups_of(groups: list[FloatArray], ball: Ball, rng: np.random.Generator) -> Any:
    labels = np.repeat(np.arange(GROUPS), UNITS)
    return private_k_sample_test(
        np.concatenate(groups), labels, ball, GDP(MU), units=EACH_RECORD, classes=range(GROUPS), rng=rng
    )


def cover_once(job: tuple[str, int, float, int]) -> tuple[bool, float]:
    """Return whether all intervals hold their distances, and their mean width."""
    kind, d, shift, seed = job
    rng = np.random.default_rng([seed, d, list(APART).index(kind), round(1000 * shift), 7])
    groups, means = shifted(kind, d, shift, rng)
    pairs = _groups_of(groups, Ball(Euclidean(d), np.zeros(d), 1.0), rng).pairs
    true = [float(np.linalg.norm(means[a] - means[b])) for a, b in combinations(range(GROUPS), 2)]
    held = all(pair.test.low <= away <= pair.test.high for pair, away in zip(pairs, true, strict=True))
    return held, float(np.mean([pair.test.high - pair.test.low for pair in pairs]))


# -------------------------------------------------------------------- the rows


def _averages(once: Any, jobs: list[Any]) -> list[float]:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = np.mean(list(pool.map(once, jobs, chunksize=20)), axis=0)
    return [float(value) for value in found]


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Return the rows; a twentieth of the repetitions if quick, too few for sizes."""
    part = 20 if quick else 1
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(SIZES):
        plain, ours = _averages(size_once, [(number, seed) for seed in range(2000 // part)])
        rows.append(
            {"what": f"size, {case.name}", "plain": plain, "simple": None, "ours": ours,
             "goal": "reported" if quick else "<= 0.06", "ok": None if quick else ours <= 0.06}
        )  # fmt: skip
    for way, cells in SHIFTS.items():
        for kind, d, shift in ((kind, d, shift) for (kind, d), shifts in cells.items() for shift in shifts):
            plain, simple, ours = _averages(power_once, [(way, kind, d, shift, seed) for seed in range(400 // part)])
            judged = 0.1 <= simple <= 0.3 and not quick
            told = f"{ours / simple:.2f} times" if simple else "never found"
            rows.append(
                {"what": f"power, {kind}, d = {d}, shift {shift:g}: {way}", "plain": plain, "simple": simple,
                 "ours": ours, "goal": ">= 3 x simplest" if judged else "reported",
                 "ok": ours >= 3 * simple if judged else None,
                 "note": f"{told}; known covariances {limit(kind, d, shift):.3f}"}
            )  # fmt: skip
    for (kind, d), shifts in SHIFTS[PAIRS_BEFORE].items():
        covered, width = _averages(cover_once, [(kind, d, shifts[-1], seed) for seed in range(1000 // part)])
        rows.append(
            {"what": f"all 95 % intervals hold, {kind}, d = {d}, shift {shifts[-1]:g}", "plain": None, "simple": None,
             "ours": covered, "goal": "reported" if quick else ">= 0.95", "ok": None if quick else covered >= 0.95,
             "note": f"mean width {width:.3g}"}
        )  # fmt: skip
    return rows
