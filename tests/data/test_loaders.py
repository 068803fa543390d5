"""Every format is written here and read back, and every damaged file is refused with its name and without its data."""

import gzip
import struct
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpmanifold.data.descriptors as blocks
from dpmanifold import (
    SPD,
    Ball,
    Euclidean,
    InvalidArgumentError,
    InvalidDataError,
    KendallShapes,
    MissingPackageError,
    Sphere,
    data,
)
from dpmanifold.data.table_files import select_columns

pytestmark = pytest.mark.security

RNG = np.random.default_rng(0)
SECRET = "31415.9265"


def write(folder, name, content):
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content, encoding="utf-8")
    return path


def refused(error, function, *arguments, says=(), **options):
    """Return the message of the refusal, after looking that it tells `says` and no data, itself or its causes."""
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    message = str(caught.value)
    for word in [says] if isinstance(says, str) else says:
        assert word in message
    assert SECRET not in message
    # What a traceback shows besides the message.
    assert caught.value.__suppress_context__ or SECRET not in str(caught.value.__context__)
    return message


# Arrays


def test_npy_is_a_read_only_memory_map(tmp_path):
    X = RNG.standard_normal((20, 3, 3))
    np.save(tmp_path / "x.npy", X)
    loaded = data.load_array(tmp_path / "x.npy")
    assert isinstance(loaded, np.memmap)
    assert not loaded.flags.writeable
    np.testing.assert_array_equal(loaded, X)
    np.testing.assert_array_equal(data.load_array(str(tmp_path / "x.npy")), X)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(24.0).reshape(2, 3, 4),
        np.asfortranarray(np.arange(24.0).reshape(4, 6)),
        np.arange(5, dtype=">i2"),
        np.array(["ab", "cdé"]),
        np.zeros((0, 3, 3)),
        np.float64(3.0),
        np.array([np.nan, np.inf]),
    ],
)
def test_npz_round_trip_mapped_unless_compressed_or_empty(tmp_path, save, array):
    save(tmp_path / "x.npz", other=np.zeros(7), wanted=array)
    loaded = data.load_array(tmp_path / "x.npz", key="wanted")
    assert isinstance(loaded, np.memmap) == (save is np.savez and array.size > 0)
    assert loaded.dtype == array.dtype
    np.testing.assert_array_equal(loaded, array)


def test_npz_key_may_be_left_out_for_one_array_only(tmp_path):
    np.savez(tmp_path / "one.npz", a=np.arange(3))
    np.testing.assert_array_equal(data.load_array(tmp_path / "one.npz"), [0, 1, 2])
    np.savez(tmp_path / "two.npz", a=np.arange(3), b=np.arange(3))
    refused(InvalidArgumentError, data.load_array, tmp_path / "two.npz", says=["key", "'a', 'b'", "two.npz"])
    refused(InvalidArgumentError, data.load_array, tmp_path / "two.npz", key="c", says=["'c'", "'a', 'b'"])
    refused(InvalidArgumentError, data.load_array, tmp_path / "two.npz", key="a", columns="x1", says="columns")


def test_maps_show_what_is_in_the_file_now(tmp_path):
    X = np.arange(10.0)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", other=np.zeros(3), X=X)
    for name, key in (("x.npy", None), ("x.npz", "X")):
        loaded = data.load_array(tmp_path / name, key)
        place = (tmp_path / name).read_bytes().index(X.tobytes())
        with (tmp_path / name).open("r+b") as stream:
            stream.seek(place)
            stream.write(struct.pack("<d", 7.5))
        assert loaded[0] == 7.5


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def test_pickles_are_never_opened(tmp_path):
    objects = np.array([Bomb()], dtype=object)
    np.save(tmp_path / "x.npy", objects)
    np.savez(tmp_path / "x.npz", a=objects)
    for name in ("x.npy", "x.npz"):
        refused(InvalidDataError, data.load_array, tmp_path / name, says=[name, "Python objects"])
    np.save(tmp_path / "s.npy", np.zeros(2, dtype=[("a", float)]))
    refused(InvalidDataError, data.load_array, tmp_path / "s.npy", says="structured")


def test_damaged_headers_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    content = (tmp_path / "x.npy").read_bytes()
    for damaged in (content.replace(b"}", b"("), content.replace(b"(3,)", b"(-3)"), content.replace(b"<f8", b"<q9")):
        refused(InvalidDataError, data.load_array, write(tmp_path, "bad.npy", damaged), says="bad.npy")
    np.savez(tmp_path / "x.npz", a=np.zeros(3))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 99  # the zip version that is needed to unpack it
    refused(InvalidDataError, data.load_array, write(tmp_path, "bad.npz", bytes(content)), says="bad.npz")


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "packed.npz"])
@pytest.mark.parametrize("keep", [0, 3, 20, 100, -1, -100])
def test_truncated_arrays_are_refused(tmp_path, name, keep):
    X = RNG.standard_normal((50, 4))
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", a=X)
    np.savez_compressed(tmp_path / "packed.npz", a=X)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:keep])
    refused(InvalidDataError, data.load_array, tmp_path / name, says=name)


def test_a_header_that_promises_more_than_the_file_holds_is_refused_before_memory_is_asked_for(tmp_path):
    lie = np.lib.format
    with (tmp_path / "x.npy").open("wb") as stream:
        lie.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    member = (tmp_path / "x.npy").read_bytes()
    refused(InvalidDataError, data.load_array, tmp_path / "x.npy", says="x.npy")
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "x.npz", "w", method) as archive:
            archive.writestr("a.npy", member)
        refused(InvalidDataError, data.load_array, tmp_path / "x.npz", says=["x.npz", "'a'"])


