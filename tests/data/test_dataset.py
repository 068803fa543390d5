"""Many files as one source: the same records from every format, in any cut; and nothing that is damaged passes."""

import datetime
import gzip
import os
import pickle
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dpmanifold.data.file_pieces as parts
import dpmanifold.data.parquet_table as parquet_table
from dpmanifold import SPD, Euclidean, InvalidArgumentError, InvalidDataError, KendallShapes, Sphere, data
from dpmanifold._merged_ids import MergedIds
from dpmanifold.data import Dataset
from dpmanifold.data.formats import files_in
from dpmanifold.errors import SourceChangedError
from dpmanifold.sources import as_source

pytestmark = pytest.mark.security

N, PARTS = 120, 3
SECRET = "31415.9265"
X = SPD(3).random_point(N, rng=0)
WHO = np.array([f"sub-{i:02d}" for i in np.random.default_rng(1).integers(0, 20, N)])
NUMBER = np.random.default_rng(2).integers(0, 20, N)
COLUMNS = [f"x{i}" for i in range(9)]


def as_table(rows=slice(None)):
    flat = X.reshape(N, 9)[rows]
    return pa.table({**dict(zip(COLUMNS, flat.T, strict=True)), "who": WHO[rows], "number": NUMBER[rows]})


def lists(rows, kind):
    flat = pa.array(X[rows].reshape(-1))
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(flat, 9)
    if kind == "nested":
        return pa.array(X[rows].tolist(), type=pa.list_(pa.list_(pa.float64())))
    return pa.ListArray.from_arrays(np.arange(0, len(flat) + 1, 9, dtype=np.int32), flat)


