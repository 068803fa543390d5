import copy
import math
import threading

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import (
    EACH_RECORD,
    GDP,
    SPD,
    ZCDP,
    ApproxDP,
    Ball,
    Budget,
    BudgetError,
    Euclidean,
    InvalidArgumentError,
    InvalidDataError,
    KendallShapes,
    Notice,
    PromiseError,
    PureDP,
    Release,
    Sphere,
    frechet,
    private_ball,
    private_class_means,
    private_mean,
    private_variance,
    verify,
)
from dpmanifold.linalg import backend, backends
from dpmanifold.noise import source as source_room
from dpmanifold.stats import draws
from laws.data import in_ball
from laws.spaces import BALLS

PROMISES = [PureDP(1.0), ApproxDP(0.5, 1e-6), ZCDP(0.5), GDP(1.0)]


@pytest.fixture
def forbidden(monkeypatch):
    """No bit of the operating system may be drawn while this is active (simulations of public numbers may)."""

    def refuse(self, n):
        raise AssertionError("something was drawn")

    monkeypatch.setattr(source_room.SystemSource, "_words", refuse)


@pytest.mark.parametrize("privacy", PROMISES, ids=repr)
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_release_is_a_point_of_the_ball_and_verifies(ball, privacy):
    X = in_ball(ball, 300, np.random.default_rng(0))
    release = private_mean(X, ball, privacy, units=EACH_RECORD)
    assert ball.space.check(release.value) is None
    assert ball.contains(release.value)
    assert release.private
    assert release.privacy == privacy
    assert release.n == 300
    assert release.unit == "record"
    assert verify(release).ok
    assert release.noise_error() > 0
    assert release.noise_quantile(0.5) <= release.noise_quantile(0.95)


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_json_round_trips_bit_for_bit(ball, tmp_path):
    X = in_ball(ball, 50, np.random.default_rng(0))
    for release in (
        private_mean(X, ball, GDP(1.0), units=EACH_RECORD, refine=True),
        private_variance(X, ball, PureDP(1.0), units=EACH_RECORD),
        private_ball(X, ball, GDP(1.0), units=EACH_RECORD),
    ):
        path = tmp_path / "release.json"
        release.save(path)
        again = Release.load(path)
        assert again.to_dict() == release.to_dict()
        if isinstance(release.value, np.ndarray):
            np.testing.assert_array_equal(again.value, release.value)
        assert verify(again).ok
        assert list(tmp_path.iterdir()) == [path]
        for text in (repr(release), release._repr_html_()):
            assert "promise" in text


def test_a_release_holds_no_law_and_no_data():
    ball = BALLS[1]
    release = private_mean(in_ball(ball, 50, np.random.default_rng(0)), ball, PureDP(1.0), units=EACH_RECORD)
    kept = {type(value).__name__ for value in vars(release).values()}
    assert kept <= {
        "str",
        "ndarray",
        "PureDP",
        "float",
        "Sensitivity",
        "Ball",
        "int",
        "bool",
        "tuple",
        "dict",
        "Request",
        "NoneType",
    }


def concentrated(ball):
    """Many records in a small part of the ball, so that a smaller ball is found."""
    c = 0.02 * np.random.default_rng(1).standard_normal((2000, ball.space.dim))
    return ball.space.project(ball.space.exp_coords(ball.center, c))


