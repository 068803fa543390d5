"""Nothing about records can be read off a cluster: names, logs, events, what is printed."""

import contextlib
import pickle
import re
import sys

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import dpmanifold as dpm
from dpmanifold.engines import Held, using
from dpmanifold.engines.worker_task import Outcome, Sealed
from dpmanifold.errors import InvalidDataError
from dpmanifold.noise.source import SimulationSource, SystemSource
from engines.tasks import (
    NUMBER,
    PIECES,
    SECRET,
    Tensors,
    broken,
    client_of,
    damaged,
    logarithms,
)

pytestmark = pytest.mark.security

VALUE = 1.2357111317192329  # of a record


def everything_said(client, scheduler):
    """All that the cluster logged, named or noted about tasks, as one text."""
    said = [repr(client.get_worker_logs()), repr(client.get_scheduler_logs()), repr(client.get_events())]
    said += [repr(client.story("dpmanifold")), repr(scheduler.transition_log), repr(client.get_task_stream())]
    for task in scheduler.tasks.values():
        said += [repr(task), repr(task.run_spec), repr(task.type), repr(task.metadata), str(task.exception_text)]
    said += [repr([computation.code for computation in scheduler.computations]), repr(client.profile())]
    said += [repr(list(scheduler.task_prefixes)), repr(list(scheduler.task_groups)), repr(scheduler.identity())]
    return "\n".join(said)


def test_a_release_leaves_nothing_behind(cluster, capfd, tmp_path):
    client = client_of(cluster)
    before = set(client.cluster.scheduler.task_prefixes)
    ball = dpm.Ball(dpm.SPD(2, metric="riemann"), np.eye(2), 1.0)
    space, rng = ball.space, np.random.default_rng(0)
    for number in range(4):
        X = space.exp_coords(np.eye(2), 0.2 * rng.standard_normal((500, 3)))
        X[7, 0, 0] = VALUE
        people = [f"{SECRET}-{person}" for person in rng.integers(0, 40, 500)]
        columns = {"xx": X[:, 0, 0], "xy": X[:, 0, 1], "yy": X[:, 1, 1], "person": people}
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / f"{SECRET}-{number}.parquet")
    study = dpm.data.Dataset(tmp_path, columns=["xx", "xy", "yy"])
    with using(cluster):
        for units in ("person", dpm.EACH_RECORD):
            release = dpm.private_mean(study, ball, dpm.GDP(1.0), units=units)
        assert release.n == 2000
        X[3] = 0.0
        columns = {"xx": X[:, 0, 0], "xy": X[:, 0, 1], "yy": X[:, 1, 1], "person": people}
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / f"{SECRET}-9.parquet")
        damaged_study = dpm.data.Dataset(tmp_path, columns=["xx", "xy", "yy"])
        with pytest.raises(InvalidDataError, match=rf"{SECRET}-9\.parquet.* not positive definite"):
            dpm.private_mean(damaged_study, ball, dpm.GDP(1.0), units="person")
    said = everything_said(client, client.cluster.scheduler) + "".join(capfd.readouterr())
    for secret in (SECRET, str(VALUE), str(tmp_path), "Compute Failed", "InvalidData", "not valid"):
        assert secret not in said
    assert set(client.cluster.scheduler.task_prefixes) - before <= {"dpmanifold"}


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
    for secret in (SECRET, str(NUMBER), "Compute Failed", "cannot be read", "UnpicklableError"):
        assert secret not in said
    assert "dpmanifold" in said  # the tasks are there
    assert all(re.fullmatch("dpmanifold-[0-9a-f]{32}-[0-9]+", name) for name in scheduler.tasks)


def test_what_plain_dask_says_is_found():
    """Names, arguments and messages are all in what is searched."""
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as plain,
        distributed.Client(plain, set_as_default=False) as client,
    ):
        future = client.submit(damaged, Tensors(3), key=f"read-{SECRET}")
        assert isinstance(future.exception(), InvalidDataError)
        said = everything_said(client, plain.scheduler)
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
