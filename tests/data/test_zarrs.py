"""Arrays in zarr stores: chunks of any shape, both formats, ids in other arrays, damage, memory."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import zarr

from data.kinds import NAMES, PEOPLE, TENSORS, N, gathered
from dpmanifold import SPD, Euclidean, data
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, SourceChangedError
from dpmanifold.sources import as_source

pytestmark = pytest.mark.security

FORMATS = [2, 3]


def write(folder, version=3, chunks=(300, 2, 3), **options):
    group = zarr.open_group(folder, mode="w", zarr_format=version)
    group.create_array("tensors", data=TENSORS, chunks=chunks, **options)
    group.create_array("person", data=PEOPLE, chunks=(170,))
    return group


@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("chunks", [(40, 1, 2), (300, 2, 3), (5000, 3, 3)])
def test_chunks_do_not_show(tmp_path, version, chunks):
    group = write(tmp_path, version, chunks)
    for source in (data.from_zarr(group, "tensors"), data.from_zarr(str(tmp_path), "tensors")):
        records, ids, _ = gathered(source, units="person")
        assert records.tobytes() == TENSORS.tobytes()
        assert ids.tolist() == PEOPLE.tolist()
    for ids in (group["person"], PEOPLE.tolist(), NAMES):
        records, found, classes = gathered(group["tensors"], units=ids, labels=group["person"])
        assert records.tobytes() == TENSORS.tobytes()
        assert found.tolist() == list(ids[:])
        assert classes.tolist() == PEOPLE.tolist()
    assert as_source(group["tensors"]).rows == N


def test_pieces_are_whole_rows_of_chunks():
    array = zarr.create_array({}, shape=(3_000_000, 2), chunks=(80_000, 1), dtype="f4")
    pieces = as_source(array).bound(Euclidean(2))
    starts = np.cumsum([0] + [piece.rows for piece in pieces])
    assert len(pieces) == 2
    assert all(start % 80_000 == 0 for start in starts[:-1])
    assert starts[-1] == 3_000_000
    assert sum(len(block.records) for piece in pieces for block in piece.blocks()) == 3_000_000


def test_flat_columns_and_other_types(tmp_path):
    rows, columns = np.triu_indices(3)
    group = zarr.open_group(tmp_path, mode="w")
    group.create_array("six", data=TENSORS[:, rows, columns], chunks=(100, 3))
    group.create_array("single", data=TENSORS.astype(np.float32), chunks=(100, 3, 3))
    group.create_array("whole", data=np.arange(12, dtype=np.int16).reshape(6, 2))
    assert gathered(group["six"])[0].tobytes() == TENSORS.tobytes()
    assert gathered(data.from_zarr(group, "six", order="fsl"))[0].tobytes() == TENSORS.tobytes()
    assert gathered(group["single"])[0].tobytes() == TENSORS.astype(np.float32).astype(float).tobytes()
    assert gathered(group["whole"], Euclidean(2))[0].tolist() == np.arange(12.0).reshape(6, 2).tolist()


def test_wrong_arrays_and_ids_are_refused_before_records_are_read(tmp_path):
    group = write(tmp_path)
    text = group.create_array("name", shape=(N,), dtype="str")
    array = group["tensors"]
    cases = [
        (lambda: data.from_zarr(group), "key is needed: it has the arrays '(name|person|tensors)'"),
        (lambda: data.from_zarr(group, "tensor"), "key 'tensor' is not in the zarr group: it has the arrays"),
        (lambda: data.from_zarr(array, "tensors"), "key means nothing for a zarr array"),
        (lambda: data.from_zarr(TENSORS), "store must be a zarr group or array"),
        (lambda: data.from_zarr(tmp_path / "nowhere"), "there is no zarr array or group at"),
        (lambda: as_source(group), r"X is a zarr group.*data.from_zarr\(group, key\)"),
        (lambda: as_source(zarr.create_array({}, shape=(), dtype="f8")), r"shape \(\)"),
        (lambda: as_source(array).bound(SPD(4)), r"records of SPD\(4\).*got shape \(n, 3, 3\)"),
        (lambda: as_source(text).bound(SPD(3)), "array of numbers"),
        (lambda: as_source(array).bound(SPD(3), "person"), "units: there is no array 'person' beside the records"),
        (lambda: data.from_zarr(group, "tensors").bound(SPD(3), "subject"), "units 'subject' is not in the zarr group"),
        (lambda: as_source(array).bound(SPD(3), PEOPLE[:-1]), r"units must have shape \(1000,\)"),
        (lambda: as_source(array).bound(SPD(3), labels=array), r"labels must have shape \(1000,\)"),
    ]
    for ask, said in cases:
        with pytest.raises((InvalidArgumentError, InvalidDataError), match=said):
            ask()


@pytest.mark.parametrize("version", FORMATS)
def test_a_damaged_chunk_is_named_by_its_rows(tmp_path, version):
    group = write(tmp_path, version)
    files = [path for path in sorted(pathlib.Path(tmp_path, "tensors").rglob("*")) if path.is_file()]
    chunk = next(path for path in files if path.stat().st_size > 2000)
    chunk.write_bytes(chunk.read_bytes()[:100])
    [piece] = as_source(group["tensors"]).bound(SPD(3))
    with pytest.raises(InvalidDataError, match="the zarr array cannot be read from row 0 to row 1000"):
        list(piece.blocks())


def test_a_store_that_changes_between_passes_is_refused(tmp_path):
    group = write(tmp_path)
    [piece] = as_source(group["tensors"]).bound(SPD(3))
    list(piece.blocks())
    list(piece.blocks())
    group["tensors"][500] = np.eye(3)
    with pytest.raises(SourceChangedError, match="the zarr array gave other records"):
        list(piece.blocks())
