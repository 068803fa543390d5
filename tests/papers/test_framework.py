"""The machinery of experiments: repeatable, resumable, parallel."""

import json
import pathlib

import numpy as np
import pytest
from typer.testing import CliRunner

from dpmanifold.cli import app
from dpmanifold.errors import InvalidArgumentError
from dpmanifold_papers import registry, runner
from dpmanifold_papers.framework import Experiment, ResultTable, Sample, Task, data_file, group


class Coin(Experiment):
    """A tiny experiment."""

    name = "test/coin"
    title = "Throws of a coin"

    def tasks(self, quick):
        return [Task({"coin": i, "throws": 10 if quick else 100}) for i in range(3)]

    def run(self, task, data):
        rng = task.generator(self.name)
        return [{"coin": task.settings["coin"], "heads": float(rng.random(task.settings["throws"]).round().mean())}]

    def tables(self, rows):
        return [ResultTable(["coin", "heads"], [[str(r["coin"]), f"{r['heads']:.3f}"] for r in rows], "Heads")]

    def figure(self, rows):
        from matplotlib.figure import Figure

        figure = Figure()
        figure.add_subplot().plot([row["heads"] for row in rows])
        return figure


@pytest.fixture
def coin(monkeypatch):
    experiment = Coin()
    monkeypatch.setitem(registry.EXPERIMENTS, Coin.name, experiment)
    return experiment


def test_results_are_written_and_repeatable(coin, tmp_path):
    first = runner.run_experiment(coin, tmp_path / "a", processes=1)
    second = runner.run_experiment(coin, tmp_path / "b", processes=1)
    assert first == second
    folder = tmp_path / "a" / "test-coin"
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "table.md").read_text().startswith("*Heads*")
    assert len((folder / "results.csv").read_text().splitlines()) == 4


def test_an_interrupted_run_goes_on(coin, tmp_path, monkeypatch):
    calls = []
    true = Coin.run

    def counted(self, task, data):
        calls.append(task.settings["coin"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return true(self, task, data)

    monkeypatch.setattr(Coin, "run", counted)
    with pytest.raises(KeyboardInterrupt):
        runner.run_experiment(coin, tmp_path, processes=1)
    seen = []
    rows = runner.run_experiment(coin, tmp_path, processes=1, progress=lambda done, total: seen.append((done, total)))
    assert calls == [0, 1, 1, 2]  # the first task was not run again
    assert seen[0] == (1.0, 3.0)
    assert seen[-1] == (3.0, 3.0)
    monkeypatch.setattr(Coin, "run", true)
    assert rows == runner.run_experiment(coin, tmp_path / "again", processes=1)


def test_helpers(tmp_path):
    assert str(Sample([0.95])) == "0.95"
    assert "±" in str(Sample([1e-6, 2e-6, 3e-6]))
    assert group([{"a": 1}, {"a": 2}, {"a": 1}], "a")[(1,)] == [{"a": 1}, {"a": 1}]
    with pytest.raises(InvalidArgumentError, match=r"reads x.npz \(somewhere\)"):
        data_file(tmp_path, "x.npz", "somewhere")
    with pytest.raises(InvalidArgumentError, match="no data folder"):
        data_file(None, "x.npz", "somewhere")
    task = Task({"k": 3})
    assert task.generator("a").random() == task.generator("a").random()
    assert task.generator("a").random() != task.generator("b").random()
    assert not np.isnan(Sample([1.0, 2.0]).error)


def test_command(coin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "test/coin" in CliRunner().invoke(app, ["reproduce", "list"]).stdout
    result = CliRunner().invoke(app, ["reproduce", "test/coin", "--quick", "--processes", "1", "--out", "r"])
    assert result.exit_code == 0, result.output
    assert "| coin | heads |" in result.stdout
    assert json.loads(next(pathlib.Path("r/test-coin/quick").glob("*.json")).read_text())
    assert CliRunner().invoke(app, ["reproduce", "nothing"]).exit_code == 2
