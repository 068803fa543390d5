"""What alembic runs for each migration: everything in the connection and the transaction that it was given."""

from __future__ import annotations

from alembic import context

from dpmanifold.ledger.schema import metadata


def run() -> None:
    """Take the steps that are missing."""
    context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
    with context.begin_transaction():
        context.run_migrations()


if hasattr(context, "config"):  # alembic is running, and this is not an import
    run()
