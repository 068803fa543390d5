"""A statistic in one file and one line of registration gets plan, release, JSON, verify, CLI, picture and report."""

import json
import warnings
from dataclasses import replace
from importlib import metadata

import numpy as np
import pytest
from scipy import stats as laws
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli import app
from dpmanifold.registry import Registry
from dpmanifold.stats import AveragedStatistic
from extension import shells
from laws.data import in_ball
from registries import changed

SHELLS = shells.register()
BALL = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.6, source="by design")
PROMISES = [dpm.PureDP(1.0), dpm.ApproxDP(0.5, 1e-6), dpm.ZCDP(0.5), dpm.GDP(1.0)]


def records(n=400, ball=BALL):
    return in_ball(ball, n, np.random.default_rng(0))


def release(privacy=PROMISES[3], n=400, **terms):
    return dpm.private_statistic(
        records(n), BALL, privacy, statistic="shells", units=terms.pop("units", dpm.EACH_RECORD), **terms
    )


def shares(X, ball=BALL):
    away = ball.space.dist(ball.center, X)
    return np.histogram(away, np.linspace(0, ball.radius * (1 + 1e-9), 5))[0] / len(X)


@pytest.mark.parametrize("privacy", PROMISES, ids=lambda promise: type(promise).__name__)
@pytest.mark.parametrize("arithmetic", ["exact", "float"])
def test_release_is_the_average_with_the_stated_noise(privacy, arithmetic):
    found = release(privacy, 4000, arithmetic=arithmetic)
    assert found.statistic == "shells"
    assert found.value.shape == (4,)
    assert found.arithmetic == arithmetic
    assert found.private
    # Off by more than this with probability 1e-6, by the law that it states itself.
    assert np.linalg.norm(found.value - shares(records(4000))) < found.noise_quantile(1 - 1e-6)
    assert dpm.verify(found).ok


@pytest.mark.slow
@pytest.mark.parametrize(("privacy", "law"), [(PROMISES[0], "gamma"), (PROMISES[3], "chi")])
def test_the_length_of_the_noise_has_the_law_that_is_forecast(privacy, law):
    """Kolmogorov-Smirnov over 300 seeded draws, false alarm 1e-6; with half the scale it is rejected."""
    X = records(50)
    truth = shares(X)
    drawn = [
        dpm.private_statistic(X, BALL, privacy, statistic="shells", units=dpm.EACH_RECORD, rng=seed)
        for seed in range(300)
    ]
    lengths = [np.linalg.norm(one.value - truth) for one in drawn]
    expected = laws.gamma(4, scale=drawn[0].scale) if law == "gamma" else laws.chi(4, scale=drawn[0].scale)
    wrong = laws.gamma(4, scale=drawn[0].scale / 2) if law == "gamma" else laws.chi(4, scale=drawn[0].scale / 2)
    assert laws.kstest(lengths, expected.cdf).pvalue > 1e-6
    assert laws.kstest(lengths, wrong.cdf).pvalue < 1e-6
    assert drawn[0].noise_error() == pytest.approx(expected.mean(), rel=1e-6)


def test_one_unit_moves_the_average_by_no_more_than_the_bound():
    """The farthest neighbours: a unit that moves from the first shell to the last."""
    inner = np.repeat(BALL.center[None], 40, axis=0)
    edge = BALL.space.exp_coords(BALL.center, np.array([[BALL.radius, 0.0]]))
    other = np.concatenate([edge, inner[1:]])
    moved = np.linalg.norm(shares(other) - shares(inner))
    bound = SHELLS.sensitivity(BALL, 40).value
    assert moved <= bound
    assert bound == pytest.approx(2 * np.sqrt(0.75) / 40, rel=1e-9)


@pytest.mark.parametrize("privacy", PROMISES, ids=lambda promise: type(promise).__name__)
def test_json_round_trip(privacy, tmp_path):
    found = release(privacy)
    found.save(tmp_path / "shells.json")
    read = dpm.load(tmp_path / "shells.json")
    assert read.to_dict() == found.to_dict()
    assert read.verify().ok
    assert read.answers()["noise_error"] == found.noise_error()


