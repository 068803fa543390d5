"""Every mean and every arithmetic from the command line, and tables that fit a terminal."""

import json
import pathlib

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from cli.shared import MEAN
from dpmanifold.cli import app
from dpmanifold.mechanisms import ESTIMANDS, MECHANISMS, get

CAP = ["--center", "0,0,1", "--radius", "0.7"]
PLAN = ["plan", "--space", "sphere", "--size", "2", "-n", "500", "--mu", "1"]


@pytest.fixture
def directions(folder):
    """Directions near a pole in d.npy, and their classes in c.npy."""
    rng = np.random.default_rng(0)
    np.save("d.npy", dpm.Sphere(2).exp_coords(np.array([0.0, 0.0, 1.0]), 0.2 * rng.standard_normal((200, 2))))
    np.save("c.npy", np.arange(200) % 2)
    return ["d.npy", "--space", "sphere", "--units", "each-record", "--mu", "1"]


@pytest.mark.parametrize("estimand", ["tangent", "extrinsic"])
def test_mean(invoke, directions, estimand):
    said = invoke("mean", *directions, *CAP, "--estimand", estimand, "--out", "r.json").stdout
    release = dpm.load("r.json")
    assert release.mechanism == f"{estimand}-mean-gaussian"
    assert f"the {estimand} mean" in said
    assert dpm.verify(release).ok
    wrong = invoke("mean", *directions, *CAP, "--estimand", "median", "--out", "no.json", code=2)
    assert "estimand must be one of frechet, tangent, extrinsic" in wrong.stderr
    assert not pathlib.Path("no.json").exists()


def test_regions_and_tests_of_tangent_means(invoke, directions):
    for words in (["region", *directions], ["two-sample-test", "d.npy", *directions]):
        said = invoke(*words, *CAP, "--estimand", "tangent", "--out", "r.json").stdout
        found = dpm.load("r.json")
        assert found.estimand == json.loads(pathlib.Path("r.json").read_text())["answers"]["estimand"] == "tangent"
        assert "tangent mean" in said
        assert dpm.verify(found).ok
        pathlib.Path("r.json").unlink()
        wrong = invoke(*words, *CAP, "--estimand", "extrinsic", "--out", "no.json", code=2)
        assert 'estimand must be "frechet" or "tangent"' in wrong.stderr
    planned = json.loads(
        invoke(
            *PLAN, "-n", "40", "--radius", "0.7", "--statistic", "two-sample-test", "--estimand", "tangent", "--json"
        ).stdout
    )
    assert [step["statistic"] for step in planned["steps"]] == ["joint moments"] * 2


def test_mean_without_a_ball(invoke, directions):
    words = ["mean", *directions, "--ball", "whole-space"]
    said = invoke(*words, "--estimand", "extrinsic", "--out", "r.json").stdout
    release = dpm.load("r.json")
    assert release.ball.is_whole
    assert release.mechanism == "extrinsic-mean-gaussian"
    assert "without a ball no error can be stated" in " ".join(said.split())
    assert dpm.Sphere(2).dist(release.value, np.array([0.0, 0.0, 1.0])) < 0.2  # noise of length 0.02
    for estimand in ([], ["--estimand", "tangent"]):
        assert "needs a ball" in invoke(*words, *estimand, "--out", "no.json", code=2).stderr
    assert not pathlib.Path("no.json").exists()