def write_part(folder, kind, number, rows):
    table = as_table(rows)
    path = folder / f"part-{number}.{kind.split('/')[0]}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=7)
    elif kind.startswith("parquet/"):
        column = lists(rows, kind.split("/")[1])
        pq.write_table(pa.table({"x": column, "who": table["who"], "number": table["number"]}), path, row_group_size=11)
    elif kind == "npy":
        np.save(path, X[rows])
    elif kind.startswith("npz"):
        save = np.savez_compressed if kind == "npz/packed" else np.savez
        save(path, x=X[rows], who=WHO[rows], number=NUMBER[rows])
    else:
        between = "\t" if kind.startswith("tsv") else ","
        options = pyarrow.csv.WriteOptions(delimiter=between)
        pyarrow.csv.write_csv(table, path, options)
        if kind.endswith(".gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
    return path


def write(folder, kind, parts=PARTS):
    folder.mkdir(exist_ok=True)
    size = N // parts
    return [write_part(folder, kind, number, slice(number * size, (number + 1) * size)) for number in range(parts)]


def opened(folder, kind, **options):
    if kind.startswith("npz"):
        return Dataset(folder, key="x", **options)
    if kind == "npy":
        return Dataset(folder, **options)
    return Dataset(folder, columns="x" if "/" in kind else "x*", **options)


def everything(pieces):
    """Return all records, ids and labels of pieces, after sending the pieces elsewhere."""
    blocks = [block for piece in pickle.loads(pickle.dumps(list(pieces))) for block in piece.blocks()]
    records = np.concatenate([block.records for block in blocks])
    beside = [
        None
        if blocks[0][column] is None
        else [entry for block in blocks for entry in np.asarray(block[column]).tolist()]
        for column in (1, 2)
    ]
    return records, *beside


def refused(error, function, *says):
    with pytest.raises(error) as caught:
        function()
    message = str(caught.value)
    for word in says:
        assert word in message, message
    assert SECRET not in message
    assert caught.value.__suppress_context__ or SECRET not in str(caught.value.__context__)
    return message


def read(dataset, space=None, **asked):
    return everything(dataset.bound(space or SPD(3), **asked))


TABLES = ["parquet", "parquet/fixed", "parquet/list", "parquet/nested", "csv", "tsv", "csv.gz", "tsv.gz"]
KINDS = [*TABLES, "npz", "npz/packed", "npy"]


# -------------------------------------------------------------------- the same records from every format


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_bits(tmp_path, kind):
    write(tmp_path, kind)
    dataset = opened(tmp_path, kind)
    assert as_source(dataset) is dataset
    assert dataset.rows == (None if "sv" in kind else N)
    assert [path.name for path in dataset.files] == [f"part-{i}.{kind.split('/')[0]}" for i in range(PARTS)]
    assert repr(dataset).startswith("Dataset(3 files: 'part-0.")
    assert ("'who', 'number'" in repr(dataset)) == (kind != "npy")
    if kind in ("parquet/list", "parquet/nested"):
        with pytest.raises(InvalidArgumentError, match=r"size is needed: column 'x' .* holds lists"):
            dataset.record_shape(SPD, units="who", labels="number")
    else:
        shape, sort = dataset.record_shape(SPD, units="who", labels="number")
        assert (int(np.prod(shape)), sort) == (9, "f")
    if kind == "npy":
        records, ids, labels = read(dataset, units=WHO, labels=NUMBER)
    else:
        records, ids, labels = read(dataset, units="who", labels="number")
        assert dataset.whole("number") == ("sv" not in kind)
    assert records.tobytes() == X.tobytes()
    assert ids == WHO.tolist()
    assert list(map(str, labels)) == list(map(str, NUMBER.tolist()))
    alone, nobody, nothing = read(dataset)
    assert alone.tobytes() == X.tobytes()
    assert nobody is nothing is None


@pytest.mark.parametrize("kind", ["parquet", "parquet/fixed", "npy", "npz"])
def test_pieces_and_blocks_are_small(tmp_path, monkeypatch, kind):
    """Row groups together, and rows of arrays, until a piece is large enough; ids given in an array are cut alike."""
    write(tmp_path, kind)
    monkeypatch.setattr(parts, "_PIECE_NUMBERS", 15 * 9)
    monkeypatch.setattr(parquet_table, "_BATCH", 4)
    pieces = opened(tmp_path, kind).bound(SPD(3), WHO, NUMBER)
    assert len(pieces) > 2 * PARTS
    assert max(piece.rows for piece in pieces) <= 15
    assert sum(piece.rows for piece in pieces) == N
    records, ids, labels = everything(pieces)
    assert records.tobytes() == X.tobytes()
    assert (ids, labels) == (WHO.tolist(), NUMBER.tolist())
    for piece in pieces:
        assert "part" not in repr(piece)
        first = next(piece.blocks()).records
        if "parquet" in kind:
            assert len(first) <= 4
        part = int(piece.name.split("-")[1][0]) * (N // PARTS) + piece.first
        assert first.tobytes() == X[part : part + len(first)].tobytes()


def test_whole_numbers_are_ids_in_parquet_and_text_in_csv(tmp_path):
    write(tmp_path / "p", "parquet")
    write(tmp_path / "c", "csv")
    block = next(Dataset(tmp_path / "p", columns="x*").bound(SPD(3), "number")[0].blocks())
    assert block.units.dtype == np.int64
    block = next(Dataset(tmp_path / "c", columns="x*").bound(SPD(3), "number", "number")[0].blocks())
    assert isinstance(block.units, pa.DictionaryArray)
    assert block.labels.dtype.kind == "U"
    both = Dataset([tmp_path / "p", tmp_path / "c"], columns="x*")
    assert both.rows is None
    assert everything(both.bound(SPD(3), "number"))[1] == [str(number) for number in (*NUMBER, *NUMBER)]
    numbers = next(piece for piece in both.bound(SPD(3), "number") if piece.name.endswith("parquet"))
    assert isinstance(next(numbers.blocks()).units, pa.DictionaryArray)


def test_columns_in_another_order_are_found_by_name(tmp_path):
    paths = write(tmp_path, "parquet")
    pq.write_table(as_table(slice(40, 80)).select([*reversed(COLUMNS), "number", "who"]), paths[1])
    assert read(Dataset(tmp_path, columns="x*"), units="who")[0].tobytes() == X.tobytes()
    assert read(Dataset(tmp_path, columns=COLUMNS), units="who")[0].tobytes() == X.tobytes()
    refused(InvalidArgumentError, lambda: read(Dataset(tmp_path), units="who"), "columns is needed", "'number'")


def test_a_triangle_is_looked_at_in_the_first_block_alone(tmp_path):
    rows, columns = np.tril_indices(3)
    triangle = np.stack([X[:, i, j] for i, j in zip(rows, columns, strict=True)], axis=1)
    for number in range(2):
        part = triangle[number * 60 : number * 60 + 60]
        pq.write_table(pa.table(dict(zip("abcdef", part.T, strict=True))), tmp_path / f"{number}.parquet")
    assert read(Dataset(tmp_path, order="dipy"))[0].tobytes() == X.tobytes()
    refused(InvalidDataError, lambda: read(Dataset(tmp_path)), "0.parquet", 'order="dipy"')
    pieces = Dataset(tmp_path).bound(SPD(3))
    assert len(next(pieces[1].blocks()).records) == 60


def test_degrees_and_landmarks_are_known_by_their_columns(tmp_path):
    (tmp_path / "a.csv").write_text("site,lat,lon\nA,0,90\nB,90,0\n")
    points = read(Dataset(tmp_path), Sphere(2), units="site")[0]
    np.testing.assert_allclose(points, [[0, 1, 0], [0, 0, 1]], atol=1e-15)
    wide = tmp_path / "wide"
    wide.mkdir()
    table = {"id": ["s"], "y1": [1.0], "y2": [2.0], "y3": [3.0], "x1": [4.0], "x2": [5.0], "x3": [6.0]}
    pq.write_table(pa.table(table), wide / "a.parquet")
    dataset = Dataset(wide)
    assert dataset.record_shape(KendallShapes, units="id") == ((3, 2), "f")
    assert read(dataset, KendallShapes(3), units="id")[0].tolist() == [[[4.0, 1.0], [5.0, 2.0], [6.0, 3.0]]]


def test_gaps_are_nan(tmp_path):
    table = pa.table({"a": pa.array([1.0, None]), "b": pa.array([None, 2], type=pa.int32()), "c": [True, False]})
    pq.write_table(table, tmp_path / "a.parquet")
    np.testing.assert_array_equal(
        read(Dataset(tmp_path, columns="a..c"), Euclidean(3))[0], [[1, np.nan, 1], [np.nan, 2, 0]]
    )
    column = pa.array([[1.0, 2.0], None, [3.0, None]], type=pa.list_(pa.float64(), 2))
    other = pa.array([[1.0, 2.0], None, [3.0, None]], type=pa.list_(pa.float32()))
    for number, values in enumerate((column, other)):
        path = tmp_path / f"{number}.parquet"
        if values is column and int(pa.__version__.split(".")[0]) < 24:  # which cannot write what it cannot read
            with pytest.raises(pa.ArrowNotImplementedError):
                pq.write_table(pa.table({"x": values}), path)
            continue
        pq.write_table(pa.table({"x": values}), path)
        np.testing.assert_array_equal(read(Dataset(path), Euclidean(2))[0], [[1, 2], [np.nan] * 2, [3, np.nan]])


def test_arrays_of_other_kinds(tmp_path):
    """Single precision, whole numbers, Fortran's order, complex numbers: as one array of them would be taken."""
    for number, array in enumerate([X.astype(np.float32), np.asfortranarray(X), (10 * X).astype(np.int16)]):
        np.save(tmp_path / f"{number}.npy", array)
        np.savez_compressed(tmp_path / f"{number}.npz", array)
        for suffix in ("npy", "npz"):
            found = read(Dataset(tmp_path / f"{number}.{suffix}"))[0]
            assert found.dtype == np.float64
            np.testing.assert_array_equal(found, array)
    Z = KendallShapes(4).random_point(5, rng=0)
    np.save(tmp_path / "z.npy", Z)
    dataset = Dataset(tmp_path / "z.npy")
    assert dataset.record_shape(KendallShapes) == ((4,), "c")
    np.testing.assert_array_equal(read(dataset, KendallShapes(4))[0], Z)


# -------------------------------------------------------------------- which files are meant


def test_folders_patterns_and_lists_of_files(tmp_path):
    paths = write(tmp_path, "csv")
    for name in ("_SUCCESS", "_metadata", ".hidden.csv", "_part.csv", "notes.txt"):
        (tmp_path / name).write_text("no record")
    (tmp_path / "below").mkdir()
    for given in (
        tmp_path,
        str(tmp_path),
        f"{tmp_path}/*.csv",
        f"{tmp_path}/part-?.csv",
        paths,
        [str(tmp_path / "*-*")],
    ):
        assert list(Dataset(given).files) == paths
    assert list(Dataset([paths[2], paths[0]]).files) == [paths[2], paths[0]]
    deep = tmp_path / "below" / "deep.csv"
    deep.write_bytes(paths[0].read_bytes())
    assert set(Dataset(f"{tmp_path}/**/*.csv").files) == {*paths, deep}


@pytest.mark.parametrize("other", ["a.csv.gz", "a.parquet", "a.TSV"])
def test_a_table_beside_its_copy_in_another_format_is_not_read_twice(tmp_path, other):
    for name in ("a.csv", "b.csv", other):
        (tmp_path / name).write_text("x\n1\n")
    for given in (tmp_path, f"{tmp_path}/*"):
        refused(InvalidArgumentError, lambda given=given: files_in(given), "a.csv", other, "count twice")
    assert [path.name for path in files_in(f"{tmp_path}/*.csv")] == ["a.csv", "b.csv"]
    assert len(files_in([tmp_path / "a.csv", tmp_path / other])) == 2  # both were named


def test_paths_that_mean_nothing_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "more").mkdir()
    refused(InvalidArgumentError, lambda: Dataset(tmp_path), "no files of records", "1 .txt", "1 folders", ".parquet")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path / "more"), "holds nothing")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path / "none"), "there is no file or folder")
    refused(InvalidArgumentError, lambda: Dataset(f"{tmp_path}/*.csv"), "nothing has a name like", "*.csv")
    refused(InvalidArgumentError, lambda: Dataset([]), "empty list")
    refused(InvalidArgumentError, lambda: Dataset(7), "got 7")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path / "notes.txt"), "notes.txt", "Known are")
    (tmp_path / "s.tps").write_text("LM=1\n1 2\n")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path), "s.tps", "not read in blocks")


