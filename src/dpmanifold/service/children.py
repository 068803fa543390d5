"""Children of the worker: each piece of work in a process of its own, which can be killed and takes nothing with it.

A child has nobody to talk to but the database and one pipe: what it would print, a traceback among it, may quote
records, and goes nowhere. It writes no core file. It dies with its parent, so that after a worker was killed nothing is
at work in its name.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import final

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
