"""A ledger in a PostgreSQL database, or in one schema of it: owned by one role and written to by another."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, final

from sqlalchemy import Connection, Row, text
from sqlalchemy.exc import SQLAlchemyError

from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.files import closed_if_it_fails
from dpmanifold.ledger.migrations import revision_of, upgrade
from dpmanifold.ledger.schema import REVISION
from dpmanifold.ledger.stores import PATIENCE, Held, Store
from dpmanifold.storage.forks import abandon, no_fork
from dpmanifold.storage.postgres import PostgresDatabase, lock_number

_OLDEST = (14,)  # the first that has idle_session_timeout
_KEEPALIVES = {"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}

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
    "REVOKE ALL ON entries, results, alembic_version FROM PUBLIC",
    "GRANT USAGE ON SCHEMA {schema} TO {writer}",
    "GRANT SELECT, INSERT ON entries, results TO {writer}",
    "GRANT SELECT ON alembic_version TO {writer}",
)


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
        super().__init__(address, "a ledger", "dpmanifold ledger", PATIENCE)

    def make(self, writer: str | None) -> None:
        """Make the tables as their owner, and let another role append to them, and only that."""
        with self._owning() as connection:
            self._check_server(connection)
            self._check_writer(connection, writer)
            upgrade(connection)
            quote = connection.dialect.identifier_preparer.quote
            schema = connection.execute(text("SELECT current_schema()")).scalar_one()
            for right in _RIGHTS:
                connection.exec_driver_sql(right.format(schema=quote(schema), writer=quote(str(writer))))
        self._is_making = True  # the owner writes the first entry, and no other

    def prepare(self) -> None:
        """See that there are tables, up to date; older ones are brought up to date by their owner."""
        with self.in_plain_words(), self.reading() as connection:
            self._check_server(connection)
            revision = revision_of(connection)
        if revision is None:
            raise LedgerError(
                f"there is no ledger in {self.name}. Make it, as the role that shall own it: dpm ledger create, or "
                "Ledger.create(where, witness=..., writer=...)."
            )
        if revision != REVISION:
            with self._owning() as connection:
                upgrade(connection)

    @contextlib.contextmanager
    def _owning(self) -> Iterator[Connection]:
        """Open a transaction that may change tables, and commit it in the end."""
        with self.in_plain_words(), self.engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), self._lock)
            yield connection

    def hold(self, token: str) -> Held:
        """Begin an attempt: a lock of a session of its own."""
        with self.in_plain_words():
            connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            with closed_if_it_fails(connection):
                handle = connection.connection.driver_connection.fileno()  # type: ignore[union-attr]
                connection.detach()  # what ends it is the end of the session
                for name, value in {**_KEEPALIVES, "idle_session_timeout": "0"}.items():
                    connection.execute(text("SELECT set_config(:name, :value, false)"), {"name": name, "value": value})
                connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _lock_of(token)})
            return _HeldSession(connection, handle)

    def alive(self, token: str) -> bool:
        """Return whether an attempt is held: whether its lock can be shared."""
        with self.in_plain_words(), self.reading() as connection:
            asked = text("SELECT pg_try_advisory_xact_lock_shared(:lock)")
            return not connection.execute(asked, {"lock": _lock_of(token)}).scalar_one()

    @contextlib.contextmanager
    def witnessing(self) -> Iterator[None]:
        """Have the witness to oneself: machines may share it on a file system whose locks are not shared."""
        with self.in_plain_words(), no_fork(), self.engine.connect() as connection:
            connection.execute(_WITNESSING, {"lock": _WITNESS_LOCK, **_KEEPALIVES})
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

    def after_fork_in_child(self) -> None:
        """Let go of the socket, without a word to the server: a session that a child keeps would outlive its holder."""
        if self._connection is not None:
            os.close(self._handle)
            abandon(self._connection)
            self._connection = None


def _lock_of(token: str) -> int:
    return lock_number(f"dpmanifold attempt {token}")


_WITNESS_LOCK = lock_number("dpmanifold witness")
