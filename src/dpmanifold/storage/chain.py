"""Logs that are only appended to: each entry has the hash of the one before it.

An entry is never changed and never removed. Its hash covers the log's id, all of its fields and the hash of the entry
before, so that whoever knows the last hash knows whether any entry is not what it was.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from dpmanifold.privacy.budget_accounts import canonical_json

BEFORE_ALL = "0" * 64
"""What the first entry names as the hash before it."""


def _no_number(text: str) -> NoReturn:
    raise ValueError("not canonical JSON")


_READER = json.JSONDecoder(parse_float=_no_number, parse_constant=_no_number)


def sha256_of(value: object) -> str:
    """Return the sha256 of the canonical JSON of a value, 64 hex digits. Not for records: see fingerprints.

    >>> sha256_of([])
    '4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945'
    """
    return sha256_of_bytes(canonical_json(value).encode("ascii"))


def sha256_of_bytes(content: bytes) -> str:
    """Return the sha256 of bytes, 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


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
        if canonical_json(value) == text:
            return value
    except RecursionError:
        pass
    raise ValueError("not canonical JSON")


class Chained:
    """An entry of a log; a frozen dataclass, whose last field is the hash of the others.

    Attributes
    ----------
    seq : its number, from 1, without gaps
    kind : what happened
    body : what is to be known about it, canonical JSON of a dict
    prev : the hash of the entry before it, 64 zeros for the first
    hash : of this one; see :meth:`hash_in`
    """

    NOUN: ClassVar[str] = "entry"

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]
        seq: int
        kind: str
        body: str
        prev: str
        hash: str

        def __init__(self, **said: Any) -> None: ...

    @classmethod
    def after(cls, log: str, before: Any, body: dict[str, Any], **said: Any) -> Self:
        """Return the entry that comes after `before` (None: the first) in the log of this id."""
        seq, prev = place_after(before)
        entry = cls(**said, seq=seq, body=canonical_json(body), prev=prev, hash="")
        return replace(entry, hash=entry.hash_in(log))

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """What the body says; a ValueError where it is no canonical JSON of a dict. Not to be changed."""
        found = read_canonical(self.body)
        if not isinstance(found, dict):
            raise ValueError("not canonical JSON of a dict")
        return found

    @property
    def title(self) -> str:
        """What to call it in sentences."""
        return f"{self.NOUN} {self.seq} ({self.kind})"

    def to_dict(self) -> dict[str, Any]:
        """Return its fields."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def hash_in(self, log: str) -> str:
        """Return the hash that it must carry: sha256 of canonical JSON of the log's id and its other fields."""
        return sha256_of([log, *list(self.to_dict().values())[:-1]])

    def follows(self, log: str, before: Self | None) -> bool:
        """Return whether it is the entry after `before` (None: the first) of the log of this id."""
        return (self.seq, self.prev) == place_after(before) and self.hash == self.hash_in(log)

    def faults(self, log: str, before: Self | None) -> list[str]:
        """Return what is wrong with it as the entry after `before` (None: the first): sentences; [] if nothing is."""
        seq, prev = place_after(before)
        found = []
        if self.seq != seq:
            found.append(f"{self.title} stands where {self.NOUN} {seq} should.")
        if self.prev != prev:
            whose = f"a first {self.NOUN}" if before is None else f"{self.NOUN} {before.seq} before it"
            found.append(f"{self.title} does not name the hash of {whose}.")
        if self.hash != self.hash_in(log):
            found.append(f"{self.title} is not what was written: its hash is of something else.")
        try:
            _ = self.facts
        except ValueError:
            found.append(f"{self.title} has a body that is no canonical JSON of a dict.")
        return found


def place_after(before: Any) -> tuple[int, str]:
    """Return the number of the entry after another one (None: of the first), and the hash that it names."""
    return (1, BEFORE_ALL) if before is None else (before.seq + 1, before.hash)
