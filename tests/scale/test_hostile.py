"""Files that are damaged, ragged, enormous or wrong: refused before anything is spent or drawn, by file and place.

A message is for the curator. It says which file, and where in it, and holds no entry of it all the same.
"""

import gzip
import re
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scaling.files import COLUMNS, PERSON, as_table, matrices
from typer.testing import CliRunner

from dpmanifold import GDP, Budget, errors, private_mean
from dpmanifold.cli import app
from dpmanifold.engines import ThreadEngine, using
from dpmanifold.noise import RandomSource
from dpmanifold.noise.source import SystemSource
from scale.made import ball, cuts, dataset, hidden, tensors, write

pytestmark = pytest.mark.security

N, PARTS, PEOPLE = 240, 4, 12


class Watched(RandomSource):
    """A source of randomness that counts what is drawn from it."""

    private = True

    def __init__(self):
        self.drawn = 0

    def _words(self, n):
        self.drawn += n
        return np.random.default_rng(self.drawn).integers(0, 2**64, n, dtype=np.uint64)


# -------------------------------------------------------------------- what is done to the second of four files


def people_of(numbers):
    """Return ids as text that is easily found in a message."""
    return np.char.add("sub-47", numbers.astype(str))


def files(folder, kind):
    """Write good files; return them, the one to be damaged, its records and its people."""
    values, numbers = tensors(N, PEOPLE)
    people = people_of(numbers)
    paths = write(folder, kind, values, people, cuts(N, PARTS), rows=20)
    per = N // PARTS
    return paths, paths[1], values[per : 2 * per].copy(), people[per : 2 * per].copy()


def truncated_parquet(folder):
    paths, bad, _, _ = files(folder, "parquet")
    bad.write_bytes(bad.read_bytes()[:-60])
    return paths