def test_a_folder_named_like_a_file_is_not_passed_over(tmp_path):
    write(tmp_path, "parquet")
    (tmp_path / "z.parquet").mkdir()
    refused(InvalidArgumentError, lambda: Dataset(tmp_path), "z.parquet", "is a folder")
    write(tmp_path / "z.parquet", "parquet")
    assert len(Dataset(tmp_path / "z.parquet").files) == PARTS


def test_links_that_lead_nowhere_or_in_circles(tmp_path):
    paths = write(tmp_path / "a", "csv")
    (tmp_path / "a" / "loop.csv").symlink_to(tmp_path / "a" / "loop.csv")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path / "a"), "loop.csv", "link")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path / "a" / "loop.csv"), "loop.csv", "link")
    (tmp_path / "a" / "loop.csv").unlink()
    (tmp_path / "a" / "up").symlink_to(tmp_path / "a")
    refused(InvalidArgumentError, lambda: Dataset(f"{tmp_path}/**/*.csv"), "are one file")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path / "a"), "up/part-0.csv", "in a folder below")
    (tmp_path / "a" / "up").unlink()
    (tmp_path / "a" / "again.csv").symlink_to(paths[0])
    refused(InvalidArgumentError, lambda: Dataset(tmp_path / "a"), "again.csv", "part-0.csv", "twice")
    refused(InvalidArgumentError, lambda: Dataset([paths[0], tmp_path / "a" / ".." / "a" / "part-0.csv"]), "one file")


