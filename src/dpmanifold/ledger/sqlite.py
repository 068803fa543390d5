"""A ledger in one SQLite file."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, final

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import OperationalError

from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.ledger.attempts import FileAttempts
from dpmanifold.ledger.chain import Reader
from dpmanifold.ledger.filesystems import refuse_network
from dpmanifold.ledger.forks import no_fork, tell_of_forks
from dpmanifold.ledger.guards import SQLITE_GUARDS, broken_guards
from dpmanifold.ledger.migrations import refuse_newer, refuse_others, revision_of, upgrade
from dpmanifold.ledger.schema import REVISION
from dpmanifold.ledger.stores import Held, Store

PATIENCE = 60.0
"""Seconds that a transaction waits for the others; each takes a few milliseconds."""

_PAUSE = 0.005


@final
class SqliteStore(Store):
    """A ledger in a file, written ahead and synced at every commit.

    Connections last for one transaction. One more is kept open and does nothing: without it every transaction would
    be the last to close the file, which has SQLite copy the log into it.

    Parameters
    ----------
    path : of the file; made where there is none
    """

    def __init__(self, path: pathlib.Path) -> None:
        refuse_network(path)
        self.path = path
        self._attempts = FileAttempts(path.with_name(path.name + ".attempts"), like=path)
        self._keeper = _Keeper(path)
        super().__init__(str(path))
        tell_of_forks(self._keeper)
        weakref.finalize(self, self._keeper.close)

    def exists(self) -> bool:
        """Return whether there is a ledger; a database of something else is refused."""
        if not _has_tables(self.path):
            return False
        with self.in_plain_words(), self._reading() as connection:
            return revision_of(connection) is not None and Reader(connection).entry(1) is not None

    def make(self, writer: str | None) -> None:
        """Make the tables."""
        if writer is not None:
            raise InvalidArgumentError("writer must be left out for a file: SQLite has no roles.")
        self.prepare()

    def prepare(self) -> None:
        """Make the tables where there are none, and bring older ones up to date."""
        _has_tables(self.path)  # or what is no ledger is refused
        with self.in_plain_words(), self._reading() as connection:
            revision = revision_of(connection)
        if revision is not None:
            refuse_newer(revision)
        if revision == REVISION:
            return
        with self.in_plain_words(), self._writing() as connection:
            upgrade(connection)
            connection.commit()

    def hold(self, token: str) -> Held:
        """Begin an attempt."""
        return self._attempts.hold(token)

    def alive(self, token: str) -> bool:
        """Return whether an attempt is held."""
        return self._attempts.alive(token)

    def forget(self, token: str) -> None:
        """Remove the file of an attempt."""
        self._attempts.forget(token)

    def witnessing(self) -> contextlib.AbstractContextManager[None]:
        """Nothing more is needed: all who use the file are on one machine, where the witness's own lock holds."""
        return contextlib.nullcontext()

    def broken_guards(self) -> list[str]:
        """Return the triggers that are not there, or are other ones."""
        with self.in_plain_words(), self._reading() as connection:
            found = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
        return broken_guards(SQLITE_GUARDS, ((name, made_by) for name, made_by in found))

    def close(self) -> None:
        """Close the file."""
        with no_fork():
            self._keeper.close()

    def _make_engine(self) -> Engine:
        engine = create_engine("sqlite://", creator=self._connect, poolclass=NullPool, hide_parameters=True)

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))

        return engine

    def _connect(self) -> sqlite3.Connection:
        return _connected(self.path)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._begun("BEGIN") as connection:
            yield connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._begun("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextlib.contextmanager
    def _begun(self, how: str) -> Iterator[Connection]:
        with no_fork():
            self._keeper.open()
            connection = _patiently(lambda: self._begin(how))
            try:
                yield connection
            finally:
                connection.close()

    def _begin(self, how: str) -> Connection:
        connection = self.engine.connect().execution_options(begin=how)
        try:
            connection.begin()
            if how == "BEGIN":
                connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1")  # from here on, one state
        except BaseException:
            connection.close()
            raise
        return connection


@final
class _Keeper:
    """The connection that is kept open."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        with self._lock:
            if self._connection is None:
                try:
                    self._connection = _patiently(self._connected)
                except sqlite3.Error as problem:
                    raise _cannot_be_opened(self._path, problem) from None

    def _connected(self) -> sqlite3.Connection:
        connection = _connected(self._path)
        try:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # the log is open from here on
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def before_fork(self) -> None:
        self.close()

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()


def _has_tables(path: pathlib.Path) -> bool:
    """Return whether a file has the tables of a ledger, and refuse one with others. It stays as it is, bit for bit.

    To be opened as a ledger changes a file, for the log that is written ahead is a property of it.
    """
    if not path.exists() or path.stat().st_size == 0:
        return False
    try:
        try:
            names = _patiently(lambda: _tables(path, "ro"))
        except sqlite3.OperationalError:  # cut short in the middle of a write, which whoever opens it takes back
            names = _patiently(lambda: _tables(path, "rw"))
    except sqlite3.Error as problem:
        raise _cannot_be_opened(path, problem) from None
    if names:
        refuse_others(names)
    return bool(names)


def _tables(path: pathlib.Path, mode: str) -> set[str]:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    with contextlib.closing(sqlite3.connect(address, timeout=PATIENCE, uri=True)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _cannot_be_opened(path: pathlib.Path, problem: sqlite3.Error) -> LedgerError:
    return LedgerError(
        f"the ledger {path} cannot be opened: {problem}. Give the path of a ledger, or of a new file in a folder that "
        "can be written to."
    )


def _connected(path: pathlib.Path) -> sqlite3.Connection:
    """Open the file so that what is committed is on the disk, or refuse."""
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            raise LedgerError(
                f"the ledger {path} cannot be written ahead: SQLite answered journal_mode {mode}. Put it on a disk of "
                "this machine."
            )
        connection.execute("PRAGMA synchronous=FULL")
        if sys.platform == "darwin":  # where fsync leaves data in the drive's cache
            connection.execute("PRAGMA fullfsync=ON")
            connection.execute("PRAGMA checkpoint_fullfsync=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _patiently(action: Any) -> Any:
    """Do something again while others have the file to themselves; SQLite does not always wait by itself."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except (sqlite3.OperationalError, OperationalError) as problem:
            busy = "locked" in str(problem) or "busy" in str(problem)
            if not busy:
                raise
            if time.monotonic() > deadline:
                raise LedgerError(
                    "somebody has kept the ledger to themselves for a minute. End the program that holds it (another "
                    "tool that has the file open?), and try again."
                ) from None
        time.sleep(_PAUSE)
