"""The tables of a ledger: entries, and the bytes that were released. Both are only appended to.

What an entry is stands in :mod:`dpmanifold.ledger.entries`. Two columns more are there to find entries by, and say
nothing that the entry does not say: `sets`, what it decides, and `subject`, about whom or what.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, Table, Text

from dpmanifold.errors import LedgerError
from dpmanifold.ledger.entries import Entry
from dpmanifold.storage.schema import Schema

metadata = MetaData()

_number = BigInteger().with_variant(Integer(), "sqlite")  # SQLite finds rows by INTEGER alone
# Compared byte by byte on every engine, so that the names of one population lie side by side.
_name = Text().with_variant(Text(collation="C"), "postgresql")

entries = Table(
    "entries",
    metadata,
    Column("seq", _number, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("population", _name, nullable=False),
    Column("once", _name, unique=True),
    Column("body", Text, nullable=False),
    Column("prev", Text, nullable=False, unique=True),
    Column("hash", Text, nullable=False),
    Column("sets", _name, nullable=False),
    Column("subject", _name, nullable=False),
    Index("entries_of_population", "population", "seq"),
    Index("entries_by_what_they_set", "population", "sets", "seq"),
    Index("entries_by_subject", "population", "sets", "subject", "seq"),
)

results = Table(
    "results",
    metadata,
    Column("seq", _number, primary_key=True, autoincrement=False),
    Column("bytes", LargeBinary, nullable=False),
)

# What comes once, and what comes with what: beyond the chain.
_SQLITE = (
    """
    CREATE TRIGGER entries_once BEFORE INSERT ON entries
    BEGIN
        SELECT RAISE(ABORT, 'what may happen once has happened')
        WHERE EXISTS (SELECT 1 FROM entries WHERE once = NEW.once);
    END
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
_POSTGRESQL = (
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
    "CREATE TRIGGER results_follow BEFORE INSERT ON results FOR EACH ROW EXECUTE FUNCTION ledger_result()",
)

LEDGER = Schema("ledger", 1, metadata, LedgerError, entries.name, (results.name,), _SQLITE, _POSTGRESQL)
"""What a ledger's database has."""

_SETS = {"population": "cap"}  # a population comes with its cap
_SUBJECTS = {"grant": "principal", "spend": "principal", "dataset": "digest"}


def found_by(entry: Entry) -> tuple[str, str]:
    """Return what an entry is found by: what it sets, and whom or what it is about.

    A recovered entry sets what the one did that it stands for.

    Examples
    --------
    >>> grant = Entry.chained("a-ledger", None, "grant", "cohort", None, {"principal": "ada"})
    >>> found_by(grant)
    ('grant', 'ada')
    """
    kind = entry.acts_as
    return _SETS.get(kind, kind), str(entry.facts.get(_SUBJECTS.get(kind, ""), ""))
