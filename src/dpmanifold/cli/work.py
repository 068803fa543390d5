"""Progress on stderr: work done, never anything about the data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from dpmanifold.cli.speech import somebody_watches


@contextlib.contextmanager
def working(what: str, total: int | None = None, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a spinner, or with a total a bar; gives a function that takes how much is done. Silent without a terminal.

    How long the spinner turns is the running time, which docs/limitations.md says is not covered.
    """
    if quiet or not somebody_watches():
        yield lambda done: None
        return
    columns = [SpinnerColumn(), TextColumn("{task.description}")]
    if total is not None:
        columns += [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