def test_files_of_two_kinds_are_refused(tmp_path):
    write(tmp_path, "csv")
    np.save(tmp_path / "x.npy", X)
    refused(InvalidArgumentError, lambda: Dataset([tmp_path / "x.npy", tmp_path / "part-0.csv"]), "one kind")
    for mixture in (tmp_path, f"{tmp_path}/*"):
        refused(InvalidArgumentError, lambda given=mixture: Dataset(given), "x.npy", "part-0.csv", f"{tmp_path}/*.csv")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path / "x.npy", columns="x"), "columns", "x.npy")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path / "part-0.csv", key="x"), "key", "part-0.csv")


def test_a_table_beside_folders_of_images_is_not_read_for_them(tmp_path):
    """The ages of participants are no tensors, although SPD(1) would take them."""
    ages = tmp_path / "participants.tsv"
    ages.write_text("participant_id\tage\nsub-01\t31\nsub-02\t47\n")
    images = tmp_path / "sub-01" / "dwi"
    images.mkdir(parents=True)
    assert Dataset(tmp_path).files == (ages,)
    (images / "sub-01_tensor.nii.gz").write_bytes(b"an image")
    for mixture in (tmp_path, f"{tmp_path}/*"):
        says = ("participants.tsv", "sub-01/dwi/sub-01_tensor.nii.gz", "not guessed", "data.from_nifti", "*.tsv")
        refused(InvalidArgumentError, lambda given=mixture: Dataset(given), *says)
    assert Dataset(ages).files == Dataset(f"{tmp_path}/*.tsv").files == (ages,)
    assert Dataset(f"{tmp_path}/**/*.tsv").files == (ages,)
    for hidden in (".git", "_old"):
        (tmp_path / "b" / hidden).mkdir(parents=True)
        (tmp_path / "b" / hidden / "x.csv").write_text("x\n1\n")
    (tmp_path / "b" / "a.csv").write_text("x\n1\n")
    assert len(Dataset(tmp_path / "b").files) == 1


