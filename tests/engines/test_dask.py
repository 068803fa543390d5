"""Work on a Dask cluster: the same bits as here, and nothing that anybody on the way could read."""

import contextlib
import gc
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial as filled

import dask
import distributed
import numpy as np
import pytest

from dpmanifold.engines import DaskEngine, Held, ThreadEngine, current_engine, using
from dpmanifold.engines.sameness import Sameness
from dpmanifold.engines.sealed import Outcome, Sealed
from dpmanifold.errors import ClusterError, InvalidArgumentError, InvalidDataError
from dpmanifold.linalg import backend, backends, level
from dpmanifold.noise.source import SimulationSource, SystemSource
from engines.tasks import (
    NUMBER,
    SECRET,
    Partition,
    Slow,
    Tensors,
    badly_made,
    broken,
    damaged,
    dies,
    exits,
    logarithms,
    made,
    merged,
    partial,
    read,
    shared,
    shifted,
    where,
)

PIECES = [Tensors(seed) for seed in range(12)]


def client_of(engine):
    return engine._client


# ---------------------------------------------------------------------------------------------- the same bits


@pytest.fixture(scope="module")
def here():
    return merged(ThreadEngine(1).map(partial, PIECES))


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


def test_few_tasks_are_under_way(cluster):
    sent = []

    class Item:
        def __reduce__(self):
            sent.append(self)
            return int, ()

    results = cluster.map(abs, [Item() for _ in range(200)])
    assert next(results) == 0
    assert len(sent) <= 3 * cluster.workers
    results.close()


# ---------------------------------------------------------------------------------------------- collections


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


def test_what_a_collection_raises_is_raised_here(cluster, tmp_path):
    with pytest.raises(LookupError, match="no such partition"):
        list(cluster.map(partial, partitions_of(str(tmp_path), 3, badly_made)))
    with pytest.raises(LookupError, match="no such partition"):
        cluster.keep(partial, partitions_of(str(tmp_path), 3, badly_made))


# ---------------------------------------------------------------------------------------------- failures


def test_what_a_task_raises_is_raised_here(cluster):
    with pytest.raises(InvalidDataError, match=rf"{SECRET}-3.parquet: row {NUMBER} cannot be read"):
        list(cluster.map(damaged, PIECES))
    with pytest.raises(InvalidDataError, match=rf"{SECRET}-3.parquet: row {NUMBER} cannot be read"):
        cluster.keep(damaged, PIECES)
    with pytest.raises(RuntimeError, match="a task raised UnpicklableError: subject"):
        list(cluster.map(broken, PIECES))
    with pytest.raises(SystemExit):
        list(cluster.map(exits, PIECES[:1]))
    with pytest.raises(ZeroDivisionError) as caught:
        list(cluster.map(lambda piece: piece.seed // 0, PIECES[:1]))
    assert any("Raised on a worker" in note for note in caught.value.__notes__)
    assert sorted(cluster.map(lambda piece: piece.seed, PIECES)) == list(range(12))  # and the cluster works on


def test_what_opens_badly_is_an_outcome_too(cluster):
    class Bomb:
        def __reduce__(self):
            return int, (SECRET,)

    with pytest.raises(ValueError, match="invalid literal"):
        list(cluster.map(len, [Bomb()]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"version": "0.0.1"}, r"a worker has dpmanifold .*, and this process 0\.0\.1"),
        ({"numpy": "1.0"}, r"a worker has numpy .*, and this process 1\.0"),
        ({"kernels": -1}, "kernels of version"),
        ({"level": "native-avx9000"}, r"computes with native-avx9000, and a worker offers numpy.*backend\("),
        ({"digest": ""}, "rounds functions differently.*NPY_DISABLE_CPU_FEATURES"),
    ],
)
def test_a_worker_with_other_bits_is_refused(cluster, monkeypatch, changed, message):
    found = Sameness.here()._replace(**changed)
    monkeypatch.setattr(Sameness, "here", classmethod(lambda cls: found))
    with pytest.raises(ClusterError, match=message):
        list(cluster.map(partial, PIECES))
    with pytest.raises(ClusterError, match=message):
        cluster.keep(partial, PIECES)


def test_sameness_tells_backends_apart():
    seen = set()
    for name in backends():
        with backend(name):
            seen.add(Sameness.here())
    assert len(seen) == len(backends())
    assert Sameness.here().level == level()


