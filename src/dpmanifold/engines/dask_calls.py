"""Calls on their way to the workers of a Dask cluster, and what comes back of them.

Calls have names that say nothing and travel sealed. How the cluster is found, waited for and left is for
:mod:`dpmanifold.engines.dask`.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpmanifold._extras import optional_module
from dpmanifold.engines.base import Held
from dpmanifold.engines.remote import run, total_of, unsealed
from dpmanifold.engines.sameness import Sameness
from dpmanifold.engines.sealed import Outcome, Sealed

# Items that one task takes at most, for results to come now and then; and the share of what is left that each worker
# gets next: less than all of it, so that none waits long for another.
_TOGETHER, _SHARE_OF_REST = 8, 2 / 3

# A larger task is sent once for a pass and handed from worker to worker, rather than along with each of its items.
_LARGE = 2**16

# One at a time: the threshold of Dask's warning about large graphs is a setting of the whole process.
_SETTINGS = threading.Lock()


def distributed_module() -> Any:
    """Return `distributed`, or say how to install it."""
    return optional_module("distributed", "dask", "work on a cluster")


class Calls:
    """Calls on their way to the workers, by names that say nothing."""

    def __init__(self, client: Any) -> None:
        self._client, self._word, self._numbers = client, secrets.token_hex(16), itertools.count()

    def submitted(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Send one call; return its future."""
        with _large_graphs():
            return self._client.submit(function, *arguments, key=self._name(), pure=False)

    def _name(self) -> str:
        return f"dpmanifold-{self._word}-{next(self._numbers)}"


class Pass(Calls):
    """One task on its way to many items, with what all of them share."""

    def __init__(self, client: Any, task: Callable[..., Any]) -> None:
        super().__init__(client)
        self._same = Sameness.here()
        sealed = Sealed.of(task)
        # A task rather than Dask's scatter: what was scattered is lost with the workers that have it.
        large = len(sealed.content) > _LARGE
        self._task = self.submitted(unsealed, self._same, sealed) if large else sealed

    def started(self, items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield items and the futures of what becomes of them, in order; each is submitted when it is taken."""
        if not any(hasattr(item, "delayed") for item in items):
            for item in items:
                yield item, self.submitted(run, self._same, self._task, self._sent(item))
            return
        yield from self._from_graph(run, items)

    def _from_graph(self, function: Callable[..., Any], items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield items and futures where they are partitions of a Dask collection."""
        # Partitions of a collection may share what they are made of: one graph of all of them makes it once, and a
        # partition is let go when its task has read it.
        dask = optional_module("dask", "dask", "work on a cluster")
        call = dask.delayed(function, pure=False)
        calls = [
            call(self._same, self._task, Sealed.of(item.without_graph()), item.delayed(), dask_key_name=self._name())
            for item in items
        ]
        with _large_graphs():
            futures = deque(self._client.compute(calls))
        for item in items:
            yield item, futures.popleft()

    def together(self, batches: Sequence[Sequence[Any]]) -> Iterator[tuple[Sequence[Any], Any]]:
        """Yield batches of items and the futures of their totals; each is submitted when it is taken."""
        delayed = [some[0] for some in batches if hasattr(some[0], "delayed")]
        if delayed:
            yield from (([item], future) for item, future in self._from_graph(total_of, delayed))
            return
        for some in batches:
            yield some, self.submitted(total_of, self._same, self._task, [self._sent(item) for item in some])

    @staticmethod
    def _sent(item: Any) -> Any:
        """Return what stands for an item in a call: a future where it is held by workers."""
        if isinstance(item, Held):
            return item.value if is_future(item) else Sealed.of(item.value)
        return Sealed.of(item)


def is_future(item: Any) -> bool:
    """Return whether an item is held by workers."""
    return isinstance(item, Held) and isinstance(item.value, distributed_module().Future)


def in_turns(items: Sequence[Any], workers: int) -> Iterator[Sequence[Any]]:
    """Cut items into batches that get smaller, so that all workers are done at about the same time.

    >>> [len(some) for some in in_turns(range(16), 2)]
    [6, 4, 2, 2, 1, 1]
    """
    start = 0
    while start < len(items):
        size = min(_TOGETHER, math.ceil(_SHARE_OF_REST * (len(items) - start) / workers))
        yield items[start : start + size]
        start += size


def result_of(item: Any, outcome: Outcome) -> Any:
    """Return the result of a task; the item remembers what the copy of it that was sent has seen."""
    _remember(item, outcome.seen)
    return outcome.result()


def result_of_all(items: Sequence[Any], outcome: Outcome) -> Any:
    """Return the total of items, which remember what their copies have seen."""
    for item, seen in zip(items, outcome.seen or (), strict=False):
        _remember(item, seen)
    return outcome.result()


def _remember(item: Any, seen: Any) -> None:
    if seen is not None and not isinstance(item, Held):
        item.seen = seen


@contextlib.contextmanager
def _large_graphs() -> Iterator[None]:
    """Let calls carry what they need: Dask warns of more than 10 MB, and would have it scattered."""
    dask = optional_module("dask", "dask", "work on a cluster")
    with _SETTINGS, dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        yield


__all__ = ["Calls", "Pass", "distributed_module", "in_turns", "is_future", "result_of", "result_of_all"]
