"""Regions and tests from joint moments: they hold their level, at every level, in every dimension that is tried.

Wrong variants: eigenvalues as released, no degrees of freedom for what noise hides, no noise of the mean, no correction
for the noise in p p'. Everything is seeded; false alarms are below one in 1000 for each check unless it says otherwise.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from levels import LEVELS, JointData, excess_misses, excess_rejections
from scipy import stats

import dpmanifold as dpm
from dpmanifold.inference import hotelling, joint
from dpmanifold.inference.hotelling import ShrunkCovariance, freed
from dpmanifold.inference.joint import JointEstimate, combined
from dpmanifold.stats.outlook import plan
from dpmanifold_papers.coverage import in_ball, region_about_a_mean

WITHIN = 1.3
EACH = {"units": dpm.EACH_RECORD}


def as_released(values, noise, per_degree):
    """Wrong variant: eigenvalues as they come, and a chi-square."""
    return hotelling.Spectrum(np.maximum(values, 1.0), np.maximum(values - 1, 0.0), 1.0, math.inf)


def no_freedom(values, noise, per_degree):
    """Wrong variant: the spectrum freed of noise, and as if nothing were uncertain then."""
    return freed(values, noise, per_degree)._replace(free=math.inf, stretch=1.0)


def covers(d, n, mu, repetitions, seed=0):
    """Return how often a region of uneven data, 0.3 off the centre, holds the truth."""
    ball, truth, covered = dpm.Ball(dpm.Euclidean(d), np.zeros(d), 1.0), 0.3 * np.eye(d)[0], 0
    for number in range(repetitions):
        rng = np.random.default_rng([seed, number, d])
        X = in_ball(d, 0.7, n, rng) * np.linspace(1, 0.05, d) + truth
        region = dpm.private_region(X, ball, dpm.GDP(mu), confirm=True, rng=rng, **EACH)
        covered += bool(region.contains(truth))
    return covered / repetitions


# -------------------------------------------------------------------- levels


def test_regions_hold_their_levels_and_wrong_variants_do_not(monkeypatch):
    """Expectations of 0.96 to 0.6 of what is allowed; standard errors up to 10 %. Wrong variants: 1.8 and more."""
    right = excess_misses(JointData(6, 10.0, 0.25, 1), LEVELS, 60)
    assert (right < WITHIN).all()
    for wrong in (as_released, no_freedom):
        monkeypatch.setattr(hotelling, "freed", wrong)
        found = excess_misses(JointData(6, 10.0, 0.25, 1), (0.99,), 60)[0]
        print(f"{wrong.__name__}: {found:.2f}")
        assert found > WITHIN


@pytest.mark.slow
@pytest.mark.parametrize(("d", "relative"), [(1, 0.15), (2, 0.15), (6, 0.15), (15, 0.1)])
@pytest.mark.parametrize("mu", [1.0, 10.0])
def test_regions_hold_every_level(d, relative, mu):
    """At 90 and 95 % within a tenth of the misses allowed; beyond never more (standard errors up to 8 %)."""
    found = excess_misses(JointData(d, mu, relative, 10 * d + int(mu)), LEVELS, 300)
    print(f"d = {d}, mu = {mu}: {found.round(2)}")
    assert (found[:2] > 0.8).all()
    assert (found < WITHIN).all()


@pytest.mark.slow
@pytest.mark.parametrize(("d", "relative"), [(1, 0.5), (1, 1.0), (2, 1.0), (6, 0.5), (15, 0.5)])
def test_regions_never_miss_more_where_noise_swamps_the_covariance(d, relative):
    assert (excess_misses(JointData(d, 10.0, relative, d), LEVELS, 150) < WITHIN).all()


@pytest.mark.slow
@pytest.mark.parametrize(("d", "relative", "stretch"), [(1, 0.15, 2.6), (2, 0.15, 1.8), (6, 0.15, 1.5)])
def test_small_p_values_are_as_rare_as_they_say(d, relative, stretch):
    """Standard errors up to 12 %, expectations up to 1.0."""
    found = excess_rejections(JointData(d, 10.0, relative, d), (0.1, 0.05, 0.01, 0.001), 1500, stretch)
    print(f"d = {d}: {found.round(2)}")
    assert (found[:3] < WITHIN).all()
    assert found[3] < 1.5


@pytest.mark.slow
def test_coverage_of_uneven_data(monkeypatch):
    """Between 0.925 and 0.997 with 300 regions: expectations 0.95 to 0.98, so false alarms below 3 %, seeded."""
    for d, mu in ((2, 1.0), (6, 1.0), (15, 0.3), (15, 3.0)):
        found = covers(d, 100, mu, 300)
        print(f"d = {d}, mu = {mu}: {found:.3f}")
        assert 0.925 <= found <= 0.997
    monkeypatch.setattr(hotelling, "freed", as_released)
    assert covers(15, 100, 3.0, 60) < 0.75


def test_quick_coverage_and_a_wrong_variant(monkeypatch):
    """Fewer than 44 of 50 at 95 % happen once in 2000; without the noise of the mean about half are missed."""
    assert covers(6, 100, 0.3, 50) >= 0.88
    honest = joint.combined

    def no_noise(groups):
        found = honest(groups)
        return replace(found, covariance=found.covariance - 0.9 * found.known * np.eye(6), known=found.known / 10)

    monkeypatch.setattr(joint, "combined", no_noise)
    assert covers(6, 100, 0.3, 30) < 0.88


# -------------------------------------------------------------------- the estimate


def test_the_spread_is_unbiased_and_needs_its_correction():
    """Within 4 standard errors, false alarms 6e-5; without the correction for noise in p p' it is 6 errors off."""
    d, n, mu = 3, 60, 0.1
    ball = dpm.Ball(dpm.Euclidean(d), np.zeros(d), 2.0)
    X = in_ball(d, 1.0, n, np.random.default_rng(0)) + 0.5
    truth = np.trace(np.cov(X.T, bias=True))
    found = [JointEstimate(dpm.private_region(X, ball, dpm.GDP(mu), rng=seed, **EACH).release) for seed in range(300)]
    traces = np.array([np.trace(one.spread) for one in found])
    error = traces.std() / math.sqrt(300)
    assert abs(traces.mean() - truth) < 4 * error
    scale = found[0].mean.scale
    expected = math.sqrt(d * found[0].moment_scale ** 2 + 4 * scale**2 * 0.75 + 2 * d * scale**4)
    assert abs(traces.std() / expected - 1) < 0.2
    uncorrected = traces.mean() - d * scale**2
    print(f"off by {traces.mean() - truth:.4f}, error {error:.4f}, uncorrected {uncorrected - truth:.4f}")
    assert abs(uncorrected - truth) > 4 * error


