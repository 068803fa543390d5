"""Forks and open databases do not go together: here a fork waits until none is open, and none is opened meanwhile.

A child that opens a SQLite file while it has a copy of its parent's connection to it believes that it holds the
parent's locks. So connections live as short as one transaction, a fork waits for those that other threads have open,
and what is kept open in between is closed first.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import Counter
from collections.abc import Iterator


class Forkable:
    """Something that must not be open across a fork; its methods are called when this process forks.

    Whoever inherits from it calls its constructor last: another thread may fork at once.
    """

    def __init__(self) -> None:
        _known.add(self)

    def before_fork(self) -> None:
        """Close what is open; called while nothing is in use."""

    def after_fork_in_child(self) -> None:
        """Forget what belongs to the parent."""


class _Gate:
    """Threads go in and out; a fork closes it, and comes first: those who want in then wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._closed = False

    def enter(self) -> None:
        own = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: not self._closed or own in self._inside)
            self._inside[own] += 1

    def leave(self) -> None:
        with self._changed:
            self._inside -= Counter({threading.get_ident(): 1})
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody in any more, and wait until no other thread is inside."""
        own = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)  # two threads may fork
            self._closed = True
            self._changed.wait_for(lambda: not any(thread != own for thread in self._inside))

    def open(self) -> None:
        with self._changed:
            self._closed = False
            self._changed.notify_all()


_gate = _Gate()
_known: weakref.WeakSet[Forkable] = weakref.WeakSet()
_abandoned: list[object] = []


@contextlib.contextmanager
def no_fork() -> Iterator[None]:
    """Do something while no fork happens: other threads' forks wait for its end."""
    gate = _gate
    gate.enter()
    try:
        yield
    finally:
        gate.leave()


def abandon(inherited: object) -> None:
    """Keep something for good that a fork left in this process: closing it would end the parent's session."""
    _abandoned.append(inherited)


def _before() -> None:
    _gate.close()
    for thing in list(_known):
        thing.before_fork()


def _in_child() -> None:
    global _gate
    _gate = _Gate()  # the other threads, and what they counted, are gone
    for thing in list(_known):
        thing.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=lambda: _gate.open(), after_in_child=_in_child)
