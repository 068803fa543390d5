"""Work on a Dask cluster: the same bits as here, whoever does it."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
from functools import partial as filled

import dask
import distributed
import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.engines import DaskEngine, ThreadEngine, current_engine, using
from dpmanifold.errors import ClusterError, InvalidDataError, SourceChangedError
from dpmanifold.linalg import backend, backends
from engines.tasks import (
    PIECES,
    Partition,
    badly_made,
    client_of,
    damaged,
    logarithms,
    made,
    merged,
    norms,
    partial,
    read,
    shared,
    shifted,
    wait_for,
    where,
)


def test_map_gives_the_bits_of_threads(cluster, here):
    assert np.array_equal(merged(cluster.map(partial, PIECES)), here)
    assert np.array_equal(merged(cluster.map(partial, PIECES[::-1])), here)
    assert np.array_equal(merged(ThreadEngine(2).map(partial, PIECES)), here)


def test_held_points_stay_on_the_workers_and_give_the_same_bits(cluster):
    by = np.linspace(-1.0, 1.0, 9)
    expected = merged(ThreadEngine(1).map(filled(shifted, by=by), ThreadEngine(1).keep(logarithms, PIECES)))
    held = cluster.keep(logarithms, PIECES)
    assert [type(one.value) for one in held] == [distributed.Future] * len(PIECES)
    for _ in range(2):
        assert np.array_equal(merged(cluster.map(filled(shifted, by=by), held)), expected)
    assert np.array_equal(merged(cluster.map(filled(shifted, by=by), cluster.keep(np.copy, held))), expected)


def test_held_results_keep_the_order_of_their_items(cluster):
    held = cluster.keep(lambda piece: piece.seed, PIECES)
    assert [next(cluster.map(lambda seed: seed, [one])) for one in held] == list(range(12))


def test_no_items_are_no_work(cluster):
    assert list(cluster.map(partial, [])) == []
    assert cluster.keep(partial, []) == []


def test_a_large_task_is_sent_once(cluster):
    base = np.arange(1_500_000.0)  # 12 MB: beyond where Dask warns

    def first(seed, base=base):
        return float(base[seed])

    assert sorted(cluster.map(first, range(8))) == list(range(8))
    held = cluster.keep(first, range(8))
    assert sorted(cluster.map(float, held)) == list(range(8))
    again = cluster.map(lambda item: item.sum(), [base])  # and a large item
    assert list(again) == [base.sum()]


def test_workers_use_one_thread_and_the_drivers_backend(cluster):
    for name in backends():
        with backend(name):
            found = list(cluster.map(where, PIECES))
        assert {(used, threads) for _, used, threads, _ in found} == {(name, 1)}
    assert len({pid for pid, *_ in found}) == 2
    assert os.getpid() not in {pid for pid, *_ in found}


@pytest.mark.slow
def test_one_worker_gives_the_same_bits(here):
    with DaskEngine.local(1) as engine:
        assert engine.workers == 1
        assert np.array_equal(merged(engine.map(partial, PIECES)), here)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be blocked here")
def test_workers_of_this_machine_leave_ctrl_c_to_the_driver(cluster):
    def blocked():
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())

    assert set(client_of(cluster).run(blocked).values()) == {True}
    assert not blocked()


def test_few_tasks_are_under_way(cluster):
    sent = []

    class Item:
        def __reduce__(self):
            sent.append(self)
            return int, ()

    results = cluster.map(abs, [Item() for _ in range(200)])
    assert next(results) == 0
    assert len(sent) <= 3 * cluster.workers + 1
    results.close()


def partitions_of(folder, count, make=made):
    one = dask.delayed(shared)(folder)
    return [Partition(dask.delayed(make)(folder, one, seed)) for seed in range(count)]


def test_partitions_of_a_collection_are_computed_by_the_workers(cluster, tmp_path):
    expected = merged(ThreadEngine(1).map(partial, partitions_of(str(tmp_path), 30)))
    (tmp_path / "log").unlink()
    pieces = partitions_of(str(tmp_path), 30)
    assert np.array_equal(merged(cluster.map(filled(read, str(tmp_path)), pieces)), expected)
    log = (tmp_path / "log").read_text().split()
    assert log.count("shared") == 1  # what partitions have in common is made once for all of them
    assert log.count("made") == log.count("read") == 30
    waiting = np.cumsum([{"made": 1, "read": -1}.get(word, 0) for word in log])
    assert waiting.max() <= 8  # a partition is read as soon as it is there, and let go
    wait_for(lambda: not client_of(cluster).cluster.scheduler.tasks)

    held = cluster.keep(logarithms, pieces)
    again = merged(cluster.map(filled(shifted, by=np.zeros(9)), held))
    local = ThreadEngine(1).keep(logarithms, pieces)
    assert np.array_equal(again, merged(ThreadEngine(1).map(filled(shifted, by=np.zeros(9)), local)))

    large = np.zeros(20_000)  # a task that is sent once
    assert np.array_equal(merged(cluster.map(lambda piece, large=large: partial(piece), pieces)), expected)


def test_a_source_that_gives_other_records_in_a_later_pass_is_refused(cluster, tmp_path):
    file, space = tmp_path / "records.npy", dpm.Euclidean(9)

    def blocks():
        yield np.load(file)

    np.save(file, np.ones((5, 9)))
    pieces = dpm.data.from_blocks(blocks).bound(space)
    assert list(cluster.map(norms, pieces)) == [15.0]
    assert list(cluster.map(norms, pieces)) == [15.0]
    np.save(file, np.zeros((5, 9)))
    with pytest.raises(SourceChangedError, match="gave other records"):
        list(cluster.map(norms, pieces))


@pytest.mark.slow
def test_what_a_collection_raises_is_raised_here(tmp_path):
    # Dask logs what fails in a collection's own graph: a cluster apart, since the other's logs are read.
    with DaskEngine.local(1) as engine:
        with pytest.raises(LookupError, match="no such partition"):
            list(engine.map(partial, partitions_of(str(tmp_path), 3, badly_made)))
        with pytest.raises(LookupError, match="no such partition"):
            engine.keep(partial, partitions_of(str(tmp_path), 3, badly_made))


def test_an_existing_client_is_used(cluster):
    assert isinstance(current_engine(), ThreadEngine)
    client = client_of(cluster)
    with client.as_current():
        assert isinstance(current_engine(), DaskEngine)
        assert client_of(current_engine()) is client
        with using(ThreadEngine(2)):
            assert isinstance(current_engine(), ThreadEngine)
    with using(cluster):
        assert current_engine() is cluster
    with distributed.Client(client.scheduler.address, security=client.security) as default:
        assert client_of(current_engine()) is default
    assert isinstance(current_engine(), ThreadEngine)


def test_a_task_that_asks_for_a_statistic_works_by_itself(cluster):
    def engine(item):
        import distributed

        with distributed.get_client():
            return type(current_engine()).__name__

    assert list(cluster.map(engine, [0])) == ["ThreadEngine"]


def test_public_facts_of_the_cluster(cluster):
    assert cluster.workers == 2
    limits = [worker["memory_limit"] for worker in client_of(cluster).scheduler_info()["workers"].values()]
    assert cluster.room == sum(limit // 4 for limit in limits)
    assert repr(cluster) == "DaskEngine(workers=2)"


def test_local_workers_spill_nothing_to_disk(cluster):
    def settings(item):
        import dask

        return [dask.config.get(f"distributed.worker.memory.{name}") for name in ("target", "spill")]

    assert list(cluster.map(settings, [0])) == [[False, False]]


def test_dask_is_imported_by_who_asks_for_it():
    program = (
        "import sys, dpmanifold.engines as e; e.current_engine(); print({'dask', 'distributed'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "set()"


def test_nothing_is_left_behind(cluster):
    client = client_of(cluster)
    scheduler = client.cluster.scheduler
    held = cluster.keep(logarithms, PIECES)
    results = cluster.map(np.copy, held)
    next(results)
    results.close()
    with contextlib.suppress(InvalidDataError):
        list(cluster.map(damaged, PIECES))
    del held, results
    gc.collect()
    wait_for(lambda: not [name for name in scheduler.tasks if str(name).startswith("dpmanifold")])
    assert not [name for name in client.futures if str(name).startswith("dpmanifold")]


@pytest.mark.slow
def test_a_local_cluster_ends_with_its_block():
    import psutil

    before = {process.pid for process in psutil.Process().children(recursive=True)}
    with DaskEngine.local(2) as engine:
        list(engine.map(partial, PIECES))
        started = {pid for pid, *_ in engine.map(where, PIECES)}
        assert started
    wait_for(lambda: not started & {process.pid for process in psutil.Process().children(recursive=True)})
    left = {process.pid for process in psutil.Process().children(recursive=True)} - before
    assert all("resource_tracker" in " ".join(psutil.Process(pid).cmdline()) for pid in left)
    with pytest.raises(ClusterError, match="closed"):
        list(engine.map(partial, PIECES))
