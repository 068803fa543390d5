"""Sources are read in the memory of a few blocks, however many there are; seconds each, in processes of their own."""

import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from dpmanifold import data
from dpmanifold.errors import InvalidDataError

pytestmark = pytest.mark.slow

# The most that the process itself had, in MB: what getrusage says of a child begins at what its parent had.
PEAK = """
def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10
"""

OF_ZARR = (
    PEAK
    + """
import sys
import numpy as np, zarr
from dpmanifold import SPD, data
group = zarr.open_group(sys.argv[1], mode="r")
def read(rows):
    pieces = data.from_zarr(group, "tensors").bound(SPD(3), "person")
    pieces = pieces if rows is None else pieces[:rows]
    return sum(len(block.records) for piece in pieces for block in piece.blocks())
read(1)
before = peak()
assert read(None) == 4_000_000  # 288 MB of records
print(peak() - before)
"""
)


def test_memory_is_that_of_a_row_of_chunks(tmp_path):
    group = zarr.open_group(tmp_path, mode="w")
    tensors = group.create_array("tensors", shape=(4_000_000, 3, 3), chunks=(100_000, 3, 3), dtype="f8")
    group.create_array("person", shape=(4_000_000,), chunks=(100_000,), dtype="i8", fill_value=7)
    for start in range(0, 4_000_000, 100_000):
        tensors[start : start + 100_000] = np.broadcast_to(np.eye(3) + start, (100_000, 3, 3))
    done = subprocess.run([sys.executable, "-c", OF_ZARR, str(tmp_path)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 40  # MB; a row of chunks is 7


OF_BLOCKS = (
    PEAK
    + """
import sys
import numpy as np, pandas, pyarrow
from dpmanifold import SPD, data
block = np.tile(np.eye(3), (20_000, 1, 1))
def blocks(count):
    return lambda: ((block + i, np.arange(len(block)) + i) for i in range(count))
def total(count):
    [piece] = data.from_blocks(blocks(count)).bound(SPD(3), "units")
    return sum(len(each.records) for each in piece.blocks())
total(3)
before = peak()
assert total(150) == 3_000_000  # 216 MB of records
print(peak() - before)
"""
)


def test_memory_does_not_grow_with_the_number_of_blocks():
    done = subprocess.run([sys.executable, "-c", OF_BLOCKS], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 20  # MB


OF_WORDS = (
    PEAK
    + """
import resource, sys
import numpy as np
import dpmanifold as dpm
from dpmanifold import data
from dpmanifold.data.parquet_table import ParquetTable
from dpmanifold.stats.content import content_of
path, role, wrong = sys.argv[1:4]
line, plane = dpm.Euclidean(1), dpm.Euclidean(2)
def read(source, space, **along):
    return sum(len(block.records) for piece in source.bound(space, **along) for block in piece.blocks())
def chosen(*columns): return data.Dataset(path, columns=list(columns))
roles = {
    "units": lambda: read(chosen("x", "y"), plane, units="long"),
    "labels": lambda: read(chosen("x", "y"), plane, labels="long"),
    "values": lambda: read(chosen("x", "long"), plane),
    "bytes": lambda: read(chosen("x", "bytes"), plane),
    "label bytes": lambda: read(chosen("x", "y"), plane, labels="bytes"),
    "gaps": lambda: read(chosen("x", "y"), plane, labels="gaps"),
    "covariate": lambda: read(chosen("x").numbers("long"), line),
    "one column": lambda: len(data.load_column(path, "long")),
    "an array": lambda: len(data.load_array(path, columns=["x", "long", "gaps"])),
    "fingerprint": lambda: sum(map(len, content_of(chosen("x", "y"), dpm.Ball(plane, [0, 0], 1.0), "long")())),
}
if wrong == "as it stands":
    ParquetTable._open = lambda self, names=(): dpm.data.parquet_table.pq.ParquetFile(self.path)
limit = 4 * 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
before = peak()
roles[role]()
print(peak() - before)
"""
)
OF_CSV = (
    PEAK
    + """
import resource, sys
import dpmanifold as dpm
from dpmanifold import data
limit = 4 * 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
before = peak()
try:
    source = data.Dataset(sys.argv[1], columns=["x", "y"])
    rows = sum(len(block.records) for piece in source.bound(dpm.Euclidean(2)) for block in piece.blocks())
    assert rows == 4000
except dpm.errors.InvalidDataError as refused:
    assert "characters" in str(refused), refused
print(peak() - before)
"""
)
ROLES = [
    "units", "labels", "values", "bytes", "label bytes", "gaps", "covariate", "one column", "an array", "fingerprint",
]  # fmt: skip
LONG = "x" * 20_000
ROWS = 40_000


@pytest.fixture(scope="module")
def long_words(tmp_path_factory):
    """A file of a few kilobytes with a word for each row, long enough that all of them take 800 MB."""
    path = tmp_path_factory.mktemp("words") / "long.parquet"
    codes = np.zeros(ROWS, dtype=np.int32)
    words = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([LONG]))
    gaps = pa.DictionaryArray.from_arrays(pa.array(codes, mask=np.arange(ROWS) % 2 == 0), pa.array([LONG]))
    columns = {"x": np.zeros(ROWS), "y": np.zeros(ROWS), "long": words, "gaps": gaps, "bytes": words}
    table = pa.table({**columns, "bytes": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([LONG.encode()]))})
    pq.write_table(table, path, compression="zstd", store_schema=False)  # or it would say that it has a dictionary
    assert path.stat().st_size < 10_000
    return path


def memory_of(*words):
    done = subprocess.run([sys.executable, "-c", *map(str, words)], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else done.stderr.splitlines()[-1]


@pytest.mark.parametrize("role", ROLES)
def test_words_that_occur_often_take_the_memory_of_one(long_words, role):
    assert memory_of(OF_WORDS, long_words, role, "right") < 120  # MB


@pytest.mark.parametrize("role", ["units", "bytes"])
def test_words_as_they_stand_would_not(long_words, role):
    """The test before this one would notice."""
    found = memory_of(OF_WORDS, long_words, role, "as it stands")
    assert isinstance(found, str) or found > 500


@pytest.mark.parametrize("role", ["units", "labels"])
def test_one_long_word_among_many_does_not_widen_the_others(tmp_path, role):
    """numpy's arrays of text give every row the length of the longest."""
    path = tmp_path / "one.csv"
    rows = (f"{'x' * 60_000 if i == 7 else i % 50},0,0\n" for i in range(ROWS))
    path.write_text("long,x,y\n" + "".join(rows))
    assert memory_of(OF_WORDS, path, role, "right") < 120
    assert memory_of(OF_WORDS, path, "one column", "right") < 120


RECORDS = {
    "a long line": (b"x,y\n0,0\n", b"a" * 2**20, 800),
    "many names": (b"", b"a," * 2**19, 200),
    "many entries over many lines": (b"x,y\n0,0\n", b'"\n",' * 2**18, 200),
    "long entries in every record": (b"x,y,long\n", (b"a" * 100_000 + b"," + b"b" * 100_000 + b',"a\rb"\n') * 5, 800),
}


@pytest.mark.parametrize("kind", RECORDS)
def test_packed_csv_takes_the_memory_of_one_record(tmp_path, kind):
    """A megabyte of it unpacks to gigabytes."""
    start, part, times = RECORDS[kind]
    path = tmp_path / "packed.csv.gz"
    with gzip.open(path, "wb", compresslevel=6) as stream:
        stream.write(start)
        for _ in range(times):
            stream.write(part)
    found = memory_of(OF_CSV, path)
    assert isinstance(found, float) and found < 160  # noqa: PT018  MB


@pytest.mark.parametrize("column", ["text", "lists"])
def test_what_unpacks_to_far_more_than_memory_should_hold_is_refused(tmp_path, column):
    path = tmp_path / "large.parquet"
    starts = pa.array(np.arange(2001, dtype=np.int32) * 10_000)
    lists = pa.ListArray.from_arrays(starts, pa.array(np.zeros(20_000_000, dtype=np.float32)))
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, dtype=np.int32)), pa.array(["x" * 100_000]))
    table = pa.table({"x": np.zeros(2000), "text": words.cast(pa.string()), "lists": lists})
    pq.write_table(table, path, compression="zstd", use_dictionary=["lists"])
    refused = rf"column '{column}' takes \d+ bytes in row group 0 .*, and \d+ bytes in memory.* smaller row groups"
    with pytest.raises(InvalidDataError, match=refused):
        data.load_array(path, columns=[column])
    with pytest.raises(InvalidDataError, match=refused):
        data.load_column(path, column)
    pq.write_table(table, path, compression="zstd", use_dictionary=["lists"], row_group_size=500)
    assert len(data.load_column(path, "text")) == 2000
    assert data.load_array(path, columns=["lists"]).shape == (2000, 10_000)