def test_freed_eigenvalues_undo_what_noise_does():
    """In 30 dimensions noise spreads equal eigenvalues over 2 sqrt(2 d) of its deviations; a tenth of it is left."""
    rng, d, noise = np.random.default_rng(0), 30, 0.02
    a = rng.standard_normal((d, d)) * math.sqrt(noise) / 2
    values = np.linalg.eigvalsh(5 * np.eye(d) + a + a.T)
    found = freed(values, noise, 0.0)
    assert np.ptp(values) > 1.5
    assert np.ptp(found.values) < 0.3 * np.ptp(values)
    assert abs(found.values.mean() - 5) < 0.05


def test_nested_finite_and_never_below_the_noise():
    rng = np.random.default_rng(1)
    for d in (1, 2, 7):
        for noise in (0.0, 1e-9, 0.3, 30.0, 1e30):
            for size in (1e-30, 1.0, 1e30):
                a = rng.standard_normal((d, d))
                error = ShrunkCovariance(size * (a @ a.T - np.eye(d)), 0.7, noise, 0.05)
                safe = error.safe(0.05)
                assert np.isfinite(safe).all()
                assert (np.linalg.eigvalsh(safe) >= 0.7 * (1 - 1e-9)).all()
                tails = np.geomspace(0.99, 1e-12, 20)
                edges = [error.threshold(tail) for tail in tails]
                assert (np.diff(edges) > 0).all()
                assert np.allclose([error.exceedance(edge) for edge in edges], tails, rtol=1e-6)
                assert error.statistic(np.zeros(d)) == 0


def test_few_units_fall_back_on_public_numbers():
    ball = dpm.Ball(dpm.Euclidean(4), np.zeros(4), 1.0)
    X = in_ball(4, 0.5, 5, np.random.default_rng(0))
    region = dpm.private_region(X, ball, dpm.GDP(1e3), rng=0, **EACH)
    assert np.allclose(region.covariance, np.eye(4) / 5, rtol=1e-3)
    assert region.threshold == pytest.approx(stats.chi2.isf(0.05, 4))
    # Where noise is most of it, five units tell enough.
    assert JointEstimate(dpm.private_region(in_ball(4, 0.5, 6, np.random.default_rng(0)), ball, dpm.GDP(0.1), rng=0,
                                            **EACH).release).is_identifiable  # fmt: skip


def test_groups_add_up():
    ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), 1.0)
    X = in_ball(2, 0.5, 300, np.random.default_rng(0))
    one, two = (JointEstimate(dpm.private_region(X[:n], ball, dpm.GDP(2.0), rng=n, **EACH).release) for n in (300, 40))
    both = combined([one, two])
    assert np.allclose(both.covariance, one.covariance + two.covariance)
    assert both.known == pytest.approx(one.mean.scale**2 + two.mean.scale**2)
    # The small group's error is most of it: its degrees of freedom count.
    assert 1 / 299 < both.per_degree < 1 / 39
    assert both.per_degree > 0.5 / 39


# -------------------------------------------------------------------- the public calls


