"""What a ledger is made of: entries, each with the hash of the one before it.

An entry is never changed and never removed. Its hash covers the ledger's id, all of its fields and the hash of the
entry before, so that whoever knows the last hash knows whether any entry is not what it was.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any, NoReturn, final

from dpmanifold.privacy.accounts import canonical_json as canonical

BEFORE_ALL = "0" * 64
"""What the first entry names as the hash before it."""

FIELDS = ("seq", "kind", "population", "once", "body", "prev", "hash")


def _no_number(text: str) -> NoReturn:
    raise ValueError("not canonical JSON")


_READER = json.JSONDecoder(parse_float=_no_number, parse_constant=_no_number)


def sha256_of(value: object) -> str:
    """Return the sha256 of the canonical JSON of a value, 64 hex digits. Not for records: see fingerprints.

    >>> sha256_of([])
    '4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945'
    """
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def read_canonical(text: str) -> Any:
    """Return what canonical JSON says; a ValueError for any other text, also for other JSON of the same value.

    >>> read_canonical('{"a":1}')
    {'a': 1}
    >>> read_canonical('{"a": 1}')
    Traceback (most recent call last):
    ...
    ValueError: not canonical JSON
    """
    try:
        value = _READER.decode(text)
        if canonical(value) == text:
            return value
    except RecursionError:
        pass
    raise ValueError("not canonical JSON")


@final
@dataclass(frozen=True)
class Entry:
    """One event of a ledger: a row of its table, a line of its witness and of an export.

    Attributes
    ----------
    seq : its number, from 1, without gaps
    kind : what happened: created, population, cap, dataset, grant, spend, started, drawn, lost or recovered
    population : whose account it belongs to; "" for what belongs to the ledger
    once : what may happen once only: no two entries of a ledger have the same text here; None where it may repeat
    body : what is to be known about it, canonical JSON of a dict
    prev : the hash of the entry before it, 64 zeros for the first
    hash : of this one; see :func:`hash_of`

    Examples
    --------
    >>> first = Entry.chained("a-ledger", None, "created", "", "created", {"version": 1})
    >>> second = Entry.chained("a-ledger", first, "population", "cohort", "population:cohort", {"unit": "person"})
    >>> second.seq, second.prev == first.hash, second.facts
    (2, True, {'unit': 'person'})
    >>> Entry.from_line(second.line()) == second
    True
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
        seq, prev = (1, BEFORE_ALL) if before is None else (before.seq + 1, before.hash)
        entry = cls(seq, kind, population, once, canonical(body), prev, "")
        return replace(entry, hash=hash_of(ledger, entry))

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """What the body says; a ValueError where it is no canonical JSON of a dict. Not to be changed."""
        found = read_canonical(self.body)
        if not isinstance(found, dict):
            raise ValueError("not canonical JSON of a dict")
        return found

    def line(self) -> str:
        """Return the entry as canonical JSON on one line, without the line's end."""
        return canonical(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return its fields."""
        return {name: getattr(self, name) for name in FIELDS}

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
        texts = (entry.kind, entry.population, entry.body, entry.prev, entry.hash)
        if type(entry.seq) is not int or not all(isinstance(text, str) for text in texts):
            raise ValueError("not an entry")
        if not (entry.once is None or isinstance(entry.once, str)):
            raise ValueError("not an entry")
        return entry


def hash_of(ledger: str, entry: Entry) -> str:
    """Return the hash that an entry must carry: sha256 of canonical JSON of the ledger's id and its other fields.

    Examples
    --------
    >>> entry = Entry.chained("a-ledger", None, "created", "", None, {})
    >>> hash_of("a-ledger", entry) == entry.hash, hash_of("another", entry) == entry.hash
    (True, False)
    """
    return sha256_of(
        [ledger, entry.seq, entry.kind, entry.population, entry.once, entry.body, entry.prev],
    )


def entry_faults(ledger: str, entry: Entry, before: Entry | None) -> list[str]:
    """Return what is wrong with an entry as the one after `before` (None: as the first): sentences; [] if nothing is.

    Examples
    --------
    >>> from dataclasses import replace
    >>> entry = Entry.chained("a-ledger", None, "created", "", None, {})
    >>> entry_faults("a-ledger", entry, None)
    []
    >>> entry_faults("a-ledger", replace(entry, body='{"cap":"9"}'), None)
    ['entry 1 (created) is not what was written: its hash is of something else.']
    """
    name = f"entry {entry.seq} ({entry.kind})"
    seq, prev = (1, BEFORE_ALL) if before is None else (before.seq + 1, before.hash)
    found = []
    if entry.seq != seq:
        found.append(f"{name} stands where entry {seq} should.")
    if entry.prev != prev:
        whose = "a first entry" if before is None else f"entry {before.seq} before it"
        found.append(f"{name} does not name the hash of {whose}.")
    if entry.hash != hash_of(ledger, entry):
        found.append(f"{name} is not what was written: its hash is of something else.")
    try:
        _ = entry.facts
    except ValueError:
        found.append(f"{name} has a body that is no canonical JSON of a dict.")
    return found


__all__ = [
    "BEFORE_ALL",
    "FIELDS",
    "Entry",
    "canonical",
    "entry_faults",
    "hash_of",
    "read_canonical",
    "sha256_of",
]
