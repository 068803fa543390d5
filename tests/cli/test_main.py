import json

import pytest
from typer.testing import CliRunner

from dpmanifold import Ball, Sphere, __version__, linalg, sensitivity
from dpmanifold.cli import app

run = CliRunner().invoke


def test_version_and_help():
    assert run(app, ["--version"]).output.startswith(f"dpmanifold {__version__} ({linalg.level()}")
    assert "curved spaces" in run(app, ["--help"]).output


def test_spaces_as_a_table_and_as_json():
    assert "KendallShapes(8)" in run(app, ["spaces"], env={"COLUMNS": "200"}).output
    facts = json.loads(run(app, ["spaces", "--json"]).output)
    assert {fact["name"] for fact in facts} >= {"sphere", "spd", "kendall"}


def test_sensitivity_matches_the_library():
    arguments = ["sensitivity", "--space", "sphere", "--size", "2", "--radius", "0.6", "-n", "200"]
    found = json.loads(run(app, [*arguments, "--json"]).output)
    ball = Ball(Sphere(2), Sphere(2).origin, 0.6)
    mean = next(row for row in found["bounds"] if row["statistic"] == "mean")
    assert mean["ours"] == sensitivity.of_mean(ball, 200).value
    assert mean["tight"] == sensitivity.of_mean(ball, 200, bound="tight").value
    assert mean["bound"] == "sharp"
    shown = run(app, arguments, env={"COLUMNS": "200"}).output
    assert "0.35" in shown


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (["--radius", "1.2"], "radius must be below 0.7854"),
        (["--space", "torus"], "--space must be one of"),
        (["--size", "0"], "d must be a whole number"),
        (["-n", "0"], "n must be a whole number"),
    ],
)
def test_bad_arguments_exit_with_2_and_a_remedy(changed, words):
    arguments = ["sensitivity", "--space", "sphere", "--size", "2", "--radius", "0.6", "-n", "200", *changed]
    result = run(app, arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_version_says_that_an_outdated_library_is_not_used(monkeypatch, tmp_path):
    from dpmanifold.linalg.native import library

    monkeypatch.setattr(library, "_LIBRARY", None)
    if library._PATH.exists() and library.load(library._PATH) is not None:
        monkeypatch.setattr(library, "_VERSION", library._VERSION + 1)
        words = " ".join(run(app, ["--version"]).output.split())
        assert f"is of version {library._VERSION - 1}, not {library._VERSION}, and is not used" in words
        assert "reinstall dpmanifold, or run make kernels" in words
    monkeypatch.setattr(library, "_PATH", tmp_path / "broken.so")
    assert "kernels are not installed" in " ".join(run(app, ["--version"]).output.split())
    library._PATH.write_bytes(b"no library")
    assert "cannot be loaded, and is not used" in " ".join(run(app, ["--version"]).output.split())
