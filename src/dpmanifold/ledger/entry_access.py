"""The tables of a ledger, reading them and appending to them: what can be done within one transaction.

There are entries, and the bytes that were released; both are only appended to. What an entry is stands in
:mod:`dpmanifold.ledger.entries`. Two columns more are there to find entries by, and say nothing that the entry does not
say: `sets`, what it decides, and `subject`, about whom or what.

Every look-up goes by an index, so that it takes as long among a million entries as among ten. Statements are made
once: making one takes longer than running it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, final

from sqlalchemy import (
    Column,
    Connection,
    Executable,
    Index,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    bindparam,
    func,
    insert,
    literal_column,
    select,
    union_all,
)

from dpmanifold.errors import LedgerError
from dpmanifold.ledger.entries import FIELDS, Entry, now
from dpmanifold.storage.schema import NAME, NUMBER, Schema

metadata = MetaData()

entries = Table(
    "entries",
    metadata,
    Column("seq", NUMBER, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("population", NAME, nullable=False),
    Column("once", NAME, unique=True),
    Column("body", Text, nullable=False),
    Column("prev", Text, nullable=False, unique=True),
    Column("hash", Text, nullable=False),
    Column("sets", NAME, nullable=False),
    Column("subject", NAME, nullable=False),
    Index("entries_of_population", "population", "seq"),
    Index("entries_by_what_they_set", "population", "sets", "seq"),
    Index("entries_by_subject", "population", "sets", "subject", "seq"),
)

results = Table(
    "results",
    metadata,
    Column("seq", NUMBER, primary_key=True, autoincrement=False),
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

_DECIDES = {"population": "cap"}  # a population comes with its cap
_ABOUT = {"grant": "principal", "spend": "principal", "dataset": "digest"}


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
    return _DECIDES.get(kind, kind), str(entry.facts.get(_ABOUT.get(kind, ""), ""))


# -------------------------------------------------------------------- statements


_ROW = tuple(entries.c[name] for name in FIELDS)
_FILED = (entries.c.sets, entries.c.subject)
_MANY = 500  # values in one statement; SQLite has a limit


Row = tuple[Entry, tuple[str, str]]
"""An entry, and the columns that it is found by."""


def _found(*conditions: Any) -> Select[Any]:
    return select(*_ROW).where(*conditions)


_OF_POPULATION = entries.c.population == bindparam("of")
_HEAD = _found().order_by(entries.c.seq.desc()).limit(1)
_ENTRY = _found(entries.c.seq == bindparam("number"))
_ONCE = _found(entries.c.once == bindparam("text"))
_AMONG = _found(entries.c.once.in_(bindparam("texts", expanding=True))).order_by(entries.c.seq)
_STARTING = _found(entries.c.once >= bindparam("text"), entries.c.once < bindparam("end")).order_by(entries.c.seq)
_PAGE = _found(entries.c.seq > bindparam("after")).order_by(entries.c.seq).limit(bindparam("most"))
_PAGE_OF_POPULATION = _PAGE.where(_OF_POPULATION)
_SETTING = _found(_OF_POPULATION, entries.c.sets == bindparam("what"))
_FIRST = _SETTING.where(entries.c.subject == bindparam("whom")).order_by(entries.c.seq).limit(1)
_LAST_OF_EACH = (
    select(func.max(entries.c.seq))
    .where(_OF_POPULATION, entries.c.sets == bindparam("what"))
    .group_by(entries.c.subject)
)
_SUBJECTS = _found(entries.c.seq.in_(_LAST_OF_EACH)).order_by(entries.c.seq)
_LAST_ROW = select(*_ROW, *_FILED).where(_OF_POPULATION).order_by(entries.c.seq.desc()).limit(1)
_ROWS = select(*_ROW, *_FILED).where(entries.c.seq.in_(bindparam("numbers", expanding=True))).order_by(entries.c.seq)
_OF_KIND = _found(entries.c.kind == bindparam("kind")).order_by(entries.c.seq)
_WHOLE_ROWS = (
    select(*_ROW, *_FILED, results.c.bytes)
    .select_from(entries.outerjoin(results, entries.c.seq == results.c.seq))
    .where(entries.c.seq > bindparam("after"))
    .order_by(entries.c.seq)
    .limit(bindparam("most"))
)
_RESULT = select(results.c.bytes).where(results.c.seq == bindparam("number"))
_APPEND, _KEEP = insert(entries), insert(results)


@functools.cache
def _latest(about_somebody: tuple[bool, ...]) -> Executable:
    """Return the statement for the last entries that set each of several things, in one go."""
    parts = []
    for number, somebody in enumerate(about_somebody):
        asked = select(*_ROW, *_FILED).where(_OF_POPULATION, entries.c.sets == bindparam(f"what{number}"))
        if somebody:
            asked = asked.where(entries.c.subject == bindparam(f"whom{number}"))
        found = asked.order_by(entries.c.seq.desc()).limit(1).subquery()
        parts.append(select(literal_column(str(number)).label("part"), *found.c))
    return union_all(*parts)


class Reader:
    """What one transaction sees.

    Parameters
    ----------
    connection : in a transaction
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def head(self) -> Entry | None:
        """Return the last entry; None where there is none."""
        return self._one(_HEAD)

    def entry(self, seq: int) -> Entry | None:
        """Return the entry of this number; None where there is none."""
        return self._one(_ENTRY, number=seq)

    def once(self, text: str) -> Entry | None:
        """Return the entry of what may happen once; None where it has not happened."""
        return self._one(_ONCE, text=text)

    def among(self, texts: Iterable[str]) -> list[Entry]:
        """Return the entries of those that have happened, in order."""
        wanted = list(texts)
        parts = [wanted[start : start + _MANY] for start in range(0, len(wanted), _MANY)]
        return sorted((entry for part in parts for entry in self._all(_AMONG, texts=part)), key=lambda found: found.seq)

    def starting(self, text: str) -> list[Entry]:
        """Return the entries whose `once` starts with a text, in order."""
        return self._all(_STARTING, text=text, end=text[:-1] + chr(ord(text[-1]) + 1))

    def page(self, after: int, limit: int, population: str | None = None) -> list[Entry]:
        """Return the entries after a number, in order, at most so many."""
        if population is None:
            return self._all(_PAGE, after=after, most=limit)
        return self._all(_PAGE_OF_POPULATION, after=after, most=limit, of=population)

    def whole_rows(self, after: int, limit: int) -> list[tuple[Entry, tuple[str, str], bytes | None]]:
        """Return all that is stored after a number: entries, what each is found by, and the bytes that came with."""
        rows = self._connection.execute(_WHOLE_ROWS, {"after": after, "most": limit})
        return [(*_row(tuple(row)[:-1]), None if row[-1] is None else bytes(row[-1])) for row in rows]

    def of_kind(self, kind: str) -> list[Entry]:
        """Return all entries of a kind, in order. No index helps: it looks at all there are."""
        return self._all(_OF_KIND, kind=kind)

    def first(self, population: str, sets: str, subject: str) -> Entry | None:
        """Return the first entry that sets something about a subject; None where there is none."""
        return self._one(_FIRST, of=population, what=sets, whom=subject)

    def latest(self, population: str, wanted: Sequence[tuple[str, str | None]]) -> list[Entry | None]:
        """Return, for each of (what is set, about whom or None for anybody), the entry that set it last."""
        return [None if row is None else row[0] for row in self.latest_rows(population, wanted)]

    def latest_rows(self, population: str, wanted: Sequence[tuple[str, str | None]]) -> list[Row | None]:
        """Return the same, with the columns that each was found by."""
        values = {"of": population}
        for number, (sets, subject) in enumerate(wanted):
            values[f"what{number}"] = sets
            if subject is not None:
                values[f"whom{number}"] = subject
        rows = self._connection.execute(_latest(tuple(subject is not None for _, subject in wanted)), values)
        found = {row[0]: _row(tuple(row[1:])) for row in rows}
        return [found.get(number) for number in range(len(wanted))]

    def last_row(self, population: str) -> Row | None:
        """Return a population's last entry, and what it is found by; None where there is none."""
        found = self._connection.execute(_LAST_ROW, {"of": population}).one_or_none()
        return None if found is None else _row(tuple(found))

    def rows(self, numbers: Iterable[int]) -> list[Row]:
        """Return a few entries by their numbers, and what they are found by; those that there are, in order."""
        wanted = list(numbers)
        return [_row(tuple(row)) for row in self._connection.execute(_ROWS, {"numbers": wanted})] if wanted else []

    def subjects(self, population: str, sets: str) -> list[Entry]:
        """Return, for each subject, the entry that set it last, in order."""
        return self._all(_SUBJECTS, of=population, what=sets)

    def result(self, seq: int) -> bytes | None:
        """Return the bytes that came with an entry; None where there are none."""
        found = self._connection.execute(_RESULT, {"number": seq}).scalar_one_or_none()
        return None if found is None else bytes(found)

    def _one(self, statement: Executable, **values: Any) -> Entry | None:
        row = self._connection.execute(statement, values).one_or_none()
        return None if row is None else Entry(*tuple(row))

    def _all(self, statement: Executable, **values: Any) -> list[Entry]:
        return [Entry(*tuple(row)) for row in self._connection.execute(statement, values)]