def test_a_damaged_compressed_member_fails_its_checksum(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=RNG.standard_normal(1000))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[4000] ^= 255
    (tmp_path / "x.npz").write_bytes(content)
    refused(InvalidDataError, data.load_array, tmp_path / "x.npz", says="x.npz")


def test_paths_that_cannot_be_read_are_refused(tmp_path):
    refused(InvalidArgumentError, data.load_array, tmp_path / "none.npy", says="none.npy")
    refused(InvalidArgumentError, data.load_array, tmp_path, says="folder")
    refused(InvalidArgumentError, data.load_array, 3, says="path")
    refused(InvalidArgumentError, data.load_array, write(tmp_path, "x.pkl", b"\x80"), says=[".npy", "x.pkl"])
    refused(InvalidDataError, data.load_array, write(tmp_path, "x.npz", b"no archive"), says="x.npz")


# Tables


def write_parquet(path, columns, **options):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_csv_round_trip_to_the_last_bit(tmp_path, delimiter, start):
    X = RNG.standard_normal((30, 3))
    lines = [delimiter.join(["id", "x1", "x2", "x3"])]
    lines += [delimiter.join([f"p{i}", *map(repr, row)]) for i, row in enumerate(X.tolist())]
    path = write(tmp_path, "x.csv", start + "\r\n".join(lines) + "\r\n\r\n")
    loaded = data.load_array(path, columns=["x1", "x2", "x3"])
    assert loaded.dtype == np.float64
    np.testing.assert_array_equal(loaded, X)
    np.testing.assert_array_equal(data.load_array(path, columns="x1..x3"), X)
    np.testing.assert_array_equal(data.load_array(path, columns=["x3", "x1"]), X[:, [2, 0]])
    assert data.load_column(path, "id").tolist() == [f"p{i}" for i in range(30)]


@pytest.mark.parametrize("name", ["id", '"id"'])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_a_byte_order_mark_is_no_part_of_a_table(tmp_path, name, suffix):
    between = "\t" if suffix == ".tsv" else ","
    content = f"\ufeff{name}{between}x\n7{between}1\n8{between}2\n".encode()
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    ids = data.load_column(path, "id")
    assert ids.dtype == np.int64
    assert ids.tolist() == [7, 8]
    np.testing.assert_array_equal(data.load_array(path), [[7, 1], [8, 2]])


def test_missing_entries_become_nan_and_are_passed_on(tmp_path):
    path = write(tmp_path, "x.csv", "a,b\n1,\nNA,nan\n -2 ,inf\nnull, N/A \n")
    expected = [[1, np.nan], [np.nan, np.nan], [-2, np.inf], [np.nan, np.nan]]
    np.testing.assert_array_equal(data.load_array(path), expected)


def test_quoted_entries_and_tables_without_records(tmp_path):
    path = write(tmp_path, "x.csv", '"a, or b",c\n"1.5","x, y"\n')
    np.testing.assert_array_equal(data.load_array(path, columns=["a, or b"]), [[1.5]])
    assert data.load_column(path, "c").tolist() == ["x, y"]
    empty = write(tmp_path, "empty.csv", "a,b\n")
    assert data.load_array(empty).shape == (0, 2)
    assert data.load_column(empty, "a").shape == (0,)


def test_patterns_of_columns(tmp_path):
    names = ["id", "x1", "y1", "x2", "y2", "lm_2", "lm_1", "lm_10", "z08", "z09", "z10", "a*"]
    cases = {
        "x1..x2": ["x1", "x2"],
        "x1..y2": ["x1", "y1", "x2", "y2"],
        "lm_*": ["lm_2", "lm_1", "lm_10"],
        "lm_1..lm_2": ["lm_1", "lm_2"],
        "z08..z10": ["z08", "z09", "z10"],
        "a*": ["a*"],
        "?1": ["x1", "y1"],
    }
    for pattern, expected in cases.items():
        assert select_columns(names, pattern, tmp_path) == expected
        assert select_columns(names, [pattern, "id"], tmp_path) == [*expected, "id"]
    for pattern in ("x1..x3", "x2..x1", "y2..x1", "q*", "X1", "x1..q", "x1..x999999999999", ""):
        refused(InvalidArgumentError, select_columns, names, pattern, tmp_path, says=["columns", "'x1', 'y1'"])
    for wrong in (3, [], ["x1", 2], {"x1": 0}):
        refused(InvalidArgumentError, select_columns, names, wrong, tmp_path, says="'lm_*'")
    refused(InvalidArgumentError, select_columns, names, ["x1", "x*"], tmp_path, says=["'x1'", "twice"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f"a,b\n1,2\n{SECRET},2,3\n", ["line 3", "3 entries", "quotes"]),
        (f"a,b\n1,2\n{SECRET}\n", ["line 3", "1 entries"]),
        (f"a,b\n1,2\n\n{SECRET},2\n", ["line 3", "blank"]),
        (f'a,b\n1,"{SECRET}\n', ["not CSV", "quotes"]),
        (f"0.5,{SECRET}\n1,2\n", ["line 1", "names"]),
        (f"A,{SECRET}\nB,2\n", ["line 1", "names"]),
        ("", ["empty"]),
        (b"a,b\n1,2\n\xff\xfe\n", ["UTF-8"]),
        ("a,b\n1,2\n".encode("utf-16"), ["UTF-8"]),
    ],
)
def test_bad_csv_is_refused_with_its_line_and_without_its_data(tmp_path, content, says):
    path = write(tmp_path, "bad.csv", content)
    refused(InvalidDataError, data.load_array, path, says=["bad.csv", *says])


@pytest.mark.parametrize("content", ["a,b\n1,2\n3,x\n", 'a,b\n1,2\n3,"2,5"\n', "a,b\n1,2\n3,\n"])
def test_a_cell_of_a_csv_that_is_not_a_number_is_nan(tmp_path, content):
    np.testing.assert_array_equal(data.load_array(write(tmp_path, "x.csv", content)), [[1.0, 2.0], [3.0, np.nan]])


