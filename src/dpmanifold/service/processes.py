"""Both processes of a service under one roof: started together, stopped together, and neither restarted in silence.

For one machine and one person this is all there is. Where records must be out of the web process's reach, the two are
started by the system as two users (examples/serve): then this is not used.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

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
    return [sys.executable, "-m", "dpmanifold.cli", "service", "run", "--only", part, "--config", str(config)]


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
                            "stopped. What it said is above; dpm service check says what is missing."
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


# -------------------------------------------------------------------- children of the worker

# Each piece of work is in a process of its own, which can be killed and takes nothing with it. A child has nobody to
# talk to but the database and one pipe: what it would print, a traceback among it, may quote records, and goes
# nowhere. It writes no core file. It dies with its parent, so that after a worker was killed nothing is at work in
# its name.


if sys.platform != "win32":  # where no ledger is opened
    import resource

Work = Callable[[Callable[[], object]], object]
"""What a child does; it is given a function by which it tells its parent, once, that it is ready."""

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_LOWEST_PRIORITY = 19


@final
@dataclass
class Child:
    """A process that was forked.

    Attributes
    ----------
    pid : its number
    pipe : from which what it tells is read
    began : when, by the clock that never goes back
    code : its exit code once it has ended, negative for a signal; None before
    """

    pid: int
    pipe: int
    began: float = field(default_factory=time.monotonic)
    code: int | None = None
    _ready: bool = False

    def ready(self) -> bool:
        """Return whether it has told that it is ready."""
        if not self._ready and self.pipe >= 0:
            with contextlib.suppress(BlockingIOError):
                self._ready = os.read(self.pipe, 1) == b"."
        return self._ready

    def ended(self) -> bool:
        """Return whether it is over."""
        if self.code is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self._close(status)
        return self.code is not None

    def kill(self) -> None:
        """End it now, and whatever it started."""
        if not self.ended():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # one that had no time to become a group
            self._close(os.waitpid(self.pid, 0)[1])

    def _close(self, status: int) -> None:
        self.ready()
        os.close(self.pipe)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what it started and left behind
        self.pipe, self.code = -1, os.waitstatus_to_exitcode(status)


def fork(work: Work, *, behind: bool = False, memory: int | None = None, closing: Iterable[int] = ()) -> Child:
    """Do something in a process of its own.

    Parameters
    ----------
    work : what to do; whatever it raises, the exit code is 1 and nothing is said
    behind : whether others come first, and it is the first to go when memory is short
    memory : how many bytes it may take
    closing : files of this process that are none of the child's business
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()  # or the child has it to write as well
    parent = os.getpid()
    reader, writer = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        raise
    if pid:
        os.close(writer)
        os.set_blocking(reader, False)
        return Child(pid, reader)
    code = 1
    try:
        os.close(reader)
        for handle in closing:
            os.close(handle)
        _settle_in(parent, behind, memory)
        work(lambda: os.write(writer, b"."))
        code = 0
    except BaseException:  # nobody is there to catch it, and it may quote records
        code = 1
    finally:
        os._exit(code)


def _settle_in(parent: int, behind: bool, memory: int | None) -> None:
    """Become a process that nobody hears, that dies with its parent, and that stays within its limits."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent()
    if os.getppid() != parent:  # it died before
        os._exit(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(nowhere, handle)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if behind:
        with contextlib.suppress(OSError):
            os.nice(_LOWEST_PRIORITY)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the system send this process a signal when its parent ends, where the system can do that (Linux)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_DIE_WITH_PARENT, int(number), 0, 0, 0)