def redrawn(release, more):
    """A release of which each number that was drawn is larger, and the value as it was."""
    (draw,) = release.draws
    return replace(release, draws=(draw._replace(numbers=draw.numbers + more),))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: replace(r, scale=r.scale / 2), "scale: stated"),
        (lambda r: replace(r, scale=r.scale * 2), "scale: stated"),
        (lambda r: replace(r, value=r.value + 0.01), "does not follow"),
        (lambda r: redrawn(r, 1e4), "no noise of that scale"),
        (lambda r: redrawn(r, 2.0**-50), "not multiples"),
        (lambda r: replace(r, n=r.n + 1), "n: stated"),
        (lambda r: replace(r, privacy=dpm.GDP(0.1)), "share: stated"),
        (lambda r: replace(r, privacy=dpm.GDP(0.1), share=dpm.GDP(0.1)), "scale: stated"),
        (
            lambda r: replace(r, sensitivity=replace(r.sensitivity, proof="mean")),
            "averages",
        ),
        (lambda r: replace(r, mechanism="laplace"), "mechanism"),
        (lambda r: replace(r, projected=True), "projected"),
        (lambda r: replace(r, tol=0.1), "tol: stated"),
        (lambda r: replace(r, adjacency=dpm.statistic.REPLACE_ONE_UNIT_SAME_CLASSES), "adjacency"),
        (lambda r: replace(r, details={"coverage": 0.5}), "coverage"),
        (lambda r: replace(r, statistic="variance"), ""),
        (lambda r: replace(r, value=r.value[:3]), "value"),
    ],
)
def test_verify_catches_what_was_altered(change, words):
    honest = release()
    found = dpm.verify(change(honest))
    assert dpm.verify(honest).ok
    assert not found.ok
    assert words in " ".join(found.wrong)


def test_a_float_value_too_far_is_caught():
    honest = release(arithmetic="float")
    assert dpm.verify(honest).ok
    assert "no noise of that scale" in " ".join(dpm.verify(redrawn(honest, 100)).wrong)


@pytest.mark.parametrize("privacy", PROMISES, ids=lambda promise: type(promise).__name__)
def test_plan_foresees_what_the_release_states(privacy):
    (step,) = dpm.plan(400, BALL, privacy, statistic="shells").steps
    found = release(privacy)
    assert (step.mechanism, step.scale, step.rule, step.share) == (
        found.mechanism, found.scale, found.rule, found.share,
    )  # fmt: skip
    assert step.error == found.noise_error()


def test_picture_report_and_notebook():
    found = release()
    assert found.picture().texts[0].get_text() == shells.Shells.words
    page = found.report()
    assert "Private shells" in page
    assert "data:image/png" in page
    assert "shells" in found._repr_html_()
    assert "noise error" in repr(found)
    assert dpm.plots.show(dpm.plan(400, BALL, dpm.GDP(1.0), statistic="shells")).axes


def test_command_line(tmp_path):
    np.save(tmp_path / "x.npy", records())
    np.save(tmp_path / "center.npy", BALL.center)
    run = CliRunner().invoke
    data = [str(tmp_path / "x.npy"), "--space", "sphere", "--units", "each-record"]
    where = ["--center", "0,0,1", "--radius", "0.6", "--mu", "1"]
    out, picture, page = tmp_path / "shells.json", tmp_path / "shells.png", tmp_path / "shells.html"
    files = ["--out", str(out), "--picture", str(picture), "--html", str(page), "--npy", str(tmp_path / "v.npy")]
    done = run(app, ["statistic", "shells", *data, *where, *files])
    assert done.exit_code == 0, done.output
    assert "Release of private shells" in done.output
    assert picture.stat().st_size > 0
    assert "Private shells" in page.read_text()
    assert np.array_equal(np.load(tmp_path / "v.npy"), dpm.load(out).value)
    assert run(app, ["verify", str(out)]).exit_code == 0
    assert run(app, ["show", str(out)]).exit_code == 0
    record = json.loads(out.read_text())
    record["scale"] /= 2
    del record["answers"]
    out.write_text(json.dumps(record))
    assert run(app, ["verify", str(out)]).exit_code == 4
    planned = run(app, ["plan", "--statistic", "shells", "-n", "400", "--space", "sphere", "--size", "2", *where])
    assert planned.exit_code == 0, planned.output
    assert "Expect noise of" in planned.output
    assert "shells" in run(app, ["statistics"]).output


