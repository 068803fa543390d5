"""Every command prints on every terminal, whatever letters it knows."""

import pytest

import dpmanifold as dpm
from cli.shared import MEAN

PLAN = ["plan", "--space", "spd", "--size", "3", "-n", "300", "--radius", "2.5", "--epsilon", "1"]
COMMANDS = {
    "mean": [*MEAN, "--out", "out.json"],
    "interval": ["interval", *MEAN[1:], "--out", "out.json", "--source", "Fréchet’s 数"],
    "json": ["interval", *MEAN[1:], "--out", "out.json", "--source", "Fréchet’s 数", "--json"],
    "a strange name": [*MEAN, "--out", "dĳ数.json"],
    "plan": PLAN,
    "spaces": ["spaces"],
    "mechanisms": ["mechanisms"],
    "sensitivity": ["sensitivity", "--space", "sphere", "--size", "2", "--radius", "0.5", "-n", "10"],
    "help": ["mean", "--help"],
    "mistake": [*MEAN, "--out", "out.json", "--source", "é", "--mechanism", "ü"],
}


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("latin-1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_letter_is_too_much(folder, launch, command, encoding):
    result = launch(*COMMANDS[command], LC_ALL="C.UTF-8", PYTHONIOENCODING=encoding)
    assert result.returncode == (2 if command == "mistake" else 0), result.stderr
    assert b"Traceback" not in result.stderr
    text = (result.stdout + result.stderr).decode(encoding)  # it is in the encoding that was asked for
    if command == "plan":
        assert "<=0.2" in text
    if command == "interval" and encoding == "ascii":
        assert "Frechet variance" in text
        assert "'Frechet?s ?'" in text
    if "out.json" in COMMANDS[command] and command != "mistake":
        assert dpm.verify(dpm.load(folder / "out.json")).ok


def test_a_bare_c_locale_is_enough(folder, launch):
    result = launch(*COMMANDS["interval"][:-2], LC_ALL="C", LANG="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert result.returncode == 0, result.stderr
    assert result.stdout.decode("ascii").startswith("95 % confidence interval for a Frechet variance")


def test_the_columns_of_a_plan_and_the_limits_of_spaces_are_explained(invoke):
    assert "factor: exp(error)" in invoke(*PLAN).stdout
    assert "factor" not in invoke(*("sphere" if w == "spd" else "0.5" if w == "2.5" else w for w in PLAN)).stdout
    rows = {line.split()[0]: line for line in invoke("spaces").stdout.splitlines() if line.strip()}
    assert rows["hyperbolic"].rstrip().endswith("about 14")
    assert rows["spd-riemann"].rstrip().endswith("about 9")
    assert rows["spd"].rstrip().endswith("any")
    for space, inside, outside in (("hyperbolic", "14", "15"), ("spd-riemann", "9", "10")):
        words = ["sensitivity", "--space", space, "--size", "3", "-n", "1000", "--radius"]
        invoke(*words, inside)
        invoke(*words, outside, code=2)
