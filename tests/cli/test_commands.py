"""Every command on real files, the failing ones too."""

import csv
import json
import pathlib

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli import app
from dpmanifold.stats.query import QUERIES

pytestmark = pytest.mark.security


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder of its own; says what came out."""
    monkeypatch.chdir(tmp_path)

    def call(*words, code=0):
        result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})
        assert result.exit_code == code, result.output
        if code:
            assert result.stderr.startswith("dpm: ")
            assert result.stderr.count("\n") == 1  # one paragraph
            assert "Traceback" not in result.output
        return result

    return call


SPD_BALL = ["--center", "0.7", "--radius", "2.5"]
GAUSSIAN = ["--mu", "1"]
EACH = ["--units", "each-record"]


def tensors(n=200, seed=0):
    return dpm.SPD(3).exp_coords(np.diag([1.6, 0.4, 0.4]), 0.2 * np.random.default_rng(seed).standard_normal((n, 6)))


def write_csv(path, X, people=50):
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person", "site", "xx", "xy", "xz", "yy", "yz", "zz"])
        rows.writerows([i % people, "a", *x[np.triu_indices(3)]] for i, x in enumerate(X))


COLUMNS = ["--columns", "xx,xy,xz,yy,yz,zz"]


def test_mean_of_an_npy_file_with_everything_written(run, tmp_path):
    np.save("tensors.npy", tensors())
    result = run(
        "mean", "tensors.npy", "--space", "spd", *EACH, *SPD_BALL, *GAUSSIAN, "--out", "mean.json", "--npy", "mean.npy",
        "--picture", "mean.png", "--html", "mean.html",
    )  # fmt: skip
    release = dpm.load("mean.json")
    assert release.private
    assert dpm.verify(release).ok
    assert np.array_equal(np.load("mean.npy"), release.value)
    assert (tmp_path / "mean.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "mean.html").read_text()
    assert "http:" not in page  # nothing from a network; a picture as text may spell "http"
    assert "https:" not in page
    assert release.privacy.describe() in page
    assert result.stdout.startswith("Release of a private mean")
    assert run("show", "mean.json").stdout.splitlines() == result.stdout.splitlines()[:-4]
    assert run("verify", "mean.json").stdout.startswith("The release is consistent.")


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_units_are_a_column_a_key_or_a_file(run, kind):
    X = tensors()
    person = np.arange(200) % 40
    words = []
    if kind == "npz":
        np.savez("data.npz", tensors=X, person=person)
        words = ["--array", "tensors"]
    else:
        write_csv("data.csv", X, people=40)
        words = COLUMNS
        if kind == "parquet":
            import pyarrow.csv
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.csv.read_csv("data.csv"), "data.parquet")
    common = ["--space", "spd", *words, *SPD_BALL, "--epsilon", "1"]
    run("mean", f"data.{kind}", "--units", "person", *common, "--out", "a.json")
    assert dpm.load("a.json").n == 40
    np.save("ids.npy", person)
    run("mean", f"data.{kind}", "--units", "ids.npy", *common, "--out", "b.json")
    assert dpm.load("b.json").n == 40
    write_csv("who.csv", X, people=20)
    run("mean", f"data.{kind}", "--units", "who.csv:person", *common, "--out", "c.json")
    assert dpm.load("c.json").n == 20


def test_the_other_statistics(run):
    np.save("a.npy", tensors(300, 0))
    np.save("b.npy", tensors(200, 1))
    common = ["--space", "spd", *EACH, *SPD_BALL, *GAUSSIAN]
    run("variance", "a.npy", *common, "--out", "variance.json", "--html", "variance.html")
    run("mean", "a.npy", *common, "--out", "mean.json")
    run("variance", "a.npy", *common, "--about", "mean.json", "--out", "about.json")
    assert dpm.load("about.json").privacy == dpm.GDP(1.0)
    shown = run("region", "a.npy", *common, "--out", "region.json", "--picture", "region.svg", "--html", "r.html")
    assert "95 % confidence region" in shown.stdout
    assert (
        "confidence interval"
        in run("variance-interval", "a.npy", *common, "--out", "i.json", "--picture", "i.pdf").stdout
    )
    assert (
        "p-value" in run("two-sample-test", "a.npy", "b.npy", *common, "--out", "t.json", "--picture", "t.png").stdout
    )
    for name in ("variance", "about", "region", "i", "t"):
        assert dpm.verify(dpm.load(f"{name}.json")).ok
        assert json.loads(run("verify", f"{name}.json", "--json").stdout)["ok"]
        assert json.loads(run("show", f"{name}.json", "--json").stdout) == json.loads(
            pathlib.Path(f"{name}.json").read_text()
        )
    run("show", "t.json", "--html", "t.html", "--picture", "again.png")
    assert "two data sets" in pathlib.Path("t.html").read_text().lower()


def test_a_released_ball_and_a_public_one_can_be_used(run):
    np.save("a.npy", tensors(2000))
    common = ["--space", "spd", *EACH, *GAUSSIAN]
    run("ball", "a.npy", *common, "--radius", "6", "--out", "ball.json")
    assert isinstance(dpm.load("ball.json").value, dpm.Ball)
    run("mean", "a.npy", *common, "--ball", "ball.json", "--out", "mean.json")
    assert dpm.load("mean.json").ball == dpm.load("ball.json").value
    run("ball", "a.npy", "--public", "--space", "spd", "--out", "public.json")
    run("ball", "a.npy", "--public", "--space", "spd", *EACH, "--out", "public2.json", code=2)
    run("ball", "a.npy", "--space", "spd", *GAUSSIAN, "--radius", "6", "--out", "public2.json", code=2)
    run("mean", "a.npy", *common, "--ball", "public.json", "--out", "mean2.json")
    assert "from public data" in dpm.load("mean2.json").ball.source
    run("mean", "a.npy", *common, "--ball", "mean.json", "--out", "x.json", code=2)
    run(
        "region",
        "a.npy",
        "--space",
        "spd-riemann",
        *EACH,
        *GAUSSIAN,
        "--ball",
        "public.json",
        "--out",
        "x.json",
        code=2,
    )


def test_images_to_class_means_in_one_command(run, tmp_path):
    rng = np.random.default_rng(0)
    np.savez("digits.npz", images=rng.integers(0, 256, (300, 12, 12), dtype=np.uint8), labels=np.arange(300) % 3)
    shown = run(
        "class-means", "digits.npz", "--images", "--array", "images", "--labels", "labels", "--classes", "0..2", *EACH,
        *GAUSSIAN, "--refine", "--eta", "1e-3", "--out", "means",
    )  # fmt: skip
    assert "written 3 releases" in shown.stdout
    for digit in range(3):
        release = dpm.load(tmp_path / "means" / f"mean-{digit}.json")
        assert release.n == 100
        assert dpm.verify(release).ok
    again = [
        "class-means",
        "digits.npz",
        "--images",
        "--array",
        "images",
        "--labels",
        "labels",
        *EACH,
        *GAUSSIAN,
        "--out",
        "means",
    ]
    run(*again, "--classes", "0..2", code=2)  # the files exist
    run(*again, "--classes", "0,1", "--force", code=3)  # a label outside the public classes
    run("descriptors", "digits.npz", "--array", "images", "--out", "d.npy", "--ball", "ball.json")
    run("mean", "d.npy", "--space", "spd", *EACH, *GAUSSIAN, "--ball", "ball.json", "--out", "mean.json")
    np.save("labels.npy", np.arange(300) % 2)
    run("class-means", "d.npy", "--space", "spd", "--radius", "20", "--labels", "labels.npy", "--classes", "0,1", *EACH,
        *GAUSSIAN, "--out", "two", "--json")  # fmt: skip


def test_classes_are_words_or_numbers_and_files_are_whole(run, tmp_path, monkeypatch):
    np.save("a.npy", tensors())
    np.save("labels.npy", np.array(["01", "02"] * 100))
    common = ["class-means", "a.npy", "--space", "spd", *EACH, *SPD_BALL, *GAUSSIAN, "--labels", "labels.npy"]
    run(*common, "--classes", "01,02", "--out", "text")
    assert sorted(p.name for p in (tmp_path / "text").iterdir()) == ["mean-01.json", "mean-02.json"]
    for classes in ("01,a/b", "0..x", "0..999999999999", ".., 01", "0,"):
        run(*common, "--classes", classes, "--out", "other", code=2)
    pathlib.Path("file").write_text("x")
    run(*common, "--classes", "01,02", "--out", "file", code=2)
    np.save("numbers.npy", np.arange(200) % 2)
    run(*common[:-1], "numbers.npy", "--classes", "0,²", "--out", "other", code=3)  # no label is called so
    assert not (tmp_path / "other").exists()

    def full(path, record):
        if "02" in path.name:
            raise OSError(28, "No space left on device", str(path))
        path.write_text("{}")

    monkeypatch.setattr("dpmanifold.cli.outputs.write_record", full)
    printed = run(*common, "--classes", "01,02", "--out", "other", code=1)
    assert not (tmp_path / "other").exists()  # no half of a set stays
    assert "No space left on device" in printed.stderr
    assert json.loads(printed.stdout).keys() == {"01", "02"}  # and nothing is lost


def test_a_view_that_fails_does_not_hide_the_release(run, monkeypatch):
    np.save("a.npy", tensors())
    monkeypatch.setattr("dpmanifold.cli.outputs.save_picture", lambda result, path: 1 / 0)
    common = ["mean", "a.npy", "--space", "spd", *EACH, *SPD_BALL, *GAUSSIAN]
    result = run(*common, "--out", "mean.json", "--picture", "mean.png", code=1)
    assert "IS written to mean.json" in result.stderr
    assert dpm.verify(dpm.load("mean.json")).ok


def test_landmarks_directions_and_vectors_from_tables(run):
    rng = np.random.default_rng(0)
    outline = rng.standard_normal(10)
    names = [f"{axis}{i}" for i in range(1, 6) for axis in "xy"]
    np.savetxt(
        "shapes.csv",
        outline + 0.05 * rng.standard_normal((200, 10)),
        delimiter=",",
        header=",".join(names),
        comments="",
    )
    np.save("template.npy", outline.reshape(5, 2))
    run("region", "shapes.csv", "--space", "kendall", *EACH, *GAUSSIAN, "--center", "template.npy", "--radius", "0.3",
        "--columns", ",".join(names), "--out", "shape.json", "--picture", "shape.png")  # fmt: skip
    X = rng.standard_normal((200, 3)) * 0.2 + [0, 0, 1]
    np.save("directions.npy", X / np.linalg.norm(X, axis=1, keepdims=True))
    np.save("north.npy", [0.0, 0.0, 1.0])
    run("region", "directions.npy", "--space", "sphere", *EACH, *GAUSSIAN, "--center", "north.npy", "--radius", "0.7",
        "--out", "direction.json", "--picture", "direction.png")  # fmt: skip
    run(
        "mean", "directions.npy", "--space", "euclidean", *EACH, "--rho", "0.5", "--radius", "2", "--out", "vector.json"
    )
    assert dpm.load("vector.json").privacy == dpm.ZCDP(0.5)


def test_plan_and_lists(run):
    ball = ["--space", "sphere", "--size", "2", "--radius", "0.6"]
    shown = run("plan", *ball, "-n", "500", "--epsilon", "1", "--error", "0.01", "--picture", "plan.png", "--all")
    assert "riemannian-laplace" in shown.stdout
    assert "takes" in shown.stdout
    found = json.loads(
        run("plan", "--space", "spd", "--size", "3", "-n", "500", "--radius", "2", "--mu", "1", "--json").stdout
    )
    assert found["rows"][0]["mechanism"] == "wrapped-gaussian"
    needs = json.loads(run("plan", *ball, "-n", "500", "--epsilon", "1", "--error", "0.01", "--json").stdout)
    assert isinstance(needs["required_units"], int)
    assert dpm.privacy.promise_from_dict(needs["required_privacy"]).epsilon < 1
    rows = json.loads(run("mechanisms", "--json").stdout)
    assert {row["name"] for row in rows} == set(dpm.mechanisms.MECHANISMS.names())
    assert "wrapped-gaussian" in run("mechanisms").stdout


def test_seeds_and_reveal_mark_the_result(run):
    np.save("a.npy", tensors())
    common = ["mean", "a.npy", "--space", "spd", *EACH, *SPD_BALL, *GAUSSIAN]
    assert "NOT PRIVATE" in run(*common, "--seed", "1", "--out", "seeded.json").stdout
    assert not dpm.load("seeded.json").private
    run(*common, "--reveal", "--out", "revealed.json", "--html", "revealed.html")
    release = dpm.load("revealed.json")
    assert not release.private
    assert release.details["revealed_error"] > 0
    assert "NOT PRIVATE" in pathlib.Path("revealed.html").read_text()
    record = json.loads(pathlib.Path("seeded.json").read_text())
    record["scale"] /= 2
    del record["answers"]
    pathlib.Path("forged.json").write_text(json.dumps(record))
    result = CliRunner().invoke(app, ["verify", "forged.json"])
    assert result.exit_code == 4
    assert "NOT CONSISTENT" in result.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--epsilon", "1", "--mu", "1"], 2, "give one promise"),
        ([], 2, "give one promise"),
        (["--delta", "1e-6"], 2, "--delta needs --epsilon"),
        (["--mu", "-1"], 2, "mu must be"),
        (["--mu", "1", "--radius", "-2"], 2, "radius must be"),
        (["--mu", "1", "--space", "torus"], 2, "--space must be one of"),
        (["--mu", "1", "--space", "sphere"], 3, ""),
        (["--mu", "1", "--units", "nobody"], 2, "nobody"),
        (["--mu", "1", "--mechanism", "magic"], 2, "mechanism must be"),
        (["--epsilon", "1", "--mechanism", "wrapped-gaussian"], 4, "cannot keep"),
        (["--mu", "1", "--center", "nowhere.npy"], 2, "nowhere.npy"),
        (["--mu", "1", "--invalid", "maybe"], 2, "invalid must be"),
        (["--mu", "1", "--out", "no/such/folder.json"], 2, "does not exist"),
        (["--mu", "1", "--picture", "mean.bmp"], 2, "must end in"),
        (["--mu", "1", "--size", "4"], 3, ""),
        (["--mu", "1", "--npy", "mean.json"], 2, "one file twice"),
        (["--mu", "1", "--npy", "mean.npy", "--seed", "1"], 2, "could not be marked"),
        (["--mu", "1", "--reveal", "--invalid", "center"], 2, "--reveal compares"),
        (["--mu", "1", "--mechanism", "extrinsic-gaussian", "--picture", "m.png"], 2, "baseline"),
        (["--mu", "1", "--out", 251 * "x"], 2, "cannot be written"),
        (["--mu", "1", "--ball", "ball.json"], 2, "leave out the others"),
    ],
)
def test_mistakes_end_with_a_message_and_write_nothing(run, tmp_path, words, code, message):
    np.save("a.npy", tensors())
    before = sorted(tmp_path.iterdir())
    common = ["mean", "a.npy", "--space", "spd", *EACH, *SPD_BALL, "--out", "mean.json"]
    result = run(*common, *words, code=code)
    assert message in result.stderr
    assert sorted(tmp_path.iterdir()) == before
    again = CliRunner().invoke(app, [*common, *words, "--json"])
    error = json.loads(again.stdout)["error"]
    assert again.exit_code == error["exit_code"] == code
    assert f"dpm: {error['message']}\n" == result.stderr
    assert again.stderr == ""


def test_bad_files_are_refused(run):
    common = ["--space", "spd", *EACH, *SPD_BALL, *GAUSSIAN, "--out", "mean.json"]
    run("mean", "missing.npy", *common, code=2)
    pathlib.Path("text.npy").write_text("not numpy")
    run("mean", "text.npy", *common, code=3)
    X = tensors()
    X[7, 0, 0] = np.nan
    np.save("nan.npy", X)
    assert "index 7" in run("mean", "nan.npy", *common, code=3).stderr
    run("mean", "nan.npy", *common, "--invalid", "center")
    np.savez("two.npz", a=X, b=X)
    run("mean", "two.npz", *common, "--force", code=2)
    run("show", "two.npz", code=3)
    run("verify", "missing.json", code=2)
    pathlib.Path("other.json").write_text("{}")
    run("show", "other.json", code=3)
    run("two-sample-test", "nan.npy", "nan.npy", *common[:-1], "t.json", code=3)


def test_unexpected_errors_do_not_quote_data(run, monkeypatch):
    def explode(*args, **options):
        raise RuntimeError("the value 12.34 of patient 7")

    np.save("a.npy", tensors())
    monkeypatch.setitem(vars(QUERIES.get("mean")), "call", explode)
    words = ["mean", "a.npy", "--space", "spd", *EACH, *SPD_BALL, *GAUSSIAN, "--out", "mean.json"]
    result = run(*words, code=1)
    assert "patient" not in result.output
    assert "RuntimeError" in result.stderr
    monkeypatch.setenv("DPM_TRACEBACK", "1")
    assert isinstance(CliRunner().invoke(app, words).exception, RuntimeError)


COMMANDS = "demo plan statistic descriptors verify show spaces mechanisms sensitivity predict statistics"


@pytest.mark.parametrize("command", [*COMMANDS.split(), *QUERIES.names()])
def test_help_says_what_a_command_does(run, command):
    shown = run(command, "--help").stdout
    assert len(shown) > 300


def test_demo_runs_and_ends_with_three_lines(run, tmp_path):
    lines = run("demo", "--out", "tour").stdout.strip().splitlines()
    assert [line.split(":")[0] for line in lines[-3:]] == ["Promised", "Cost", "Off by"]
    names = {path.name for path in (tmp_path / "tour").iterdir()}
    assert {"plan.png", "mean-0.json", "mean-0.png", "region.json", "region.png", "region.html"} <= names
    assert dpm.verify(dpm.load(tmp_path / "tour" / "region.json")).ok
    (tmp_path / "tour" / "note.txt").write_text("mine")
    run("demo", "--out", "tour", code=2)
