"""The papers are a distribution of their own: found where it is installed, named where it is not, in step with ours."""

import pathlib
import tomllib
from importlib import metadata

import pytest
from typer.testing import CliRunner

import dpmanifold
import dpmanifold_papers.command
from dpmanifold.cli import app, public as shell
from dpmanifold.registry import Registry

ROOT = pathlib.Path(__file__).parents[2]


def test_the_command_is_found_by_its_entry_point():
    (point,) = metadata.entry_points(group="dpmanifold.papers")
    assert point.load() is dpmanifold_papers.command.reproduce
    assert shell.PAPERS.names() == ["reproduce"]


def test_without_the_papers_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shell, "PAPERS", Registry("command of the papers", "dpmanifold.nobody"))
    refused = CliRunner().invoke(app, ["reproduce", "list"])
    assert refused.exit_code == 2
    said = " ".join(refused.stderr.split())
    assert f"pip install dpmanifold-papers=={dpmanifold.__version__}" in said
    assert "pip install --editable ./papers" in said


def test_the_package_does_not_hold_the_papers():
    assert not list((ROOT / "src").rglob("*reimherr*"))
    assert "dpmanifold_papers" not in "".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "src" / "dpmanifold").rglob("*.py")
    )


@pytest.fixture
def project():
    return tomllib.loads((ROOT / "papers" / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_both_distributions_have_one_version_and_one_licence(project):
    assert project["version"] == dpmanifold.__version__
    assert project["dependencies"] == [f"dpmanifold[all]=={dpmanifold.__version__}"]
    assert (ROOT / "papers" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
