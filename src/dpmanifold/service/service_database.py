"""Where the service keeps its own tables: one SQLite file, or a schema of a PostgreSQL database. Not the ledger's.

Reading waits for nobody, and one writes at a time. A transaction is short: nothing else is waited for within one.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from typing import Any, final

from sqlalchemy import Connection, Executable, Table, select
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError, TimeoutError as PoolTimeoutError

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.files import Closable
from dpmanifold.service import events, tables
from dpmanifold.service.http_errors import Unavailable
from dpmanifold.storage.database import Database as AnyDatabase
from dpmanifold.storage.locks import Held
from dpmanifold.storage.postgres import PostgresDatabase
from dpmanifold.storage.sqlite import SqliteDatabase

PATIENCE = 10.0
"""Seconds that a transaction waits for the one that writes; each takes a few milliseconds."""

_MODE = 0o660  # password hashes are in it: not for everybody. Web and worker may be two users of one group


@final
class Database(Closable):
    """The service's tables.

    Threads may use it at the same time, and after a fork the child makes connections of its own. What the database
    cannot do (it is gone, full, or held by somebody else) is an :class:`Unavailable` without details; what a statement
    contradicts (a second row of one key) remains SQLAlchemy's IntegrityError.

    Parameters
    ----------
    where : the path of a file, which is made where there is none; or postgresql://user:password@host/database

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with folder as path, Database(pathlib.Path(path) / "service.db") as database:
    ...     database.prepare()
    ...     database.is_prepared()
    True
    """

    def __init__(self, where: str | os.PathLike[str]) -> None:
        if not isinstance(where, (str, os.PathLike)) or not os.fspath(where):
            raise InvalidArgumentError(f"where must be a path or a postgresql:// address, got {shown(where)}.")
        self._database = _opened(os.fspath(where))
        self.name = self._database.name
        self._own = threading.local()

    def close(self) -> None:
        """Close what is open. It is opened again when it is needed."""
        self._database.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that sees one state, changes nothing, and neither waits for writers nor holds them up."""
        with _in_plain_words(), self._database.reading() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that no other one writes beside; committed at the end, undone if anything is raised.

        When the block has ended, what it wrote is on the disk.
        """
        if getattr(self._own, "writes", None) == os.getpid():
            raise RuntimeError("this thread writes already, and would wait for itself: hand the connection on")
        self._own.writes = os.getpid()
        try:
            with _in_plain_words(), self._database.writing() as connection:
                yield connection
                connection.commit()
        finally:
            self._own.writes = None

    def hold(self, name: str) -> Held:
        """Take a lock among all who use this database; an AlreadyHeldError where somebody else has it."""
        with _in_plain_words():
            return self._database.hold(name)

    def rows(self, query: Executable) -> list[Any]:
        """Return the rows of a query, read in a transaction of its own."""
        with self.reading() as connection:
            return list(connection.execute(query))

    def row(self, query: Executable) -> Any:
        """Return the row of a query that has at most one; None where it has none."""
        with self.reading() as connection:
            return connection.execute(query).one_or_none()

    def by_id(self, table: Table, id: str) -> Any:
        """Return the row of a table that has an id; None where there is none."""
        return self.row(select(table).where(table.c.id == id))

    def value(self, query: Executable) -> Any:
        """Return the first value of a query; None where it has no row."""
        with self.reading() as connection:
            return connection.execute(query).scalar()

    def write(self, statement: Executable) -> None:
        """Execute a statement in a transaction of its own."""
        with self.writing() as connection:
            connection.execute(statement)

    def prepare(self) -> None:
        """Make the tables where there are none; refuse those of another version, and a database of something else.

        For the operator, who is told what is the matter.
        """
        try:
            with _in_plain_words():
                self._database.make_tables(_begin)
        except Unavailable as problem:
            cause = problem.__cause__
            reason = str(getattr(cause, "orig", cause)).strip().splitlines()[0].rstrip(".")
            raise InvalidArgumentError(
                f"the database {self.name} cannot be used: {reason}. Give the path of a file in a folder that can be "
                "written to, or the address of a PostgreSQL that runs."
            ) from None

    def is_prepared(self) -> bool:
        """Return whether the tables are there; makes none."""
        with _in_plain_words(), self._database.reading() as connection:
            return self._database.is_made(connection)


def _begin(connection: Connection) -> None:
    """Give the service its id, and its log the first event."""
    facts = {"one": 1, "service": secrets.token_hex(16), "created": tables.now()}
    connection.execute(tables.facts.insert(), facts)
    events.record(connection, "service-created", "operator", version=tables.SERVICE.version)


def _opened(where: str) -> AnyDatabase:
    if "://" in where:
        return PostgresDatabase(tables.SERVICE, where, PATIENCE)
    return SqliteDatabase(tables.SERVICE, pathlib.Path(os.path.realpath(where)), PATIENCE, _MODE)


@contextlib.contextmanager
def _in_plain_words() -> Iterator[None]:
    """Turn what the database cannot do into an answer that tells nothing of it; the cause stays for the log."""
    try:
        yield
    except (OperationalError, InterfaceError, InternalError, PoolTimeoutError, sqlite3.Error) as problem:
        raise Unavailable("The service cannot reach its database. Try again in a moment.") from problem
