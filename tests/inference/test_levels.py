"""Regions, p-values and intervals hold the level asked for, at every level, where the noise is hardest to allow for.

What is checked are the objects that users get. Only their releases are drawn here, from the law that the public calls
draw from (one test compares the two), because a miss in a thousand needs more of them than the calls can make. Wrong
variants: the allowance of 95 % at every level, none at all, n instead of n - 1, the region's size as its error.

False alarms: ratios are means over independent draws with standard errors of at most 6 %; their expectations, from a
simulation of eigenvalues alone, are 0.92 to 1.06, and the bounds 1/1.3 and 1.3. Below one in 1000 for each; where a
test says otherwise, its own figures hold.
"""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from levels import LEVELS, NormalData, excess_misses, excess_rejections
from scipy import stats

from dpmanifold import (
    EACH_RECORD,
    GDP,
    SPD,
    Ball,
    ConfidenceRegion,
    Euclidean,
    Sphere,
    VarianceInterval,
    private_region,
    private_two_sample_test,
    private_variance_interval,
)
from dpmanifold.inference import estimate, hotelling
from dpmanifold_papers.coverage import in_ball as uniform, interval_about_a_mean, region_about_a_mean

N = 1000
WITHIN = 1.3


def allow_as_for_95(monkeypatch):
    """Wrong variant: the allowance of 95 % at every level."""
    right = hotelling._second_order
    monkeypatch.setattr(hotelling, "_second_order", lambda dim, tail, *more: right(dim, 0.05, *more))


# -------------------------------------------------------------------- regions


def test_regions_hold_999_in_a_thousand_and_the_allowance_of_95_does_not(monkeypatch):
    right = excess_misses(NormalData(2, 10.0, 0.25, 1), (0.999,), 500)
    assert 1 / WITHIN < right < WITHIN
    allow_as_for_95(monkeypatch)
    assert excess_misses(NormalData(2, 10.0, 0.25, 1), (0.999,), 500) > WITHIN


@pytest.mark.slow
@pytest.mark.parametrize(("d", "relative"), [(1, 0.25), (2, 0.25), (6, 0.15)])
@pytest.mark.parametrize("mu", [1.0, 10.0])
def test_regions_hold_every_level(d, relative, mu):
    found = excess_misses(NormalData(d, mu, relative, 10 * d + int(mu)), LEVELS, 1000)
    print(f"d = {d}, mu = {mu}: {found.round(2)}")
    assert (found > 1 / WITHIN).all()
    assert (found < WITHIN).all()


@pytest.mark.slow
@pytest.mark.parametrize(("d", "relative"), [(1, 0.5), (1, 1.0), (2, 0.5), (6, 0.5)])
def test_regions_never_miss_more_where_noise_swamps_the_covariance(d, relative):
    found = excess_misses(NormalData(d, 10.0, relative, d), LEVELS, 400)
    assert (found < WITHIN).all()


@pytest.mark.slow
def test_the_allowance_of_95_misses_twice_as_often_as_it_may(monkeypatch):
    allow_as_for_95(monkeypatch)
    for d, relative in ((1, 0.3), (2, 0.25), (6, 0.15)):
        assert excess_misses(NormalData(d, 10.0, relative, d), (0.999,), 1000) > WITHIN


@pytest.mark.slow
def test_drawn_releases_are_those_of_the_public_call():
    """Error, size and statistic of regions have one law on both ways. False alarms: three in a thousand."""
    data = NormalData(2, 10.0, 0.25, 5)
    ball = data.like.ball

    def facts(release):
        region = ConfidenceRegion(release)
        error = np.asarray(release.steps[0].value)
        return error[0], region.effective_radius, region._estimate.error.statistic(error)

    called = []
    for seed in range(150):
        X = math.sqrt(data.spread) * np.random.default_rng([seed, 9]).standard_normal((N, 2))
        called.append(facts(region_about_a_mean(X, ball, GDP(10.0), seed).release))
    drawn = [facts(data.release()) for _ in range(1000)]
    for one, two in zip(np.transpose(called), np.transpose(drawn), strict=True):
        assert stats.ks_2samp(one, two).pvalue > 1e-3
    # Without the noise on the second moment the sizes would be another law's.
    data.like = replace(data.like, scale=data.like.scale / 3)
    other = [facts(data.release())[1] for _ in range(1000)]
    assert stats.ks_2samp(np.transpose(called)[1], other).pvalue < 1e-6


# -------------------------------------------------------------------- p-values


@pytest.mark.slow
def test_small_p_values_are_as_rare_as_they_say(monkeypatch):
    """Standard error 0.13, expectation 0.85: false alarms one in 1000. The wrong variant rejects twice too often."""
    assert excess_rejections(NormalData(2, 10.0, 0.4, 2), (1e-3,), 800, 2.4) < WITHIN
    allow_as_for_95(monkeypatch)
    assert excess_rejections(NormalData(2, 10.0, 0.4, 2), (1e-3,), 800, 2.4) > WITHIN


