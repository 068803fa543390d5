"""`dpm check`: everything is read, whatever is wrong is said with its place, and nothing is released."""

import json
import os
import pathlib

import numpy as np
import pyarrow.parquet as pq
import pytest

from cli.shared import tensors
from cli.test_sources import COLUMNS, table_of, write_csv

pytestmark = pytest.mark.security

SPD = ["--space", "spd", *COLUMNS]


@pytest.fixture
def study(folder):
    """Write three files of 60 tensors in all, of 20 people, as Parquet and as CSV."""
    X, people = tensors(60), np.arange(60) % 20
    for name in ("parquet", "csv"):
        os.mkdir(name)
    for number in range(3):
        cut = slice(20 * number, 20 * number + 20)
        pq.write_table(table_of(X[cut], people[cut]), f"parquet/{number}.parquet", row_group_size=10)
        write_csv(table_of(X[cut], people[cut]), f"csv/{number}.csv")
    return X


def found(invoke, *words, code=0):
    return json.loads(invoke("check", *words, "--json", code=code).stdout)


def spoil(path, start=2000, stop=2600):
    """Write zeros into the middle of a file."""
    content = bytearray(pathlib.Path(path).read_bytes())
    content[start:stop] = bytes(stop - start)
    pathlib.Path(path).write_bytes(content)


@pytest.mark.parametrize("where", ["parquet", "csv", "csv/*.csv", "parquet/1.parquet"])
def test_good_files_are_counted_and_said_to_be_good(study, invoke, where):
    seen = found(invoke, where, *SPD, "--units", "person", "--labels", "kind")
    count = 20 if "1" in where else 60
    assert (seen["ok"], seen["private"], seen["records"], seen["units"]) == (True, False, count, 20)
    told = invoke("check", where, *SPD, "--units", "person").stdout
    assert "NOT PRIVATE" in told
    assert f"{count} records" in told
    assert "20 units" in told
    assert "Nothing is wrong." in told
    before = sorted(pathlib.Path().rglob("*"))
    invoke("check", where, *SPD)
    assert sorted(pathlib.Path().rglob("*")) == before  # it writes nothing


def test_a_damaged_file_does_not_keep_the_others_from_being_checked(study, invoke):
    spoil("parquet/1.parquet")
    pathlib.Path("parquet/3.parquet").write_bytes(b"no")
    seen = found(invoke, "parquet", *SPD, "--units", "person", code=3)
    problems = {pathlib.Path(file["path"]).name: file["problems"] for file in seen["files"]}
    assert [bool(problems[f"{number}.parquet"]) for number in range(4)] == [False, True, False, True]
    assert "row group" in problems["1.parquet"][0]
    assert seen["records"] >= 40
    told = invoke("check", "parquet", *SPD, code=3).stdout
    assert "4 files, of which 2 have faults" in told
    assert "SOMETHING IS WRONG" in told


def test_lines_are_named(study, invoke):
    path = pathlib.Path("csv/2.csv")
    lines = path.read_text().split("\n")
    lines[7] += ",1"
    path.write_text("\n".join(lines))
    [problem] = found(invoke, "csv", *SPD, code=3)["files"][2]["problems"]
    assert problem.startswith("2.csv: line 8 ")


def test_records_that_are_no_points_are_counted_and_the_first_is_named(study, invoke):
    study[25] = np.nan
    study[31] *= -1
    cut = slice(20, 40)
    pq.write_table(table_of(study[cut], np.arange(20)), "parquet/1.parquet", row_group_size=10)
    seen = found(invoke, "parquet", *SPD, code=3)
    assert seen["invalid"] == 2
    assert "record 5 " in seen["files"][1]["problems"][0]
    assert "2 records are no points of SPD(3)" in invoke("check", "parquet", *SPD, code=3).stdout


def test_how_many_lie_outside_the_ball_is_said_and_is_no_fault(study, invoke):
    study[:7] *= 1e5
    np.save("a.npy", study)
    seen = found(invoke, "a.npy", "--space", "spd", "--center", "0.7", "--radius", "2.5")
    assert (seen["ok"], seen["outside"]) == (True, 7)
    invoke("ball", "b.npy", "--public", "--space", "spd", "--out", "ball.json")
    assert found(invoke, "a.npy", "--space", "spd", "--ball", "ball.json")["outside"] >= 7
    assert "7 lie outside" in invoke("check", "a.npy", "--space", "spd", "--center", "0.7", "--radius", "2.5").stdout


IDS = {
    "look alike": (["ann  b", "ann b", *map(str, range(18))], "blanks"),
    "missing": (["ann", None, *map(str, range(18))], "belongs to somebody"),
    "a word for none": (["ann", "NA", *map(str, range(18))], "belongs to somebody"),
}


@pytest.mark.parametrize("case", IDS)
def test_ids_that_leave_doubt_are_told_and_never_shown(study, invoke, case):
    ids, words = IDS[case]
    for number in range(3):
        table = table_of(study[20 * number : 20 * number + 20], ids)
        pq.write_table(table, f"parquet/{number}.parquet")
    result = invoke("check", "parquet", *SPD, "--units", "person", code=3)
    assert words in " ".join(result.stdout.split())
    assert "ann" not in result.stdout
    assert "blanks" not in words or found(invoke, "parquet", *SPD, "--units", "person", code=3)["units"] is None


def test_files_that_do_not_belong_together_are_named(study, invoke):
    np.save("other.npy", np.zeros((5, 2, 2)))
    seen = found(invoke, "a.npy", "other.npy", "--space", "spd", code=3)
    assert [bool(file["problems"]) for file in seen["files"]] == [False, True]
    pq.write_table(table_of(study[:20], [f"p{i}" for i in range(20)]), "parquet/2.parquet")
    seen = found(invoke, "parquet", *SPD, "--units", "person", code=3)
    assert "2.parquet" in " ".join(seen["problems"])


def test_without_a_space_files_are_checked_for_damage_alone(study, invoke):
    seen = found(invoke, "csv", *COLUMNS)
    assert (seen["ok"], seen["records"], seen["space"]) == (True, 60, None)
    assert "give --space" in invoke("check", "csv", *COLUMNS).stdout
    assert "--space is missing" in invoke("check", "csv", "--radius", "2", code=2).stderr


def test_formats_that_are_read_whole_are_checked_too(folder, invoke):
    pathlib.Path("skulls.tps").write_text("LM=3\n0 0\n1 0\n0 1\nID=A\nLM=3\n0 0\n2 0\n0 2\nID=B\n")
    seen = found(invoke, "skulls.tps", "--space", "kendall")
    assert (seen["ok"], seen["records"], seen["space"]) == (True, 2, "KendallShapes(3)")
    assert "--space is missing" in invoke("check", "skulls.tps", code=2).stderr


def test_names_that_are_no_files_are_refused_as_everywhere(study, invoke):
    assert "nowhere" in invoke("check", "nowhere", code=2).stderr
    assert "'person'" in invoke("check", "parquet", *SPD, "--units", "persons", code=2).stderr