def test_flat_spaces_take_one_draw_and_others_two():
    flat, sphere = dpm.Ball(dpm.SPD(2), np.eye(2), 1.0), dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5)

    def names(ball, **options):
        return [step.statistic for step in plan(300, ball, dpm.GDP(1.0), statistic="region", **options).steps]

    assert names(flat) == ["joint moments"]
    assert names(flat, refine=True) == ["ball", "joint moments"]
    assert names(sphere) == names(sphere, estimand="frechet") == ["mean", "second moment"]
    assert names(sphere, estimand="tangent") == ["joint moments"]
    test = plan((300, 200), flat, dpm.GDP(1.0), statistic="two-sample-test")
    assert [step.statistic for step in test.steps] == ["joint moments"] * 2
    with pytest.raises(dpm.InvalidArgumentError, match='estimand must be "frechet" or "tangent"'):
        names(sphere, estimand="extrinsic")


def test_a_region_costs_the_mean_nothing():
    """The noise on its centre is that of a mean by itself, on a line and in space."""
    for d in (1, 3):
        ball = dpm.Ball(dpm.Euclidean(d), np.zeros(d), 2.0)
        X = np.zeros((50, d))
        region = dpm.private_region(X, ball, dpm.GDP(1.0), **EACH)
        mean = dpm.private_mean(X, ball, dpm.GDP(1.0), mechanism="wrapped-gaussian", **EACH)
        assert region._estimate.mean.scale == pytest.approx(mean.scale, rel=1e-6)


@pytest.mark.parametrize("space", [dpm.Sphere(2), dpm.Hyperbolic(2), dpm.SPD(2, metric="riemann")], ids=repr)
def test_regions_of_tangent_means(space):
    """Named as such, centred where a tangent mean is, and read back; 18 of 25 cover but for one case in 10,000."""
    ball = dpm.Ball(space, space.origin, 0.6)
    covered = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        v = in_ball(space.dim, 0.3, 200, rng) + 0.2 * np.eye(space.dim)[0]
        X = space.exp_coords(space.origin, v)
        region = dpm.private_region(X, ball, dpm.GDP(1.0), estimand="tangent", confirm=True, rng=rng, **EACH)
        truth = space.exp_coords(space.origin, 0.2 * np.eye(space.dim)[0])
        covered += bool(region.contains(truth))
    assert covered >= 18
    assert "tangent mean" in region.title
    assert dpm.verify(region).ok
    again = dpm.ConfidenceRegion.from_dict(region.to_dict())
    assert again.to_dict() == region.to_dict()
    edge = region.boundary(8)
    assert region.contains(space.exp_coords(region.center, 0.9 * space.log_coords(region.center, edge))).all()
    assert region.estimand == region.answers()["estimand"] == "tangent"


def test_groups_of_two_kinds_are_refused():
    ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), 1.0)
    X = in_ball(2, 0.5, 100, np.random.default_rng(0))
    new = dpm.private_region(X, ball, dpm.GDP(1.0), rng=0, **EACH).release
    old = region_about_a_mean(X, ball, dpm.GDP(1.0), 0).release
    with pytest.raises(dpm.InvalidArgumentError, match="one kind"):
        dpm.TwoSampleTest(new, old)
    assert dpm.verify(dpm.ConfidenceRegion(old)).ok
    assert dpm.verify(dpm.ConfidenceRegion(new)).ok


def test_forged_joint_regions_are_found():
    ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), 1.0)
    region = dpm.private_region(in_ball(2, 0.5, 100, np.random.default_rng(0)), ball, dpm.GDP(1.0), **EACH)
    release = region.release
    for change in ({"scale": release.scale / 2}, {"n": 10_000}, {"privacy": dpm.GDP(0.5)}, {"details": {}}):
        assert not dpm.verify(replace(release, **change)).ok
    weight = dict.fromkeys(release.details, 1.5)
    assert not dpm.verify(replace(release, details=weight)).ok


BALLS = [
    dpm.Ball(dpm.SPD(2), np.eye(2), 1.0),
    dpm.Ball(dpm.SPD(2, "riemann"), np.eye(2), 1.0),
    dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.6),
]


@pytest.mark.parametrize("estimand", ["frechet", "tangent"])
@pytest.mark.parametrize("n", [8, 400])
@pytest.mark.parametrize("ball", BALLS, ids=lambda ball: repr(ball.space))
def test_the_mean_of_a_result_is_a_point_however_it_was_drawn(ball, n, estimand):
    X = ball.space.exp_coords(ball.center, 0.1 * np.random.default_rng(0).standard_normal((n, ball.space.dim)))
    how = {**EACH, "estimand": estimand, "rng": 1}
    region = dpm.private_region(X, ball, dpm.GDP(1.0), **how)
    test = dpm.private_two_sample_test(X, X[::-1], ball, dpm.GDP(1.0), **how)
    groups = dpm.private_k_sample_test(X, ["a", "b"] * (n // 2), ball, dpm.GDP(1.0), classes=["a", "b"], **how)
    for mean in (region.mean, *test.means, *groups.means):
        assert mean.value.shape == ball.space.shape
        assert ball.space.check(mean.value) is None
        assert float(ball.space.dist(ball.center, mean.value)) <= ball.effective_radius
    assert region.mean.release in (region.release, *region.release.steps)
    assert np.array_equal(region.mean.value, region.center)
    again = dpm.ConfidenceRegion.from_dict(json.loads(json.dumps(region.to_dict())))
    assert np.array_equal(again.mean.value, region.mean.value)
    assert again.verify().ok
