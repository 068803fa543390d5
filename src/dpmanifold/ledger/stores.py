"""Where a ledger is kept: a database that can be read by all and appended to by one at a time.

What differs between SQLite and PostgreSQL is here; what an entry means is not.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, final

from sqlalchemy import Connection, Row, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.entry_access import LEDGER, Reader, Writer
from dpmanifold.storage.database import Database
from dpmanifold.storage.forks import no_fork
from dpmanifold.storage.postgres import KEEPALIVES, PostgresDatabase, lock_number
from dpmanifold.storage.sqlite import SqliteDatabase, is_busy

T = TypeVar("T")

_PAGE = 1000  # entries read at a time where all of them are
_MODE = 0o640  # for its owner, and readable by its group, as the witness is
PATIENCE = 60.0
"""Seconds that a transaction waits for the others; each takes a few milliseconds."""


class Store(Database):
    """A database with one ledger."""

    def exists(self) -> bool:
        """Return whether there is a ledger; a database of something else is refused."""
        with self.in_plain_words():
            if not self.has_tables():
                return False
            with self.reading() as connection:
                return self.is_made(connection) and Reader(connection).entry(1) is not None

    @abstractmethod
    def make(self, writer: str | None) -> None:
        """Make the tables of a new ledger, for a role that will write to them where there are roles."""

    @abstractmethod
    def prepare(self) -> None:
        """Make the tables where there are none, and where that is allowed."""

    def witnessing(self) -> contextlib.AbstractContextManager[None]:
        """Have the witness to oneself, among all who use this database and on whatever machine they are.

        Nothing more is needed where all are on one machine, as for a file: there the witness's own lock holds.
        """
        return contextlib.nullcontext()

    def broken_guards(self) -> list[str]:
        """Return the names of triggers that should keep the tables as they are, and are not there as they were made."""
        with self.in_plain_words(), self.reading() as connection:
            return self.schema.missing(connection)

    @final
    def read(self, action: Callable[[Reader], T]) -> T:
        """Return what an action reads in one transaction."""
        with self.in_plain_words(), self.reading() as connection:
            return action(Reader(connection))

    @final
    def pages(self, page: Callable[..., list[T]], after: int, number: Callable[[T], int]) -> Iterator[T]:
        """Yield what is stored behind a number, in order; no transaction stays open meanwhile.

        Parameters
        ----------
        page : a method of a reader, which reads what is `after` a number, at most up to a `limit`
        after : the number
        number : gives that of something read
        """
        while True:
            found = self.read(functools.partial(page, after=after, limit=_PAGE))
            yield from found
            if len(found) < _PAGE:
                return
            after = number(found[-1])

    @final
    def write(self, ledger: str, action: Callable[[Writer], T]) -> T:
        """Do something in one transaction that no other one runs beside, and commit it if it appended anything.

        When this returns, what was appended is on the disk. If it raises, nothing was appended; but where the
        database cannot even be asked, the message says that this is not known.
        """
        with self.in_plain_words():
            with self.writing() as connection:
                writer = Writer(connection, ledger)
                value = action(writer)
                if not writer.appended:
                    connection.rollback()
                    return value
                try:
                    connection.commit()
                    return value
                except DBAPIError as problem:
                    reason = _said(problem)
                    with contextlib.suppress(SQLAlchemyError):
                        connection.invalidate()
            if self._arrived(writer.appended[-1]):
                return value
            raise LedgerError(f"the ledger {self.name} could not commit, and recorded nothing: {reason}")

    def _arrived(self, entry: Entry) -> bool:
        """Find out whether a commit that was not answered took place.

        Asked with the ledger's lock, that is after whatever became of the other transaction, and by the entry's hash,
        which is nobody else's: what is paid for or started carries a token.
        """
        try:
            with self.writing() as connection:
                found = Reader(connection).entry(entry.seq)
                connection.rollback()
        except (SQLAlchemyError, sqlite3.Error):
            raise LedgerError(
                f"the ledger {self.name} did not answer a commit and cannot be reached: whether it was recorded is "
                "not known. Try again with the same key, which spends once only."
            ) from None
        return found == entry

    @contextlib.contextmanager
    def in_plain_words(self) -> Iterator[None]:
        """Turn errors of the database into a LedgerError."""
        try:
            yield
        except (DBAPIError, sqlite3.Error) as problem:
            if is_busy(problem):
                raise LedgerError(
                    "somebody has kept the ledger to themselves for a minute. End the program that holds it (another "
                    "tool that has the file open?), and try again."
                ) from None
            if isinstance(problem, sqlite3.Error):
                raise LedgerError(
                    f"the ledger {self.name} cannot be opened: {problem}. Give the path of a ledger, or of a new file "
                    "in a folder that can be written to."
                ) from None
            raise LedgerError(f"the ledger {self.name} cannot be used: {_said(problem)}") from None
        except SQLAlchemyError as problem:
            raise LedgerError(f"the ledger {self.name} cannot be used: {type(problem).__name__}.") from None


@final
class SqliteStore(SqliteDatabase, Store):
    """A ledger in a file.

    Parameters
    ----------
    path : of the file; made where there is none
    """

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(LEDGER, path, PATIENCE, _MODE)

    def make(self, writer: str | None) -> None:
        """Make the tables."""
        if writer is not None:
            raise InvalidArgumentError("writer must be left out for a file: SQLite has no roles.")
        self.prepare()

    def prepare(self) -> None:
        """Make the tables where there are none."""
        with self.in_plain_words():
            self.make_tables()


# -------------------------------------------------------------------- PostgreSQL


_OLDEST = (14,)  # the first that has idle_session_timeout

# Until the transaction ends: however long that takes, but not if the machine at the other end is gone.
_WITNESSING = text("""
    SELECT set_config('idle_in_transaction_session_timeout', '0', true),
           set_config('tcp_keepalives_idle', :tcp_keepalives_idle, true),
           set_config('tcp_keepalives_interval', :tcp_keepalives_interval, true),
           set_config('tcp_keepalives_count', :tcp_keepalives_count, true),
           pg_advisory_xact_lock(:lock)
