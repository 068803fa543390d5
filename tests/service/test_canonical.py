"""Canonical records: what was given, bit for bit, for its owner alone, whole or not at all."""

import pathlib
import stat

import numpy as np
import pytest

from dpmanifold import SPD, data
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, LedgerError
from dpmanifold.manifolds import Euclidean, KendallShapes
from dpmanifold.service import canonical
from dpmanifold.stats import EACH_RECORD
from dpmanifold.stats.inputs import is_each_record
from dpmanifold.stats.registered_data import Opened

pytestmark = pytest.mark.security

RECORDS = np.stack([np.eye(2) * (1 + number) for number in range(6)])


def kept(vault, columns, space=None):
    name = canonical.write(vault, columns, SPD(2) if space is None else space)
    return canonical.open_folder(vault / name)


def test_what_is_opened_is_what_was_given(tmp_path):
    found = kept(tmp_path, Opened(RECORDS, ["a", "b"] * 3, [1, 2] * 3, [0.5, None, "x", 1, 2, "3"]))
    assert np.array_equal(found.records, RECORDS)
    assert isinstance(found.records, np.memmap)
    assert list(found.units) == ["a", "b"] * 3
    assert found.labels.tolist() == [1, 2] * 3
    assert np.array_equal(found.covariate, [0.5, np.nan, np.nan, 1, 2, 3], equal_nan=True)


def test_each_record_needs_no_ids(tmp_path):
    found = kept(tmp_path, Opened(RECORDS, EACH_RECORD))
    assert is_each_record(found.units)
    assert found.labels is None
    assert found.covariate is None


def test_bits_of_what_is_no_number_stay(tmp_path):
    records = RECORDS.copy()
    records[2] = np.nan
    records[3, 0, 0] = np.inf
    assert np.array_equal(kept(tmp_path, Opened(records, EACH_RECORD)).records, records, equal_nan=True)


def test_complex_records_stay_complex(tmp_path):
    shapes = np.exp(2j * np.pi * np.arange(5) / 5)[None] * np.ones((4, 1))
    found = kept(tmp_path, Opened(shapes, EACH_RECORD), KendallShapes(5))
    assert found.records.dtype == np.complex128
    assert np.array_equal(found.records, shapes)


def test_a_table_is_read_in_blocks_with_all_that_is_beside(tmp_path):
    path = tmp_path / "visits.csv"
    rows = [f"p{number // 2},{'ab'[number % 2]},{20 + number},{number / 7!r},{number / 3!r}" for number in range(5000)]
    path.write_text("person,group,age,x1,x2\n" + "\n".join(rows) + "\n", encoding="utf-8")
    source = data.Dataset([str(path)], columns=["x1", "x2"])
    vault = tmp_path / "vault"
    vault.mkdir()
    found = kept(vault, Opened(source, "person", "group", "age"), Euclidean(2))
    assert found.records.shape == (5000, 2)
    assert np.array_equal(found.records[:, 0], np.arange(5000) / 7)
    assert found.units[4999] == "p2499"
    assert list(found.labels[:3]) == ["a", "b", "a"]
    assert found.covariate[10] == 30.0


def test_files_are_their_owners_alone(tmp_path):
    name = canonical.write(tmp_path, Opened(RECORDS, ["a"] * 6), SPD(2))
    folder = tmp_path / name
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert all(np.load(file, allow_pickle=False) is not None for file in folder.iterdir())


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (Opened(RECORDS, ["a"] * 5), "one per record: got 5 for 6"),
        (Opened(RECORDS, ["a", 1] * 3), "not all of one kind"),
        (Opened(RECORDS, ["a", None] * 3), "not all of one kind"),
        (Opened(RECORDS, ["a\0"] * 6), "NUL"),
        (Opened(RECORDS, EACH_RECORD, covariate=[1.0]), "one number per record: got 1"),
        (Opened(np.array(["x", "y"]), EACH_RECORD), "must be numbers"),
        (Opened(np.empty((0, 2, 2)), EACH_RECORD), "no records"),
        (Opened(np.array([[object()]]), EACH_RECORD), "must be numbers"),
    ],
)
def test_what_cannot_be_kept_leaves_nothing(tmp_path, columns, words):
    with pytest.raises((InvalidDataError, InvalidArgumentError), match=words):
        canonical.write(tmp_path, columns, SPD(2))
    assert list(tmp_path.iterdir()) == []


def test_what_was_interrupted_is_removed(tmp_path):
    left = tmp_path / ".unfinished-0123"
    left.mkdir()
    (left / "records.npy").write_bytes(b"x")
    canonical.remove_unfinished(tmp_path)
    assert not left.exists()


def test_records_that_are_gone_are_said_to_be(tmp_path):
    with pytest.raises(LedgerError, match="not in the vault"):
        canonical.open_folder(pathlib.Path(tmp_path / "nothing"))
