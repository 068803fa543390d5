"""A ledger in one SQLite file."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
from typing import final

from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.ledger.migrations import refuse_others, revision_of, upgrade
from dpmanifold.ledger.schema import REVISION
from dpmanifold.ledger.stores import PATIENCE, Store
from dpmanifold.storage.filesystems import network_of
from dpmanifold.storage.sqlite import SqliteDatabase, patiently

_MODE = 0o640  # for its owner, and readable by its group, as the witness is


@final
class SqliteStore(SqliteDatabase, Store):
    """A ledger in a file.

    Parameters
    ----------
    path : of the file; made where there is none
    """

    def __init__(self, path: pathlib.Path) -> None:
        network = network_of(path)
        if network is not None:
            raise LedgerError(
                f"{path} would be on a file system of type {network}, where SQLite's locks do not hold: two programs "
                "could spend the same budget. Put the ledger on a local disk, or into PostgreSQL "
                '(Ledger("postgresql://...")), which others reach over the network.'
            )
        super().__init__(path, PATIENCE, _MODE)

    def exists(self) -> bool:
        """Return whether there is a ledger; a database of something else is refused."""
        return self._has_tables() and super().exists()

    def make(self, writer: str | None) -> None:
        """Make the tables."""
        if writer is not None:
            raise InvalidArgumentError("writer must be left out for a file: SQLite has no roles.")
        self.prepare()

    def prepare(self) -> None:
        """Make the tables where there are none, and bring older ones up to date."""
        self._has_tables()  # or what is no ledger is refused
        with self.in_plain_words():
            with self.reading() as connection:
                revision = revision_of(connection)
            if revision != REVISION:
                with self.writing() as connection:
                    upgrade(connection)
                    connection.commit()

    def _has_tables(self) -> bool:
        """Return whether the file has the tables of a ledger, and refuse one with others. It stays as it is.

        To be opened as a ledger changes a file, for the log that is written ahead is a property of it.
        """
        if not self.path.exists() or self.path.stat().st_size == 0:
            return False
        with self.in_plain_words():
            try:
                names = patiently(lambda: self._tables("ro"), PATIENCE)
            except sqlite3.OperationalError:  # cut short in the middle of a write, which whoever opens it takes back
                names = patiently(lambda: self._tables("rw"), PATIENCE)
        if names:
            refuse_others(names)
        return bool(names)

    def _tables(self, mode: str) -> set[str]:
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        with contextlib.closing(sqlite3.connect(address, timeout=PATIENCE, uri=True)) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
