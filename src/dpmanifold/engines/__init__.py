"""Where work on many pieces is done: by the engine that was asked for, a Dask cluster in use already, or threads."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from dpmanifold.engines.base import Engine, Held, StaysHere, ThreadEngine
from dpmanifold.engines.dask import DaskEngine
from dpmanifold.linalg.native.library import thread_limit

__all__ = ["DaskEngine", "Engine", "Held", "StaysHere", "ThreadEngine", "current_engine", "using"]

_CHOSEN: ContextVar[Engine | None] = ContextVar("engine", default=None)


@contextlib.contextmanager
def using(engine: Engine) -> Iterator[Engine]:
    """Work with this engine inside the block.

    Examples
    --------
    >>> with using(ThreadEngine(2)):
    ...     current_engine().workers
    2
    """
    token = _CHOSEN.set(engine)
    try:
        yield engine
    finally:
        _CHOSEN.reset(token)


def current_engine() -> Engine:
    """Return the engine to work with.

    The one that was chosen by :func:`using`; else the cluster whose `distributed.Client` is in use in this process, as
    the default or the current one; else as many threads as the kernels may use.

    Examples
    --------
    >>> with using(ThreadEngine(2)):
    ...     current_engine()
    ThreadEngine(workers=2)
    """
    chosen = _CHOSEN.get()
    if chosen is not None:
        return chosen
    client = _active_client()
    return ThreadEngine(thread_limit()) if client is None else DaskEngine(client)


def _active_client() -> Any:
    """Return the client that Dask itself would use; None without one. Imports nothing: who has a client has Dask."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    with contextlib.suppress(ValueError):
        distributed.get_worker()
        return None  # this is a task itself: one that waited for others could keep them from running
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    return client if client.status == "running" and not client.asynchronous else None