""")
_ABOUT_WRITER = text("""
    SELECT rolsuper OR pg_has_role(rolname, current_user, 'MEMBER') AS may_all FROM pg_roles WHERE rolname = :writer
""")
_RIGHTS = (
    "REVOKE ALL ON entries, results, ledger_version FROM PUBLIC",
    "GRANT USAGE ON SCHEMA {schema} TO {writer}",
    "GRANT SELECT, INSERT ON entries, results TO {writer}",
    "GRANT SELECT ON ledger_version TO {writer}",
)
_WITNESS_LOCK = lock_number("dpmanifold witness")


@final
class PostgresStore(PostgresDatabase, Store):
    """A ledger in a database, or a schema (search_path), that has nothing else.

    Who works keeps a lock on a connection of its own, so that connections must not go through a pooler that shares
    them between transactions.

    Parameters
    ----------
    address : postgresql://user:password@host/database
    """

    _ALSO = """,
           current_setting('fsync') AS fsync,
           has_table_privilege('entries', 'UPDATE, DELETE, TRUNCATE')
           OR has_table_privilege('results', 'UPDATE, DELETE, TRUNCATE') AS may_change
    """

    def __init__(self, address: str) -> None:
        self._is_making = False
        super().__init__(LEDGER, address, PATIENCE)

    def make(self, writer: str | None) -> None:
        """Make the tables as their owner, and let another role append to them, and only that."""
        with self.in_plain_words(), self.engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), self._lock)
            self._check_server(connection)
            self._check_writer(connection, writer)
            if not self.is_made(connection):
                self.schema.make(connection)
            quote = connection.dialect.identifier_preparer.quote
            schema = connection.execute(text("SELECT current_schema()")).scalar_one()
            for right in _RIGHTS:
                connection.exec_driver_sql(right.format(schema=quote(schema), writer=quote(str(writer))))
        self._is_making = True  # the owner writes the first entry, and no other

    def prepare(self) -> None:
        """See that there are tables."""
        with self.in_plain_words(), self.reading() as connection:
            self._check_server(connection)
            is_made = self.is_made(connection)
        if not is_made:
            raise LedgerError(
                f"there is no ledger in {self.name}. Make it, as the role that shall own it: dpm ledger create, or "
                "Ledger.create(where, witness=..., writer=...)."
            )

    @contextlib.contextmanager
    def witnessing(self) -> Iterator[None]:
        """Have the witness to oneself: machines may share it on a file system whose locks are not shared."""
        with self.in_plain_words(), no_fork(), self.engine.connect() as connection:
            connection.execute(_WITNESSING, {"lock": _WITNESS_LOCK, **KEEPALIVES})
            yield

    def _check(self, state: Row[Any]) -> None:
        if state.fsync != "on":
            raise LedgerError(
                f"the server of {self.name} runs with fsync = off: what it commits may be forgotten. Turn fsync on."
            )
        if state.may_change and not self._is_making:
            raise LedgerError(
                f"the role that {self.name} is opened with could change and remove entries. Open it as the role "
                "that it was made for (writer), which can append alone."
            )

    def _check_server(self, connection: Connection) -> None:
        version = connection.dialect.server_version_info or (0,)
        if version < _OLDEST:
            raise LedgerError(
                f"the server of {self.name} is PostgreSQL {'.'.join(map(str, version))}, and a ledger needs "
                f"{_OLDEST[0]} or later. Upgrade the server."
            )

    @staticmethod
    def _check_writer(connection: Connection, writer: str | None) -> None:
        asked = "writer must be the name of a role that shall write to the ledger: not the one that makes it, nor one"
        if writer is None:
            raise InvalidArgumentError(f"{asked} of its members. It was not given.")
        found = connection.execute(_ABOUT_WRITER, {"writer": writer}).one_or_none()
        if found is None:
            raise InvalidArgumentError(f"{asked} of its members. There is no role {writer!r}: CREATE ROLE makes it.")
        if found.may_all:
            raise InvalidArgumentError(f"{asked} of its members or a superuser, got {writer!r}.")


def _said(problem: DBAPIError) -> str:
    """Return the first line of what the database said."""
    lines = str(problem.orig).strip().splitlines()
    return lines[0].rstrip(".") + "." if lines else type(problem).__name__ + "."