def test_columns_that_are_not_there_or_there_twice(tmp_path):
    path = write(tmp_path, "x.csv", "a,b,b\n1,2,3\n")
    refused(InvalidArgumentError, data.load_array, path, columns=["c"], says=["'c'", "'a', 'b', 'b'", "x.csv"])
    refused(InvalidDataError, data.load_array, path, columns=["b"], says=["two columns", "'b'"])
    refused(InvalidDataError, data.load_array, path, columns="b*", says=["two columns", "'b'"])
    refused(InvalidArgumentError, data.load_column, path, says=["column is needed", "'a', 'b', 'b'"])
    refused(InvalidArgumentError, data.load_column, path, "c", says=["'c'", "x.csv"])
    refused(InvalidArgumentError, data.load_array, path, key="a", says="key")
    np.testing.assert_array_equal(data.load_array(path), [[1, 2, 3]])


def test_numbered_columns_are_names(tmp_path):
    """What pandas writes for an array: a nameless index, and 0, 1, 2."""
    path = write(tmp_path, "x.csv", ",0,1,2\n0,1.5,2.5,3.5\n")
    np.testing.assert_array_equal(data.load_array(path, columns="0..2"), [[1.5, 2.5, 3.5]])


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (["3", " -4", "0"], np.array([3, -4, 0])),
        (["007", "7"], np.array(["007", "7"])),
        (["+7", "7"], np.array(["+7", "7"])),
        (["-0", "0"], np.array(["-0", "0"])),
        (["1.0", "2"], np.array(["1.0", "2"])),
        (["A ", " A"], np.array(["A", "A"])),
        (["12345678901234567890", "1"], np.array(["12345678901234567890", "1"])),
        (["é", "٣"], np.array(["é", "٣"])),
    ],
)
def test_ids_are_numbers_only_if_no_two_spellings_meet(tmp_path, entries, expected):
    path = write(tmp_path, "x.csv", "id\n" + "\n".join(entries) + "\n")
    loaded = data.load_column(path)
    assert loaded.dtype.kind == expected.dtype.kind
    np.testing.assert_array_equal(loaded, expected)
    assert data.load_column(path, text=True).tolist() == [entry.strip() for entry in entries]


def test_missing_ids_are_refused(tmp_path):
    path = write(tmp_path, "x.csv", f"id,x\n{SECRET},1\n,2\n")
    refused(InvalidDataError, data.load_column, path, "id", says=["line 3", "'id'"])


def test_columns_from_numpy_files(tmp_path):
    np.save(tmp_path / "ids.npy", np.array([[3], [1]]))
    assert data.load_column(tmp_path / "ids.npy").tolist() == [3, 1]
    assert data.load_column(tmp_path / "ids.npy", text=True).tolist() == ["3", "1"]
    np.savez(tmp_path / "x.npz", X=np.zeros((2, 3)), who=np.array(["a", "b"]))
    assert data.load_column(tmp_path / "x.npz", key="who").tolist() == ["a", "b"]
    refused(InvalidDataError, data.load_column, tmp_path / "x.npz", key="X", says=["(2, 3)", "x.npz"])
    refused(InvalidArgumentError, data.load_column, tmp_path / "ids.npy", column="id", says="column")


def test_parquet_round_trip_with_nan_for_nulls(tmp_path):
    columns = {
        "id": ["a", "b", "c"],
        "n": [1, 2, 3],
        "x1": [0.5, None, float("nan")],
        "x2": [1, None, 3],
        "x3": [True, False, None],
    }
    path = write_parquet(tmp_path / "x.parquet", columns, row_group_size=2)
    expected = [[0.5, 1, 1], [np.nan, np.nan, 0], [np.nan, 3, np.nan]]
    np.testing.assert_array_equal(data.load_array(path, columns="x*"), expected)
    assert data.load_array(path, columns="x1..x3").dtype == np.float64
    assert data.load_column(path, "id").tolist() == ["a", "b", "c"]
    assert data.load_column(path, "n").tolist() == [1, 2, 3]
    assert data.load_column(path, "n", text=True).tolist() == ["1", "2", "3"]
    np.testing.assert_array_equal(np.isnan(data.load_array(path))[:, 0], [True, True, True])
    refused(InvalidDataError, data.load_column, path, "x1", says="'x1'")
    refused(InvalidDataError, data.load_column, path, "x2", says=["row 1", "'x2'"])
    refused(InvalidArgumentError, data.load_array, path, columns="y", says=["'y'", "'x1'"])
    empty = write_parquet(tmp_path / "e.parquet", {"x": np.zeros(0)})
    assert data.load_array(empty).shape == (0, 1)


def test_categories_in_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    columns = {
        "c": pyarrow.array(["u", "v", "u"]).dictionary_encode(),
        "k": pyarrow.array([7, 8, 7]).dictionary_encode(),
    }
    path = write_parquet(tmp_path / "x.parquet", columns)
    assert data.load_column(path, "c").tolist() == ["u", "v", "u"]
    np.testing.assert_array_equal(data.load_array(path, columns="k"), [[7], [8], [7]])


def test_damaged_parquet_is_refused(tmp_path):
    path = write_parquet(tmp_path / "x.parquet", {"x": RNG.standard_normal(1000)})
    content = path.read_bytes()
    for damaged in (b"", content[:50], b"PAR1" + content[60:]):
        refused(InvalidDataError, data.load_array, write(tmp_path, "bad.parquet", damaged), says="bad.parquet")


