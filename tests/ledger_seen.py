"""What must hold between a ledger and what its clients saw, whenever they were killed."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from dpmanifold.privacy.amounts import amount_from_text

server_when_slow = pytest.mark.parametrize(
    "ledger_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
"""For tests that run on SQLite by default, and on PostgreSQL among the slow ones."""


def faults(ledger, seen, cap):
    """Return what is wrong, in sentences; [] if nothing is.

    Parameters
    ----------
    ledger : opened
    seen : the lines that clients wrote down (ledger_clients.Log)
    cap : what may be spent in all, as a fraction
    """
    audit = ledger.audit()
    entries = list(ledger.entries())
    found = [*audit.faults]
    found += [f"a client failed: {line['error']}" for line in seen if line["what"] == "failed"]

    spends = {entry.seq: entry.facts for entry in entries if entry.kind == "spend"}
    total = sum((amount_from_text(facts["cost"])[0] for facts in spends.values()), Fraction(0))
    if total > cap:
        found.append(f"{total} was spent of {cap}.")
    if audit.populations["cohort"].total != (total,):
        found.append("the audit has another total.")
    for key, times in Counter(facts["key"] for facts in spends.values()).items():
        if times > 1:
            found.append(f"key {key} was paid for {times} times.")
    ends = Counter(entry.facts["spend"] for entry in entries if entry.kind in ("drawn", "lost", "recovered"))
    for spend, times in ends.items():
        if times > 1 or spend not in spends:
            found.append(f"spend {spend} has {times} outcomes.")

    paid = {facts["key"]: seq for seq, facts in spends.items()}
    kept = {entry.facts["spend"]: entry.facts["sha256"] for entry in entries if entry.kind == "drawn"}
    drawn = {}
    for line in seen:
        key = line.get("key")
        if line["what"] == "drawn":
            if key in drawn:
                found.append(f"key {key} was drawn again.")
            if paid.get(key) != line["sequence"]:
                found.append(f"key {key} was drawn, and nobody paid for it.")
            drawn[key] = line["sha256"]
        elif line["what"] == "returned":
            if line["sha256"] != kept.get(paid.get(key)) or line["sha256"] != drawn.get(key):
                found.append(f"key {key} was answered with what the ledger does not have.")
        elif line["what"] == "lost" and paid.get(key) in kept:
            found.append(f"key {key} was said to be lost, and the ledger has it.")
    return found


def chain_faults(ledger):
    """Return what is wrong with the chain of a ledger's entries, in sentences; [] if nothing is."""
    entries = list(ledger.entries())
    pairs = zip(entries, [None, *entries], strict=False)
    return [fault for entry, before in pairs for fault in entry.faults(ledger.id, before)]


def ends(ledger):
    """Return how many spends ended how: queued, begun and nothing more, drawn, or lost."""
    entries = list(ledger.entries())
    state = {entry.seq: "queued" for entry in entries if entry.kind == "spend"}
    for entry in entries:
        if entry.kind in ("started", "drawn", "lost"):
            state[entry.facts["spend"]] = {"started": "begun"}.get(entry.kind, entry.kind)
    return Counter(state.values())
