"""Entries edited by hand, with all guards taken away: an audit names them, or the witness does, or a receipt does."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import replace

import pytest

from dpmanifold import GDP
from dpmanifold.errors import LedgerError
from dpmanifold.ledger import Ledger
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.export import verify_export
from dpmanifold.ledger.receipts import verify_receipt
from ledger_clients import POPULATION, order

pytestmark = pytest.mark.security

SPEND = 3  # the number of the first spend: behind those of the ledger and of the population


@pytest.fixture
def receipts(ledger_url, tmp_path):
    """Three releases, of which these are the receipts; and an export of that day."""
    kept = []
    with Ledger.open(ledger_url, principal="ada") as ledger:
        cohort = ledger.population(POPULATION, cap=GDP("1"), unit="participant")
        for key in "abc":
            cohort.settle(order(key), lambda receipt: kept.append(receipt) or os.urandom(8))
        ledger.export(tmp_path / "export.jsonl")
    return kept


@pytest.fixture
def edit(ledger_url, request):
    """Writes entries over those of the same numbers, whatever forbids it; the guards are put back."""

    def sqlite(changed):
        with contextlib.closing(sqlite3.connect(ledger_url)) as base:
            guards = base.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                base.execute(f'DROP TRIGGER "{name}"')
            base.executemany("UPDATE entries SET body = ?, prev = ?, hash = ? WHERE seq = ?", changed)
            for _, statement in guards:
                base.execute(statement)
            base.commit()

    def postgresql(changed):
        import psycopg

        with psycopg.connect(ledger_url.replace("writer@", "postgres@")) as base:
            base.execute("ALTER TABLE entries DISABLE TRIGGER USER")
            for values in changed:
                base.execute("UPDATE entries SET body = %s, prev = %s, hash = %s WHERE seq = %s", values)
            base.execute("ALTER TABLE entries ENABLE TRIGGER USER")

    def run(entries):
        changed = [(entry.body, entry.prev, entry.hash, entry.seq) for entry in reversed(entries)]
        (postgresql if "://" in ledger_url else sqlite)(changed)

    return run


def edited(ledger, old, new):
    """The entry of the first spend with another text in it."""
    entry = list(ledger.entries())[SPEND - 1]
    assert old in entry.body
    return replace(entry, body=entry.body.replace(old, new))


def rehashed(ledger):
    """All entries from there on, in a chain that holds, with sums that are right: something else was asked for."""
    before, *behind = list(ledger.entries())[SPEND - 2 :]
    chain = [before]
    for entry in [edited(ledger, '"a mean"', '"a median"'), *behind[1:]]:
        chain.append(Entry.chained(ledger.id, chain[-1], entry.kind, entry.population, entry.once, entry.facts))
    return chain[1:]


def test_an_edited_entry_is_named_by_an_audit(ledger_url, receipts, edit):
    with Ledger.open(ledger_url, principal="ada") as ledger:
        assert ledger.audit().ok
        edit([edited(ledger, '"1/100"', '"1/400"')])
        assert ledger.audit().faults[0].startswith(f"entry {SPEND} (spend) is not what was written")
    with Ledger.open(ledger_url, principal="ada") as ledger:
        assert ledger.audit().faults[0].startswith(f"entry {SPEND} (spend) is not what was written")


def test_a_chain_that_was_written_anew_is_named_by_the_witness(ledger_url, receipts, edit):
    with Ledger.open(ledger_url, principal="ada") as ledger:
        edit(rehashed(ledger))
        faults = ledger.audit().faults
        assert any(f"entry {SPEND} (spend) of the witness" in fault for fault in faults), faults
        with pytest.raises(LedgerError, match="the witness"):
            ledger.population(POPULATION).settle(order("d"), lambda receipt: pytest.fail("records were opened"))
    with pytest.raises(LedgerError, match="the witness"):
        Ledger.open(ledger_url, principal="ada")


def test_a_witness_that_was_written_anew_as_well_is_contradicted_by_receipts(ledger_url, receipts, edit, tmp_path):
    """Whoever writes both anew is told by nothing in them, only by what others hold: receipts, and exports."""
    with Ledger.open(ledger_url, principal="ada") as ledger:
        edit(rehashed(ledger))
        ledger.witness.path.write_text("".join(entry.line() + "\n" for entry in ledger.entries()))
    with Ledger.open(ledger_url, principal="ada") as ledger:
        assert ledger.audit().ok
        assert all(ledger.verify(receipt) for receipt in receipts)
        ledger.export(tmp_path / "today.jsonl")
    assert all(verify_receipt(receipt, tmp_path / "today.jsonl") for receipt in receipts)
    assert verify_export(tmp_path / "export.jsonl").ok
    assert not any(verify_receipt(receipt, tmp_path / "export.jsonl") for receipt in receipts)
