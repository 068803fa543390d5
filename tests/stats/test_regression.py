"""Private geodesic regression: what is released, what is refused, and that each unit counts by itself."""

import json
from dataclasses import replace

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import _fallback
from dpmanifold.features import MarkedMoments
from dpmanifold.features.regression_features import Geodesic
from dpmanifold.stats.curator import Told
from dpmanifold.stats.marks import MarkedPoints, marked_points
from laws.accounts import MemoryAccount
from laws.data import in_ball
from laws.spaces import BALLS, SMALL_BALLS

EACH = {"units": dpm.EACH_RECORD}
YEARS = {"covariate_range": (0.0, 10.0)}
CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.6, 0.8], 0.6)
PLANE = dpm.Ball(dpm.Euclidean(2), [1.0, 2.0], 2.0)
EVERYWHERE = [*BALLS, *SMALL_BALLS]


def moving(ball, n, seed=0, sigma=0.1, half=0.4):
    """Records about a geodesic through the centre, and their covariates from 0 to 10."""
    rng, d = np.random.default_rng(seed), ball.space.dim
    x = rng.uniform(0, 10, n)
    c = sigma * ball.radius * rng.standard_normal((n, d))
    c[:, 0] += half * ball.radius * (x / 5 - 1)
    frame = ball.frame
    return ball.space.project(ball.from_frame(frame.exp_coords(frame.origin, c))), x


@pytest.mark.parametrize("ball", EVERYWHERE, ids=lambda ball: repr(ball.space))
def test_every_space_gives_a_curve_that_verifies_and_reads_back(ball):
    X, x = moving(ball, 2000)
    found = dpm.private_regression(X, x, ball, dpm.GDP(2.0), **EACH, **YEARS, refine=True)
    assert found.verify().ok, found.verify().wrong
    assert [step.statistic for step in found.release.steps[0].steps] == ["regression"]
    again = dpm.GeodesicRegression.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict()
    points = found.curve([0.0, 5.0, 10.0])
    assert points.shape == (3, *ball.space.shape)
    # The ends of the curve are .8 radii apart, and errors .01 to .02.
    assert 0.6 * ball.radius < ball.space.dist(points[0], points[2]) < ball.radius
    assert found.p_value < 1e-6
    assert found.contains(points, [0.0, 5.0, 10.0]).all()
    assert (found.band([5.0], simultaneous=True).radius >= 0.99 * found.band([5.0]).radius).all()


@pytest.mark.parametrize("ball", EVERYWHERE, ids=lambda ball: repr(ball.space))
def test_a_record_counts_for_the_same_alone_and_among_others(ball):
    X, x = moving(ball, 70)
    frame = ball.frame
    points, t = ball.to_frame(X), x / 5 - 1
    curve = Geodesic(frame, points[0], 0.3 * ball.radius * np.ones(frame.dim) / np.sqrt(frame.dim))
    together = curve.residuals(points, t)
    for first, last in [(0, 1), (13, 14), (1, 3), (5, 8), (7, 40), (2, 67)]:
        assert np.array_equal(together[first:last], curve.residuals(points[first:last], t[first:last]))


@pytest.mark.parametrize("ball", EVERYWHERE, ids=lambda ball: repr(ball.space))
def test_residuals_are_distances_and_follow_the_curve(ball):
    X, x = moving(ball, 50)
    frame, points, t = ball.frame, ball.to_frame(X), x / 5 - 1
    curve = Geodesic(frame, points[0], 0.3 * ball.radius * np.ones(frame.dim) / np.sqrt(frame.dim))
    residuals = curve.residuals(points, t)
    assert np.allclose(np.linalg.norm(residuals, axis=1), frame.dist(curve.at(t), points), rtol=1e-7, atol=1e-9)
    assert np.allclose(curve.residuals(curve.at(t), t), 0, atol=1e-7)
    # A step to another curve and the Jacobi fields say the same, to second order.
    a, b = (1e-3 * ball.radius * v for v in np.random.default_rng(1).standard_normal((2, frame.dim)))
    fields = curve.derivative(np.zeros(frame.dim), np.zeros(frame.dim), t)
    step = curve.residuals(curve.moved(a, b).at(t), t)
    assert np.allclose(step, fields @ np.concatenate([a, b]), atol=3e-5 * ball.radius)


# -------------------------------------------------------------------- how far two units' features can be apart