def test_what_is_read_can_be_told(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("who,x1,x2,group\nann,1,2,u\n")
    told = Dataset(tmp_path, columns="x*").read_as(Euclidean(2), "who", "group")
    assert told == (
        "2 files ('a.csv', 'b.csv'): records of Euclidean(2) from 'x1', 'x2'; units from 'who'; labels from 'group'"
    )
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    assert Dataset(tmp_path / "x.npy").read_as(Euclidean(2)).endswith("from whole arrays")


# -------------------------------------------------------------------- who and which


def test_ids_that_are_not_there(tmp_path):
    write(tmp_path / "p", "parquet")
    write(tmp_path / "c", "csv")
    write(tmp_path / "z", "npz")
    np.save(tmp_path / "x.npy", X)
    refused(InvalidArgumentError, lambda: opened(tmp_path / "p", "parquet").bound(SPD(3), "whom"), "units", "'who'")
    refused(InvalidArgumentError, lambda: opened(tmp_path / "z", "npz").bound(SPD(3), None, "x"), "labels", "'who'")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path / "x.npy").bound(SPD(3), "who"), "no columns", "in an array")
    refused(InvalidArgumentError, lambda: opened(tmp_path / "p", "parquet").bound(SPD(3), WHO[:5]), "units", f"({N},)")
    refused(InvalidArgumentError, lambda: opened(tmp_path / "c", "csv").bound(SPD(3), WHO), "name of a column")
    alone = Dataset(tmp_path / "p", columns="x0")
    refused(
        InvalidDataError, lambda: alone.bound(Euclidean(1), "x1"), "part-0.parquet", "'x1'", "whole numbers or text"
    )


@pytest.mark.parametrize("entry", [None, "", " ", "NA", "none"])
def test_missing_ids_are_refused_with_their_place(tmp_path, entry):
    who = WHO.astype(object)
    who[57] = entry
    table = as_table().set_column(9, "who", pa.array(who))
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    refused(
        InvalidDataError, lambda: read(Dataset(tmp_path, columns="x*"), units="who"), "a.parquet", "row 57", "'who'"
    )
    if entry in ("NA", "none"):
        assert read(Dataset(tmp_path, columns="x*"), labels="who")[2][57] == entry
    csv = tmp_path / "csv"
    csv.mkdir()
    pyarrow.csv.write_csv(table, csv / "a.csv")
    refused(InvalidDataError, lambda: read(Dataset(csv, columns="x*"), units="who"), "a.csv", "line 59", "'who'")
    if entry is not None:
        np.savez(tmp_path / "a.npz", x=X, who=who.astype(str))
        dataset = Dataset(tmp_path / "a.npz", key="x")
        refused(InvalidDataError, lambda: read(dataset, units="who"), "a.npz", "index 57", "'who'")


def test_missing_whole_numbers_are_refused(tmp_path):
    numbers = pa.array([None if i == 57 else int(number) for i, number in enumerate(NUMBER)])
    pq.write_table(as_table().set_column(10, "number", numbers), tmp_path / "a.parquet", row_group_size=50)
    refused(InvalidDataError, lambda: read(Dataset(tmp_path, columns="x*"), units="number"), "a.parquet", "row 57")


def test_ids_of_two_kinds_and_of_another_length(tmp_path):
    paths = write(tmp_path, "parquet")
    table = as_table(slice(40, 80))
    pq.write_table(table.set_column(10, "number", pa.array(NUMBER[40:80].astype(str))), paths[1])
    refused(InvalidDataError, lambda: opened(tmp_path, "parquet").bound(SPD(3), "number"), "part-1.parquet", "'number'")
    np.savez(tmp_path / "a.npz", x=X, who=WHO[:7])
    refused(InvalidDataError, lambda: Dataset(tmp_path / "a.npz", key="x").bound(SPD(3), "who"), "a.npz", "(7,)")


# -------------------------------------------------------------------- damage


def test_files_without_records_count_for_nothing_and_files_without_anything_are_refused(tmp_path):
    for kind in ("parquet", "csv", "npy"):
        folder = tmp_path / kind
        write(folder, kind)
        write_part(folder, kind, "0-empty", slice(0, 0))
        assert read(opened(folder, kind))[0].tobytes() == X.tobytes()
        (folder / f"part-9.{kind}").write_bytes(b"")
        refused(InvalidDataError, lambda folder=folder, kind=kind: opened(folder, kind), f"part-9.{kind}", "empty")


@pytest.mark.parametrize("keep", [3, 11, 1000, -4, -40])
def test_truncated_parquet(tmp_path, keep):
    paths = write(tmp_path, "parquet")
    paths[1].write_bytes(paths[1].read_bytes()[:keep])
    refused(InvalidDataError, lambda: opened(tmp_path, "parquet"), "part-1.parquet", "damaged, incomplete")


def test_parquet_damaged_in_the_middle_names_the_row_group(tmp_path):
    paths = write(tmp_path, "parquet")
    about = pq.ParquetFile(paths[1]).metadata.row_group(3).column(4)
    start = about.dictionary_page_offset or about.data_page_offset
    content = bytearray(paths[1].read_bytes())
    content[start : start + about.total_compressed_size] = b"\xff" * about.total_compressed_size
    paths[1].write_bytes(content)
    dataset = opened(tmp_path, "parquet")
    for units in (None, "who"):
        refused(InvalidDataError, lambda units=units: read(dataset, units=units), "part-1.parquet", "row group 3")


