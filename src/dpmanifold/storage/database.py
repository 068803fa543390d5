"""A database that can be read by all and written to by one at a time, whatever it is."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod

from sqlalchemy import Connection, Engine

from dpmanifold.files import Closable
from dpmanifold.storage.forks import abandon


class Database(Closable, ABC):
    """A database, of which every process has connections of its own.

    Threads may use it at the same time. After a fork the child makes connections of its own. What was closed is opened
    again when it is needed.

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

    @property
    def engine(self) -> Engine:
        """The engine of this process."""
        if self._process != os.getpid():
            abandon(self._engine)
            self._engine, self._process = self._make_engine(), os.getpid()
        return self._engine
