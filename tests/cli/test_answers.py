"""Machines get what people see: every number of the terminal is in the JSON, which is always JSON."""

import json
import pathlib
import re

import numpy as np
import pytest

import dpmanifold as dpm
from cli.shared import MEAN

COMMANDS = {
    "mean": [*MEAN, "--out", "r.json"],
    "mean, refined": [*MEAN, "--refine", "--out", "r.json"],
    "variance": ["variance", *MEAN[1:], "--out", "r.json"],
    "ball": ["ball", *MEAN[1:], "--out", "r.json"],
    "region": ["region", *MEAN[1:], "--out", "r.json"],
    "interval": ["variance-interval", *MEAN[1:], "--out", "r.json"],
    "test": ["two-sample-test", "a.npy", "b.npy", *MEAN[2:], "--out", "r.json"],
    "a swamped mean": ["mean", "a.npy", *MEAN[2:-1], "1e-4", "--out", "r.json"],
    "a swamped region": ["region", "a.npy", *MEAN[2:-1], "1e-4", "--out", "r.json"],
    "a swamped test": ["two-sample-test", "a.npy", "b.npy", *MEAN[2:-1], "1e-4", "--out", "r.json"],
}


def strict(text):
    """Read JSON as other languages do: NaN and Infinity are no numbers."""

    def refuse(name):
        raise AssertionError(f"{name} in JSON")

    return json.loads(text, parse_constant=refuse)


def numbers_in(entry):
    if isinstance(entry, dict):
        return [number for part in entry.values() for number in numbers_in(part)]
    if isinstance(entry, list):
        return [number for part in entry for number in numbers_in(part)]
    return [float(entry)] if isinstance(entry, (int, float)) and not isinstance(entry, bool) else []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_number_of_the_terminal_is_in_the_json(invoke, command):
    record = strict(invoke(*COMMANDS[command], "--json").stdout)
    assert record == strict(pathlib.Path("r.json").read_text())
    assert record == strict(invoke("show", "r.json", "--json").stdout)
    shown = invoke("show", "r.json").stdout
    told = np.array(numbers_in(record))
    percent = np.concatenate([told, 100 * told])
    for text in re.findall(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?(?![\w/])", shown):
        number = float(text.replace(",", ""))
        digits = len(text.partition("e")[0].partition(".")[2])
        step = 10.0 ** (-digits + (int(text.partition("e")[2]) if "e" in text else 0))
        known = number in (95, 99.9) or np.isclose(percent, number, rtol=0, atol=0.501 * step).any()
        assert known, f"{text} is shown and not in the JSON:\n{shown}"


def test_the_answers_are_those_of_the_library(invoke):
    invoke(*COMMANDS["test"])
    test = dpm.load("r.json")
    answers = strict(pathlib.Path("r.json").read_text())["answers"]
    for name in ("p_value", "statistic", "rejects", "distance", "low", "high", "privacy_share", "dominant_source"):
        assert answers[name] == getattr(test, name)
    invoke(*COMMANDS["interval"], "--force")
    interval = dpm.load("r.json")
    answers = strict(pathlib.Path("r.json").read_text())["answers"]
    assert (answers["value"], answers["low"], answers["high"]) == (interval.value, interval.low, interval.high)
    invoke(*COMMANDS["region"], "--force")
    region = dpm.load("r.json")
    answers = strict(pathlib.Path("r.json").read_text())["answers"]
    assert answers["error"] == region.expected_error
    assert answers["half_axes"] == region.axes()[0].tolist()
    assert answers["center"] == region.center.tolist()
    invoke(*COMMANDS["mean"], "--force")
    mean = dpm.load("r.json")
    answers = strict(pathlib.Path("r.json").read_text())["answers"]
    assert answers["noise_error"] == mean.noise_error()
    assert answers["noise_quantiles"]["0.95"] == float(mean.noise_quantile(0.95))


def test_an_infinite_answer_is_null():
    space = dpm.Euclidean(1)
    release = dpm.private_mean(
        np.zeros((5, 1)), dpm.Ball(space, [0.0], 1.0), dpm.PureDP(1.0), units=dpm.EACH_RECORD, project=False, rng=0
    )
    assert release.answers()["noise_error"] > 0
    wild = type(release)(**{**vars(release), "scale": float("inf")})
    assert wild.answers()["noise_quantiles"]["0.95"] is None
    json.dumps(wild.answers(), allow_nan=False)


def test_answers_need_not_be_there_and_forged_ones_are_found(invoke):
    invoke(*COMMANDS["interval"])
    record = strict(pathlib.Path("r.json").read_text())
    del record["answers"]
    pathlib.Path("bare.json").write_text(json.dumps(record))
    invoke("verify", "bare.json")
    for changes in ({"low": 0.123}, {"low": None}, {"private": False}, {"extra": 1.0}):
        forged = {**strict(pathlib.Path("r.json").read_text())}
        forged["answers"] = {**forged["answers"], **changes}
        pathlib.Path("forged.json").write_text(json.dumps(forged))
        for command in ("verify", "show"):
            assert "is not what follows from the releases" in invoke(command, "forged.json", code=3).stderr


def test_verify_says_to_machines_what_it_says_to_people(invoke):
    invoke(*COMMANDS["mean"], "--seed", "1")
    said = invoke("verify", "r.json").stdout
    verdict = strict(invoke("verify", "r.json", "--json").stdout)
    assert (verdict["ok"], verdict["private"]) == (True, False)
    for text in (verdict["statement"], *verdict["recomputed"], *verdict["wrong"], *verdict["cannot_know"]):
        assert text in said


def test_a_damaged_number_is_described_in_words(invoke):
    invoke(*COMMANDS["mean"])
    record = strict(pathlib.Path("r.json").read_text())
    pathlib.Path("r.json").write_text(json.dumps({**record, "n": "200"}))
    message = invoke("show", "r.json", code=3).stderr
    assert "n must be a whole number" in message
    assert "class" not in message
