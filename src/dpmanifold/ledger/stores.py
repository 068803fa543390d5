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
from typing import TypeVar, final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.ledger.chain import Reader, Writer
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.schema import LEDGER
from dpmanifold.storage.database import Database
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


def _said(problem: DBAPIError) -> str:
    """Return the first line of what the database said."""
    lines = str(problem.orig).strip().splitlines()
    return lines[0].rstrip(".") + "." if lines else type(problem).__name__ + "."