def test_missing_packages_are_named_with_the_command_that_installs_them(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    write(tmp_path, "x.png", b"")
    refused(MissingPackageError, data.load_images, tmp_path, says='pip install "dpmanifold[images]"')


# Shaping


def test_flat_columns_become_records():
    A = RNG.standard_normal((6, 4, 4))
    S = A @ np.swapaxes(A, 1, 2)
    space = SPD(4)
    np.testing.assert_array_equal(data.as_records(S.reshape(6, 16), space), S)
    triangle = S[:, *np.triu_indices(4)]
    np.testing.assert_allclose(data.as_records(triangle, space), S, rtol=1e-15)
    np.testing.assert_array_equal(data.as_records([[1.0, 2, 3, 4, 5, 6]], SPD(3))[0], [[1, 2, 3], [2, 4, 5], [3, 5, 6]])
    points = RNG.standard_normal((6, 5, 2))
    np.testing.assert_array_equal(data.as_records(points.reshape(6, 10), KendallShapes(5)), points)
    assert data.as_records([[2.0]], SPD(1)).shape == (1, 1, 1)


def test_records_of_the_right_shape_stay_as_they_are(tmp_path):
    for space in (SPD(3), Sphere(2), Euclidean(4), KendallShapes(5)):
        X = space.random_point(7, rng=0)
        assert data.as_records(X, space) is X
    points = RNG.standard_normal((7, 5, 2))
    assert data.as_records(points, KendallShapes(5)) is points
    np.save(tmp_path / "x.npy", points)
    mapped = data.load_array(tmp_path / "x.npy")
    assert np.shares_memory(data.as_records(mapped, KendallShapes(5)), mapped)


@pytest.mark.parametrize(
    ("shape", "space", "says"),
    [
        ((3, 3), SPD(3), "array[None]"),
        ((5, 8), SPD(3), "9 columns, or 6"),
        ((5, 5), KendallShapes(5), "10 columns"),
        ((5, 2), KendallShapes(5), "array[None]"),
        ((5, 4), Sphere(2), "(n, 3)"),
        ((3,), Sphere(2), "array[None]"),
        ((2, 5, 3, 3), SPD(3), "(2, 5, 3, 3)"),
    ],
)
def test_other_shapes_are_refused(shape, space, says):
    refused(InvalidDataError, data.as_records, np.zeros(shape), space, says=says)


def test_as_records_refuses_what_is_not_numbers_or_not_a_space():
    refused(InvalidDataError, data.as_records, np.array([["a"]]), SPD(1), says="numbers")
    refused(InvalidArgumentError, data.as_records, [[1.0]], Ball(SPD(1), [[1.0]], 1.0), says="space")


# Images


def idx(array, magic=None):
    head = bytes([0, 0, 8, array.ndim]) if magic is None else bytes(magic)
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


IMAGES = RNG.integers(0, 256, (7, 6, 5), dtype=np.uint8)
LABELS = RNG.integers(0, 10, 7).astype(np.uint8)


@pytest.mark.parametrize("packed", [False, True])
def test_idx_round_trip(tmp_path, packed):
    pack, suffix = (gzip.compress, ".gz") if packed else (bytes, "")
    path = write(tmp_path, "train-images-idx3-ubyte" + suffix, pack(idx(IMAGES)))
    loaded = data.load_images(path)
    assert isinstance(loaded, np.memmap) != packed
    np.testing.assert_array_equal(loaded, IMAGES)
    labels = write(tmp_path, "train-labels-idx1-ubyte" + suffix, pack(idx(LABELS)))
    np.testing.assert_array_equal(data.load_labels(labels), LABELS)
    refused(InvalidDataError, data.load_images, labels, says="load_labels")
    refused(InvalidDataError, data.load_labels, path, says="load_images")
    assert data.load_images(write(tmp_path, "none" + suffix, pack(idx(IMAGES[:0])))).shape == (0, 6, 5)


HUGE = struct.pack(">4B3I", 0, 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "idx"),
        (b"\0\0", "idx"),
        (idx(IMAGES)[:10], "header"),
        (idx(IMAGES)[:-1], "header"),
        (idx(IMAGES) + b"\0", "header"),
        (HUGE + bytes(100), "header"),
        (idx(IMAGES, [0, 1, 8, 3]), "idx"),
        (idx(IMAGES, [0, 0, 7, 3]), "idx"),
        (idx(IMAGES, [0, 0, 13, 3]), "float32"),
        (idx(IMAGES, [0, 0, 8, 0]), "0 axes"),
        (idx(IMAGES, [0, 0, 8, 255]), "255 axes"),
        (b"\x80\x04data", "pickle"),
        (b"PNG image or whatever", "idx"),
    ],
)
def test_bad_idx_is_refused(tmp_path, packed, content, says):
    name = "bad-idx3-ubyte" + (".gz" if packed else "")
    path = write(tmp_path, name, gzip.compress(content) if packed else content)
    refused(InvalidDataError, data.load_images, path, says=[name, says])


def test_damaged_gzip_is_refused(tmp_path):
    content = gzip.compress(idx(IMAGES))
    wrong_sum = content[:-8] + bytes(8)
    for damaged in (content[:-10], content[:30], wrong_sum, b"not packed"):
        path = write(tmp_path, "x.gz", damaged)
        refused(InvalidDataError, data.load_images, path, says="x.gz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    ("image_key", "label_key", "split"),
    [
        ("images", "labels", None),
        ("x", "y", None),
        ("train_images", "train_labels", "train"),
        ("x_test", "y_test", "test"),
        ("val_images", "val_labels", None),
        ("pictures", "classes", None),
    ],
)
def test_images_in_archives(tmp_path, save, image_key, label_key, split):
    path = tmp_path / "x.npz"
    save(path, **{image_key: IMAGES, label_key: LABELS[:, None]})
    keys = {"key": image_key}, {"key": label_key}
    if image_key != "pictures":
        keys = {"split": split}, {"split": split}
    loaded = data.load_images(path, **keys[0])
    assert isinstance(loaded, np.memmap) == (save is np.savez)
    np.testing.assert_array_equal(loaded, IMAGES)
    np.testing.assert_array_equal(data.load_labels(path, **keys[1]), LABELS)


