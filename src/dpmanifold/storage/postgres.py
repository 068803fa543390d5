"""A database on a PostgreSQL server, or one schema (search_path) of it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import weakref
from collections.abc import Iterator
from typing import Any, final

from sqlalchemy import Connection, Engine, Row, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from dpmanifold._check import optional_module
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.files import closed_if_it_fails
from dpmanifold.storage.database import Database
from dpmanifold.storage.forks import abandon, no_fork
from dpmanifold.storage.locks import AlreadyHeldError, Held
from dpmanifold.storage.schema import Schema

_SCHEMES = ("postgresql", "postgres")
KEEPALIVES = {"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}
"""How the server finds out, within half a minute, that the machine at the other end is gone."""

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
    schema : what it has
    address : postgresql://user:password@host/database
    patience : as for every :class:`Database`
    """

    _ALSO = ""
    """What else the first statement of a transaction that writes selects, for :meth:`_check`."""

    def __init__(self, schema: Schema, address: str, patience: float) -> None:
        scheme = address.split("://", 1)[0]
        if scheme not in _SCHEMES:
            raise InvalidArgumentError(
                "where must be a path, or an address that starts with postgresql://, got one that starts with "
                f"{scheme}://."
            )
        optional_module("psycopg", "postgres", f"a {schema.noun} on PostgreSQL")
        try:
            self._url = make_url(address).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError):  # what it says may have the password in it
            raise InvalidArgumentError(
                "where must be an address such as postgresql://user@host/database, got one that cannot be read."
            ) from None
        self._lock = {"lock": lock_number(f"dpmanifold {schema.noun}")}  # of whoever writes
        self._begin = text(_LOCKED + self._ALSO)
        super().__init__(schema, self._url.set(drivername=_SCHEMES[0]).render_as_string(hide_password=True), patience)

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

    def hold(self, name: str) -> Held:
        """Take the lock of this name: of a session of its own, which is not to be shared by a pooler."""
        connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        with closed_if_it_fails(connection):
            handle = connection.connection.driver_connection.fileno()  # type: ignore[union-attr]
            connection.detach()  # what ends it is the end of the session
            for setting, value in {**KEEPALIVES, "idle_session_timeout": "0"}.items():
                connection.execute(text("SELECT set_config(:name, :value, false)"), {"name": setting, "value": value})
            if not connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), _held(name)).scalar_one():
                raise AlreadyHeldError
        return _HeldSession(connection, handle)

    def is_held(self, name: str) -> bool:
        """Return whether somebody has the lock of this name: whether it cannot be shared."""
        with self.reading() as connection:
            asked = text("SELECT pg_try_advisory_xact_lock_shared(:lock)")
            return not connection.execute(asked, _held(name)).scalar_one()

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


@final
class _HeldSession(Held):
    def __init__(self, connection: Connection, handle: int) -> None:
        self._connection: Connection | None = connection
        self._handle = handle
        super().__init__()

    def release(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._connection.close()
            self._connection = None

    def is_held(self) -> bool:
        """Return whether the session goes on. One that has ended is over, although SQLAlchemy would begin another."""
        if self._connection is not None:
            try:
                self._connection.execute(text("SELECT 1"))
            except SQLAlchemyError:
                self.release()
        return self._connection is not None

    def after_fork_in_child(self) -> None:
        """Let go of the socket, without a word to the server: a session that a child keeps would outlive its holder."""
        if self._connection is not None:
            os.close(self._handle)
            abandon(self._connection)
            self._connection = None


def _held(name: str) -> dict[str, int]:
    return {"lock": lock_number(f"dpmanifold held {name}")}


def lock_number(name: str) -> int:
    """Return 64 bits for a lock's name, as PostgreSQL numbers locks."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest()[:8], "big", signed=True)


def _dispose(engine: Engine, process: int) -> None:
    """Close the connections of a database that is gone, in the process that opened them."""
    if process == os.getpid():
        engine.dispose()