def hull(v, t, rng):
    """Averages of scores of a few records, as units with several records have them."""
    scores = MarkedMoments.scores(v, t)
    weights = rng.dirichlet(np.full(3, 0.3), len(v) // 3)
    return np.einsum("uj,ujs->us", weights, scores.reshape(len(v) // 3, 3, -1))


def widest(dim, rng, pairs=120, rounds=80):
    """The largest distance between features of two records that a search finds; covariates are moved, too."""
    ends = [[rng.standard_normal((pairs, dim)), rng.choice([-1.0, -1 / 3, 0.0, 0.6, 1.0], pairs)] for _ in range(2)]
    ends[1][0][: pairs // 2] = -ends[0][0][: pairs // 2]

    def clipped(v, t):
        return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1.0), np.clip(t, -1, 1)

    def apart(one, two):
        images = [MarkedMoments().of(MarkedMoments.scores(*end)) for end in (one, two)]
        return np.linalg.norm(images[0] - images[1], axis=1)

    ends = [clipped(1e9 * v, t) for v, t in ends]
    best = apart(*ends)
    for step in np.geomspace(0.5, 1e-6, rounds):
        tried = [
            clipped(v + step * rng.standard_normal(v.shape), t + step * rng.standard_normal(t.shape)) for v, t in ends
        ]
        found = apart(*tried)
        better = found > best
        ends = [
            (np.where(better[:, None], new[0], old[0]), np.where(better, new[1], old[1]))
            for new, old in zip(tried, ends, strict=True)
        ]
        best = np.maximum(best, found)
    return best.max()


def keeps_its_diameter(dim, stated):
    """Whether no pair is farther apart than stated, and one is as far apart to 1 %."""
    found = widest(dim, np.random.default_rng(dim))
    return 0.99 * stated < found <= stated * (1 + 1e-13)


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_no_two_records_are_farther_apart_than_the_diameter(dim):
    assert keeps_its_diameter(dim, MarkedMoments().diameter(dim))
    assert not keeps_its_diameter(dim, 0.99 * MarkedMoments().diameter(dim))


@pytest.mark.parametrize("weight", ["_MARK", "_SQUARE"])
def test_larger_weights_of_the_covariate_would_break_it(weight, monkeypatch):
    from dpmanifold.features import regression_features

    # That of t^2 is free with a margin: the others leave it a little room.
    monkeypatch.setattr(
        regression_features, weight, (2 if weight == "_MARK" else 3) * getattr(regression_features, weight)
    )
    assert not keeps_its_diameter(2, 2.0)


def test_units_with_several_records_are_no_farther_apart():
    rng = np.random.default_rng(0)
    v = rng.standard_normal((1500, 2))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    scores = hull(v, rng.choice([-1.0, 1.0, 0.0, 0.5], 1500), rng)
    images = MarkedMoments().of(scores)
    apart = np.linalg.norm(images[:250, None] - images[None, 250:], axis=2)
    assert 1.5 < apart.max() <= 2


# -------------------------------------------------------------------- units


def test_units_count_once_and_their_records_in_any_order():
    X, x = moving(CAP, 300)
    ids = np.repeat(np.arange(60), 5)
    order = np.random.default_rng(0).permutation(300)
    asked = {**YEARS, "rng": 1}
    one = dpm.private_regression(X, x, CAP, dpm.GDP(5.0), units=ids, **asked)
    two = dpm.private_regression(X[order], x[order], CAP, dpm.GDP(5.0), units=ids[order], **asked)
    assert one.release.to_dict() == two.release.to_dict()
    assert (one.n, one.release.unit, one.verify().ok) == (60, "unit", True)


def test_one_unit_moves_an_average_by_no_more_than_the_bound():
    ball, n = CAP, 20
    X, x = moving(ball, 60)
    ids = np.repeat(np.arange(n), 3)
    curve = Geodesic.resting(ball.frame)

    def average(points, t):
        from dpmanifold._merged_ids import unit_ids
        from dpmanifold.stats.regression import REGRESSION

        marked = MarkedPoints(ball, points, t, unit_ids(ids, 60))
        return REGRESSION.average(marked.scored(curve, ball.radius))

    from dpmanifold.stats.regression import REGRESSION

    bound = REGRESSION.sensitivity(ball, n).value
    points, t = ball.to_frame(X), x / 5 - 1
    edge = ball.frame.exp_coords(ball.frame.origin, ball.radius * np.array([[1.0, 0.0], [-1.0, 0.0]]))
    far = []
    for side in edge:
        other, other_t = points.copy(), t.copy()
        other[:3], other_t[:3] = side, 1.0
        far.append(average(other, other_t))
    apart = np.linalg.norm(far[0] - far[1])
    assert 0.999 * bound < apart <= bound


def test_a_public_covariate_is_stated_and_known_exactly():
    X, x = moving(PLANE, 400)
    private = dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), **EACH, **YEARS)
    public = dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), **EACH, **YEARS, covariate_public=True)
    assert public.verify().ok
    assert (private.covariate_public, public.covariate_public) == (False, True)
    assert np.isclose(public.release.details["covariate_moment_2"], ((x / 5 - 1) ** 2).mean())
    assert "covariates" in public.release.adjacency
    assert "covariates" not in private.release.adjacency
    wrong = {**public.release.details, "covariate_moment_1": 0.9}
    assert not dpm.verify(replace(public.release, details=wrong)).ok
    assert not dpm.verify(replace(public.release, adjacency=private.release.adjacency)).ok


