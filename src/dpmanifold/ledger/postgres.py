"""A ledger in a PostgreSQL database, or in one schema of it: owned by one role and written to by another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, final

from sqlalchemy import Connection, Row, text

from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.ledger.schema import LEDGER
from dpmanifold.ledger.stores import PATIENCE, Store
from dpmanifold.storage.forks import no_fork
from dpmanifold.storage.postgres import KEEPALIVES, PostgresDatabase, lock_number

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


_WITNESS_LOCK = lock_number("dpmanifold witness")
