"""How the tables of a ledger came to be, step by step, and the way from an older file to a newer one.

A step never rebuilds the table of entries (no batch_alter_table): that drops the triggers which keep it as it is.
"""

from __future__ import annotations

import pathlib

from sqlalchemy import Connection, inspect, text

from dpmanifold._check import optional_module
from dpmanifold.errors import LedgerError
from dpmanifold.ledger.schema import REVISION, entries

_FOLDER = pathlib.Path(__file__).parent


def upgrade(connection: Connection) -> None:
    """Make the tables, or bring older ones up to date, in the transaction that is open."""
    command = optional_module("alembic.command", "ledger", "a ledger")
    config = optional_module("alembic.config", "ledger", "a ledger").Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def revision_of(connection: Connection) -> str | None:
    """Return which step the tables are at; None where the database is empty.

    A LedgerError where it is no ledger, or of a version of the library that is newer than this one.
    """
    names = set(inspect(connection).get_table_names())
    if not names:
        return None
    refuse_others(names)
    revision = str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())
    if revision > REVISION:
        raise LedgerError(
            f"the ledger's tables are of version {revision}, and this version of dpmanifold knows them up to "
            f"{REVISION}. Upgrade dpmanifold."
        )
    return revision


def refuse_others(names: set[str]) -> None:
    """Refuse a database with tables of something else."""
    if not {"alembic_version", entries.name} <= names:
        raise LedgerError("the database has tables, and they are not those of a ledger. Give an empty one.")