def cut_in_half(folder):
    paths, bad, _, _ = files(folder, "parquet")
    bad.write_bytes(bad.read_bytes()[: bad.stat().st_size // 2])
    return paths


def damaged_in_the_middle(folder):
    """Pages of the second row group are overwritten: the footer still says that all is well."""
    paths, bad, _, _ = files(folder, "parquet")
    group = pyarrow.parquet.ParquetFile(bad).metadata.row_group(1)
    chunks = [group.column(number) for number in range(group.num_columns)]
    content = bytearray(bad.read_bytes())
    for chunk in chunks:
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    bad.write_bytes(content)
    return paths


def with_a_line(folder, change):
    """Change line 18 of a CSV file."""
    paths, bad, _, _ = files(folder, "csv")
    lines = bad.read_text().splitlines()
    lines[17] = change(lines[17])
    bad.write_text("\n".join(lines))
    return paths


def ragged_csv(folder):
    return with_a_line(folder, lambda line: line.rsplit(",", 2)[0])


def text_in_csv(folder):
    return with_a_line(folder, lambda line: "secret," + line.split(",", 1)[1])


def cut_gzip(folder):
    paths, bad, _, _ = files(folder, "csv.gz")
    bad.write_bytes(bad.read_bytes()[:-200])
    return paths


def gzip_that_ends_in_a_line(folder):
    """The last line is cut, and what was packed ends properly."""
    paths, bad, _, _ = files(folder, "csv.gz")
    bad.write_bytes(gzip.compress(gzip.decompress(bad.read_bytes())[:-70]))
    return paths


def a_million_columns(folder):
    paths, bad, _, _ = files(folder, "csv")
    names = ",".join(f"c{number}" for number in range(10**6))
    bad.write_text(f"{names}\n{','.join(['1'] * 10**6)}\n")
    return paths


def text_column(folder):
    paths, bad, values, people = files(folder, "parquet")
    table = as_table(values, people)
    text = pa.array(["secret"] * len(values))
    pyarrow.parquet.write_table(table.set_column(table.column_names.index("yy"), "yy", text), bad)
    return paths


def missing_column(folder):
    paths, bad, values, people = files(folder, "parquet")
    pyarrow.parquet.write_table(as_table(values, people).drop_columns(["yy"]), bad)
    return paths


def nan_in_parquet(folder):
    paths, bad, values, people = files(folder, "parquet")
    values[17, 2] = np.nan
    pyarrow.parquet.write_table(as_table(values, people), bad, row_group_size=20)
    return paths


def null_in_parquet(folder):
    paths, bad, values, people = files(folder, "parquet")
    table = as_table(values, people)
    gap = pa.array([None if row == 17 else float(entry) for row, entry in enumerate(values[:, 2])])
    pyarrow.parquet.write_table(table.set_column(2, "xz", gap), bad, row_group_size=20)
    return paths


def nan_in_csv(folder):
    return with_a_line(folder, lambda line: "nan," + line.split(",", 1)[1])


def no_tensor(folder):
    paths, bad, values, people = files(folder, "parquet")
    values[17] *= -1
    pyarrow.parquet.write_table(as_table(values, people), bad, row_group_size=20)
    return paths


def missing_id(folder):
    paths, bad, values, people = files(folder, "parquet")
    ids = pa.array([None if row == 17 else str(entry) for row, entry in enumerate(people)])
    table = as_table(values, people)
    pyarrow.parquet.write_table(table.set_column(table.column_names.index(PERSON), PERSON, ids), bad)
    return paths


def numbers_among_text_ids(folder):
    paths, bad, values, _ = files(folder, "parquet")
    pyarrow.parquet.write_table(as_table(values, np.arange(len(values))), bad)
    return paths


def no_bytes(folder):
    paths, bad, _, _ = files(folder, "csv")
    bad.write_bytes(b"")
    return paths


def complex_npy(folder):
    paths, bad, values, _ = files(folder, "npy")
    np.save(bad, matrices(values).astype(complex))
    return paths


def pickled_npy(folder):
    paths, bad, values, _ = files(folder, "npy")
    np.save(bad, matrices(values).astype(object), allow_pickle=True)
    return paths


def truncated_npy(folder):
    paths, bad, _, _ = files(folder, "npy")
    bad.write_bytes(bad.read_bytes()[:-60])
    return paths


def other_shape(folder):
    paths, bad, _, _ = files(folder, "npy")
    np.save(bad, np.eye(4)[None].repeat(5, axis=0))
    return paths


def zip_bomb(folder):
    """A few kilobytes that say they are terabytes of tensors."""
    paths, *_ = files(folder, "npy")
    npz = [path.with_suffix(".npz") for path in paths]
    for path, other in zip(paths, npz, strict=True):
        np.savez_compressed(other, X=np.load(path))
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3, 3), }"
    header += b" " * (64 - (len(header) + 11) % 64) + b"\n"
    packed = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 10**7
    with zipfile.ZipFile(npz[1], "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", packed)
    return npz


HOSTILE = {
    # what was done, and what of the place a message must say
    truncated_parquet: r"",
    cut_in_half: r"",
    damaged_in_the_middle: r"row groups? 1\b",
    ragged_csv: r"line 18\b",
    text_in_csv: r"index 16\b",
    cut_gzip: r"",
    gzip_that_ends_in_a_line: r"line 61\b",
    a_million_columns: r"",
    text_column: r"index 0\b",
    missing_column: r"yy",
    nan_in_parquet: r"index 17\b",
    null_in_parquet: r"index 17\b",
    nan_in_csv: r"index 16\b",
    no_tensor: r"index 17\b",
    missing_id: r"row 17\b",
    numbers_among_text_ids: r"",
    no_bytes: r"",
    complex_npy: r"",
    pickled_npy: r"",
    truncated_npy: r"",
    other_shape: r"",
    zip_bomb: r"",
}
IN_THE_SECOND = "part-001"


def units_of(paths):
    """Return a column's name, or ids beside arrays."""
    return PERSON if paths[0].suffix not in (".npy", ".npz") else people_of(tensors(N, PEOPLE)[1])


def refused(paths, units, **options):
    """Ask for a release and return the message of the refusal; nothing is spent and nothing is drawn."""
    budget, bits = Budget(GDP(1.0)), Watched()
    with pytest.raises(errors.DPManifoldError) as caught:
        private_mean(dataset(paths, **options), ball(), GDP(1.0), units=units, budget=budget, rng=bits)
    assert (budget.history, bits.drawn) == ((), 0)
    return str(caught.value)


