"""The production path on neighbouring data with the same random bits: nothing but the released values may differ.

Printed text and pictures hold released values. They are shown to be functions of the release file: rendering what the
file holds gives the same text and the same bytes.
"""

import io
import json
import logging
import pathlib
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold import plots, sensitivity
from dpmanifold.cli import app
from dpmanifold.cli.outputs import save_picture
from dpmanifold.report import html_report
from dpmanifold.stats.median import about
from dpmanifold.stats.query import QUERIES

pytestmark = pytest.mark.security

N = 60


@pytest.fixture(scope="module", autouse=True)
def matplotlib_has_started():
    """Its first use logs where it found its fonts, once per process."""
    X = np.zeros((9, 2))
    plots.show(dpm.private_region(X, dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0), dpm.GDP(1.0), units=dpm.EACH_RECORD))
    plots.show(
        dpm.private_region(
            np.repeat(dpm.Sphere(2).origin[None], 9, axis=0),
            dpm.Ball(dpm.Sphere(2), dpm.Sphere(2).origin, 0.5),
            dpm.GDP(1.0),
            units=dpm.EACH_RECORD,
        )
    ).savefig(io.BytesIO())


def sphere_pairs():
    """Neighbours on the sphere: one record replaced by an outlier, the antipode of the centre, or something slow."""
    space = dpm.Sphere(2)
    rng = np.random.default_rng(0)
    center = np.array([0.0, 0.0, 1.0])
    X = space.exp_coords(center, 0.2 * rng.standard_normal((N, 2)))
    edges = space.exp_coords(center, np.tile([[0.69, 0.0], [-0.69, 0.0]], (N // 2, 1)))
    yield "outlier", X, np.array([1.0, 0.0, 0.0])
    yield "cut locus", X, -center
    yield "slow", edges, center
    yield "NaN", X, np.full(3, np.nan)


def spd_pairs():
    """Neighbours on SPD(2)."""
    space = dpm.SPD(2, metric="riemann")
    rng = np.random.default_rng(0)
    X = space.exp_coords(np.eye(2), 0.3 * rng.standard_normal((N, 3)))
    yield "outlier", X, np.diag([1e8, 1e-3])
    yield "edge", X, np.diag([np.exp(1.4), np.exp(-1.4)])
    yield "NaN", X, np.full((2, 2), np.nan)
    yield "not positive", X, np.diag([1.0, -1.0])


PAIRS = [("sphere", *pair) for pair in sphere_pairs()] + [("spd-riemann", *pair) for pair in spd_pairs()]
WHERE = {"sphere": ["--radius", "0.7", "--center", "center.npy"], "spd-riemann": ["--radius", "2"]}
COMMANDS = {
    "mean": [],
    "mean --refine": ["--refine"],
    "variance": [],
    "ball": [],
    "region": [],
    "region drawn": ["--picture", "result.png", "--html", "result.html"],
    "variance-interval": [],
    "two-sample-test": [],
    "k-sample-test": ["--labels", "labels.npy", "--classes", "0,1"],
    "class-means": ["--labels", "labels.npy", "--classes", "0,1"],
    "lda": ["--labels", "labels.npy", "--classes", "0,1,2"],
    "pga": [],
    "median": ["--no-refine"],
    "regression": ["--covariate", "covariate.npy", "--covariate-range", "0", "1"],
}


def stripped(record):
    """A record without what was released, and without what follows from what was released."""
    if isinstance(record, dict):
        about_a_release = record.get("statistic") in ("variance", "second moment", "fourth moment")
        gone = {"value", "draws", "answers", "units_inside", "reference_to_center"} | (
            {"scale", "sensitivity", "details"} if about_a_release else set()
        )
        if record.get("statistic") in ("radius", "median"):  # in the ball about the released mean
            gone.add("ball")
        return {key: stripped(entry) for key, entry in record.items() if key not in gone}
    return [stripped(entry) for entry in record] if isinstance(record, list) else record


def follows_from_the_release(release):
    """Whether the numbers of a moment are those that its released reference point gives."""
    for step in release.steps:
        follows_from_the_release(step)
    bounds = {
        "variance": sensitivity.of_variance,
        "second moment": sensitivity.of_second_moment,
        "fourth moment": sensitivity.of_fourth_moment,
    }
    if release.statistic == "median":
        near = about(release.steps[0].steps[0])
        assert release.ball == release.steps[0].ball == near
    if release.statistic not in (*bounds, "signs", "components"):
        assert "reference_to_center" not in release.details
        return
    mean = release
    while mean.statistic != "mean":
        mean = mean.steps[0]
    frame, ball = release.ball.frame, release.ball
    apart = float(frame.dist(frame.origin, ball.into_frame(np.asarray(mean.value)[None])[0]))
    assert release.details["reference_to_center"] == apart
    if release.statistic in bounds:
        assert release.sensitivity == bounds[release.statistic](ball, release.n, away=apart)


def run_once(folder, X, space, command, bits, monkeypatch, caplog):
    folder.mkdir()
    monkeypatch.chdir(folder)
    np.save("data.npy", X)
    np.save("other.npy", X[::-1])
    np.save("labels.npy", np.arange(N) % 2)
    np.save("covariate.npy", np.linspace(0.0, 1.0, N))
    np.save("center.npy", [0.0, 0.0, 1.0])
    name = command.split()[0]
    out = "folder" if name == "class-means" else "result.json"
    files = ["data.npy", "other.npy"] if name == "two-sample-test" else ["data.npy"]
    words = [name, *files, "--space", space, "--units", "each-record", "--mu", "1", "--invalid", "center", "--out", out]
    bits()
    caplog.clear()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = CliRunner().invoke(app, [*words, *WHERE[space], *COMMANDS[command]])
    logged = [(entry.name, entry.levelno, entry.getMessage()) for entry in caplog.records]
    said = [str(warning.message) for warning in heard]
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    return result, logged, said, names


# Picture and report are made from the record alone (tests/plots), which is compared for every pair.
CASES = [
    pytest.param(*pair, command, id=f"{pair[0]}, {pair[1]}-{command}")
    for pair in PAIRS
    for command in COMMANDS
    if command != "region drawn" or pair[1] == "outlier"
]


@pytest.mark.parametrize(("space", "kind", "X", "record", "command"), CASES)
def test_nothing_but_released_values_differs(space, kind, X, record, command, same_bits, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    Y = X.copy()
    Y[7] = record
    runs = [
        run_once(tmp_path / side, Z, space, command, same_bits, monkeypatch, caplog) for side, Z in (("x", X), ("y", Y))
    ]
    (first, *first_rest), (second, *second_rest) = runs
    assert first.exit_code == second.exit_code == 0, first.output + second.output
    assert first_rest == second_rest  # logs, warnings, names of files
    assert first.stderr == second.stderr
    refined = "--refine" in command
    for side, result in (("x", first), ("y", second)):
        check_outputs(tmp_path / side, result, command)
    for path in (tmp_path / "x").rglob("*.json"):
        twin = tmp_path / "y" / path.relative_to(tmp_path / "x")
        one, two = (stripped(json.loads(file.read_text())) for file in (path, twin))
        if refined:  # the ball was released, and scale and bound follow from it
            for entry in (one, two):
                for key in ("ball", "scale", "sensitivity", "tol"):
                    del entry[key]
        assert one == two


def check_outputs(folder, result, command):
    """What was printed, drawn and reported follows from the file, and its public numbers from what was released."""
    if command == "class-means":
        noise = [dpm.load(folder / "folder" / f"mean-{name}.json").noise_error() for name in (0, 1)]
        assert [f"{value:.4g}" in line for value, line in zip(noise, result.stdout.splitlines(), strict=False)] == [
            True
        ] * 2
        return
    found = dpm.load(folder / "result.json")
    assert json.loads((folder / "result.json").read_text())["answers"] == found.answers()
    assert result.stdout.startswith(repr(found))
    rest = result.stdout[len(repr(found)) :].split()
    assert set(rest) <= {"written", "result.json", "result.png", "result.html"}
    for release in found.released:
        follows_from_the_release(release)
    if (folder / "result.png").exists():
        save_picture(found, folder / "again.png")
        assert (folder / "again.png").read_bytes() == (folder / "result.png").read_bytes()
        assert html_report(found) == (folder / "result.html").read_text()


def test_the_comparison_would_notice_a_leak(same_bits, tmp_path, monkeypatch, caplog):
    """Wrong variants: a count of clipped records on stderr, and a measured number in the file."""
    space, _, X, record = PAIRS[0]
    Y = X.copy()
    Y[7] = record
    mean = QUERIES.get("mean")
    true = mean.call

    def leaky(records, ball, privacy, **options):
        import sys

        print(int((~ball.contains(np.load("data.npy"))).sum()), file=sys.stderr)
        return true(records, ball, privacy, **options)

    monkeypatch.setitem(vars(mean), "call", leaky)
    outs = [
        run_once(tmp_path / s, Z, space, "mean", same_bits, monkeypatch, caplog)[0] for s, Z in (("x", X), ("y", Y))
    ]
    assert outs[0].stderr != outs[1].stderr
    one, two = (json.loads((pathlib.Path(tmp_path) / side / "result.json").read_text()) for side in "xy")
    two["details"]["clipped"] = 1.0
    assert stripped(one) != stripped(two)
    assert one["value"] != two["value"]  # the data do matter
