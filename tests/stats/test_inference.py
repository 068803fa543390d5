"""Regions, intervals and tests: what comes back, what is refused, and that nothing shrinks."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dpmanifold import (
    EACH_RECORD,
    GDP,
    SPD,
    ZCDP,
    ApproxDP,
    Ball,
    Budget,
    BudgetError,
    ConfidenceRegion,
    Euclidean,
    Hyperbolic,
    InvalidArgumentError,
    InvalidDataError,
    KendallShapes,
    PromiseError,
    PureDP,
    Release,
    Sphere,
    TwoSampleTest,
    VarianceInterval,
    private_mean,
    private_region,
    private_statistic,
    private_two_sample_test,
    private_variance,
    private_variance_interval,
    sensitivity,
    verify,
)
from dpmanifold.inference.estimate import Estimate
from dpmanifold.inference.hotelling import safe_variances
from dpmanifold.inference.joint import estimate_of
from dpmanifold.linalg import to_vecd
from dpmanifold.manifolds.base import shorten
from dpmanifold.privacy import compose
from dpmanifold_papers.coverage import interval_about_a_mean
from laws.data import hostile, in_ball
from laws.tiers import pairs

BALLS = [
    Ball(Euclidean(1), [3.0], 2.0),
    Ball(Euclidean(3), [1.0, 2.0, 3.0], 2.0, source="a range"),
    Ball(Sphere(1), [0.0, 1.0], 0.6),
    Ball(Sphere(2), [0.0, 0.6, 0.8], 0.6),
    Ball(Hyperbolic(2), Hyperbolic(2).random_point(rng=1), 1.0),
    Ball(Hyperbolic(1), Hyperbolic(1).random_point(rng=1), 1.0),
    Ball(KendallShapes(3), KendallShapes(3).random_point(rng=1), 0.3),
    Ball(KendallShapes(5), KendallShapes(5).random_point(rng=1), 0.3),
    Ball(SPD(1), [[4.0]], 2.0),
    Ball(SPD(3), np.diag([3.0, 2.0, 1.0]), 1.5),
    Ball(SPD(2, metric="riemann"), np.diag([3.0, 1.0]), 1.0),
]
PROMISES = [ApproxDP(0.5, 1e-6), ZCDP(0.5), GDP(1.0)]


@pytest.mark.parametrize("privacy", PROMISES, ids=repr)
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_every_result_verifies_keeps_the_promise_and_survives_json(ball, privacy, tmp_path):
    rng = np.random.default_rng(0)
    X, Y = in_ball(ball, 300, rng), in_ball(ball, 200, rng)
    budget = Budget(privacy)
    region = private_region(X, ball, privacy, units=EACH_RECORD, budget=budget)
    assert budget.remaining is None
    results = [
        region,
        private_variance_interval(X, ball, privacy, units=EACH_RECORD),
        private_two_sample_test(X, Y, ball, privacy, units=EACH_RECORD),
    ]
    for result in results:
        assert verify(result).ok, verify(result)
        assert result.privacy == privacy
        assert result.private
        assert 0 <= result.privacy_share <= 1
        result.save(tmp_path / "result.json")
        again = type(result).load(tmp_path / "result.json")
        assert again.to_dict() == result.to_dict()
        assert repr(again) == repr(result)
        assert "NOT PRIVATE" not in result._repr_html_()
    assert bool(region.contains(region.center))
    assert bool(ball.contains(region.center))
    assert results[1].low <= results[1].value <= results[1].high
    assert 0 <= results[2].p_value <= 1
    assert results[2].low <= results[2].distance <= results[2].high + 1e-12


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_the_boundary_and_the_axes_end_where_the_region_does(ball):
    X = ball.space.exp_coords(
        ball.center, 0.2 * ball.radius * np.random.default_rng(0).standard_normal((900, ball.space.dim))
    )
    region = private_region(ball.clip(X), ball, GDP(2.0), units=EACH_RECORD, rng=3)
    edge = region.boundary(16)
    assert edge.shape[1:] == ball.space.shape
    space = ball.space
    inward = space.exp_coords(region.center, 0.98 * space.log_coords(region.center, edge))
    outward = space.exp_coords(region.center, 1.02 * space.log_coords(region.center, edge))
    assert region.contains(inward).all()
    assert not region.contains(outward).any()
    lengths, directions = region.axes()
    assert (np.diff(lengths) <= 0).all()
    assert np.allclose(space.norm(np.broadcast_to(region.center, directions.shape), directions), 1.0, atol=1e-5)
    first = space.exp(region.center, 0.9 * lengths[0] * directions[0])
    beyond = space.exp(region.center, 1.15 * lengths[0] * directions[0])
    assert bool(region.contains(first))
    assert not bool(region.contains(beyond))
    assert region.volume > 0
    assert np.isclose(region.effective_radius, math.sqrt(np.trace(region.covariance)))


@pytest.mark.parametrize(
    ("ball", "n", "kind"),
    pairs(BALLS, [2, 3, 40], ["two edges", "one outlier", "all at one point", "edge"]),
    ids=repr,
)
def test_singular_moments_and_few_units_never_raise_and_never_shrink(ball, n, kind):
    X = hostile(ball, n)[kind]
    region = private_region(X, ball, GDP(1.0), units=EACH_RECORD, rng=1)
    noise = estimate_of(region.release).mean.noise
    assert (np.linalg.eigvalsh(region.covariance - noise) > 0).all()  # never below the public noise
    assert (
        region.threshold
        >= 0.99
        * private_region(
            in_ball(ball, 5000, np.random.default_rng(0)), ball, GDP(1.0), units=EACH_RECORD, rng=1
        ).threshold
    )
    interval = private_variance_interval(X, ball, GDP(1.0), units=EACH_RECORD, rng=1)
    assert 0 <= interval.low <= interval.high <= ball.effective_radius**2
    test = private_two_sample_test(X, X, ball, GDP(1.0), units=EACH_RECORD, rng=1)
    assert test.p_value > 1e-6


def test_identical_data_give_the_public_noise_region():
    """No spread at all: what is left is the noise on the mean and the allowance for the noise on the second moment."""
    ball = Ball(Euclidean(2), [0.0, 0.0], 1.0)
    region = private_region(np.zeros((400, 2)), ball, GDP(1.0), units=EACH_RECORD, rng=0)
    assert region.dominant_source == "privacy"
    assert region.privacy_share > 0.9
    values = np.linalg.eigvalsh(region.covariance)
    assert values[0] > region.mean.scale**2


def test_too_few_units_fall_back_on_the_public_bound():
    """Three units tell nothing about six directions; noise is made negligible by a huge mu."""
    ball = Ball(SPD(3), np.eye(3), 1.0)
    X = in_ball(ball, 3, np.random.default_rng(0))
    region = private_region(X, ball, GDP(1e4), units=EACH_RECORD, rng=0)
    assert np.allclose(region.covariance, ball.radius**2 / 3 * np.eye(6), rtol=1e-3)
    region = ConfidenceRegion(private_statistic(X, ball, GDP(1e4), statistic="second moment", units=EACH_RECORD, rng=0))
    reach = Estimate(region.release).mean.reach
    assert np.allclose(region.covariance, reach**2 / 3 * np.eye(6), rtol=1e-3)
    assert region.covers_ball
    assert "holds the whole ball" in repr(region)


def test_the_region_shrinks_as_units_and_promise_grow():
    ball = BALLS[3]
    radii = [
        private_region(
            in_ball(ball, n, np.random.default_rng(1)), ball, GDP(mu), units=EACH_RECORD, rng=1
        ).effective_radius
        for n, mu in ((100, 0.3), (1000, 0.3), (1000, 3.0), (10_000, 3.0))
    ]
    assert radii == sorted(radii, reverse=True)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.5, math.nan, "0.95", True])
def test_a_level_outside_0_and_1_is_an_error_before_anything_is_spent(level):
    ball = BALLS[1]
    X = in_ball(ball, 50, np.random.default_rng(0))
    budget = Budget(GDP(1.0))
    for call in (
        lambda: private_region(X, ball, GDP(1.0), units=EACH_RECORD, level=level, budget=budget),
        lambda: private_variance_interval(X, ball, GDP(1.0), units=EACH_RECORD, level=level, budget=budget),
        lambda: private_two_sample_test(X, X, ball, GDP(1.0), units=EACH_RECORD, level=level, budget=budget),
    ):
        with pytest.raises(InvalidArgumentError, match="level must be"):
            call()
    assert budget.remaining == GDP(1.0)


def test_refusals_name_the_remedy_and_spend_nothing():
    ball = BALLS[1]
    X = in_ball(ball, 50, np.random.default_rng(0))
    budget = Budget(GDP(1.0))
    for function in (private_region, private_variance_interval):
        with pytest.raises(PromiseError, match="Ask for GDP"):
            function(X, ball, PureDP(1.0), units=EACH_RECORD, budget=budget)
        with pytest.raises(InvalidArgumentError, match="units must say"):
            function(X, ball, GDP(1.0), units=None, budget=budget)
        with pytest.raises(TypeError, match="'units'"):
            function(X, ball, GDP(1.0), budget=budget)
        with pytest.raises(InvalidDataError, match="at least 2 units"):
            function(X[:1], ball, GDP(1.0), units=EACH_RECORD, budget=budget)
        with pytest.raises(BudgetError):
            function(X, ball, GDP(1.1), units=EACH_RECORD, budget=budget)
    ids = np.arange(50)
    with pytest.raises(InvalidArgumentError, match="units of X and Y overlap"):
        private_two_sample_test(X, X, ball, GDP(1.0), units=(ids, ids + 49), budget=budget)
    text = np.array([str(i) for i in ids], dtype=object)
    with pytest.raises(InvalidArgumentError, match="units of X and Y overlap"):
        private_two_sample_test(X, X, ball, GDP(1.0), units=(ids, text), budget=budget)  # 7 and "7" are one person
    with pytest.raises(InvalidArgumentError, match="ids for both groups"):
        private_two_sample_test(X, X, ball, GDP(1.0), units=(EACH_RECORD, ids), budget=budget)
    with pytest.raises(PromiseError, match="beyond double precision"):
        private_variance_interval(
            [[0.0], [1.0]], Ball(Euclidean(1), [0.0], 1e50), GDP(1e-20), units=EACH_RECORD, budget=budget
        )
    with pytest.raises(InvalidArgumentError, match="EACH_RECORD or a pair"):
        private_two_sample_test(X, X, ball, GDP(1.0), units=ids, budget=budget)
    with pytest.raises(InvalidArgumentError, match="units of Y must have shape"):
        private_two_sample_test(X, X, ball, GDP(1.0), units=(ids, ids[:7] + 100), budget=budget)
    assert budget.remaining == GDP(1.0)
    assert verify(private_two_sample_test(X, X, ball, GDP(1.0), units=(ids, ids + 100))).ok


def test_units_count_once():
    ball = BALLS[3]
    X = in_ball(ball, 60, np.random.default_rng(0))
    person = np.repeat(np.arange(20), 3)
    assert private_region(X, ball, GDP(1.0), units=person).n == 20
    assert private_variance_interval(X, ball, GDP(1.0), units=person).n == 20


def test_seeded_results_are_marked():
    ball = BALLS[3]
    X = in_ball(ball, 60, np.random.default_rng(0))
    for result in (
        private_region(X, ball, GDP(1.0), units=EACH_RECORD, rng=0),
        private_variance_interval(X, ball, GDP(1.0), units=EACH_RECORD, rng=0),
        private_two_sample_test(X, X, ball, GDP(1.0), units=EACH_RECORD, rng=0),
    ):
        assert not result.private
        assert "NOT PRIVATE" in repr(result)
        assert "NOT PRIVATE" in result._repr_html_()


# -------------------------------------------------------------------- verification


def forged(result, change):
    record = json.loads(json.dumps(result.to_dict()))
    del record["answers"]
    change(record)
    return type(result).from_dict(record)


def test_verification_catches_forgeries():
    ball = BALLS[3]
    X = in_ball(ball, 200, np.random.default_rng(0))
    region = private_region(X, ball, GDP(1.0), units=EACH_RECORD)
    interval = private_variance_interval(X, ball, GDP(1.0), units=EACH_RECORD)

    def less_noise(record):
        record["release"]["scale"] *= 0.5

    def nearer(record):
        record["release"]["details"]["reference_to_center"] = 0.0
        away = sensitivity.of_second_moment(ball, 200, away=0.0)
        record["release"]["sensitivity"]["value"] = away.value
        record["release"]["scale"] *= 0.9

    def fewer_people_than_the_mean(record):
        record["release"]["steps"][0]["n"] = 10_000

    def stronger(record):
        record["release"]["privacy"]["mu"] = 0.5

    for change in (less_noise, stronger, fewer_people_than_the_mean):
        assert not verify(forged(region, change)).ok
        assert not verify(forged(interval, change)).ok
    assert not verify(forged(region, nearer)).ok


def test_hostile_records_are_reported_and_never_raise_from_verify():
    ball = BALLS[3]
    X = in_ball(ball, 100, np.random.default_rng(0))
    region = private_region(X, ball, GDP(1.0), units=EACH_RECORD)

    def change(**changes):
        return lambda record: record["release"].update(changes)

    step = region.to_dict()["release"]["steps"][0]
    for changes in (
        {"steps": [{**step, "privacy": {"kind": "ApproxDP", "epsilon": 5.0, "delta": 0.01}}]},
        {"details": {"reference_to_center": 1e200}},
        {"details": {}},
        {"timing": "fully covered"},
        {"unit": "hospital"},
        {"steps": [{**step, "adjacency": "anything"}]},
    ):
        assert not verify(forged(region, change(**changes))).ok, changes
    for value in ({"number": 3.0}, {"point": [0.0, 0.0, 1.0]}, {"matrix": [[math.nan, 0.0], [0.0, 1.0]]}):
        with pytest.raises(InvalidDataError, match="damaged"):
            forged(region, change(value=value))
    public = replace(region.release, steps=(replace(region.mean.release, private=False),))
    assert not ConfidenceRegion(public).private


def test_variances_about_a_clipped_mean_verify_on_badly_conditioned_centres():
    ball = Ball(SPD(2), np.diag([1.0, 1e-12]), 1.0)
    X = np.repeat(ball.center[None], 20, axis=0)
    for _ in range(20):
        assert verify(private_variance_interval(X, ball, GDP(0.1), units=EACH_RECORD)).ok


@pytest.mark.parametrize("space", [SPD(2, metric="riemann"), KendallShapes(5), Sphere(2)], ids=repr)
def test_noise_does_not_shrink_in_tiny_balls(space):
    ball = Ball(space, space.origin, 1e-10)
    X = np.repeat(space.origin[None], 400, axis=0)
    region = private_region(X, ball, GDP(1.0), units=EACH_RECORD)
    two_draws = ConfidenceRegion(private_statistic(X, ball, GDP(1.0), statistic="second moment", units=EACH_RECORD))
    for found in (region, two_draws):
        mean = estimate_of(found.release).mean
        assert np.allclose(np.linalg.eigvalsh(mean.noise) / mean.scale**2, 1.0, rtol=1e-4)
        assert mean.scale > 0.9 * 2 * ball.radius / 400


@pytest.mark.parametrize(
    ("n", "mu", "least"), [(2, 1000.0, 0.9), (3, 100.0, 0.9), (50, 100.0, 0.9), (400, 1000.0, 0.9)]
)
def test_intervals_of_few_units_or_equal_distances_do_not_collapse(n, mu, least):
    """Two points at equal distances: the spread of squared distances is 0, and the population's variance is known."""
    ball = Ball(Euclidean(1), [0.0], 1.0)
    covered = []
    for seed in range(150):
        X = 0.99 * np.random.default_rng(seed).choice([-1.0, 1.0], (n, 1))
        interval = private_variance_interval(X, ball, GDP(mu), units=EACH_RECORD, rng=seed)
        assert interval.low < interval.high
        covered.append(interval.contains(0.99**2))
    assert np.mean(covered) >= least


