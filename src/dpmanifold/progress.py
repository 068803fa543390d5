"""Progress on stderr: work done out of a public total, never anything about the data.

A bar shows after a second, in terminals and notebooks, for the library as for `dpm`; where stderr is a pipe or a file
nothing is written. There is one display: what is opened inside a bar takes its place until it is done. How long it
takes is the running time, which docs/limitations.md says is not covered.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol

# Work that is done sooner shows nothing.
_PATIENCE = 1.0
# How often a second a terminal draws anew, and after how many seconds a notebook: a message to the browser each time.
_PACE = 10
_NOTEBOOK_PACE = 0.25
_BAR_WIDTH = 24

_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


@contextlib.contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """Show no bars inside the block.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> with dpm.progress.quietly():
    ...     pass                                          # private_mean(...), and what else would show a bar
    """
    token = _QUIET.set(_QUIET.get() or quiet)
    try:
        yield
    finally:
        _QUIET.reset(token)


@contextlib.contextmanager
def bar(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show a bar, or without a total a spinner; gives a function that takes how much more is done.

    Inside another one it takes its place; where the same is done there again, it says which pass that is. Bars of
    other threads and processes than the one that is shown are not.

    Parameters
    ----------
    what : what is done, in public words
    total : out of how many files, pieces or passes; a public number

    Examples
    --------
    >>> with bar("reading", 3) as advance:
    ...     advance(1)
    """
    opened = None if _QUIET.get() else _DISPLAY.open(what, total)
    if opened is None:
        yield lambda more: None
        return
    try:
        yield opened.advance
    finally:
        _DISPLAY.close(opened)


def on_a_terminal() -> bool:
    """Return whether stderr is a terminal, also behind a bar; a daemon may have none at all."""
    stream = getattr(sys.stderr, "rich_proxied_file", sys.stderr)  # what rich puts in its place while a bar is shown
    return stream is not None and not stream.closed and stream.isatty()


def in_a_notebook() -> bool:
    """Return whether cells of a notebook show what is displayed."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console(stderr=True).is_jupyter


class _Bar:
    """One line: what is done, and how far."""

    def __init__(self, what: str, total: int | None) -> None:
        from rich import progress as rich

        columns = [rich.SpinnerColumn(), rich.TextColumn("{task.description}", markup=False)]
        if total is not None:
            columns += [rich.BarColumn(_BAR_WIDTH), rich.MofNCompleteColumn(), rich.TimeRemainingColumn()]
        self._progress = rich.Progress(*columns, auto_refresh=False)  # never started: it only draws
        self._task = self._progress.add_task(what, total=total)
        self.inside: Counter[str] = Counter()

    def advance(self, more: int) -> None:
        """Say how much more is done."""
        self._progress.advance(self._task, more)

    def drawn(self) -> Any:
        """Return the line as it is now."""
        return self._progress.make_tasks_table(self._progress.tasks)


class _Screen(Protocol):
    """Where the display is seen."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class _Display:
    """All bars that are open, of which the innermost is shown; started by a timer, stopped with the outermost."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._bars: list[_Bar] = []
        self._thread = 0
        self._timer: threading.Timer | None = None
        self._screen: _Screen | None = None

    def open(self, what: str, total: int | None) -> _Bar | None:
        """Return a new bar; None where nobody would see it."""
        with self._lock:
            if not self._bars:
                if multiprocessing.parent_process() is not None or not (on_a_terminal() or in_a_notebook()):
                    return None
                self._thread = threading.get_ident()
                self._timer = threading.Timer(_PATIENCE, self._show)
                self._timer.daemon = True
                self._timer.start()
            elif self._thread != threading.get_ident():
                return None
            else:
                around = self._bars[-1]
                around.inside[what] += 1
                times = around.inside[what]
                what = what if times == 1 else f"{what}, pass {times}"
            self._bars.append(_Bar(what, total))
            return self._bars[-1]

    def close(self, bar: _Bar) -> None:
        """Take a bar away, with what was opened inside it and left open."""
        with self._lock:
            if bar not in self._bars:
                return
            del self._bars[self._bars.index(bar) :]
            if self._bars:
                return
            timer, self._timer = self._timer, None
            screen, self._screen = self._screen, None
        if timer is not None:
            timer.cancel()
        if screen is not None:
            screen.stop()

    def _show(self) -> None:
        with self._lock:
            if self._timer is threading.current_thread() and self._screen is None:
                self._screen = _terminal(self.drawn) if on_a_terminal() else _Notebook(self.drawn)
                self._screen.start()

    def drawn(self) -> Any:
        """Return the innermost bar as it is now."""
        bars = self._bars[-1:]  # without the lock: whoever draws may hold one of its own
        return bars[0].drawn() if bars else ""


_DISPLAY = _Display()


def _terminal(draw: Callable[[], Any]) -> _Screen:
    """Return a line at the foot of the terminal, which is gone when it stops; what is printed appears above it."""
    from rich.console import Console
    from rich.live import Live

    # rich would print what is written to stdout on the console of the bar: that is stderr, and stdout may be a file.
    both = sys.stdout is not None and sys.stdout.isatty()
    here = Console(stderr=True)
    return Live(console=here, get_renderable=draw, transient=True, refresh_per_second=_PACE, redirect_stdout=both)


class _Notebook:
    """An output of the cell that is drawn anew as work goes on; needs no widgets."""

    def __init__(self, draw: Callable[[], Any]) -> None:
        self._draw = draw
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def start(self) -> None:
        """Show the first picture, and go on."""
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        self._output = display(self._draw(), display_id=True)
        self._thread.start()

    def _go_on(self) -> None:
        while not self._done.wait(_NOTEBOOK_PACE):
            self._output.update(self._draw())

    def stop(self) -> None:
        """Leave nothing behind."""
        self._done.set()
        self._thread.join()
        self._output.update({"text/plain": ""}, raw=True)


__all__ = ["bar", "in_a_notebook", "on_a_terminal", "quietly"]
