"""Clusters that cannot do the work, or would do it with other bits, are told so."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading

import distributed
import numpy as np
import pytest

from dpmanifold.engines import DaskEngine, ThreadEngine, current_engine
from dpmanifold.engines.worker_task import Sameness
from dpmanifold.errors import ClusterError, InvalidArgumentError, InvalidDataError
from dpmanifold.linalg import backend, backends, level
from engines.tasks import (
    NUMBER,
    PIECES,
    SECRET,
    Slow,
    broken,
    client_of,
    damaged,
    exits,
    merged,
    partial,
    wait_for,
)

pytestmark = pytest.mark.security


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
                process.kill()  # nothing of theirs is to be kept, and one that is just closing may not hear a request
                process.communicate()


def test_a_worker_without_dpmanifold_is_refused(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['dpmanifold'] = None\n")
    with workers_like(PYTHONPATH=str(tmp_path)) as client:
        with pytest.raises(ClusterError, match="Install dpmanifold"):
            list(DaskEngine(client).map(len, ["item"]))
        with pytest.raises(ClusterError, match="Install dpmanifold"):
            DaskEngine(client).keep(len, ["item"])


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
            worker.kill()
            worker.wait()
    finally:
        scheduler.kill()
        scheduler.wait()


def address_in(file):
    with contextlib.suppress(ValueError):  # half written
        return json.loads(file.read_text())["address"]


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
    client = client_of(cluster)
    with DaskEngine.connect(client.scheduler.address, security=client.security) as engine:
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
    client = client_of(cluster)
    with DaskEngine.connect(client.scheduler.address, security=client.security) as engine:
        closing = threading.Timer(0.5, client_of(engine).close)
        closing.start()
        with pytest.raises(ClusterError, match="closed"):
            list(engine.map(Slow(tmp_path), PIECES))
        (tmp_path / "gate").touch()
        closing.join()
