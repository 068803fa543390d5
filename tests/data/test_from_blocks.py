"""Functions that make blocks: what they may give, that they give it again, memory, and a database."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import adbc_driver_sqlite.dbapi
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.dataset
import pytest

from data.kinds import CLASSES, NAMES, PEOPLE, TENSORS, N, OfAnother, arrow_table, batches, gathered
from dpmanifold import SPD, Euclidean, data
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, SourceChangedError
from dpmanifold.sources import as_source
from dpmanifold.stats.inputs import number_of_records

pytestmark = pytest.mark.security

NINE = arrow_table().select([f"x{i}" for i in range(1, 10)])
CUTS = [slice(i, i + 130) for i in range(0, N, 130)]


def read(source, space=None, **asked):
    """Read every piece, twice."""
    for piece in source.bound(space or SPD(3), **asked):
        for _ in range(2):
            for _ in piece.blocks():
                pass


@pytest.mark.parametrize("flat", [False, True])
def test_arrays_pairs_and_triples(flat):
    tensors = TENSORS.reshape(N, 9) if flat else TENSORS
    arrays = data.from_blocks(lambda: (tensors[cut] for cut in CUTS))
    assert gathered(arrays)[0].tobytes() == TENSORS.tobytes()
    assert gathered(arrays, units=NAMES)[1].tolist() == NAMES.tolist()
    for ids in (PEOPLE, NAMES, NAMES.tolist(), PEOPLE.tolist()):
        pairs = data.from_blocks(lambda ids=ids: ((tensors[cut], ids[cut]) for cut in CUTS), rows=N)
        assert pairs.rows == N
        records, found, none = gathered(pairs, units="units")
        assert records.tobytes() == TENSORS.tobytes()
        assert found.tolist() == list(ids)
        assert none is None
        assert gathered(pairs)[1] is None
    triples = data.from_blocks(lambda: ((tensors[cut], PEOPLE[cut], CLASSES[cut]) for cut in CUTS))
    assert gathered(triples, units="units", labels="labels")[2].tolist() == CLASSES.tolist()


def test_several_functions_are_several_pieces():
    def part(k):
        return lambda: ((TENSORS[cut], PEOPLE[cut]) for cut in CUTS[k::2])

    source = data.from_blocks([part(0), part(1)])
    assert len(source.bound(SPD(3), "units")) == 2
    records, ids, _ = gathered(source, units="units")
    order = np.concatenate([np.arange(N)[cut] for k in (0, 1) for cut in CUTS[k::2]])
    assert records.tobytes() == TENSORS[order].tobytes()
    assert ids.tolist() == PEOPLE[order].tolist()
    with pytest.raises(InvalidArgumentError, match="must come with the blocks of several functions"):
        source.bound(SPD(3), PEOPLE)


def test_large_blocks_are_cut_and_empty_ones_pass():
    large = np.zeros((400_000, 2))
    source = data.from_blocks(lambda: iter([large[:0], large, large[:0]]))
    sizes = [len(block.records) for piece in source.bound(Euclidean(2)) for block in piece.blocks()]
    assert sizes == [131_072, 131_072, 131_072, 6_784]
    assert gathered(data.from_blocks(batches(7), columns="x1..x9"), units="person")[1].tolist() == PEOPLE.tolist()
    nothing = data.from_blocks(lambda: iter([]))
    assert [list(piece.blocks()) for piece in nothing.bound(SPD(3))] == [[]]


# -------------------------------------------------------------------- what can be read once


def test_what_can_be_read_only_once_is_refused_with_the_remedy():
    blocks = [TENSORS[cut] for cut in CUTS]
    for once in (iter(blocks), (block for block in blocks)):
        with pytest.raises(InvalidArgumentError, match=r"only once.*data.from_blocks\(lambda"):
            data.from_blocks(once)
        with pytest.raises(InvalidArgumentError, match=r"X is an iterator.*data.from_blocks\(lambda"):
            as_source(once)
    with pytest.raises(InvalidArgumentError, match=r"X is an iterator \(.*RecordBatchReader.*data.from_blocks\(lambda"):
        as_source(arrow_table().to_reader())
    for wrong, remedy in (("study/", "data.Dataset"), (lambda: iter(blocks), "data.from_blocks")):
        with pytest.raises(InvalidDataError, match=f"X must be a batch of records.*{remedy}"):
            number_of_records(wrong)
    for wrong in (3, None, blocks, "SELECT 1", []):
        with pytest.raises(InvalidArgumentError, match="make must be a function"):
            data.from_blocks(wrong)


def test_a_table_of_another_library_that_can_be_read_once_or_fails_is_refused_without_its_words():
    class Fails:
        def __arrow_c_stream__(self, requested_schema=None):
            raise RuntimeError("person 1234.5678")

    class Once(OfAnother):
        def __arrow_c_stream__(self, requested_schema=None):
            stream, self._table = super().__arrow_c_stream__(), None
            return stream

    for table in (Fails(), Once(arrow_table())):
        with pytest.raises(InvalidDataError, match="the table cannot be computed, or can be read only once") as refused:
            gathered(data.from_frame(table, list(NINE.schema.names)), units="person")
        assert "1234" not in str(refused.value)
    with pytest.raises(InvalidArgumentError, match="there is no column 'nobody' in the table"):
        gathered(data.from_frame(OfAnother(arrow_table()), list(NINE.schema.names)), units="nobody")
    for column in (arrow_table()["x1"], polars.Series([1.0]), pandas.Series([1.0])):
        assert as_source(column) is None  # one column is no table


def test_a_function_that_hands_out_one_iterator_is_found_out_in_the_first_pass():
    """Before anything is spent: the second pass may come after that."""
    blocks = iter([TENSORS])
    [piece] = data.from_blocks(lambda: blocks).bound(SPD(3))
    with pytest.raises(InvalidArgumentError, match="gave blocks the first time and none the second"):
        list(piece.blocks())
    reader = arrow_table().to_reader()
    [piece] = data.from_blocks(lambda: reader, columns="x1..x9").bound(SPD(3), "person")
    with pytest.raises(InvalidArgumentError, match="gave blocks the first time and none the second"):
        list(piece.blocks())


def test_records_that_change_between_passes_are_refused():
    rng = np.random.default_rng(0)
    for make in (
        lambda: iter([rng.normal(size=(10, 2))]),
        lambda: iter([np.zeros((int(rng.integers(10**6)), 2))]),
    ):
        [piece] = data.from_blocks(make).bound(Euclidean(2))
        list(piece.blocks())
        with pytest.raises(SourceChangedError, match="gave other records"):
            list(piece.blocks())
    shuffled = data.from_blocks(lambda: iter([rng.permutation(TENSORS)]))
    read(shuffled)  # another order is fine


def test_another_order_is_refused_where_ids_stand_beside_the_records():
    """With ids in its own columns a query may give its rows in any order; else they would be other people's."""
    calls = []

    def make():
        calls.append(1)
        yield TENSORS if len(calls) < 3 else TENSORS[::-1]  # one block is asked for again before the second pass

    for units, refused in ((None, False), (PEOPLE, True)):
        calls.clear()
        [piece] = data.from_blocks(make).bound(SPD(3), units)
        list(piece.blocks())
        if refused:
            with pytest.raises(SourceChangedError, match="in the same order"):
                list(piece.blocks())
        else:
            assert sum(len(block.records) for block in piece.blocks()) == N


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: 3, "must return an iterator"),
        (lambda: iter(["1234.5678"]), "a block must be an array .*got str"),
        (lambda: iter([np.float64(1234.5678)]), "a block must be an array .*got float64"),
        (lambda: iter([(TENSORS, PEOPLE, CLASSES, CLASSES)]), "got tuple of 4"),
        (lambda: iter([(TENSORS, PEOPLE[:-1])]), r"units of a block must have shape \(1000,\)"),
        (lambda: iter([TENSORS, arrow_table()]), "must have the same columns"),
        (lambda: iter([NINE, NINE.rename_columns(list("abcdefghi"))]), "must have the same columns"),
        (lambda: iter([TENSORS, (TENSORS, PEOPLE)]), "must have the same columns"),
        (lambda: iter([np.array([["1234.5678"] * 9])]), "array of numbers, got one of text"),
        (lambda: iter([np.zeros((3, 4))]), r"records of SPD\(3\).*got shape \(3, 4\)"),
    ],
)
def test_blocks_that_are_none(make, said):
    with pytest.raises((InvalidArgumentError, InvalidDataError), match=said) as refused:
        read(data.from_blocks(make))
    assert "1234" not in str(refused.value)


