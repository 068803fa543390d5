"""What help says: few options first, the rest behind them, and the short ones."""

import json

import pytest
import typer
from typer.testing import CliRunner

from dpmanifold.cli import app
from dpmanifold.cli.options import ADVANCED

MOST = 25  # that somebody reads before asking


def _commands(of, path=()):
    """Yield each command with the words that call it."""
    for name, command in getattr(of, "commands", {}).items():
        yield from [(" ".join((*path, name)), command)] if not hasattr(command, "commands") else ()
        yield from _commands(command, (*path, name))


COMMANDS = dict(_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", COMMANDS)
def test_few_options_stand_before_the_advanced_ones(name):
    options = [one for one in COMMANDS[name].params if one.param_type_name == "option"]
    panels = [getattr(one, "rich_help_panel", None) for one in options]
    usual = [one for one, panel in zip(options, panels, strict=True) if panel != ADVANCED]
    assert len(usual) + 1 <= MOST, [one.name for one in usual]  # and --help
    assert ADVANCED not in list(dict.fromkeys(filter(None, panels)))[:-1]  # as help orders them
    assert not [one.name for one in options if one.required and one not in usual]


def test_short_options_are_the_usual_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("x,y\n" + "0.1,0.2\n0.3,-0.1\n" * 40)

    def run(*words):
        done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.output
        return done

    assert "--mechanism" in run("mean", "-h").stdout
    words = ("mean", "x.csv", "--space", "euclidean", "--units", "each-record", "--radius", "1", "--mu", "1")
    assert run(*words, "-q", "-o", "mean.json").stderr == ""
    assert json.loads((tmp_path / "mean.json").read_text())["n"] == 80
    assert json.loads(run(*words, "-q", "-o", "-").stdout)["n"] == 80
    assert not (tmp_path / "-").exists()


def test_choices_are_listed_and_completed():
    option = next(one for one in COMMANDS["mean"].params if one.name == "shrinkage")
    assert option.metavar == "auto|james-stein|none"
    found = option.shell_complete(typer.Context(COMMANDS["mean"]), "j")
    assert [str(getattr(one, "value", one)) for one in found] == ["james-stein"]
