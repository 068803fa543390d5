"""Sources are read in the memory of a few blocks, however many there are; seconds each, in processes of their own."""

import subprocess
import sys

import numpy as np
import pytest
import zarr

pytestmark = pytest.mark.slow

OF_ZARR = """
import resource, sys
import numpy as np, zarr
from dpmanifold import SPD, data
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
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


def test_memory_is_that_of_a_row_of_chunks(tmp_path):
    group = zarr.open_group(tmp_path, mode="w")
    tensors = group.create_array("tensors", shape=(4_000_000, 3, 3), chunks=(100_000, 3, 3), dtype="f8")
    group.create_array("person", shape=(4_000_000,), chunks=(100_000,), dtype="i8", fill_value=7)
    for start in range(0, 4_000_000, 100_000):
        tensors[start : start + 100_000] = np.broadcast_to(np.eye(3) + start, (100_000, 3, 3))
    done = subprocess.run([sys.executable, "-c", OF_ZARR, str(tmp_path)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 40  # MB; a row of chunks is 7


OF_BLOCKS = """
import resource, sys
import numpy as np, pandas, pyarrow
from dpmanifold import SPD, data
block = np.tile(np.eye(3), (20_000, 1, 1))
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
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


def test_memory_does_not_grow_with_the_number_of_blocks():
    done = subprocess.run([sys.executable, "-c", OF_BLOCKS], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 20  # MB
