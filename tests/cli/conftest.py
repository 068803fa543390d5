"""What the tests of the command line share."""

import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from cli.shared import tensors
from dpmanifold.cli import app
from dpmanifold.noise import source as source_room


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with tensors in a.npy and b.npy."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", tensors(seed=0))
    np.save("b.npy", tensors(seed=1))
    return tmp_path


@pytest.fixture
def invoke(folder):
    """Run a command in this process."""

    def call(*words, code=0):
        result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return call


@pytest.fixture
def launch(folder):
    """Run a command in a process of its own, after the Python of `first` and with `changes` of the environment."""

    def call(*words, first="", stdout=subprocess.PIPE, stderr=subprocess.PIPE, **changes):
        code = f"{first}\nfrom dpmanifold.cli import app\napp({[str(word) for word in words]!r}, prog_name='dpm')"
        environment = {**os.environ, "COLUMNS": "160", **changes}
        return subprocess.run(
            [sys.executable, "-c", code], cwd=folder, env=environment, stdout=stdout, stderr=stderr, check=False
        )

    return call


@pytest.fixture
def same_bits(monkeypatch):
    """Give the operating system's bits from a generator that starts anew for every command."""
    state = {}

    def start():
        state["generator"] = np.random.default_rng(2026)

    def words(self, n):
        return state["generator"].integers(0, 2**64, n, dtype=np.uint64)

    monkeypatch.setattr(source_room.SystemSource, "_words", words)
    return start
