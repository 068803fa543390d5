"""Where work on many pieces is done: here, in threads, or on the workers of a cluster.

An engine runs one function on each of many items and hands results back in whatever order they are done: everything
that is added up is added exactly, so that the order leaves no trace. Nothing is spent, drawn or written by an engine.
"""

from __future__ import annotations

import contextvars
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from dpmanifold._check import Reticent, positive_int
from dpmanifold.linalg.native.library import one_thread_each
from dpmanifold.progress import bar

T = TypeVar("T")


class Held(Reticent):
    """A result that stays where it was computed; an item for further tasks. `value` is it, or a handle of it."""

    def __init__(self, value: Any) -> None:
        self.value = value


class StaysHere:
    """What no engine sends to another process: whatever spends or draws does so in the process that was asked."""


class Engine(ABC):
    """Runs tasks on items: pieces of a source, or results that were held.

    A task is a function of one item; it can be pickled where workers are other processes, and depends on its item
    alone. Whatever a task raises is raised here, once, and nothing about items is logged anywhere.

    Attributes
    ----------
    workers : how many tasks run at a time
    room : bytes that held results may take up together, on all workers
    elsewhere : whether other processes do the work, and hold what is held
    """

    workers: int = 1
    room: int = 256 * 2**20
    elsewhere: bool = False

    @abstractmethod
    def map(self, task: Callable[[Any], T], items: Sequence[Any], what: str = "reading") -> Iterator[T]:
        """Yield what a task makes of each item (of what it holds, if it is Held), in the order in which they finish.

        `what` is said on a progress bar, with the number of items.
        """

    @abstractmethod
    def reduce(self, extend: Callable[[T | None, Any], T], items: Sequence[Any], what: str = "reading") -> Iterator[T]:
        """Yield totals, each of some of the items, and together of all of them once.

        `extend` adds an item to a total, which it may write to, and begins one where it is given None. Which items come
        together, and in which order, is for the engine to say: those that one worker reads, or holds.
        """

    @abstractmethod
    def keep(self, task: Callable[[Any], Any], items: Sequence[Any], what: str = "reading") -> list[Held]:
        """Run a task on each item and leave its results where they are, in the order of the items."""


class ThreadEngine(Engine):
    """Threads of this process; the compiled kernels and the readers of files let go of Python's lock.

    Parameters
    ----------
    workers : how many items are worked on at a time; each takes memory for one block

    Examples
    --------
    >>> sorted(ThreadEngine(2).map(lambda item: item**2, [1, 2, 3]))
    [1, 4, 9]
    """

    def __init__(self, workers: int = 1) -> None:
        self.workers = positive_int(workers, "workers")

    def __repr__(self) -> str:
        return f"ThreadEngine(workers={self.workers})"

    def map(self, task: Callable[[Any], T], items: Sequence[Any], what: str = "reading") -> Iterator[T]:
        """Yield results as they are done; at most `workers` of them wait to be taken."""
        with bar(what, len(items)) as advance:
            for _, result in self._run(task, items):
                advance(1)
                yield result

    def reduce(self, extend: Callable[[T | None, Any], T], items: Sequence[Any], what: str = "reading") -> Iterator[T]:
        """Yield a total for each thread, which takes one item after the other."""
        waiting = deque(items)

        def work(_: int) -> T | None:
            total: T | None = None
            while True:
                try:
                    item = waiting.popleft()
                except IndexError:
                    return total
                total = extend(total, item.value if isinstance(item, Held) else item)
                advance(1)

        with bar(what, len(items)) as advance:
            for _, total in self._run(work, range(min(self.workers, len(items))), waiting.clear):
                if total is not None:
                    yield total

    def keep(self, task: Callable[[Any], Any], items: Sequence[Any], what: str = "reading") -> list[Held]:
        """Run a task on each item and hold the results."""
        held: list[Held | None] = [None] * len(items)
        with bar(what, len(items)) as advance:
            for place, result in self._run(task, items):
                advance(1)
                held[place] = Held(result)
        return [one for one in held if one is not None]

    def _run(
        self, task: Callable[[Any], T], items: Sequence[Any], stop: Callable[[], object] = bool
    ) -> Iterator[tuple[int, T]]:
        """Yield places of items and their results; `stop` is called where no more of them are wanted."""
        values = (item.value if isinstance(item, Held) else item for item in items)
        if self.workers == 1 or len(items) < 2:
            yield from ((place, task(value)) for place, value in enumerate(values))
            return
        waiting = deque(enumerate(values))
        with one_thread_each(), ThreadPoolExecutor(self.workers) as pool:
            running: dict[Future[T], int] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < self.workers:
                        place, value = waiting.popleft()
                        # In this context: the backend in use, and so the bits, are those of the caller.
                        running[pool.submit(contextvars.copy_context().run, task, value)] = place
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield running.pop(future), future.result()
            finally:
                stop()
                for future in running:
                    future.cancel()
