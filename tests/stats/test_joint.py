"""Joint moments and joint lengths: several averages in one draw, planned, released, written, read and verified."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as laws
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold import features, linalg
from dpmanifold.cli import app
from dpmanifold.features import WEIGHT, Distances, JointMoments, Lengths
from dpmanifold.frechet import UnitPoints
from dpmanifold.statistic import REPLACE_ONE_UNIT_SAME_CLASSES
from laws import replay
from laws.data import in_ball
from laws.feature_laws import widest_pair
from laws.pieces import ListSource
from laws.spaces import BALLS

BALL = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.6, source="by design")
LINE = dpm.Ball(dpm.Euclidean(3), np.zeros(3), 50.0, source="by design")
NAMES = ["joint moments", "joint lengths", "joint distances"]
EACH = {"units": dpm.EACH_RECORD}


def records(n=300, ball=BALL):
    return in_ball(ball, n, np.random.default_rng(0))


def narrow(n=3000):
    return np.random.default_rng(1).normal(3.0, 0.5, (n, 3))


def release(name="joint moments", X=None, ball=BALL, privacy=None, **terms):
    X = records(ball=ball) if X is None else X
    return dpm.private_statistic(X, ball, privacy or dpm.GDP(1.0), statistic=name, **{**EACH, **terms})


def coordinates(X, ball):
    return ball.frame.log_coords(ball.frame.origin, ball.to_frame(X))


def expected(name, X, ball):
    """The averages themselves, in the data's units."""
    c = coordinates(X, ball)
    square = (c * c).sum(axis=1)
    if name == "joint moments":
        return np.concatenate([c.mean(axis=0), linalg.to_vecd(np.einsum("ni,nj->ij", c, c) / len(c))])
    if name == "joint distances":
        second, third = linalg.to_vecd(np.einsum("ni,nj->ij", c, c) / len(c)), (c * square[:, None]).mean(axis=0)
        return np.concatenate([c.mean(axis=0), second, [square.mean()], third, [(square**2).mean()]])
    return np.concatenate([c.mean(axis=0), [square.mean(), (square**2).mean()]])


def standard_deviations(found):
    """What the release says of its noise, number by number."""
    return found.definition.noise_scales(found)


# -------------------------------------------------------------------- the value


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arithmetic", ["exact", "float"])
def test_a_release_is_the_averages_with_the_stated_noise(name, arithmetic):
    """Each number within 6 standard deviations of the average: a false alarm in 1e-8."""
    found = release(name, arithmetic=arithmetic)
    away = (found.value - expected(name, records(), BALL)) / standard_deviations(found)
    assert np.abs(away).max() < 6
    assert dpm.verify(found).ok
    assert found.arithmetic == arithmetic


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("joint moments", {"weight": 9.0}),
        ("joint lengths", {"square": 9.0, "fourth": 9.0}),
        ("joint distances", {"third": 9.0, "fourth": 9.0}),
    ],
)
def test_the_noise_has_the_stated_law_number_by_number(name, options):
    """Kolmogorov-Smirnov over 100 seeded draws of every number, false alarm 1e-6; with weights forgotten, rejected."""
    X = records(40)
    truth = expected(name, X, BALL)
    drawn = [release(name, X, rng=seed, **options) for seed in range(100)]
    away = np.array([(one.value - truth) / standard_deviations(one) for one in drawn])
    assert laws.kstest(away.ravel(), laws.norm.cdf).pvalue > 1e-6
    assert all(laws.kstest(column, laws.norm.cdf).pvalue > 1e-7 for column in away.T)
    unweighted = away[:, 2:] * drawn[0].definition.as_stated(drawn[0]).features.units(2, 1.0)[2:]
    assert laws.kstest(unweighted.ravel(), laws.norm.cdf).pvalue < 1e-6


def test_products_up_to_a_weight_of_one_half_cost_nothing():
    """The noise on the mean is that of a tangent mean by itself: both scales are 2r/(n mu), but for rounding."""
    X = records()
    alone = dpm.private_mean(X, BALL, dpm.GDP(1.0), mechanism="tangent-mean-gaussian", **EACH)
    joint = release(X=X)
    assert joint.scale * BALL.radius == pytest.approx(alone.scale, rel=1e-9)
    assert joint.noise_error() == pytest.approx(alone.scale * np.sqrt(np.pi / 2), rel=1e-9)
    assert release(X=X, weight=1.0).scale == pytest.approx(joint.scale * np.sqrt(4.5) / 2, rel=1e-9)


