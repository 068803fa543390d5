"""Entries and results, which can be appended to and not be changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# A trigger on INSERT as well: INSERT OR REPLACE removes the row that is in its way without asking the others.
SQLITE = (
    """
    CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END
    """,
    """
    CREATE TRIGGER entries_remain BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never removed'); END
    """,
    """
    CREATE TRIGGER entries_follow BEFORE INSERT ON entries
    BEGIN
        SELECT RAISE(ABORT, 'an entry has the number after the last one')
        WHERE NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM entries);
        SELECT RAISE(ABORT, 'an entry names the hash of the one before it')
        WHERE NEW.prev IS NOT coalesce((SELECT hash FROM entries ORDER BY seq DESC LIMIT 1), printf('%064d', 0));
        SELECT RAISE(ABORT, 'an entry has the hash before it to itself')
        WHERE EXISTS (SELECT 1 FROM entries WHERE prev = NEW.prev);
        SELECT RAISE(ABORT, 'what may happen once has happened')
        WHERE EXISTS (SELECT 1 FROM entries WHERE once = NEW.once);
    END
    """,
    """
    CREATE TRIGGER results_stay BEFORE UPDATE ON results
    BEGIN SELECT RAISE(ABORT, 'results of a ledger are never changed'); END
    """,
    """
    CREATE TRIGGER results_remain BEFORE DELETE ON results
    BEGIN SELECT RAISE(ABORT, 'results of a ledger are never removed'); END
    """,
    """
    CREATE TRIGGER results_follow BEFORE INSERT ON results
    BEGIN
        SELECT RAISE(ABORT, 'a result comes with the last entry')
        WHERE NEW.seq IS NOT (SELECT max(seq) FROM entries)
           OR NOT EXISTS (SELECT 1 FROM entries WHERE seq = NEW.seq AND kind = 'drawn');
        SELECT RAISE(ABORT, 'an entry has one result')
        WHERE EXISTS (SELECT 1 FROM results WHERE seq = NEW.seq);
    END
    """,
)

# Triggers as the server itself would write them (events in its order): audits compare them.
POSTGRESQL = (
    """
    CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
    BEGIN
        RAISE EXCEPTION 'what is in a ledger is never changed and never removed';
    END $$
    """,
    """
    CREATE FUNCTION ledger_follow() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
    DECLARE
        head_seq bigint;
        head_hash text;
    BEGIN
        SELECT seq, hash INTO head_seq, head_hash FROM entries ORDER BY seq DESC LIMIT 1;
        IF NEW.seq <> coalesce(head_seq, 0) + 1 THEN
            RAISE EXCEPTION 'an entry has the number after the last one';
        END IF;
        IF NEW.prev <> coalesce(head_hash, repeat('0', 64)) THEN
            RAISE EXCEPTION 'an entry names the hash of the one before it';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE FUNCTION ledger_result() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
    DECLARE
        head_seq bigint;
        head_kind text;
    BEGIN
        SELECT seq, kind INTO head_seq, head_kind FROM entries ORDER BY seq DESC LIMIT 1;
        IF head_seq IS DISTINCT FROM NEW.seq OR head_kind <> 'drawn' THEN
            RAISE EXCEPTION 'a result comes with the last entry';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER entries_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()
    """,
    "CREATE TRIGGER entries_follow BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION ledger_follow()",
    """
    CREATE TRIGGER results_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON results
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()
    """,
    "CREATE TRIGGER results_follow BEFORE INSERT ON results FOR EACH ROW EXECUTE FUNCTION ledger_result()",
)


def upgrade() -> None:
    """Make the tables with their triggers."""
    name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite finds rows by INTEGER alone
    op.create_table(
        "entries",
        sa.Column("seq", number, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("population", name, nullable=False),
        sa.Column("once", name, unique=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("prev", sa.Text, nullable=False, unique=True),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("sets", name, nullable=False),
        sa.Column("subject", name, nullable=False),
    )
    op.create_index("entries_of_population", "entries", ["population", "seq"])
    op.create_index("entries_by_what_they_set", "entries", ["population", "sets", "seq"])
    op.create_index("entries_by_subject", "entries", ["population", "sets", "subject", "seq"])
    op.create_table(
        "results",
        sa.Column("seq", number, primary_key=True, autoincrement=False),
        sa.Column("bytes", sa.LargeBinary, nullable=False),
    )
    bind = op.get_bind()
    if bind.dialect.name == "sqlite":
        for statement in SQLITE:
            op.execute(sa.text(statement))
        return
    # By name, so that no table of the same name elsewhere is looked at instead.
    schema = bind.dialect.identifier_preparer.quote(bind.execute(sa.text("SELECT current_schema()")).scalar_one())
    for statement in POSTGRESQL:
        op.execute(sa.text(statement.replace("{schema}", schema)))
