"""The steward's commands on both engines: the same words, the same exit codes."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from cli.shared import tensors
from dpmanifold.cli import app

pytestmark = pytest.mark.security

BALL = ["--space", "spd", "--units", "each-record", "--center", "0.7", "--radius", "2.5"]


@pytest.fixture
def run(ledger_url, tmp_path, monkeypatch):
    """Run a command in a folder of its own, on a new ledger."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPM_LEDGER", ledger_url)
    np.save("a.npy", tensors(seed=0))

    def call(*words, code=0):
        result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})
        assert result.exit_code == code, result.output
        return result

    return call


def test_from_a_population_to_an_export(run):
    run("ledger", "population", "add", "cohort", "--unit", "participant", "--mu", "1")
    run("ledger", "population", "grant", "ada", "--mu", "0.5", "--principal", "steward")
    run("ledger", "dataset", "add", "dti", "a.npy", *BALL, "--principal", "ada")
    words = ["mean", "a.npy", *BALL, "--mu", "0.3", "--principal", "ada", "--key", "k", "--dataset", "dti"]
    run(*words, "--out", "mean.json")
    run(*words, "--out", "again.json")
    assert dpm.load("mean.json").to_dict() == dpm.load("again.json").to_dict()
    run(*words[:-4], "--dataset", "dti", "--mu", "0.45", "--out", "more.json", code=4)  # 0.3 and 0.45 are more than 0.5
    page = json.loads(run("ledger", "population", "history", "--json").stdout)
    assert [(line["what"], line["data"], line["state"]) for line in page["releases"]] == [
        ("mean", ["dti@1"], "released")
    ]
    left = json.loads(run("ledger", "population", "grants", "--json").stdout)[0]["remaining"]
    assert left == dpm.GDP("0.4").to_dict()
    run("ledger", "population", "cap", "--mu", "2", "--reason", "second consent")
    run("ledger", "audit")
    run("ledger", "export", "study.jsonl")
    run("ledger", "verify-export", "study.jsonl")
    run("verify", "mean.json", "--ledger", "study.jsonl")


def test_a_server_that_is_not_there_is_told_in_a_sentence_without_its_password(run):
    address = "postgresql://ada:hunter2@127.0.0.1:9/study"
    result = run("ledger", "population", "list", "--ledger", address, code=4)
    assert result.stderr.count("\n") == 1
    assert "hunter2" not in result.output
    unknown = run("ledger", "population", "list", "--ledger", "mysql://ada:hunter2@server/study", code=2)
    assert "hunter2" not in unknown.output
    assert "postgresql://" in unknown.stderr