def test_refusals_come_before_the_records_are_seen():
    class Never:
        def __len__(self):
            return 10

        def __array__(self, *args):
            raise AssertionError("records were looked at")

    ask = {"statistic": "shells", "units": dpm.EACH_RECORD}
    with pytest.raises(dpm.InvalidArgumentError, match="center and a radius"):
        dpm.private_statistic(Never(), dpm.Ball.whole(dpm.Sphere(2)), dpm.GDP(1.0), **ask)
    with pytest.raises(dpm.PromiseError, match="gaussian"):
        dpm.private_statistic(Never(), BALL, dpm.PureDP(1.0), mechanism="gaussian", **ask)
    with pytest.raises(dpm.InvalidArgumentError, match="no option"):
        dpm.private_statistic(Never(), BALL, dpm.PureDP(1.0), colour="red", **ask)
    with pytest.raises(dpm.InvalidArgumentError, match="statistic must be one of"):
        dpm.private_statistic(Never(), BALL, dpm.PureDP(1.0), statistic="shadow", units=dpm.EACH_RECORD)


def test_a_budget_is_spent_under_the_statistics_name():
    budget = dpm.Budget(dpm.GDP(1.0))
    release(dpm.GDP(1.0), budget=budget)
    with pytest.raises(dpm.BudgetError):
        release(dpm.GDP(1.0), budget=budget)


def test_units_count_once():
    found = release(units=np.repeat(np.arange(100), 4))
    assert (found.n, found.unit) == (100, "unit")
    assert dpm.verify(found).ok


class Broken(AveragedStatistic):
    """What an author can get wrong."""

    name, words, kind = "broken", "broken", shells.Kind.NUMBER

    def __init__(self, per_unit):
        self.make = per_unit

    def per_unit(self, block, ball):
        return self.make(block)

    def bound(self, ball):
        return 1.0


class Within(AveragedStatistic):
    """The share of the units within a part of the radius: a parameter of its own."""

    name, words, kind = "within", "share of the units within a part of the radius", shells.Kind.NUMBER

    def __init__(self, part):
        self.part = part

    def per_unit(self, block, ball):
        return (ball.frame.dist(ball.frame.origin, block) <= self.part * ball.radius)[:, None]

    def middle(self, ball):
        return np.array([0.5])

    def bound(self, ball):
        return 0.5


def test_an_object_is_used_without_being_registered(tmp_path):
    """Two of one name and class do not collide, and nothing is left behind, also where the call is refused."""
    ask = {"units": dpm.EACH_RECORD}
    with pytest.raises(dpm.InvalidArgumentError, match="no option"):
        dpm.private_statistic(records(), BALL, dpm.GDP(1.0), statistic=Within(0.5), colour="red", **ask)
    inner, outer = (
        dpm.private_statistic(records(4000), BALL, dpm.GDP(1.0), statistic=Within(part), **ask) for part in (0.5, 0.9)
    )
    assert inner.value < outer.value
    assert dpm.plan(400, BALL, dpm.GDP(1.0), statistic=Within(0.5)).statistic == "within"
    assert "within" not in dpm.STATISTICS
    assert "within" in repr(inner)
    assert inner.picture().axes
    assert "register it" in inner.report()  # which shows what verify finds
    inner.save(tmp_path / "within.json")
    with pytest.raises(dpm.InvalidDataError, match=r"no statistic 'within' here: register it .*install"):
        dpm.load(tmp_path / "within.json")
    found = dpm.verify(inner)
    assert not found.ok
    assert "register it" in " ".join(found.wrong)
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "within.json")])
    assert done.exit_code != 0
    assert "register it" in " ".join(done.output.split())


def test_a_saved_release_is_loaded_and_verified_once_its_statistic_is_registered(monkeypatch, tmp_path):
    within = Within(0.5)
    found = dpm.private_statistic(records(), BALL, dpm.GDP(1.0), statistic=within, units=dpm.EACH_RECORD)
    found.save(tmp_path / "within.json")
    changed(monkeypatch, dpm.STATISTICS, within=within)
    assert dpm.load(tmp_path / "within.json").to_dict() == found.to_dict()
    assert dpm.verify(found).ok
    assert dpm.private_statistic(records(), BALL, dpm.GDP(1.0), statistic=within, units=dpm.EACH_RECORD).verify().ok
    with pytest.raises(dpm.InvalidArgumentError, match="stands for another one"):
        dpm.private_statistic(records(), BALL, dpm.GDP(1.0), statistic=Within(0.9), units=dpm.EACH_RECORD)


