"""Records from one file, many, a folder or a pattern, by one process or several: the release is the same."""

import json
import logging
import os
import pathlib
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmanifold as dpm
from cli.shared import MEAN, tensors

REST = MEAN[2:]
WHERE = ["--space", "spd", "--center", "0.7", "--radius", "2.5", "--mu", "1"]
TRIANGLE = ["xx", "xy", "xz", "yy", "yz", "zz"]
COLUMNS = ["--columns", ",".join(TRIANGLE)]
PLACES = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]


def table_of(X, people):
    """Return the upper triangles of matrices, with who they are of and in which class."""
    columns = {name: np.ascontiguousarray(X[:, i, j]) for name, (i, j) in zip(TRIANGLE, PLACES, strict=True)}
    return pa.table({"person": people, "kind": np.arange(len(X)) % 2, **columns})


def write_csv(table, path):
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    lines = [",".join(table.column_names), *(",".join(map(repr, row)).replace("'", "") for row in rows)]
    pathlib.Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def stored(folder):
    """Write the same 200 tensors in every way: parts are of different lengths, and people are in several of them."""
    X = tensors()
    people = np.random.default_rng(3).permutation(np.arange(200) % 50)
    whole = table_of(X, people)
    cuts = [slice(0, 3), slice(3, 120), slice(120, 200)]
    for name in ("parquet", "csv", "npy", "second"):
        os.mkdir(name)
    pq.write_table(whole, "all.parquet")
    write_csv(whole, "all.csv")
    np.savez("all.npz", X=X, person=people)
    np.save("people.npy", people)
    for number, cut in enumerate(cuts):
        part = whole.slice(cut.start, cut.stop - cut.start)
        pq.write_table(part, f"parquet/{number}.parquet", row_group_size=50)
        write_csv(part, f"csv/{number}.csv")
        np.save(f"npy/{number}.npy", X[cut])
    pq.write_table(table_of(tensors(seed=1), people + 100), "second/only.parquet")
    return X, people


WAYS = {
    "npy": ["a.npy"],
    "npz": ["all.npz", "--array", "X"],
    "csv": ["all.csv", *COLUMNS],
    "parquet": ["all.parquet", *COLUMNS],
    "folder of parquet": ["parquet", *COLUMNS],
    "folder of csv": ["csv", *COLUMNS],
    "folder of npy": ["npy"],
    "pattern": ["parquet/*.parquet", *COLUMNS],
    "pattern of folders": ["*/[0-9].csv", *COLUMNS],
    "several": ["csv/0.csv", "csv/1.csv", "csv/2.csv", *COLUMNS],
    "range of columns": ["csv", "--columns", "xx..zz"],
}


def released(path="out.json"):
    return json.loads(pathlib.Path(path).read_text())


@pytest.mark.parametrize("space", ["spd", "spd-riemann"])
@pytest.mark.parametrize("way", WAYS)
def test_a_mean_is_the_same_from_everywhere(stored, invoke, way, space):
    words = [*WAYS[way], *WHERE, "--space", space, "--units", "each-record", "--seed", "7", "--out", "out.json"]
    invoke("mean", *words)
    X, _ = stored
    ball = dpm.Ball(dpm.SPD(3) if space == "spd" else dpm.SPD(3, metric="riemann"), 0.7 * np.eye(3), 2.5)
    expected = dpm.private_mean(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, rng=7)
    assert released() == json.loads(json.dumps(expected.to_dict()))


@pytest.mark.parametrize("way", ["csv", "parquet", "folder of parquet", "folder of csv", "npz", "several"])
def test_people_whose_records_are_in_several_files_are_one(stored, invoke, way):
    X, people = stored
    invoke("mean", *WAYS[way], *WHERE, "--units", "person", "--seed", "7", "--out", "out.json")
    ball = dpm.Ball(dpm.SPD(3), 0.7 * np.eye(3), 2.5)
    expected = dpm.private_mean(X, ball, dpm.GDP(1.0), units=people, rng=7)
    assert released()["n"] == 50
    assert released()["value"] == json.loads(json.dumps(expected.to_dict()))["value"]


