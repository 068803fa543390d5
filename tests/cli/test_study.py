"""A study file: written once, read by every command and by Python."""

import json
import pathlib
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from cli.test_help import COMMANDS
from dpmanifold.cli import app, study_options
from dpmanifold.data import Selection, Study
from dpmanifold.errors import InvalidArgumentError

ABOUT = ("--space", "sphere", "--units", "subject", "--columns", "x,y,z", "--radius", "0.7", "--center", "0,0,1",
         "--source", "an atlas")  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    directions = np.random.default_rng(0).normal([0.0, 0.0, 1.0], 0.1, (120, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rows = [f"s{i // 2},{20 + i % 50},{x:.9f},{y:.9f},{z:.9f}" for i, (x, y, z) in enumerate(directions)]
    (tmp_path / "visits.csv").write_text("\n".join(["subject,age,x,y,z", *rows]) + "\n")

    def call(*words, code=0, stdin=None):
        done = CliRunner().invoke(app, words, input=stdin, env={"COLUMNS": "200"})
        assert done.exit_code == code, done.output
        return done

    return call


def test_from_a_file_to_a_report_nothing_is_typed_twice(run):
    run("init", "visits.csv", *ABOUT)
    assert "Nothing is wrong" in run("check").stdout
    assert "error" in run("plan", "-n", "60", "--mu", "1").stdout
    run("mean", "--mu", "1", "-o", "mean.json", "--html", "mean.html")
    release = dpm.load("mean.json")
    assert (release.n, release.unit, repr(release.ball.space)) == (60, "unit", "Sphere(2)")
    assert release.ball.source == "an atlas"


def test_what_is_typed_goes_before_the_study(run):
    run("init", "visits.csv", *ABOUT)
    run("mean", "--mu", "1", "--radius", "0.6", "-o", "wide.json", "-q")
    ball = dpm.load("wide.json").ball
    assert (ball.radius, ball.source) == (0.6, "an atlas")
    np.testing.assert_allclose(ball.center, [0, 0, 1])
    run("ball", "--mu", "3", "-o", "ball.json", "-q", "--confirm")
    run("mean", "--mu", "1", "--ball", "ball.json", "-o", "small.json", "-q", "--confirm")
    assert dpm.load("small.json").ball.radius == dpm.load("ball.json").value.radius
    run("mean", "--mu", "1", "--units", "each-record", "-o", "rows.json", "-q")
    assert dpm.load("rows.json").n == 120


def test_the_ledger_of_a_study_pays(run):
    run("ledger", "create", "study.db", "--witness", "study.witness")
    run("init", "visits.csv", *ABOUT, "--ledger", "study.db", "--population", "cohort")
    run("ledger", "population", "add", "cohort", "--unit", "subject", "--mu", "1")
    run("ledger", "dataset", "add", "visits")
    run("mean", "--mu", "0.5", "--dataset", "visits", "-o", "mean.json", "-q")
    assert dpm.load("mean.json").receipt.population == "cohort"
    assert "mean of visits@1" in run("ledger", "population", "history").stdout
    run("ledger", "audit")


def test_another_folder_reads_the_study_by_its_name(run, tmp_path, monkeypatch):
    run("init", "visits.csv", *ABOUT)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "Missing argument" in run("mean", "--mu", "1", "-o", "mean.json", code=2).output
    run("--study", "../study.toml", "mean", "--mu", "1", "-o", "mean.json", "-q")
    assert dpm.load("mean.json").n == 60
    read = Study.read("../study.toml").selection
    assert read.open().units == "subject"


def test_python_reads_it_and_writes_it(run, tmp_path):
    run("init", "visits.csv", *ABOUT, "--ledger", "study.db", "--covariate", "age")
    found = Study.read()
    again = tmp_path / "again.toml"
    found.write(again)
    assert Study.read(again).selection.to_dict() == {
        **found.selection.to_dict(),
        "paths": [str(tmp_path / "visits.csv")],
    }
    assert tomllib.loads(again.read_text())["ledger"] == {"path": "study.db"}
    ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5)
    Study(Selection(["visits.csv"], "Sphere(2)", ball=ball)).write(again)
    assert Study.read(again).selection.ball.radius == 0.5


def test_what_is_left_out_is_asked_for(run, monkeypatch):
    assert "--units is missing" in run("init", "visits.csv", "--space", "sphere", code=2).output
    monkeypatch.setattr(study_options, "_on_a_terminal", lambda: True)
    done = run("init", "visits.csv", "--columns", "x,y,z", stdin="sphere\n\n0.7\n0,0,1\nan atlas\n")
    assert "columns: subject, age, x, y, z" in done.stdout
    record = tomllib.loads(pathlib.Path("study.toml").read_text())
    assert record == {
        "paths": ["visits.csv"], "space": "Sphere(2)", "units": "subject", "columns": ["x", "y", "z"],
        "ball": {"radius": 0.7, "center": "0,0,1", "source": "an atlas"},
    }  # fmt: skip
    assert "exists" in run("init", "visits.csv", code=2).output


def test_a_ball_that_cannot_be_is_refused_before_it_is_written(run, monkeypatch, tmp_path):
    words = ("init", "visits.csv", "--space", "sphere", "--units", "subject", "--columns", "x,y,z")
    assert "center" in run(*words, "--radius", "0.7", code=2).output  # directions have no usual one
    monkeypatch.setattr(study_options, "_on_a_terminal", lambda: True)
    assert "radius must be a number" in run(*words, code=2, stdin="wide\n0,0,1\n\n").output
    assert not (tmp_path / "study.toml").exists()


def test_what_is_the_studys_is_said_on_a_terminal(run, monkeypatch):
    run("init", "visits.csv", *ABOUT)
    assert run("mean", "--mu", "1", "-o", "a.json").stderr == ""
    monkeypatch.setattr(study_options, "on_a_terminal", lambda: True)
    said = run("mean", "other.csv", "--mu", "1", "--radius", "0.6", "-o", "b.json", code=2).stderr
    assert "of the study file" in said
    assert "--units" in said.partition(".")[0]
    assert "PATH" not in said.partition(".")[0]
    assert "--radius" not in said.partition(".")[0]
    assert run("mean", "--mu", "1", "-o", "c.json", "-q").stderr == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("paths = [", "is no TOML"),
        ("path = 'visits.csv'", "a selection has no 'path'"),
        ("[ball]\nradii = 2", "takes radius, center, source, ball"),
        ("[ledger]\npath = 7", "as text"),
        ("ball = 3", "table [ball]"),
    ],
)
def test_a_wrong_study_is_refused(run, tmp_path, text, said):
    (tmp_path / "study.toml").write_text(text)
    done = run("mean", "--mu", "1", "-o", "mean.json", code=2)
    assert said in " ".join(done.stderr.split())
    with pytest.raises(InvalidArgumentError):
        Study.read()


def test_a_study_that_is_not_there_is_refused(run):
    assert "none.toml cannot be read" in run("--study", "none.toml", "spaces", code=2).stderr


def test_commands_of_the_tables_exist():
    """And they have the options that a study gives them."""
    for name, given in study_options._ONLY.items():
        assert {one.name for one in COMMANDS[name].params} >= set(given), name
    for group, verbs in study_options._GROUPS.items():
        assert {name.split()[-1] for name in COMMANDS if name.startswith(f"ledger {group} ")} == set(verbs)
    defaults = study_options.Defaults(Study(Selection(["a"], "sphere")))
    assert json.loads(json.dumps(defaults.get("mean")))["path"] == ["a"]