def test_the_split_must_be_said_if_there_are_several(tmp_path):
    path = tmp_path / "medmnist.npz"
    parts = {"train": IMAGES, "val": IMAGES[:2], "test": IMAGES[:3]}
    arrays = {f"{name}_images": part for name, part in parts.items()}
    np.savez(path, **arrays, **{f"{name}_labels": np.zeros((len(part), 1)) for name, part in parts.items()})
    for name, part in parts.items():
        np.testing.assert_array_equal(data.load_images(path, split=name), part)
        assert data.load_labels(path, split=name).shape == (len(part),)
    refused(InvalidArgumentError, data.load_images, path, says=["split", "'train', 'val', 'test'"])
    refused(InvalidArgumentError, data.load_images, path, split="dev", says=["'dev'", "val"])
    refused(InvalidArgumentError, data.load_images, path, split="val", key="val_images", says="split")
    np.savez(path, a=IMAGES, b=IMAGES)
    refused(InvalidArgumentError, data.load_images, path, says=["key", "'a', 'b'"])
    refused(InvalidArgumentError, data.load_images, path, split="val", says=["key", "'val'"])


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros(5), "load_labels"),
        (np.zeros((5, 784)), "reshape"),
        (np.zeros((5, 3, 8, 8)), "channels go last"),
        (np.zeros((5, 8, 8, 8, 3)), "key="),
        (np.full((2, 8, 8), "a"), "numbers"),
    ],
)
def test_arrays_that_are_no_images(tmp_path, array, says):
    np.save(tmp_path / "x.npy", array)
    refused(InvalidDataError, data.load_images, tmp_path / "x.npy", says=["x.npy", says])


def test_a_last_axis_of_one_channel_is_dropped_and_colour_stays(tmp_path):
    np.save(tmp_path / "gray.npy", IMAGES[..., None])
    gray = data.load_images(tmp_path / "gray.npy")
    assert isinstance(gray, np.memmap)
    np.testing.assert_array_equal(gray, IMAGES)
    np.save(tmp_path / "rgb.npy", np.repeat(IMAGES[..., None], 3, axis=-1))
    assert data.load_images(tmp_path / "rgb.npy").shape == (7, 6, 5, 3)
    np.save(tmp_path / "labels.npy", LABELS)
    np.testing.assert_array_equal(data.load_labels(tmp_path / "labels.npy"), LABELS)
    np.save(tmp_path / "many.npy", np.zeros((7, 14)))
    refused(InvalidDataError, data.load_labels, tmp_path / "many.npy", says="(7, 14)")
    refused(InvalidArgumentError, data.load_images, tmp_path / "gray.npy", key="images", says="key")
    refused(InvalidArgumentError, data.load_images, tmp_path / "gray.npy", split="train", says="split")


def test_cifar_binary_round_trip(tmp_path):
    images = RNG.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    labels = np.array([3, 9, 0, 1], dtype=np.uint8)
    planes = np.moveaxis(images, -1, 1).reshape(4, -1)
    content = np.concatenate([labels[:, None], planes], axis=1).tobytes()
    path = write(tmp_path, "data_batch_1.bin", content)
    loaded = data.load_images(path)
    assert isinstance(loaded, np.memmap)
    np.testing.assert_array_equal(loaded, images)
    np.testing.assert_array_equal(data.load_labels(path), labels)
    for bad in (b"", content[:-1], b"\x0a" + content[1:]):
        refused(InvalidDataError, data.load_images, write(tmp_path, "bad.bin", bad), says=["bad.bin", "CIFAR-10"])


def picture(folder, name, array, mode=None, **options):
    image = pytest.importorskip("PIL.Image").fromarray(array)
    folder.mkdir(exist_ok=True)
    (image if mode is None else image.convert(mode)).save(folder / name, **options)


def test_folder_of_pictures_sorted_by_name(tmp_path):
    for name, image in zip(["b.png", "a.PNG", "c.png"], IMAGES, strict=False):
        picture(tmp_path / "gray", name, image)
    write(tmp_path / "gray", "notes.txt", "not a picture")
    write(tmp_path / "gray", "._a.png", b"what another system leaves behind")
    np.testing.assert_array_equal(data.load_images(tmp_path / "gray"), IMAGES[[1, 0, 2]])
    colours = RNG.integers(0, 256, (2, 6, 5, 3), dtype=np.uint8)
    picture(tmp_path / "rgb", "0.png", colours[0])
    picture(tmp_path / "rgb", "1.png", colours[1])
    loaded = data.load_images(tmp_path / "rgb")
    assert loaded.dtype == np.uint8
    np.testing.assert_array_equal(loaded, colours)
    picture(tmp_path / "jpeg", "0.jpg", np.full((16, 16), 80, np.uint8))
    assert np.abs(data.load_images(tmp_path / "jpeg") - 80.0).max() <= 2
    picture(tmp_path / "mask", "0.png", np.eye(8, dtype=np.uint8) * 255, mode="1")
    np.testing.assert_array_equal(data.load_images(tmp_path / "mask")[0], np.eye(8) * 255)


