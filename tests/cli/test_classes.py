"""dpm lda and dpm predict: a discriminant from files, and what it says of other files."""

import csv
import json
import pathlib
import re

import numpy as np
import pytest

import dpmanifold as dpm

NAMES = ["calm", "loud"]
WORDS = ["lda", "people.csv", "--space", "euclidean", "--columns", "x,y", "--units", "person", "--radius", "6",
         "--center", "center.npy", "--mu", "2", "--labels", "mood", "--classes", "calm,loud"]  # fmt: skip


def write(path, labels, seed=0):
    rng = np.random.default_rng(seed)
    lines = ["person,mood,x,y"]
    for number, label in enumerate(labels):
        x, y = rng.normal([3.0 * (label == "loud"), 0.0], 1.0)
        lines.append(f"p{number:04d},{label},{x:.6f},{y:.6f}")
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


@pytest.fixture
def people(folder):
    write("people.csv", np.array(NAMES)[np.arange(1500) % 2])
    write("others.csv", np.array(NAMES)[np.arange(400) % 2], seed=1)
    np.save("center.npy", [1.5, 0.0])
    return folder


def test_a_discriminant_is_released_checked_shown_and_used(people, invoke):
    told = invoke(*WORDS, "--out", "found.json", "--html", "found.html").stdout
    assert "Linear discriminant of 2 classes" in told
    assert "protected with the records" in told
    assert "consistent" in invoke("verify", "found.json").stdout
    assert "discriminant" in invoke("show", "found.json").stdout
    page = pathlib.Path("found.html").read_text()
    assert "Linear discriminant" in page
    assert "data:image/png" in page or "<svg" in page
    said = invoke("predict", "found.json", "others.csv", "--columns", "x,y", "--labels", "mood", "--out", "told.csv")
    score = float(
        re.search(r"400 records classified, ([0-9.]+) % of them correctly", said.stdout.replace("%", " %")).group(1)
    )
    found = dpm.load("found.json")
    rows = list(csv.reader(pathlib.Path("told.csv").read_text().splitlines()))
    assert rows[0] == ["class", "p(calm)", "p(loud)"]
    X = np.loadtxt("others.csv", delimiter=",", skiprows=1, usecols=(2, 3))
    assert [row[0] for row in rows[1:]] == found.predict(X).tolist()
    np.testing.assert_allclose([[float(p) for p in row[1:]] for row in rows[1:]], found.predict_proba(X))
    assert score == pytest.approx(100 * found.score(X, np.array(NAMES)[np.arange(400) % 2]), abs=0.06)
    assert score > 85
    bare = invoke("predict", "found.json", "others.csv", "--columns", "x,y", "--out", "again.csv", "--json").stdout
    assert json.loads(bare) == {"records": 400, "score": None, "written": "again.csv"}
    invoke("predict", "found.json", "others.csv", "--columns", "x,y", "--units", "person", "--out", "named.csv")
    named = list(csv.reader(pathlib.Path("named.csv").read_text().splitlines()))
    assert named[0] == ["unit", *rows[0]]
    assert [row[0] for row in named[1:]] == [f"p{number:04d}" for number in range(400)]
    assert [row[1:] for row in named] == rows


def test_an_empty_class_shows_nowhere(people, invoke):
    """Neither in the exit code nor in words; numbers are those of noisy counts."""
    write("people.csv", ["calm"] * 1500)
    told = invoke(*WORDS, "--out", "found.json").stdout
    assert "loud: " in told
    assert "no records" not in told
    assert invoke(*WORDS, "--labels-public", "--out", "public.json", code=3).stderr.startswith("dpm: class 'loud' has")
    assert not pathlib.Path("public.json").exists()


def test_public_labels_and_plans(people, invoke):
    assert "(public)" in invoke(*WORDS, "--labels-public", "--refine", "--out", "found.json").stdout
    plan = ["plan", "-n", "1500", "--space", "euclidean", "--size", "2", "--radius", "6", "--mu", "2"]
    for classes in ("calm,loud", "2"):
        assert "class moments" in invoke(*plan, "--statistic", "lda", "--classes", classes).stdout
    assert "classes" in invoke(*plan, "--statistic", "lda", "--classes", "1", code=2).stderr
    assert "classes" in invoke(*plan, "--classes", "2", code=2).stderr
    assert "--classes must be given" in invoke(*plan, "--statistic", "lda", code=2).stderr


def test_what_cannot_be_is_refused(people, invoke):
    invoke(*WORDS, "--out", "found.json")
    assert "--classes must be a list of two or more" in invoke(*WORDS[:-1], "calm", "--out", "a.json", code=2).stderr
    assert "'loud' is there twice" in invoke(*WORDS[:-1], "calm,loud,loud", "--out", "a.json", code=2).stderr
    predict = ["predict", "found.json", "others.csv", "--columns", "x,y"]
    assert "must end in .csv" in invoke(*predict, "--out", "told.npy", code=2).stderr
    assert "is the file read as" in invoke(*predict, "--out", "others.csv", "--force", code=2).stderr
    other = invoke(*predict, "--labels", "person", "--out", "told.csv", code=3).stderr
    assert "--labels person: 400 of 400 are none of the classes (calm, loud), such as 'p0000'" in " ".join(
        other.split()
    )
    invoke("mean", *WORDS[1:-4], "--out", "mean.json")
    wrong = invoke("predict", "mean.json", *predict[2:], "--out", "told.csv", code=3).stderr
    assert "mean.json holds another result" in wrong
    assert "Give what dpm lda wrote" in " ".join(wrong.split())
    record = json.loads(pathlib.Path("found.json").read_text())
    record["release"]["scale"] /= 2
    del record["answers"]
    pathlib.Path("weaker.json").write_text(json.dumps(record))
    wrong = invoke("predict", "weaker.json", "others.csv", "--columns", "x,y", "--out", "told.csv", code=4)
    assert "NOT CONSISTENT" in wrong.stderr
    assert not pathlib.Path("told.csv").exists()
