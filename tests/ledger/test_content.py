"""The bytes of a fingerprint are the same from every source that the library has, and take no memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import data
from dpmanifold.ledger.fingerprints import fingerprint
from dpmanifold.stats.content import content_of

pytestmark = pytest.mark.security

EACH = dpm.EACH_RECORD
BALL = dpm.Ball(dpm.Euclidean(3), np.zeros(3), 5.0)
RNG = np.random.default_rng(5)
X = np.round(RNG.normal(size=(900, 3)), 6)  # written in decimals without loss
IDS = np.repeat(np.arange(300), 3)
NAMES = [f"person {number}" for number in IDS]
KEY = bytes(range(32))


def made(records, units=EACH, ball=BALL, **rest):
    return fingerprint(KEY, content_of(records, ball, units, **rest)())


@pytest.fixture(scope="module")
def wanted():
    return {"ids": made(X, IDS), "names": made(X, NAMES), "each": made(X)}


def frame(**columns):
    import pandas as pd

    return pd.DataFrame({**columns, **{f"x{i}": X[:, i] for i in range(3)}})


def test_files(tmp_path, wanted):
    table = frame(who=IDS, name=NAMES)
    (tmp_path / "csv").mkdir()
    (tmp_path / "parts").mkdir()
    table.to_csv(tmp_path / "csv" / "all.csv", index=False)
    for number, part in enumerate(np.array_split(np.arange(900), 4)):
        table.iloc[part].to_parquet(tmp_path / "parts" / f"{number}.parquet", row_group_size=60)
    np.save(tmp_path / "all.npy", X)
    columns = ["x0", "x1", "x2"]
    as_text = made(X, [str(number) for number in IDS])  # what a CSV file has: 7 and 07 are two
    for files, ids in (("csv/all.csv", as_text), ("parts", wanted["ids"])):
        found = data.Dataset(tmp_path / files, columns=columns)
        assert made(found, "who") == ids
        assert made(found, "name") == wanted["names"]
        assert made(found) == wanted["each"]
    assert made(data.Dataset(tmp_path / "all.npy")) == wanted["each"]
    assert made(data.Dataset(tmp_path / "all.npy"), IDS) == wanted["ids"]
    assert made(np.load(tmp_path / "all.npy", mmap_mode="r"), IDS) == wanted["ids"]


def test_frames_and_blocks(wanted):
    import polars as pl
    import pyarrow as pa

    table = frame(who=IDS, name=NAMES)
    for given in (table, pl.from_pandas(table), pa.Table.from_pandas(table)):
        found = data.from_frame(given, columns=["x0", "x1", "x2"])
        assert made(found, "who") == wanted["ids"]
        assert made(found, "name") == wanted["names"]
    for size in (1, 7, 450, 900):
        blocks = data.from_blocks(lambda size=size: ((X[i : i + size], IDS[i : i + size]) for i in range(0, 900, size)))
        assert made(blocks, "units") == wanted["ids"]


def test_dask_collections(wanted):
    arrays = pytest.importorskip("dask.array")
    frames = pytest.importorskip("dask.dataframe")
    for chunk in (100, 333):
        assert made(arrays.from_array(X, chunks=(chunk, 2)), IDS) == wanted["ids"]
        assert made(arrays.from_array(X, chunks=(chunk, 3)), arrays.from_array(IDS, chunks=chunk)) == wanted["ids"]
    collection = frames.from_pandas(frame(who=IDS), npartitions=5)
    assert made(data.from_frame(collection, columns=["x0", "x1", "x2"]), "who") == wanted["ids"]


def test_collections_that_are_on_a_cluster(wanted):
    arrays, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster),
    ):
        collection = arrays.from_array(X, chunks=(130, 3))
        assert made(collection, IDS) == wanted["ids"]
        assert made(collection.persist(), IDS) == wanted["ids"]
        assert made(collection.persist(), arrays.from_array(IDS, chunks=130).persist()) == wanted["ids"]


def test_rows_that_change_places_are_other_content(wanted):
    order = RNG.permutation(900)
    assert made(X[order], IDS[order]) != wanted["ids"]


def test_memory_is_bounded():
    records = np.zeros((40_000, 9, 9), dtype=np.float32)
    ids = np.arange(40_000)
    ball = dpm.Ball(dpm.SPD(9), np.eye(9), 1.0)
    content = content_of(records, ball, ids)
    tracemalloc.start()
    try:
        fingerprint(KEY, content())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * 2**20 < 8 * records.size  # 25 MiB as doubles


def test_no_record_and_no_plain_hash_of_one_is_in_what_is_kept(tmp_path):
    """Neither the digests that the content is made of, nor a sha256 of the records, are in any of the files."""
    import hashlib
    import json

    with dpm.Ledger(tmp_path / "study.db", principal="ada") as ledger:
        cohort = ledger.population("cohort", cap=dpm.GDP("1"), unit="person")
        release = dpm.private_mean(X, BALL, dpm.GDP("0.5"), units=IDS, budget=cohort)
        release.save(tmp_path / "mean.json")
        ledger.export(tmp_path / "export.jsonl")
    pieces = list(content_of(X, BALL, IDS)())
    plain = [entry for piece in pieces for entry in json.loads(piece) if isinstance(entry, str) and len(entry) == 64]
    plain += [hashlib.sha256(piece).hexdigest() for piece in (*pieces, b"".join(pieces), X, X[0])]
    assert len(plain) == 8
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert ledger.id.encode() in kept
    assert not [digest for digest in plain if digest.encode() in kept or bytes.fromhex(digest) in kept]
    assert X[0].tobytes() not in kept
