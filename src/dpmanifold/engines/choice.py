"""Which engine does the work: the one that was asked for, or threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from dpmanifold.engines.base import Engine
from dpmanifold.engines.threads import ThreadEngine
from dpmanifold.linalg.native.limits import thread_limit

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
    """Return the engine to work with: the one that was chosen, else as many threads as the kernels may use."""
    return _CHOSEN.get() or ThreadEngine(thread_limit())
