"""A ledger in one SQLite file."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import sqlite3
import sys
from typing import final

from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.ledger.migrations import refuse_others, revision_of, upgrade
from dpmanifold.ledger.schema import REVISION
from dpmanifold.ledger.stores import PATIENCE, Held, Store
from dpmanifold.storage.filesystems import network_of
from dpmanifold.storage.sqlite import SqliteDatabase, patiently

if sys.platform != "win32":  # where no ledger is opened: its witness refuses
    import fcntl

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
        self._folder = path.with_name(path.name + ".attempts")  # who can use the database can use what is in it
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

    def hold(self, token: str) -> Held:
        """Begin an attempt: a lock of a file, which the system lets go of when its process ends, however it ends."""
        path = self._folder / token
        try:
            self._make_folder()
            file = io.FileIO(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666), "r+")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(file.fileno(), self.path.stat().st_mode & 0o666)
        except OSError as problem:
            raise LedgerError(f"no attempt can be begun in {self._folder}: {problem.strerror}.") from None
        return _HeldFile(path, file)

    def _make_folder(self) -> None:
        """Make the folder, open to those who can use the database."""
        if self._folder.is_dir():
            return
        self._folder.mkdir(exist_ok=True)
        mode = self.path.stat().st_mode & 0o666
        self._folder.chmod(mode | (mode & 0o444) >> 2)

    def forget(self, token: str) -> None:
        """Remove the file of an attempt whose holder is gone."""
        with contextlib.suppress(OSError):
            (self._folder / token).unlink()

    def alive(self, token: str) -> bool:
        """Return whether an attempt is held."""
        try:
            handle = os.open(self._folder / token, os.O_RDONLY)
        except FileNotFoundError:  # its holder ended it
            return False
        except OSError as problem:
            raise LedgerError(
                f"whether an attempt in {self._folder} is alive cannot be told: {problem.strerror}. The ledger's users "
                "need to read the files there."
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

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


@final
class _HeldFile(Held):
    """A file that is locked while it is open; whoever drops it without a word has released it, too."""

    def __init__(self, path: pathlib.Path, file: io.FileIO) -> None:
        self._path, self._file = path, file
        super().__init__()

    def release(self) -> None:
        if not self._file.closed:
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._file.close()

    def after_fork_in_child(self) -> None:
        """Let go of the file: a lock that a child keeps would outlive its holder."""
        self._file.close()
