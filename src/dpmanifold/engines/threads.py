"""Work in this process: one item after the other, or several at a time in threads."""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Any, TypeVar

from dpmanifold._check import positive_int
from dpmanifold.engines.base import Engine, Held
from dpmanifold.linalg.native.library import one_thread_each
from dpmanifold.progress import bar

T = TypeVar("T")


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
        waiting = deque(item.value if isinstance(item, Held) else item for item in items)
        # How each item ended: with None, or with what was raised.
        ended: SimpleQueue[BaseException | None] = SimpleQueue()

        def work() -> T | None:
            total: T | None = None
            try:
                while True:
                    try:
                        item = waiting.popleft()
                    except IndexError:
                        return total
                    total = extend(total, item)
                    ended.put(None)
            except BaseException as error:
                waiting.clear()
                ended.put(error)
                return None

        with bar(what, len(items)) as advance:
            if self.workers == 1 or len(items) < 2:
                total: T | None = None
                for item in waiting:
                    total = extend(total, item)
                    advance(1)
                if total is not None:
                    yield total
                return
            with one_thread_each(), ThreadPoolExecutor(self.workers) as pool:
                try:
                    # In this context: the backend in use, and so the bits, are those of the caller.
                    threads = [pool.submit(contextvars.copy_context().run, work) for _ in range(self.workers)]
                    for _ in items:
                        error = ended.get()
                        if error is not None:
                            raise error
                        advance(1)
                finally:
                    waiting.clear()
            for thread in threads:
                found = thread.result()
                if found is not None:
                    yield found

    def keep(self, task: Callable[[Any], Any], items: Sequence[Any], what: str = "reading") -> list[Held]:
        """Run a task on each item and hold the results."""
        held: list[Held | None] = [None] * len(items)
        with bar(what, len(items)) as advance:
            for place, result in self._run(task, items):
                advance(1)
                held[place] = Held(result)
        return [one for one in held if one is not None]

    def _run(self, task: Callable[[Any], T], items: Sequence[Any]) -> Iterator[tuple[int, T]]:
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
                for future in running:
                    future.cancel()
