"""A ledger in a PostgreSQL database, or in one schema of it: owned by one role and written to by another."""

from __future__ import annotations

import contextlib
import hashlib
import os
import weakref
from collections.abc import Iterator
from typing import Any, final

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from dpmanifold._extras import optional_module
from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.ledger.chain import Reader
from dpmanifold.ledger.forks import no_fork, tell_of_forks
from dpmanifold.ledger.guards import POSTGRESQL_GUARDS, broken_guards
from dpmanifold.ledger.migrations import refuse_newer, revision_of, upgrade
from dpmanifold.ledger.schema import REVISION
from dpmanifold.ledger.stores import Held, Store, abandon

SCHEMES = ("postgresql", "postgres")

_OLDEST = (14,)  # the first that has idle_session_timeout
_PATIENCE = "60s"  # for the ledger's lock; and after so long a transaction that does nothing is ended by the server
_KEEPALIVES = {"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}

# One statement, because it is the first of every transaction that writes: the lock, then what must hold under it. A
# commit is answered when it is on the disk, also where the server or the role has another habit.
_BEGIN = text("""
    SELECT pg_advisory_xact_lock(:lock),
           set_config(
               'synchronous_commit',
               CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END,
               true
           ),
           current_setting('fsync') AS fsync,
           has_table_privilege('entries', 'UPDATE, DELETE, TRUNCATE')
           OR has_table_privilege('results', 'UPDATE, DELETE, TRUNCATE') AS may_change
""")
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
_TRIGGERS = text("""
    SELECT tgname, pg_get_triggerdef(pg_trigger.oid, true) || ' AS ' || prosrc
    FROM pg_trigger
    JOIN pg_class ON pg_class.oid = tgrelid
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    JOIN pg_proc ON pg_proc.oid = tgfoid
    JOIN pg_language ON pg_language.oid = prolang
    WHERE tgrelid IN ('entries'::regclass, 'results'::regclass) AND NOT tgisinternal AND tgenabled IN ('O', 'A')
      AND lanname = 'plpgsql' AND proconfig = ARRAY['search_path=' || quote_ident(nspname) || ', pg_temp']
""")
_RIGHTS = (
    "REVOKE ALL ON entries, results, alembic_version FROM PUBLIC",
    "GRANT USAGE ON SCHEMA {schema} TO {writer}",
    "GRANT SELECT, INSERT ON entries, results TO {writer}",
    "GRANT SELECT ON alembic_version TO {writer}",
)


@final
class PostgresStore(Store):
    """A ledger in a database, or a schema (search_path), that has nothing else.

    Who works keeps a lock on a connection of its own, so that connections must not go through a pooler that shares
    them between transactions.

    Parameters
    ----------
    address : postgresql://user:password@host/database
    """

    def __init__(self, address: str) -> None:
        optional_module("psycopg", "postgres", "a ledger on PostgreSQL")
        try:
            self._url = make_url(address).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError):  # what it says may have the password in it
            raise InvalidArgumentError(
                "where must be an address such as postgresql://user@host/database, got one that cannot be read."
            ) from None
        self._is_making = False
        super().__init__(self._url.set(drivername=SCHEMES[0]).render_as_string(hide_password=True))
        weakref.finalize(self, _dispose, self._engine, os.getpid())

    def exists(self) -> bool:
        """Return whether there is a ledger; a database of something else is refused."""
        with self.in_plain_words(), self._reading() as connection:
            return revision_of(connection) is not None and Reader(connection).entry(1) is not None

    def make(self, writer: str | None) -> None:
        """Make the tables as their owner, and let another role append to them, and only that."""
        with self.in_plain_words(), self.engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
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
        with self.in_plain_words(), self._reading() as connection:
            self._check_server(connection)
            revision = revision_of(connection)
        if revision is None:
            raise LedgerError(
                f"there is no ledger in {self.name}. Make it, as the role that shall own it: dpm ledger create, or "
                "Ledger.create(where, witness=..., writer=...)."
            )
        refuse_newer(revision)
        if revision != REVISION:
            with self.in_plain_words(), self.engine.begin() as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
                upgrade(connection)

    def hold(self, token: str) -> Held:
        """Begin an attempt: a lock of a session of its own."""
        with self.in_plain_words():
            connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            try:
                handle = connection.connection.driver_connection.fileno()  # type: ignore[union-attr]
                connection.detach()  # what ends it is the end of the session
                for name, value in {**_KEEPALIVES, "idle_session_timeout": "0"}.items():
                    connection.execute(text("SELECT set_config(:name, :value, false)"), {"name": name, "value": value})
                connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _lock_of(token)})
            except BaseException:
                connection.close()
                raise
            return _HeldSession(connection, handle)

    def alive(self, token: str) -> bool:
        """Return whether an attempt is held: whether its lock can be shared."""
        with self.in_plain_words(), self._reading() as connection:
            asked = text("SELECT pg_try_advisory_xact_lock_shared(:lock)")
            return not connection.execute(asked, {"lock": _lock_of(token)}).scalar_one()

    def forget(self, token: str) -> None:
        """Nothing is left behind: a lock ends with its session."""

    @contextlib.contextmanager
    def witnessing(self) -> Iterator[None]:
        """Have the witness to oneself: machines may share it on a file system whose locks are not shared."""
        with self.in_plain_words(), no_fork(), self.engine.connect() as connection:
            connection.execute(_WITNESSING, {"lock": _WITNESS_LOCK, **_KEEPALIVES})
            yield

    def broken_guards(self) -> list[str]:
        """Return the triggers that are not there, are switched off, or do something else."""
        with self.in_plain_words(), self._reading() as connection:
            found = connection.execute(_TRIGGERS).all()
        return broken_guards(POSTGRESQL_GUARDS, ((name, made_by) for name, made_by in found))

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _make_engine(self) -> Engine:
        engine = create_engine(
            self._url, hide_parameters=True, pool_pre_ping=True, max_overflow=-1, isolation_level="READ COMMITTED"
        )

        @event.listens_for(engine, "connect")
        def connected(connection: Any, record: object) -> None:
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = '{_PATIENCE}'")
                cursor.execute(f"SET idle_in_transaction_session_timeout = '{_PATIENCE}'")
            connection.commit()

        return engine

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        how = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with no_fork(), self.engine.connect().execution_options(**how) as connection:
            yield connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        with no_fork(), self.engine.connect() as connection:
            state = connection.execute(_BEGIN, {"lock": _LOCK}).one()
            if state.fsync != "on":
                raise LedgerError(
                    f"the server of {self.name} runs with fsync = off: what it commits may be forgotten. Turn fsync on."
                )
            if state.may_change and not self._is_making:
                raise LedgerError(
                    f"the role that {self.name} is opened with could change and remove entries. Open it as the role "
                    "that it was made for (writer), which can append alone."
                )
            yield connection

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
        tell_of_forks(self)

    def release(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._connection.close()
            self._connection = None

    def before_fork(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        """Let go of the socket, without a word to the server: a session that a child keeps would outlive its holder."""
        if self._connection is not None:
            os.close(self._handle)
            abandon(self._connection)
            self._connection = None


def _number(name: str) -> int:
    """Return 64 bits for a lock's name, as PostgreSQL numbers locks."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest()[:8], "big", signed=True)


def _lock_of(token: str) -> int:
    return _number(f"dpmanifold attempt {token}")


_LOCK = _number("dpmanifold ledger")
_WITNESS_LOCK = _number("dpmanifold witness")


def _dispose(engine: Engine, process: int) -> None:
    """Close the connections of a store that is gone, in the process that opened them."""
    if process == os.getpid():
        engine.dispose()
