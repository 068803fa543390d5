"""`--out -` is standard output: one release as JSON there, words for people on stderr, and never a file named "-"."""

import json
import pathlib
import subprocess

import numpy as np
import pytest

import dpmanifold as dpm

BALL = ["--space", "spd", "--radius", "3", "--mu", "1", "--units", "each-record"]


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("mean", []),
        ("variance", []),
        ("region", ["--json"]),
        ("ball", []),
        ("statistic", []),
    ],
)
def test_a_release_goes_to_stdout_and_words_to_stderr(invoke, command, more):
    words = ["statistic", "mean", "a.npy"] if command == "statistic" else [command, "a.npy"]
    done = invoke(*words, *BALL, "--out", "-", *more)
    record = json.loads(done.stdout)
    pathlib.Path("saved.json").write_text(done.stdout)
    assert dpm.load("saved.json").to_dict() == record
    assert dpm.verify(dpm.load("saved.json")).ok
    assert "promise" in done.stderr
    assert "written" not in done.stderr
    assert not pathlib.Path("-").exists()


def test_a_public_ball_does_as_well(invoke):
    done = invoke("ball", "a.npy", "--space", "spd", "--public", "--out", "-")
    assert json.loads(done.stdout)["space"] == "SPD(3)"
    assert "Ball(" in done.stderr


def test_a_view_is_still_written_to_its_file(invoke):
    done = invoke("mean", "a.npy", *BALL, "--out", "-", "--npy", "mean.npy")
    assert np.load("mean.npy").tolist() == json.loads(done.stdout)["value"]["point"]
    assert "written      mean.npy" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("mean", "a.npy", *BALL, "--out", "m.json", "--npy", "-"),
        ("class-means", "a.npy", *BALL, "--labels", "l.npy", "--classes", "0,1", "--out", "-"),
        ("descriptors", "images.npy", "--out", "-"),
        ("demo", "--out", "-"),
        ("reproduce", "list", "--out", "-"),
        ("ledger", "export", "-"),
    ],
)
def test_what_is_no_single_release_is_refused_before_anything_is_read(invoke, words):
    done = invoke(*words, code=2)
    assert "- is the name of standard output" in done.stderr
    assert not pathlib.Path("-").exists()


def test_where_stdout_is_closed_nothing_is_drawn(folder, launch):
    done = launch("mean", "a.npy", *BALL, "--out", "-", first="import sys; sys.stdout = None")
    assert done.returncode == 2
    assert b"standard output, which is closed" in done.stderr


def test_where_stdout_is_full_the_release_is_on_stderr(folder, launch):
    with open("/dev/full", "wb") as full:
        done = launch("mean", "a.npy", *BALL, "--out", "-", stdout=full)
    assert done.returncode == 1
    text, _, message = done.stderr.decode().partition("dpm: ")
    assert json.loads(text)["statistic"] == "mean"
    assert "could not be written (No space left on device). It is printed instead" in message


def test_a_pipe_gets_what_a_file_gets(folder, launch):
    done = launch("mean", "a.npy", *BALL, "--out", "-", "--seed", "1", stderr=subprocess.DEVNULL)
    launch("mean", "a.npy", *BALL, "--out", "m.json", "--seed", "1")
    assert json.loads(done.stdout) == json.loads((folder / "m.json").read_text())