@pytest.mark.slow
@pytest.mark.parametrize(("d", "relative", "stretch"), [(1, 0.3, 2.6), (2, 0.3, 1.8), (6, 0.2, 1.5)])
def test_p_values_are_uniform(d, relative, stretch):
    found = excess_rejections(NormalData(d, 10.0, relative, d), (0.1, 0.05, 0.01, 0.001), 4000, stretch)
    print(f"d = {d}: {found.round(2)}")
    assert (found > 1 / WITHIN).all()
    assert (found < WITHIN).all()


def test_a_p_value_is_the_level_at_which_the_region_ends():
    """The tail at which a point lies on the boundary: regions grow with the level, and the statistic finds the one."""
    rng = np.random.default_rng(0)
    for d in (1, 2, 6):
        for noise in (1e-6, 0.1, 1.0, 30.0):
            a = rng.standard_normal((d, d))
            error = hotelling.NoisyCovariance(a @ a.T, noise, float(rng.choice([d + 1.5, 40.0, math.inf])))
            tails = np.geomspace(0.9, 1e-14, 30)
            shapes = [error.threshold(tail) * error.safe(tail) for tail in tails]
            for inner, outer in pairwise(shapes):
                assert np.linalg.eigvalsh(outer - inner)[0] > 0
            for tail, shape in zip(tails, shapes, strict=True):
                values, vectors = np.linalg.eigh(shape)
                on_edge = vectors @ (np.sqrt(values) * stats.uniform_direction(d).rvs(random_state=rng)) if d > 1 else (
                    np.sqrt(values)
                )  # fmt: skip
                found = hotelling.exceedance(error.statistic(on_edge), d, error.free)
                assert np.isclose(found, tail, rtol=1e-5)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("n", [2, 3, 9, 2000])
def test_p_values_never_raise(n, mu):
    """Equal means, far ones and data without spread, from all noise to none."""
    ball = Ball(Euclidean(2), np.zeros(2), 1.0)
    same, line = np.zeros((n, 2)), np.linspace(-0.7, 0.7, n)[:, None] * [1.0, 0.0]
    for X, Y in ((same, same), (same, same + 0.6), (line, line), (line, same - 0.6)):
        for level in (1e-9, 0.5, 1 - 1e-15):
            test = private_two_sample_test(X, Y, ball, GDP(mu), units=EACH_RECORD, level=level, rng=0)
            assert 0 <= test.p_value <= 1
            assert test.rejects == (test.low > 0)
            assert np.isfinite([test.statistic, test.low, test.high, *test.variance_shares]).all()
            assert "p-value" in repr(test)
    region = private_region(line, ball, GDP(mu), units=EACH_RECORD, level=1 - 1e-15, rng=0)
    assert np.isfinite(region.covariance).all()


# -------------------------------------------------------------------- few units


@pytest.mark.slow
@pytest.mark.parametrize("right", [True, False])
def test_the_covariance_of_few_units_is_unbiased(right, monkeypatch):
    """Five units: by n it would be a fifth too small. Standard error 3 %, so 12 % is four of them: one in 10,000."""
    n, truth = 5, 2 * 0.1**2 / 5
    if not right:
        monkeypatch.setattr(estimate.Estimate, "_sandwich", lambda self, moment, count: moment / n)
    ball = Ball(Euclidean(2), np.zeros(2), 1.0)
    traces = []
    for seed in range(300):
        X = 0.1 * np.random.default_rng(seed).standard_normal((n, 2))
        release = region_about_a_mean(X, ball, GDP(1e5), seed).release
        traces.append(np.trace(estimate.Estimate(release).sampling))
    assert (abs(np.mean(traces) / truth - 1) < 0.12) == right


@pytest.mark.slow
@pytest.mark.parametrize(("n", "mu"), [(10, 10.0), (20, 10.0)])
def test_regions_of_few_units_cover(n, mu):
    """Uniform data in the disc: 0.948 to 0.960, where n instead of n - 1 gives 0.942. False alarms: 1 in 1000."""
    ball = Ball(Euclidean(2), np.zeros(2), 1.0)
    covered = 0
    for seed in range(2000):
        rng = np.random.default_rng([seed, n])
        covered += bool(
            private_region(uniform(2, 1.0, n, rng), ball, GDP(mu), units=EACH_RECORD, rng=rng).contains([0, 0])
        )
    assert covered / 2000 > 0.948 - 3 * math.sqrt(0.05 * 0.95 / 2000)


# -------------------------------------------------------------------- the error to expect

ERRORS = {
    "R^6, n = 200, mu = 1": (Euclidean(6), 1.0, 0.3, 0.0, 200, 1.0),
    "R^6, n = 50, mu = 0.3": (Euclidean(6), 1.0, 0.3, 0.0, 50, 0.3),
    "R^2, hardly spread, far from the centre": (Euclidean(2), 1.0, 0.02, 0.9, 200, 1.0),
    "R^2, n = 10": (Euclidean(2), 1.0, 1.0, 0.0, 10, 5.0),
    "S^2, n = 300, mu = 1": (Sphere(2), 0.6, 0.5, 0.0, 300, 1.0),
    "SPD(3), n = 40, mu = 2": (SPD(3, metric="riemann"), 1.5, 0.5, 0.0, 40, 2.0),
}


