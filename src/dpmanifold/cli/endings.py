"""How a command is ended from outside: Ctrl-C and SIGTERM unwind it, so that no temporary file stays."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

# What ends a command by itself leaves its temporary files behind; SIGINT is Python's own to turn into an exception.
_KILLING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_INTERRUPTED = 128 + signal.SIGINT


class Terminated(SystemExit):
    """The command was told to end by a signal; its exit code is 128 plus the signal's number, as in a shell."""


def code_of(ending: BaseException) -> int:
    """Return the exit code of a command that was interrupted or terminated."""
    return int(ending.code or 0) if isinstance(ending, Terminated) else _INTERRUPTED


def _unwind(number: int, frame: FrameType | None) -> None:
    raise Terminated(128 + number)


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """Turn signals that would end the process at once into an exception, while the block runs."""
    wanted = [n for n in _KILLING if _is_main_thread() and signal.getsignal(n) is signal.SIG_DFL]
    for number in wanted:
        signal.signal(number, _unwind)
    try:
        yield
    finally:
        for number in wanted:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Let signals wait until the block has ended: it is short, and nobody should have to ask how far it came."""
    waiting: list[int] = []
    numbers = [signal.SIGINT, *_KILLING] if _is_main_thread() else []
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    for number in before:
        signal.signal(number, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if waiting:
        signal.raise_signal(signal.Signals(waiting[0]))


def _is_main_thread() -> bool:
    """Return whether this thread may set handlers."""
    return threading.current_thread() is threading.main_thread()
