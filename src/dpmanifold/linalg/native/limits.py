"""How many threads the compiled kernels may take."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from dpmanifold.linalg.native.library import current

_LOCK = threading.Lock()
_SHARED = 0  # how many blocks of `one_thread_each` are being run


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """Let every call of the kernels take one thread, where calls come from several threads at once.

    Examples
    --------
    >>> with one_thread_each():
    ...     limited(8)
    1
    """
    global _SHARED
    with _LOCK:
        _SHARED += 1
    try:
        yield
    finally:
        with _LOCK:
            _SHARED -= 1


def limited(threads: int) -> int:
    """Return how many of these threads a call may take."""
    return 1 if _SHARED else threads


def thread_limit() -> int:
    """Return how many threads the kernels take at most; without kernels, the cores there are.

    Examples
    --------
    >>> thread_limit() >= 1
    True
    """
    available = current()
    if available is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(available[0].dpm_get_num_threads())