def test_records_of_another_kind_are_refused(tmp_path):
    ball = BALLS[3]
    X = in_ball(ball, 50, np.random.default_rng(0))
    mean = private_mean(X, ball, GDP(1.0), units=EACH_RECORD)
    region = private_region(X, ball, GDP(1.0), units=EACH_RECORD)
    mean.save(tmp_path / "mean.json")
    for kind in (ConfidenceRegion, VarianceInterval, TwoSampleTest):
        with pytest.raises(InvalidDataError, match="not a record of format"):
            kind.load(tmp_path / "mean.json")
    with pytest.raises(InvalidArgumentError, match="second moment about a released mean"):
        ConfidenceRegion(mean)
    with pytest.raises(InvalidArgumentError, match="fourth moment after a variance"):
        VarianceInterval(region.release)
    laplace = private_mean(X, ball, PureDP(1.0), units=EACH_RECORD)
    with pytest.raises(InvalidArgumentError, match="release must be a mean by"):
        ConfidenceRegion(replace(region.release, steps=(laplace,)))
    with pytest.raises(InvalidDataError, match="damaged"):
        forged(region, lambda record: record.pop("release"))
    with pytest.raises(InvalidDataError, match="damaged"):
        forged(region, lambda record: record["release"]["value"].update(matrix=[[1.0]]))
    with pytest.raises(InvalidArgumentError, match="plane must be"):
        region.boundary(plane=(0, 7))
    moved = Ball(ball.space, ball.center, ball.radius, "another")
    other = private_region(X, moved, GDP(1.0), units=EACH_RECORD)
    with pytest.raises(InvalidArgumentError, match="same ball"):
        TwoSampleTest(region.release, other.release)


