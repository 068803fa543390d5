"""Where the service keeps its own tables: one SQLite file, or a schema of a PostgreSQL database. Not the ledger's.

Reading waits for nobody, and one writes at a time. A transaction is short: nothing else is waited for within one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, Self, final

from sqlalchemy import (
    Connection,
    Engine,
    Executable,
    QueuePool,
    create_engine,
    event,
    inspect,
    make_url,
    select,
    text,
)  # fmt: skip
from sqlalchemy.exc import ArgumentError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from dpmanifold._check import shown
from dpmanifold._extras import optional_module
from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.ledger.filesystems import refuse_network
from dpmanifold.ledger.forks import no_fork, tell_of_forks
from dpmanifold.ledger.postgres import SCHEMES
from dpmanifold.ledger.stores import abandon
from dpmanifold.service import events, tables
from dpmanifold.service.errors import Unavailable

PATIENCE = 10.0
"""Seconds that a transaction waits for the one that writes; each takes a few milliseconds."""

_PAUSE = 0.005
_LOCK = int.from_bytes(hashlib.sha256(b"dpmanifold service").digest()[:8], "big", signed=True)
# The lock, and what must hold under it: a commit is answered when it is on the disk.
_BEGIN = text("SELECT pg_advisory_xact_lock(:lock), set_config('synchronous_commit', 'on', true)")


@final
class Database:
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
    ...     with database.reading() as connection:
    ...         connection.execute(select(tables.facts.c.version)).scalar_one()
    1
    """

    def __init__(self, where: str | os.PathLike[str]) -> None:
        if not isinstance(where, (str, os.PathLike)) or not os.fspath(where):
            raise InvalidArgumentError(f"where must be a path or a postgresql:// address, got {shown(where)}.")
        self._where = os.fspath(where)
        self._path = None if "://" in self._where else pathlib.Path(os.path.realpath(self._where))
        self._own = threading.local()
        self._engine = self._make_engine()
        self._process = os.getpid()
        tell_of_forks(self)
        weakref.finalize(self, _dispose, self._engine, self._process)

    @property
    def name(self) -> str:
        """What to call it in messages for the operator; without a password."""
        return str(self._path) if self._path else self._engine.url.render_as_string(hide_password=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what is open. It is opened again when it is needed."""
        self._engine.dispose()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that sees one state, changes nothing, and neither waits for writers nor holds them up."""
        with self._begun(writes=False) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that no other one writes beside; committed at the end, undone if anything is raised.

        When the block has ended, what it wrote is on the disk.
        """
        if getattr(self._own, "writes", False):
            raise RuntimeError("this thread writes already, and would wait for itself: hand the connection on")
        self._own.writes = True
        try:
            with self._begun(writes=True) as connection:
                yield connection
                connection.commit()
        finally:
            self._own.writes = False

    def rows(self, query: Executable) -> list[Any]:
        """Return the rows of a query, read in a transaction of its own."""
        with self.reading() as connection:
            return list(connection.execute(query))

    def row(self, query: Executable) -> Any:
        """Return the row of a query that has at most one; None where it has none."""
        with self.reading() as connection:
            return connection.execute(query).one_or_none()

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
            self._prepare()
        except Unavailable as problem:
            reason = str(getattr(problem.__cause__, "orig", None) or problem).strip().splitlines()[0].rstrip(".")
            raise InvalidArgumentError(
                f"the database {self.name} cannot be used: {reason}. Give the path of a file in a folder that can be "
                "written to, or the address of a PostgreSQL that runs."
            ) from None

    def is_prepared(self) -> bool:
        """Return whether the tables are there; makes none."""
        with self.reading() as connection:
            return self._is_prepared(connection)

    def _prepare(self) -> None:
        with self.reading() as connection:
            if self._is_prepared(connection):
                return
        with self.writing() as connection:
            if self._is_prepared(connection):  # somebody else was first
                return
            tables.metadata.create_all(connection)
            guards = tables.SQLITE_GUARDS if self._path else tables.POSTGRESQL_GUARDS
            for statement in guards:
                connection.exec_driver_sql(statement)
            facts = {"one": 1, "version": tables.VERSION, "service": secrets.token_hex(16), "created": tables.now()}
            connection.execute(tables.facts.insert(), facts)
            events.record(connection, "service-created", "operator", version=tables.VERSION)

    def _is_prepared(self, connection: Connection) -> bool:
        names = set(inspect(connection).get_table_names())
        if not names:
            return False
        if tables.facts.name not in names:
            raise InvalidArgumentError(
                f"the database {self.name} has tables that are not the service's. Give it a file, or a PostgreSQL "
                "schema, of its own; the ledger has another one."
            )
        version = connection.execute(select(tables.facts.c.version)).scalar_one()
        if version != tables.VERSION:
            raise InvalidArgumentError(
                f"the database {self.name} has the service's tables in version {version}, and this dpmanifold knows "
                f"version {tables.VERSION}. Use the dpmanifold that they were made with, or a later one."
            )
        return True

    @contextlib.contextmanager
    def _begun(self, writes: bool) -> Iterator[Connection]:
        with no_fork(), _in_plain_words():
            connection = self._begin(writes)
            try:
                yield connection
            finally:
                connection.close()

    def _begin(self, writes: bool) -> Connection:
        """Open a transaction, again and again while SQLite says that it is busy: it does not always wait by itself."""
        deadline = time.monotonic() + PATIENCE
        while True:
            connection = self._engine.connect()
            try:
                if self._path:
                    _begin_in_file(connection, writes)
                else:
                    _begin_on_server(connection, writes)
                return connection
            except BaseException as problem:
                connection.close()
                busy = isinstance(problem, OperationalError) and isinstance(problem.orig, sqlite3.OperationalError)
                if not busy or not _is_busy(problem) or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)

    def before_fork(self) -> None:
        """Close what is open: a copy of a connection in the child would take its parent's locks for its own.

        The pool stays: a transaction that the forking thread is in goes back to it, and is closed with it.
        """
        self._engine.pool.dispose()

    def after_fork_in_child(self) -> None:
        """Begin anew: a connection that the forking thread had open is the parent's, and is left to it."""
        abandon(self._engine)
        self._engine, self._process, self._own = self._make_engine(), os.getpid(), threading.local()
        weakref.finalize(self, _dispose, self._engine, self._process)

    def _make_engine(self) -> Engine:
        if self._path:
            return self._file_engine(self._path)
        return self._server_engine()

    @staticmethod
    def _file_engine(path: pathlib.Path) -> Engine:
        try:
            refuse_network(path)
        except LedgerError:
            raise InvalidArgumentError(
                f"{path} would be on a network's file system, where SQLite's locks do not hold. Put the service's "
                "database on a local disk, or into PostgreSQL."
            ) from None
        engine = create_engine(
            "sqlite://", creator=lambda: _connected(path), poolclass=QueuePool, max_overflow=-1, hide_parameters=True
        )

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            connection.exec_driver_sql(connection.get_execution_options()["begin"])

        return engine

    def _server_engine(self) -> Engine:
        scheme = self._where.split("://")[0]
        if scheme not in SCHEMES:
            raise InvalidArgumentError(f"where must be a path or a postgresql:// address, got one with {scheme}://.")
        optional_module("psycopg", "postgres", "a service on PostgreSQL")
        try:
            url = make_url(self._where).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError):  # what it says may have the password in it
            raise InvalidArgumentError(
                "where must be an address such as postgresql://user@host/database, got one that cannot be read."
            ) from None
        engine = create_engine(
            url, hide_parameters=True, pool_pre_ping=True, max_overflow=-1, isolation_level="READ COMMITTED"
        )

        @event.listens_for(engine, "connect")
        def connected(connection: Any, record: object) -> None:
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = '{PATIENCE:.0f}s'")
                cursor.execute("SET idle_in_transaction_session_timeout = '60s'")
            connection.commit()

        return engine


