"""A database in one SQLite file, written ahead and synced at every commit."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TypeVar, final

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import OperationalError

from dpmanifold.errors import LedgerError
from dpmanifold.files import closed_if_it_fails
from dpmanifold.storage.database import Database
from dpmanifold.storage.filesystems import network_of
from dpmanifold.storage.forks import Forkable, no_fork
from dpmanifold.storage.locks import HeldFile, is_locked
from dpmanifold.storage.schema import Schema

T = TypeVar("T")

_PAUSE = 0.005
_COPYING = 60.0  # seconds that a copy waits for who writes
_PAGES = 1000  # copied at a time: others write in between
LOCKS = ".locks"
"""What stands after a file's name in that of the folder with its locks."""


class SqliteDatabase(Database):
    """A file that is written ahead.

    Connections last for one transaction. One more is kept open and does nothing: without it every transaction would
    be the last to close the file, which has SQLite copy the log into it.

    Parameters
    ----------
    schema : what it has
    path : of the file; made where there is none
    patience : as for every :class:`Database`
    mode : who may use a new file
    """

    def __init__(self, schema: Schema, path: pathlib.Path, patience: float, mode: int) -> None:
        network = network_of(path)
        if network is not None:
            raise schema.problem(
                f"{path} would be on a file system of type {network}, where SQLite's locks do not hold: two programs "
                f"could write at once. Put the {schema.noun} on a local disk, or into PostgreSQL "
                "(postgresql://...), which others reach over the network."
            )
        self.path = path
        self._locks = path.with_name(path.name + LOCKS)
        self._keeper = _Keeper(path, patience, mode)
        super().__init__(schema, str(path), patience)
        weakref.finalize(self, self._keeper.close)

    def reading(self) -> contextlib.AbstractContextManager[Connection]:
        """Open a transaction that sees one state and changes nothing."""
        return self._begun("BEGIN")

    def writing(self) -> contextlib.AbstractContextManager[Connection]:
        """Open a transaction that no other one writes beside."""
        return self._begun("BEGIN IMMEDIATE")

    def hold(self, name: str) -> HeldFile:
        """Take the lock of this name: of a file in a folder beside the database."""
        try:
            mode = self.path.stat().st_mode & 0o666  # who can use the database can use its locks
            if not self._locks.is_dir():
                self._locks.mkdir(exist_ok=True)
                self._locks.chmod(mode | (mode & 0o444) >> 2)
            return HeldFile(self._locks / name, mode)
        except OSError as problem:
            raise LedgerError(f"no lock can be had in {self._locks}: {problem.strerror}.") from None

    def is_held(self, name: str) -> bool:
        """Return whether somebody has the lock of this name."""
        try:
            return is_locked(self._locks / name)
        except OSError as problem:
            raise LedgerError(
                f"whether a lock in {self._locks} is held cannot be told: {problem.strerror}. The database's users "
                "need to read the files there."
            ) from None

    def forget(self, name: str) -> None:
        """Remove the file of a lock whose holder is gone."""
        with contextlib.suppress(OSError):
            (self._locks / name).unlink()

    def close(self) -> None:
        """Close the file."""
        with no_fork():
            self._keeper.close()

    def has_tables(self) -> bool:
        """Return whether there are tables, and refuse those of something else, which stays as it is.

        To be opened changes a file: that it is written ahead is a property of it.
        """
        if not self.path.exists() or self.path.stat().st_size == 0:
            return False
        with no_fork():
            try:
                names = patiently(lambda: _tables_of(self.path, "ro", self.patience), self.patience)
            except sqlite3.OperationalError:  # cut short in the middle of a write, which whoever opens it takes back
                names = patiently(lambda: _tables_of(self.path, "rw", self.patience), self.patience)
        return self.are_its_own(names)

    def _make_engine(self) -> Engine:
        engine = create_engine("sqlite://", creator=self._keeper.connect, poolclass=NullPool, hide_parameters=True)

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))

        return engine

    @contextlib.contextmanager
    def _begun(self, how: str) -> Iterator[Connection]:
        with no_fork():
            self._keeper.open()
            with patiently(lambda: self._begin(how), self.patience) as connection:
                yield connection

    def _begin(self, how: str) -> Connection:
        connection = self.engine.connect().execution_options(begin=how)
        with closed_if_it_fails(connection):
            connection.begin()
            if how == "BEGIN":
                connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1")  # from here on, it is one state
                connection.exec_driver_sql("PRAGMA query_only=ON")
        return connection


@final
class _Keeper(Forkable):
    """Opens the file, and keeps one connection to it."""

    def __init__(self, path: pathlib.Path, patience: float, mode: int) -> None:
        self._path, self._patience, self._mode = path, patience, mode
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        super().__init__()

    def connect(self) -> sqlite3.Connection:
        """Open the file so that what is committed is on the disk, or refuse."""
        if not os.path.exists(self._path):
            with contextlib.suppress(OSError):  # another process was faster, or SQLite will say what is wrong
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, self._mode))
        connection = sqlite3.connect(self._path, timeout=self._patience, isolation_level=None, check_same_thread=False)
        with closed_if_it_fails(connection):
            # SQLite waits for writers, and not for those who ask for this at the same time.
            asked = patiently(lambda: connection.execute("PRAGMA journal_mode=WAL"), self._patience)
            mode = asked.fetchone()[0]
            if mode != "wal":
                raise sqlite3.OperationalError(
                    f"it cannot be written ahead, SQLite answered journal_mode {mode}: put it on a disk of this machine"
                )
            connection.executescript(_SYNCED)
        return connection

    def open(self) -> None:
        with self._lock:
            if self._connection is None:
                self._connection = patiently(self._opened, self._patience)

    def _opened(self) -> sqlite3.Connection:
        connection = self.connect()
        with closed_if_it_fails(connection):
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # the log is open from here on
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


# Full sync also where fsync leaves data in the drive's cache (macOS).
_SYNCED = """
    PRAGMA synchronous=FULL;
    PRAGMA fullfsync=ON;
    PRAGMA checkpoint_fullfsync=ON;
    PRAGMA foreign_keys=ON;
"""


def copy_database(source: pathlib.Path, target: pathlib.Path) -> bool:
    """Copy a database in one state, whoever writes to it meanwhile, to a single file; return whether it is sound."""
    with (
        _opened(source, "ro", _COPYING) as one,
        contextlib.closing(sqlite3.connect(target, isolation_level=None)) as other,
    ):
        one.backup(other, pages=_PAGES)
        sound: bool = other.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        other.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
    return sound


def _tables_of(path: pathlib.Path, mode: str, patience: float) -> set[str]:
    with _opened(path, mode, patience) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _opened(path: pathlib.Path, mode: str, patience: float) -> contextlib.closing[sqlite3.Connection]:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return contextlib.closing(sqlite3.connect(address, timeout=patience, uri=True))


def patiently(action: Callable[[], T], patience: float) -> T:
    """Do something again while others have the file to themselves; SQLite does not always wait by itself."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return action()
        except (sqlite3.OperationalError, OperationalError) as problem:
            if not is_busy(problem) or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE)


def is_busy(problem: Exception) -> bool:
    """Return whether SQLite says that others have the file to themselves."""
    said = getattr(problem, "orig", problem)
    return isinstance(said, sqlite3.OperationalError) and ("locked" in str(said) or "busy" in str(said))
