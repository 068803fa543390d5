"""A database on a PostgreSQL server, or one schema (search_path) of it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import weakref
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Engine, Row, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError

from dpmanifold._check import optional_module
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.storage.database import Database
from dpmanifold.storage.forks import no_fork

_SCHEMES = ("postgresql", "postgres")

# The first statement of every transaction that writes: the lock, then what must hold under it. A commit is answered
# when it is on the disk, also where the server or the role has another habit.
_LOCKED = """
    SELECT pg_advisory_xact_lock(:lock),
           set_config(
               'synchronous_commit',
               CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END,
               true
           )
"""


class PostgresDatabase(Database):
    """A database, or a schema, that others may have things in, too.

    Parameters
    ----------
    address : postgresql://user:password@host/database
    use : what it is for, in messages
    lock : the name of the lock that whoever writes holds
    patience : as for every :class:`Database`
    """

    _ALSO = ""
    """What else the first statement of a transaction that writes selects, for :meth:`_check`."""

    def __init__(self, address: str, use: str, lock: str, patience: float) -> None:
        scheme = address.split("://", 1)[0]
        if scheme not in _SCHEMES:
            raise InvalidArgumentError(
                "where must be a path, or an address that starts with postgresql://, got one that starts with "
                f"{scheme}://."
            )
        optional_module("psycopg", "postgres", f"{use} on PostgreSQL")
        try:
            self._url = make_url(address).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError):  # what it says may have the password in it
            raise InvalidArgumentError(
                "where must be an address such as postgresql://user@host/database, got one that cannot be read."
            ) from None
        self._lock = {"lock": lock_number(lock)}
        self._begin = text(_LOCKED + self._ALSO)
        super().__init__(self._url.set(drivername=_SCHEMES[0]).render_as_string(hide_password=True), patience)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that sees one state and changes nothing."""
        how = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with no_fork(), self.engine.connect().execution_options(**how) as connection:
            connection.exec_driver_sql("SELECT 1")  # from here on, it is one state
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that no other one writes beside."""
        with no_fork(), self.engine.connect() as connection:
            self._check(connection.execute(self._begin, self._lock).one())
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _check(self, state: Row[Any]) -> None:
        """Refuse to write where what was selected in the beginning forbids it."""

    def _make_engine(self) -> Engine:
        engine = create_engine(
            self._url, hide_parameters=True, pool_pre_ping=True, max_overflow=-1, isolation_level="READ COMMITTED"
        )

        @event.listens_for(engine, "connect")
        def connected(connection: Any, record: object) -> None:
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = '{self.patience:.0f}s'")
                # After so long a transaction that does nothing is ended by the server.
                cursor.execute("SET idle_in_transaction_session_timeout = '60s'")
            connection.commit()

        weakref.finalize(self, _dispose, engine, os.getpid())
        return engine


def lock_number(name: str) -> int:
    """Return 64 bits for a lock's name, as PostgreSQL numbers locks."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest()[:8], "big", signed=True)


def _dispose(engine: Engine, process: int) -> None:
    """Close the connections of a database that is gone, in the process that opened them."""
    if process == os.getpid():
        engine.dispose()
