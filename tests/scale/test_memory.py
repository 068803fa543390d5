"""Memory does not grow with the number of records: four times as many need hardly more."""

import json
import subprocess
import sys

import pytest
from scaling.files import write_parquet

CALL = """
import json, sys
from dpmanifold import EACH_RECORD, GDP, private_mean
from dpmanifold.engines import ThreadEngine, using
from scale.made import ball, dataset
from scaling.cases import highest_memory
from scaling.files import PERSON

metric, units, paths = json.loads(sys.argv[1])
def release(paths):
    with using(ThreadEngine(2)):
        private_mean(dataset(paths), ball(metric, 2.0), GDP(1.0), units=PERSON if units == PERSON else EACH_RECORD)
release(paths[:2])
before = highest_memory()
release(paths)
print(highest_memory() - before)
"""
FILES, RECORDS, PEOPLE = 32, 3_200_000, 5000
ALLOWED = 40  # MB of allocators' moods; the records that are added are 115 MB as triangles and 173 MB as matrices


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_parquet(tmp_path_factory.mktemp("many") / "files", RECORDS, FILES, PEOPLE)


def growth(metric, units, paths):
    """Return by how many MB a process grows while it reads files after it has read two of them."""
    environment_path = json.dumps(sys.path)
    code = f"import sys; sys.path[:] = {environment_path}\n{CALL}"
    given = json.dumps([metric, units, paths])
    done = subprocess.run([sys.executable, "-c", code, given], stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("units", ["each-record", "person"])
@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
def test_memory_is_flat_in_the_number_of_records(paths, metric, units):
    few = growth(metric, units, paths[: FILES // 4])
    many = growth(metric, units, paths)
    assert many - few <= ALLOWED