@contextlib.contextmanager
def workers_like(workers=1, **environment):
    """A cluster whose workers are started by hand, with other environments."""
    with distributed.LocalCluster(
        n_workers=0, processes=False, dashboard_address="127.0.0.1:0", protocol="tcp"
    ) as cluster:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
        command += ["--nthreads", "1", "--no-dashboard", "--no-nanny"]
        started = [
            subprocess.Popen(
                command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            for _ in range(workers)
        ]
        try:
            with distributed.Client(cluster, set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=60)
                yield client
        finally:
            for process in started:
                process.terminate()
                process.communicate(timeout=30)


@pytest.mark.slow
def test_a_worker_without_dpmanifold_is_refused(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['dpmanifold'] = None\n")
    with workers_like(PYTHONPATH=str(tmp_path)) as client:
        with pytest.raises(ClusterError, match="Install dpmanifold"):
            list(DaskEngine(client).map(len, ["item"]))
        with pytest.raises(ClusterError, match="Install dpmanifold"):
            DaskEngine(client).keep(len, ["item"])


@pytest.mark.slow
def test_a_scheduler_without_dpmanifold_is_refused(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['dpmanifold'] = None\n")
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    command += ["--host", "127.0.0.1", "--scheduler-file", str(tmp_path / "address.json")]
    scheduler = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(tmp_path)}, stderr=subprocess.DEVNULL)
    try:
        address = wait_for(lambda: (tmp_path / "address.json").exists() and address_in(tmp_path / "address.json"))
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"]
        worker = subprocess.Popen(worker, stderr=subprocess.DEVNULL)
        try:
            with DaskEngine.connect(address) as engine, pytest.raises(ClusterError, match="Install dpmanifold"):
                list(engine.map(len, ["item"]))
        finally:
            worker.terminate()
            worker.wait(30)
    finally:
        scheduler.terminate()
        scheduler.wait(30)


def address_in(file):
    with contextlib.suppress(ValueError):  # half written
        return json.loads(file.read_text())["address"]


@pytest.mark.slow
def test_a_worker_that_rounds_otherwise_is_refused(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import math\nexp = math.exp\nmath.exp = lambda x: exp(x) * (1 + 2e-16)\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with workers_like(PYTHONPATH=path) as client, pytest.raises(ClusterError, match="rounds functions differently"):
        list(DaskEngine(client).map(len, ["item"]))


def test_a_scheduler_that_does_not_answer():
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        DaskEngine.connect("tcp://127.0.0.1:9", timeout=0.3)
    with pytest.raises(ClusterError, match="no Dask scheduler answers at 'nonsense://x'"):
        DaskEngine.connect("nonsense://x", timeout=0.3)


def test_tls_needs_certificates():
    with pytest.raises(InvalidArgumentError, match=r"security must be a distributed\.Security with certificates"):
        DaskEngine.connect("tls://127.0.0.1:9", timeout=0.3)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_connections_by_tls(tmp_path, here):
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=workers"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    files = {"tls_ca_file": certificate, "require_encryption": True}
    for role in ("client", "scheduler", "worker"):
        files |= {f"tls_{role}_key": key, f"tls_{role}_cert": certificate}
    security = distributed.Security(**files)
    settings = {"n_workers": 1, "threads_per_worker": 1, "security": security, "protocol": "tls"}
    with distributed.LocalCluster(dashboard_address="127.0.0.1:0", **settings) as closed:
        assert closed.scheduler_address.startswith("tls://")
        with DaskEngine.connect(closed.scheduler_address, security=security) as engine:
            assert np.array_equal(merged(engine.map(partial, PIECES)), here)
        with pytest.raises(ClusterError, match="no Dask scheduler answers"):
            DaskEngine.connect(closed.scheduler_address.replace("tls", "tcp"), timeout=1)


def test_what_is_not_a_client_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"client must be a distributed\.Client"):
        DaskEngine("tcp://127.0.0.1:8786")
    with pytest.raises(InvalidArgumentError, match="workers must be"):
        DaskEngine.local(0)


def test_a_cluster_without_workers_is_refused():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as empty,
        distributed.Client(empty, set_as_default=False) as client,
        pytest.raises(ClusterError, match=r"has had no worker for 0\.5 s"),
    ):
        list(DaskEngine(client, patience=0.5).map(len, ["item"]))


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install \"dpmanifold\[dask\]\""):
        DaskEngine.local(2)
    with pytest.raises(ImportError, match=r"pip install \"dpmanifold\[dask\]\""):
        DaskEngine.connect("tcp://127.0.0.1:9")
    assert isinstance(current_engine(), ThreadEngine)


def test_a_client_that_is_closed_in_the_middle(cluster):
    address = client_of(cluster).scheduler.address
    with DaskEngine.connect(address) as engine:
        results = engine.map(partial, PIECES)
        next(results)
        held = engine.keep(partial, PIECES[:2])
        client_of(engine).close()
        with pytest.raises(ClusterError, match="closed"):
            list(results)
        with pytest.raises(ClusterError, match="closed"):
            list(engine.map(partial, PIECES))
        with pytest.raises(ClusterError, match="closed"):
            list(engine.map(np.copy, held))
        with pytest.raises(ClusterError, match="closed"):
            DaskEngine(client_of(engine))


def test_a_client_that_is_closed_while_the_driver_waits(cluster, tmp_path):
    with DaskEngine.connect(client_of(cluster).scheduler.address) as engine:
        closing = threading.Timer(0.5, client_of(engine).close)
        closing.start()
        with pytest.raises(ClusterError, match="closed"):
            list(engine.map(Slow(tmp_path), PIECES))
        (tmp_path / "gate").touch()
        closing.join()