def joint_or_not(X, ball, privacy, rng):
    """Return what the public call makes of records."""
    return private_region(X, ball, privacy, units=EACH_RECORD, rng=rng)


def stated_and_true_error(case, repetitions, make=joint_or_not):
    """Mean error stated, mean size of the region and root mean squared error found."""
    space, radius, spread, away, n, mu = ERRORS[case]
    truth = space.exp_coords(space.origin, away * radius * np.eye(space.dim)[0])
    ball = Ball(space, space.origin, radius)
    stated, sizes, squares = [], [], []
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, 11])
        X = space.exp_coords(truth, uniform(space.dim, spread * radius, n, rng))
        region = make(X, ball, GDP(mu), rng)
        stated.append(region.expected_error)
        sizes.append(region.effective_radius)
        squares.append(float(space.dist(region.center, truth)) ** 2)
    return np.mean(stated), np.mean(sizes), math.sqrt(np.mean(squares))


def test_the_error_stated_is_the_error_made():
    """In six dimensions; the region's size, stated before, is 1.3 times the error. Standard error 2.5 %."""
    stated, size, made = stated_and_true_error("R^6, n = 200, mu = 1", 150, region_about_a_mean)
    assert 1 / 1.15 < stated / made < 1.15
    assert size / made > 1.15


@pytest.mark.slow
@pytest.mark.parametrize("case", list(ERRORS))
def test_errors_stated_are_errors_made(case):
    """Standard errors up to 3 %, expectations from 0.95 to 1.1 (theory section 7): false alarms 5 % at most, seeded."""
    stated, size, made = stated_and_true_error(case, 300)
    print(f"{case}: stated {stated:.4f}, made {made:.4f}, size of the region {size:.4f}")
    assert 1 / 1.15 < stated / made < 1.15


def test_parts_add_up():
    ball = Ball(Euclidean(3), np.zeros(3), 1.0)
    for mu in (0.1, 1.0, 100.0):
        for n in (3, 400):
            X = uniform(3, 0.5, n, np.random.default_rng(0))
            for result in (
                private_region(X, ball, GDP(mu), units=EACH_RECORD),
                private_variance_interval(X, ball, GDP(mu), units=EACH_RECORD),
                private_two_sample_test(X, X, ball, GDP(mu), units=EACH_RECORD),
            ):
                assert min(result.variance_shares) >= 0
                assert math.isclose(sum(result.variance_shares), 1.0)
                assert sum(result.variance_shares.percent) == 100
                assert math.isclose(result.privacy_share, 1 - result.variance_shares.sampling)
                assert "allowance" in repr(result)


# -------------------------------------------------------------------- intervals


def excess_interval_misses(levels, count, stretch=2.0, seed=0):
    """The same for intervals of a variance: squared distances of uniform data on a line, their means normal."""
    rng, n, reach = np.random.default_rng(seed), N, 0.25
    ball = Ball(Euclidean(1), [0.0], 1.0)
    like = interval_about_a_mean(np.zeros((n, 1)), ball, GDP(10.0), 0).release
    mean = replace(like.steps[0].steps[0], value=np.zeros(1))
    powers = reach ** np.arange(2, 9, 2) / np.arange(3, 10, 2)  # E x^2, x^4, x^6, x^8
    between = np.array([[powers[1], powers[2]], [powers[2], powers[3]]]) - np.outer(powers[:2], powers[:2])
    covariance = between / n + np.diag([like.steps[0].scale ** 2, like.scale**2])
    slope = covariance[0, 1] / covariance[0, 0]
    rest = math.sqrt(covariance[1, 1] - slope * covariance[0, 1])
    missed = np.zeros(len(levels))
    for _ in range(count):
        z = stretch * rng.standard_normal()
        off = math.sqrt(covariance[0, 0]) * z
        variance = replace(like.steps[0], value=powers[0] + mean.scale**2 + off, steps=(mean,))
        release = replace(like, value=powers[1] + slope * off + rest * rng.standard_normal(), steps=(variance,))
        weight = stretch * math.exp(-(z**2) * (1 - stretch**-2) / 2)
        for number, level in enumerate(levels):
            missed[number] += weight * (not VarianceInterval(release, level).contains(powers[0]))
    return missed / count / (1 - np.asarray(levels))


@pytest.mark.slow
def test_intervals_hold_every_level(monkeypatch):
    """Expectations below 1; without an allowance for the noise on the fourth moment three times as many misses."""
    assert (excess_interval_misses(LEVELS, 1200) < WITHIN).all()
    monkeypatch.setattr(hotelling, "safe_variances", lambda values, noise, tail: values)
    assert excess_interval_misses((0.999,), 1200) > 2