def test_folders_that_cannot_be_one_array_are_refused(tmp_path):
    image, colour = IMAGES[0], np.repeat(IMAGES[0][..., None], 3, axis=-1)
    picture(tmp_path / "sizes", "a.png", image)
    picture(tmp_path / "sizes", "b.png", image[:-1])
    refused(InvalidDataError, data.load_images, tmp_path / "sizes", says=["b.png", "(5, 5)", "(6, 5)", "one size"])
    picture(tmp_path / "colours", "a.png", image)
    picture(tmp_path / "colours", "b.png", colour)
    refused(InvalidDataError, data.load_images, tmp_path / "colours", says=["b.png", "all gray or all RGB"])
    picture(tmp_path / "clear", "a.png", colour, mode="RGBA")
    refused(InvalidDataError, data.load_images, tmp_path / "clear", says=["a.png", "transparency"])
    picture(tmp_path / "deep", "a.png", image.astype(np.uint16) * 256)
    refused(InvalidDataError, data.load_images, tmp_path / "deep", says=["a.png", "8-bit"])
    picture(tmp_path / "broken", "a.png", image)
    content = (tmp_path / "broken" / "a.png").read_bytes()
    for damaged in (b"", content[:20], content[:-30], b"GIF89a"):
        write(tmp_path / "broken", "a.png", damaged)
        refused(InvalidDataError, data.load_images, tmp_path / "broken", says="a.png")
    refused(InvalidArgumentError, data.load_images, tmp_path, says="no PNG or JPEG")
    refused(InvalidArgumentError, data.load_images, tmp_path / "sizes" / "a.png", says="folder")
    refused(InvalidArgumentError, data.load_labels, tmp_path / "sizes", says="load_column")


# Blocks


@given(st.integers(0, 50), st.integers(1, 60))
def test_blocks_cover_everything_once(count, size):
    parts = list(data.iter_blocks(range(count), size))
    assert [i for part in parts for i in range(count)[part]] == list(range(count))
    assert all(part.stop - part.start == size for part in parts[:-1])


@pytest.mark.parametrize("size", [0, -1, 1.5, True, None])
def test_blocks_refuse_other_sizes_at_once(size):
    refused(InvalidArgumentError, data.iter_blocks, range(3), size, says="size")


