"""What a worker runs. Nothing here raises, warns or logs: whatever happens is an outcome, for the driver alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpmanifold.engines.sameness import Sameness
from dpmanifold.engines.sealed import Outcome, Sealed
from dpmanifold.linalg import backend
from dpmanifold.linalg.native.library import one_thread_each
from dpmanifold.progress import quietly


class Computed:
    """A piece of a Dask collection together with its partition, which was computed by other tasks.

    Everything but its blocks is the piece's own.
    """

    def __init__(self, piece: Any, partition: Any) -> None:
        self._piece, self._partition = piece, partition

    def blocks(self) -> Iterator[Any]:
        """Yield the records of the partition, a block at a time."""
        return iter(self._piece.blocks_of(self._partition))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._piece, name)

    def __repr__(self) -> str:
        return "Computed()"


def run(same: Sameness, task: Sealed | Outcome, item: Sealed | Outcome, *partition: Any) -> Outcome:
    """Run a task on an item, one slot of the worker for it, with the driver's backend.

    Parameters
    ----------
    same : the driver's
    task : a function; an outcome where it was sent before (see :func:`unsealed`)
    item : what it is run on; an outcome where an earlier task made it and it was held
    partition : what a Dask collection computed for this item

    Examples
    --------
    >>> run(Sameness.here(), Sealed.of(len), Sealed.of("four")).result()
    4
    """
    found = total_of(same, task, [item], *partition, extends=False)
    return Outcome(found.value, found.failure, None if found.seen is None else found.seen[0])


def total_of(
    same: Sameness,
    task: Sealed | Outcome,
    items: Sequence[Sealed | Outcome] | Sealed,
    *partition: Any,
    extends: bool = True,
) -> Outcome:
    """Run a task on items one after the other, each with what it made of those before.

    Parameters
    ----------
    same, task : as in :func:`run`; the function takes a total, None at first, and an item
    items : what it is run on, several or one
    partition : what a Dask collection computed for the one item
    extends : whether it takes a total

    Examples
    --------
    >>> extend = Sealed.of(lambda total, item: (total or 0) + len(item))
    >>> total_of(Sameness.here(), extend, [Sealed.of("four"), Sealed.of("more")]).result()
    8
    """
    items = [items] if isinstance(items, Sealed) else items
    for part in (task, *items):
        if isinstance(part, Outcome) and part.failure is not None:
            return Outcome(failure=part.failure)
    total, seen = None, []
    try:
        same.demand()
        with one_thread_each(), backend(same.level), np.errstate(all="ignore"), quietly():
            function = _content(task)
            for item in items:
                thing = _content(item)
                given = Computed(thing, *partition) if partition else thing
                total = function(total, given) if extends else function(given)
                seen.append(getattr(thing, "seen", None))
        return Outcome(total, seen=seen)
    except BaseException as error:
        return Outcome.of(error)


def unsealed(same: Sameness, task: Sealed) -> Outcome:
    """Open a task once, for all items that come to a worker."""
    try:
        same.demand()
        return Outcome(task.opened())
    except BaseException as error:
        return Outcome.of(error)


def checked(kept: Outcome) -> Outcome:
    """Say whether a result that stays on the worker is there: the failure without the result."""
    return Outcome(failure=kept.failure, seen=kept.seen)


def _content(thing: Sealed | Outcome) -> Any:
    return thing.opened() if isinstance(thing, Sealed) else thing.value


__all__ = ["checked", "run", "total_of", "unsealed"]
