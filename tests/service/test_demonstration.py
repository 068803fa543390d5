"""The demonstration is ready to be asked, and the two processes of a service live and end together."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from dpmanifold.service.demo_service import PEOPLE, set_up
from dpmanifold.service.service import Service
from dpmanifold.service.settings import Settings


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return set_up(tmp_path_factory.mktemp("demo") / "service")


def test_a_demonstration_is_ready_to_be_asked(demo):
    assert set(demo.passwords) == set(PEOPLE)
    with Service(Settings.read(demo.config)) as service:
        for name, password in demo.passwords.items():
            assert service.accounts.signed(name, password, "here").role == PEOPLE[name]
        (seen,) = service.desk(service.accounts.find("ada")).datasets()
    assert (seen.ref, seen.n, len(seen.classes)) == ("digits/descriptors", 1797, 10)
    assert "public" in seen.note
    assert {"mean", "class-means", "regression"} <= set(seen.statistics)
    assert seen.granted is not None


@pytest.mark.slow
def test_a_demonstration_that_is_there_goes_on(demo, tmp_path):
    assert set_up(demo.config.parent).passwords == {}
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(Exception, match="holds something else"):
        set_up(tmp_path)


# ------------------------------------------------------------------------------------------- two processes


@contextlib.contextmanager
def serving(config, *more):
    """Run both processes, and give the one above them once the service answers."""
    command = [sys.executable, "-m", "dpmanifold.cli", "service", "run", "--config", str(config), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("The service is at http"), line + process.stderr.read()
            yield process
        finally:
            process.kill()


def health(config):
    with urllib.request.urlopen(f"{Settings.read(config).url}/health", timeout=10) as answer:
        return json.load(answer)


def children_of(pid):
    found = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid=,args="], capture_output=True, text=True, check=False)
    lines = [line.split(None, 1) for line in found.stdout.splitlines()]
    return {"worker" if "--only worker" in words else "web": int(pid) for pid, words in lines}


@pytest.mark.slow
def test_both_run_and_end_together(demo):
    with serving(demo.config) as process:
        deadline = time.monotonic() + 30
        while not health(demo.config)["worker"] and time.monotonic() < deadline:
            time.sleep(0.1)
        assert health(demo.config) == {"status": "ok", "database": True, "ledger": True, "worker": True}
        pids = children_of(process.pid)
        assert set(pids) == {"web", "worker"}
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert "run as one user of the system" in said.replace("Both processes ", "")
        assert "worker stopped" in said
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids.values())


@pytest.mark.slow
def test_when_one_ends_by_itself_so_does_the_other(demo):
    with serving(demo.config) as process:
        pids = children_of(process.pid)
        os.kill(pids["worker"], signal.SIGKILL)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "the worker process ended by itself" in said
    assert not os.path.exists(f"/proc/{pids['web']}")


@pytest.mark.slow
def test_when_the_one_above_is_killed_the_two_end(demo):
    with serving(demo.config) as process:
        pids = children_of(process.pid)
        process.kill()
        deadline = time.monotonic() + 30
        while any(os.path.exists(f"/proc/{pid}") for pid in pids.values()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids.values())
