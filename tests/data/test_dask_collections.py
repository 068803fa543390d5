"""Dask's arrays and data frames without a cluster: partitions are pieces, and nothing is known that they do not say."""

from __future__ import annotations

import dask.array
import dask.dataframe
import numpy as np
import pandas
import pytest

from data.kinds import CLASSES, NAMES, PEOPLE, TENSORS, N, dask_frame, gathered, pandas_frame
from dpmanifold import SPD, Euclidean, data
from dpmanifold.engines import ThreadEngine
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.sources import as_source

pytestmark = pytest.mark.security

RNG = np.random.default_rng(3)


def known(chunks=(300, 2, 3)):
    return dask.array.from_array(TENSORS, chunks=chunks)


def unknown():
    """Tensors in partitions whose lengths Dask does not know."""
    return dask_frame()[[f"x{i}" for i in range(1, 10)]].to_dask_array()


@pytest.mark.parametrize("chunks", [(300, 2, 3), (1000, 3, 3), (70, 3, 1), ((400, 0, 600), 3, 3)])
def test_arrays_in_chunks_of_any_shape(chunks):
    array = known(chunks)
    assert as_source(array).rows == N
    assert len(as_source(array).bound(SPD(3))) == array.numblocks[0]
    chunked = [dask.array.from_array(PEOPLE, chunks=sizes) for sizes in (123, (array.chunks[0],))]
    for ids in (PEOPLE, NAMES.tolist(), *chunked):
        records, found, classes = gathered(array, units=ids, labels=CLASSES)
        assert records.tobytes() == TENSORS.tobytes()
        assert found.tolist() == list(np.asarray(ids))
        assert classes.tolist() == CLASSES.tolist()


def test_arrays_of_unknown_length():
    array = unknown()
    assert as_source(array).rows is None
    assert gathered(array)[0].tobytes() == TENSORS.tobytes()
    records, ids, _ = gathered(array, units=dask_frame()["person"].to_dask_array())
    assert records.tobytes() == TENSORS.tobytes()
    assert ids.tolist() == PEOPLE.tolist()
    some = known()[known()[:, 0, 0] > np.median(TENSORS[:, 0, 0])]
    assert gathered(some)[0].tobytes() == TENSORS[TENSORS[:, 0, 0] > np.median(TENSORS[:, 0, 0])].tobytes()
    with pytest.raises(InvalidArgumentError, match="units must be a dask array or Series with the same partitions"):
        as_source(array).bound(SPD(3), PEOPLE)


def test_frames():
    frame = dask_frame()
    assert len(data.from_frame(frame, "x1..x9").bound(SPD(3), "person")) == 4
    records, ids, classes = gathered(data.from_frame(frame, "x1..x9"), units=frame["name"], labels="group")
    assert records.tobytes() == TENSORS.tobytes()
    assert ids.tolist() == NAMES.tolist()
    assert classes.tolist() == CLASSES.tolist()
    apart = dask.dataframe.from_pandas(pandas.Series(PEOPLE), npartitions=4)
    ids = gathered(data.from_frame(frame, "x1..x9"), units=apart.to_dask_array())[1]
    assert ids.tolist() == PEOPLE.tolist()
    lazily = frame.assign(**{f"x{i}": frame[f"x{i}"] * 2 for i in range(1, 10)})
    assert gathered(data.from_frame(lazily, "x1..x9"), units="person")[0].tobytes() == (2 * TENSORS).tobytes()