def test_one_unit_moves_the_average_by_no_more_than_the_bound():
    """The widest pair of the search, as two records, on top of others that stay."""
    ball, joint = dpm.Ball(dpm.Euclidean(3), np.zeros(3), 5.0), JointMoments(1.0)
    _, v, w = widest_pair(joint, 3, np.random.default_rng(2))
    common = in_ball(ball, 30, np.random.default_rng(3))
    averages = [
        features.average(UnitPoints.of(np.vstack([common, ball.radius * u[None]]), ball), joint) for u in (v, w)
    ]
    moved, bound = np.linalg.norm(averages[0] - averages[1]), features.sensitivity_of(joint, 3, 31).value
    assert 0.999 * bound < moved <= bound


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("joint moments", {"weight": 1.0}, JointMoments(1.0)),
        ("joint lengths", {}, Lengths(1.5, 1.025)),
        ("joint lengths", {"square": 4.0, "fourth": 0.5}, Lengths(4.0, 0.5)),
        ("joint distances", {}, Distances()),
        ("joint distances", {"products": 0.5, "third": 2.0}, Distances(products=0.5, third=2.0)),
    ],
)
def test_a_release_tells_what_was_promised_and_no_more(monkeypatch, name, options, found):
    """The one exact draw, on the widest pair: its mu is the promised one, but for rounding."""
    ball = dpm.Ball(dpm.Euclidean(3), np.zeros(3), 5.0)
    _, *pair = widest_pair(found, 3, np.random.default_rng(7))
    first, second = (np.vstack([records(20, ball), ball.radius * u[None]]) for u in pair)
    told = replay.told(lambda X: release(name, X, ball, **options), first, second, monkeypatch)
    assert 0.999 < replay.mu_of(told) <= 1.0


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_every_space_has_them(ball):
    X = records(60, ball)
    for name in NAMES:
        found = release(name, X, ball, rng=0)
        away = (found.value - expected(name, X, ball)) / standard_deviations(found)
        assert np.abs(away).max() < 7
        assert dpm.verify(found).ok


# -------------------------------------------------------------------- units, sources, balls


def test_a_unit_counts_once_however_many_records_it_has():
    X, ids = records(300), np.arange(300) // 3
    found = release(X=X, units=ids)
    assert (found.n, found.unit) == (100, "unit")
    assert found.scale == pytest.approx(3 * release(X=X).scale, rel=1e-9)
    assert dpm.verify(found).ok


