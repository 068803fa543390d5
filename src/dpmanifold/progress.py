"""Progress on stderr: work done out of a public total, never anything about the data.

A bar shows after a second, in terminals and notebooks; where stderr is a pipe or a file nothing is written. How long it
takes is the running time, which docs/limitations.md says is not covered.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

# Work that is done sooner shows nothing.
_PATIENCE = 1.0

_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


@contextlib.contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """Show no bars inside the block.

    Examples
    --------
    >>> with quietly(), bar("reading", 3) as advance:
    ...     advance(1)
    """
    token = _QUIET.set(quiet)
    try:
        yield
    finally:
        _QUIET.reset(token)


def somebody_watches() -> bool:
    """Return whether bars can be seen: a terminal behind stderr, or a notebook."""
    return Console(stderr=True).is_jupyter or (sys.stderr is not None and sys.stderr.isatty())


@contextlib.contextmanager
def bar(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show a bar, or without a total a spinner; gives a function that takes how much more is done.

    Examples
    --------
    >>> with bar("reading", 3) as advance:
    ...     advance(1)
    """
    if _QUIET.get() or not somebody_watches():
        yield lambda more: None
        return
    columns = [SpinnerColumn(), TextColumn("{task.description}")]
    if total is not None:
        columns += [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task(what, total=total)
    started, done = time.monotonic(), threading.Event()

    def show_late() -> None:
        if not done.wait(_PATIENCE - (time.monotonic() - started)):
            progress.start()

    waiting = threading.Thread(target=show_late, daemon=True)
    waiting.start()
    try:
        yield lambda more: progress.advance(task, more)
    finally:
        done.set()
        waiting.join()
        progress.stop()