def test_what_one_record_states_is_read_alone():
    """A text among numbers, or a truth value, does not change how others are read."""
    X, x = moving(PLANE, 50)
    asked = {**EACH, **YEARS, "rng": 1, "invalid": "center", "refine": False}
    plain = [*x[:-2].tolist(), True, 2**60 + 1]
    ends = ["old", 1j, None, [1.0, 2.0], "7", 7.0, b"7", 10**400]
    found = [marked_points(X, [*plain[:-1], end], PLANE, dpm.EACH_RECORD, "center", Told(None, True), (0.0, 10.0))
             for end in ends]  # fmt: skip
    marks = np.array([one.points._marks for one in found])
    assert np.all(marks[:, :-1] == marks[0, :-1])
    assert np.array_equal(marks[:, -1], [0, 0, 0, 0, 0.4, 0.4, 0.4, 0])
    assert dpm.private_regression(X, [*plain[:-1], "old"], PLANE, dpm.GDP(1.0), **asked).verify().ok


# -------------------------------------------------------------------- whatever the records are

STRANGE = {
    "at one point": lambda X: np.broadcast_to(X[0], X.shape).copy(),
    "outside": lambda X: PLANE.center + 1e6 * (X - PLANE.center),
    "far away": lambda X: np.full_like(X, 1e300),
    "denormal": lambda X: np.full_like(X, 5e-324),
    "gaps": lambda X: np.where(np.arange(len(X))[:, None] % 2, X, np.nan),
}


@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("kind", STRANGE)
def test_nothing_fails_after_the_spend(kind, refine, monkeypatch):
    failed = []
    monkeypatch.setattr(_fallback, "_taken", failed.append)
    X, x = moving(PLANE, 300)
    x[::3] = [np.nan, np.inf, -np.inf, 1e300] * 25
    asked = {**EACH, **YEARS, "confirm": True, "invalid": "center", "refine": refine}
    found = dpm.private_regression(STRANGE[kind](X), x, PLANE, dpm.GDP(1.0), **asked)
    assert found.verify().ok
    assert not failed
    assert repr(found)


@pytest.mark.parametrize("ball", EVERYWHERE, ids=lambda ball: repr(ball.space))
def test_nothing_fails_on_any_space_with_as_much_noise_as_there_can_be(ball, monkeypatch):
    failed = []
    monkeypatch.setattr(_fallback, "_taken", failed.append)
    X = in_ball(ball, 40, np.random.default_rng(0))
    for mu in (0.01, 30.0):
        asked = {**EACH, "covariate_range": (0, 10), "confirm": True}  # most covariates lie outside
        found = dpm.private_regression(X, np.arange(40.0), ball, dpm.GDP(mu), **asked)
        assert found.verify().ok
        assert not failed
        assert repr(found)
        assert found.to_dict()


# -------------------------------------------------------------------- asking, paying, refusing


def test_a_seed_is_no_release():
    X, x = moving(PLANE, 50)
    found = dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), **EACH, **YEARS, rng=1)
    assert not found.private
    assert found.verify().ok


def test_an_account_pays_once_and_tells_covariates_and_options_apart():
    X, x = moving(PLANE, 50)
    account = MemoryAccount(dpm.GDP(5.0))
    asked = {**EACH, **YEARS, "budget": account, "key": "k"}
    first = dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), **asked)
    again = dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), **asked)
    assert first.to_dict() == again.to_dict()
    for other in ({"refine": True}, {"covariate_range": (0.0, 11.0)}, {"covariate_public": True}):
        with pytest.raises(dpm.InvalidArgumentError):
            dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), **{**asked, **other})
    with pytest.raises(dpm.InvalidArgumentError):
        dpm.private_regression(X, x[::-1], PLANE, dpm.GDP(1.0), **asked)


