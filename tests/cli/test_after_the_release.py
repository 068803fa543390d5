"""Once a release is drawn it is kept: whatever fails, or ends the command, and with the same words for neighbours."""

import json
import os
import pathlib
import signal

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from cli.shared import MEAN, tensors
from dpmanifold import files
from dpmanifold.cli import app
from dpmanifold.codec import answer_to_bytes
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.stats.query import QUERIES

BARE = ["region", *MEAN[1:], "--out", "r.json", "--npy", "r.npy"]
REGION = [*BARE, "--picture", "r.png", "--html", "r.html"]


def explode(*args, **options):
    raise RuntimeError("the value 12.34 of patient 7")


def full(*args, **options):
    raise OSError(28, "No space left on device", "r.png")


def interrupt(*args, **options):
    raise KeyboardInterrupt


STEPS = {
    "array": "dpmanifold.cli.outputs.save_array",
    "picture": "dpmanifold.cli.outputs.save_picture",
    "drawing": "dpmanifold.plots.show",
    "report": "dpmanifold.cli.outputs.save_report",
    "printing": "dpmanifold.cli.outputs.result_text",
    "half axes": "dpmanifold.inference.confidence_region.ConfidenceRegion.axes",
    "covers ball": "dpmanifold.inference.confidence_region.ConfidenceRegion._in_chart",
    "share": "dpmanifold.inference.confidence_region.ConfidenceRegion.variance_shares",
}


def both(tmp_path, monkeypatch, *words):
    """Run a command on two neighbours, and return what is left of each."""
    found = []
    neighbour = tensors()
    neighbour[7] = np.diag([40.0, 1e-3, 1.0])
    for side, X in (("x", tensors()), ("y", neighbour)):
        (tmp_path / side).mkdir()
        monkeypatch.chdir(tmp_path / side)
        np.save("a.npy", X)
        result = CliRunner().invoke(app, list(words), env={"COLUMNS": "160"})
        assert "Traceback" not in result.output
        assert "patient" not in result.output
        assert dpm.verify(dpm.load("r.json")).ok
        found.append((result, sorted(os.listdir())))
    return found


@pytest.mark.security
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("failure", [explode, full])
@pytest.mark.parametrize("step", STEPS)
def test_a_failing_step_keeps_the_release_and_says_the_same_for_neighbours(
    tmp_path, monkeypatch, step, failure, as_json
):
    monkeypatch.setattr(STEPS[step], property(failure) if step == "share" else failure)
    drawn = step in ("picture", "drawing", "report")
    words = [*(REGION if drawn else BARE), *(["--json"] if as_json else [])]
    (first, first_files), (second, second_files) = both(tmp_path, monkeypatch, *words)
    assert first.exit_code == second.exit_code
    assert first.stderr == second.stderr
    assert first_files == second_files
    assert not [name for name in first_files if name.startswith(".")]  # no temporary file
    assert first.stdout.count("\n") == second.stdout.count("\n")
    silent = as_json and step in ("printing", "half axes", "covers ball", "share")  # then an answer is null
    if not silent:
        assert first.exit_code == 1
        assert "the release IS written to r.json, and the promise is spent" in first.stderr
    if as_json:
        assert json.loads(first.stdout) == json.loads((tmp_path / "x" / "r.json").read_text())