def test_pages_with_checksums_are_held_against_them(tmp_path):
    """A bit that is flipped in plain numbers shows by its checksum alone."""
    table = as_table().select(COLUMNS)
    pq.write_table(table, tmp_path / "a.parquet", compression="none", use_dictionary=False, write_page_checksum=True)
    content = (tmp_path / "a.parquet").read_bytes()
    place = content.index(struct.pack("<d", np.sort(X[:, 1, 1])[N // 2]))  # neither the smallest nor the largest
    (tmp_path / "a.parquet").write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    refused(InvalidDataError, lambda: read(Dataset(tmp_path)), "a.parquet", "row group 0")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"{SECRET},1", ["line 4", "2 entries"]),
        ("", ["line 4", "blank"]),
        (f'"{SECRET}', ["not CSV"]),
        ("\udcff", ["UTF-8"]),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "csv.gz"])
def test_bad_lines(tmp_path, kind, line, says):
    paths = write(tmp_path, kind)
    raw = gzip.decompress(paths[1].read_bytes()) if kind == "csv.gz" else paths[1].read_bytes()
    lines = raw.split(b"\n")
    lines.insert(3, line.encode("utf-8", "surrogateescape"))
    raw = b"\n".join(lines)
    paths[1].write_bytes(gzip.compress(raw) if kind == "csv.gz" else raw)
    refused(InvalidDataError, lambda: read(opened(tmp_path, kind), units="who"), f"part-1.{kind}", *says)


def test_a_gzip_file_that_is_cut(tmp_path):
    paths = write(tmp_path, "csv.gz")
    paths[1].write_bytes(paths[1].read_bytes()[:-300])
    refused(InvalidDataError, lambda: read(opened(tmp_path, "csv.gz")), "part-1.csv.gz", "cannot be read")


def test_other_columns_and_other_shapes(tmp_path):
    paths = write(tmp_path, "parquet")
    pq.write_table(as_table(slice(40, 80)).drop_columns(["x4"]), paths[1])
    refused(InvalidDataError, lambda: Dataset(tmp_path), "part-1.parquet", "lacks 'x4'")
    refused(InvalidDataError, lambda: Dataset(tmp_path, columns="x*").bound(SPD(3)), "part-1.parquet")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path, columns="x0..x8").bound(SPD(3)), "part-1.parquet", "'x4'")
    pq.write_table(as_table(slice(40, 80)).append_column("age", pa.array([1.0] * 40)), paths[1])
    refused(InvalidDataError, lambda: Dataset(tmp_path), "part-1.parquet", "'age' more")
    assert read(Dataset(tmp_path, columns="x*"), units="who")[0].tobytes() == X.tobytes()
    pq.write_table(as_table(slice(40, 80)).set_column(4, "x4", pa.array([f"x{SECRET}"] * 40)), paths[1])
    records = read(Dataset(tmp_path, columns="x*"), units="who")[0]
    np.testing.assert_array_equal(np.isnan(records).any(axis=(1, 2)), (np.arange(len(X)) // 40) == 1)
    pq.write_table(as_table(slice(40, 80)).set_column(4, "x4", pa.array([datetime.date(2026, 1, 1)] * 40)), paths[1])
    refused(InvalidDataError, lambda: Dataset(tmp_path, columns="x*").bound(SPD(3)), "part-1.parquet", "'x4'")
    paths = write(tmp_path / "npy", "npy")
    np.save(paths[1], np.zeros((4, 2, 2)))
    refused(InvalidDataError, lambda: Dataset(tmp_path / "npy"), "part-1.npy", "(2, 2)")
    refused(InvalidDataError, lambda: Dataset(paths[1]).bound(SPD(3)), "part-1.npy", "(n, 2, 2)")


@pytest.mark.parametrize(
    "array", [np.array([["a", "b"]]), np.array([[object()]]), np.zeros(3), np.zeros((2, 2), dtype=bool)]
)
def test_arrays_that_are_no_records(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    refused(InvalidDataError, lambda: Dataset(tmp_path), "a.npy")


def test_lists_of_other_lengths(tmp_path):
    column = pa.array([[1.0, 2.0]] * 50 + [[1.0], [2.0, 3.0, 4.0]] + [[1.0, 2.0]] * 10)
    pq.write_table(pa.table({"x": column}), tmp_path / "a.parquet", row_group_size=20)
    records = read(Dataset(tmp_path), Euclidean(2))[0]
    np.testing.assert_array_equal(np.isnan(records).any(axis=1), np.isin(np.arange(62), [50, 51]))
    refused(InvalidDataError, lambda: data.load_array(tmp_path / "a.parquet"), "a.parquet", "not of one length")
    triangles = pa.array([[1.0, 0.0, 1.0]] * 5 + [[1.0, 0.0, 0.0, 1.0], [1.0], None, [1.0] * 100])
    pq.write_table(pa.table({"x": triangles}), tmp_path / "a.parquet")
    records = read(Dataset(tmp_path), SPD(2))[0]
    assert (records[:6] == np.eye(2)).all()  # each as long as it is
    assert np.isnan(records[6:]).all()
    pq.write_table(
        pa.table({"x": pa.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0]], [[1.0]]])}), tmp_path / "a.parquet"
    )
    np.testing.assert_array_equal(np.isnan(read(Dataset(tmp_path), SPD(2))[0]).any(axis=(1, 2)), [False, True, True])
    pq.write_table(pa.table({"x": column, "y": column}), tmp_path / "a.parquet")
    refused(InvalidDataError, lambda: read(Dataset(tmp_path, columns=["x", "y"]), Euclidean(4)), "'x'", "alone")


