"""One call in a process of its own: what it took, and what it found. Runs in earlier versions of the library, too."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpmanifold import EACH_RECORD, GDP, SPD, Ball, private_mean
from scaling.files import COLUMNS, PERSON, matrices

Case = dict[str, Any]
KILLED_AT = 0.3  # of the time of a run in which nothing is lost
SCRIPT = pathlib.Path(__file__).parent.parent / "scale.py"


def in_fresh_process(case: Case, threads: int = 1, source: str | None = None) -> Case:
    """Run a case elsewhere, with so many threads and, if given, the library's source in another folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    if source is not None:
        environment["PYTHONPATH"] = source
    command = [sys.executable, str(SCRIPT), "--case"]
    done = subprocess.run(
        command, input=json.dumps(case), stdout=subprocess.PIPE, text=True, check=False, env=environment
    )
    if done.returncode:
        raise SystemExit(f"The call failed: {case['what']} with {case.get('engine', 'threads')}.")
    found = json.loads(done.stdout.splitlines()[-1])
    of = f"{len(case['paths'])} files, {case.get('workers', 1)} {case.get('engine', 'threads')}"
    print(f"{of}: {found.get('seconds', 'hashes')}", file=sys.stderr)  # tables come when all of it is done
    return found


def highest_memory(process: int | str = "self") -> float:
    """Return the most memory that a process has had, in MB; what `wait` reports begins with the parent's."""
    with open(f"/proc/{process}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def measured(case: Case) -> Case:
    """Do what a case says: take the time of calls, or take hashes of what they find."""
    with engine(case) as (start, client):
        found: Case = {"start": start}
        if case["what"] == "time":
            found["seconds"] = times(case)
        elif case["what"] == "bits":
            found["bits"] = bits(case, client)
        found["memory"] = highest_memory()
        if client is not None:
            found["workers"] = [highest_memory(worker) for worker in processes(client)]
        return found


@contextlib.contextmanager
def engine(case: Case) -> Iterator[tuple[float, Any]]:
    """Work in threads, or on a cluster of this machine; gives the time that it took to start, and the client."""
    workers = int(case.get("workers", 1))
    if case.get("engine", "threads") == "threads":
        if case.get("old"):
            yield 0.0, None
            return
        from dpmanifold.engines import ThreadEngine, using

        with using(ThreadEngine(workers)):
            yield 0.0, None
        return
    import distributed

    began = time.perf_counter()
    if "limit" not in case:
        from dpmanifold.engines import DaskEngine, using

        with DaskEngine.local(workers) as cluster, using(cluster):
            yield time.perf_counter() - began, cluster.client
        return
    settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    settings["memory_limit"] = case["limit"]
    with (
        distributed.LocalCluster(n_workers=workers, **settings) as on,
        distributed.Client(on) as client,
    ):
        yield time.perf_counter() - began, client


def processes(client: Any) -> list[int]:
    """Return the process of each worker."""
    return list(client.run(os.getpid).values())


def ball(metric: str) -> Ball:
    space = SPD(3, metric=metric)
    return Ball(space, space.origin, 2.0, source="benchmark")


def given(case: Case, paths: list[str], ids: bool) -> tuple[object, object]:
    """Return X and units as a user gives them."""
    if case.get("old"):
        from dpmanifold.data import load_array, load_column

        X = load_array(paths[0], columns=list(COLUMNS))
        return matrices(np.asarray(X)) if np.ndim(X) == 2 else X, load_column(paths[0], PERSON) if ids else EACH_RECORD
    from dpmanifold.data import Dataset

    if paths[0].endswith(".npy"):
        owners = np.concatenate([np.load(path.replace("records", "people")) for path in paths]) if ids else EACH_RECORD
        return Dataset(paths), owners
    return Dataset(paths, columns=list(COLUMNS)), PERSON if ids else EACH_RECORD


def times(case: Case) -> dict[str, float]:
    """Return the time of one private mean for each metric, with ids or without, by name."""
    found = {}
    for metric, ids in case["calls"]:
        for paths in (case.get("first"), case["paths"]):
            if paths is None:
                continue  # nothing to begin with: the time has everything in it
            began = time.perf_counter()
            X, units = given(case, paths, ids)
            private_mean(X, ball(metric), GDP(1.0), units=units)
            found[name(metric, ids)] = time.perf_counter() - began
    return found


def name(metric: str, ids: bool) -> str:
    return f"{'log-Euclidean' if metric == 'logeuclid' else 'affine'}, {'people' if ids else 'each record'}"


def bits(case: Case, client: Any) -> dict[str, str]:
    """Return hashes of the mean before noise and of a seeded release; with `kill`, a worker is lost on the way."""
    from dpmanifold.stats.curator import Told
    from dpmanifold.stats.inputs import prepare_records

    found = {}
    for metric, ids in case["calls"]:
        X, units = given(case, case["paths"], ids)
        around, began = ball(metric), time.perf_counter()

        def both(X: object = X, units: object = units, around: Ball = around) -> str:
            hidden = prepare_records(X, around, units, "raise", Told())[0].mean()
            release = private_mean(X, around, GDP(1.0), units=units, rng=7, arithmetic="exact")
            return f"{hashed(hidden)} {hashed(release.value)}"

        found[name(metric, ids)] = both()
        if case.get("kill"):
            with lost_worker(client, KILLED_AT * (time.perf_counter() - began)) as was_lost:
                found[name(metric, ids)] = both()
            if not was_lost():
                found[name(metric, ids)] += " (over before a worker was killed)"
    return found


def hashed(value: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12]


@contextlib.contextmanager
def lost_worker(client: Any, after: float) -> Iterator[Callable[[], bool]]:
    """Kill a worker some seconds into the block; gives a function that says whether it happened inside."""
    worker, over, killed = processes(client)[0], threading.Event(), threading.Event()

    def kill() -> None:
        if not over.wait(after):
            os.kill(worker, signal.SIGKILL)
            killed.set()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    try:
        yield killed.is_set
    finally:
        over.set()
        killer.join()
