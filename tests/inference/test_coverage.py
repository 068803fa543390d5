"""Coverage of regions and intervals and size of tests: a few repetitions always, many in the slow tier.

The slow tier asks what the benchmark prints: nominal coverage with the settings of Jiang, Chang and Hu (2025), regions
no larger than theirs, no undercoverage where it is hard. Wrong variants must fail the same checks. Everything is
seeded; shares may be four standard errors off, at nominal coverage a false alarm in 1000 for each.
"""

import math

import numpy as np
import pytest

from dpmanifold import GDP, private_region
from dpmanifold.inference import estimate, hotelling
from dpmanifold.stats import EACH_RECORD
from dpmanifold_papers import coverage, jiang2025


def at_least(found, level, repetitions, sigmas=4):
    """Whether a share is not significantly below a level."""
    return found >= level - sigmas * math.sqrt(level * (1 - level) / repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sphere", "spd"])
def test_tables_of_the_paper(name):
    """Coverage nominal up to four standard errors, never wider than theirs."""
    repetitions = 200
    table = jiang2025.coverage_table(name, repetitions, (0.1, 0.5, 2.0))
    for first in (0, 3):
        ours, width = table[:, 6 + first], table[:, 7 + first]
        theirs = table[:, 1 + first]
        assert at_least(ours.min(), 0.95, repetitions)
        assert (width <= theirs).all()
        assert width[0] <= 0.8 * theirs[0]


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.3, 3.0])
@pytest.mark.parametrize("name", list(coverage.CASES))
def test_no_undercoverage_elsewhere(name, mu):
    """Four standard errors; how exactly levels are held is asked in test_levels.py, on flat space."""
    found = coverage.region_coverage(name, mu, 200)[:, 0].mean()
    print(f"{name}, mu = {mu}: {found:.3f}")
    assert at_least(found, 0.95, 200)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(coverage.GROUPS))
def test_size_and_power_of_the_two_sample_test(name):
    for mu in (0.3, 3.0):
        size, power = coverage.rejections(name, mu, 250, (0.0, 0.3))
        print(f"{name}, mu = {mu}: {size:.3f}, {power:.3f}")
        assert at_least(1 - size, 0.95, 250)
        assert power > 0.9


@pytest.mark.parametrize("name", coverage.CASES)
def test_quick_coverage(name):
    rows = [coverage._region_once((name, 1.0, seed)) for seed in range(25)]
    assert at_least(np.mean([row[0] for row in rows]), 0.95, 25)


@pytest.mark.slow
def test_quick_tables():
    rows = np.array([jiang2025.coverage_once(name, 0.3, seed) for name in jiang2025.DATA for seed in range(15)])
    assert at_least(rows[:, 6].mean(), 0.95, 30)
    assert at_least(rows[:, 9].mean(), 0.95, 30)
    assert rows[:, 7].mean() < 0.9 * rows[:, 1].mean()


def test_without_the_allowance_for_noise_regions_collapse(monkeypatch):
    """Wrong variant: the noisy second moment as it is. In 45 dimensions most regions then miss the truth."""
    monkeypatch.setattr(hotelling, "safe_variances", lambda values, noise, tail, *more: values)
    rows = [coverage._region_once(("flat, d = 45", 3.0, seed), about_a_mean=True) for seed in range(15)]
    assert not at_least(np.mean([row[0] for row in rows]), 0.95, 15)


def test_without_the_noise_of_the_mean_regions_miss(monkeypatch):
    """Wrong variant: sampling alone."""
    monkeypatch.setattr(estimate.ReleasedMean, "noise", property(lambda self: 1e-12 * np.eye(self.ball.frame.dim)))
    rows = [coverage._region_once(("S^5", 0.1, seed)) for seed in range(40)]
    assert not at_least(np.mean([row[0] for row in rows]), 0.95, 40)


@pytest.mark.slow
def test_linearised_at_the_mean_far_regions_miss(monkeypatch):
    """Wrong variant: noise at the far mean taken as if it had been drawn there, not at the ball's centre."""
    monkeypatch.setattr(estimate.ReleasedMean, "derivative", lambda self, base: np.eye(self.ball.frame.dim))
    rows = []
    for seed in range(100):
        rng = np.random.default_rng([seed, 3])
        X, ball, truth = coverage.far_from_center(rng)
        region = private_region(X, ball, GDP(0.1), units=EACH_RECORD, rng=rng)
        base = region._estimate.mean
        c = ball.frame.log_coords(base.at, ball.into_frame(truth[None])[0])
        rows.append(c @ np.linalg.solve(region.covariance, c) <= region.threshold)
    assert not at_least(np.mean(rows), 0.95, 100)


def test_size_of_the_test_and_a_wrong_variant(monkeypatch):
    name = "S^2, r = 0.6"
    jobs = [(name, 0.3, 0.0, seed) for seed in range(50)]
    assert np.mean([coverage._test_once(job) for job in jobs]) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 50)
    monkeypatch.setattr(estimate.ReleasedMean, "noise", property(lambda self: 1e-12 * np.eye(self.ball.frame.dim)))
    assert np.mean([coverage._test_once(job) for job in jobs[:25]]) > 0.2
