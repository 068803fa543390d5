"""The same bits from every engine, every format, every partition and every order of the records."""

import itertools
import os
import signal
import threading

import numpy as np
import pytest
from scaling.files import PERSON, matrices

from dpmanifold import EACH_RECORD, GDP, private_mean
from dpmanifold.engines import ThreadEngine, using
from scale.made import METRICS, WRITERS, ball, cuts, dataset, hidden, tensors, write

UNITS = pytest.mark.parametrize("units", [EACH_RECORD, PERSON], ids=["each record", "people"])
METRIC = pytest.mark.parametrize("metric", METRICS)
N = 1000
BASES = ("parquet", "csv", "npy")


@pytest.fixture(scope="module")
def data():
    return tensors(N)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    """The same records in a folder per kind of file."""
    path = tmp_path_factory.mktemp("kinds")
    return {kind: write(path / kind, kind, *data, cuts(len(data[0]), 4)) for kind in WRITERS}


def of_array(data, metric, units):
    """Return the bits of what a user gets who has everything in one array."""
    values, people = data
    return hidden(matrices(values), ball(metric), people if units is PERSON else units)


def who(kind, data, units):
    """Return units as they are given with files: a column, or ids beside arrays."""
    return data[1] if kind == "npy" and units is PERSON else units


@UNITS
@METRIC
@pytest.mark.parametrize("kind", WRITERS)
def test_formats_do_not_show(folder, data, metric, units, kind):
    with using(ThreadEngine(1)):
        found = hidden(dataset(folder[kind]), ball(metric), who(kind, data, units))
    assert found == of_array(data, metric, units)


@UNITS
@METRIC
def test_threads_do_not_show(folder, data, metric, units):
    with using(ThreadEngine(2)):
        assert hidden(dataset(folder["parquet"]), ball(metric), units) == of_array(data, metric, units)


@pytest.mark.slow
@UNITS
@METRIC
@pytest.mark.parametrize("kind", BASES)
def test_a_cluster_does_not_show(client, folder, data, metric, units, kind):
    found = hidden(dataset(folder[kind]), ball(metric), who(kind, data, units))
    assert found == of_array(data, metric, units)


@pytest.mark.slow
@UNITS
@METRIC
def test_releases_are_the_same(client, folder, data, metric, units):
    """One seed, one release: on a cluster, in threads, and of an array."""

    def released(X, owners):
        return private_mean(X, ball(metric), GDP(1.0), units=owners, rng=5, arithmetic="exact").value.tobytes()

    values, people = data
    expected = released(matrices(values), people if units is PERSON else units)
    assert released(dataset(folder["parquet"]), units) == expected
    with using(ThreadEngine(2)):
        assert released(dataset(folder["csv"]), units) == expected


def shuffled(data, seed):
    rng = np.random.default_rng(seed)
    values, people = data
    mixed = rng.permutation(len(values))
    return values[mixed], people[mixed], cuts(len(values), int(rng.integers(2, 9)), rng), int(rng.integers(1, 2000))


@METRIC
@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(1, 20), marks=pytest.mark.slow)], ids=["one", "nineteen"]
)
def test_partitions_and_orders_do_not_show(tmp_path, data, metric, seeds):
    for seed in seeds:
        values, people, ends, rows = shuffled(data, seed)
        for kind in BASES:
            paths = write(tmp_path / f"{kind}{seed}", kind, values, people, ends, rows)
            for units in (EACH_RECORD, PERSON):
                owners = people if kind == "npy" and units is PERSON else units
                with using(ThreadEngine(1 + seed % 2)):
                    assert hidden(dataset(paths), ball(metric), owners) == of_array(data, metric, units)


def test_sums_of_doubles_would_show(tmp_path, data):
    """The comparison is one of bits: sums per file, in doubles, come out differently."""

    def added(values, ends):
        around = ball()
        points = around.frame.log_coords(around.frame.origin, around.to_frame(matrices(values)))
        parts = [points[start:end].sum(axis=0) for start, end in itertools.pairwise(ends)]
        return (sum(parts) / len(values)).tobytes()

    cut = [shuffled(data, seed) for seed in range(3)]
    assert len({added(values, ends) for values, _, ends, _ in cut}) > 1


@pytest.mark.slow
@UNITS
@METRIC
def test_a_worker_that_is_lost_does_not_show(client, tmp_path, metric, units):
    """One of two workers is killed while it works: its tasks run again, and the bits are those of an array."""
    values, people = tensors(200_000, 500)
    paths = write(tmp_path, "parquet", values, people, cuts(len(values), 24), rows=5000)
    expected = of_array((values, people), metric, units)
    before = set(client.run(os.getpid).values())
    killed, done = threading.Event(), threading.Event()

    def lose():
        while not any(client.processing().values()):
            if done.wait(0.001):
                return
        os.kill(min(before), signal.SIGKILL)
        killed.set()

    killer = threading.Thread(target=lose, daemon=True)
    killer.start()
    try:
        found = hidden(dataset(paths), ball(metric), units)
    finally:
        done.set()
        killer.join()
    assert killed.is_set()
    assert found == expected
    client.wait_for_workers(2, timeout=60)
    assert set(client.run(os.getpid).values()) != before
