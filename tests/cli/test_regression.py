"""Regressions from the command line: covariates in a column, a file or a key, and what is refused."""

import pathlib

import numpy as np
import pytest

import dpmanifold as dpm

ASKED = ["--space", "euclidean", "--columns", "u,v", "--units", "who", "--center", "0,0", "--radius", "2", "--mu", "2"]
RANGE = ["--covariate-range", "7", "150"]


@pytest.fixture
def table(folder):
    """Two records of each of 150 people in a.csv, with ages that are not whole; the same ages in ages.npy."""
    rng = np.random.default_rng(0)
    age = rng.uniform(7, 150, 300).round(3)
    X = np.stack([0.01 * age - 0.7, 0 * age], axis=1) + 0.2 * rng.standard_normal((300, 2))
    columns = np.column_stack([np.arange(300) // 2, age, X])
    np.savetxt("a.csv", columns, delimiter=",", header="who,age,u,v", comments="", fmt=["%d", "%.3f", "%.9f", "%.9f"])
    np.save("ages.npy", age)
    return "a.csv"


def test_a_column_or_a_file_holds_the_covariate(invoke, table):
    said = invoke("regression", table, *ASKED, "--covariate", "age", *RANGE, "--out", "r.json")
    found = dpm.load("r.json")
    assert isinstance(found, dpm.GeodesicRegression)
    assert (found.covariate_range, found.n, found.release.unit) == ((7.0, 150.0), 150, "unit")
    assert "per unit of the covariate" in said.stdout
    assert "The release is consistent" in invoke("verify", "r.json").stdout
    assert "Geodesic regression" in invoke("show", "r.json").stdout
    asked = [*ASKED, "--covariate", "ages.npy", *RANGE, "--covariate-public"]
    invoke("regression", table, *asked, "--npy", "curve.npy", "--picture", "r.png", "--out", "s.json")
    other = dpm.load("s.json")
    assert other.covariate_public
    assert not found.release.steps
    assert not other.release.steps
    invoke("regression", table, *ASKED, "--covariate", "age", *RANGE, "--refine", "--out", "t.json")
    assert [step.statistic for step in dpm.load("t.json").release.steps] == ["radius"]
    assert np.load("curve.npy").shape == (5, 2)
    assert pathlib.Path("r.png").exists()


def test_tables_whose_numbers_are_no_text(invoke, table):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.read_csv(table)
    frame.to_parquet("a.parquet")
    invoke("regression", "a.parquet", *ASKED, "--covariate", "age", *RANGE, "--out", "p.json", "--seed", "1")
    invoke("regression", table, *ASKED, "--covariate", "age", *RANGE, "--out", "c.json", "--seed", "1")
    assert dpm.load("p.json").to_dict() == dpm.load("c.json").to_dict()
    asked = ["--space", "euclidean", "--units", "who", "--center", "0,0", "--radius", "2", "--mu", "2", "--seed", "1"]
    invoke("regression", table, *asked, "--covariate", "age", *RANGE, "--out", "d.json")
    assert dpm.load("d.json").to_dict() == dpm.load("c.json").to_dict()


def test_what_is_wrong_is_said_in_the_words_of_options(invoke, table):
    no_range = ["--covariate-range", "1", "1"]
    wrong = invoke("regression", table, *ASKED, "--covariate", "age", *no_range, "--out", "no.json", code=2)
    assert "--covariate-range must be two numbers" in wrong.stderr
    wrong = invoke("regression", table, *ASKED, "--covariate", "height", *RANGE, "--out", "no.json", code=2)
    assert "height" in wrong.stderr
    assert "one number per record, or a column" in wrong.stderr
    turned = ["--covariate-range", "80", "18"]
    wrong = invoke("regression", table, *ASKED, "--covariate", "age", *turned, "--out", "no.json", code=2)
    assert "got (80.0, 18.0)" in wrong.stderr
    ages = np.load("ages.npy")
    ages[5] = np.nan
    np.save("ages.npy", ages)
    asked = [table, *ASKED, "--covariate", "ages.npy"]
    wrong = invoke("regression", *asked, *RANGE, "--out", "no.json", code=3)
    assert "--invalid center" in wrong.stderr
    wrong = invoke(
        "regression", *asked, "--covariate-range", "0", "1", "--invalid", "center", "--out", "no.json", code=3
    )
    assert "More than half of the covariates" in wrong.stderr
    assert not pathlib.Path("no.json").exists()
    told = invoke("regression", *asked, *RANGE, "--invalid", "center", "--notice", "--out", "r.json")
    assert "1 of 300 covariates are no numbers" in told.stderr


def test_plan(invoke):
    asked = ["-n", "300", "--space", "euclidean", "--size", "2", "--radius", "2", "--mu", "1"]
    said = invoke("plan", *asked, "--statistic", "regression")
    assert [line.split()[0] for line in said.stdout.splitlines() if " gaussian " in line] == ["regression"]
    said = invoke("plan", *asked, "--statistic", "regression", "--refine")
    assert [line.split()[0] for line in said.stdout.splitlines() if "gaussian" in line][:3] == [
        "regression", "radius", "regression",
    ]  # fmt: skip
