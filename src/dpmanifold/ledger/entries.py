"""What a ledger is made of: entries, each with the hash of the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from dpmanifold.privacy.accounts import canonical_json
from dpmanifold.storage.chain import Chained, read_canonical

FIELDS = ("seq", "kind", "population", "once", "body", "prev", "hash")


@final
@dataclass(frozen=True)
class Entry(Chained):
    """One event of a ledger: a row of its table, a line of its witness and of an export.

    Attributes
    ----------
    seq : its number, from 1, without gaps
    kind : what happened: created, population, cap, dataset, grant, spend, started, drawn, lost or recovered
    population : whose account it belongs to; "" for what belongs to the ledger
    once : what may happen once only: no two entries of a ledger have the same text here; None where it may repeat
    body : what is to be known about it, canonical JSON of a dict
    prev : the hash of the entry before it, 64 zeros for the first
    hash : of this one; see :meth:`Chained.hash_in`

    Examples
    --------
    >>> first = Entry.chained("a-ledger", None, "created", "", "created", {"version": 1})
    >>> second = Entry.chained("a-ledger", first, "population", "cohort", "population:cohort", {"unit": "person"})
    >>> second.seq, second.prev == first.hash, second.facts
    (2, True, {'unit': 'person'})
    >>> Entry.from_line(second.line()) == second
    True
    >>> first.hash_in("a-ledger") == first.hash, first.hash_in("another") == first.hash
    (True, False)
    >>> from dataclasses import replace
    >>> replace(first, body='{"cap":"9"}').faults("a-ledger", None)
    ['entry 1 (created) is not what was written: its hash is of something else.']
    """

    seq: int
    kind: str
    population: str
    once: str | None
    body: str
    prev: str
    hash: str

    @classmethod
    def chained(
        cls, ledger: str, before: Entry | None, kind: str, population: str, once: str | None, body: dict[str, Any]
    ) -> Entry:
        """Return the entry that comes after `before` (None: the first) in the ledger of this id."""
        return cls.after(ledger, before, body, kind=kind, population=population, once=once)

    @property
    def acts_as(self) -> str:
        """The kind that counts: a recovered entry does what the one did that it stands for."""
        return str(self.facts.get("kind", "")) if self.kind == "recovered" else self.kind

    def stood_for(self) -> Iterator[Entry]:
        """Yield what a recovered entry stands for: the lost one, and what that one stood for itself."""
        entry = self
        while entry.kind == "recovered":
            try:
                entry = Entry.from_dict(entry.facts.get("entry"))
            except ValueError:
                return
            yield entry

    def line(self) -> str:
        """Return the entry as canonical JSON on one line, without the line's end."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_line(cls, line: str) -> Entry:
        """Return the entry that a line holds; a ValueError where it holds none."""
        return cls.from_dict(read_canonical(line))

    @classmethod
    def from_dict(cls, record: object) -> Entry:
        """Return the entry of these fields; a ValueError where they are not those of one."""
        if not isinstance(record, dict) or set(record) != set(FIELDS):
            raise ValueError("not an entry")
        entry = cls(**record)
        texts = [text for name, text in record.items() if name != "seq" and (name, text) != ("once", None)]
        if type(entry.seq) is not int or not all(isinstance(text, str) for text in texts):
            raise ValueError("not an entry")
        return entry


__all__ = ["FIELDS", "Entry"]
