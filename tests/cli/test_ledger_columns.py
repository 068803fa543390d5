"""Registered covariates and classes on the command line: said once to the ledger, and compared before a spend."""

import json

import numpy as np
import pytest

import dpmanifold as dpm

pytestmark = pytest.mark.security

HOW = ["--space", "euclidean", "--units", "who", "--center", "0,0", "--radius", "3", "--ledger", "study.db"]
RANGE = ["--covariate-range", "7", "15"]


@pytest.fixture
def study(invoke):
    """A ledger, and 60 records of 30 people in ages.csv and groups.csv, the ages in ages.npy as well."""
    rng = np.random.default_rng(0)
    who, age, X = np.arange(60) // 2, rng.uniform(7, 15, 60).round(3), rng.normal(0.0, 0.5, (60, 2)).round(6)
    whole = {"comments": "", "delimiter": ",", "fmt": "%.6g"}
    np.savetxt("ages.csv", np.column_stack([who, age, X]), header="who,age,u,v", **whole)
    np.savetxt("groups.csv", np.column_stack([who, np.arange(60) // 30, X]), header="who,group,u,v", **whole)
    np.savetxt("mixed.csv", np.column_stack([who, np.arange(60) % 2, X]), header="who,group,u,v", **whole)
    np.save("ages.npy", np.loadtxt("ages.csv", delimiter=",", skiprows=1)[:, 1])
    invoke("ledger", "create", "study.db", "--witness", "study.witness")
    invoke("ledger", "population", "add", "cohort", "--unit", "participant", "--mu", "1", "--ledger", "study.db")

    def call(*words, code=0):
        told = invoke(*words, code=code)
        if code == 2:
            assert told.stderr.startswith("dpm: ")
            assert spent(invoke) is None
        return told

    return call


def spent(invoke):
    return json.loads(invoke("ledger", "population", "list", "--ledger", "study.db", "--json").stdout)[0]["spent"]


def register(name, file, *rest):
    return ["ledger", "dataset", "add", name, file, *HOW, *rest]


def asked(command, file, name, *rest):
    return [command, file, *HOW, "--mu", "0.3", "--dataset", name, "--out", f"{command}.json", "--force", *rest]


@pytest.mark.parametrize("columns", [[], ["--columns", "u,v"]])
def test_a_regression_on_registered_data_is_told_no_more(study, columns):
    study(*register("ages", "ages.csv", "--covariate", "age", *RANGE, *columns))
    study(*asked("regression", "ages.csv", "ages", "--key", "k", *columns))
    found = dpm.load("regression.json")
    assert (found.covariate_range, found.n, found.release.receipt.population) == ((7.0, 15.0), 30, "cohort")
    raw = ["--mu", "0.3", "--covariate", "age", *RANGE, "--key", "k", "--out", "raw.json", *columns]
    study("regression", "ages.csv", *HOW, *raw)  # the same request
    assert dpm.load("raw.json").to_dict() == found.to_dict()
    study(*asked("mean", "ages.csv", "ages", *columns))  # the age is no part of the records
    assert dpm.load("mean.json").n == 30
    assert "The release is consistent" in study("verify", "regression.json", "--ledger", "study.db").stdout


def test_what_is_wrong_about_a_covariate_is_said_in_the_words_of_options(study):
    half = study(*register("ages", "ages.csv", "--covariate", "age"), code=2).stderr
    assert "--covariate and --covariate-range go together" in half
    study(*register("ages", "ages.csv", "--covariate", "age", *RANGE, "--covariate-public"))
    study(*register("file", "ages.csv", "--covariate", "ages.npy", *RANGE, "--columns", "u,v"))
    study(*register("groups", "groups.csv", "--labels", "group", "--classes", "0,1"))
    wrong = {
        "--covariate-public is missing: X is registered with a public": ["ages.csv", "ages"],
        "--covariate must be age, as ages@1 was registered": ["ages.csv", "ages", "--covariate", "u"],
        "--covariate-range must be two numbers": ["ages.csv", "ages", "--covariate-public", "--covariate-range", 1, 1],
        "--covariate: groups@1 was registered without": ["groups.csv", "groups", "--covariate", "u"],
        "--covariate is missing: X is registered without one": ["groups.csv", "groups"],
        "--covariate: file@1 was registered with --covariate": ["ages.csv", "file", "--columns", "u,v"],
    }
    for words, (file, name, *rest) in wrong.items():
        assert words in study(*asked("regression", file, name, *rest), code=2).stderr
    told = study(*asked("mean", "ages.csv", "file", "--columns", "u,v"), code=2).stderr
    assert "register the data under another name without" in told
    bare = study("regression", "ages.csv", *HOW, "--mu", "0.3", "--out", "r.json", code=2).stderr
    assert "--covariate is missing" in bare
    study(*asked("regression", "ages.csv", "ages", "--covariate-public"))
    study(*asked("regression", "ages.csv", "file", "--covariate", "ages.npy", "--columns", "u,v"))


def test_a_covariate_that_changed_loses_the_release(study):
    study(*register("ages", "ages.csv", "--covariate", "age", *RANGE))
    table = np.loadtxt("ages.csv", delimiter=",", skiprows=1)
    table[0, 1] = 11.5
    np.savetxt("ages.csv", table, header="who,age,u,v", comments="", delimiter=",", fmt="%.6g")
    told = study(*asked("regression", "ages.csv", "ages"), code=1).stderr
    assert "lost" in told
    assert "age" not in told.replace("ages", "")
    assert spent(study) is not None


def test_two_classes_of_a_registered_data_set_are_tested(study):
    by_class = ["--labels", "group", "--classes", "0,1"]
    study(*register("groups", "groups.csv", *by_class))
    study(*register("mixed", "mixed.csv", *by_class))
    study(*register("secret", "groups.csv", *by_class, "--labels-private"))
    both = ["--classes", "0,1"]
    wrong = {
        "a unit has records in 2 groups": (3, asked("two-sample-test", "mixed.csv", "mixed", *both)),
        "registered with private labels": (2, asked("two-sample-test", "groups.csv", "secret", *both)),
        "--classes must be those": (2, asked("two-sample-test", "groups.csv", "groups", "--classes", "1,0")),
        "--classes must be two for a test": (2, asked("two-sample-test", "groups.csv", "groups", "--classes", "0,1,2")),
        "--labels goes with --classes": (2, asked("two-sample-test", "groups.csv", "groups", "--labels", "group")),
        "1 path was given": (2, asked("two-sample-test", "groups.csv", "groups")),
        "no --other-dataset": (2, asked("two-sample-test", "groups.csv", "groups", *both, "--other-dataset", "mixed")),
        "give --dataset": (2, ["two-sample-test", "groups.csv", *HOW, "--mu", "0.3", "--out", "t.json", *both]),
    }
    for words, (code, command) in wrong.items():
        assert words in study(*command, code=code).stderr
    assert spent(study) is None
    study(*asked("two-sample-test", "groups.csv", "groups", *both))
    study(*asked("mean", "groups.csv", "groups"))  # the group is no part of the records
    found = dpm.load("two-sample-test.json")
    assert [release.n for release in found.released] == [15, 15]
    assert "The release is consistent" in study("verify", "two-sample-test.json", "--ledger", "study.db").stdout


def test_a_data_set_is_asked_by_its_name_and_where_it_is(study):
    """All else that can be said of the records was said when they were registered."""
    study(*register("ages", "ages.csv", "--covariate", "age", *RANGE, "--columns", "u,v"))
    study(*register("groups", "groups.csv", "--labels", "group", "--classes", "0,1"))
    plain = ["--mu", "0.1", "--ledger", "study.db", "--out"]
    study("mean", "ages.csv", *plain, "mean.json", "--dataset", "ages")
    study("regression", "ages.csv", *plain, "regression.json", "--dataset", "ages")
    both = ["--labels", "group", "--classes", "0,1"]
    study("class-means", "groups.csv", *plain, "classes", "--dataset", "groups", *both)
    study("two-sample-test", "groups.csv", *plain, "test.json", "--dataset", "groups", "--classes", "0,1")
    assert (dpm.load("mean.json").n, dpm.load("regression.json").n) == (30, 30)


def test_what_is_said_otherwise_later_loses_nothing(study):
    study(*register("ages", "ages.csv", "--columns", "u,v"))
    study(*register("groups", "groups.csv", "--labels", "group", "--classes", "0,1"))
    wrong = {
        "--columns must be u,v, as ages@1 was registered": ["--columns", "u,age"],
        "--normalize: ages@1 was registered without": ["--normalize"],
        "--order: ages@1 was registered without": ["--order", "fsl"],
        "--units must be who, as ages@1 was registered": ["--units", "age"],
    }
    for words, said in wrong.items():
        assert words in study(*asked("mean", "ages.csv", "ages", *said), code=2).stderr
    other = ["--labels", "u", "--classes", "0,1"]
    told = study(*asked("k-sample-test", "groups.csv", "groups", *other), code=2).stderr
    assert "--labels must be group, as groups@1 was registered" in told


def test_a_release_would_be_lost_if_nobody_compared(study, monkeypatch):
    monkeypatch.setattr(dpm.data.Selection, "_as_registered", lambda self, known: self)
    study(*register("ages", "ages.csv", "--columns", "u,v"))
    assert "lost" in study(*asked("mean", "ages.csv", "ages", "--columns", "u,age"), code=1).stderr
    assert spent(study) is not None


@pytest.mark.parametrize("missing", ["--space", "--units"])
def test_without_a_data_set_all_is_to_be_said(study, missing):
    place = HOW.index(missing)
    said = ["mean", "ages.csv", *HOW[:place], *HOW[place + 2 :], "--mu", "0.1", "--out", "mean.json"]
    assert f"{missing} is missing" in study(*said, code=2).stderr
    again = ["ledger", "dataset", "add", "ages", "ages.csv", *HOW[:place], *HOW[place + 2 :]]
    assert f"{missing} is missing" in study(*again, code=2).stderr