def test_tampering_is_noticed():
    ball = BALLS[1]
    X = in_ball(ball, 50, np.random.default_rng(0))
    mean = private_mean(X, ball, PureDP(1.0), units=EACH_RECORD).to_dict(answers=False)
    refined = private_mean(concentrated(ball), ball, GDP(2.0), units=EACH_RECORD, refine=True).to_dict(answers=False)
    assert refined["ball"]["radius"] < ball.radius
    variance = private_variance(X, ball, GDP(1.0), units=EACH_RECORD).to_dict(answers=False)
    found = private_ball(concentrated(ball), ball, GDP(1.0), units=EACH_RECORD).to_dict(answers=False)
    small = {**mean["ball"], "radius": 1e-3}
    hyperbolic = private_mean(
        in_ball(BALLS[2], 50, np.random.default_rng(0)), BALLS[2], GDP(1.0), units=EACH_RECORD
    ).to_dict(answers=False)
    for record, changes in [
        (mean, {"scale": mean["scale"] / 2}),
        (mean, {"n": 25}),
        (mean, {"privacy": PureDP(0.5).to_dict()}),
        (mean, {"adjacency": "add or remove anybody"}),
        (mean, {"draws": [{**mean["draws"][0], "grid": mean["draws"][0]["grid"] - 1}]}),
        (mean, {"tol": 0.5}),
        (mean, {"statistic": "median"}),
        (mean, {"mechanism": "riemannian-gaussian"}),
        (hyperbolic, {"mechanism": "riemannian-gaussian"}),
        (refined, {"ball": small}),
        (refined, {"steps": [{**refined["steps"][0], "private": False}]}),
        (refined, {"steps": [{**refined["steps"][0], "n": 1999}]}),
        (variance, {"mechanism": "laplace"}),
        (variance, {"details": {**variance["details"], "reference_to_center": -0.6}}),
        (variance, {"details": {}}),
        (found, {"details": {**found["details"], "count_noise": 0.0}}),
    ]:
        assert verify(Release.from_dict(record)).ok
        assert not verify(Release.from_dict({**record, **changes})).ok, changes
    with pytest.raises(InvalidDataError, match="not a release"):
        Release.from_dict({})
    for damage in (
        {"private": "false"},
        {"scale": "tiny"},
        {"value": {"point": [1.0]}},
        {"value": {"number": "x"}},
        {"statistic": "mode"},
        {"scale": math.inf},
        {"scale": 0.0},
        {"n": 1},
        {"value": {"point": [math.nan, 0.0, 1.0]}},
        {"sensitivity": {**mean["sensitivity"], "value": "x"}},
    ):
        with pytest.raises(InvalidDataError, match="damaged"):
            Release.from_dict({**mean, **damage})
    for text in ("__import__('os')", "SPD(20000)", "Manifold()", "SPD(" * 500, "Sphere(2).origin"):
        with pytest.raises(InvalidDataError, match="not a space"):
            Release.from_dict({**mean, "ball": {**mean["ball"], "space": text}})


def test_nothing_built_on_a_simulation_is_private():
    ball = BALLS[1]
    X = in_ball(ball, 200, np.random.default_rng(0))
    seeded = private_mean(X, ball, GDP(1.0), units=EACH_RECORD, rng=0)
    assert not private_variance(X, ball, GDP(1.0), units=EACH_RECORD, about=seeded).private
    simulated = private_ball(concentrated(ball), ball, GDP(2.0), units=EACH_RECORD, rng=0).value
    assert simulated.simulated
    assert not private_mean(X, simulated, GDP(1.0), units=EACH_RECORD, confirm=True).private
    tampered = source_room.SystemSource()
    assert not private_mean(X, ball, GDP(1.0), units=EACH_RECORD, rng=tampered).private


def test_projected_forecasts_never_exceed_the_diameter():
    release = private_mean(np.zeros((3, 1)), Ball(Euclidean(1), [0.0], 1.0), PureDP(0.1), units=EACH_RECORD)
    assert release.noise_error() <= 2 * (1 + 1e-9)
    assert release.noise_quantile(0.95) <= 2 * (1 + 1e-9)
    assert "at most" in repr(release)


@pytest.mark.slow
def test_borderline_records_do_not_show_with_invalid_center():
    ball = Ball(SPD(2, metric="riemann"), np.eye(2), 2.0)
    X = np.repeat(np.eye(2)[None], 30, axis=0)
    rng = np.random.default_rng(0)
    for record in (5e-324 * np.eye(2), np.full((2, 2), np.inf), np.zeros((2, 2))):
        X[3] = record
        assert private_mean(X, ball, GDP(1.0), units=EACH_RECORD, invalid="center").n == 30
    for _ in range(300):
        turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
        X[3] = (turn * [1.0, 10 ** rng.uniform(-16.5, -14.5)]) @ turn.T
        assert private_mean(X, ball, GDP(1.0), units=EACH_RECORD, invalid="center").n == 30