def test_shares_compose_to_the_promise_and_to_no_more():
    ball = BALLS[3]
    X = in_ball(ball, 200, np.random.default_rng(0))
    region = private_region(X, ball, GDP(1.0), units=EACH_RECORD)
    total = compose([region.mean.release.privacy, region.release.share])
    assert 1 - 1e-12 <= total.mu <= 1.0
    interval = private_variance_interval(X, ball, GDP(1.0), units=EACH_RECORD)
    parts = [interval.variance.steps[0].share, interval.variance.share, interval.release.share]
    assert 1 - 1e-12 <= compose(parts).mu <= 1 + 1e-15


# -------------------------------------------------------------------- the parts' privacy


def pairs(ball, n, rng, count=200):
    """Neighbouring data: the replaced record anywhere, often on the edge."""
    for _ in range(count):
        X = in_ball(ball, n, rng, edge=bool(rng.integers(2)))
        Y = X.copy()
        Y[0] = in_ball(ball, 1, rng, edge=True)[0]
        yield ball.to_frame(X), ball.to_frame(Y)


@pytest.mark.parametrize(
    "ball",
    BALLS,
    ids=repr,
)
def test_moments_of_neighbours_differ_by_at_most_mu_scales(ball):
    """The exact profile of Gaussian noise is that of the shift in units of its scale: it never exceeds the share."""
    rng = np.random.default_rng(2)
    n, mu, worst = 5, 1.0, 0.0
    frame = ball.frame
    for away in (0.0, 1.0):
        c = np.zeros(frame.dim)
        c[0] = away * ball.radius * (1 - 1e-12)
        at = frame.exp_coords(frame.origin, c)
        apart = float(frame.dist(frame.origin, at))
        far = sensitivity.reach(ball, away=apart)
        second = sensitivity.of_second_moment(ball, n, away=apart).value / mu
        fourth = sensitivity.of_fourth_moment(ball, n, away=apart).value / mu
        for X, Y in pairs(ball, n, rng):
            v, w = (shorten(frame.log_coords(at, Z), far) for Z in (X, Y))
            shift = np.linalg.norm(to_vecd(v.T @ v / len(v) - w.T @ w / len(w))) / second
            one, two = (np.minimum(frame.dist(at, Z), far) ** 4 for Z in (X, Y))
            worst = max(worst, shift)
            assert shift <= mu
            assert abs(one.mean() - two.mean()) / fourth <= mu
    # A wrong variant, half the bound, would be caught (in one dimension the bound has a factor sqrt 2 to spare).
    assert worst > 0.5 * mu