def test_means_by_class(invoke, directions):
    pathlib.Path("out").mkdir()
    words = ["--labels", "c.npy", "--classes", "0,1", "--estimand", "tangent", "--out", "out"]
    invoke("class-means", *directions, *CAP, *words)
    found = [dpm.load(path) for path in sorted(pathlib.Path("out").glob("*.json"))]
    assert [release.mechanism for release in found] == ["tangent-mean-gaussian"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_plan_states_the_mean(invoke, estimand):
    words = [*PLAN, "--radius", "0.7", "--estimand", estimand, "--error", "0.01", "--refine"]
    found = json.loads(invoke(*words, "--json").stdout)
    ball = dpm.Ball(dpm.Sphere(2), [1.0, 0.0, 0.0], 0.7)
    assert found["estimand"] == estimand
    assert {get(row["mechanism"]).estimand for row in found["rows"]} == {estimand}
    assert found["required_units"] == dpm.required_units(0.01, ball, dpm.GDP(1.0), estimand=estimand)
    assert ("distance from the Fréchet mean" in found["verdict"]) == (estimand != "frechet")
    assert found["refined"]["verdict"]
    assert found["verdict"] in invoke(*words).stdout


def test_plan_without_a_ball(invoke):
    words = [*PLAN, "--ball", "whole-space", "--estimand", "extrinsic"]
    assert "Without a ball no error can be promised" in json.loads(invoke(*words, "--json").stdout)["verdict"]
    assert "--refine would be skipped" in invoke(*words, "--refine").stdout
    assert "without a ball no error can be stated" in invoke(*words, "--error", "0.1", code=2).stderr


@pytest.mark.parametrize("arithmetic", ["exact", "float"])
def test_arithmetic(invoke, arithmetic):
    invoke(*MEAN, "--arithmetic", arithmetic, "--out", "r.json")
    assert dpm.load("r.json").arithmetic == arithmetic


def test_another_arithmetic_is_refused(invoke):
    said = invoke(*MEAN, "--arithmetic", "decimal", "--out", "r.json", code=2).stderr
    assert '"auto", "exact" or "float", got \'decimal\'' in said
    invoke(*MEAN, "--mechanism", "kng", "--arithmetic", "exact", "--out", "r.json", code=4)
    assert not pathlib.Path("r.json").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "--space", "spd", "--size", "3", "-n", "300", "--radius", "2.5", "--epsilon", "1", "--delta", "1e-6"],
        ["plan", "--space", "spd-riemann", "--size", "3", "-n", "9000", "--radius", "2.5", "--epsilon", "1", "--all"],
        ["plan", "--space", "spd-riemann", "--size", "3", "-n", "1234567", "--radius", "2.5", "--epsilon", "1"],
        [*PLAN, "--radius", "0.7"],
        [*PLAN, "--radius", "0.7", "--estimand", "extrinsic"],
        [*PLAN[:-4], "-n", "12345", "--epsilon", "1", "--delta", "1e-6", "--radius", "0.7", "--all"],
        ["mechanisms"],
    ],
    ids=" ".join,
)
def test_no_cell_is_cut_on_a_narrow_terminal(words):
    said = CliRunner().invoke(app, words, env={"COLUMNS": "80"})
    assert said.exit_code == 0
    assert "…" not in said.stdout
    assert "float" in said.stdout or words[0] == "mechanisms"
    if words[0] == "plan":
        assert "note: float:" in said.stdout


def test_mechanisms_are_listed_by_mean(invoke):
    rows = json.loads(invoke("mechanisms", "--json").stdout)
    assert {row["name"]: row["estimand"] for row in rows} == {m.name: m.estimand for m in MECHANISMS}
    said = invoke("mechanisms").stdout
    before, tangent, extrinsic = (said.index(word) for word in ("the Fréchet", "--estimand tangent", "--estimand extr"))
    assert before < said.index(" kng ") < tangent < said.index("tangent-mean-laplace") < extrinsic
    assert "drawn exactly" in said


# -------------------------------------------------------------------- noise shaped like the data


@pytest.fixture
def flat(folder):
    """Vectors in v.npy that hardly vary in two of four directions, and their covariance in s.npy."""
    v = np.random.default_rng(0).standard_normal((300, 4)) * [2.0, 0.5, 0.1, 0.1]
    np.save("v.npy", v)
    np.save("s.npy", np.cov(v.T))
    return ["v.npy", "--space", "euclidean", "--units", "each-record", "--mu", "1", "--radius", "10"]


@pytest.mark.parametrize("shape", ["s.npy", "private"])
def test_a_mean_with_shaped_noise(invoke, flat, shape):
    said = invoke("mean", *flat, "--noise-shape", shape, "--out", "r.json", "--html", "r.html").stdout
    release = dpm.load("r.json")
    assert release.statistic == "shaped mean"
    assert isinstance(release.request.options["noise_shape"], str) == (shape == "private")
    assert dpm.verify(release).ok
    assert "by direction" in " ".join(said.split())
    assert (
        "read as --noise-shape"
        in invoke("mean", *flat, "--noise-shape", "s.npy", "--out", "s.npy", "--force", code=2).stderr
    )
    words = ["plan", "--space", "euclidean", "--size", "4", "-n", "300", "--mu", "1", "--radius", "10"]
    assert "shape: about" in invoke(*words, "--noise-shape", shape).stdout
    record = json.loads(invoke(*words, "--noise-shape", shape, "--json").stdout)
    assert record["shaped"]["error"] < record["shaped"]["plain"]
    wrong = invoke("mean", *flat, "--noise-shape", shape, "--refine", "--out", "no.json", code=2)
    assert "refine must be False with a shape" in wrong.stderr
    assert (
        "the records themselves" in invoke("mean", *flat, "--noise-shape", "v.npy", "--out", "no.json", code=2).stderr
    )
