"""Files that earlier versions wrote: each still loads, verifies as it did when it was written, draws and reports.

`old_files/results` holds one result of every kind as version 0.1.0 wrote it, with a ball's provenance under its first
name; four of them were altered afterwards, which loading cannot see and `verify` must. `expected.json` keeps what that
version said about each. Nobody rewrites these files: a release can be drawn once.
"""

import json
import pathlib

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import plots
from dpmanifold.cli.arguments import read_ball
from dpmanifold.report import html_report

FILES = pathlib.Path(__file__).parent / "old_files"
EXPECTED = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))
NAMES = sorted(path.stem for path in (FILES / "results").glob("*.json"))
BALLS = sorted((FILES / "balls").glob("*.json"))
SPACES = ("euclidean", "hyperbolic", "shapes", "spd-logeuclid", "spd-riemann", "sphere")
# Pictures and reports take longest: these draw each time, the others in the slow tier.
DRAWN = {
    *(f"mean-{space}-gdp" for space in SPACES),
    *(f"region-{space}" for space in SPACES),
    "altered-scale", "ball-sphere-gdp", "interval-spd-logeuclid", "mean-euclidean-refined-gdp",
    "mean-sphere-extrinsic-gaussian-gdp", "mean-sphere-whole", "test-shapes", "variance-spd-riemann-gdp",
}  # fmt: skip


def record_of(name):
    return json.loads((FILES / "results" / f"{name}.json").read_text(encoding="utf-8"))


def load(name):
    return dpm.load(FILES / "results" / f"{name}.json")


def test_every_file_is_expected_and_every_kind_is_there():
    assert sorted(EXPECTED) == NAMES
    assert {entry["kind"] for entry in EXPECTED.values()} == {
        "Release",
        "ConfidenceRegion",
        "VarianceInterval",
        "TwoSampleTest",
    }
    assert [name for name in NAMES if not EXPECTED[name]["ok"]] == [name for name in NAMES if "altered" in name]


@pytest.mark.parametrize("name", NAMES)
def test_an_old_result_loads_and_verifies_as_it_did(name):
    result, expected = load(name), EXPECTED[name]
    assert type(result).__name__ == expected["kind"]
    found = dpm.verify(result)
    assert (found.ok, found.private) == (expected["ok"], expected["private"]), found.wrong


@pytest.mark.parametrize("name", NAMES)
def test_an_old_result_says_the_same_numbers(name, tmp_path):
    """Value, promise, scale, bound and steps come out of a second save as they went in."""
    load(name).save(tmp_path / "again.json")
    again = numbers(json.loads((tmp_path / "again.json").read_text(encoding="utf-8")))
    assert {path: value for path, value in numbers(record_of(name)).items() if again.get(path) != value} == {}


def numbers(entry, path=()):
    """Every number of a record by where it stands, answers aside: they follow from the rest."""
    parts = list(entry.items() if isinstance(entry, dict) else enumerate(entry) if isinstance(entry, list) else ())
    found = {(*path, key): value for key, value in parts if isinstance(value, (bool, int, float))}
    for key, value in parts:
        if key != "answers":
            found |= numbers(value, (*path, key))
    return found


@pytest.mark.parametrize("path", BALLS, ids=lambda path: path.stem)
def test_an_old_public_ball_is_read_with_its_provenance(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    ball = read_ball(str(path))
    assert ball.radius == record["radius"]
    center = np.stack([ball.center.real, ball.center.imag]) if np.iscomplexobj(ball.center) else ball.center
    assert np.array_equal(center, record["center"])
    assert ball.source == record["origin"]


def check_people_can_read(name):
    result = load(name)
    if EXPECTED[name]["draws"]:
        assert plots.show(result).axes
    else:
        with pytest.raises(dpm.InvalidArgumentError, match="baseline"):
            plots.show(result)
    page = html_report(result)
    assert page.startswith("<!DOCTYPE html>")
    assert repr(result)


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_old_results_of_every_kind_draw_and_report(name):
    check_people_can_read(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(NAMES) - DRAWN))
def test_every_old_result_draws_and_reports(name):
    check_people_can_read(name)
