"""`dpm pga`: what it writes is what the function returns, and it can be shown, checked and planned."""

import json
import pathlib

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from cli.shared import tensors
from dpmanifold.cli import app

ABOUT = ["--space", "spd", "--units", "each-record", "--center", "0.7", "--radius", "2.5", "--out", "c.json"]
ASKED = ["pga", "a.npy", *ABOUT]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", tensors())
    return lambda *words: CliRunner().invoke(app, list(words))


def test_everything_is_written_read_shown_and_verified(run):
    done = run(*ASKED, "--mu", "1", "--count", "2", "--level", "0.8", "--refine", "--npy", "c.npy")
    assert done.exit_code == 0, done.output
    assert "component 2" in done.output
    found = dpm.load("c.json")
    assert (type(found), found.level, found.count) == (dpm.PrincipalComponents, 0.8, 2)
    assert np.array_equal(np.load("c.npy"), found.directions)
    assert run("verify", "c.json").exit_code == 0
    assert "principal components" in run("show", "c.json").output


def test_bad_counts_and_pure_promises_are_refused(run):
    assert run(*ASKED, "--mu", "1", "--count", "0").exit_code == 2
    assert run(*ASKED, "--epsilon", "1").exit_code == 4
    assert not pathlib.Path("c.json").exists()


def test_it_can_be_planned(run):
    about = ["--space", "spd", "--size", "3", "--radius", "2.5", "--mu", "1", "--statistic", "pga"]
    planned = run("plan", "-n", "200", *about, "--json")
    assert planned.exit_code == 0, planned.output
    assert [step["statistic"] for step in json.loads(planned.stdout)["steps"]] == ["mean", "signs", "components"]