@pytest.mark.parametrize("shape", [(500, 9, 7), (500, 9, 7, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_descriptors_in_blocks_are_the_same_to_the_last_bit(tmp_path, monkeypatch, shape, dtype):
    images = RNG.integers(0, 256, shape, dtype=np.uint8)
    images = images if dtype is np.uint8 else images / 255
    whole = data.covariance_descriptors(images, eta=1e-4)
    np.save(tmp_path / "x.npy", images)
    mapped = data.load_images(tmp_path / "x.npy")
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 1000)
    done = []
    np.testing.assert_array_equal(data.descriptors_in_blocks(mapped, 1e-4, progress=done.append), whole)
    assert len(done) > 2
    assert done == sorted(done)
    assert done[-1] == 500
    out = np.lib.format.open_memmap(tmp_path / "out.npy", mode="w+", dtype=np.float64, shape=whole.shape)
    assert data.descriptors_in_blocks(mapped, 1e-4, out=out) is out
    np.testing.assert_array_equal(out, whole)


def test_descriptors_in_blocks_refuse_what_covariance_descriptors_refuses(monkeypatch):
    assert data.descriptors_in_blocks(np.zeros((0, 8, 8))).shape == (0, 9, 9)
    for wrong in (np.zeros((3, 4, 4)), np.zeros((3, 8, 8), int)):
        refused(InvalidDataError, data.descriptors_in_blocks, wrong, says="images must")
    refused(InvalidArgumentError, data.descriptors_in_blocks, np.zeros((3, 8, 8)), 0.0, says="eta")
    refused(InvalidArgumentError, data.descriptors_in_blocks, [[[0.0]]], says="array")
    refused(InvalidArgumentError, data.descriptors_in_blocks, np.zeros((3, 8, 8)), progress=3, says="progress")
    for out in (np.zeros((3, 9, 8)), np.zeros((3, 9, 9), np.float32), [1.0]):
        refused(InvalidArgumentError, data.descriptors_in_blocks, np.zeros((3, 8, 8)), out=out, says="(3, 9, 9)")
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 1)
    images = np.zeros((900, 8, 8))
    images[700] = 2
    step = blocks._block_size(images.shape, 9)
    message = refused(InvalidDataError, data.descriptors_in_blocks, images, says=f"index {700 // step * step} on")
    assert f"at index {700 % step} " in message


# Landmarks

POINTS = RNG.standard_normal((5, 4, 2))


def wide(names, points=POINTS, owners="abcde"):
    lines = [",".join(["id", *names])]
    lines += [
        ",".join([owner, *map(repr, row)]) for owner, row in zip(owners, points.reshape(5, -1).tolist(), strict=True)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "form", ["{axis}{number}", "{axis}_{number}", "lm{number}_{axis}", "{number}{axis}", "P{number}.{axis}"]
)
def test_wide_landmarks_are_found_by_their_names(tmp_path, form):
    names = [form.format(axis=axis, number=number) for number in range(1, 5) for axis in "XY"]
    points, ids = data.load_landmarks(write(tmp_path, "x.csv", wide(names)), landmarks=4)
    np.testing.assert_array_equal(points, POINTS)
    assert points.dtype == np.float64
    assert ids.tolist() == list("abcde")


def test_wide_landmarks_are_put_in_order_even_where_all_x_come_first(tmp_path):
    names = [f"x{i}" for i in range(1, 5)] + [f"y{i}" for i in range(1, 5)]
    text = wide(names, points=np.swapaxes(POINTS, 1, 2))
    path = write(tmp_path, "x.csv", text)
    for columns in (None, "x1..y4", ["y*", "x*"]):
        np.testing.assert_array_equal(data.load_landmarks(path, columns=columns)[0], POINTS)


def test_landmarks_listed_by_name_are_taken_as_listed(tmp_path):
    names = [f"{axis}{i}" for i in range(1, 5) for axis in "xy"]
    path = write(tmp_path, "x.csv", wide(names))
    listed = data.load_landmarks(path, columns=["x2", "y2", "x1", "y1", "x4", "y4"])[0]
    np.testing.assert_array_equal(listed, POINTS[:, [1, 0, 3]])
    mirrored = data.load_landmarks(path, columns=["y1", "x1", "y2", "x2", "y3", "x3"])[0]
    np.testing.assert_array_equal(mirrored, POINTS[:, :3, ::-1])
    # All x first would make landmarks of two x each, in silence.
    refused(
        InvalidArgumentError,
        data.load_landmarks,
        path,
        columns=["x1", "x2", "y1", "y2"],
        says=["'x1' and 'x2'", "x*,y*"],
    )


def test_wide_landmarks_with_other_names_need_columns(tmp_path):
    path = write(tmp_path, "x.csv", wide([f"c{i}" for i in range(8)]))
    np.testing.assert_array_equal(data.load_landmarks(path, columns="c0..c7")[0], POINTS)
    refused(InvalidArgumentError, data.load_landmarks, path, says=["columns", "'c0'"])
    refused(InvalidArgumentError, data.load_landmarks, path, columns="c0..c6", says=["7 columns", "even"])
    refused(InvalidDataError, data.load_landmarks, path, landmarks=3, columns="c*", says=["4 landmarks", "landmarks=3"])
    refused(InvalidArgumentError, data.load_landmarks, path, landmarks=0, says="landmarks")
    odd = write(tmp_path, "odd.csv", "x1,y1,x2\n0,0,0\n")
    refused(InvalidArgumentError, data.load_landmarks, odd, says="columns")


def test_landmarks_in_space_are_refused_until_two_coordinates_are_chosen(tmp_path):
    solid = np.concatenate([POINTS, np.ones((5, 4, 1))], axis=2)
    path = write(tmp_path, "x.csv", wide([f"{axis}{i}" for i in range(1, 5) for axis in "xyz"], solid))
    refused(InvalidArgumentError, data.load_landmarks, path, says=["'z1'", "in the plane", "columns="])
    np.testing.assert_array_equal(data.load_landmarks(path, columns=["x*", "y*"])[0], POINTS)
    np.testing.assert_array_equal(data.load_landmarks(path, columns=["z*", "x*"])[0], solid[..., [0, 2]])
    long = write(tmp_path, "long.csv", "id,landmark,x,y,z\na,1,0,0,1\na,2,1,0,1\na,3,0,1,1\n")
    refused(InvalidArgumentError, data.load_landmarks, long, says=["'z'", "in the plane"])


def test_ids_come_from_a_column_or_are_counted(tmp_path):
    path = write(tmp_path, "x.csv", "who,x1,y1\n7,1,2\n9,,4\n")
    points, ids = data.load_landmarks(path)
    np.testing.assert_array_equal(points, [[[1, 2]], [[np.nan, 4]]])
    assert ids.tolist() == [0, 1]
    assert data.load_landmarks(path, id_column="who")[1].tolist() == [7, 9]
    refused(InvalidArgumentError, data.load_landmarks, path, id_column="whom", says=["'whom'", "'who'"])


def long_rows(points=POINTS, owners="qpabc", name="{}"):
    rows = [
        (owners[i], name.format(j + 1), *points[i, j].tolist())
        for i in range(len(points))
        for j in range(points.shape[1])
    ]
    return [",".join(map(str, row)) for row in rows]


@pytest.mark.parametrize(("name", "count"), [("{}", 4), ("lm{}", 12)])
def test_long_landmarks_whatever_the_order_of_the_rows(tmp_path, name, count):
    points = RNG.standard_normal((5, count, 2))
    rows = long_rows(points, name=name)
    order = RNG.permutation(len(rows))
    for arranged in (rows, [rows[i] for i in order]):
        path = write(tmp_path, "x.csv", "\n".join(["ID,Landmark,x,y", *arranged]))
        loaded, ids = data.load_landmarks(path, landmarks=count)
        firsts = list(dict.fromkeys(row[0] for row in arranged))
        assert ids.tolist() == firsts
        np.testing.assert_array_equal(loaded, points[["qpabc".index(owner) for owner in firsts]])


def test_long_landmarks_must_be_complete(tmp_path):
    rows = long_rows()
    faults = {
        "missing": rows[:5] + rows[6:],
        "twice": [*rows[:5], rows[4], *rows[6:]],
        "extra": [*rows[:8], "p,9,0,0", *rows[8:]],
    }
    for fault, changed in faults.items():
        path = write(tmp_path, "x.csv", "\n".join(["id,landmark,x,y", *changed]))
        begins = 0 if fault == "extra" else 4
        refused(InvalidDataError, data.load_landmarks, path, says=["x.csv", f"record {begins} "])
    nameless = write(tmp_path, "n.csv", "who,landmark,x,y\n1,1,0,0\n")
    refused(InvalidArgumentError, data.load_landmarks, nameless, says=["id_column", "'who'"])
    assert data.load_landmarks(nameless, id_column="who")[0].shape == (1, 1, 2)
    missing = write(tmp_path, "m.csv", "id,landmark,x,y\n1,1,,2\n")
    np.testing.assert_array_equal(data.load_landmarks(missing)[0], [[[np.nan, 2]]])


def test_tables_without_specimens(tmp_path):
    assert data.load_landmarks(write(tmp_path, "wide.csv", "id,x1,y1,x2,y2\n"))[0].shape == (0, 2, 2)
    points, ids = data.load_landmarks(write(tmp_path, "long.csv", "id,landmark,x,y\n"))
    assert len(points) == len(ids) == 0


def test_landmarks_in_parquet(tmp_path):
    columns = {f"{axis}{j + 1}": POINTS[:, j, k] for j in range(4) for k, axis in enumerate("xy")}
    path = write_parquet(tmp_path / "x.parquet", {"specimen": list("abcde"), **columns})
    points, ids = data.load_landmarks(path)
    np.testing.assert_array_equal(points, POINTS)
    assert ids.tolist() == list("abcde")


def test_landmarks_in_numpy_files(tmp_path):
    np.save(tmp_path / "x.npy", POINTS)
    np.savez(tmp_path / "x.npz", flat=POINTS.reshape(5, 8), whole=np.zeros((2, 3, 2), int), bad=np.zeros((2, 3, 3)))
    points, ids = data.load_landmarks(tmp_path / "x.npy")
    np.testing.assert_array_equal(points, POINTS)
    assert ids.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(data.load_landmarks(tmp_path / "x.npz", key="flat")[0], POINTS)
    assert data.load_landmarks(tmp_path / "x.npz", key="whole")[0].dtype == np.float64
    refused(InvalidDataError, data.load_landmarks, tmp_path / "x.npz", key="bad", says="(2, 3, 3)")
    refused(InvalidArgumentError, data.load_landmarks, tmp_path / "x.npz", says=["key", "'flat'"])
    refused(InvalidArgumentError, data.load_landmarks, tmp_path / "x.npy", columns="x*", says="columns")
    refused(InvalidArgumentError, data.load_landmarks, tmp_path / "x.npy", key="x", says="key")
    refused(InvalidArgumentError, data.load_landmarks, write(tmp_path, "x.txt", ""), says=".tps")


def tps(points, *words, blank=""):
    lines = []
    for i, one in enumerate(points):
        lines += [
            f"LM={len(one)}",
            *(f"{x!r} {y!r}" for x, y in one.tolist()),
            *(word.format(i) for word in words),
            blank,
        ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["IMAGE=fly_{}.jpg", "ID={}"], ["0", "1", "2", "3", "4"]),
        (["image=fly {}.jpg", "COMMENT=a=b"], [f"fly {i}.jpg" for i in range(5)]),
        (["ID="], [0, 1, 2, 3, 4]),
        ([], [0, 1, 2, 3, 4]),
    ],
)
def test_tps_round_trip(tmp_path, words, expected):
    points, ids = data.load_landmarks(write(tmp_path, "x.TPS", tps(POINTS, *words)), landmarks=4)
    np.testing.assert_array_equal(points, POINTS)
    assert ids.tolist() == expected