def test_words_that_mean_nothing():
    arrays = data.from_blocks(lambda: iter([TENSORS]))
    with pytest.raises(InvalidArgumentError, match=r"units: there is no 'person' in blocks that are arrays"):
        read(arrays, units="person")
    with pytest.raises(InvalidArgumentError, match="columns means nothing for blocks that are arrays"):
        read(data.from_blocks(lambda: iter([TENSORS]), columns="x*"))
    with pytest.raises(InvalidArgumentError, match=r"units: there is no column 'subject'.*'person'"):
        read(data.from_blocks(batches()), units="subject")
    for wrong in (-1, 2.5, "many"):
        with pytest.raises(InvalidArgumentError, match="rows must be a whole number"):
            data.from_blocks(batches(), wrong)
    with pytest.raises(SourceChangedError, match="another number of records"):
        read(data.from_blocks(batches(), N + 1, columns="x1..x9"), units="person")
    for ids in (PEOPLE[:-1], np.append(PEOPLE, 1)):
        with pytest.raises(InvalidArgumentError, match="units must have one id per record"):
            read(data.from_blocks(lambda: iter([TENSORS[:400], TENSORS[400:]])), units=ids)


def test_errors_of_the_function_itself_are_its_own():
    def broken():
        yield TENSORS
        raise ConnectionError("the server went away")

    with pytest.raises(ConnectionError, match="went away"):
        read(data.from_blocks(broken))