def test_second_moment_bound_is_attained_and_holds_for_long_sums():
    ball = Ball(Euclidean(2), [0.0, 0.0], 1.0)
    v, w = (np.tile([[0.3, 0.4]], (10_000, 1)) for _ in range(2))
    v[0], w[0] = [1.0, 0.0], [0.0, 1.0]
    shift = np.linalg.norm(to_vecd(v.T @ v / len(v) - w.T @ w / len(w)))
    bound = sensitivity.of_second_moment(ball, 10_000, away=0.0).value
    assert 0.999 * bound < shift <= bound


def test_noise_is_drawn_for_every_part():
    """With the noise's scales at hand, released moments spread as they say."""
    ball = Ball(Euclidean(2), [0.0, 0.0], 1.0)
    X = in_ball(ball, 50, np.random.default_rng(0))
    draws = []
    for seed in range(300):
        release = private_statistic(X, ball, GDP(0.05), statistic="second moment", units=EACH_RECORD, rng=seed)
        at = np.asarray(release.steps[0].value)
        draws.append((to_vecd(release.value) - to_vecd((X - at).T @ (X - at) / len(X))) / release.scale)
    draws = np.array(draws)
    assert abs(draws.mean()) < 0.15
    assert abs(draws.std() - 1) < 0.1


