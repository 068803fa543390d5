"""A service that runs, as two real processes that can be killed and started again at once.

One process imports all that the two need and forks them: what a test waits for is the service, not Python.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import httpx

from dpmanifold.service.processes import ONE_THREAD

HERE = pathlib.Path(__file__).parent


def free_port():
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(holds, seconds=30.0, pause=0.02):
    """Wait for something to hold, and return what it gave; the error says that it never did."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(httpx.TransportError):
            found = holds()
            if found:
                return found
        time.sleep(pause)
    raise TimeoutError("it did not come to hold")


class Nursery:
    """A process that has imported everything, and forks web processes and workers."""

    def __init__(self):
        environ = {**os.environ, **ONE_THREAD}
        paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**environ, "PYTHONPATH": os.pathsep.join(paths)},
        )  # fmt: skip
        assert self._process.stdout.readline() == "ready\n"

    def start(self, part, config, environ, log):
        """Start one of the two processes, and return its number."""
        return self._answer(part=part, config=str(config), environ=environ, log=str(log))

    def send(self, number, sign=0):
        """Send a signal to a process if it still runs, and return whether it did."""
        return bool(self._answer(number=number, signal=sign))

    def _answer(self, **said):
        self._process.stdin.write(json.dumps(said) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Running:
    """Both processes of a service in a folder, whose settings and accounts are there."""

    def __init__(self, nursery, settings, environ):
        self._nursery, self.settings, self._environ = nursery, settings, environ
        self.log = settings.path.parent / "log.jsonl"
        self.processes = {}

    def start(self, *parts):
        for part in parts or ("worker", "web"):
            self.processes[part] = self._nursery.start(part, self.settings.path, self._environ, self.log)

    def kill(self, part):
        """Kill a process as no process can prevent, and wait until it is gone."""
        number = self.processes.pop(part)
        assert self._nursery.send(number, signal.SIGKILL)
        until(lambda: not self._nursery.send(number), 10, 0.002)

    def stop(self):
        numbers = list(self.processes.values())
        for number in numbers:
            self._nursery.send(number, signal.SIGTERM)
        until(lambda: not any(map(self._nursery.send, numbers)), 30)
        self.processes = {}

    def healthy(self):
        """Wait until both processes are there."""
        until(lambda: httpx.get(f"{self.settings.url}/health").json()["status"] == "ok")

    def client(self, token=None):
        """A client of the API."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=f"{self.settings.url}/api/v1", headers=headers, timeout=20)

    def lines(self):
        """What both processes have logged."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines() if line]


def _nurse():
    """Fork a process or send one a signal for every line; runs in a process of its own.

    Signals go to children that nobody has waited for. Of any other the number may have gone to a process, or a thread,
    that has nothing to do with it, and a signal to a thread ends the whole process: that of the tests, for one.
    """
    from dpmanifold.cli import service_commands
    from dpmanifold.service.web import app
    from dpmanifold.service.worker import prepare

    prepare()
    assert app
    living = set()
    print("ready", flush=True)
    for line in sys.stdin:
        living -= set(filter(_ended, living))
        said = json.loads(line)
        if "signal" in said:
            if said["number"] in living:
                os.kill(said["number"], said["signal"])
            print(int(said["number"] in living), flush=True)
            continue
        number = os.fork()
        if number == 0:
            _become(said, service_commands)
        living.add(number)
        print(number, flush=True)
    for number in living:
        os.kill(number, signal.SIGKILL)


def _ended(number):
    """Whether a child has ended, which is then no longer waited for."""
    return os.waitpid(number, os.WNOHANG)[0] == number


def _become(said, service_commands):
    """Be one of the two processes of a service, and end."""
    code = 1
    try:
        out = os.open(said["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for handle, target in ((nothing, 0), (out, 1), (out, 2)):
            os.dup2(handle, target)
        os.environ.update(said["environ"])
        service_commands._only(said["part"], pathlib.Path(said["config"]))
        code = 0
    except SystemExit as ending:
        code = ending.code or 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    _nurse()
