"""Every command prints on every terminal, whatever letters it knows."""

import os
import subprocess
import sys

import numpy as np
import pytest

import dpmanifold as dpm
from cli.shared import MEAN, tensors

PLAN = ["plan", "--space", "spd", "--size", "3", "-n", "300", "--radius", "2.5", "--epsilon", "1"]
COMMANDS = {
    "mean": [*MEAN, "--out", "out.json"],
    "interval": ["variance-interval", *MEAN[1:], "--out", "out.json", "--source", "Fréchet’s 数"],
    "json": ["variance-interval", *MEAN[1:], "--out", "out.json", "--source", "Fréchet’s 数", "--json"],
    "a strange name": [*MEAN, "--out", "dĳ数.json"],
    "plan": PLAN,
    "spaces": ["spaces"],
    "mechanisms": ["mechanisms"],
    "sensitivity": ["sensitivity", "--space", "sphere", "--size", "2", "--radius", "0.5", "-n", "10"],
    "help": ["mean", "--help"],
    "mistake": [*MEAN, "--out", "out.json", "--source", "é", "--mechanism", "ü"],
}


# Each in a process of its own, forked from one that has imported everything but done nothing yet.
EVERY_COMMAND = """
import os
from dpmanifold.cli import app
for name, words in {commands!r}.items():
    child = os.fork()
    if child == 0:
        os.chdir(name)
        for stream, file in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), stream)
        app(words, prog_name="dpm")
    with open(os.path.join(name, "code"), "w") as file:
        file.write(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""


@pytest.fixture(scope="module", params=["ascii", pytest.param("latin-1", marks=pytest.mark.slow)])
def printed(request, tmp_path_factory):
    """An encoding, and a folder with what every command printed and wrote in it."""
    folder = tmp_path_factory.mktemp("printed")
    tried = {item.callspec.params.get("command") for item in request.session.items if hasattr(item, "callspec")}
    commands = {name: words for name, words in COMMANDS.items() if name in tried}  # without those of the other tier
    for name in commands:
        (folder / name).mkdir()
        np.save(folder / name / "a.npy", tensors())
    environment = {**os.environ, "COLUMNS": "160", "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": request.param}
    code = EVERY_COMMAND.format(commands=commands)
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True)
    return request.param, folder


@pytest.mark.parametrize("command", COMMANDS)
def test_no_letter_is_too_much(printed, command):
    encoding, folder = printed[0], printed[1] / command
    stdout, stderr = (folder / "stdout").read_bytes(), (folder / "stderr").read_bytes()
    assert int((folder / "code").read_text()) == (2 if command == "mistake" else 0), stderr
    assert b"Traceback" not in stderr
    assert stderr if command == "mistake" else stdout
    text = (stdout + stderr).decode(encoding)  # it is in the encoding that was asked for
    if command == "plan":
        assert "<=0.2" in text
    if command == "interval" and encoding == "ascii":
        assert "Frechet variance" in text
        assert "'Frechet?s ?'" in text
    if "out.json" in COMMANDS[command] and command != "mistake":
        assert dpm.verify(dpm.load(folder / "out.json")).ok


@pytest.mark.slow
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