@pytest.mark.slow
def test_a_view_that_fails_leaves_the_others_and_names_the_remedy(folder, invoke, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr("dpmanifold.cli.outputs.save_picture", explode)
        result = invoke(*REGION, code=1)
    assert "--picture r.png could not be made" in result.stderr
    assert (folder / "r.html").exists()
    assert (folder / "r.npy").exists()
    assert result.stdout.startswith("95 % confidence region")
    remedy = result.stderr.rpartition("dpm show ")[2].split()
    invoke("show", *remedy)
    assert (folder / "r.png").exists()
    invoke("show", "r.json", "--npy", "again.npy")
    assert np.array_equal(np.load("again.npy"), np.load("r.npy"))


def test_answers_that_cannot_be_computed_do_not_stop_the_record(invoke, monkeypatch):
    monkeypatch.setattr(ConfidenceRegion, "axes", explode)
    invoke("region", *MEAN[1:], "--out", "r.json", code=1)
    answers = json.loads(pathlib.Path("r.json").read_text())["answers"]
    assert answers["half_axes"] is None
    assert answers["error"] > 0


def test_a_release_that_cannot_be_written_is_printed(invoke, monkeypatch):
    monkeypatch.setattr("dpmanifold.cli.outputs.write_record", full)
    result = invoke(*MEAN, "--out", "mean.json", code=1)
    assert "No space left on device" in result.stderr
    assert dpm.verify(dpm.Release.from_dict(json.loads(result.stdout))).ok


@pytest.mark.parametrize(("failure", "code"), [(explode, 1), (interrupt, 130)])
def test_means_by_class_are_kept_as_well(folder, invoke, monkeypatch, failure, code):
    np.save("labels.npy", np.arange(200) % 2)
    monkeypatch.setattr("dpmanifold.cli.outputs.in_a_line", failure)
    words = ["class-means", "a.npy", *MEAN[2:], "--labels", "labels.npy", "--classes", "0,1", "--out", "means"]
    assert "he 2 releases ARE written to means, and the promise is spent" in invoke(*words, code=code).stderr
    assert all(dpm.verify(dpm.load(folder / "means" / f"mean-{name}.json")).ok for name in (0, 1))


@pytest.mark.parametrize("step", ["array", "picture", "report", "printing"])
def test_ctrl_c_after_the_release_says_where_it_is(invoke, monkeypatch, step):
    monkeypatch.setattr(STEPS[step], interrupt)
    result = invoke(*REGION, code=130)
    assert "interrupted. The release IS written to r.json" in result.stderr
    assert dpm.verify(dpm.load("r.json")).ok


def test_ctrl_c_before_the_release_leaves_nothing(folder, invoke, monkeypatch):
    monkeypatch.setitem(vars(QUERIES.get("mean")), "call", interrupt)
    before = sorted(folder.iterdir())
    assert invoke(*MEAN, "--out", "mean.json", code=130).stderr == "dpm: interrupted.\n"
    assert sorted(folder.iterdir()) == before


IN_THE_RELEASE = """
import os, signal
true = os.fsync
def fsync(handle):
    os.fsync = true
    os.kill(os.getpid(), signal.{name})
    true(handle)
os.fsync = fsync
"""
IN_THE_PICTURE = """
import os, signal
from matplotlib.figure import Figure
def savefig(self, file, **options):
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.{name})
    import time; time.sleep(5)
Figure.savefig = savefig
"""


@pytest.mark.parametrize(
    "when",
    [
        pytest.param(IN_THE_RELEASE, id="release"),
        pytest.param(IN_THE_PICTURE, id="picture", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", ["SIGTERM", *(pytest.param(n, marks=pytest.mark.slow) for n in ("SIGINT", "SIGHUP"))])
def test_signals_leave_the_release_and_no_temporary_files(folder, launch, name, when):
    # Whoever runs the tests may ignore a signal (nohup does), and children inherit that.
    usual = "default_int_handler" if name == "SIGINT" else "SIG_DFL"
    first = f"import signal; signal.signal(signal.{name}, signal.{usual})\n" + when.format(name=name)
    result = launch(*MEAN, "--out", "mean.json", "--picture", "mean.png", first=first)
    assert result.returncode == 128 + getattr(signal, name)
    assert result.stderr == b"dpm: interrupted. The release IS written to mean.json, and the promise is spent.\n"
    assert dpm.verify(dpm.load(folder / "mean.json")).ok
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "b.npy", "mean.json"]


@pytest.mark.slow
def test_a_signal_before_the_release_leaves_nothing(folder, launch):
    first = """
import os, signal
from dpmanifold.stats.query import QUERIES
vars(QUERIES.get("mean"))["call"] = lambda *a, **k: os.kill(os.getpid(), signal.SIGTERM)
"""
    result = launch(*MEAN, "--out", "mean.json", first=first)
    assert (result.returncode, result.stderr) == (143, b"dpm: interrupted.\n")
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "b.npy"]


def test_files_are_on_the_disk_before_they_take_their_place(tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        true = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, true=true: (done.append(name), true(*a))[1])
    with files.whole_file(tmp_path / "note") as file:
        file.write("whole")
    assert done[:2] == ["fsync", "replace"]
    assert (tmp_path / "note").read_text() == "whole"


# -------------------------------------------------------------------- standard output that cannot be written


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--out", "mean.json"], id="text"),
        pytest.param(["--out", "mean.json", "--json"], id="json", marks=pytest.mark.slow),
    ],
)
def test_a_full_stdout_gives_a_message_and_keeps_the_release(folder, launch, words):
    with open("/dev/full", "w") as sink:
        result = launch(*MEAN, *words, stdout=sink)
    assert result.returncode == 1
    assert result.stderr.decode() == (
        "dpm: the release IS written to mean.json, and the promise is spent; but it could not be printed "
        "(No space left on device).\n"
    )
    assert dpm.verify(dpm.load(folder / "mean.json")).ok


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("words", [["spaces"], ["--help"], ["mean", "--help"], ["--version"], ["mechanisms", "--json"]])
def test_other_output_on_a_full_stdout_gives_a_message(launch, words):
    with open("/dev/full", "w") as sink:
        result = launch(*words, stdout=sink)
    assert result.returncode == 1
    assert result.stderr == b"dpm: standard output cannot be written: No space left on device.\n"


@pytest.mark.slow
def test_a_closed_pipe_gives_a_message_and_keeps_the_release(folder, launch):
    reader, writer = os.pipe()
    os.close(reader)
    result = launch(*MEAN, "--out", "mean.json", stdout=writer)
    os.close(writer)
    assert result.returncode == 1
    assert result.stderr.count(b"\n") == 1
    assert b"the release IS written to mean.json" in result.stderr
    assert dpm.verify(dpm.load(folder / "mean.json")).ok


def test_a_file_of_means_by_class_is_verified_class_by_class(tmp_path):
    """A service hands means by class out as one file."""
    ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    releases = dpm.private_class_means(
        np.zeros((40, 1)), ["a", "b"] * 20, ball, dpm.PureDP(1.0), units=dpm.EACH_RECORD, classes=["a", "b"]
    )
    path = tmp_path / "means.json"
    path.write_bytes(answer_to_bytes(releases))
    good = CliRunner().invoke(app, ["verify", str(path)])
    assert good.exit_code == 0
    assert good.stdout.count("class ") == 2
    record = json.loads(path.read_text())
    record["classes"][1][1]["version"] = "0.0.0"
    path.write_text(json.dumps(record))
    bad = CliRunner().invoke(app, ["verify", str(path), "--json"])
    assert bad.exit_code == 4
    assert [one["wrong"] == [] for one in json.loads(bad.stdout).values()] == [True, False]