def test_seeded_releases_are_marked_not_private():
    ball = BALLS[1]
    X = in_ball(ball, 50, np.random.default_rng(0))
    seeded = private_mean(X, ball, PureDP(1.0), units=EACH_RECORD, rng=3)
    assert not seeded.private
    assert "NOT PRIVATE" in repr(seeded)
    assert "NOT PRIVATE" in seeded._repr_html_()
    np.testing.assert_array_equal(seeded.value, private_mean(X, ball, PureDP(1.0), units=EACH_RECORD, rng=3).value)
    assert not private_variance(X, ball, PureDP(1.0), units=EACH_RECORD, rng=3).private
    fresh = [private_mean(X, ball, PureDP(1.0), units=EACH_RECORD).value for _ in range(2)]
    assert not np.array_equal(*fresh)


# -------------------------------------------------------------------- forecasts


def check_errors(row, errors):
    """Fail unless errors look like the plan's row: equal where it says exact, below where it says bound."""
    count = len(errors)
    slack = 5 * errors.std() / np.sqrt(count)
    levels = (0.05, 0.5, 0.95)
    below = [(errors <= q).mean() for q in (row.low, row.median, row.high)]
    margins = [5 * np.sqrt(p * (1 - p) / count) + 1 / count for p in levels]
    if row.exact:
        assert abs(errors.mean() - row.error) <= slack, row.mechanism
        assert all(abs(seen - p) <= m for seen, p, m in zip(below, levels, margins, strict=True)), row.mechanism
    else:
        assert errors.mean() <= row.error + slack, row.mechanism
        assert all(seen >= p - m for seen, p, m in zip(below, levels, margins, strict=True)), row.mechanism