def test_more_columns_than_a_table_has(tmp_path):
    names = ",".join(f"c{i}" for i in range(150_000))
    (tmp_path / "a.csv").write_text(f"{names}\n{','.join(['1'] * 150_000)}\n")
    assert len(refused(InvalidDataError, lambda: Dataset(tmp_path), "a.csv", "150000 columns")) < 300


def test_a_footer_that_says_too_much_is_not_unpacked(tmp_path, monkeypatch):
    pq.write_table(pa.table({f"c{i}": [1.0] for i in range(200)}), tmp_path / "a.parquet")
    monkeypatch.setattr(parquet_table, "_LONGEST_FOOTER", 1000)
    refused(InvalidDataError, lambda: Dataset(tmp_path), "a.parquet", "columns and row groups")


def test_a_bomb_is_not_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", X)
    header = {"descr": "<f8", "fortran_order": False, "shape": (2**40, 3, 3)}
    with (
        zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("arr_0.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_1_0(member, header)
        member.write(bytes(1000))
    refused(InvalidDataError, lambda: Dataset(tmp_path), "bomb.npz", "another size")


@pytest.mark.parametrize("kind", ["parquet", "csv", "npy", "npz", "npz/packed"])
def test_files_that_change_or_vanish_meanwhile(tmp_path, kind):
    paths = write(tmp_path, kind)
    dataset = opened(tmp_path, kind)
    pieces = dataset.bound(SPD(3))
    assert everything(pieces)[0].tobytes() == X.tobytes()
    content = paths[1].read_bytes()
    paths[1].write_bytes(content[: len(content) // 2])
    refused(SourceChangedError, lambda: everything(pieces), paths[1].name)
    paths[1].unlink()
    refused(SourceChangedError, lambda: everything(pieces), paths[1].name)
    paths[1].write_bytes(content)
    os.utime(paths[1], ns=(1, 1))
    refused(SourceChangedError, lambda: everything(pieces), paths[1].name)


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    """What was read half from one file and half from another is no result."""
    write(tmp_path, "parquet", parts=1)
    monkeypatch.setattr(parquet_table, "_BATCH", 8)
    blocks = opened(tmp_path, "parquet").bound(SPD(3))[0].blocks()
    next(blocks)
    os.utime(tmp_path / "part-0.parquet", ns=(1, 1))
    refused(SourceChangedError, lambda: list(blocks), "part-0.parquet")


def test_columns_of_lists_are_loaded_as_arrays_too(tmp_path):
    [path] = write(tmp_path, "parquet/list", parts=1)
    assert data.load_array(path, columns="x").tobytes() == X.tobytes()


def test_categories_that_nobody_has_are_nobody(tmp_path):
    """Parquet keeps the whole dictionary of a categorical column, and words for gaps may be among its categories."""
    values = pa.DictionaryArray.from_arrays(pa.array([1, 2, 1, 1]), pa.array(["NA", "ann", " bob ", "eve"]))
    gaps = pa.DictionaryArray.from_arrays(pa.array([1, None, 1, 1]), pa.array(["NA", "ann"]))
    pq.write_table(pa.table({"x": [1.0, 2, 3, 4], "who": values, "gaps": gaps}), tmp_path / "a.parquet")
    [piece] = Dataset(tmp_path, columns="x").bound(Euclidean(1), "who")
    [block] = piece.blocks()
    assert block.units.to_pylist() == ["ann", "bob", "ann", "ann"]
    assert block.units.dictionary.to_pylist() == ["ann", "bob"]
    refused(InvalidDataError, lambda: read(Dataset(tmp_path, columns="x"), Euclidean(1), units="gaps"), "row 1")


def test_a_row_per_landmark_is_not_a_row_per_record(tmp_path):
    (tmp_path / "a.csv").write_text("id,landmark,x,y\nA,1,0,0\nA,2,1,0\nA,3,0,1\n")
    refused(InvalidArgumentError, lambda: Dataset(tmp_path).bound(KendallShapes(3), "id"), "a.csv", "row per landmark")
    assert read(Dataset(tmp_path, columns=["x", "y"]), Euclidean(2))[0].shape == (3, 2)


def test_numbers_of_another_kind(tmp_path):
    np.save(tmp_path / "a.npy", X.astype(complex))
    refused(InvalidDataError, lambda: Dataset(tmp_path).bound(SPD(3)), "a.npy", "complex")


def test_ids_that_are_spelt_numbers_are_grouped_as_text(tmp_path):
    """Whole numbers in text have a faster way; who is who does not change, nor what is refused."""

    def numbered(*blocks):
        ids = MergedIds()
        found = [ids.add(pa.array(words).dictionary_encode(), "a.csv").tolist() for words in blocks]
        return found, ids.sorted().names, [ids.find(pa.array(words), "a.csv").tolist() for words in blocks]

    found, names, again = numbered(["7", "12", "7"], ["12", "ann", "07"], ["-3", "7"], ["99999999999999999999"])
    assert found == again == [[0, 1, 0], [1, 2, 3], [4, 0], [5]]
    assert names == sorted(["7", "12", "ann", "07", "-3", "99999999999999999999"])
    for pair in (["7", "7.0"], ["7.0", "7"]):
        refused(InvalidArgumentError, lambda pair=pair: numbered(*[[word] for word in pair]), "differs from one")
    ids = MergedIds()
    ids.add(np.array([7]), "a.parquet")
    refused(InvalidArgumentError, lambda: ids.add(pa.array(["7"]), "b.parquet"), "of one kind")
    unused = pa.DictionaryArray.from_arrays(pa.array([2, 2]), pa.array(["NA", "8", "9"]))
    ids = MergedIds()
    assert ids.add(unused, "a.csv").tolist() == [0, 0]
    assert ids.sorted().names == ["9"]


def test_how_long_a_csv_file_is_roughly(tmp_path):
    for kind in ("csv", "csv.gz"):
        paths = write(tmp_path / kind, kind, parts=1)
        [piece] = opened(tmp_path / kind, kind).bound(SPD(3))
        assert (piece.rows, piece.first) == (None, 0)
        assert N - 1 <= piece.about <= N
        rows = gzip.decompress(paths[0].read_bytes()) if kind == "csv.gz" else paths[0].read_bytes()
        names, below = rows.split(b"\n", 1)
        many = names + b"\n" + below * 40
        paths[0].write_bytes(gzip.compress(many) if kind == "csv.gz" else many)
        [piece] = opened(tmp_path / kind, kind).bound(SPD(3))
        assert 0.95 * 40 * N < piece.about < 1.05 * 40 * N


@pytest.mark.security
def test_text_of_a_damaged_parquet_file_is_read_or_refused_and_nothing_else(tmp_path):
    """Bytes that are no text, and places beyond the words: pyarrow hands on both."""
    path = tmp_path / "a.parquet"
    words = [f"p{i}" for i in np.random.default_rng(0).integers(0, 20, 400)]
    table = pa.table({"x": np.zeros(400), "id": words, "label": [word.encode() for word in words]})
    pq.write_table(table, path, compression="none", row_group_size=100, store_schema=False)
    raw, about = path.read_bytes(), pq.ParquetFile(path).metadata
    rng, refused = np.random.default_rng(1), 0
    for _ in range(300):
        column = about.row_group(int(rng.integers(about.num_row_groups))).column(int(rng.integers(1, 3)))
        damaged = bytearray(raw)
        damaged[column.dictionary_page_offset + rng.integers(column.total_compressed_size)] = rng.integers(256)
        path.write_bytes(bytes(damaged))
        try:
            for piece in data.Dataset(path, columns=["x"]).bound(Euclidean(1), units="id", labels="label"):
                for block in piece.blocks():
                    assert len(block.units) == len(block.labels) == len(block.records)
            assert len(data.load_column(path, "id")) == 400
        except InvalidDataError:
            refused += 1
    assert 50 < refused < 300
