"""Records in data frames, tables, stores, queries and functions: the same ones, bit for bit, as in an array."""

from __future__ import annotations

import decimal
import pickle

import dask.dataframe
import numpy as np
import pandas
import polars
import pyarrow
import pytest

from data.kinds import (
    CLASSES,
    NAMES,
    PEOPLE,
    RNG,
    TABLES,
    TENSORS,
    N,
    arrow_table,
    chosen,
    gathered,
    pandas_frame,
    polars_frame,
)
from dpmanifold import SPD, Euclidean, KendallShapes, Sphere, data
from dpmanifold._cells import numbers_of_labels
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.sources import ADAPTERS, as_source

pytestmark = pytest.mark.security

SECRET = "1234.5678"


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_gives_the_records_of_the_array_bit_for_bit(kind):
    records, ids, classes = gathered(chosen(kind), units="person", labels="group")
    assert records.tobytes() == TENSORS.tobytes()
    assert ids.tolist() == PEOPLE.tolist()
    assert [str(label) for label in classes] == CLASSES.tolist()


@pytest.mark.parametrize("kind", [kind for kind in TABLES if "blocks" not in kind and "zarr" not in kind])
def test_columns_are_chosen_by_the_words_of_files(kind):
    named = "tens*" if "lists" in kind or "arrays" in kind else ["x1..x5", "x[6-9]"]
    records, ids, _ = gathered(data.from_frame(TABLES[kind](), named), units="name")
    assert records.tobytes() == TENSORS.tobytes()
    assert [str(name) for name in ids] == NAMES.tolist()


@pytest.mark.parametrize("kind", TABLES)
def test_ids_may_stand_beside_the_records(kind):
    if "dask" in kind:
        return  # below: how long partitions are is not known
    source = chosen(kind)
    for given in (NAMES, NAMES.tolist(), pandas.Series(NAMES), pyarrow.array(NAMES), polars.Series(NAMES.tolist())):
        records, ids, classes = gathered(source, units=given, labels=CLASSES)
        assert records.tobytes() == TENSORS.tobytes()
        assert ids.tolist() == NAMES.tolist()
        assert classes.tolist() == CLASSES.tolist()
    for wrong in (NAMES[:-1], np.append(NAMES, "one more")):
        with pytest.raises(InvalidArgumentError, match=r"units must have .*one id per record"):
            gathered(source, units=wrong)
    for each in (None, "each-record"):
        assert gathered(source, units=each)[1] is None