def test_tps_scale_and_missing_landmarks(tmp_path):
    path = write(tmp_path, "x.tps", "LM=2\n1 2\nNA 4\nSCALE=0.5\n\nLM=2\n1 2\n3 4\n")
    np.testing.assert_array_equal(data.load_landmarks(path)[0], [[[0.5, 1], [np.nan, 2]], [[1, 2], [3, 4]]])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "LM=8"),
        (f"LM=2\n1 {SECRET}\n", ["line 1", "2 landmarks and has 1"]),
        (f"LM=2\n1 {SECRET}\nID=3\n1 2\n", ["line 1", "has 1"]),
        (f"LM=1\n1 {SECRET}\n1 2\n", "line 3"),
        (f"LM=1\n1 x{SECRET}\n", "line 2"),
        (f"LM=1\n1 2 {SECRET}\n", ["line 2", "3 numbers"]),
        ("LM=1\n1,5 2,5\n", ["line 2", "decimal point"]),
        ("LM=1\n1 2\nLM=2\n1 2\n3 4\n", ["line 3", "2 landmarks", "first one 1"]),
        ("LM=x\n", "line 1"),
        ("LM=0\n", "line 1"),
        ("LM3=1\n1 2 3\n", "plane"),
        ("LM=1\n1 2\nCURVES=1\nPOINTS=2\n", ["line 3", "curves"]),
        ("LM=1\n1 2\nSCALE=0\n", ["line 3", "SCALE"]),
        ("ID=1\nLM=1\n1 2\n", ["line 1", "first LM="]),
        (b"LM=1\n1 2\nIMAGE=\xff.jpg\n", "UTF-8"),
    ],
)
def test_bad_tps_is_refused_with_its_line(tmp_path, content, says):
    refused(
        InvalidDataError,
        data.load_landmarks,
        write(tmp_path, "bad.tps", content),
        says=["bad.tps", *([says] if isinstance(says, str) else says)],
    )


def test_loaded_landmarks_are_shapes(tmp_path):
    points, _ = data.load_landmarks(write(tmp_path, "x.tps", tps(POINTS)))
    assert KendallShapes(4).check(points) is None


# Damage


@given(st.sampled_from(["x.npy", "x.npz", "packed.npz", "idx", "idx.gz", "x.csv", "x.tps"]), st.data())
def test_damaged_bytes_give_an_array_or_a_refusal(tmp_path_factory, name, draw):
    """Nothing but the library's own errors comes out, whatever stands in a file."""
    folder = tmp_path_factory.mktemp("damaged")
    np.save(folder / "x.npy", POINTS)
    np.savez(folder / "x.npz", images=POINTS)
    np.savez_compressed(folder / "packed.npz", images=POINTS)
    write(folder, "idx", idx(IMAGES))
    write(folder, "idx.gz", gzip.compress(idx(IMAGES)))
    write(folder, "x.csv", wide([f"{axis}{i}" for i in range(4) for axis in "xy"]))
    write(folder, "x.tps", tps(POINTS, "ID={}"))
    content = bytearray((folder / name).read_bytes())
    for _ in range(draw.draw(st.integers(1, 3))):
        content[draw.draw(st.integers(0, min(len(content), 400) - 1))] = draw.draw(st.integers(0, 255))
    path = write(folder, name, bytes(content))
    function = data.load_landmarks if name in ("x.csv", "x.tps") else data.load_images
    try:
        read = function(path)
    except (InvalidDataError, InvalidArgumentError):
        return  # a refusal; every other error fails the test
    assert isinstance(read[0] if isinstance(read, tuple) else read, np.ndarray)
