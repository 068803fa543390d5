"""Rows that were edited with all guards taken away: a spend that rests on them is refused, before any audit."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace

import pytest

from dpmanifold import GDP
from dpmanifold.errors import LedgerError
from dpmanifold.ledger import Ledger
from dpmanifold.ledger.auditing import audited
from ledger_book import LEDGER, Book
from ledger_clients import POPULATION, order

pytestmark = pytest.mark.security


@pytest.fixture
def ledger(ledger_url):
    """Two people with grants, who spent in turns, ada last; behind them another population is spent from."""
    with Ledger.open(ledger_url, principal="ada") as found:
        cohort = found.population(POPULATION, cap=GDP("0.99"), unit="participant")
        other = found.population("others", cap=GDP("1"), unit="participant")
        cohort.grant("ada", GDP("0.9"))
        cohort.grant("ada", GDP("0.55"))
        cohort.grant("bob", GDP("0.9"))
        for number, who in enumerate(["bob", "ada", "bob", "ada"]):
            cohort.as_principal(who).settle(order(f"{number}", GDP("0.2")), lambda receipt: b"drawn")
            other.settle(order(f"{number}"), lambda receipt: b"drawn")
        yield found


@pytest.fixture
def edit(ledger_url):
    """Runs a statement on the table as somebody who can do as they like; guards are put back."""

    def run(statement):
        if "://" in ledger_url:
            import psycopg

            with psycopg.connect(ledger_url.replace("writer@", "postgres@")) as base:
                base.execute("ALTER TABLE entries DISABLE TRIGGER USER")
                assert base.execute(statement).rowcount
                base.execute("ALTER TABLE entries ENABLE TRIGGER USER")
            return
        with contextlib.closing(sqlite3.connect(ledger_url)) as base:
            guards = base.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                base.execute(f'DROP TRIGGER "{name}"')
            assert base.execute(statement).rowcount
            for _, guard in guards:
                base.execute(guard)
            base.commit()

    return run


MINE = "population = 'cohort' AND "
LAST = "seq = (SELECT max(seq) FROM entries WHERE population = 'cohort' AND kind = '{}')"
EDITS = {
    "the cap": f"SET body = replace(body, '0.99', '9.99') WHERE {MINE}kind = 'population'",
    "the total": "SET body = replace(body, '\"spent\"', '\"spant\"') WHERE " + LAST.format("spend"),
    "a grant": f"SET body = replace(body, '0.55', '0.9') WHERE {MINE}kind = 'grant' AND subject = 'ada'",
    "all spends hidden": f"SET sets = 'spend_' WHERE {MINE}kind = 'spend'",
    "the last spend hidden": "SET sets = 'spend_' WHERE " + LAST.format("spend"),
    "the last spend another's": "SET subject = 'zed' WHERE " + LAST.format("spend"),
    "own spends another's": f"SET subject = 'zed' WHERE {MINE}kind = 'spend' AND subject = 'ada'",
    "grants hidden": f"SET sets = 'grant_' WHERE {MINE}kind = 'grant'",
    "a grant that was lowered since": f"SET sets = 'grant_' WHERE {MINE}body LIKE '%\"0.55\"%'",
    "the spend before the last": "SET subject = 'zed' WHERE once = 'key:cohort:ada:3'",
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_row_decides_about_no_spend(ledger, edit, what):
    cohort = ledger.population(POPULATION)
    assert cohort.settle(order("x", GDP("0.1")), lambda receipt: b"drawn") == b"drawn"
    edit(f"UPDATE entries {EDITS[what]}")
    with pytest.raises(LedgerError, match="by other hands"):
        cohort.settle(order("y", GDP("0.1")), lambda receipt: pytest.fail("records were opened"))
    assert not ledger.audit().ok
    assert ledger.population("others").settle(order("y"), lambda receipt: b"drawn") == b"drawn"


def test_what_an_edited_row_was_paid_for_is_not_believed(ledger, edit):
    edit(f"UPDATE entries SET body = replace(body, 'a mean', 'a name') WHERE {MINE}kind = 'spend' AND subject = 'ada'")
    with pytest.raises(LedgerError, match="not what was written"):
        ledger.population(POPULATION).settle(order("1", GDP("0.2")), lambda receipt: pytest.fail("a second draw"))


@pytest.mark.parametrize("name", ["cap", "spend", "own", "grant"])
def test_the_audit_checks_what_spends_rest_on(name):
    book = Book()
    book.grant("ada", GDP(0.5))
    book.release("one", GDP(0.1))
    last = book.release("two", GDP(0.1))
    assert audited(LEDGER, book.entries, book.results.get).ok
    rests = last.facts["rests_on"]
    assert all(rests.values())
    wrong = book.rechained(last.seq, **{"rests_on": rests | {name: rests[name] - 1}})
    assert [fault for fault in audited(LEDGER, wrong, book.results.get).faults if "decided about it" in fault]


def test_a_spend_that_was_put_back_rests_on_what_is_there(tmp_path):
    """Recovered entries name what they were counted behind, and spends go on from them."""
    path = tmp_path / "study.db"
    with Ledger(path, principal="ada") as ledger:
        cohort = ledger.population(POPULATION, cap=GDP("1"), unit="participant")
        cohort.settle(order("a"), lambda receipt: b"drawn")
    kept = path.read_bytes()
    with Ledger(path, principal="ada") as ledger:
        ledger.population(POPULATION).settle(order("b"), lambda receipt: b"drawn")
    for end in ("-wal", "-shm"):
        (tmp_path / f"study.db{end}").unlink(missing_ok=True)
    path.write_bytes(kept)
    with Ledger(path, principal="ada", reconcile="a disk failed") as ledger:
        ledger.population(POPULATION).settle(order("c"), lambda receipt: b"drawn")
        rests = [entry.facts["rests_on"] for entry in ledger.entries() if entry.facts.get("cost")]
        assert [found["spend"] for found in rests] == [0, 3, 6]
        assert ledger.audit().ok
        wrong = [replace(entry, hash="0" * 64) for entry in ledger.entries()]
        assert not audited(ledger.id, wrong).ok