def test_a_frame_of_numbers_is_what_numpy_makes_of_it():
    """What was possible before there were sources stays as it was."""
    directions = Sphere(2).random_point(50, rng=2)
    frames = [
        pandas.DataFrame(directions),
        pandas.DataFrame(directions, columns=["x", "x", "z"]),
        pandas.DataFrame(directions, columns=pandas.MultiIndex.from_product([["a"], ["x", "y", "z"]])),
        pandas.DataFrame(directions.astype(np.float32)),
        pandas.DataFrame({"x": [1, 0], "y": [0.0, 1.0], "z": np.zeros(2, dtype=np.uint8)}),
    ]
    for frame in frames:
        records, ids, _ = gathered(frame, Sphere(2), units=list(range(len(frame))))
        assert records.tobytes() == np.asarray(frame).astype(float).tobytes()
        assert ids.tolist() == list(range(len(frame)))
    shapes = pandas.DataFrame(RNG.normal(size=(20, 4)) + 1j * RNG.normal(size=(20, 4)))
    assert gathered(shapes, KendallShapes(4))[0].tobytes() == np.asarray(shapes).tobytes()


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a hundredth of the numbers that they usually have: large frames are then small."""
    monkeypatch.setattr("dpmanifold.data.pieces._BLOCK", 2_622)


def test_large_frames_are_cut_into_pieces_and_blocks(small_blocks):
    values = RNG.normal(size=(22_000, 2))
    frame = pandas.DataFrame(values, columns=["x", "y"]).assign(person=np.arange(len(values)))
    for source in (frame, polars.from_pandas(frame), pyarrow.Table.from_pandas(frame)):
        pieces = as_source(source).bound(Euclidean(2), "person")
        blocks = [block for piece in pieces for block in piece.blocks()]
        assert max(block.records.size for block in blocks) == 2_622
        assert np.concatenate([block.records for block in blocks]).tobytes() == values.tobytes()
        assert [(piece.first, piece.rows) for piece in pieces] == [(0, 20_976), (20_976, 1_024)]


@pytest.mark.parametrize("kind", ["pandas", "polars", "Table"])
def test_a_piece_brings_along_its_own_rows_alone(kind, small_blocks):
    """A worker that is sent one piece is not sent the whole frame."""
    values = RNG.normal(size=(40_000, 2))
    frame = pandas.DataFrame(values, columns=["x", "y"])
    made = {"pandas": lambda f: f, "polars": polars.from_pandas, "Table": pyarrow.Table.from_pandas}[kind](frame)
    pieces = as_source(made).bound(Euclidean(2))
    assert len(pieces) == 2
    assert sum(len(pickle.dumps(piece)) for piece in pieces) < 1.01 * values.nbytes


def test_people_who_own_no_record_are_not_handed_on():
    """A categorical column may know of more people than have records; who counts its words would count them."""
    people = pandas.Categorical(["b", "a", "b", "a"], categories=["NA", "a", "b", "nobody"])
    frame = pandas.DataFrame({"x": np.arange(4.0), "p": people})
    arrow = pyarrow.Table.from_pandas(frame)
    kinds = polars.DataFrame({"x": np.arange(4.0), "p": ["b", "a", "b", "a"]})
    for made in (frame, arrow, arrow.slice(0, 1), kinds.cast({"p": polars.Enum(["NA", "a", "b", "nobody"])})):
        for piece in as_source(made).bound(Euclidean(1), "p"):
            for block in piece.blocks():
                words = getattr(block.units, "dictionary", block.units).tolist()  # pandas 2 hands on what it holds
                assert set(words) == set(block.units.tolist())


# -------------------------------------------------------------------- how columns are written


@pytest.mark.parametrize("chosen", [None, ["xx", "FA", "xz", "yy", "yz", "zz"]])
def test_another_column_does_not_take_the_place_of_a_missing_entry(chosen):
    rows, columns = np.triu_indices(3)
    six = pandas.DataFrame(TENSORS[:, rows, columns], columns=["xx", "FA", "xz", "yy", "yz", "zz"])
    with pytest.raises(InvalidArgumentError, match="not all of them are there: 'xx', 'xz', 'yy', 'yz', 'zz'"):
        gathered(data.from_frame(six, chosen))


def test_orders_coordinates_and_landmarks():
    rows, columns = np.triu_indices(3)
    six = pandas.DataFrame(TENSORS[:, rows, columns], columns=["xx", "xy", "xz", "yy", "yz", "zz"])
    assert gathered(six)[0].tobytes() == TENSORS.tobytes()
    mrtrix = six[["xx", "yy", "zz", "xy", "xz", "yz"]]
    assert gathered(data.from_frame(mrtrix, order="mrtrix"))[0].tobytes() == TENSORS.tobytes()
    assert gathered(mrtrix)[0].tobytes() == TENSORS.tobytes()  # by their names
    with pytest.raises(InvalidArgumentError, match="order 'fsl' contradicts the names of the columns"):
        gathered(data.from_frame(mrtrix, order="fsl"))
    plain = mrtrix.set_axis([f"t{i}" for i in range(6)], axis=1)
    with pytest.raises(InvalidDataError, match='give order="mrtrix"'):
        gathered(plain)
    with pytest.raises(InvalidArgumentError, match="order means nothing"):
        gathered(data.from_frame(pandas_frame(), "x*", order="fsl"))

    places = pandas.DataFrame({"depth": 1.0, "lat": [10.0, -20.0], "lon": [170.0, 30.0], "site": ["a", "b"]})
    wanted = data.from_coordinates(places[["lon", "lat"]].to_numpy(), "lonlat")
    for source in (places, polars.from_pandas(places), data.from_frame(places, ["lon", "lat"], coordinates="lonlat")):
        records, ids, _ = gathered(source, Sphere(2), units="site")
        assert records.tobytes() == wanted.tobytes()
        assert ids.tolist() == ["a", "b"]
    with pytest.raises(InvalidDataError, match="longitude or declination first"):
        gathered(data.from_frame(pandas.DataFrame({"a": [1.0, 2], "b": [100.0, 120]}), coordinates="lonlat"), Sphere(2))

    marks = RNG.normal(size=(30, 4, 2))
    wide = pandas.DataFrame({f"{axis}{i + 1}": marks[:, i, j] for j, axis in enumerate("xy") for i in range(4)})
    wide["age"], wide["id"] = 3.0, np.arange(30)
    records, ids, _ = gathered(wide, KendallShapes(4), units="id")
    assert records.tobytes() == marks.tobytes()
    assert ids.tolist() == list(range(30))


def test_one_bad_record_in_a_block_of_its_own_is_no_other_order():
    """What a whole file looks like is asked once; a block is judged record by record."""
    rows, columns = np.triu_indices(3)
    six = TENSORS[:, rows, columns]
    bad = np.array([[1.0, 2.0, 3.0, 0.1, 0.2, 0.3]])  # positive definite as xx, yy, zz, xy, xz, yz
    source = data.from_blocks(lambda: iter([six, bad]))
    assert len(gathered(source)[0]) == N + 1
    places = np.array([[0.0, 10.0], [1.0, 20.0]])
    steep = data.from_blocks(lambda: iter([places, np.array([[0.0, 100.0]])]), coordinates="lonlat")
    assert np.isnan(gathered(steep, Sphere(2))[0]).sum() == 3


# -------------------------------------------------------------------- gaps and what is refused


GAPS = {
    "pandas": lambda frame: frame,
    "Float64": lambda frame: frame.convert_dtypes(),
    "Arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda frame: polars.from_pandas(frame),
    "Table": lambda frame: pyarrow.Table.from_pandas(frame),
}


@pytest.mark.parametrize("kind", GAPS)
def test_gaps_become_nan_and_missing_ids_are_refused(kind):
    frame = pandas.DataFrame({"x": [1.5, None, 3.0], "n": pandas.array([1, 2, None], "Int64"), "p": ["a", "b", None]})
    made = GAPS[kind](frame)
    records = gathered(data.from_frame(made, ["x", "n"]), Euclidean(2))[0]
    np.testing.assert_array_equal(records, [[1.5, 1.0], [np.nan, 2.0], [3.0, np.nan]])
    with pytest.raises(InvalidDataError, match=r"row 2 \(the first is 0\) of .* has nothing in column 'p'"):
        gathered(made, Euclidean(2), units="p")
    labels = gathered(data.from_frame(made, "x"), Euclidean(1), labels="n")[2]
    np.testing.assert_array_equal(numbers_of_labels(labels, [1, 2], "center"), [0, 1, -1])


def test_lists_that_are_missing_are_nan():
    column = pyarrow.array([[1.0, 2.0], None, [3.0, None]], pyarrow.list_(pyarrow.float64(), 2))
    table = pyarrow.table({"v": pyarrow.chunked_array([column, column[1:]])})
    wanted = [[1, 2], [np.nan, np.nan], [3, np.nan], [np.nan, np.nan], [3, np.nan]]
    for frame in (table, polars.from_arrow(table.combine_chunks()), table.slice(0)):
        np.testing.assert_array_equal(gathered(frame, Euclidean(2))[0], wanted)
    np.testing.assert_array_equal(gathered(table.slice(2), Euclidean(2))[0], wanted[2:])


def test_decimals_are_numbers():
    numbers = [decimal.Decimal("1.25"), None]
    wanted = [[1.25], [np.nan]]
    arrow = pyarrow.table({"x": pyarrow.array(numbers, pyarrow.decimal128(9, 2))})
    frame = arrow.to_pandas(types_mapper=pandas.ArrowDtype)
    for made in (arrow, frame, polars.DataFrame({"x": numbers})):
        np.testing.assert_array_equal(gathered(made, Euclidean(1))[0], wanted)


REFUSED = {
    "unknown column": (lambda f: data.from_frame(f, "x1..x12"), {}, "there is no 'x10'.*has the columns 'x1'"),
    "unknown ids": (lambda f: f, {"units": "subject"}, "units: there is no column 'subject'.*'person'"),
    "unknown labels": (lambda f: f, {"units": "person", "labels": "sex"}, "labels: there is no column 'sex'"),
    "dates among the records": (lambda f: data.from_frame(f, ["x1..x8", "scanned"]), {}, "'scanned' .* is not numbers"),
    "ids among the records": (lambda f: data.from_frame(f, "x1..x9"), {"units": "x9"}, "'x9' has the ids or labels"),
    "dates as ids": (lambda f: f, {"units": "scanned"}, "column 'scanned' .* is not whole numbers or text"),
    "too many columns": (lambda f: f, {"units": "name"}, r"columns is needed: .*'person'.*records of SPD\(3\)"),
    "ids of a wrong type": (lambda f: f, {"units": 7}, "units must be one id per record"),
    "columns twice": (lambda f: data.from_frame(f, ["x1..x9", "x1"]), {}, "'x1' is meant twice"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("kind", ["pandas", "Table", "dask DataFrame", "pandas, types of Arrow"])
def test_refusals_name_columns_before_any_record_is_read(kind, case):
    frame, (choice, asked, said) = TABLES[kind](), REFUSED[case]
    with pytest.raises((InvalidArgumentError, InvalidDataError), match=f"(?s){said}"):
        as_source(choice(frame)).bound(SPD(3), **asked)


def test_what_a_column_holds_never_decides_whether_it_is_read():
    columns = ([3.0, 4.0], ["3", SECRET], [True, False], pandas.Categorical(["3", "4"]))
    frames = [pandas.DataFrame({"x": [1.0, 2.0], "y": other}) for other in columns]
    made = [kind(frame) for frame in frames for kind in (polars.from_pandas, pyarrow.Table.from_pandas)]
    mixed = pandas.DataFrame({"x": [1.0, 2.0], "y": [None, 4 + 0j]})
    for frame in (*frames, *made, mixed, mixed.astype({"y": complex})):
        assert gathered(frame, Euclidean(2))[0][:, 0].tolist() == [1.0, 2.0]
        with pytest.raises(InvalidArgumentError, match=r"columns is needed: .*'x', 'y'") as refused:
            gathered(frame, Euclidean(1))
        assert SECRET not in str(refused.value)
        assert gathered(data.from_frame(frame, "x"), Euclidean(1))[0].tolist() == [[1.0], [2.0]]
    flags = frames[2]
    for each in (flags, polars.from_pandas(flags), pyarrow.Table.from_pandas(flags), flags.convert_dtypes()):
        assert gathered(data.from_frame(each, "*"), Euclidean(2))[0].tolist() == [[1.0, 1.0], [2.0, 0.0]]


def test_one_text_in_a_column_costs_its_own_record_alone():
    """A column that holds one text is one of objects: the others are read all the same, as they are in an array."""
    column = np.array([1, 2.5, SECRET + "!", None, decimal.Decimal("0.5"), "7", [1], 10**400], dtype=object)
    frame = pandas.DataFrame({"x": np.zeros(8), "y": column, "p": [f"person {i}" for i in range(8)]})
    wanted = [1.0, 2.5, np.nan, np.nan, 0.5, 7.0, np.nan, np.nan]
    for source in (frame, data.from_frame(frame, ["x", "y"])):
        np.testing.assert_array_equal(gathered(source, Euclidean(2), units="p")[0][:, 1], wanted)


def test_what_is_not_asked_for_is_not_read(tmp_path):
    """Columns of a file that nobody needs may be many: they stay there."""
    path = tmp_path / "wide.parquet"
    pandas_frame().assign(notes="a" * 1000).to_parquet(path)
    asked = polars.scan_parquet(path)
    [piece] = data.from_frame(asked, "x1..x9").bound(SPD(3), "name")
    assert set(piece.read.args[0].collect_schema()) == {*(f"x{i}" for i in range(1, 10)), "name"}
    parts = dask.dataframe.read_parquet(path)
    [piece] = data.from_frame(parts, "x1..x9").bound(SPD(3), "name", "group")
    assert set(piece.delayed().compute(scheduler="synchronous")) == {*(f"x{i}" for i in range(1, 10)), "name", "group"}
    for frame in (asked, parts):
        records, ids, classes = gathered(data.from_frame(frame, "x1..x9"), units="name", labels="group")
        assert records.tobytes() == TENSORS.tobytes()
        assert ids.tolist() == NAMES.tolist()
        assert classes.tolist() == CLASSES.tolist()


def test_text_of_type_object_is_text():
    """Before version 3, pandas has no other type for it."""
    frame = pandas_frame().astype({"name": object, "group": object})
    kinds = {column.name: column.kind for column in as_source(frame)._table.columns}
    assert kinds["name"] == kinds["group"] == "text"
    assert gathered(data.from_frame(frame, "x1..x9"), units="name")[1].tolist() == NAMES.tolist()
    assert np.isnan(gathered(data.from_frame(frame, ["x1..x8", "name"]))[0][:, 2, 2]).all()
    gaps = frame.assign(name=pandas.Series([None, pandas.NA, np.nan, "a", pandas.NaT, *NAMES[5:]], dtype=object))
    with pytest.raises(InvalidDataError, match=r"row 0 .* has nothing in column 'name'"):
        gathered(data.from_frame(gaps, "x1..x9"), units="name")
    odd = frame.assign(name=pandas.Series([np.zeros(2), [1], *NAMES[2:]], dtype=object))
    assert len(gathered(data.from_frame(odd, "x1..x9"))[0]) == N  # other columns are not looked into
    late = pandas.DataFrame({"x": np.zeros(1200), "p": ["a"] * 1100 + [7] * 100}).astype({"p": object})
    assert gathered(late, Euclidean(1), units="p")[1].tolist() == late["p"].tolist()  # refused by who groups them
    parts = dask.dataframe.from_map(lambda part: part, [frame, frame], meta=frame.iloc[:0])
    assert gathered(data.from_frame(parts, "x1..x9"), units="name")[1].tolist() == [*NAMES, *NAMES]


def test_names_that_mean_two_columns():
    twice = pandas.DataFrame(np.zeros((2, 3)), columns=["x", "x", "p"])
    with pytest.raises(InvalidDataError, match=r"two columns .*'x'"):
        gathered(data.from_frame(twice, ["x", "p"]), Euclidean(2))
    with pytest.raises(InvalidDataError, match="two columns of the DataFrame are called 'x'"):
        gathered(twice, Euclidean(2), units="x")
    levels = pandas.DataFrame(np.zeros((2, 2)), columns=pandas.MultiIndex.from_product([["a"], ["x", "y"]]))
    with pytest.raises(InvalidArgumentError, match="several levels"):
        gathered(levels, Euclidean(1), units="y")
    with pytest.raises(InvalidArgumentError, match="several levels"):
        gathered(data.from_frame(levels, "x"), Euclidean(1))


def test_from_frame_takes_frames():
    for other in (np.zeros((3, 2)), [[1.0]], "frame.csv", None):
        with pytest.raises(InvalidArgumentError, match="frame must be a DataFrame"):
            data.from_frame(other)


def test_arrays_and_lists_stay_what_they_are():
    for X in (np.zeros((3, 2)), [[1.0]], np.memmap, "text", None, pandas.Series([1.0])):
        assert as_source(X) is None
    assert set(ADAPTERS.names()) >= {"frame", "zarr", "dask"}


def test_an_empty_frame_has_no_records():
    frame = pandas_frame().iloc[:0]
    for empty in (frame, polars_frame().clear(), arrow_table().slice(0, 0)):
        source = data.from_frame(empty, "x1..x9")
        assert source.rows == 0
        pieces = source.bound(SPD(3), "person")
        assert [block for piece in pieces for block in piece.blocks()] == []
