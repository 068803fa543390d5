"""A space of several sizes that a script registers: commands take them, and records tell them where they can."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli import app
from dpmanifold.manifolds import SPACES, space_from_text
from extension.concentrations import Concentrations
from laws.space_laws import SpaceLaws
from registries import changed


class TestConcentrations(SpaceLaws):
    space = Concentrations(2, 3)
    spread = 3.0
    longest = 5.0


class TestSingleNumber(SpaceLaws):
    space = Concentrations(1, 1)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Hold the one line that adds a space, forgotten after each test."""
    changed(monkeypatch, SPACES)
    SPACES.register("Concentrations", Concentrations)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with the same tables as .npy and as .csv with a column of people."""
    monkeypatch.chdir(tmp_path)
    tables = records(400)
    np.save("tables.npy", tables)
    rows = (",".join([f"p{i // 2}", *map(repr, row)]) for i, row in enumerate(tables.reshape(400, 6).tolist()))
    (tmp_path / "tables.csv").write_text("\n".join(["person,a1,a2,a3,b1,b2,b3", *rows]) + "\n")
    return tmp_path


def records(n):
    space = Concentrations(2, 3)
    return space.exp_coords(2 * space.origin, 0.3 * np.random.default_rng(0).standard_normal((n, 6)))


def ball():
    return dpm.Ball(Concentrations(2, 3), 2 * np.ones((2, 3)), 2.0, source="the instrument's range")


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})
    assert result.exit_code == code, result.output
    return result.output


def test_the_plan_knows_what_the_noise_is():
    plan = dpm.plan_mean(400, ball(), dpm.GDP(1.0))
    assert plan.rows
    # Flat, so that the noise is that of the same ball in Euclidean space.
    flat = dpm.plan_mean(400, dpm.Ball(dpm.Euclidean(6), np.zeros(6), 2.0), dpm.GDP(1.0))
    assert plan.rows[0].error == pytest.approx(flat.rows[0].error, rel=1e-9)
    assert plan.rows[0].factor == pytest.approx(np.exp(plan.rows[0].error))


def test_the_mean_is_the_geometric_one():
    X = records(400)
    np.testing.assert_allclose(dpm.frechet.mean(X, ball()).value, np.exp(np.log(X).mean(axis=0)), rtol=1e-12)


def test_the_command_line_plans(folder):
    words = ["plan", "-n", 400, "--radius", 2, "--mu", 1]
    said = run(*words, "--space", "concentrations", "--size", "2,3")
    assert "has every concentration within this factor" in said
    assert run(*words, "--space", "Concentrations(2, 3)") == said
    assert "concentrations" in run("spaces")
    assert "brings its size with it" in run(*words, "--space", "Concentrations(2, 3)", "--size", "2,3", code=2)
    assert "which has 2 sizes" in run(*words, "--space", "concentrations", "--size", "6", code=2)
    assert "must be a whole number" in run(*words, "--space", "concentrations", "--size", "2x3", code=2)


def test_the_command_line_releases_from_an_array_and_from_a_table(folder):
    about = ["--space", "concentrations", "--radius", 2, "--center", "2,2,2,2,2,2", "--mu", 1]
    run("mean", "tables.npy", *about, "--units", "each-record", "--out", "a.json", "--html", "a.html")
    run("mean", "tables.csv", *about, "--size", "2,3", "--columns", "a*,b*", "--units", "person", "--out", "b.json",
        "--picture", "b.png")  # fmt: skip
    for name, n in (("a.json", 400), ("b.json", 200)):
        release = dpm.load(name)
        assert (repr(release.ball.space), release.n) == ("Concentrations(2, 3)", n)
        run("verify", name)
    assert "concentrations of 3 substances at 2 times" in (folder / "a.html").read_text()
    # Six columns do not say whether they are 2 x 3 or 3 x 2.
    said = run("mean", "tables.csv", *about, "--columns", "a*,b*", "--units", "person", "--out", "c.json", code=2)
    assert "do not tell which concentrations they are of" in " ".join(said.split())


def test_without_a_center_it_is_the_origin(folder):
    run("mean", "tables.npy", "--space", "concentrations", "--radius", 4, "--mu", 1, "--units", "each-record",
        "--out", "a.json")  # fmt: skip
    np.testing.assert_array_equal(dpm.load("a.json").ball.center, np.ones((2, 3)))


def test_records_that_are_no_points_are_refused_in_its_own_words(folder):
    tables = np.load("tables.npy")
    tables[7, 1, 2] = 0.0
    with pytest.raises(dpm.InvalidDataError, match="index 7 has an entry that is not positive"):
        dpm.private_mean(tables, ball(), dpm.GDP(1.0), units=dpm.EACH_RECORD)


def test_an_entry_point_is_as_good_as_the_line(offer):
    """A distribution that offers the space is found when a file names it."""
    SPACES._items.pop("Concentrations")
    with pytest.raises(dpm.InvalidDataError, match="not a space"):
        space_from_text("Concentrations(2, 3)")
    offer(SPACES, "concentrations of substances", Concentrations)
    assert space_from_text("Concentrations(2, 3)") == Concentrations(2, 3)
    assert json.loads(run("spaces", "--json"))[-1]["example"] == "Concentrations(2, 3)"