@pytest.mark.parametrize("units", ["people.npy", "all.csv:person", "all.npz:person"])
def test_ids_of_a_folder_may_stand_in_a_file_of_their_own(stored, invoke, units):
    invoke("mean", "parquet", *COLUMNS, *WHERE, "--units", "person", "--seed", "7", "--out", "in.json")
    invoke("mean", "parquet", *COLUMNS, *WHERE, "--units", units, "--seed", "7", "--out", "beside.json")
    assert released("in.json") == released("beside.json")


def test_ids_that_are_too_few_or_nowhere_are_refused(stored, invoke):
    np.save("few.npy", np.arange(7))
    words = ["mean", "parquet", *COLUMNS, *WHERE, "--out", "out.json"]
    assert "7 values for 200 records" in invoke(*words, "--units", "few.npy", code=3).stderr
    refused = invoke(*words, "--units", "persons", code=2).stderr
    assert "there is no such file" in refused
    assert "'person'" in refused
    assert not pathlib.Path("out.json").exists()


COMMANDS = {
    "variance": ["variance"],
    "region": ["region"],
    "variance-interval": ["variance-interval"],
    "ball": ["ball"],
    "statistic": ["statistic", "second-moment"],
    "mean --refine": ["mean", "--refine"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_a_folder(stored, invoke, command):
    name, *own = COMMANDS[command]
    words = [*WHERE, "--units", "person", "--seed", "7", "--out"]
    leading = own[:1] if name == "statistic" else []
    rest = own[1:] if name == "statistic" else own
    invoke(name, *leading, "all.npz", "--array", "X", *words, "one.json", *rest)
    invoke(name, *leading, "parquet", *COLUMNS, *words, "many.json", *rest, "--force")
    assert released("one.json") == released("many.json")


def test_means_by_class_take_a_folder(stored, invoke):
    words = [*COLUMNS, *WHERE, "--units", "person", "--seed", "7", "--labels", "kind", "--classes", "0,1"]
    for way in ("all.parquet", "parquet", "csv", "csv/*.csv"):
        name = way.replace("/", "-").replace("*", "")
        invoke("class-means", way, *words, "--out", f"means-{name}")
        for number in (0, 1):
            one, two = (released(f"{place}/mean-{number}.json") for place in ("means-all.parquet", f"means-{name}"))
            assert one == two


def test_a_test_takes_two_folders_and_no_more(stored, invoke):
    words = [*COLUMNS, *WHERE, "--units", "person", "--seed", "7", "--out"]
    invoke("two-sample-test", "all.parquet", "second/only.parquet", *words, "one.json")
    invoke("two-sample-test", "parquet", "second", *words, "two.json")
    assert released("one.json") == released("two.json")
    told = invoke(
        "two-sample-test", "parquet/0.parquet", "parquet/1.parquet", "second", *words, "x.json", code=2
    ).stderr
    assert "in quotes" in told
    assert not pathlib.Path("x.json").exists()


def test_public_balls_take_folders(stored, invoke):
    invoke("ball", "a.npy", "--public", "--space", "spd", "--out", "one.json")
    invoke("ball", "parquet", *COLUMNS, "--public", "--space", "spd", "--out", "many.json")
    assert released("one.json") == released("many.json")


def test_what_is_revealed_of_a_folder_is_what_is_revealed_of_a_file(stored, invoke):
    words = [*WHERE, "--units", "person", "--seed", "7", "--reveal", "--out"]
    invoke("mean", "all.npz", "--array", "X", *words, "one.json")
    invoke("mean", "parquet", *COLUMNS, *words, "many.json")
    assert released("one.json") == released("many.json")
    assert released("one.json")["details"]["revealed_error"] > 0


def test_nearly_valid_records_are_moved_block_by_block(stored, invoke):
    X = tensors()
    X[:, 0, 1] += 1e-6
    os.mkdir("askew")
    np.save("askew.npy", X)
    for number, cut in enumerate([slice(0, 90), slice(90, 200)]):
        np.save(f"askew/{number}.npy", X[cut])
    words = [*WHERE, "--units", "each-record", "--seed", "7", "--out", "out.json", "--force"]
    invoke("mean", "askew", *words, code=3)
    invoke("mean", "askew", "--normalize", *words)
    ball = dpm.Ball(dpm.SPD(3), 0.7 * np.eye(3), 2.5)
    expected = dpm.private_mean(dpm.SPD(3).project(X), ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, rng=7)
    assert released() == json.loads(json.dumps(expected.to_dict()))


def test_directions_in_degrees_are_known_by_their_columns_in_a_folder(folder, invoke):
    rng = np.random.default_rng(0)
    os.mkdir("sites")
    rows = [f"{lon:.6f},{lat:.6f}" for lon, lat in zip(rng.normal(10, 5, 90), rng.normal(50, 5, 90), strict=True)]
    for number in range(3):
        pathlib.Path(f"sites/{number}.csv").write_text("\n".join(["lon,lat", *rows[30 * number : 30 * number + 30]]))
    pathlib.Path("all.csv").write_text("\n".join(["lon,lat", *rows]))
    words = [
        "--space",
        "sphere",
        "--center",
        "0.63,0.11,0.77",
        "--radius",
        "0.5",
        "--mu",
        "1",
        "--units",
        "each-record",
    ]
    for way in ("all.csv", "sites"):
        invoke("mean", way, *words, "--units", "each-record", "--normalize", "--seed", "1", "--out", f"{way}.json")
    assert released("all.csv.json") == released("sites.json")


# -------------------------------------------------------------------- refusals


def test_damage_in_the_middle_names_the_file_and_nothing_is_released(stored, invoke):
    damaged = bytearray(pathlib.Path("parquet/1.parquet").read_bytes())
    damaged[2000:3000] = bytes(1000)
    pathlib.Path("parquet/1.parquet").write_bytes(damaged)
    told = invoke("mean", "parquet", *COLUMNS, *WHERE, "--units", "person", "--out", "out.json", code=3)
    assert "1.parquet" in told.stderr
    assert told.stdout == ""
    assert not pathlib.Path("out.json").exists()


def test_an_unknown_statistic_is_refused_before_anything_is_read(folder, invoke):
    told = invoke("statistic", "typo", "nowhere.npy", *REST, "--out", "out.json", code=2).stderr
    assert "typo" in told
    assert "second-moment" in told
    assert "nowhere" not in told


def test_an_unknown_mechanism_is_refused_before_anything_is_read(folder, invoke):
    told = invoke("mean", "nowhere.npy", *REST, "--mechanism", "typo", "--out", "out.json", code=2).stderr
    assert "wrapped-gaussian" in told
    assert "nowhere" not in told


def test_patterns_that_mean_nothing_and_files_that_are_not_there(stored, invoke):
    for path in ("parquet/*.csv", "nowhere/", "parquet/9.parquet", "second/*.npy"):
        told = invoke("mean", path, *REST, "--out", "out.json", code=2).stderr
        assert path.rstrip("/") in told


@pytest.mark.parametrize("way", ["in the folder", "of the pattern", "hard link", "symbolic link"])
def test_no_file_of_a_folder_or_a_pattern_is_written_over(stored, invoke, way):
    target = {"in the folder": "npy/new.npy", "of the pattern": "npy/new.npy"}.get(way, "link.npy")
    if way == "hard link":
        os.link("npy/1.npy", target)
    if way == "symbolic link":
        os.symlink("npy/1.npy", target)
    before = {path: path.read_bytes() for path in pathlib.Path("npy").iterdir()}
    for path in ["npy/*.npy"] if way == "of the pattern" else ["npy", "npy/*.npy", "**/*.npy"]:
        words = [*REST, "--out", "out.json", "--npy", target, "--force"]
        told = invoke("mean", path, *words, code=2).stderr
        assert "another" in told
    assert {path: path.read_bytes() for path in pathlib.Path("npy").iterdir()} == before
    assert not pathlib.Path("out.json").exists()


def test_an_output_beside_a_pattern_is_nobodys_input(stored, invoke):
    os.mkdir("results")
    invoke("mean", "npy/*.npy", *REST, "--out", "results/out.json", "--npy", "results/out.npy")
    invoke("mean", "npy/[0-9].npy", *REST, "--out", "npy/out.json", "--npy", "npy/mean.npy")
    for name in ("results/out", "npy/mean"):
        assert np.load(f"{name}.npy").shape == (3, 3)
    assert dpm.load("npy/out.json").n == dpm.load("results/out.json").n


# -------------------------------------------------------------------- workers


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--workers", "2"], ["--workers", "1"]])
def test_workers_give_the_same_release(stored, launch, words):
    common = ["mean", "parquet", *COLUMNS, *WHERE, "--space", "spd-riemann", "--units", "person", "--seed", "7"]
    alone = launch(*common, "--out", "alone.json")
    helped = launch(*common, *words, "--out", "helped.json")
    assert (alone.returncode, helped.returncode) == (0, 0), helped.stderr
    assert helped.stderr == b""
    assert released("alone.json") == released("helped.json")
    assert helped.stdout.replace(b"helped", b"alone") == alone.stdout


@pytest.mark.slow
def test_workers_find_the_faults_that_one_process_finds(stored, launch):
    path = pathlib.Path("parquet/1.parquet")
    content = bytearray(path.read_bytes())
    content[2000:2600] = bytes(600)
    path.write_bytes(content)
    words = ["check", "parquet", *COLUMNS, "--space", "spd", "--units", "person", "--json"]
    alone, helped = launch(*words), launch(*words, "--workers", "2")
    assert (alone.returncode, helped.returncode) == (3, 3)
    assert alone.stdout == helped.stdout
    assert helped.stderr == b""


def test_a_cluster_that_runs_is_used_by_its_address(stored, invoke):
    distributed = pytest.importorskip("distributed")
    words = ["mean", "parquet", *COLUMNS, *WHERE, "--units", "person", "--seed", "7", "--out"]
    invoke(*words, "alone.json")
    quiet = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    level = logging.getLogger("distributed").level
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, scheduler_kwargs=quiet
    ) as here:
        invoke(*words, "helped.json", "--dask", here.scheduler_address)
        assert here.workers  # it is somebody else's, and goes on
        assert logging.getLogger("distributed").level == level  # as are the logs of this process
    assert released("alone.json") == released("helped.json")


def test_workers_and_a_cluster_are_not_both_asked_for(stored, invoke):
    words = ["mean", "parquet", *COLUMNS, *WHERE, "--units", "person", "--out", "out.json"]
    assert "Give one" in invoke(*words, "--workers", "2", "--dask", "tcp://127.0.0.1:1", code=2).stderr
    invoke(*words, "--workers", "0", code=2)
    assert "no address" in invoke(*words, "--dask", "nonsense", code=2).stderr


def test_what_is_missing_for_workers_is_said(stored, invoke, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for option in (["--workers", "2"], ["--dask", "tcp://127.0.0.1:1"]):
        words = ["mean", "parquet", *COLUMNS, *WHERE, "--units", "person", "--out", "out.json", *option]
        assert 'pip install "dpmanifold[dask]"' in invoke(*words, code=2).stderr


@pytest.mark.slow  # it waits for ten seconds
def test_a_scheduler_that_does_not_answer_is_said(stored, invoke):
    words = ["mean", "parquet", *COLUMNS, *WHERE, "--units", "person", "--out", "out.json"]
    told = invoke(*words, "--dask", "tcp://127.0.0.1:9", code=1).stderr
    assert "tcp://127.0.0.1:9" in told
    assert not pathlib.Path("out.json").exists()
    assert shutil.which("dpm") is None or told.startswith("dpm: ")


# -------------------------------------------------------------------- folders and images


TENSORS = ["--space", "spd", "--radius", "3", "--mu", "1"]


@pytest.fixture
def scans(folder):
    """Two folders of images, and a table beside them that is no part of the records."""
    nibabel = pytest.importorskip("nibabel")
    for number in range(6):
        place = folder / "study" / f"sub-{number}" / "dwi"
        place.mkdir(parents=True)
        values = np.broadcast_to([1.6, 0.0, 0.0, 0.4, 0.0, 0.4], (2, 2, 2, 6))
        nibabel.Nifti1Image(values, np.eye(4)).to_filename(place / f"sub-{number}_tensor.nii.gz")
    rows = "".join(f"sub-{number}\t{30 + number}\t{'ab'[number % 2]}\n" for number in range(6))
    (folder / "study" / "participants.tsv").write_text("participant_id\tage\tgroup\n" + rows)
    return "study/*/dwi/*.nii.gz"


def test_a_table_of_ages_is_not_read_for_the_images_beside_it(invoke, scans, folder):
    asked = ["--units", "participant_id", "--labels", "group", "--classes", "a,b", "--out", "g.json"]
    done = invoke("k-sample-test", "study", *TENSORS, *asked, code=2)
    for word in ("participants.tsv", "sub-0/dwi/sub-0_tensor.nii.gz", "not guessed", "'study/*.tsv'", "of images"):
        assert word in done.stderr
    assert "data." not in done.stderr
    assert not (folder / "g.json").exists()


def test_images_are_given_by_name_or_by_a_pattern(invoke, scans, folder):
    names = sorted(map(str, (folder / "study").glob("*/dwi/*.nii.gz")))
    how = [*TENSORS, "--order", "fsl", "--seed", "1"]
    for given, out in (([scans], "a.json"), (names, "b.json")):
        done = invoke("mean", *given, *how, "--units", "image", "--notice", "--out", out)
        assert "read are 6 images of tensors: 'sub-0_tensor.nii.gz', " in done.stderr
    first, second = (dpm.load(out) for out in ("a.json", "b.json"))
    assert first.to_dict() == second.to_dict()
    assert (first.n, first.unit) == (6, "unit")
    invoke("mean", scans, *how, "--units", "study/participants.tsv:participant_id", "--out", "c.json")
    assert dpm.load("c.json").to_dict() == first.to_dict()
    pair = ["study/sub-[0-2]/dwi/*.nii.gz", "study/sub-[3-5]/dwi/*.nii.gz"]
    invoke("two-sample-test", *pair, *TENSORS, "--order", "fsl", "--units", "image", "--out", "t.json")
    assert [release.n for release in dpm.load("t.json").released] == [3, 3]
    assert "6 units" in invoke("check", scans, "--order", "fsl", "--space", "spd", "--units", "image").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--units", "image"], "--order is needed"),
        (["--order", "fsl", "--mask", "nonzero", "--units", "each-record"], "--units: how many voxels --mask nonzero"),
        (["--order", "fsl", "--columns", "x*", "--units", "image"], "--columns means nothing"),
    ],
)
def test_what_is_said_of_images_names_options(invoke, scans, words, said):
    done = invoke("mean", scans, *TENSORS, *words, "--out", "no.json", code=2)
    assert said in done.stderr
    assert "=" not in done.stderr