@pytest.mark.parametrize("name", ["mean", "", None, "a\x00b"])
def test_an_object_with_a_name_that_is_no_name_or_anothers_is_refused(name):
    within = Within(0.5)
    within.name = name
    with pytest.raises(dpm.InvalidArgumentError, match="name"):
        dpm.private_statistic(records(), BALL, dpm.GDP(1.0), statistic=within, units=dpm.EACH_RECORD)


def header(n=50):
    return dpm.statistic.Header(BALL, n, dpm.GDP(1.0))


def test_a_map_that_mixes_units_or_has_the_wrong_shape_is_refused():
    with pytest.raises(dpm.InvalidArgumentError, match="each point by itself"):
        Broken(lambda block: np.full((len(block), 1), block[:, 0].sum())).prepared(header())
    with pytest.raises(dpm.InvalidArgumentError, match="must return shape"):
        Broken(lambda block: block).prepared(header())
    Broken(lambda block: block[:, :1]).prepared(header())


def test_a_statistic_is_registered_under_its_own_name():
    with pytest.raises(dpm.InvalidArgumentError, match="must be registered under that name"):
        Registry("statistic", "dpmanifold.nowhere").register("another", shells.NEAR_CENTRE)


def test_a_map_whose_rounding_depends_on_the_batch_is_refused():
    """A product of matrices adds in another order for one row than for many."""
    ball = dpm.Ball(dpm.Euclidean(50), np.zeros(50), 1.0)
    weights = np.random.default_rng(0).standard_normal((50, 1))
    asked = dpm.statistic.Header(ball, 50, dpm.GDP(1.0))
    with pytest.raises(dpm.InvalidArgumentError, match="bit for bit"):
        Broken(lambda block: block @ weights).prepared(asked)
    Broken(lambda block: (block * weights[:, 0]).sum(axis=-1, keepdims=True)).prepared(asked)


def test_a_map_that_fails_on_points_of_the_ball_or_writes_to_them_is_refused():
    def tame(block):
        block[block[:, 1] > 0.3] *= 0.75
        return block[:, :1]

    def fails(block):
        raise ValueError("no")

    for wrong in (tame, fails):
        with pytest.raises(dpm.InvalidArgumentError, match="fails on points of the ball"):
            Broken(wrong).prepared(header())


def test_a_unit_that_fails_leaves_every_bit_of_the_others():
    """Also where the map's rounding depends on the place in the batch."""
    weights = np.random.default_rng(0).standard_normal((3, 1))

    def map_of(block):
        if (block[:, 1] < -0.9).any():
            raise ValueError("a record that fails")
        return block @ weights / 9

    points = BALL.frame.exp_coords(BALL.frame.origin, np.random.default_rng(1).uniform(-0.3, 0.3, (3000, 2)))
    other = points.copy()
    other[1700] = [0.0, -1.0, 0.0]
    changed = (Broken(map_of).vectors(points, BALL) != Broken(map_of).vectors(other, BALL)).any(axis=1)
    assert np.flatnonzero(changed).tolist() == [1700]


def test_a_map_says_nothing_about_a_record(recwarn):
    def speaks(block):
        if (block[:, 1] < -0.9).any():
            warnings.warn("a record is odd", stacklevel=2)
        return block[:, :1]

    Broken(speaks).vectors(np.array([[0.0, -1.0, 0.0]]), BALL)
    assert not recwarn.list