def _row(found: tuple[Any, ...]) -> Row:
    return Entry(*found[:-2]), (found[-2], found[-1])


@final
class Writer(Reader):
    """What one transaction sees and appends. No other one appends meanwhile.

    Parameters
    ----------
    connection : in a transaction that has the ledger's lock
    ledger : the ledger's id
    """

    def __init__(self, connection: Connection, ledger: str) -> None:
        super().__init__(connection)
        self.ledger = ledger
        self._head = self.head()
        self.appended: list[Entry] = []

    def append(self, kind: str, population: str, once: str | None, /, **said: Any) -> Entry:
        """Append an entry that says so and when, or raise a LedgerError if what may happen once has happened."""
        entry = Entry.chained(self.ledger, self._head, kind, population, once, {"time": now(), **said})
        if once is not None and self.once(once) is not None:
            raise LedgerError(f"the ledger has an entry {once!r} already, and may have one only.")
        sets, subject = found_by(entry)
        values = {name: getattr(entry, name) for name in FIELDS}
        self._connection.execute(_APPEND, {**values, "sets": sets, "subject": subject})
        self._head = entry
        self.appended.append(entry)
        return entry

    def keep(self, seq: int, content: bytes) -> None:
        """Store the bytes that come with the entry that was appended last."""
        self._connection.execute(_KEEP, {"seq": seq, "bytes": content})
