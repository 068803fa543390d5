"""dpm k-sample-test, and the plan of groups."""

import json

import numpy as np
import pytest

import dpmanifold as dpm

PLAN = ["plan", "--space", "euclidean", "--size", "2", "--radius", "1", "--mu", "1"]
WORDS = ["k-sample-test", "table.csv", "--space", "euclidean", "--columns", "x,y", "--radius", "1", "--mu", "1"]


@pytest.fixture
def table(folder):
    rng = np.random.default_rng(0)
    rows = [f"{x},{y},p{i // 2},{'abc'[i // 2 % 3]}" for i, (x, y) in enumerate(0.1 * rng.standard_normal((240, 2)))]
    (folder / "table.csv").write_text("\n".join(["x,y,person,group", *rows]))


def test_groups_are_compared_written_checked_and_shown(invoke, table):
    how = [*WORDS, "--units", "person", "--labels", "group"]
    said = invoke(*how, "--classes", "a,b,c", "--out", "g.json", "--picture", "g.png", "--html", "g.html").stdout
    assert "p-value" in said
    assert "a: 40, b: 40, c: 40" in said
    found = dpm.load("g.json")
    assert isinstance(found, dpm.KSampleTest)
    assert invoke("verify", "g.json").stdout.startswith("The release is consistent")
    assert f"{found.p_value:.4g}" in invoke("show", "g.json").stdout
    record = json.loads(invoke(*how, "--classes", "a,b,c", "--out", "h.json", "--json").stdout)
    assert len(record["answers"]["pairs"]) == 3


@pytest.mark.parametrize(
    ("classes", "code", "words"),
    [
        ("a", 2, "--classes must be a list of two or more distinct names, got 1 name"),
        ("a,b", 3, "outside the public classes"),
        ("a,b,c,d", 3, "has no records"),
    ],
)
def test_wrong_classes_are_refused(invoke, table, folder, classes, code, words):
    how = [*WORDS, "--units", "person", "--labels", "group", "--classes", classes, "--out", "g.json"]
    assert words in invoke(*how, code=code).output
    assert not (folder / "g.json").exists()


def test_somebody_in_two_groups_is_a_fault_of_the_data(invoke, table, folder):
    (folder / "ids.csv").write_text("\n".join(["person", *(f"p{i // 4}" for i in range(240))]))
    how = [*WORDS, "--units", "ids.csv:person", "--labels", "group", "--classes", "a,b,c", "--out", "g.json"]
    assert "a unit has records in 2 groups" in " ".join(invoke(*how, code=3).output.split())
    assert not (folder / "g.json").exists()


def test_a_plan_takes_the_number_of_each_group(invoke):
    numbers = ["-n", "100", "-n", "80", "-n", "60"]
    found = json.loads(invoke(*PLAN, *numbers, "--statistic", "k-sample-test", "--json").stdout)
    assert (found["n"], len(found["steps"])) == (240, 3)
    assert "once for each of the groups" in invoke(*PLAN, "-n", "100", "--statistic", "k-sample-test", code=2).output
    assert "-n is given 3 times" in invoke(*PLAN, *numbers, "--statistic", "mean", code=2).output


def test_a_plan_of_a_test_takes_two_numbers(invoke):
    numbers = ["-n", "40", "-n", "100"]
    found = json.loads(invoke(*PLAN, *numbers, "--statistic", "two-sample-test", "--json").stdout)
    assert (found["n"], [step["group"] for step in found["steps"]]) == (
        140, ["group 1 (40 units)", "group 2 (100 units)"],
    )  # fmt: skip
    for wrong in (["-n", "40"], [*numbers, "-n", "7"]):
        assert (
            "twice: once for each of the two groups"
            in invoke(*PLAN, *wrong, "--statistic", "two-sample-test", code=2).output
        )
