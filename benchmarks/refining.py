"""Refined means against plain ones, with common random numbers: what `releases.py refine` prints and tests assert.

A cell is a space, a number of units, a promise and the share of the ball that the data fill. Data lie about a point
off the ball's centre; every other data set is uniform in a ball, the others are normal with 95 % in it.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import numpy as np
from scipy import special

import dpmanifold as dpm
from dpmanifold.mechanisms.base import pure_epsilon
from dpmanifold.noise.source import SimulationSource
from dpmanifold.privacy import gaussian_scale, laplace_scale, split
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.refine import Refinement

BALLS = {
    "SPD(3)": dpm.Ball(dpm.SPD(3), 0.7 * np.eye(3), 2.5),
    "S^2": dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.7),
    "H^2": dpm.Ball(dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin, 2.0),
}
UNITS = (50, 150, 500, 2000)
PROMISES = (dpm.PureDP(0.25), dpm.PureDP(0.5), dpm.PureDP(1.0), dpm.PureDP(2.0), dpm.ApproxDP(1.0, 1e-6), dpm.GDP(0.5))
FILLS = (0.1, 0.5, 1.0)
CELLS = [(name, n, privacy, fill) for name in BALLS for n in UNITS for privacy in PROMISES for fill in FILLS]
RUNS_PER_DATA_SET = 20


@dataclass(frozen=True)
class Outcome:
    """Mean true errors of plain, refined and naive releases, and how often each truth was beyond 5 times stated."""

    plain: float
    refined: float
    naive: float
    beyond: float
    naive_beyond: float
    skipped: bool


class Twin(SimulationSource):
    """Random numbers that can start again, so that two releases share those of their last draw."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        super().__init__(seed)

    def restart(self) -> None:
        """Start again."""
        super().__init__(self.seed)


@contextlib.contextmanager
def common_numbers(twin):
    """Let the mean of a refined release be drawn with the numbers of a plain one."""
    find = Refinement.find

    def find_and_restart(self, units):
        found = yield from find(self, units)
        twin.restart()
        return found

    Refinement.find = find_and_restart
    try:
        yield
    finally:
        Refinement.find = find


def make_data(ball, n, fill, rng, normal):
    """Return n points about a mean that is 0.6 (1 - fill) radii off the centre, clipped to the ball."""
    d, r = ball.space.dim, ball.radius
    away = rng.standard_normal(d)
    mean = ball.space.exp_coords(ball.center, 0.6 * (1 - fill) * r * away / np.linalg.norm(away))
    c = rng.standard_normal((n, d))
    if normal:
        c *= fill * r / math.sqrt(special.chdtri(d, 0.05))
    else:
        c *= (fill * r * rng.random(n) ** (1 / d) / np.linalg.norm(c, axis=1))[:, None]
    return ball.clip(ball.space.exp_coords(mean, c))


def naive_rule(X, ball, privacy, rng):
    """Refine naively: fixed shares, six counts, 95 % of the units wanted whatever the noise. For comparison."""
    shares = divide(privacy, (0.1, 0.1, 0.8))
    question = {"units": dpm.EACH_RECORD, "rng": rng, "shrinkage": None, "confirm": True}
    center = dpm.private_mean(X, ball, shares[0], **question).value
    away, radii = ball.space.dist(center, X), ball.radius * np.geomspace(1 / 256, 1, 64)
    share = split(shares[1], 6)[0]
    pure = isinstance(share, dpm.PureDP)
    scale = laplace_scale(1.0, dpm.PureDP(pure_epsilon(share))) if pure else gaussian_scale(1.0, share)
    low, high, found = 0, 63, 63
    for _ in range(6):
        middle = (low + high) // 2
        noise = float(rng.exponential(())) * float(rng.direction((), 1)[0]) if pure else float(rng.normal(()))
        if (away <= radii[middle]).sum() + scale * noise >= 0.95 * len(X):
            found, high = middle, max(low, middle - 1)
        else:
            low = min(high, middle + 1)
    rng.restart()
    inner = ball if found == 63 else dpm.Ball(ball.space, center, float(radii[found]))
    return dpm.private_mean(X, inner, shares[2], **question)


def run_cell(name, n, privacy, fill, runs=200, naive=True):
    """Return the outcome of one cell."""
    ball, rng = BALLS[name], np.random.default_rng([n, round(100 * fill)])
    question = {"units": dpm.EACH_RECORD, "shrinkage": None}
    rows, skipped = [], True
    for run in range(runs):
        if run % RUNS_PER_DATA_SET == 0:
            X = make_data(ball, n, fill, rng, normal=run % (2 * RUNS_PER_DATA_SET) > 0)
            truth = dpm.frechet.mean(X, ball).value
        twin = Twin(run)
        plain = dpm.private_mean(X, ball, privacy, rng=Twin(run), **question)
        with common_numbers(twin):
            refined = dpm.private_mean(X, ball, privacy, rng=twin, refine=True, **question)
        before = naive_rule(X, ball, privacy, Twin(run)) if naive else plain
        errors = [float(ball.space.dist(truth, release.value)) for release in (plain, refined, before)]
        rows.append([*errors, errors[1] > 5 * refined.error(), errors[2] > 5 * before.noise_error()])
        skipped = skipped and not refined.steps
    return Outcome(*np.mean(rows, axis=0), skipped)
