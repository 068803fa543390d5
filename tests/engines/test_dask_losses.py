"""Workers that are lost in the middle take nothing with them."""

import contextvars
import os
import signal
import threading
import time
from functools import partial as filled

import numpy as np
import pytest

from dpmanifold.engines import DaskEngine, ThreadEngine
from dpmanifold.errors import ClusterError
from engines.tasks import (
    PIECES,
    Slow,
    client_of,
    dies,
    logarithms,
    merged,
    shifted,
    wait_for,
    where,
)


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_changes_no_bit(here, tmp_path):
    with DaskEngine.local(2) as engine:
        results = []
        context = contextvars.copy_context()  # with the backend of the tests
        driver = threading.Thread(
            target=context.run, args=(lambda: results.append(merged(engine.map(Slow(tmp_path), PIECES))),)
        )
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


@pytest.mark.slow
def test_workers_that_die_again_and_again():
    with DaskEngine.local(2) as engine, pytest.raises(ClusterError, match="lost again and again"):
        list(engine.map(dies, PIECES[:1]))