def test_joint_moments_have_noise_on_every_number():
    """The scales of mean and moment are those that regions take them for."""
    ball = Ball(Euclidean(2), [0.0, 0.0], 3.0)
    X = in_ball(ball, 50, np.random.default_rng(0))
    exact = np.concatenate([X.mean(axis=0), to_vecd(X.T @ X / len(X))])
    draws = []
    for seed in range(300):
        found = estimate_of(private_region(X, ball, GDP(0.05), units=EACH_RECORD, rng=seed).release)
        scales = np.repeat([found.mean.scale, found.moment_scale], [2, 3])
        draws.append((np.asarray(found.release.value) - exact) / scales)
    assert np.abs(np.mean(draws, axis=0)).max() < 0.25
    assert np.abs(np.std(draws, axis=0) - 1).max() < 0.18


# -------------------------------------------------------------------- smaller claims


def test_safe_covariances_replace_what_noise_swamps():
    x = np.linspace(0, 50, 40)
    for tail in (0.5, 0.05, 1e-3, 1e-300, 0.0):
        safe = safe_variances(x, 0.1, tail)
        assert (np.diff(safe) > 0).all()
        assert (safe >= x).all()
        assert (safe >= 0.8).all()
        assert np.isfinite(safe).all()


def test_interval_corrects_for_noise_on_the_mean():
    """Without the correction the value would sit d sigma^2 too high, many standard errors here."""
    d, n, mu = 45, 600, 0.1
    ball = Ball(Euclidean(d), np.zeros(d), 1.0)
    values, excess = [], []
    for seed in range(60):
        X = 0.05 * np.random.default_rng(seed).standard_normal((n, d))
        found = interval_about_a_mean(X, ball, GDP(mu), seed)._distances
        values.append(found.moment - found.excess)
        excess.append(found.excess)
    truth = d * 0.05**2
    error = np.mean(values) - truth
    assert abs(error) < 0.3 * np.mean(excess)


def test_variance_about_a_released_mean_still_works():
    ball = BALLS[3]
    X = in_ball(ball, 500, np.random.default_rng(0))
    release = private_variance(X, ball, GDP(1.0), units=EACH_RECORD)
    assert isinstance(release, Release)
    assert verify(release).ok
