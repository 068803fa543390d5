"""Both processes of a service under one roof: started together, stopped together, and neither restarted in silence.

For one machine and one person this is all there is. Where records must be out of the web process's reach, the two are
started by the system as two users (examples/serve): then this is not used.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import final

from dpmanifold.service.children import die_with_parent
from dpmanifold.service.logs import log

WEB, WORKER = "web", "worker"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""What the worker's environment says: its children are many, and each has its slot to itself."""

SAME_USER = (
    "Both processes run as one user of the system, so that whoever took over the web process could read the records. "
    "examples/serve shows how to run them as two."
)
_PAUSE = 0.1
_WEB_ENDS = 30.0  # seconds for requests that are being answered
_KILLED = 5.0  # seconds between the second word and the last
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) if os.name == "posix" else (signal.SIGTERM, signal.SIGINT)


def command(part: str, config: pathlib.Path) -> list[str]:
    """Return the command that runs one of the two processes."""
    return [sys.executable, "-m", "dpmanifold.cli", "serve", "--only", part, "--config", str(config)]


@final
class Processes:
    """The two processes of a service, and what this one does for them.

    Parameters
    ----------
    config : the settings
    tell : told in words what happens
    environ : of both; this process's own where it is not given
    """

    def __init__(
        self, config: pathlib.Path, tell: Callable[[str], object], environ: Mapping[str, str] | None = None
    ) -> None:
        self._config, self._tell = config, tell
        self._environ = dict(os.environ if environ is None else environ)
        self._asked_to_stop = 0

    def run(self, is_there: Callable[[], bool] = lambda: True, started: Callable[[], object] = lambda: None) -> str:
        """Run both until a signal says to stop: the first lets requests and the running release end, a second does not.

        Parameters
        ----------
        is_there : whether the web process answers
        started : called once it does

        Returns
        -------
        what to say of one that ended by itself, whereupon the other was stopped; nothing where both were asked to
        """
        for number in _SIGNALS:
            signal.signal(number, self._stop)
        running = {part: self._started(part) for part in (WORKER, WEB)}
        told = False
        try:
            while not self._asked_to_stop:
                if not told and is_there():
                    told = True
                    started()
                for part, process in running.items():
                    if process.poll() is not None:
                        log("process ended", "error", process=part, status=process.returncode)
                        return (
                            f"the {part} process ended by itself (exit code {process.returncode}), and the service was "
                            "stopped. What it said is above; dpm serve --check says what is missing."
                        )
                time.sleep(_PAUSE)
            self._tell("Stopping: requests and the running release are let end. Once more, and they are not.")
            return ""
        finally:
            self._end(running)

    def _stop(self, number: int, frame: object) -> None:
        self._asked_to_stop += 1

    def _started(self, part: str) -> subprocess.Popen[bytes]:
        environ = {**self._environ, **ONE_THREAD} if part == WORKER else self._environ
        # A session of its own: Ctrl-C is for this process, which tells the others.
        return subprocess.Popen(
            command(part, self._config), env=environ, stdin=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=lambda: die_with_parent(signal.SIGTERM),
        )  # fmt: skip

    def _end(self, running: Mapping[str, subprocess.Popen[bytes]]) -> None:
        """Stop both, and wait for them."""
        for process in running.values():
            _say(process, signal.SIGTERM)
        began, word = time.monotonic(), self._asked_to_stop
        while any(process.poll() is None for process in running.values()):
            if self._asked_to_stop > max(1, word):
                break
            if time.monotonic() - began > _WEB_ENDS:
                _say(running[WEB], signal.SIGKILL)
            time.sleep(_PAUSE)
        _say(running[WORKER], signal.SIGTERM)
        deadline = time.monotonic() + _KILLED
        while any(process.poll() is None for process in running.values()) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        for process in running.values():
            _say(process, signal.SIGKILL)
            process.wait()


def _say(process: subprocess.Popen[bytes], number: int) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
