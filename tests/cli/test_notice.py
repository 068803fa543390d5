"""What the curator is told: on a terminal or when asked, on stderr alone, and before anything is spent."""

import os
import pathlib
import pty

import numpy as np
import pytest

from cli.shared import MEAN, tensors

pytestmark = pytest.mark.security

WORDS = "FOR THE CURATOR ALONE"
REST = MEAN[2:]
COMMANDS = {
    "mean": ["mean", "few.npy"],
    "variance": ["variance", "few.npy"],
    "region": ["region", "few.npy", "--picture", "out.png", "--html", "out.html"],
    "interval": ["variance-interval", "few.npy"],
    "test": ["two-sample-test", "few.npy", "b.npy"],
    "ball": ["ball", "few.npy"],
    "means": ["class-means", "few.npy", "--labels", "labels.npy", "--classes", "0,1"],
}


@pytest.fixture
def records(folder):
    """Write records of which 3, and of which 150 of 200, lie outside the ball."""
    X = tensors()
    X[:3] *= 1e4
    np.save("few.npy", X)
    X[:150] *= 1e4
    np.save("most.npy", X)
    np.save("labels.npy", np.arange(200) % 2)


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("command", COMMANDS)
def test_the_notice_comes_when_asked_for_and_on_stderr_alone(records, invoke, command, as_json):
    words = [*COMMANDS[command], *REST, *(["--json"] if as_json else [])]
    told = invoke(*words, "--out", "told", "--notice")
    assert f"dpm: {WORDS}" in told.stderr
    assert "of 200 records lie outside the ball" in told.stderr or "of 100 records" in told.stderr
    assert "CURATOR" not in told.stdout
    for path in [
        path for path in pathlib.Path().rglob("*") if path.suffix in (".json", ".html") or path.name == "told"
    ]:
        if path.is_file():
            assert "CURATOR" not in path.read_text()
    silent = invoke(*words, "--out", "silent", "--force")  # stderr is no terminal here
    assert silent.stderr == ""
    assert invoke(*words, "--out", "quiet", "--quiet", "--force").stderr == ""


def test_a_terminal_gets_the_notice_and_quiet_keeps_it_away(records, launch):
    def heard(*words):
        leader, follower = pty.openpty()
        result = launch("mean", "few.npy", *REST, *words, stderr=follower, TERM="dumb")
        os.close(follower)
        text = b""
        try:
            while chunk := os.read(leader, 4096):
                text += chunk
        except OSError:  # the end of a terminal
            pass
        os.close(leader)
        assert result.returncode == 0
        assert b"CURATOR" not in result.stdout
        return " ".join(text.decode().split())

    assert f"{WORDS}, data about the data, not private: 3 of 200 records" in heard("--out", "a.json")
    assert heard("--out", "b.json", "--quiet") == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_more_than_half_is_refused_before_anything_is_written_unless_confirmed(records, folder, invoke, command):
    words = [*(word.replace("few", "most") for word in COMMANDS[command]), *REST]
    before = sorted(folder.rglob("*"))
    result = invoke(*words, "--out", "out", code=3)
    assert "--confirm" in result.stderr
    assert "Nothing was spent" in result.stderr
    assert sorted(folder.rglob("*")) == before
    invoke(*words, "--out", "out", "--confirm")


def test_columns_in_another_order_are_not_released_silently(folder, invoke):
    """Tensors as xx,yy,zz,xy,xz,yz, read as an upper triangle, are no positive matrices: they count as the centre."""
    X = tensors()
    order = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    rows = np.array([[x[place] for place in order] for x in X])
    np.savetxt("mrtrix.csv", rows, delimiter=",", header="a,b,c,d,e,f", comments="")
    words = ["mean", "mrtrix.csv", "--columns", "a,b,c,d,e,f", *REST, "--invalid", "center", "--out", "mean.json"]
    assert "--order" in invoke(*words, code=3).stderr
    refused = invoke(*words, "--order", "row", "--notice", code=3).stderr  # said twice that they are what they are not
    assert "of 200 records" in refused
    assert "order of the columns" in refused
    assert not (folder / "mean.json").exists()


def test_notice_and_quiet_contradict_each_other(records, invoke):
    assert (
        "--notice and --quiet" in invoke("mean", "few.npy", *REST, "--out", "x", "--notice", "--quiet", code=2).stderr
    )
    assert not pathlib.Path("x").exists()
