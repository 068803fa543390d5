"""The command that releases a median: what it writes verifies and shows."""

import json

import numpy as np


def test_a_median_from_the_command_line(invoke, tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[:40, 0] += 8.0
    np.save(tmp_path / "x.npy", X)
    about = ["--space", "euclidean", "--size", "2", "--radius", "10", "--center", "2,0"]
    out = tmp_path / "median.json"
    invoke(
        "median", tmp_path / "x.npy", *about, "--units", "each-record", "--mu", "1", "--out", out, "--quiet",
        "--npy", tmp_path / "median.npy",
    )  # fmt: skip
    record = json.loads(out.read_text())
    assert record["statistic"] == "median"
    assert record["steps"][0]["steps"][0]["steps"][0]["statistic"] == "ball"
    assert np.linalg.norm(np.load(tmp_path / "median.npy")) < 0.7
    assert "consistent" in invoke("verify", out).output
    assert "one step of" in invoke("show", out).output
    plain = tmp_path / "plain.json"
    invoke(
        "median", tmp_path / "x.npy", *about, "--units", "each-record", "--mu", "1", "--out", plain, "--no-refine",
        "--quiet",
    )  # fmt: skip
    assert json.loads(plain.read_text())["steps"][0]["steps"][0]["steps"] == []
    assert "median" in invoke("plan", *about, "-n", "300", "--mu", "1", "--statistic", "median").output
