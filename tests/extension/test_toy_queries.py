"""A query in one file, with one entry point, gets everything: here one of two groups, and one with a covariate."""

import types
from importlib import metadata

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli.build import command_of
from dpmanifold.cli.remote_asking import asking
from dpmanifold.ledger import Ledger
from dpmanifold.service.questions import Question
from dpmanifold.service.web.pages.asking import Typed
from dpmanifold.stats import rehearsal
from extension import toy_queries
from extension.toy_queries import CONTRAST, TREND

BALL = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.7, source="by design")
PROMISE = dpm.GDP("2")
N = 600
_RNG = np.random.default_rng(0)
AGE = _RNG.uniform(20.0, 80.0, N)
GROUP = np.where(np.arange(N) < 350, "a", "b")
X = BALL.space.exp_coords(
    BALL.center,
    np.stack([(AGE - 50) / 150, 0.2 * (GROUP == "b") + 0.0 * AGE], axis=1) + 0.1 * _RNG.standard_normal((N, 2)),
)
EACH = {"units": dpm.EACH_RECORD}
QUERIES = [CONTRAST, TREND]


@pytest.fixture(autouse=True)
def offered(monkeypatch):
    """The entry points of another distribution, as in a new process: `contrast` and `trend` in `dpmanifold.queries`."""
    points = [
        types.SimpleNamespace(name=query.name, dist=None, value="toy_queries", load=lambda query=query: query)
        for query in QUERIES
    ]
    known = metadata.entry_points
    monkeypatch.setattr(
        metadata, "entry_points", lambda **which: points if which == {"group": dpm.QUERIES._group} else known(**which)
    )
    monkeypatch.setattr(dpm.QUERIES, "_items", dict(dpm.QUERIES._items))
    monkeypatch.setattr(dpm.QUERIES, "_foreign", set(dpm.QUERIES._foreign))
    monkeypatch.setattr(dpm.QUERIES, "_complete", False)


def asked(query, **terms):
    if query is CONTRAST:
        return toy_queries.private_contrast(X[GROUP == "a"], X[GROUP == "b"], BALL, PROMISE, **{**EACH, **terms})
    return toy_queries.private_trend(X, AGE, BALL, PROMISE, **{**EACH, "covariate_range": (20.0, 80.0), **terms})


def test_they_answer_what_is_asked():
    difference, trend = asked(CONTRAST).answers(), asked(TREND).answers()
    assert difference["low"] < difference["difference"] < difference["high"] < 0
    assert trend["axis 1"] > 0.05 > abs(trend["axis 2"])


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_json_verify_figure_and_report(query, tmp_path):
    found = asked(query)
    found.save(tmp_path / "found.json")
    again = dpm.load(tmp_path / "found.json")
    assert type(again) is query.result
    assert again.to_dict() == found.to_dict()
    assert dpm.verify(again).ok, dpm.verify(again).wrong
    assert found.picture().axes[0].get_title() == query.title
    assert query.title in found.report()
    record = found.to_dict(answers=False)
    inner = record["first"] if query is CONTRAST else record["release"]
    inner["scale"] *= 0.5
    assert not dpm.verify(query.result.from_dict(record)).ok


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_plan(query):
    n = (350, 250) if query is CONTRAST else N
    planned, made = dpm.plan(n, BALL, PROMISE, statistic=query.name), asked(query)
    assert [step.scale for step in planned.steps] == [release.scale for release in made.released]
    with pytest.raises(dpm.InvalidArgumentError, match="nonsense is no option"):
        dpm.plan(n, BALL, PROMISE, statistic=query.name, nonsense=1)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_ledger_pays_and_knows_them_again(query, tmp_path):
    with Ledger.create(str(tmp_path / "study.db")) as ledger:
        people = ledger.population("cohort", cap=dpm.GDP(9), unit="record")
        beside = {"labels": GROUP, "classes": ["a", "b"]} if query is CONTRAST else {}
        beside |= {"covariate": AGE, "covariate_range": (20.0, 80.0)} if query is TREND else {}
        data = people.register("study", X, BALL, **EACH, **beside)
        assert query.sample.fits(data)
        found = query.of_registered(data, BALL, PROMISE, budget=people, key="k")
        again = query.of_registered(data, BALL, PROMISE, budget=people, key="k")
        assert found.to_dict() == again.to_dict()
        assert ledger.compared(found).faults == ()
        assert [one.facts["statistic"] for one in ledger.entries() if one.kind == "spend"] == [query.name]
        assert dpm.verify(found).ok
        n, options = query.planned(data, {})
        assert dpm.plan(n, BALL, PROMISE, statistic=query.name, **options).steps


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_command(query, tmp_path, monkeypatch):
    import typer

    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command(query.name)(command_of(query))
    app.command("other")(asking(query))
    where = ["--space", "sphere", "--center", "0,0,1", "--radius", "0.7", "--mu", "2", "--units", "each-record"]
    if query is CONTRAST:
        np.save("a.npy", X[GROUP == "a"])
        np.save("b.npy", X[GROUP == "b"])
        words = ["a.npy", "b.npy", "--level", "0.9"]
    else:
        np.savez("x.npz", X=X, age=AGE)
        words = ["x.npz", "--array", "X", "--covariate", "age", "--covariate-range", "20", "80"]
    done = CliRunner().invoke(
        app, [query.name, *words, *where, "--out", "found.json", "--picture", "found.png", "--html", "found.html"]
    )
    assert done.exit_code == 0, done.output
    assert query.title in done.output
    assert type(dpm.load("found.json")) is query.result
    assert (tmp_path / "found.png").stat().st_size > 1000
    said = CliRunner().invoke(app, ["other", "--help"]).output
    assert "DATASET" in said
    assert ("--level" in said) == (query is CONTRAST)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_client_and_service(query):
    client = dpm.connect("https://data.example.org", token="dpm_" + 43 * "x")
    method = getattr(client, query.name)
    assert method.__doc__.startswith(query.call.__doc__.partition("\n")[0])
    request = client._request(query.name, "cohort/dti", PROMISE, None, {"level": 0.9} if query is CONTRAST else {})
    question = Question.from_dict(request["question"])
    assert question.query == query
    assert question.to_dict()["options"] == ({"level": 0.9} if query is CONTRAST else {})
    typed = Typed.read({"statistic": query.name}, "mean")
    assert [control.label for control in typed.controls()] == [option.label for option in query.options]
    with pytest.raises(dpm.InvalidArgumentError, match="takes the options"):
        client._request(query.name, "cohort/dti", PROMISE, None, {"count": 2})
    client.close()


def test_each_is_one_of_the_names_that_messages_list():
    with pytest.raises(dpm.InvalidArgumentError, match="contrast, trend"):
        dpm.plan(N, BALL, PROMISE, statistic="no such")


@pytest.mark.security
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_plan_that_fails_behind_the_payment_is_refused_before_it(query, monkeypatch):
    """Without a rehearsal every release would be paid for and lost."""
    plan = toy_queries.ContrastPlan if query is CONTRAST else toy_queries.ProductsPlan
    monkeypatch.setattr(plan, "release", lambda self, points, bits: 1 / 0)
    monkeypatch.setattr(rehearsal, "_rehearsed", set())
    budget = dpm.Budget(PROMISE)
    with pytest.raises(dpm.InvalidArgumentError, match=r"cannot be used for a .*: on public points"):
        asked(query, budget=budget)
    assert budget.history == ()
