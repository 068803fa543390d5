"""A ledger in a list, for tests of what needs no database: entries as the engine writes them."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

from dpmanifold import GDP
from dpmanifold.ledger.entries import Entry, promise_to_body
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import added, amount_to_text, cost_of, nothing

LEDGER = "a-ledger"
TIME = "2026-11-16T09:00:00Z"


class Book:
    """Entries that follow the rules, unless they are told not to."""

    def __init__(self, cap: Promise | None = None) -> None:
        self.entries: list[Entry] = []
        self.results: dict[int, bytes] = {}
        self.caps: dict[str, Promise] = {}
        self.totals: dict[str, tuple[Fraction, ...]] = {}
        self.last: dict[tuple[str, str, str], int] = {}
        self.mine: dict[tuple[str, str], tuple[Fraction, ...]] = {}
        self.add("created", "", "created", {"ledger": LEDGER, "time": TIME})
        self.population("cohort", GDP(1.0) if cap is None else cap)

    def add(self, kind: str, population: str, once: str | None, body: dict[str, Any]) -> Entry:
        entry = Entry.chained(LEDGER, self.entries[-1] if self.entries else None, kind, population, once, body)
        self.entries.append(entry)
        kind = {"population": "cap"}.get(kind, kind)
        for who in {"", body.get("principal", "") if kind != "cap" else ""}:
            self.last[population, kind, who] = entry.seq
        return entry

    def population(self, name: str, cap: Promise) -> Entry:
        self.caps[name], self.totals[name] = cap, nothing(cap)
        body = {"cap": promise_to_body(cap), "unit": "person", "principal": "ada", "time": TIME}
        return self.add("population", name, f"population:{name}", body)

    def raise_cap(self, cap: Promise, name: str = "cohort", **changes: Any) -> Entry:
        body = {"cap": promise_to_body(cap), "was": promise_to_body(self.caps[name]), "reason": "asked", "time": TIME}
        self.caps[name] = cap
        return self.add("cap", name, None, body | changes)

    def grant(self, who: str, promise: Promise, name: str = "cohort") -> Entry:
        return self.add("grant", name, None, {"principal": who, "privacy": promise_to_body(promise), "time": TIME})

    def spend(self, key: str, promise: Promise, who: str = "ada", name: str = "cohort", **changes: Any) -> Entry:
        cost = cost_of(promise, self.caps[name])
        self.totals[name] = added(self.totals[name], cost)
        self.mine[name, who] = added(self.mine.get((name, who), nothing(self.caps[name])), cost)
        rests = {"cap": ("cap", ""), "spend": ("spend", ""), "own": ("spend", who), "grant": ("grant", who)}
        body = {
            "rests_on": {of: self.last.get((name, *kind), 0) for of, kind in rests.items()},
            "principal": who, "key": key, "request": "0" * 64, "label": key, "statistic": "mean", "datasets": [],
            "privacy": promise_to_body(promise), "cost": amount_to_text(cost),
            "spent": amount_to_text(self.totals[name]), "of_grant": amount_to_text(self.mine[name, who]), "time": TIME,
        }  # fmt: skip
        return self.add("spend", name, f"key:{name}:{who}:{key}", body | changes)

    def started(self, spend: Entry) -> Entry:
        return self.add(
            "started", spend.population, f"started:{spend.seq}", {"spend": spend.seq, "token": "t", "time": TIME}
        )

    def drawn(self, spend: Entry, content: bytes = b"drawn") -> Entry:
        digest = hashlib.sha256(content).hexdigest()
        body = {"spend": spend.seq, "sha256": digest, "time": TIME}
        entry = self.add("drawn", spend.population, f"outcome:{spend.seq}", body)
        self.results[entry.seq] = content
        return entry

    def lost(self, spend: Entry) -> Entry:
        return self.add("lost", spend.population, f"outcome:{spend.seq}", {"spend": spend.seq, "time": TIME})

    def release(self, key: str, promise: Promise, who: str = "ada", content: bytes = b"drawn") -> Entry:
        """Spend, begin and draw."""
        spend = self.spend(key, promise, who)
        self.started(spend)
        self.drawn(spend, content)
        return spend

    def at(self, seq: int) -> Entry | None:
        return self.entries[seq - 1] if 0 < seq <= len(self.entries) else None

    def read(self, first: int) -> list[Entry]:
        return self.entries[first - 1 :]

    def lines(self) -> list[tuple[int, Entry | None]]:
        """What a witness has of it."""
        return list(enumerate(self.entries, 1))

    def rechained(self, seq: int, **changes: Any) -> list[Entry]:
        """Return all entries with one edited, and everything after it written anew so that the chain holds."""
        found: list[Entry] = []
        for entry in self.entries:
            facts = entry.facts | (changes if entry.seq == seq else {})
            before = found[-1] if found else None
            found.append(Entry.chained(LEDGER, before, entry.kind, entry.population, entry.once, facts))
        return found