@pytest.mark.parametrize("refine", [False, True])
def test_sources_give_the_same_bits_as_arrays(refine):
    X, ids = narrow(), np.arange(3000) // 2
    source = ListSource(X, ids, cuts=[700, 2200], block=333)
    here, there = (
        release(X=given, ball=LINE, units=units, rng=5, refine=refine)
        for given, units in ((X, ids), (source, "person"))
    )
    assert np.array_equal(here.value, there.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_smaller_ball_first(name, tmp_path):
    found = release(name, narrow(), LINE, refine=True)
    assert [step.statistic for step in found.steps] == ["ball"]
    assert found.ball == found.steps[0].value
    assert found.ball.radius < 10
    assert found.noise_error() < release(name, narrow(), LINE).noise_error() / 4
    assert dpm.verify(found).ok
    found.save(tmp_path / "joint.json")
    assert dpm.verify(dpm.load(tmp_path / "joint.json")).ok


def test_where_a_smaller_ball_cannot_help_the_release_says_so():
    found = release(X=records(30), refine=True)
    assert not found.steps
    assert found.details["refinement_skipped"] == 1.0
    assert dpm.verify(found).ok


# -------------------------------------------------------------------- behind the spend


@pytest.mark.parametrize(
    "step",
    ["frechet.UnitPoints.mean_of", "frechet.UnitPoints.in_ball", "frechet.UnitPoints.within"],
)
def test_a_failure_behind_the_spend_does_not_show(monkeypatch, step):
    """One draw for everything: what comes back states what it always states, and verifies."""

    def broken(*_, **__):
        raise np.linalg.LinAlgError("a record did this")

    monkeypatch.setattr(f"dpmanifold.{step}", broken)
    found = release(X=narrow(), ball=LINE, refine=True)
    monkeypatch.undo()
    assert dpm.verify(found).ok


@pytest.mark.parametrize("name", NAMES)
def test_nothing_fails_at_the_edge(monkeypatch, name):
    """Records at the centre, on the edge and beyond it, on every space: nothing is swallowed."""
    seen = []
    monkeypatch.setattr("dpmanifold._fallback._taken", seen.append)
    for ball in BALLS:
        steps = np.zeros((6, ball.space.dim))
        steps[:, -1] = ball.radius * np.array([0.0, 1.0, -1.0, 1 + 1e-9, 1.2, 1e-9])
        X = ball.space.project(ball.space.exp_coords(ball.center, steps))
        release(name, X, ball, rng=0, confirm=True)
    assert not seen


# -------------------------------------------------------------------- plans, refusals, files


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_foresees_the_release(name):
    plan = dpm.plan(300, BALL, dpm.GDP(1.0), statistic=name)
    found = release(name)
    assert plan.steps[0].scale == found.scale
    assert plan.steps[0].error == pytest.approx(found.noise_error())
    refined = dpm.plan(3000, LINE, dpm.GDP(1.0), statistic=name, refine=True)
    assert [step.statistic for step in refined.steps] == ["ball", name]


@pytest.mark.parametrize(
    ("privacy", "options", "words"),
    [
        (dpm.PureDP(1.0), {}, "pure"),
        (dpm.GDP(1.0), {"weight": 0.0}, "weight must"),
        (dpm.GDP(1.0), {"weight": 1e9}, "weight must lie between"),
        (dpm.GDP(1.0), {"mechanism": "laplace"}, "laplace"),
        (dpm.GDP(1.0), {"refine": "yes"}, "refine must"),
        (dpm.GDP(1.0), {"share": 1.0}, "no option"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(privacy, options, words):
    budget = dpm.Budget(dpm.PureDP(2.0) if privacy == dpm.PureDP(1.0) else dpm.GDP(2.0))
    with pytest.raises(dpm.DPManifoldError, match=words):
        release(privacy=privacy, budget=budget, **options)
    assert not budget.history


@pytest.mark.parametrize(
    ("name", "ball"),
    [
        ("joint lengths", dpm.Ball(dpm.Euclidean(1), [0.0], 1e60)),
        ("joint moments", dpm.Ball(dpm.Euclidean(1500), np.zeros(1500), 1.0)),
    ],
)
def test_numbers_that_could_not_be_written_or_read_are_refused_before_anything_is_spent(name, ball):
    budget = dpm.Budget(dpm.GDP(2.0))
    with pytest.raises(dpm.DPManifoldError):
        release(name, np.zeros((20, ball.space.dim)), ball, budget=budget)
    assert not budget.history


@pytest.mark.parametrize("privacy", [dpm.ApproxDP(1.0, 1e-6), dpm.ZCDP(0.5), dpm.GDP(1.0)], ids=repr)
@pytest.mark.parametrize("name", NAMES)
def test_json_round_trip(name, privacy, tmp_path):
    found = release(name, privacy=privacy)
    found.save(tmp_path / "joint.json")
    read = dpm.load(tmp_path / "joint.json")
    assert read.to_dict() == found.to_dict()
    assert read.verify().ok
    assert "joint" in str(read)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: replace(r, scale=r.scale / 2), "scale: stated"),
        (lambda r: replace(r, details={WEIGHT: 0.4}), "second_moment_weight: stated 0.4"),
        (lambda r: replace(r, details={WEIGHT: 2.0}), "second_moment_weight: stated 2"),
        (lambda r: replace(r, details={WEIGHT: -1.0}), "second_moment_weight: stated -1"),
        (lambda r: replace(r, details={}), "details"),
        (lambda r: replace(r, value=r.value * 1.01), "does not follow"),
        (
            lambda r: replace(r, draws=(r.draws[0]._replace(numbers=r.draws[0].numbers + 1e4),)),
            "no noise of that scale",
        ),
        (lambda r: replace(r, n=r.n + 1), "n: stated"),
        (lambda r: replace(r, ball=replace(r.ball, radius=0.5)), "ball: stated"),
        (lambda r: replace(r, mechanism="laplace"), "mechanism"),
        (lambda r: replace(r, privacy=dpm.GDP(0.1)), "share: stated"),
    ],
)
def test_verify_catches_what_was_altered(change, words):
    honest = release()
    found = dpm.verify(change(honest))
    assert dpm.verify(honest).ok
    assert not found.ok
    assert words in " ".join(found.wrong)


def test_neighbours_are_those_of_the_query():
    assert not dpm.verify(replace(release(), adjacency=REPLACE_ONE_UNIT_SAME_CLASSES)).ok


def test_the_commands_that_take_any_statistic_take_them(tmp_path):
    np.save(tmp_path / "records.npy", narrow())
    made = str(tmp_path / "joint.json")
    about = ["--space", "euclidean", "--size", "3", "--radius", "50", "--center", "0,0,0", "--mu", "1"]
    asked = CliRunner().invoke(
        app, ["statistic", "joint-moments", str(tmp_path / "records.npy"), *about, "--units", "each-record", "--refine",
              "--out", made]
    )  # fmt: skip
    assert asked.exit_code == 0, asked.output
    assert dpm.load(made).steps[0].statistic == "ball"
    assert CliRunner().invoke(app, ["verify", made]).exit_code == 0
    planned = CliRunner().invoke(app, ["plan", "-n", "3000", *about, "--statistic", "joint-lengths", "--refine"])
    assert planned.exit_code == 0, planned.output
    assert "joint lengths" in planned.output


def test_picture_report_and_words():
    found = release("joint lengths")
    axes = found.picture().axes[0]
    bars = next(line.get_segments() for line in axes.collections)
    lengths = np.array([np.ptp(segment[:, 1]) for segment in bars])
    np.testing.assert_allclose(lengths, 2 * 1.959964 * standard_deviations(found), rtol=1e-5)
    assert "joint lengths" in found._repr_html_()
    assert "coordinates over the ball's radius" in str(found)


def test_free_weights_are_the_ones_in_use():
    assert Lengths(*dpm.stats.joint_moments.FREE_WEIGHTS).diameter(3) == 2.0
    assert JointMoments(dpm.stats.joint_moments.FREE_WEIGHT).diameter(3) == 2.0