def test_a_value_that_fails_for_some_draws_is_that_of_the_middle():
    class Root(Broken):
        def value(self, numbers, ball):
            return float(np.sqrt(numbers[0]))

    statistic = Root(lambda block: 0.0 * block[:, :1])
    assert [statistic.placed(np.array([number]), BALL) for number in (0.25, -0.1)] == [0.5, 0.0]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"kind": dpm.statistic.Kind.BALL}, "kind of"),
        ({"kind": dpm.statistic.Kind.POINT}, "kind of"),
        ({"words": ""}, "words of a statistic"),
        ({"size": lambda self, ball: 2}, "size of"),
        ({"middle": lambda self, ball: np.zeros(3)}, "middle of"),
        ({"value": lambda self, numbers, ball: "text"}, "value of"),
    ],
)
def test_definitions_that_could_not_be_written_or_shown_are_refused_before_the_spend(entry, said):
    wrong = type("Wrong", (Broken,), entry)(lambda block: block[:, :1])
    with pytest.raises(dpm.InvalidArgumentError, match=said):
        wrong.prepared(header())


@pytest.mark.parametrize("kind", [*list(shells.Kind)[:3], shells.Kind.BALL, "number", None], ids=str)
def test_a_kind_that_an_average_is_not_or_that_its_value_is_not_is_refused_before_the_spend(kind):
    within = Within(0.5)
    within.kind = kind
    if kind is shells.Kind.MATRIX:
        within.value = lambda numbers, ball: numbers
    if kind is shells.Kind.VECTOR:
        within.value = lambda numbers, ball: numbers[0]
    refused(within, "kind|value|size")


@pytest.mark.parametrize(
    "value",
    [
        lambda numbers, ball: "half",
        lambda numbers, ball: "0.5",
        lambda numbers, ball: None,
        lambda numbers, ball: float("nan"),
        lambda numbers, ball: {"share": 0.5},
        lambda numbers, ball: 0.5 + 0j,
        lambda numbers, ball: np.array([0.5, 0.5]),
    ],
)
def test_a_value_that_cannot_be_saved_is_refused_before_the_spend(value):
    within = Within(0.5)
    within.value = value
    refused(within, "value of 'within' must return a finite number")


def refused(statistic, words):
    """Both calls refuse in these words, and nothing is spent."""
    budget = dpm.Budget(dpm.GDP(1.0))
    with pytest.raises(dpm.InvalidArgumentError, match=words):
        dpm.private_statistic(records(), BALL, dpm.GDP(1.0), statistic=statistic, units=dpm.EACH_RECORD, budget=budget)
    with pytest.raises(dpm.InvalidArgumentError, match=words):
        dpm.plan(400, BALL, dpm.GDP(1.0), statistic=statistic)
    assert not budget.history


def test_what_is_too_long_not_finite_or_fails_counts_for_that_unit_alone():
    """One bad unit moves the average by no more than the bound, whatever the map does with it."""

    def map_of(block):
        if (block[:, 1] > 0.5).any():
            raise ValueError("a record that fails")
        return np.where(block[:, 1] < -0.5, np.nan, 1e300 * block[:, 2])[:, None]

    broken, points = Broken(map_of), BALL.frame.random_point(40, rng=0)
    together = broken.vectors(points, BALL)
    alone = np.concatenate([broken.vectors(point[None], BALL) for point in points])
    assert np.array_equal(together, alone)
    assert np.abs(together).max() <= 1
    assert (together[np.abs(points[:, 1]) > 0.5] == 0).all()


# -------------------------------------------------------------------- from another distribution


def test_a_statistic_by_entry_point(monkeypatch, tmp_path):
    """A registry asks the entry points once, where a name is not known; no line of the script registers anything."""
    point = metadata.EntryPoint("near centre", "extension.shells:NEAR_CENTRE", "dpmanifold.statistics")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [point] if group == point.group else [])
    fresh = Registry("statistic", "dpmanifold.statistics")
    for name in dpm.STATISTICS.names():
        fresh.register(name, dpm.STATISTICS.get(name))
    for module in (dpm.statistic, dpm.release, dpm.stats.query):
        monkeypatch.setattr(module, "STATISTICS", fresh)
    X = records(2000)
    found = dpm.private_statistic(X, BALL, dpm.PureDP(1.0), statistic="near-centre", units=dpm.EACH_RECORD)
    assert abs(found.value - (BALL.space.dist(BALL.center, X) <= 0.3).mean()) < found.noise_quantile(1 - 1e-6)
    found.save(tmp_path / "near.json")
    read = dpm.load(tmp_path / "near.json")
    assert read.verify().ok
    assert read.picture().axes[0].get_xlabel() == shells.NearCentre.words
    assert "A private near centre" in read.report()
    assert "near centre" in fresh.names()