@pytest.mark.parametrize("trials", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("privacy", [PureDP(1.0), GDP(1.0)], ids=repr)
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_forecast_equals_reality_for_every_mechanism(ball, privacy, trials):
    """The laws that releases draw from, in the ball's frame, against the plan."""
    X = in_ball(ball, 60, np.random.default_rng(1))
    points = frechet.unit_points(X, ball, units=None)
    mean = points.mean()
    for row in dpm.plan_mean(60, ball, privacy).rows:
        mechanism = dpm.mechanisms.get(row.mechanism)
        law = mechanism.law(ball, mechanism.calibrate(ball, 60, privacy), mean, points)
        check_errors(row, ball.frame.dist(mean, law.sample(trials if row.mechanism != "kng" else 300, rng=2)))


@pytest.mark.parametrize("trials", [150, pytest.param(5_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ball", BALLS[:2], ids=repr)
def test_forecast_equals_reality_for_releases(ball, trials):
    X = in_ball(ball, 60, np.random.default_rng(1))
    truth = frechet.mean(X, ball).value
    row = dpm.plan_mean(60, ball, PureDP(1.0)).best
    rng = np.random.default_rng(2)
    options = {"units": EACH_RECORD, "mechanism": row.mechanism, "project": False, "rng": rng}
    draws = np.stack([private_mean(X, ball, PureDP(1.0), **options).value for _ in range(trials)])
    check_errors(row, ball.space.dist(truth, draws))
    # Errors half as large would be noticed: the check can fail.
    with pytest.raises(AssertionError, match=row.mechanism):
        check_errors(row, ball.space.dist(truth, draws) / 2)


@pytest.mark.slow
def test_auto_takes_the_best_row_of_the_plan():
    for ball in BALLS:
        for privacy in PROMISES:
            plan = dpm.plan_mean(200, ball, privacy)
            X = in_ball(ball, 200, np.random.default_rng(3))
            assert private_mean(X, ball, privacy, units=EACH_RECORD).mechanism == plan.best.mechanism
            assert plan.best.mechanism in repr(plan)


@pytest.mark.slow
def test_plan_says_when_it_is_no_use_and_what_would_be():
    ball = Ball(SPD(9), np.eye(9), 20.0)
    plan = dpm.plan_mean(20, ball, PureDP(0.1))
    assert "no better than returning the centre" in plan.verdict
    n = dpm.required_units(0.5, ball, GDP(1.0))
    assert dpm.plan_mean(n, ball, GDP(1.0)).best.error <= 0.5 * (1 + 1e-6)
    assert dpm.plan_mean(n - 1, ball, GDP(1.0)).best.error > 0.5
    promise = dpm.required_privacy(0.5, 1000, ball, ApproxDP, delta=1e-6)
    assert np.isclose(dpm.plan_mean(1000, ball, promise).best.error, 0.5, rtol=1e-6)
    assert dpm.plan_mean(500, BALLS[1], PureDP(1.0)).refused["wrapped-gaussian"]


# -------------------------------------------------------------------- units, classes, budget


def test_units_count_once_in_a_release():
    ball = BALLS[4]
    X = in_ball(ball, 100, np.random.default_rng(4))
    release = private_mean(X, ball, GDP(1.0), units=np.arange(100) // 5)
    assert release.n == 20
    assert release.unit == "unit"
    assert np.isclose(release.sensitivity.value, 2 * ball.radius / 20, rtol=1e-6)


def test_bad_records_can_count_as_the_centre():
    ball = BALLS[4]
    X = in_ball(ball, 20, np.random.default_rng(5))
    good = X.copy()
    X[3], X[7] = np.nan, -np.eye(3)
    good[3] = good[7] = ball.center
    with pytest.raises(InvalidDataError, match="index 3"):
        private_mean(X, ball, GDP(1.0), units=EACH_RECORD)
    a = private_mean(X, ball, GDP(1.0), units=EACH_RECORD, invalid="center", rng=1)
    b = private_mean(good, ball, GDP(1.0), units=EACH_RECORD, rng=1)
    np.testing.assert_allclose(a.value, b.value, rtol=1e-12)
    shapes = Ball(KendallShapes(4), KendallShapes(4).origin, 0.3)
    landmarks = np.random.default_rng(0).standard_normal((9, 4, 2))
    landmarks[2] = 1.0
    landmarks[5, 0, 0] = np.inf
    told = []
    question = {"units": EACH_RECORD, "invalid": "center", "curator": told.append, "confirm": True}
    assert private_mean(landmarks, shapes, PureDP(1.0), **question).n == 9
    assert told == [Notice(9, 7, 2)]  # one bad record leaves the others as they are


def test_classes_compose_in_parallel_only_where_units_do_not_span_them():
    ball = Ball(Euclidean(1), [0.0], 1.0)
    X = np.zeros((60, 1))
    labels = np.array(["a", "b", "c"] * 20)
    alone = private_class_means(X, labels, ball, GDP(1.0), units=EACH_RECORD, classes=["a", "b", "c"])
    assert all(np.isclose(r.scale, 0.1) and r.privacy == GDP(1.0) for r in alone.values())
    shared = private_class_means(X, labels, ball, GDP(1.0), units=np.arange(60) // 3, classes=["a", "b", "c"])
    assert all(np.isclose(r.scale, 0.1 * np.sqrt(3)) for r in shared.values())
    pure = private_class_means(X, labels, ball, PureDP(1.0), units=np.arange(60) // 3, classes=["a", "b", "c"])
    assert all(np.isclose(r.scale, 0.3) for r in pure.values())
    budget = Budget(GDP(1.0))
    private_class_means(X, labels, ball, GDP(1.0), units=EACH_RECORD, classes=["a", "b", "c"], budget=budget)
    assert np.isclose(budget.spent.mu, 1.0)


def test_budget_is_spent_before_anything_is_drawn(monkeypatch):
    ball, budget, events = BALLS[0], Budget(PureDP(1.0)), []
    X = in_ball(ball, 20, np.random.default_rng(0))
    spend, words = Budget.spend, source_room.SystemSource._words

    def spending(self, promise, label=""):
        events.append("spend")
        spend(self, promise, label)

    def drawing(self, n):
        events.append(n)
        return words(self, n)

    monkeypatch.setattr(Budget, "spend", spending)
    monkeypatch.setattr(source_room.SystemSource, "_words", drawing)
    private_mean(X, ball, PureDP(0.75), units=EACH_RECORD, budget=budget)
    assert events[0] == "spend"
    assert len(events) > 1
    assert budget.spent == PureDP(0.75)
    events.clear()
    with pytest.raises(BudgetError):
        private_mean(X, ball, PureDP(0.5), units=EACH_RECORD, budget=budget)
    assert events == ["spend"]
    assert budget.spent == PureDP(0.75)


def test_budget_is_one_object_everywhere():
    ball = BALLS[0]
    X = in_ball(ball, 20, np.random.default_rng(0))
    budget = Budget(GDP(1.0))
    assert copy.copy(budget) is budget
    assert copy.deepcopy([budget])[0] is budget
    failures = []

    def spend():
        try:
            private_mean(X, ball, GDP(0.25), units=EACH_RECORD, budget=budget)
        except BudgetError:
            failures.append(1)

    threads = [threading.Thread(target=spend) for _ in range(20)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(failures) == 4
    assert np.isclose(budget.spent.mu, 1.0)


# -------------------------------------------------------------------- variance and ball


@pytest.mark.parametrize("d", [1, 15])
def test_variance_is_unbiased_about_a_noisy_mean(d):
    ball = Ball(Euclidean(d), np.zeros(d), 6.0)
    rng = np.random.default_rng(6)
    X = rng.standard_normal((600, d))
    X = ball.clip(X)
    truth = frechet.variance(X, ball)
    options = {"units": EACH_RECORD, "mechanism": "wrapped-gaussian", "rng": rng}
    found = [private_variance(X, ball, GDP(0.1), **options).value for _ in range(150)]
    assert abs(np.mean(found) - truth) <= 5 * np.std(found) / np.sqrt(150)
    # Without the correction the mean would be off by the noise's second moment.
    raw = [v + dpm.plan_mean(600, ball, GDP(0.1 / np.sqrt(2))).best.error ** 2 for v in found]
    assert d == 1 or abs(np.mean(raw) - truth) > 5 * np.std(found) / np.sqrt(150)


def test_variance_about_a_release_spends_on_the_variance_alone():
    ball = BALLS[1]
    X = in_ball(ball, 400, np.random.default_rng(7))
    budget = Budget(GDP(2.0))
    mean = private_mean(X, ball, GDP(1.0), units=EACH_RECORD, budget=budget)
    variance = private_variance(X, ball, GDP(1.0), units=EACH_RECORD, about=mean, budget=budget)
    assert variance.steps == ()
    assert np.isclose(budget.spent.mu, np.sqrt(2))
    assert variance.value >= 0
    assert verify(variance).ok
    public = private_variance(X, ball, PureDP(1.0), units=EACH_RECORD, about=ball.center)
    assert public.mechanism == "laplace"


@pytest.mark.parametrize("privacy", [PureDP(2.0), ApproxDP(1.0, 1e-6), ZCDP(0.5), GDP(1.0)], ids=repr)
def test_released_ball_is_smaller_and_holds_most(privacy):
    outer = Ball(SPD(3), np.eye(3), 20.0, source="anything measured")
    rng = np.random.default_rng(8)
    center = np.diag([5.0, 1.0, 0.2])
    X = SPD(3).exp_coords(center, 0.2 * rng.standard_normal((4000, 6)))
    release = private_ball(X, outer, privacy, units=EACH_RECORD, rng=9)
    assert release.value.radius < 5
    assert release.value.contains(X).mean() > 0.8
    assert "released under" in release.value.source
    refined = private_mean(X, outer, privacy, units=EACH_RECORD, refine=True, rng=9)
    plain = private_mean(X, outer, privacy, units=EACH_RECORD, rng=9)
    assert refined.noise_error() < 0.5 * plain.noise_error()
    assert refined.privacy == privacy
    assert verify(refined).ok
    compared = dpm.compare(refined, X, units=EACH_RECORD, public=True)
    assert compared.error < 1
    assert not compared.private


def test_ball_is_refused_where_counts_say_nothing(forbidden):
    outer = Ball(Euclidean(2), [0.0, 0.0], 1.0)
    X = in_ball(outer, 10, np.random.default_rng(0))
    budget = Budget(PureDP(1.0))
    with pytest.raises(PromiseError, match="more than a quarter"):
        private_ball(X, outer, PureDP(1e-3), units=EACH_RECORD, budget=budget)
    assert budget.spent is None


# -------------------------------------------------------------------- refusals: nothing drawn, nothing spent


def test_bad_input_draws_and_spends_nothing(forbidden):
    ball = BALLS[1]
    X = in_ball(ball, 20, np.random.default_rng(0))
    budget = Budget(PureDP(10.0))
    call = {"units": EACH_RECORD, "budget": budget}
    cases = [
        (TypeError, "'units'", lambda: private_mean(X, ball, PureDP(1.0), budget=budget)),
        (
            InvalidArgumentError,
            "units must say who owns",
            lambda: private_mean(X, ball, PureDP(1.0), units=None, budget=budget),
        ),
        (
            InvalidArgumentError,
            "units must have shape",
            lambda: private_mean(X, ball, PureDP(1.0), units=[1, 2], budget=budget),
        ),
        (
            InvalidArgumentError,
            "mechanism must be",
            lambda: private_mean(X, ball, PureDP(1.0), mechanism="best", **call),
        ),
        (
            PromiseError,
            "cannot keep.*These can",
            lambda: private_mean(X, ball, PureDP(1.0), mechanism="riemannian-gaussian", **call),
        ),
        (
            PromiseError,
            "below 1",
            lambda: private_mean(
                SPD(2).random_point(5, rng=0),
                Ball(SPD(2), np.eye(2), 1.0),
                ApproxDP(1.5, 1e-6),
                mechanism="wrapped-gaussian-classical",
                units=EACH_RECORD,
            ),
        ),
        (InvalidArgumentError, "privacy must be", lambda: private_mean(X, ball, 1.0, **call)),
        (InvalidArgumentError, "ball must be", lambda: private_mean(X, Sphere(2), PureDP(1.0), **call)),
        (InvalidArgumentError, "invalid must be", lambda: private_mean(X, ball, PureDP(1.0), invalid="drop", **call)),
        (InvalidDataError, "at least 2 units", lambda: private_mean(X[:1], ball, PureDP(1.0), **call)),
        (
            InvalidDataError,
            "at least 2 units",
            lambda: private_mean(X, ball, PureDP(1.0), units=np.zeros(20), budget=budget),
        ),
        (
            InvalidArgumentError,
            "budget must be",
            lambda: private_mean(X, ball, PureDP(1.0), units=EACH_RECORD, budget=3),
        ),
        (InvalidArgumentError, "rng", lambda: private_mean(X, ball, PureDP(1.0), rng="x", **call)),
        (
            InvalidDataError,
            "outside the public classes",
            lambda: private_class_means(X, ["a"] * 19 + ["z"], ball, PureDP(1.0), classes=["a", "b"], **call),
        ),
        (
            InvalidDataError,
            "class 'b' has no records",
            lambda: private_class_means(X, ["a"] * 20, ball, PureDP(1.0), classes=["a", "b"], **call),
        ),
        (
            TypeError,  # labels are public: there is no other way to say it
            "labels_public",
            lambda: private_class_means(X, ["a"] * 20, ball, PureDP(1.0), classes=["a"], labels_public=False, **call),
        ),
        (
            InvalidArgumentError,
            "labels must have shape",
            lambda: private_class_means(X, ["a"], ball, PureDP(1.0), classes=["a"], **call),
        ),
        (
            InvalidArgumentError,
            "about must be",
            lambda: private_variance(
                X, ball, PureDP(1.0), about=Release(**{**vars(_some_release()), "statistic": "ball"}), **call
            ),
        ),
        (InvalidArgumentError, "coverage", lambda: private_ball(X, ball, PureDP(1.0), coverage=2.0, **call)),
        (InvalidArgumentError, "epsilon", lambda: PureDP(0.0)),
        (InvalidArgumentError, "delta", lambda: ApproxDP(1.0, 1.0)),
        (InvalidArgumentError, "public must be True", lambda: dpm.compare(_some_release(), X, units=EACH_RECORD)),
        (InvalidArgumentError, "units must say", lambda: dpm.compare(_some_release(), X, units=None, public=True)),
        (TypeError, "units", lambda: dpm.compare(_some_release(), X, public=True)),
        (TypeError, "units", lambda: frechet.unit_points(X, ball)),
        (InvalidArgumentError, "n must be", lambda: dpm.plan_mean(1, ball, PureDP(1.0))),
    ]
    for kind, words, attempt in cases:
        with pytest.raises(kind, match=words):
            attempt()
    assert budget.spent is None


def _some_release():
    from dpmanifold.sensitivity import of_mean

    ball = BALLS[1]
    return Release(
        "mean",
        ball.center,
        PureDP(1.0),
        PureDP(1.0),
        "riemannian-laplace",
        0.1,
        "Delta/epsilon",
        of_mean(ball, 20),
        ball,
        20,
        "record",
        1e-12,
        True,
        False,
    )


def test_huge_noise_never_raises_and_never_depends_on_the_draw():
    """Draws that are singular to working precision are released all the same: an exception would tell about them."""
    ball = Ball(SPD(9), np.eye(9), 41.4)
    X = np.stack([1e-6 * np.eye(9), np.eye(9)] * 5)
    for seed in range(30):
        for options in ({}, {"refine": True}, {"project": False}):
            release = private_mean(X, ball, GDP(0.5), units=EACH_RECORD, rng=seed, **options)
            assert np.isfinite(release.value).all()
        assert private_variance(X, ball, GDP(0.5), units=EACH_RECORD, rng=seed).value >= 0
        found = private_ball(np.repeat(X, 200, axis=0), ball, PureDP(0.5), units=EACH_RECORD, rng=seed).value
        assert isinstance(found, Ball)


def test_refinement_never_mixes_the_inner_noise_with_the_outer_ball(monkeypatch):
    ball = Ball(Euclidean(1), [0.0], 100.0)

    def broken(self, outer, points):
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr(Ball, "take_over", broken)
    release = private_mean(np.zeros((2000, 1)), ball, GDP(1.0), units=EACH_RECORD, refine=True)
    assert release.ball == release.steps[0].value != ball  # the points count as its centre, with its noise


def test_means_by_class_can_be_refined():
    ball = Ball(Euclidean(6), np.zeros(6), 50.0)
    X = np.random.default_rng(0).standard_normal((4000, 6))
    person = np.repeat(np.arange(2000), 2)
    for labels in (np.arange(4000) % 2, np.arange(4000) // 2000):  # every person in both classes, or in one
        for privacy in (GDP(1.0), ApproxDP(1.0, 1e-6), PureDP(2.0)):
            releases = private_class_means(X, labels, ball, privacy, units=person, classes=[0, 1], refine=True)
            for release in releases.values():
                assert verify(release).ok
                assert release.privacy == privacy
                assert all(step.adjacency == release.adjacency for step in release.steps)
        assert any(release.steps for release in releases.values())


def test_blocks_do_not_show(monkeypatch):
    ball = BALLS[1]
    X = in_ball(ball, 1000, np.random.default_rng(0))
    whole = private_mean(X, ball, GDP(1.0), units=EACH_RECORD, rng=1).value
    monkeypatch.setattr("dpmanifold.frechet.record_blocks._BLOCK", 64)
    assert np.array_equal(private_mean(X, ball, GDP(1.0), units=EACH_RECORD, rng=1).value, whole)
    X[777] = np.nan
    with pytest.raises(InvalidDataError, match="at index 777"):
        private_mean(X, ball, GDP(1.0), units=EACH_RECORD)


@pytest.mark.parametrize("mechanism", ["auto", "kng"])
def test_a_mean_in_one_pass_is_the_mean_of_stored_points(monkeypatch, mechanism):
    """In a flat ball records are averaged as they come; given as units of one record each, they are stored."""
    ball = Ball(SPD(3), np.diag([1.0, 2.0, 3.0]), 1.5)
    X = SPD(3).random_point(1000, rng=0)  # most of them outside
    monkeypatch.setattr("dpmanifold.frechet.record_blocks._BLOCK", 9 * 100)
    question = {"mechanism": mechanism, "confirm": True, "rng": 1}
    stored = private_mean(X, ball, PureDP(1.0), units=np.arange(1000), **question)
    passed = private_mean(X, ball, PureDP(1.0), units=EACH_RECORD, **question)
    np.testing.assert_allclose(passed.value, stored.value, rtol=1e-13)
    assert (passed.scale, passed.tol, passed.n) == (stored.scale, stored.tol, stored.n)
    X[777, 0, 0] = -1.0
    with pytest.raises(InvalidDataError, match="at index 777 is not positive definite"):
        private_mean(X, ball, PureDP(1.0), units=EACH_RECORD)
    centred = private_mean(X, ball, PureDP(1.0), units=EACH_RECORD, invalid="center", **question)
    X[777] = ball.center
    expected = private_mean(X, ball, PureDP(1.0), units=EACH_RECORD, **question)
    np.testing.assert_array_equal(centred.value, expected.value)


def hostile_matrices():
    """Records that make numpy warn somewhere on the way, if nobody keeps it quiet."""
    lopsided = np.eye(3)
    lopsided[0, -1], lopsided[-1, 0] = 1.7e308, -1.7e308
    tiny = np.array([0x7F800001], dtype=np.uint32).view(np.float32)[0]  # a signalling NaN
    return {
        "near the end of the doubles": np.full((3, 3), -1.7e308),
        "lopsided": lopsided,
        "signalling NaN": np.full((3, 3), tiny, dtype=np.float32),
        "infinite": np.full((3, 3), np.inf),
        "beyond the doubles": np.full((3, 3), np.longdouble("1e4000")),
    }


@pytest.mark.parametrize("name", backends())
@pytest.mark.parametrize("kind", hostile_matrices())
@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
def test_no_record_makes_numpy_speak(name, kind, metric):
    """Warnings are errors in these tests: one would stop the release, and tell about the record."""
    record = hostile_matrices()[kind]
    X = np.broadcast_to(np.eye(3), (50, 3, 3)).astype(record.dtype)
    X[3] = record
    with backend(name):
        release = private_mean(
            X, Ball(SPD(3, metric=metric), np.eye(3), 1.0), GDP(1.0), units=EACH_RECORD, invalid="center"
        )
    assert release.n == 50


# -------------------------------------------------------------------- which array stands for a draw


def turn_of_the_draw(mechanism):
    """How far the array that was drawn is from the one that stands for its shape."""
    space = KendallShapes(4)
    ball = Ball(space, space.origin, 0.3)
    X = in_ball(ball, 200, np.random.default_rng(0))
    (draw,) = private_mean(X, ball, PureDP(1.0), units=EACH_RECORD, mechanism=mechanism, arithmetic="float").draws
    return abs(np.vdot(ball.frame.origin, draw.numbers.view(np.complex128)).imag)


@pytest.mark.security
@pytest.mark.parametrize("mechanism", ["riemannian-laplace", "riemannian-laplace-truncated", "kng"])
def test_a_draw_in_doubles_does_not_show_how_the_hidden_mean_was_turned(mechanism):
    """A shape is many arrays; a draw comes aligned with the private mean, which no noise would hide."""
    assert turn_of_the_draw(mechanism) < 1e-15


def test_a_draw_that_shows_it_is_found_out(monkeypatch):
    monkeypatch.setattr(draws, "canonical_in_frame", lambda ball, point: point)
    assert turn_of_the_draw("riemannian-laplace") > 1e-6