def test_a_bids_folder_without_masks_is_told_of_the_option(invoke, scans, folder):
    (folder / "study" / "dataset_description.json").write_text("{}")
    how = [*TENSORS, "--order", "fsl", "--out", "b.json"]
    done = invoke("mean", "study", *how, "--units", "participant_id", code=2)
    assert "Give --mask as another pattern, as one image for all, or as nonzero." in done.stderr
    done = invoke("mean", "study", *how, "--mask", "nonzero", "--units", "each-record", code=2)
    assert "Give --units participant_id." in done.stderr
    done = invoke("mean", "study", *how, "--mask", "nonzero", "--units", "participant_id", "--notice")
    assert "read are 6 images of tensors of study; there are the columns 'participant_id', 'age'" in done.stderr
    (folder / "study" / "participants.tsv").unlink()
    done = invoke("mean", "study", *how, "--force", "--mask", "nonzero", "--units", "participant_id", code=2)
    assert "give the images by a pattern in quotes and --units image" in done.stderr


def test_a_folder_of_tables_tells_what_is_read(invoke, folder):
    (folder / "parts").mkdir()
    for name in ("a.csv", "b.csv"):
        (folder / "parts" / name).write_text("who,x1,x2\n" + "".join(f"{name}{i},0.1,0.{i}\n" for i in range(9)))
    asked = ["--space", "euclidean", "--columns", "x*", "--units", "who", "--radius", "1", "--mu", "1"]
    told = "read are 2 files ('a.csv', 'b.csv'): records of Euclidean(2) from 'x1', 'x2'; units from 'who'."
    for number, given in enumerate((["parts"], ["parts/*.csv"])):
        assert told in invoke("mean", *given, *asked, "--notice", "--out", f"{number}.json").stderr
    for number, more in enumerate(([], ["--quiet"])):  # to no pipe unless it is asked for
        assert "read are" not in invoke("mean", "parts", *asked, *more, "--out", f"{number}-q.json").stderr
