"""Progress of the commands: the library's bars, silent with `--quiet`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from dpmanifold.progress import bar, quietly


@contextlib.contextmanager
def working(what: str, total: int | None = None, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a spinner, or with a total a bar; gives a function that takes how much is done so far.

    With `quiet` no bar of what is called inside is shown either.
    """
    so_far = 0
    with quietly(quiet), bar(what, total) as advance:

        def tell(done: int) -> None:
            nonlocal so_far
            advance(done - so_far)
            so_far = done

        yield tell
