"""What a ledger is made of: entries, each with the hash of the one before it, and how their bodies are written.

Promises and times stand there in text alone, so that nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, final

from dpmanifold.privacy import Promise
from dpmanifold.privacy.budget_accounts import canonical_json
from dpmanifold.privacy.promises import KINDS
from dpmanifold.storage.chain import Chained, read_canonical

RESTS = "rests_on"
"""Where a spend's body names the entries that decided about it, by their numbers; 0 where there was none."""

Numbers = dict[str, int]
"""Their numbers: "cap", "spend" (the one before in the population), "own" (before it, of the principal), "grant"."""

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


def promise_to_body(promise: Promise) -> dict[str, str]:
    """Return a promise in text: a number as it was typed, a float as its `hex()`.

    Examples
    --------
    >>> from dpmanifold import GDP
    >>> promise_to_body(GDP(0.25))
    {'kind': 'GDP', 'mu': '0x1.0000000000000p-2'}
    """
    record: dict[str, object] = dict(promise.to_dict())
    typed = record.pop("exact", {})
    exact = typed if isinstance(typed, Mapping) else {}
    return {name: _text(exact.get(name, value)) for name, value in record.items()}


def promise_from_body(record: Mapping[str, str]) -> Promise:
    """Return the promise that an entry holds.

    Examples
    --------
    >>> promise_from_body({"kind": "GDP", "mu": (0.25).hex()})
    GDP(mu=0.25)
    """
    numbers: dict[str, Any] = {
        name: float.fromhex(text) if text.startswith("0x") else text for name, text in record.items()
    }
    return KINDS[record["kind"]](**{name: number for name, number in numbers.items() if name != "kind"})


def many(count: int, one: str, more: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> many(1, "entry", "entries"), many(2000, "entry", "entries")
    ('1 entry', '2,000 entries')
    """
    return f"{count:,} {one if count == 1 else more}"


def now() -> str:
    """Return the time in UTC, to the second. For people to read: nothing is decided by it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(value: object) -> str:
    return value.hex() if isinstance(value, float) else str(value)
