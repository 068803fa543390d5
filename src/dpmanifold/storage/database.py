"""A database that can be read by all and written to by one at a time, whatever it is."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable

from sqlalchemy import Connection, Engine, inspect

from dpmanifold.files import Closable
from dpmanifold.storage.forks import abandon
from dpmanifold.storage.locks import Held
from dpmanifold.storage.schema import Schema


class Database(Closable, ABC):
    """A database, of which every process has connections of its own.

    Threads may use it at the same time. After a fork the child makes connections of its own. What was closed is opened
    again when it is needed.

    Parameters
    ----------
    schema : what it has
    name : what to call it in messages; without a password
    patience : seconds that a transaction waits for the others, each of which takes a few milliseconds
    """

    def __init__(self, schema: Schema, name: str, patience: float) -> None:
        self.schema, self.name, self.patience = schema, name, patience
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
    def hold(self, name: str) -> Held:
        """Take the lock of this name, among all who use this database and on whatever machine they are.

        An AlreadyHeldError where somebody else has it.
        """

    @abstractmethod
    def is_held(self, name: str) -> bool:
        """Return whether somebody has the lock of this name. No clock decides it."""

    def forget(self, name: str) -> None:
        """Clear away what a lock left behind whose holder is gone, where that is more than a lock."""

    @property
    def engine(self) -> Engine:
        """The engine of this process."""
        if self._process != os.getpid():
            abandon(self._engine)
            self._engine, self._process = self._make_engine(), os.getpid()
        return self._engine

    def has_tables(self) -> bool:
        """Return whether its tables are there; refuse those of something else, which stays as it is."""
        with self.reading() as connection:
            return self.is_made(connection)

    def is_made(self, connection: Connection) -> bool:
        """Return whether its tables are there; refuse others, and those of another version."""
        if not self.are_its_own(set(inspect(connection).get_table_names())):
            return False
        noun, known = self.schema.noun, self.schema.version
        version = connection.exec_driver_sql(f"SELECT version FROM {self.schema.versions}").scalar_one()
        if version != known:
            raise self.schema.problem(
                f"the database {self.name} has the tables of a {noun} in version {version}, and this dpmanifold knows "
                f"version {known}. Use the dpmanifold that they were made with, or a later one."
            )
        return True

    def make_tables(self, begin: Callable[[Connection], object] = lambda connection: None) -> None:
        """Make the tables where there are none, and begin with what is first in them, in one transaction."""
        if self.has_tables():
            with self.reading() as connection:
                self.is_made(connection)  # or they are refused
            return
        with self.writing() as connection:
            if not self.is_made(connection):  # or somebody else was first
                self.schema.make(connection)
                begin(connection)
                connection.commit()

    def are_its_own(self, names: set[str]) -> bool:
        """Return whether there are any tables; refuse those of something else."""
        if names and self.schema.versions not in names:
            raise self.schema.problem(
                f"the database {self.name} has tables that are not those of a {self.schema.noun}. Give it a file, or a "
                "PostgreSQL schema, of its own."
            )
        return bool(names)
