"""Every statistic on products of spaces: released, written, read and recomputed."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import plots
from dpmanifold.estimators import PrivateFrechetMean, PrivateMDM

N, P, EACH = 400, dpm.GDP(2.0), dpm.EACH_RECORD
FLAT = dpm.Product([dpm.SPD(2)] * 3, weights=[1.0, 2.0, 0.5])
HADAMARD = dpm.Product([dpm.SPD(2, metric="riemann"), dpm.Hyperbolic(2)])
CLOSED = dpm.Product([dpm.Sphere(2)] * 2)
BALLS = {name: dpm.Ball(space, space.origin, radius) for name, space, radius in (
    ("flat", FLAT, 1.5), ("hadamard", HADAMARD, 1.0), ("closed", CLOSED, 0.6))}  # fmt: skip


def records(name, n=N, seed=0, shift=0.05):
    space = BALLS[name].space
    c = shift + 0.1 * np.random.default_rng(seed).standard_normal((n, space.dim))
    return space.exp_coords(space.origin, c)


CALLS = {
    "mean": lambda X, Y, ball: dpm.private_mean(X, ball, P, units=EACH, rng=1),
    "tangent mean": lambda X, Y, ball: dpm.private_mean(X, ball, P, units=EACH, estimand="tangent", rng=1),
    "refined": lambda X, Y, ball: dpm.private_mean(X, ball, P, units=EACH, estimand="tangent", refine=True, rng=1),
    "variance": lambda X, Y, ball: dpm.private_variance(X, ball, P, units=EACH, rng=1),
    "ball": lambda X, Y, ball: dpm.private_ball(X, ball, P, units=EACH, rng=1),
    "region": lambda X, Y, ball: dpm.private_region(X, ball, P, units=EACH, rng=1),
    "interval": lambda X, Y, ball: dpm.private_variance_interval(X, ball, P, units=EACH, rng=1),
    "test": lambda X, Y, ball: dpm.private_two_sample_test(X, Y, ball, P, units=EACH, rng=1),
    "groups": lambda X, Y, ball: dpm.private_k_sample_test(
        X, np.arange(N) % 3, ball, P, units=EACH, classes=range(3), rng=1
    ),
    "classes": lambda X, Y, ball: dpm.private_lda(X, np.arange(N) % 3, ball, P, units=EACH, classes=range(3), rng=1),
    "components": lambda X, Y, ball: dpm.private_pga(X, ball, P, units=EACH, rng=1),
    "median": lambda X, Y, ball: dpm.private_median(X, ball, P, units=EACH, rng=1),
    "regression": lambda X, Y, ball: dpm.private_regression(
        X, np.linspace(0.0, 1.0, N), ball, P, units=EACH, covariate_range=(0, 1), refine=True, rng=1
    ),
}


@pytest.mark.parametrize("name", ["flat", "hadamard", "closed"])
@pytest.mark.parametrize("what", CALLS)
def test_every_statistic_is_released_written_and_verified(name, what, tmp_path):
    result = CALLS[what](records(name), records(name, seed=1, shift=0.1), BALLS[name])
    assert result.verify().ok
    result.save(tmp_path / "result.json")
    again = type(result).load(tmp_path / "result.json")
    assert again.verify().ok
    assert again.to_dict() == result.to_dict()
    assert again.ball.space == BALLS[name].space


def test_where_signs_of_curvature_meet_there_are_tangent_means_and_refusals_in_words():
    space = dpm.Product([dpm.Sphere(2), dpm.SPD(2, metric="riemann")])
    ball = dpm.Ball(space, space.origin, 0.5)
    X = space.exp_coords(space.origin, 0.05 * np.random.default_rng(0).standard_normal((N, space.dim)))
    for what in ("tangent mean", "refined"):
        assert CALLS[what](X, X, ball).verify().ok
    for promise in (P, dpm.PureDP(1.0)):
        with pytest.raises(dpm.PromiseError, match="Use noise on tangent means, which every space has"):
            dpm.private_mean(X, ball, promise, units=EACH)
    with pytest.raises(dpm.PromiseError, match="Ask for the tangent mean, which every space has"):
        dpm.private_variance_interval(X, ball, P, units=EACH)


def test_one_array_per_factor_is_the_same_as_one_array():
    X, ball = records("hadamard"), BALLS["hadamard"]
    space, labels = ball.space, np.arange(N) % 2
    parts = space.split(X)
    one, other = (dpm.private_mean(given, ball, P, units=EACH, rng=3) for given in (X, parts))
    np.testing.assert_array_equal(one.value, other.value)
    np.testing.assert_array_equal(
        one.value, dpm.private_mean(parts, ball, P, units=EACH, invalid="center", rng=3).value
    )
    ids = np.arange(N)
    tests = [dpm.private_two_sample_test(given, given, ball, P, units=(ids, ids + N), rng=3) for given in (X, parts)]
    assert tests[0].to_dict() == tests[1].to_dict()
    means = [dpm.private_class_means(given, labels, ball, P, units=EACH, classes=[0, 1], rng=3) for given in (X, parts)]
    np.testing.assert_array_equal(means[0][1].value, means[1][1].value)
    assert [part.shape for part in space.split(one.value)] == [(2, 2), (3,)]


@pytest.mark.parametrize("invalid", ["raise", "center"])
@pytest.mark.parametrize(
    ("other", "words"),
    [
        (np.array([[1.4]]), "100 for factor 0, 1 for factor 1"),
        (np.full((100, 1), "1"), "factor 1 of X must be an array of numbers, got one of text"),
        ([[0.0]] * 100, "got list"),
        (np.zeros((100, 2)), r"shape \(100, 2\)"),
    ],
    ids=["one value for all", "text", "list", "shape"],
)
def test_a_part_of_a_tuple_counts_for_its_own_records_alone(other, words, invalid):
    """One value for all would put one person into every record."""
    space = dpm.Product([dpm.Euclidean(1)] * 2)
    ball = dpm.Ball(space, space.origin, 2.0)
    with pytest.raises((dpm.InvalidArgumentError, dpm.InvalidDataError), match=words):
        dpm.private_mean((np.zeros((100, 1)), other), ball, P, units=EACH, invalid=invalid)


def test_a_tuple_that_may_be_records_is_refused_and_a_list_is_records():
    space = dpm.Product([dpm.Euclidean(2)] * 50)
    ball = dpm.Ball(space, space.origin, 5.0)
    records = tuple(np.random.default_rng(0).uniform(-0.1, 0.1, (50, 50, 2)))
    with pytest.raises(dpm.errors.InvalidArgumentError, match="may be as many records, or one array for every factor"):
        dpm.private_mean(records, ball, P, units=EACH)
    one, other = (dpm.private_mean(given, ball, P, units=EACH, rng=1) for given in (list(records), np.stack(records)))
    np.testing.assert_array_equal(one.value, other.value)


def test_weights_share_out_the_noise():
    """The noise in a factor's own units is in proportion to one over its weight: 300 draws, 1e-6 false alarms."""
    X, ball = records("flat", 50), BALLS["flat"]
    draws = [dpm.private_mean(X, ball, P, units=EACH, shrinkage=None, rng=seed) for seed in range(300)]
    parts = zip(*(FLAT.split(draw.value) for draw in draws), strict=True)
    logs = [dpm.SPD(2).log_coords(np.eye(2), np.array(part)) for part in parts]
    spread = np.array([log.std(axis=0).mean() for log in logs])
    # A standard deviation from 900 numbers is off by 1/sqrt(1800) = 2.4 %; a ratio by 3.3 %, five times that is 17 %.
    np.testing.assert_allclose(spread * FLAT.weights, draws[0].scale, rtol=0.17)
    assert not np.allclose(spread, spread[0], rtol=0.17)


