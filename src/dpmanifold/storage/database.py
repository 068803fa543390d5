"""A database that can be read by all and written to by one at a time, whatever it is."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from sqlalchemy import Connection, Engine, bindparam, text

from dpmanifold.files import Closable
from dpmanifold.storage.forks import abandon
from dpmanifold.storage.locks import Held


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


# -------------------------------------------------------------------- triggers that keep tables as they are

# They are compared word for word: one of the same name may do nothing.


_SQLITE = text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN :tables")
_POSTGRESQL = text("""
    SELECT tgname, pg_get_triggerdef(pg_trigger.oid, true) || ' AS ' || prosrc
    FROM pg_trigger
    JOIN pg_class ON pg_class.oid = tgrelid
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    JOIN pg_proc ON pg_proc.oid = tgfoid
    JOIN pg_language ON pg_language.oid = prolang
    WHERE tgrelid IN (SELECT to_regclass(name) FROM unnest(CAST(:tables AS text[])) AS name)
      AND NOT tgisinternal AND tgenabled IN ('O', 'A') AND lanname = 'plpgsql'
      AND proconfig IS NOT DISTINCT FROM
          CASE WHEN :own_path THEN ARRAY['search_path=' || quote_ident(nspname) || ', pg_temp'] END
""")


@final
@dataclass(frozen=True)
class Triggers:
    """What keeps some tables as they are.

    Attributes
    ----------
    tables : their names
    sqlite : statements that make a trigger each
    postgresql : statements that make a function or a trigger each, as the server itself would write them
    """

    tables: tuple[str, ...]
    sqlite: tuple[str, ...]
    postgresql: tuple[str, ...]

    def statements(self, connection: Connection) -> tuple[str, ...]:
        """Return what makes them in this database."""
        return self.sqlite if connection.dialect.name == "sqlite" else self.postgresql

    def missing(self, connection: Connection) -> list[str]:
        """Return the names of the triggers that are not there, are switched off, or are other ones."""
        if connection.dialect.name == "sqlite":
            wanted = _by_name(self.sqlite)
            found = connection.execute(_SQLITE.bindparams(bindparam("tables", expanding=True)), {"tables": self.tables})
        else:
            wanted = _with_functions(self.postgresql)
            own_path = "SET search_path" in self.postgresql[0]
            found = connection.execute(_POSTGRESQL, {"tables": list(self.tables), "own_path": own_path})
        there = {name: _in_one_line(made_by) for name, made_by in found}
        return [name for name, made_by in wanted.items() if there.get(name) != made_by]


def _in_one_line(statement: str) -> str:
    return " ".join(statement.split())


def _by_name(statements: Iterable[str]) -> dict[str, str]:
    lines = map(_in_one_line, statements)
    return {line.split()[2].removesuffix("()"): line for line in lines}


def _with_functions(statements: Iterable[str]) -> dict[str, str]:
    """Return PostgreSQL's triggers, each with what its function does."""
    made = _by_name(statements)
    triggers = {name: line for name, line in made.items() if line.startswith("CREATE TRIGGER")}
    return {
        name: _in_one_line(f"{line} AS {made[line.split()[-1].removesuffix('()')].split('$$')[1]}")
        for name, line in triggers.items()
    }