REFUSED = {
    "range the wrong way round": ({"covariate_range": (1, 0)}, "covariate_range must be two numbers"),
    "years as text": ({"covariate_range": (80, 18)}, r"got \(80, 18\)"),
    "no range": ({"covariate_range": None}, "covariate_range must be two numbers"),
    "too few": ({"covariate": [1.0, 2.0]}, "covariate must have shape"),
    "several": ({"covariate": np.zeros((50, 2))}, "regression is on one covariate"),
    "a name": ({"covariate": "age"}, "X has no columns"),
    "nothing": ({"covariate": None}, "covariate must be one number per record"),
    "a gap": ({"covariate": np.ma.masked_less(np.arange(50.0), 1)}, "that of record 0 is none"),
    "text": ({"covariate": ["old"] * 50}, "that of record 0 is none"),
    "a pure promise": ({"privacy": dpm.PureDP(1.0)}, "Gaussian noise"),
    "no flag": ({"covariate_public": "yes"}, "covariate_public must be True or False"),
    "no units": ({"units": None}, "units must say who owns each record"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_spent(name):
    (change, words), (X, x), budget = REFUSED[name], moving(PLANE, 50), dpm.Budget(dpm.GDP(1.0))
    asked = {"covariate": x, "privacy": dpm.GDP(1.0), "budget": budget, **EACH, **YEARS, **change}
    with pytest.raises((dpm.DPManifoldError, ValueError), match=words):
        dpm.private_regression(X, asked.pop("covariate"), PLANE, asked.pop("privacy"), **asked)
    assert not budget.history


def test_covariates_outside_their_range_are_told_and_most_of_them_refused():
    (X, x), told, budget = moving(PLANE, 60), [], dpm.Budget(dpm.GDP(2.0))
    x[:4], x[4] = 178.0, np.nan
    asked = {**EACH, **YEARS, "invalid": "center", "curator": told.append, "budget": budget}
    dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), **asked)
    assert (told[0].beyond, told[0].unnumbered, told[0].replaced) == (4, 1, 0)
    assert "4 of 60 covariates lie outside their range" in str(told[0])
    assert "1 of 60 covariates are no numbers and count as the middle of their range" in str(told[0])
    months = {**asked, "covariate_range": (1000.0, 2000.0)}
    with pytest.raises(dpm.InvalidDataError, match=r"59 of 60 covariates lie outside .* the range and not the records"):
        dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), **months)
    with pytest.raises(dpm.InvalidDataError, match="More than half of the covariates") as silent:
        dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), **{**months, "curator": None})
    assert "59" not in str(silent.value)
    assert len(budget.history) == 1
    assert dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), **months, confirm=True).verify().ok


@pytest.mark.parametrize("end", [1j, "old", True, "7", 10**400], ids=repr)
def test_what_one_cell_of_a_data_frame_states_is_read_alone(end):
    pandas = pytest.importorskip("pandas")
    X, x = moving(PLANE, 50)
    told = Told(None, True)
    for others in (x[:-1].tolist(), [True] * 49, [np.float32(0.1)] * 49):
        column = pandas.Series([*others, end], dtype=object)
        frame = pandas.DataFrame({"one": X[:, 0], "two": X[:, 1], "age": column})
        marks = marked_points(frame, "age", PLANE, dpm.EACH_RECORD, "center", told, (0.0, 10.0)).points._marks
        alone = marked_points(X, [*others, 0.0], PLANE, dpm.EACH_RECORD, "center", told, (0.0, 10.0)).points._marks
        assert np.array_equal(marks[:-1], alone[:-1])


def test_columns_of_a_data_frame_are_read():
    pandas = pytest.importorskip("pandas")
    X, x = moving(PLANE, 60)
    frame = pandas.DataFrame({"one": X[:, 0], "two": X[:, 1], "age": x, "who": np.repeat(np.arange(20), 3)})
    asked = {**YEARS, "rng": 1}
    found = dpm.private_regression(frame, "age", PLANE, dpm.GDP(1.0), units="who", **asked)
    same = dpm.private_regression(X, x, PLANE, dpm.GDP(1.0), units=np.repeat(np.arange(20), 3), **asked)
    assert found.release.to_dict() == same.release.to_dict()