def test_one_bad_factor_makes_the_record_count_as_the_centre():
    X, ball = records("flat"), BALLS["flat"]
    broken = X.copy()
    broken[7, 1] = np.nan
    with pytest.raises(dpm.InvalidDataError, match="at index 7"):
        dpm.private_mean(broken, ball, P, units=EACH)
    centred = X.copy()
    centred[7] = ball.center
    one = dpm.private_mean(broken, ball, P, units=EACH, invalid="center", rng=2)
    np.testing.assert_array_equal(one.value, dpm.private_mean(centred, ball, P, units=EACH, rng=2).value)


@pytest.mark.parametrize("name", ["flat", "hadamard", "closed"])
def test_pictures_and_reports_are_made(name):
    release = CALLS["tangent mean"](records(name), None, BALLS[name])
    figure = plots.show(release)
    assert figure.texts[0].get_text() == f"Mean of {len(BALLS[name].space.factors)} factors"
    assert "Product(" in release.report()
    with pytest.raises(dpm.InvalidArgumentError, match="product draws means on a Product"):
        plots.product(dpm.private_mean([[0.0]] * 9, dpm.Ball(dpm.Euclidean(1), [0.0], 1.0), P, units=EACH))


def test_landmarks_of_several_outlines_are_one_record():
    """Stacked, one array per outline, or in a row beside other numbers; one without a shape counts as the centre."""
    outline = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    X = outline + 0.03 * np.random.default_rng(0).standard_normal((60, 2, 4, 2))
    X[3, 1] = 2.0
    space = dpm.Product([dpm.KendallShapes(4)] * 2)
    ball = dpm.Ball(space, space.project(np.stack([outline] * 2)), 0.3)
    with pytest.raises(dpm.InvalidDataError, match="all landmarks coincide at index 3"):
        dpm.private_mean(X, ball, P, units=EACH)
    one, other = (dpm.private_mean(given, ball, P, units=EACH, invalid="center", rng=1)
                  for given in (X, (X[:, 0], X[:, 1])))  # fmt: skip
    np.testing.assert_array_equal(one.value, other.value)
    assert dpm.Release.from_dict(one.to_dict()).verify().ok
    beside = dpm.Product([dpm.KendallShapes(4), dpm.Euclidean(1)])
    rows = np.concatenate([X[:, 0].reshape(60, 8), np.full((60, 1), 0.1)], axis=1)
    center = beside.join((dpm.KendallShapes(4).project(outline), [0.0]))
    release = dpm.private_mean(rows, dpm.Ball(beside, center, 0.3), P, units=EACH, rng=1)
    assert release.verify().ok
    assert beside.check(release.value) is None


def test_estimators_take_stacks():
    X, ball = records("flat"), BALLS["flat"]
    model = PrivateFrechetMean(ball, P, units="each-record", budget=dpm.Budget(P)).fit(X)
    assert model.mean_.shape == FLAT.shape
    classes = PrivateMDM(ball, P, classes=[0, 1], units="each-record", budget=dpm.Budget(P)).fit(X, np.arange(N) % 2)
    assert classes.predict(X[:5]).shape == (5,)
