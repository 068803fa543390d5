"""Neighbouring data in folders, with the same random bits: nothing but the released values differs, on any output."""

import json
import logging
import os
import pathlib
import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.shared import tensors
from cli.test_leaks import stripped
from cli.test_sources import COLUMNS, WHERE, table_of, write_csv
from dpmanifold.cli import app

pytestmark = pytest.mark.security

N = 60
OUTLIERS = {
    "outlier": np.diag([1e8, 1e-3, 1.0]),
    "not positive": np.diag([1.0, -1.0, 1.0]),
    "NaN": np.full((3, 3), np.nan),
    "infinite": np.full((3, 3), np.inf),
}
COMMANDS = {
    "mean": ["mean", "data"],
    "mean of people": ["mean", "data"],
    "affine mean of people": ["mean", "data"],
    "region": ["region", "data"],
    "ball": ["ball", "data"],
    "two-sample-test": ["two-sample-test", "data", "other"],
    "class-means": ["class-means", "data", "--labels", "kind", "--classes", "0,1"],
}


def run(folder, X, command, kind, bits, monkeypatch, caplog):
    """Release from a folder of three files, and return all that can be heard."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    people = np.arange(N) % 20
    for name, records, who in (("data", X, people), ("other", X[::-1], people + 100)):
        os.mkdir(name)
        for number in range(3):
            cut = slice(20 * number, 20 * number + 20)
            table = table_of(records[cut], who[cut])
            if kind == "csv":
                write_csv(table, f"{name}/{number}.csv")
            else:
                pq.write_table(table, f"{name}/{number}.parquet", row_group_size=7)
    of_people = "people" in command or command in ("class-means", "two-sample-test")
    units = ["--units", "person" if of_people else "each-record"]
    space = ["--space", "spd-riemann"] if "affine" in command else []
    words = [*COMMANDS[command], *COLUMNS, *WHERE, *space, *units, "--invalid", "center"]
    bits()
    caplog.clear()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = CliRunner().invoke(app, [*words, "--out", "result"])
    logged = [(entry.name, entry.levelno, entry.getMessage()) for entry in caplog.records]
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "data" not in path.parts)
    return result, (logged, [str(warning.message) for warning in heard], names)


CASES = [
    pytest.param(kind, what, command, id=f"{kind}-{what}-{command}")
    for kind in ("parquet", "csv")
    for what in OUTLIERS
    for command in COMMANDS
]


@pytest.mark.parametrize(("kind", "what", "command"), CASES)
def test_nothing_but_released_values_differs(kind, what, command, same_bits, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    X = tensors(N)
    Y = X.copy()
    Y[37] = OUTLIERS[what]
    (one, first), (two, second) = (
        run(tmp_path / side, Z, command, kind, same_bits, monkeypatch, caplog) for side, Z in (("x", X), ("y", Y))
    )
    assert one.exit_code == two.exit_code == 0, one.output + two.output
    assert first == second
    assert one.stderr == two.stderr == ""
    assert len(one.stdout.splitlines()) == len(two.stdout.splitlines())
    for path in [path for path in (tmp_path / "x").rglob("*") if path.name.startswith(("result", "mean-"))]:
        if path.is_file():
            twin = tmp_path / "y" / path.relative_to(tmp_path / "x")
            left, right = (stripped(json.loads(file.read_text())) for file in (path, twin))
            assert left == right


def test_the_comparison_would_notice_a_count_on_stderr(same_bits, tmp_path, monkeypatch, caplog):
    """A wrong variant: --notice, which tells how many records were replaced."""
    X = tensors(N)
    Y = X.copy()
    Y[37] = np.nan
    monkeypatch.setitem(COMMANDS, "mean", ["mean", "data", "--notice"])
    (one, _), (two, _) = (
        run(tmp_path / side, Z, "mean", "parquet", same_bits, monkeypatch, caplog) for side, Z in (("x", X), ("y", Y))
    )
    assert one.stderr != two.stderr
    assert pathlib.Path("result").exists()
