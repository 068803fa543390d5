"""Where a ledger is kept: a database that can be read by all and appended to by one at a time.

What differs between SQLite and PostgreSQL is here; what an entry means is not.
"""

from __future__ import annotations

import contextlib
import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Self, TypeVar, final

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dpmanifold.errors import LedgerError
from dpmanifold.ledger.chain import Reader, Writer
from dpmanifold.ledger.entries import Entry

T = TypeVar("T")

_PAGE = 1000  # entries read at a time where all of them are

_abandoned: list[object] = []


def abandon(inherited: object) -> None:
    """Keep something for good that a fork left in this process: closing it would end the parent's session."""
    _abandoned.append(inherited)


class Held(ABC):
    """An attempt that is alive as long as this is not released and its process lives."""

    @abstractmethod
    def release(self) -> None:
        """End it."""


class Store(ABC):
    """A database with one ledger.

    Threads may use it at the same time. After a fork the child makes connections of its own.

    Parameters
    ----------
    name : what to call it in messages; without a password
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._engine = self._make_engine()
        self._process = os.getpid()

    @abstractmethod
    def _make_engine(self) -> Engine:
        """Return the engine for this process."""

    @abstractmethod
    def _reading(self) -> contextlib.AbstractContextManager[Connection]:
        """Open a transaction that reads one state of the ledger, and neither waits for writers nor holds them up."""

    @abstractmethod
    def _writing(self) -> contextlib.AbstractContextManager[Connection]:
        """Open a transaction that has the ledger to itself; the caller commits it."""

    @abstractmethod
    def exists(self) -> bool:
        """Return whether there is anything where the ledger would be."""

    @abstractmethod
    def make(self, writer: str | None) -> None:
        """Make the tables of a new ledger, for a role that will write to them where there are roles."""

    @abstractmethod
    def prepare(self) -> None:
        """Make the tables where there are none, and bring older ones up to date where that is allowed."""

    @abstractmethod
    def hold(self, token: str) -> Held:
        """Begin an attempt: until it is released, or this process ends, the attempt is alive."""

    @abstractmethod
    def alive(self, token: str) -> bool:
        """Return whether somebody holds the attempt. No clock decides it."""

    @abstractmethod
    def forget(self, token: str) -> None:
        """Clear away what an attempt left behind whose holder is gone."""

    @abstractmethod
    def witnessing(self) -> contextlib.AbstractContextManager[None]:
        """Have the witness to oneself, among all who use this database and on whatever machine they are."""

    @abstractmethod
    def broken_guards(self) -> list[str]:
        """Return the names of triggers that should keep the tables as they are, and are not there as they were made."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is open. It is opened again when it is needed."""

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

    @final
    def read(self, action: Callable[[Reader], T]) -> T:
        """Return what an action reads in one transaction."""
        with self.in_plain_words(), self._reading() as connection:
            return action(Reader(connection))

    @final
    def pages(self, page: Callable[[Reader, int, int], list[T]], after: int, number: Callable[[T], int]) -> Iterator[T]:
        """Yield what is stored behind a number, in order; no transaction stays open meanwhile.

        Parameters
        ----------
        page : reads what is behind a number, at most so many
        after : the number
        number : gives that of something read
        """
        while True:
            found = self.read(functools.partial(_page, page, after))
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
            with self._writing() as connection:
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
            with self._writing() as connection:
                found = Reader(connection).entry(entry.seq)
                connection.rollback()
        except SQLAlchemyError:
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
        except DBAPIError as problem:
            raise LedgerError(f"the ledger {self.name} cannot be used: {_said(problem)}") from None
        except SQLAlchemyError as problem:
            raise LedgerError(f"the ledger {self.name} cannot be used: {type(problem).__name__}.") from None


def _page(page: Callable[[Reader, int, int], list[T]], after: int, reader: Reader) -> list[T]:
    return page(reader, after, _PAGE)


def _said(problem: DBAPIError) -> str:
    """Return the first line of what the database said."""
    lines = str(problem.orig).strip().splitlines()
    return lines[0].rstrip(".") + "." if lines else type(problem).__name__ + "."
