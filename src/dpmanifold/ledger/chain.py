"""Reading a ledger's tables, and appending to them: what can be done within one transaction.

Every look-up goes by an index, so that it takes as long among a million entries as among ten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

from sqlalchemy import Connection, Row, Select, func, insert, literal, select, union_all

from dpmanifold.errors import LedgerError
from dpmanifold.ledger.entries import FIELDS, Entry
from dpmanifold.ledger.schema import entries, found_by, results

_ROW = tuple(entries.c[name] for name in FIELDS)


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
        return self._one(select(*_ROW).order_by(entries.c.seq.desc()).limit(1))

    def entry(self, seq: int) -> Entry | None:
        """Return the entry of this number; None where there is none."""
        return self._one(select(*_ROW).where(entries.c.seq == seq))

    def once(self, text: str) -> Entry | None:
        """Return the entry of what may happen once; None where it has not happened."""
        return self._one(select(*_ROW).where(entries.c.once == text))

    def among(self, texts: Iterable[str]) -> list[Entry]:
        """Return the entries of those that have happened, in order."""
        return self._all(select(*_ROW).where(entries.c.once.in_(list(texts))).order_by(entries.c.seq))

    def starting(self, text: str) -> list[Entry]:
        """Return the entries whose `once` starts with a text that ends in a colon, in order."""
        after = text[:-1] + chr(ord(text[-1]) + 1)
        return self._all(
            select(*_ROW).where(entries.c.once >= text, entries.c.once < after).order_by(entries.c.seq)
        )  # fmt: skip

    def page(self, after: int, limit: int, population: str | None = None) -> list[Entry]:
        """Return the entries behind a number, in order, at most so many."""
        statement = select(*_ROW).where(entries.c.seq > after).order_by(entries.c.seq).limit(limit)
        if population is not None:
            statement = statement.where(entries.c.population == population)
        return self._all(statement)

    def first(self, population: str, sets: str, subject: str) -> Entry | None:
        """Return the first entry that sets something about a subject; None where there is none."""
        return self._one(_setting(population, sets, subject).order_by(entries.c.seq).limit(1))

    def latest(self, population: str, wanted: Iterable[tuple[str, str | None]]) -> list[Entry | None]:
        """Return, for each of (what is set, about whom or None for anybody), the entry that set it last."""
        asked = list(wanted)
        parts = []
        for number, (sets, subject) in enumerate(asked):
            found = _setting(population, sets, subject).order_by(entries.c.seq.desc()).limit(1).subquery()
            parts.append(select(literal(number).label("part"), *(found.c[name] for name in FIELDS)))
        rows = self._connection.execute(union_all(*parts))
        by_number = {row[0]: Entry(*row[1:]) for row in rows}
        return [by_number.get(number) for number in range(len(asked))]

    def subjects(self, population: str, sets: str) -> list[Entry]:
        """Return, for each subject, the entry that set it last, in order."""
        last = (
            select(func.max(entries.c.seq))
            .where(entries.c.population == population, entries.c.sets == sets)
            .group_by(entries.c.subject)
        )
        return self._all(select(*_ROW).where(entries.c.seq.in_(last)).order_by(entries.c.seq))

    def result(self, seq: int) -> bytes | None:
        """Return the bytes that came with an entry; None where there are none."""
        found = self._connection.execute(select(results.c.bytes).where(results.c.seq == seq)).scalar_one_or_none()
        return None if found is None else bytes(found)

    def _one(self, statement: Select[Any]) -> Entry | None:
        row = self._connection.execute(statement).one_or_none()
        return None if row is None else _entry(row)

    def _all(self, statement: Select[Any]) -> list[Entry]:
        return [_entry(row) for row in self._connection.execute(statement)]


@final
class Writer(Reader):
    """What one transaction sees and appends. No other one appends meanwhile.

    Parameters
    ----------
    connection : in a transaction that has the ledger's lock
    ledger : the ledger's id; for the first entry None, which names it
    """

    def __init__(self, connection: Connection, ledger: str) -> None:
        super().__init__(connection)
        self._ledger = ledger
        self._head = self.head()
        self.appended: list[Entry] = []

    def append(self, kind: str, population: str, once: str | None, body: dict[str, Any]) -> Entry:
        """Append an entry, or raise a LedgerError if what may happen once has happened."""
        entry = Entry.chained(self._ledger, self._head, kind, population, once, body)
        if once is not None and self.once(once) is not None:
            raise LedgerError(f"the ledger has an entry {once!r} already, and may have one only.")
        sets, subject = found_by(entry)
        values = {name: getattr(entry, name) for name in FIELDS}
        self._connection.execute(insert(entries).values(**values, sets=sets, subject=subject))
        self._head = entry
        self.appended.append(entry)
        return entry

    def keep(self, seq: int, content: bytes) -> None:
        """Store the bytes that come with the entry that was appended last."""
        self._connection.execute(insert(results).values(seq=seq, bytes=content))


def _setting(population: str, sets: str, subject: str | None) -> Select[Any]:
    statement = select(*_ROW).where(entries.c.population == population, entries.c.sets == sets)
    return statement if subject is None else statement.where(entries.c.subject == subject)


def _entry(row: Row[Any]) -> Entry:
    return Entry(*row)
