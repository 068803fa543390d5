"""An audit names what was edited, what was not allowed, and what the witness remembers otherwise."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import GDP, ApproxDP, PureDP
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.ledger.auditing import MOST, Audit, audited
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.export import verify_export, write_export
from dpmanifold.ledger.receipts import receipt_faults, verify_receipt
from dpmanifold.privacy.amounts import amount_from_text, as_promise_up
from dpmanifold.privacy.budget_accounts import Order, Receipt
from ledger_book import LEDGER, Book

pytestmark = pytest.mark.security


@pytest.fixture
def book() -> Book:
    """Four spends: two that were drawn, one lost, one not begun; a raised cap and a grant."""
    book = Book()
    book.release("first", GDP(0.25))
    book.release("second", GDP(0.5))
    book.raise_cap(GDP(1.5))
    lost = book.spend("third", GDP(0.5))
    book.started(lost)
    book.lost(lost)
    book.grant("ada", GDP(1.25))
    book.grant("bob", GDP(1.0))
    book.spend("fourth", GDP(0.25), "bob")
    return book


def looked_up(entry: Callable[[int], Entry | None]) -> Any:
    """What a receipt is looked up in: entries by their numbers, and none that was recovered."""
    return SimpleNamespace(entry=entry, of_kind=lambda kind: [])


def audit(book: Book, entries: list[Entry] | None = None, **rest: Any) -> Audit:
    entries = book.entries if entries is None else entries
    return audited(LEDGER, entries, book.results.get, rest.pop("witness", book.lines()))


def test_a_true_ledger_has_no_faults(book: Book) -> None:
    found = audit(book)
    assert found.ok
    assert (found.faults, found.more, found.notes) == ((), 0, ())
    assert found.entries == len(book.entries)
    assert found.head == book.entries[-1].hash
    account = found.populations["cohort"]
    assert account.total == book.totals["cohort"]
    assert (account.spends, account.recovered, account.over) == (4, 0, False)
    assert found.to_dict()["ok"] is True
    assert "no fault found" in repr(found)


@pytest.mark.parametrize("name", ["kind", "population", "once", "body", "prev", "hash"])
def test_every_field_of_every_entry_is_covered(book: Book, name: str) -> None:
    for place, entry in enumerate(book.entries):
        old = getattr(entry, name) or ""
        new = "f" * 64 if name in ("prev", "hash") else '{"edited":1}' if name == "body" else old + "x"
        edited = [*book.entries[:place], replace(entry, **{name: new}), *book.entries[place + 1 :]]
        found = audit(book, edited, witness=None)
        assert not found.ok
        named = f"entry {place + 1} ("
        assert any(fault.startswith(named) for fault in found.faults) or (
            name == "hash" and found.faults[0].startswith(f"entry {place + 2} (")
        )


def test_entries_that_are_missing_doubled_or_swapped_are_found(book: Book) -> None:
    entries = book.entries
    for edited in (
        entries[:4] + entries[5:],
        entries[:4] + entries[3:],
        [*entries[:3], entries[4], entries[3], *entries[5:]],
        entries[1:],
    ):
        assert not audit(book, edited, witness=None).ok


def test_a_cut_end_is_found_by_the_witness_alone(book: Book) -> None:
    assert audit(book, book.entries[:-2], witness=None).ok
    found = audit(book, book.entries[:-2])
    assert [fault.split(",")[0] for fault in found.faults] == [
        f"entry {seq} ({kind}) of the witness"
        for seq, kind in ((len(book.entries) - 1, "grant"), (len(book.entries), "spend"))
    ]


def test_a_chain_that_was_written_anew_is_found_by_the_witness_and_by_receipts(book: Book) -> None:
    spend = book.entries[5]
    forged = book.rechained(spend.seq, label="harmless")
    assert audit(book, forged, witness=None).ok
    found = audit(book, forged)
    assert found.faults[0].startswith(f"entry {spend.seq} (spend) of the witness, its line {spend.seq}, is not what")
    assert len(found.faults) == len(book.entries) - spend.seq + 1
    spent = as_promise_up(GDP(1.0), amount_from_text(spend.facts["spent"]))
    assert spent is not None
    receipt = Receipt(LEDGER, spend.seq, spend.hash, "cohort", spent.to_dict())
    assert receipt_faults(receipt, LEDGER, looked_up(book.at)) == []
    [fault] = receipt_faults(receipt, LEDGER, looked_up(lambda seq: forged[seq - 1]))
    assert "has another entry there: the ledger was written anew" in fault


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"cost": ["1/100"]}, "does not cost what its promise costs"),
        ({"spent": ["1/100"]}, "states a total that is not the one before and its cost"),
        ({"of_grant": ["1/100"]}, "states a total of bob that is not"),
        ({"privacy": {"kind": "GDP", "mu": "0.1"}}, "does not cost what its promise costs"),
        ({"principal": "eve"}, "is by eve, who had no grant"),
        ({"cost": [0]}, "cannot be read"),
        ({"privacy": {"kind": "Magic"}}, "cannot be read"),
    ],
)
def test_wrong_sums_are_named_although_the_chain_holds(book: Book, changes: dict[str, Any], fault: str) -> None:
    last = len(book.entries)
    found = audit(book, book.rechained(last, **changes), witness=None)
    assert found.faults[0].startswith(f"entry {last} (spend) ")
    assert any(fault in one for one in found.faults), found.faults


def test_caps_and_grants_are_kept() -> None:
    book = Book(PureDP("1"))
    for number in range(10):
        book.spend(str(number), PureDP("0.1"))
    assert audit(book).ok  # full to the last digit
    book.spend("one more", PureDP("1e-300"))
    assert [fault.split("(spend) ")[1] for fault in audit(book).faults] == [f"goes beyond the cap {PureDP('1')}."]
    book = Book()
    book.grant("ada", GDP(0.5))
    book.spend("a", GDP(0.5))
    book.spend("b", GDP(0.25))
    assert "entry 5 (spend) goes beyond the grant GDP(mu=0.5) of ada." in audit(book).faults


def test_caps_are_raised_and_never_lowered() -> None:
    for cap, changes, fault in (
        (GDP(0.5), {}, "lowers the cap"),
        (GDP(2.0), {"reason": ""}, "gives no reason"),
        (GDP(2.0), {"was": {"kind": "GDP", "mu": "0.5"}}, "another cap was in force"),
    ):
        book = Book()
        book.raise_cap(cap, **changes)
        [found] = audit(book).faults
        assert fault in found


def test_each_spend_has_one_outcome_of_its_own() -> None:
    book = Book()
    spend = book.spend("a", GDP(0.25))
    book.drawn(spend)
    assert "was drawn for entry 3 before its work was begun" in audit(book).faults[0]
    book = Book()
    book.release("a", GDP(0.25))
    book.lost(book.entries[2])
    faults = audit(book).faults
    assert "is the second of what may happen once: 'outcome:3'" in faults[0]
    assert "has an outcome already" in faults[1]
    book = Book()
    spend = book.spend("a", GDP(0.25))
    book.started(spend)
    book.started(spend)
    assert "begins the work of entry 3 a second time" in audit(book).faults[1]
    book = Book()
    book.lost(book.entries[1])
    assert "belongs to entry 2, which is no spend" in audit(book).faults[0]
    book = Book()
    book.spend("a", GDP(0.25))
    book.spend("a", GDP(0.25))
    assert "is the second of what may happen once: 'key:cohort:ada:a'" in audit(book).faults[0]


def test_results_are_those_that_were_drawn(book: Book) -> None:
    drawn = next(entry for entry in book.entries if entry.kind == "drawn")
    book.results[drawn.seq] = b"another"
    [fault] = audit(book).faults
    assert fault == f"entry {drawn.seq} (drawn) has not the bytes that were drawn: its result was changed or removed."
    del book.results[drawn.seq]
    assert len(audit(book).faults) == 1


def test_the_witness_may_be_behind_and_must_not_have_holes(book: Book) -> None:
    found = audit(book, witness=book.lines()[:-2])
    assert found.ok
    assert "the last 2 entries are not in the witness yet" in found.notes[0]
    lines = book.lines()
    found = audit(book, witness=lines[:3] + lines[4:])
    assert found.faults == ("entry 4 (started) is not in the witness, and later ones are.",)
    found = audit(book, witness=[*lines[:3], (4, None), *lines[4:]])
    assert found.faults == (
        "line 4 of the witness is no entry.",
        "entry 4 (started) is not in the witness, and later ones are.",
    )
    edited = replace(book.entries[3], body="{}")  # with the hash of the true one
    found = audit(book, witness=[*lines[:3], (4, edited), *lines[4:]])
    assert "entry 4 (started) is not in the witness" in found.faults[0]
    assert "entry 4 (started) of the witness, its line 4, is not what the database has" in found.faults[1]


def test_faults_are_counted_and_not_all_listed() -> None:
    book = Book(GDP(0.1))
    for number in range(MOST + 20):
        book.spend(str(number), GDP(1.0))
    found = audit(book)
    assert (len(found.faults), found.more) == (MOST, 20)
    assert "and 20 more" in repr(found)


# -------------------------------------------------------------------- exports


@pytest.fixture
def export(book: Book, tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "study.jsonl"
    assert write_export(path, LEDGER, book.entries[-1], book.entries) == len(book.entries)
    return path


def test_an_export_is_checked_without_the_database(book: Book, export: pathlib.Path) -> None:
    found = verify_export(export)
    assert found.ok
    assert (found.entries, found.head) == (len(book.entries), book.entries[-1].hash)
    assert found.populations["cohort"].total == book.totals["cohort"]
    assert verify_export(export, witness=book.lines()).ok


def test_an_export_that_was_edited_is_found_out(book: Book, export: pathlib.Path) -> None:
    lines = export.read_text().splitlines(keepends=True)
    for place in range(1, len(lines)):
        export.write_text("".join(lines[:place] + lines[place + 1 :]))
        assert not verify_export(export).ok
        export.write_text("".join([*lines[:place], lines[place].replace("2026", "2025"), *lines[place + 1 :]]))
        assert not verify_export(export).ok
    export.write_text("".join(lines[:-1]))
    assert verify_export(export).faults == (
        f"the export says that it has {len(lines) - 1} entries, and has {len(lines) - 2}.",
        "the last entry of the export is not the one that its first line names.",
    )
    export.write_text("".join([*lines[:-1], lines[-1][:50]]))
    with pytest.raises(InvalidDataError, match=f"line {len(lines)} is no entry"):
        verify_export(export)


@pytest.mark.parametrize(
    "content", ["", "{}\n", "[1]\n", "text\n", "\xe9\n", '{"format":"dpmanifold ledger export 2"}\n']
)
def test_what_is_no_export_is_refused(tmp_path: pathlib.Path, content: str) -> None:
    (tmp_path / "other").write_text(content, encoding="latin-1")
    with pytest.raises(InvalidDataError, match="not an export of a ledger"):
        verify_export(tmp_path / "other")


def test_what_comes_after_the_head_stays_out(book: Book, tmp_path: pathlib.Path) -> None:
    write_export(tmp_path / "early", LEDGER, book.entries[4], book.entries)
    assert verify_export(tmp_path / "early").entries == 5


def test_exports_need_neither_sqlalchemy_nor_a_database(export: pathlib.Path) -> None:
    script = (
        "import sys; sys.modules['sqlalchemy'] = sys.modules['psycopg'] = None\n"
        f"from dpmanifold.ledger.export import verify_export; sys.exit(0 if verify_export({str(export)!r}).ok else 1)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# -------------------------------------------------------------------- receipts


def receipt_of(spend: Entry, cap: Any, **changes: Any) -> Receipt:
    spent = as_promise_up(cap, amount_from_text(spend.facts["spent"]))
    assert spent is not None
    fields = {"ledger": LEDGER, "sequence": spend.seq, "hash": spend.hash, "population": "cohort"}
    return Receipt(**(fields | {"spent": spent.to_dict()} | changes))


def test_receipts_against_an_export(book: Book, export: pathlib.Path) -> None:
    spend = book.entries[2]
    assert verify_receipt(receipt_of(spend, GDP(1.0)), export) == []
    for changes, fault in (
        ({"ledger": "another"}, "is of ledger another"),
        ({"sequence": 4}, "has another entry there"),
        ({"sequence": 400}, "has no such entry"),
        ({"hash": "f" * 64}, "has another entry there"),
        ({"population": "others"}, "was paid by 'cohort', and not by 'others'"),
        ({"spent": GDP(0.125).to_dict()}, "says that GDP(mu=0.125) was spent"),
        ({"spent": GDP(0.75).to_dict()}, "says that GDP(mu=0.75) was spent"),
        ({"spent": PureDP(0.25).to_dict()}, "was spent"),
        ({"sequence": 4, "hash": book.entries[3].hash}, "paid for nothing"),
    ):
        [found] = verify_receipt(receipt_of(spend, GDP(1.0), **changes), export)
        assert fault in found
    with pytest.raises(InvalidArgumentError, match="a release or a receipt is needed"):
        verify_receipt("text", export)


@pytest.mark.parametrize(
    ("cap", "promise"),
    [
        (PureDP("1"), PureDP("0.3")),
        (ApproxDP("1", "1e-6"), PureDP("0.3")),
        (ApproxDP("1", "1e-6"), ApproxDP("0.3", "1e-7")),
        (GDP("0.3"), GDP("0.3")),
        (GDP(0.3), GDP(0.1)),
    ],
)
def test_receipts_in_every_currency(cap: Any, promise: Any) -> None:
    book = Book(cap)
    spend = book.spend("a", promise)
    assert receipt_faults(receipt_of(spend, cap), LEDGER, looked_up(book.at)) == []


def test_a_release_is_what_the_ledger_has_drawn(tmp_path: pathlib.Path) -> None:
    ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0)
    records = np.random.default_rng(3).uniform(-0.5, 0.5, (50, 2))
    with dpm.Ledger(tmp_path / "study.db", principal="ada") as ledger:
        cohort = ledger.population("cohort", cap=GDP("1"), unit="record")
        release, other = (
            dpm.private_mean(records, ball, GDP("0.25"), units=dpm.EACH_RECORD, budget=cohort, key=key) for key in "ab"
        )
        region = dpm.private_region(records, ball, GDP("0.5"), units=dpm.EACH_RECORD, budget=cohort)
        ledger.export(tmp_path / "export.jsonl")
        for true in (release, other, region, release.receipt):
            assert ledger.verify(true) == []
            assert verify_receipt(true, tmp_path / "export.jsonl") == []
        edited = replace(release, value=np.asarray(release.value) + 0.125)
        assert ledger.verify(edited) == ["the release is not what was drawn in entry 6: it was edited."]
        borrowed = replace(release, receipt=other.receipt)
        assert ledger.verify(borrowed) == ["the release is not what was drawn in entry 9: it was edited."]
        unpaid = dpm.private_mean(records, ball, GDP("0.25"), units=dpm.EACH_RECORD)
        with pytest.raises(InvalidArgumentError, match="carries no receipt"):
            ledger.verify(unpaid)
        assert ledger.audit().ok


def test_a_database_that_was_edited(tmp_path: pathlib.Path) -> None:
    with dpm.Ledger(tmp_path / "study.db", principal="ada") as ledger:
        cohort = ledger.population("cohort", cap=GDP("1"), unit="person")
        cohort.grant("ada", GDP("0.5"))
        for key in "abc":
            cohort.settle(Order(GDP("0.1"), "x", key, {}), lambda receipt: b"drawn")

    def found(*statements: str) -> tuple[str, ...]:
        with contextlib.closing(sqlite3.connect(tmp_path / "study.db")) as base:
            triggers = [row[0] for row in base.execute("select name from sqlite_master where type = 'trigger'")]
            for statement in [*(f'drop trigger "{name}"' for name in triggers), *statements]:
                base.execute(statement)
            base.commit()
            with dpm.Ledger(tmp_path / "study.db", principal="ada") as edited:
                return edited.audit().faults

    shutil.copyfile(tmp_path / "study.db", tmp_path / "true.db")
    for statement, fault in (
        (
            "update entries set body = replace(body, '1/100', '0') where seq = 4",
            "entry 4 (spend) is not what was written",
        ),
        ("update entries set sets = 'x' where seq = 3", "entry 3 (grant) is filed under what it does not say."),
        ("update entries set subject = 'x' where seq = 4", "entry 4 (spend) is filed under what it does not say."),
        ("update results set bytes = x'00' where seq = 6", "entry 6 (drawn) has not the bytes"),
        ("delete from results", "entry 6 (drawn) has not the bytes"),
        ("delete from entries where seq = 5", "entry 6 (drawn) stands where entry 5 should"),
    ):
        faults = found(statement)
        assert faults
        assert faults[0].startswith(fault), faults
        for suffix in ("", "-wal", "-shm"):
            (tmp_path / f"study.db{suffix}").unlink(missing_ok=True)
        shutil.copyfile(tmp_path / "true.db", tmp_path / "study.db")
    # Nothing else is wrong: whoever edits entries has to remove their triggers, and these are missed.
    assert all(fault.startswith("the trigger ") for fault in found())
    assert found()