@pytest.mark.slow
def test_workers_that_die_again_and_again():
    with DaskEngine.local(2) as engine, pytest.raises(ClusterError, match="lost again and again"):
        list(engine.map(dies, PIECES[:1]))


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_changes_no_bit(here, tmp_path):
    with DaskEngine.local(2) as engine:
        results = []
        driver = threading.Thread(target=lambda: results.append(merged(engine.map(Slow(tmp_path), PIECES))))
        driver.start()
        pids = wait_for(lambda: len(found := list(tmp_path.glob("pid-*"))) == 2 and found)
        os.kill(int(pids[0].name.removeprefix("pid-")), signal.SIGKILL)
        time.sleep(0.5)
        (tmp_path / "gate").touch()
        driver.join(120)
        assert np.array_equal(results[0], here)
        # One died while it worked: another process took its place.
        assert len(list(tmp_path.glob("pid-*"))) >= 2
        wait_for(lambda: len(client_of(engine).scheduler_info()["workers"]) == 2)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_held_points_of_a_worker_that_is_killed_are_made_again(workers):
    by = np.linspace(-1.0, 1.0, 9)
    large = np.zeros(20_000)  # sent once for a pass, and needed again

    def kept(piece, large=large):
        return logarithms(piece) + large[0]

    expected = merged(ThreadEngine(1).map(filled(shifted, by=by), ThreadEngine(1).keep(logarithms, PIECES)))
    with DaskEngine.local(workers) as engine:
        held = engine.keep(kept, PIECES)
        pid = next(engine.map(where, PIECES[:1]))[0]
        os.kill(pid, signal.SIGKILL)
        assert np.array_equal(merged(engine.map(filled(shifted, by=by), held)), expected)


# ---------------------------------------------------------------------------------------------- silence


def everything_said(client, scheduler):
    """All that the cluster logged, named or noted about tasks, as one text."""
    said = [repr(client.get_worker_logs()), repr(client.get_scheduler_logs()), repr(client.get_events())]
    said += [repr(client.story("dpmanifold")), repr(scheduler.transition_log), repr(client.get_task_stream())]
    for task in scheduler.tasks.values():
        said += [repr(task), repr(task.run_spec), repr(task.type), repr(task.metadata), str(task.exception_text)]
    said += [repr(list(scheduler.task_prefixes)), repr(list(scheduler.task_groups)), repr(scheduler.identity())]
    return "\n".join(said)


def test_nothing_about_records_is_named_or_logged(cluster, capfd):
    client = client_of(cluster)
    scheduler = client.cluster.scheduler
    held = cluster.keep(logarithms, PIECES)
    with contextlib.suppress(InvalidDataError):
        list(cluster.map(damaged, PIECES))
    with contextlib.suppress(RuntimeError):
        list(cluster.map(broken, PIECES))
    results = cluster.map(lambda points, name=SECRET, value=NUMBER: (name, value), held)
    next(results)
    said = everything_said(client, scheduler) + "".join(capfd.readouterr())
    for secret in (SECRET, str(NUMBER), "Compute Failed", "cannot be read", "UnpicklableError", "parquet"):
        assert secret not in said
    assert "dpmanifold" in said  # the tasks are there
    assert set(scheduler.task_prefixes) == {"dpmanifold"}
    assert all(re.fullmatch("dpmanifold-[0-9a-f]{32}-[0-9]+", name) for name in scheduler.tasks)
    # The scan finds what plain Dask leaves behind: names, arguments and messages.
    future = client.submit(damaged, Tensors(3), key=f"read-{SECRET}")
    assert isinstance(future.exception(), InvalidDataError)
    said = everything_said(client, scheduler)
    assert "Compute Failed" in said
    assert SECRET in said


def test_what_travels_shows_nothing():
    sealed = Sealed.of(Tensors(1))
    assert repr(sealed) == str(sealed) == f"{sealed}" == "Sealed()"
    assert repr(Outcome(SECRET)) == "Outcome()"
    assert repr(Outcome.of(ValueError(SECRET))) == "Outcome()"
    assert repr(Held(SECRET)) == "Held()"
    assert sys.getsizeof(Outcome([np.zeros(1000)])) > 8000
    twin = pickle.loads(pickle.dumps(Outcome(np.ones(3))))
    assert np.array_equal(twin.result(), np.ones(3))


def test_random_bits_stay_with_the_driver(cluster):
    for secret in (SystemSource(), SimulationSource(1), np.random.default_rng(1), np.random.PCG64(1)):
        with pytest.raises(TypeError, match="stays in its process"):
            Sealed.of({"deep": [secret]})
        with pytest.raises(TypeError, match="stays in its process"):
            list(cluster.map(lambda item, rng=secret: item, [1]))
        with pytest.raises(TypeError, match="stays in its process"):
            list(cluster.map(type, [secret]))


# ---------------------------------------------------------------------------------------------- the end


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


# ---------------------------------------------------------------------------------------------- which engine


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
    with distributed.Client(client.scheduler.address) as default:
        assert client_of(current_engine()) is default
    assert isinstance(current_engine(), ThreadEngine)


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
