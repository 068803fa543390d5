"""Work on the workers of a Dask cluster.

Workers read pieces and hold points; the driver, which is the process of the caller, merges, spends, draws and writes.
Tasks are called dpmanifold, a random word and a number, and travel sealed. Few are under way at a time, so that the
driver holds few results. A worker that is lost takes nothing with it: what it held is computed again from its pieces,
to the same bits (Dask remembers how).
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib.util
import itertools
import math
import queue
import secrets
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from dpmanifold._check import optional_module, positive_int, shown
from dpmanifold._version import __version__
from dpmanifold.engines.base import Engine, Held
from dpmanifold.engines.worker_task import Outcome, Sameness, Sealed, checked, run, total_of, unsealed
from dpmanifold.errors import ClusterError, InvalidArgumentError
from dpmanifold.files import Closable
from dpmanifold.progress import bar

T = TypeVar("T")
# How a task ended: its future and an outcome, or without one where the cluster failed.
_End = tuple[Any, Any, BaseException | None]

# Tasks under way for each one that runs: the next ones wait on the worker while a result travels.
_AHEAD = 3

# The part of a worker's memory that held points may take.
_SHARE = 4

# Settings of workers on this machine: held points are not spilled to disk, and nothing is served to browsers.
_LOCAL = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.http.routes": [],
    "distributed.scheduler.http.routes": [],
    # Dask makes glibc hand freed memory back at once; blocks of records come and go, and a pass would take half as long
    # again.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**26,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}

# How long a worker of this machine that was lost may take to come back.
_LOST = "1 hour"

# How often, in seconds, the driver looks whether there are workers at all.
_LOOK = 1.0

# Clients whose workers were asked whether they have dpmanifold.
_ABLE: weakref.WeakSet[Any] = weakref.WeakSet()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C in this thread, and so in the threads and processes that it starts: the driver alone is to hear it.

    A terminal sends it to all of them, and workers would each print where they were.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # which would lift the block in the thread that starts it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class DaskEngine(Closable, Engine):
    """The workers of a Dask cluster.

    Workers, the scheduler and this process need the same versions of dpmanifold and numpy, and processors that round
    alike; a worker whose bits would differ is refused. The files of a source are read by the workers: their paths
    mean the same there.

    Parameters
    ----------
    client : a `distributed.Client`, which stays open
    patience : seconds to wait where there is no worker at all

    Examples
    --------
    >>> from distributed import Client
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0") as client:
    ...     sorted(DaskEngine(client).map(lambda item: item**2, [1, 2, 3]))
    [1, 4, 9]
    """

    elsewhere = True

    def __init__(self, client: Any, patience: float = 60.0) -> None:
        if getattr(client, "asynchronous", None) is not False:
            raise InvalidArgumentError(
                f"client must be a distributed.Client that is not asynchronous, got {shown(client)}."
            )
        self.client, self._patience = client, float(patience)
        # By way of the scheduler, which is what clients do unless told otherwise, results take several times as long.
        # Workers on this machine can be reached from here.
        self._direct = True if isinstance(client.cluster, distributed_module().LocalCluster) else None
        self._closing = contextlib.ExitStack()
        self._look()

    @classmethod
    def local(cls, workers: int) -> DaskEngine:
        """Start workers on this machine, each a process with one thread; use it in a `with` block.

        They listen on this machine alone (by TLS where the package cryptography is installed, so that other users of
        the machine cannot speak to them), write no data to disk and serve no pages. In a script, start them under
        `if __name__ == "__main__":`, as workers import it.

        Parameters
        ----------
        workers : how many processes
        """
        workers = positive_int(workers, "workers")
        distributed, dask = distributed_module(), optional_module("dask", "dask", "work on a cluster")
        with contextlib.ExitStack() as closing, dask.config.set(_LOCAL):  # settings reach workers when they start
            with _interrupts_blocked():
                cluster = closing.enter_context(
                    distributed.LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        processes=True,
                        host="127.0.0.1",
                        security=True if importlib.util.find_spec("cryptography") else None,
                        dashboard_address=None,
                        scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                    )
                )
            # Looked up when a worker is lost, not when it starts: on a busy machine it may take longer than Dask's 15 s
            # to replace it, and its place must not be given up.
            closing.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": _LOST}))
            engine = cls(closing.enter_context(distributed.Client(cluster, set_as_default=False)))
            engine._closing = closing.pop_all()
        return engine

    @classmethod
    def connect(cls, address: str, security: Any = None, timeout: float = 10.0) -> DaskEngine:
        """Connect to a scheduler; use it in a `with` block, which closes the connection.

        Parameters
        ----------
        address : where the scheduler is, as "tcp://host:8786" or "tls://host:8786"
        security : a `distributed.Security` for TLS; else what Dask's settings say
        timeout : seconds to wait for an answer
        """
        distributed = distributed_module()
        known = distributed.Security() if security is None else security
        if str(address).startswith("tls") and not known.get_connection_args("client").get("ssl_context"):
            raise InvalidArgumentError(
                "security must be a distributed.Security with certificates for an address that starts with tls, unless "
                f"Dask's settings name them; got {shown(security)}."
            )
        try:
            client = distributed.Client(address, security=security, timeout=timeout, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {shown(address)} within {timeout:g} s ({type(error).__name__}). Check "
                "the address, and that `dask scheduler` runs there and can be reached from here."
            ) from None
        engine = cls(client)
        engine._closing.enter_context(client)
        return engine

    def close(self) -> None:
        """Close what this engine started: its workers, its client; not a client that was given."""
        self._closing.close()

    def __repr__(self) -> str:
        return f"DaskEngine(workers={self.workers})"

    def map(self, task: Callable[[Any], T], items: Sequence[Any], what: str = "reading") -> Iterator[T]:
        """Yield results as they come; whatever else was submitted is let go where the iteration ends."""
        with bar(what, len(items)) as advance:
            work = self._pass(task)
            for item, outcome in self._finished(work.started(items)):
                advance(1)
                yield result_of([item], outcome)

    def reduce(self, extend: Callable[[T | None, Any], T], items: Sequence[Any], what: str = "reading") -> Iterator[T]:
        """Yield totals as they come: of what a worker holds, or of a few items that it reads one after the other."""
        with bar(what, len(items)) as advance:
            work = self._pass(extend)
            for some, outcome in self._finished(work.together(self._batches(items))):
                advance(len(some))
                yield result_of(some, outcome)

    def _batches(self, items: Sequence[Any]) -> list[Sequence[Any]]:
        """Return the items in batches, one task each: together what lies on one worker, as far as that is known."""
        if any(hasattr(item, "delayed") for item in items):
            return [[item] for item in items]  # their partitions are made beforehand, and are large
        if not any(is_future(item) for item in items):
            return list(in_turns(items, self.workers))
        from asyncio import CancelledError

        try:
            held = self.client.who_has([item.value for item in items if is_future(item)])
        except (Exception, CancelledError) as error:
            self._look()  # where the client was closed meanwhile, that is what happened
            raise _understood(error) from None
        there: dict[Any, list[Any]] = {}
        for item in items:
            places = held.get(item.value.key, ()) if is_future(item) else ()
            there.setdefault(next(iter(places), None), []).append(item)
        slots = max(1, self.workers // max(1, len(there)))
        return [some[start::slots] for some in there.values() for start in range(min(slots, len(some)))]

    def keep(self, task: Callable[[Any], Any], items: Sequence[Any], what: str = "reading") -> list[Held]:
        """Run a task on each item and leave the results on the workers: what is held is their futures."""
        held: list[Held] = []

        def kept() -> Iterator[tuple[Any, Any]]:
            for item, future in work.started(items):
                held.append(Held(future))
                yield item, work.submitted(checked, future)

        with bar(what, len(items)) as advance:
            work = self._pass(task)
            for item, outcome in self._finished(kept()):
                advance(1)
                result_of([item], outcome)
        return held

    def _pass(self, task: Callable[..., Any]) -> Pass:
        self._look()
        if self.client not in _ABLE:
            # Asked without anything of ours: a worker that cannot read a task breaks down.
            asked = Calls(self.client)
            there = asked.submitted(bool, asked.submitted(importlib.util.find_spec, "dpmanifold"))
            if not next(self._finished(iter([(None, there)])))[1]:
                raise _absent()
            _ABLE.add(self.client)
        return Pass(self.client, task)

    def _finished(self, futures: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yield items and results of their tasks in the order in which they end; a task is submitted by taking it."""
        ended: queue.SimpleQueue[_End] = queue.SimpleQueue()
        running: dict[Any, Any] = {}

        async def fetch(future: Any) -> None:
            try:
                ended.put((future, await self.client.gather(future, direct=self._direct, asynchronous=True), None))
            except BaseException as error:  # where the client is closed too; a task itself raises nothing
                ended.put((future, None, error))

        def start() -> None:
            try:
                for item, future in itertools.islice(futures, max(0, _AHEAD * self.workers - len(running))):
                    running[future] = item
                    self.client.loop.add_callback(fetch, future)
            except Exception:
                self._look()  # where the client was closed meanwhile, that is what happened
                raise

        try:
            start()
            while running:
                future, outcome, error = self._next(ended)
                item = running.pop(future)
                future.release()
                if error is not None:
                    raise _understood(error) from None
                start()
                yield item, outcome
        finally:
            for future in running:
                future.release()

    def _next(self, ended: queue.SimpleQueue[_End]) -> _End:
        """Wait for a task to end, as long as there are workers."""
        last = time.monotonic()
        while True:
            try:
                return ended.get(timeout=_LOOK)
            except queue.Empty:
                pass
            if self._look():
                last = time.monotonic()
            elif time.monotonic() - last >= self._patience:
                raise ClusterError(
                    f"the Dask cluster has had no worker for {self._patience:g} s. Start some: `dask worker ADDRESS`."
                )

    def _look(self) -> int:
        """Note how many workers there are now, and how much they hold; return how many tasks can run at a time."""
        if self.client.status != "running":
            raise ClusterError(f"the client of the Dask cluster is {self.client.status}: the work cannot be finished.")
        try:
            found = self.client.scheduler_info(n_workers=-1)["workers"].values()
        except (OSError, ValueError) as error:
            raise ClusterError(f"the Dask scheduler does not answer any more ({type(error).__name__}).") from None
        slots = sum(int(worker["nthreads"]) for worker in found)
        self.workers = max(1, slots)
        self.room = sum((worker["memory_limit"] or _SHARE * Engine.room) // _SHARE for worker in found)
        return slots


def _understood(error: BaseException) -> BaseException:
    """Return what to raise where the cluster failed: an error that says what to do, or that of a collection's graph."""
    from asyncio import CancelledError

    if isinstance(error, distributed_module().KilledWorker):
        return ClusterError(
            "workers were lost again and again while they worked on the same piece; most often they run out of memory. "
            "Give them more, or fewer threads each, or cut the source into smaller pieces; and see that each has the "
            "packages of this process."
        )
    if isinstance(error, CancelledError | concurrent.futures.CancelledError):
        return ClusterError("the Dask cluster let go of unfinished work: its client was closed, or it was restarted.")
    ours = isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "dpmanifold"
    if ours or "deserialization of the task graph" in str(error):
        return _absent()
    return error


def _absent() -> ClusterError:
    return ClusterError(
        "the scheduler or a worker of the Dask cluster cannot read tasks of dpmanifold. Install dpmanifold "
        f"{__version__} and the other packages of this process there."
    )


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


def result_of(items: Sequence[Any], outcome: Outcome) -> Any:
    """Return the result of a task; its items remember what the copies of them that were sent have seen."""
    for item, seen in zip(items, outcome.seen or (), strict=False):
        if seen is not None and not isinstance(item, Held):
            item.seen = seen
    return outcome.result()


@contextlib.contextmanager
def _large_graphs() -> Iterator[None]:
    """Let calls carry what they need: Dask warns of more than 10 MB, and would have it scattered."""
    dask = optional_module("dask", "dask", "work on a cluster")
    with _SETTINGS, dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        yield
