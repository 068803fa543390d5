"""One plan for every private call: it foresees what the call states, and refuses what the call refuses."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, ApproxDP, Ball, Euclidean, PureDP, Sphere, plan
from dpmanifold.cli import app
from dpmanifold.stats.query import QUERIES
from laws.data import in_ball
from registries import changed

SPHERE = Ball(Sphere(2), [0.0, 0.6, 0.8], 0.6)
FAR = Ball(Euclidean(1), [0.0], 50.0)
CALLS = {
    "mean": dpm.private_mean,
    "variance": dpm.private_variance,
    "ball": dpm.private_ball,
    "region": dpm.private_region,
    "variance-interval": dpm.private_variance_interval,
}


def all_releases(release):
    """The release and its steps, the first drawn first."""
    return [*(found for step in release.steps for found in all_releases(step)), release]


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("name", [name for name in CALLS if name != "mean"])
@pytest.mark.parametrize("privacy", [GDP(1.0), ApproxDP(1.0, 1e-6)], ids=["gdp", "approximate"])
def test_an_outlook_foresees_every_draw(name, privacy, refine):
    """Names, mechanisms, shares and rules as released; scales equal, or above where the outlook says at most."""
    options = {"refine": True} if refine and name in ("region", "variance-interval") else {}
    X = np.random.default_rng(1).normal(3.0, 0.05, (3000, 1))
    result = CALLS[name](X, FAR, privacy, units=EACH_RECORD, rng=0, **options)
    drawn = all_releases(result.released[0])
    steps = plan(3000, FAR, privacy, statistic=name, **options).steps
    assert len(steps) == len(drawn)
    for step, release in zip(steps, drawn, strict=True):
        assert (step.statistic, step.mechanism, step.rule, step.share) == (
            release.statistic, release.mechanism, release.rule, release.share,
        )  # fmt: skip
        assert release.scale <= step.scale * (1 + 1e-9)
        if step.exact and release.ball == FAR:
            assert release.scale == step.scale


def test_a_test_is_planned_for_both_groups():
    X, Y = (in_ball(SPHERE, n, np.random.default_rng(n)) for n in (60, 50))
    result = dpm.private_two_sample_test(X, Y, SPHERE, GDP(1.0), units=EACH_RECORD)
    steps = plan((60, 50), SPHERE, GDP(1.0), statistic="two-sample-test").steps
    assert [step.scale for step in steps if step.statistic == "mean"] == [mean.scale for mean in result.means]
    with pytest.raises(dpm.InvalidArgumentError, match="pair"):
        plan(60, SPHERE, GDP(1.0), statistic="two-sample-test")


@pytest.mark.parametrize(
    ("name", "ball", "privacy", "options"),
    [
        ("region", SPHERE, PureDP(1.0), {}),
        ("variance-interval", SPHERE, PureDP(1.0), {}),
        ("ball", SPHERE, GDP(1e-4), {}),
        ("ball", SPHERE, GDP(1.0), {"coverage": 2.0}),
        ("variance", SPHERE, GDP(1.0), {"mechanism": "extrinsic-gaussian"}),
        ("variance", SPHERE, GDP(1.0), {"mechanism": "kng", "arithmetic": "exact"}),
        ("region", SPHERE, GDP(1e-300), {}),
        ("variance-interval", SPHERE, GDP(1.0), {"refine": "yes"}),
        *((name, SPHERE, GDP(1.0), {"arithmetic": "nonsense"}) for name in CALLS),
        ("mean", SPHERE, GDP(1.0), {"mechanism": "kng", "arithmetic": "exact"}),
        *(("mean", SPHERE, GDP(1.0), {name: "yes"}) for name in ("refine", "project", "shrinkage", "estimand")),
    ],
)
def test_an_outlook_refuses_what_the_call_refuses(name, ball, privacy, options):
    """In the same words, before there are any data."""
    X = in_ball(ball, 40, np.random.default_rng(0))
    with pytest.raises(dpm.DPManifoldError) as planned:
        plan(40, ball, privacy, statistic=name, **options)
    with pytest.raises(dpm.DPManifoldError) as called:
        CALLS[name](X, ball, privacy, units=EACH_RECORD, **options)
    assert type(planned.value) is type(called.value)
    assert str(planned.value) == str(called.value)


def test_the_mean_keeps_its_own_plan():
    assert plan(500, SPHERE, PureDP(1.0)).rows == dpm.plan_mean(500, SPHERE, PureDP(1.0)).rows
    (step,) = plan(500, SPHERE, PureDP(1.0), mechanism="riemannian-laplace").steps
    best = dpm.plan_mean(500, SPHERE, PureDP(1.0)).best
    assert (step.mechanism, step.scale, step.error) == (best.mechanism, best.scale, best.error)
    with pytest.raises(dpm.InvalidArgumentError, match="no option"):
        plan(500, SPHERE, GDP(1.0), statistic="variance", colour="red")


@pytest.mark.parametrize("n", [500, (500, 400)], ids=["mean", "two-sample-test"])
def test_options_that_there_are_not_are_refused_in_words(n):
    name = "mean" if n == 500 else "two-sample-test"
    for option in ("colour", "header", "counts"):
        with pytest.raises(dpm.InvalidArgumentError, match=f"{option} is no option of the statistic '{name}', which"):
            plan(n, SPHERE, GDP(1.0), statistic=name, **{option: 1})
    with pytest.raises(dpm.InvalidArgumentError, match='arithmetic must be "auto"'):
        plan(n, SPHERE, GDP(1.0), statistic=name, arithmetic="nonsense")
    with pytest.raises(dpm.InvalidArgumentError, match="fill is no option"):
        plan(500, SPHERE, GDP(1.0), mechanism="riemannian-gaussian", fill=0.2)


def test_what_compares_groups_says_so_itself(monkeypatch):
    """No name is asked for: another conclusion about two groups is planned by its entry alone."""
    contest = replace(QUERIES.get("two-sample-test"), name="contest")
    changed(monkeypatch, QUERIES, contest=contest)
    assert plan((60, 50), SPHERE, GDP(1.0), statistic="contest").n == 110
    names = "two-sample-test", "contest", "k-sample-test", "mean", "region", "variance"
    assert [QUERIES.get(name).sample.groups for name in names] == [2, 2, math.inf, 1, 1, 1]
    with pytest.raises(dpm.InvalidArgumentError, match="pair"):
        plan(60, SPHERE, GDP(1.0), statistic="contest")


def test_what_a_mean_takes_its_plan_takes():
    usual = plan(500, SPHERE, GDP(1.0))
    assert plan(500, SPHERE, GDP(1.0), project=False, shrinkage=None, estimand="frechet").rows == usual.rows
    assert plan(500, SPHERE, GDP(1.0), fill=0.2, refine=True).refined.fill == 0.2


@pytest.mark.parametrize("statistic", ["mean", *CALLS, "two-sample-test", "second moment"])
@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_a_plan_says_how_noise_would_be_drawn(statistic, arithmetic):
    n = (3000, 3000) if statistic == "two-sample-test" else 3000
    ball = Ball(Euclidean(2), [0.0, 0.0], 5.0)
    found = plan(n, ball, GDP(1.0), statistic=statistic, arithmetic=arithmetic)
    rows = found.rows if isinstance(found, dpm.Plan) else found.steps
    assert {row.arithmetic for row in rows} == {arithmetic}


def test_exact_draws_alone_are_planned_where_they_are_asked_for():
    usual, exact = (plan(500, SPHERE, GDP(1.0), everything=True, arithmetic=word) for word in ("auto", "exact"))
    assert exact.rows == tuple(row for row in usual.rows if row.arithmetic == "exact")
    others = {row.mechanism for row in usual.rows} - {row.mechanism for row in exact.rows}
    assert others
    assert all("cannot be drawn exactly" in exact.refused[name] for name in others)


@pytest.mark.parametrize(
    "name", ["variance", "ball", "region", "variance-interval", "two-sample-test", "second-moment"]
)
def test_command_line(name, tmp_path):
    words = ["plan", "--statistic", name, "-n", "3000", "--space", "euclidean", "--size", "2", "--radius", "5"]
    words += ["--center", "0,0", "--mu", "1", *(["-n", "3000"] if name == "two-sample-test" else [])]
    shown = CliRunner().invoke(app, [*words, "--picture", str(tmp_path / "plan.png")])
    assert shown.exit_code == 0, shown.output
    assert "Expect noise" in shown.output
    assert (tmp_path / "plan.png").stat().st_size > 0
    record = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert record["steps"][-1]["error"] > 0
    refused = CliRunner().invoke(app, [*words, "--error", "0.1"])
    assert refused.exit_code == 2
    assert "--error" in refused.output