def _begin_in_file(connection: Connection, writes: bool) -> None:
    how = "BEGIN IMMEDIATE" if writes else "BEGIN"
    driver: Any = connection.connection.driver_connection
    driver.execute(f"PRAGMA query_only={'OFF' if writes else 'ON'}")
    connection.execution_options(begin=how).begin()
    if not writes:
        connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1")  # from here on, it is one state


def _begin_on_server(connection: Connection, writes: bool) -> None:
    if writes:
        connection.execute(_BEGIN, {"lock": _LOCK})
    else:
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True).begin()
        connection.exec_driver_sql("SELECT 1")  # from here on, it is one state


def _connected(path: pathlib.Path) -> sqlite3.Connection:
    """Open the file so that what is committed is on the disk."""
    with contextlib.suppress(OSError):  # it is there, or SQLite will say what is wrong
        # Password hashes are in it: not for everybody. Web and worker may be two users of one group.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o660))
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        mode = _written_ahead(connection)
        if mode != "wal":
            raise InvalidArgumentError(
                f"the database {path} cannot be written ahead: SQLite answered journal_mode {mode}. Put it on a disk "
                "of this machine."
            )
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA fullfsync=ON")  # where fsync leaves data in the drive's cache
        connection.execute("PRAGMA foreign_keys=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _written_ahead(connection: sqlite3.Connection) -> str:
    """Return how a file is written after it was asked to be written ahead; asks again while others do the same.

    SQLite waits for writers, and not for those who change this.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
        except sqlite3.OperationalError as problem:
            if not _is_busy(problem) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _is_busy(problem: BaseException) -> bool:
    return "locked" in str(problem) or "busy" in str(problem)


@contextlib.contextmanager
def _in_plain_words() -> Iterator[None]:
    """Turn what the database cannot do into an answer that tells nothing of it; the cause stays for the log."""
    try:
        yield
    except (OperationalError, InterfaceError, InternalError, PoolTimeoutError) as problem:
        raise Unavailable("The service cannot reach its database. Try again in a moment.") from problem


def _dispose(engine: Engine, process: int) -> None:
    """Close the connections of a database that is gone, in the process that opened them."""
    if process == os.getpid():
        engine.dispose()