def assert_tells_no_entry(message):
    """No id, no text of a cell, and no number of a record. (An eigenvalue may be told: it is why a matrix is none.)"""
    assert not re.search(r"sub-47|secret", message), message
    numbers = [abs(float(number)) for number in re.findall(r"\d+\.\d+", message)]
    entries = np.abs(tensors(N, PEOPLE)[0])
    assert not any((np.abs(entries - number) <= 1e-3 * entries).any() for number in numbers), message


@pytest.mark.parametrize("damage", HOSTILE, ids=lambda damage: damage.__name__)
def test_hostile_files_are_refused_by_name_and_place(tmp_path, damage):
    paths = damage(tmp_path)
    with using(ThreadEngine(1)):
        message = refused(paths, units_of(paths))
    assert IN_THE_SECOND in message
    assert re.search(HOSTILE[damage], message), message
    assert_tells_no_entry(message)


def test_good_files_are_spent_on_and_drawn_for(tmp_path):
    """What the other tests would see, were anything spent or drawn."""
    paths, budget, bits = files(tmp_path, "parquet")[0], Budget(GDP(1.0)), Watched()
    private_mean(dataset(paths), ball(), GDP(1.0), units=PERSON, budget=budget, rng=bits)
    assert len(budget.history) == 1
    assert bits.drawn > 0


@pytest.mark.parametrize("damage", HOSTILE, ids=lambda damage: damage.__name__)
def test_threads_and_a_cluster_refuse_them_in_the_same_words(client, tmp_path, damage):
    paths = damage(tmp_path)
    found = refused(paths, units_of(paths))
    for workers in (1, 2):
        with using(ThreadEngine(workers)):
            assert found == refused(paths, units_of(paths))


@pytest.mark.parametrize("damage", HOSTILE, ids=lambda damage: damage.__name__)
def test_the_command_refuses_them(tmp_path, monkeypatch, damage):
    """Nothing on stdout, no file written, nothing drawn; the message names the file and tells no entry."""
    paths = damage(tmp_path / "data")
    bits = Watched()
    monkeypatch.setattr(SystemSource, "_words", lambda self, n: bits._words(n))
    monkeypatch.chdir(tmp_path)
    units = PERSON if isinstance(units_of(paths), str) else "each-record"
    words = ["mean", "data", "--space", "spd", "--units", units, "--center", "1", "--radius", "1.5", "--mu", "1"]
    columns = [] if units == "each-record" else ["--columns", ",".join(COLUMNS)]
    key = ["--array", "X"] if paths[0].suffix == ".npz" else []
    for path in (tmp_path / "data").iterdir():
        if path not in paths:
            path.unlink()
    result = CliRunner().invoke(app, [*words, *columns, *key, "--out", "release.json"], env={"COLUMNS": "200"})
    assert result.exit_code not in (0, None)
    assert bits.drawn == 0
    assert result.stdout == ""
    assert not (tmp_path / "release.json").exists()
    assert "Traceback" not in result.output
    said = " ".join(result.stderr.split())
    assert IN_THE_SECOND in said
    assert_tells_no_entry(said)


def test_a_file_that_changes_meanwhile_is_refused(tmp_path):
    paths, changed, values, people = files(tmp_path, "parquet")
    opened, budget, bits = dataset(paths), Budget(GDP(1.0)), Watched()
    pyarrow.parquet.write_table(as_table(values[:30], people[:30]), changed)
    with pytest.raises(errors.SourceChangedError, match=IN_THE_SECOND):
        private_mean(opened, ball(), GDP(1.0), units=PERSON, budget=budget, rng=bits)
    assert (budget.history, bits.drawn) == ((), 0)


@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_without_records_among_many_counts_for_nothing(tmp_path, metric, kind):
    values, people = tensors(N, PEOPLE)
    paths = write(tmp_path, kind, values, people, [0, 100, 100, N])
    for units in (PERSON, "each-record"):
        expected = hidden(matrices(values), ball(metric), people if units == PERSON else units)
        assert hidden(dataset(paths), ball(metric), units) == expected


def test_only_files_without_records_are_refused(tmp_path):
    values, people = tensors(N, PEOPLE)
    message = refused(write(tmp_path, "parquet", values, people, [0, 0, 0]), PERSON)
    assert "at least 2" in message
