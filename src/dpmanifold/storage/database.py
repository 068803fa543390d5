"""A database that can be read by all and written to by one at a time, whatever it is."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol, Self

from sqlalchemy import Connection, Engine

from dpmanifold.storage.forks import abandon


class Closable(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Close it."""


@contextlib.contextmanager
def closed_if_it_fails(thing: Closable) -> Iterator[None]:
    """Close what was opened where the block, which makes it ready for others, raises anything."""
    try:
        yield
    except BaseException:
        thing.close()
        raise


class Database(ABC):
    """A database, of which every process has connections of its own.

    Threads may use it at the same time. After a fork the child makes connections of its own.

    Parameters
    ----------
    name : what to call it in messages; without a password
    patience : seconds that a transaction waits for the others, each of which takes a few milliseconds
    """

    def __init__(self, name: str, patience: float) -> None:
        self.name, self.patience = name, patience
        self._engine, self._process = self._make_engine(), os.getpid()

    @abstractmethod
    def _make_engine(self) -> Engine:
        """Return the engine for this process."""

    @abstractmethod
    def reading(self) -> contextlib.AbstractContextManager[Connection]:
        """Open a transaction that sees one state, and neither waits for writers nor holds them up."""

    @abstractmethod
    def writing(self) -> contextlib.AbstractContextManager[Connection]:
        """Open a transaction that no other one writes beside; the caller commits it, and then it is on the disk."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open. It is opened again when it is needed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    @property
    def engine(self) -> Engine:
        """The engine of this process."""
        if self._process != os.getpid():
            abandon(self._engine)
            self._engine, self._process = self._make_engine(), os.getpid()
        return self._engine