# -------------------------------------------------------------------- a database


@pytest.fixture
def database(tmp_path):
    path = str(tmp_path / "study.sqlite")
    with adbc_driver_sqlite.dbapi.connect(path) as connection, connection.cursor() as cursor:
        table = arrow_table().drop(["scanned"])
        cursor.adbc_ingest("tensors", table)
        connection.commit()
    return path


def test_a_database_gives_the_records_of_the_array(database):
    def query(order="rowid"):
        with adbc_driver_sqlite.dbapi.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM tensors ORDER BY {order}")
            yield from cursor.fetch_record_batch()

    records, ids, classes = gathered(data.from_blocks(query, columns="x1..x9"), units="person", labels="group")
    assert records.tobytes() == TENSORS.tobytes()
    assert ids.tolist() == PEOPLE.tolist()
    assert classes.tolist() == CLASSES.tolist()
    chosen = data.from_blocks(lambda: query("x3, x1"), columns="x1..x9")
    records, ids, _ = gathered(chosen, units="name")
    order = np.lexsort([TENSORS[:, 0, 0], TENSORS[:, 0, 2]])
    assert records.tobytes() == TENSORS[order].tobytes()
    assert ids.tolist() == NAMES[order].tolist()
    read(chosen, units="name")


OF_DUCKDB = """
import duckdb, numpy as np, pandas as pd, dpmanifold as dpm
frame = pd.DataFrame(np.random.default_rng(0).normal(0.0, 0.1, (400, 2)), columns=["x", "y"])
frame["person"] = [f"p{row // 2}" for row in range(400)]
ball, how = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0), {"units": "person", "rng": 1}
connection = duckdb.connect()
relation = connection.register("stored", frame).sql("SELECT person, x, y FROM stored")
expected = dpm.private_mean(frame, ball, dpm.GDP(1.0), **how)
for table in (relation, dpm.data.from_frame(relation, columns=["x", "y"])):
    found = dpm.private_mean(table, ball, dpm.GDP(1.0), **how)
    assert found.n == 200 and found.value.tobytes() == expected.value.tobytes()
"""


def test_a_relation_of_duckdb_is_a_table():
    """In a process of its own: DuckDB says a lot when its interpreter ends."""
    done = subprocess.run([sys.executable, "-c", OF_DUCKDB], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_dataset_of_pyarrow_is_a_function_that_makes_batches(tmp_path):
    pyarrow.dataset.write_dataset(
        arrow_table(), tmp_path, format="parquet", max_rows_per_file=500, max_rows_per_group=500
    )
    stored = pyarrow.dataset.dataset(tmp_path)
    names = [*NINE.column_names, "person"]
    source = data.from_blocks(lambda: stored.to_batches(columns=names))
    assert gathered(source, units="person")[0].tobytes() == TENSORS.tobytes()


def test_gaps_in_a_database(tmp_path):
    path = str(tmp_path / "gaps.sqlite")
    with adbc_driver_sqlite.dbapi.connect(path) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("t", pyarrow.table({"x": [1.0, None, 2.0], "p": ["a", "b", None]}))
        connection.commit()

    def query():
        with adbc_driver_sqlite.dbapi.connect(path) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM t")
            yield from cursor.fetch_record_batch()

    np.testing.assert_array_equal(
        gathered(data.from_blocks(query, columns="x"), Euclidean(1))[0], [[1.0], [np.nan], [2.0]]
    )
    with pytest.raises(InvalidDataError, match=r"row 2 .* nothing in column 'p'"):
        read(data.from_blocks(query), Euclidean(1), units="p")


# -------------------------------------------------------------------- memory


def test_memory_is_that_of_a_few_blocks():
    block = np.tile(np.eye(3), (20_000, 1, 1))
    source = data.from_blocks(lambda: ((block + i, np.arange(len(block))) for i in range(40)))
    [piece] = source.bound(SPD(3), "units")
    tracemalloc.start()
    assert sum(len(each.records) for each in piece.blocks()) == 800_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * block.nbytes < 800_000 * 72 / 9
