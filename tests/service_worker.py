"""A worker in a process of its own, whose records and loaders can be slow, or end their process: flags say so.

Run as a script: the settings' path, and a folder in which files are flags.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

from dpmanifold.data import Selection
from dpmanifold.service import canonical
from dpmanifold.service.processes import ONE_THREAD
from dpmanifold.service.service import Service
from dpmanifold.service.settings import Settings
from dpmanifold.service.worker import Worker


def _obey(flags, name):
    """Do what a flag says: a number of seconds to sleep, or the name of a signal."""
    with contextlib.suppress(FileNotFoundError):
        word = (flags / name).read_text(encoding="ascii")
        (flags / f"{name}-seen").touch()
        if word.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, word))
        else:
            time.sleep(float(word))


def _flagged(flags):
    """Hang flags to what opens records and to what reads files."""
    opened, opens = canonical.open_folder, Selection.open

    def open_folder(folder):
        _obey(flags, "open")
        return opened(folder)

    def read(chosen, **rest):
        _obey(flags, "read")
        return opens(chosen, **rest)

    canonical.open_folder, Selection.open = open_folder, read


def main(config, flags):
    _flagged(pathlib.Path(flags))
    with Service(Settings.read(config)) as service:
        Worker(service).run()


def until(condition, seconds=30.0):
    """Wait until something holds, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


class Crew:
    """The worker of a service, beside the tests; started when it is needed, and killed at the end."""

    def __init__(self, service, flags):
        self.service, self.flags = service, flags
        self._process = None

    @property
    def worker(self):
        """The worker's process, which runs."""
        if self._process is None or self._process.poll() is not None:
            self.kill()
            self._process = self._started()
        return self._process

    def start(self):
        """See to it that the worker runs."""
        assert self.worker.poll() is None

    def flag(self, name, word):
        """Say what is to happen: to "open" records, or to "read" files."""
        self.lower()
        (self.flags / name).write_text(word, encoding="ascii")

    def lower(self):
        """Take all flags back."""
        for flag in self.flags.iterdir():
            flag.unlink()

    def saw(self, name):
        """Whether somebody came by a flag."""
        return (self.flags / f"{name}-seen").exists()

    def kill(self):
        """Kill the worker, if it runs, and return what it has said."""
        if self._process is None:
            return b""
        self._process.kill()
        said = self._process.stderr.read()
        self._process.wait()
        self._process.stderr.close()
        self._process = None
        return said

    def _started(self):
        settings = self.service.settings
        script = pathlib.Path(__file__)
        paths = [str(script.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        environ = {
            **os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(paths),
            "DPM_SERVICE_WORKER_SLOT": str(settings.slot),
            "DPM_SERVICE_WORKER_REGISTER_SECONDS": str(settings.register_seconds),
        }  # fmt: skip
        command = [sys.executable, str(script), str(settings.path), str(self.flags)]
        process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE)
        line = process.stderr.readline()
        if b"worker started" not in line:
            said = line + process.communicate()[1]
            raise AssertionError(said.decode())
        return process


if __name__ == "__main__":
    main(*sys.argv[1:])