def test_wrong_ids_are_refused_before_records_are_read():
    frame = data.from_frame(dask_frame(), "x1..x9")
    cases = [
        (lambda: frame.bound(SPD(3), PEOPLE), "units must be the name of a column, or a dask array or Series"),
        (lambda: frame.bound(SPD(3), dask_frame(3)["person"]), "must have the partitions of the dask DataFrame, 4 of"),
        (lambda: as_source(known()).bound(SPD(3), "person"), "units: the dask array has no columns, got 'person'"),
        (lambda: as_source(known()).bound(SPD(3), PEOPLE[:-1]), r"units must have shape \(1000,\)"),
        (lambda: as_source(known()).bound(SPD(3), known()), r"units must have shape \(n,\)"),
        (lambda: as_source(known()).bound(SPD(3), dask.array.zeros(7)), r"units must have shape \(1000,\), got \(7,\)"),
        (lambda: as_source(known()).bound(SPD(4)), r"records of SPD\(4\).*got shape \(n, 3, 3\)"),
        (
            lambda: as_source(dask.array.from_array(NAMES.astype(str))).bound(SPD(3)),
            "array of numbers, got one of text",
        ),
        (lambda: as_source(dask.array.zeros(())), "batch of records"),
    ]
    for ask, said in cases:
        with pytest.raises((InvalidArgumentError, InvalidDataError), match=said):
            ask()


def test_ids_that_do_not_go_with_their_partition_are_refused():
    frame = data.from_frame(dask_frame(), "x1..x9")
    uneven = dask.dataframe.from_map(lambda n: pandas.Series(np.arange(n)), [250, 251, 249, 250])
    with pytest.raises(InvalidArgumentError, match="units must have one id per record"):
        gathered(frame, units=uneven)


def test_partitions_that_are_not_what_the_collection_says():
    frame = pandas_frame()
    meta = frame.iloc[:0]
    text = frame.astype({"x3": str})
    made = dask.dataframe.from_map(lambda part: part, [frame, text], meta=meta, enforce_metadata=False)
    assert gathered(data.from_frame(made, "x1..x9"), units="person")[0].tobytes() == 2 * TENSORS.tobytes()
    wrong = frame.rename(columns={"x3": "x10"})
    made = dask.dataframe.from_map(lambda part: part, [frame, wrong], meta=meta, enforce_metadata=False)
    with pytest.raises(KeyError):  # Dask's own
        gathered(data.from_frame(made, "x1..x9"), units="person")
    made = dask.dataframe.from_map(lambda part: part, [frame, frame[frame.columns[::-1]]], meta=meta)
    assert (
        gathered(data.from_frame(made, "x1..x9"), units="person")[0].tobytes()
        == np.concatenate([TENSORS, TENSORS]).tobytes()
    )


def test_partitions_can_be_computed_elsewhere():
    """What an engine with workers does: computes the partition, and asks a piece without the graph for its blocks."""
    for source, units in (
        (data.from_frame(dask_frame(), "x1..x9"), "name"),
        (data.from_frame(dask_frame(), "x1..x9"), dask_frame()["name"]),
        (known(), NAMES),
        (unknown(), dask_frame()["name"]),
    ):
        pieces = as_source(source).bound(SPD(3), units)
        values = dask.compute(*(piece.delayed() for piece in pieces), scheduler="synchronous")
        bare = [piece.without_graph() for piece in pieces]
        blocks = [block for piece, value in zip(bare, values, strict=True) for block in piece.blocks_of(value)]
        assert np.concatenate([block.records for block in blocks]).tobytes() == TENSORS.tobytes()
        assert np.concatenate([block.units for block in blocks]).tolist() == NAMES.tolist()
        assert all(piece.delayed() is not None for piece in pieces)


def test_pieces_are_computed_in_our_threads():
    pieces = as_source(known((50, 3, 3))).bound(SPD(3))
    rows = ThreadEngine(2).map(lambda piece: sum(len(block.records) for block in piece.blocks()), pieces)
    assert sum(rows) == N


def test_large_partitions_are_cut_into_blocks():
    array = dask.array.zeros((400_000, 2), chunks=(400_000, 1))
    [piece] = as_source(array).bound(Euclidean(2))
    assert [len(block.records) for block in piece.blocks()] == [131_072, 131_072, 131_072, 6_784]
