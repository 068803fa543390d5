"""Nothing about records can be read off a cluster: names, logs, events, what is printed."""

import contextlib
import pickle
import re
import sys

import numpy as np
import pytest

from dpmanifold.engines import DaskEngine, Held
from dpmanifold.engines.sealed import Outcome, Sealed
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


@pytest.fixture(scope="module")
def fresh():
    """A cluster on which nothing has failed yet."""
    with DaskEngine.local(1) as engine:
        yield engine


def everything_said(client, scheduler):
    """All that the cluster logged, named or noted about tasks, as one text."""
    said = [repr(client.get_worker_logs()), repr(client.get_scheduler_logs()), repr(client.get_events())]
    said += [repr(client.story("dpmanifold")), repr(scheduler.transition_log), repr(client.get_task_stream())]
    for task in scheduler.tasks.values():
        said += [repr(task), repr(task.run_spec), repr(task.type), repr(task.metadata), str(task.exception_text)]
    said += [repr(list(scheduler.task_prefixes)), repr(list(scheduler.task_groups)), repr(scheduler.identity())]
    return "\n".join(said)


def test_nothing_about_records_is_named_or_logged(fresh, capfd):
    cluster = fresh
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
