"""Databases that have forgotten: refused, and reconciled with their witness. Everything counts and nothing returns."""

from __future__ import annotations

import os
import pathlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dpmanifold import GDP, LedgerError, PureDP, ReleaseLostError
from dpmanifold.errors import BudgetError, InvalidArgumentError
from dpmanifold.ledger import Ledger, Population
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.export import verify_export
from dpmanifold.privacy.budget_accounts import Order, Receipt

pytestmark = pytest.mark.security

CAP = GDP("1")


def order(key: str, mu: str = "0.1", **request: str) -> Order:
    return Order(GDP(mu), "a mean", key, {"statistic": "mean", **request})


def never(receipt: Receipt) -> bytes:
    raise AssertionError("the work was done once more")


class Study:
    """A ledger in a file, and what people do to files."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.path, self.folder = folder / "study.db", folder
        self.receipts: dict[str, Receipt] = {}
        self.do(lambda ledger: ledger.population("cohort", cap=CAP, unit="person"))

    def open(self, **rest: str) -> Ledger:
        return Ledger(self.path, principal="ada", **rest)  # type: ignore[arg-type]

    def do(self, action: Callable[[Ledger], object]) -> object:
        with self.open() as ledger:
            return action(ledger)

    def cohort(self, ledger: Ledger) -> Population:
        return ledger.population("cohort")

    def release(self, *keys: str, mu: str = "0.1") -> None:
        def draw(key: str) -> Callable[[Receipt], bytes]:
            def work(receipt: Receipt) -> bytes:
                self.receipts[key] = receipt
                return os.urandom(8)

            return work

        self.do(lambda ledger: [self.cohort(ledger).settle(order(key, mu), draw(key)) for key in keys])

    def back_up(self, name: str = "backup") -> None:
        """Copy the database, as a backup does that knows how to."""
        with sqlite3.connect(self.path) as here, sqlite3.connect(self.folder / name) as there:
            here.backup(there)
        here.close()
        there.close()

    def put_back(self, name: str = "backup") -> None:
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        shutil.copyfile(self.folder / name, self.path)

    def alone(self, *keys: str, mu: str = "0.1") -> None:
        """Spend from the database as it is, beside a witness that is an empty copy: what a fork of histories is."""
        witness, kept = pathlib.Path(f"{self.path}.witness"), self.folder / "kept"
        witness.rename(kept)
        with sqlite3.connect(self.path) as base:
            rows = base.execute("select seq, kind, population, once, body, prev, hash from entries order by seq")
            witness.write_text("".join(Entry(*row).line() + "\n" for row in rows))
        base.close()
        self.release(*keys, mu=mu)
        kept.replace(witness)


@pytest.fixture
def study(tmp_path: pathlib.Path) -> Study:
    return Study(tmp_path)


def total(ledger: Ledger) -> Fraction:
    """What is spent of the cohort, exactly; after an audit that finds nothing."""
    found = ledger.audit()
    assert found.ok, found.faults
    account = found.populations["cohort"]
    assert ledger.population("cohort").spent == account.spent
    return account.total[0]


def kinds(ledger: Ledger) -> list[str]:
    return [entry.facts["kind"] if entry.kind == "recovered" else entry.kind for entry in ledger.entries()]


def test_yesterdays_file_is_refused_and_reconciled(study: Study) -> None:
    study.release("a")
    study.back_up()
    study.release("b", "c")
    study.put_back()
    with pytest.raises(LedgerError, match=r"has entry 11 \(drawn\), and the database does not.*reconcile="):
        study.open()
    with study.open(reconcile="Tuesday's backup") as ledger:
        assert ledger.reconciled is not None
        assert (ledger.reconciled.common, ledger.reconciled.own, ledger.reconciled.over) == (5, 0, ())
        assert "Recovered from the witness: 6 entries, 2 spends among them" in repr(ledger.reconciled)
        cohort = study.cohort(ledger)
        assert total(ledger) == Fraction(3, 100)
        assert kinds(ledger)[5:] == ["spend", "note", "note"] * 2
        assert all(entry.facts["reason"] == "Tuesday's backup" for entry in list(ledger.entries())[5:])
        assert cohort.known(order("a")) is not None
        for key in "bc":
            with pytest.raises(ReleaseLostError, match=f"'{key}'"):
                cohort.settle(order(key), never)
            with pytest.raises(InvalidArgumentError, match="stands for another request"):
                cohort.settle(order(key, statistic="variance"), never)
            assert cohort.status(key) == "lost"
            assert ledger.verify(study.receipts[key]) == []
        assert ledger.audit().ok
        assert ledger.audit().populations["cohort"].recovered == 2
        assert [line.state for line in ledger.history().releases] == ["released", "lost", "lost"]
    study.release("d")
    with study.open() as ledger:
        assert ledger.audit().ok


def test_reconciling_again_changes_nothing(study: Study) -> None:
    study.release("a", "b")
    with study.open() as ledger:
        before = list(ledger.entries())
        assert ledger.reconciled is None
        assert ledger.reconcile("nothing is wrong").recovered == ()
        assert "nothing was to be recovered" in repr(ledger.reconcile("again"))
        assert list(ledger.entries()) == before
    study.back_up()
    study.release("c")
    study.put_back()
    with study.open(reconcile="put back") as ledger:
        before = list(ledger.entries())
        assert ledger.reconcile("again").recovered == ()
        assert list(ledger.entries()) == before


@pytest.mark.parametrize("cut", [0, 200, 1500])
def test_a_reconciliation_that_is_cut_short_is_done_again(study: Study, cut: int) -> None:
    study.release("a")
    study.back_up()
    study.release("b", "c")
    study.put_back()
    witness = pathlib.Path(f"{study.path}.witness")
    before = witness.read_bytes()
    study.open(reconcile="put back").close()
    after = witness.read_bytes()
    assert after.startswith(before)
    witness.write_bytes(after[: len(before) + cut])  # committed, and then the power went
    with study.open(reconcile="put back") as ledger:
        assert witness.read_bytes() == after
        assert total(ledger) == Fraction(3, 100)


def test_a_release_whose_draw_was_forgotten_is_not_drawn_again(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup between the spend and the draw: the spend looks queued, or begun, and was answered."""
    with study.open() as ledger:
        witnessed, names = ledger.witnessed, iter(["before", "queued", "begun", "drawn"])

        def tell_and_copy() -> None:
            witnessed()
            study.back_up(next(names))

        monkeypatch.setattr(ledger, "witnessed", tell_and_copy)
        study.cohort(ledger).settle(order("a"), lambda receipt: b"drawn")
    kept = pathlib.Path(f"{study.path}.witness").read_bytes()
    for name, found in (("queued", ["spend", "lost", "note"]), ("begun", ["spend", "started", "lost"])):
        study.put_back(name)
        pathlib.Path(f"{study.path}.witness").write_bytes(kept)
        with pytest.raises(LedgerError, match="and the database does not"):
            study.open()
        with study.open(reconcile="put back") as ledger:
            cohort = study.cohort(ledger)
            assert kinds(ledger)[2:] == found
            with pytest.raises(ReleaseLostError):
                cohort.settle(order("a"), never)
            assert total(ledger) == Fraction(1, 100)
            assert [line.state for line in ledger.history().releases] == ["lost"]


def test_what_is_recovered_may_exceed_the_cap_and_then_nothing_is_left(study: Study) -> None:
    study.back_up()
    study.release("a", mu="0.8")
    study.put_back()
    study.alone(*"bcdefgh", mu="0.3")
    with study.open(reconcile="two histories") as ledger:
        cohort = study.cohort(ledger)
        assert cohort.remaining is None
        assert total(ledger) == Fraction(64 + 63, 100)
        assert ledger.reconciled is not None
        assert "More than the cap of 'cohort' is spent now" in repr(ledger.reconciled)
        assert ledger.audit().populations["cohort"].over
        with pytest.raises(BudgetError, match="has left, nothing"):
            cohort.settle(order("one more", "0.001"), never)


def test_two_histories_both_count(study: Study) -> None:
    study.release("common")
    study.back_up()
    study.release("a", "b")
    study.put_back()
    study.alone("b", "c")  # the same key as the other history, and another one
    with pytest.raises(LedgerError, match="has another entry"):
        study.open()
    receipts = dict(study.receipts)
    with study.open(reconcile="a copy was spent from") as ledger:
        cohort = study.cohort(ledger)
        assert total(ledger) == Fraction(5, 100)
        assert cohort.known(order("b")) is not None  # the database's own
        assert cohort.known(order("c")) is not None
        assert cohort.status("a") == "lost"
        account = ledger.audit().populations["cohort"]
        assert (account.spends, account.recovered) == (5, 2)
        assert all(ledger.verify(receipt) == [] for receipt in receipts.values())
        ledger.export(study.folder / "export.jsonl")
    assert verify_export(study.folder / "export.jsonl").ok


def test_two_draws_for_one_payment_are_both_paid_for(study: Study) -> None:
    """Nothing of the library does this: a witness was put aside, and a copy of the database drew what was paid for."""
    study.back_up("before")
    study.release("a")
    witness = pathlib.Path(f"{study.path}.witness")
    lines = witness.read_text().splitlines(keepends=True)
    spend = Entry.from_line(lines[2].rstrip())
    study.put_back("before")
    witness.write_text("".join(lines[:2]))
    with study.open() as ledger:
        ledger.write(lambda writer: writer.append("spend", "cohort", spend.once, **spend.facts))
        assert study.cohort(ledger).settle(order("a"), lambda receipt: b"two") == b"two"
        assert list(ledger.entries())[2] == spend
    witness.write_text("".join(lines))
    with study.open(reconcile="a copy") as ledger:
        assert kinds(ledger)[-2:] == ["note", "spend"]
        assert total(ledger) == Fraction(2, 100)
        assert study.cohort(ledger).settle(order("a"), never) == b"two"


def test_recovered_once_and_forgotten_again_counts_once(study: Study) -> None:
    study.release("a")
    study.back_up("one")
    study.release("b")
    study.back_up("two")
    study.put_back("one")
    study.open(reconcile="first").close()
    study.put_back("one")  # the same backup again: the recovered entries are forgotten too
    with study.open(reconcile="second") as ledger:
        assert total(ledger) == Fraction(2, 100)
        assert study.cohort(ledger).status("b") == "lost"
        assert ledger.verify(study.receipts["b"]) == []
        last = next(entry for entry in ledger.entries() if entry.kind == "recovered")
        assert [lost.kind for lost in last.stood_for()] == ["recovered", "spend"]
    study.put_back("two")  # and one that has what was recovered, as it was
    with study.open(reconcile="third") as ledger:
        assert total(ledger) == Fraction(2, 100)
        assert study.cohort(ledger).known(order("b")) is not None


def test_caps_grants_populations_and_data_sets_come_back(study: Study) -> None:
    study.back_up()

    def change(ledger: Ledger) -> None:
        cohort = study.cohort(ledger)
        cohort.raise_cap(GDP("2"), "more people")
        cohort.grant("ada", GDP("1.5"), "her thesis")
        ledger.population("others", cap=PureDP("1"), unit="household")
        cohort.registered_as(lambda: [b"content"], {"n": 5, "unit": "person"}, "eeg")

    study.do(change)
    study.put_back()
    with study.open(reconcile="put back") as ledger:
        cohort = study.cohort(ledger)
        assert cohort.privacy == GDP("2")
        assert [(grant.principal, grant.granted) for grant in cohort.grants()] == [("ada", GDP("1.5"))]
        assert [population.name for population in ledger.populations()] == ["cohort", "others"]
        assert ledger.population("others").privacy == PureDP("1")
        before = len(list(ledger.entries()))
        cohort.registered_as(lambda: [b"content"], {"n": 5, "unit": "person"}, "eeg")
        assert len(list(ledger.entries())) == before
        assert ledger.audit().ok


def test_what_the_database_decided_itself_stays_in_force(study: Study) -> None:
    study.back_up()
    study.do(lambda ledger: study.cohort(ledger).raise_cap(GDP("5"), "there"))
    study.do(lambda ledger: ledger.population("others", cap=PureDP("1"), unit="household"))
    with study.open() as ledger:
        ledger.population("others").settle(Order(PureDP("0.5"), "x", "k", {}), lambda receipt: b"")
    study.put_back()
    witness, kept = pathlib.Path(f"{study.path}.witness"), study.folder / "kept"
    witness.rename(kept)
    witness.write_text("".join(kept.read_text().splitlines(keepends=True)[:2]))
    study.do(lambda ledger: study.cohort(ledger).raise_cap(GDP("2"), "here"))
    study.do(lambda ledger: ledger.population("others", cap=GDP("0.25"), unit="household"))
    kept.replace(witness)
    with study.open(reconcile="two histories") as ledger:
        assert study.cohort(ledger).privacy == GDP("2")
        others = ledger.population("others")
        assert others.privacy == GDP("0.25")
        found = ledger.audit()
        assert found.ok, found.faults
        assert others.remaining is None  # a promise of PureDP(0.5) is more than this cap


def test_an_edited_witness_is_not_reconciled_with(study: Study) -> None:
    study.release("a")
    witness = pathlib.Path(f"{study.path}.witness")
    lines = witness.read_text().splitlines(keepends=True)
    for edited in ([*lines[:2], lines[2].replace("mean", "sum"), *lines[3:]], [*lines[:2], *lines[3:]]):
        witness.write_text("".join(edited))
        with pytest.raises(LedgerError, match="line 3 that"):
            study.open(reconcile="what if")
    witness.write_text("")
    with pytest.raises(LedgerError, match="is empty"):
        study.open(reconcile="what if")


def test_an_export_serves_as_the_witness_that_was_lost(study: Study) -> None:
    study.release("a", "b")
    study.do(lambda ledger: ledger.export(study.folder / "export.jsonl"))
    study.release("c")
    witness = pathlib.Path(f"{study.path}.witness")
    witness.write_text("".join((study.folder / "export.jsonl").read_text().splitlines(keepends=True)[1:]))
    with study.open() as ledger:
        assert ledger.audit().ok
        assert len(list(ledger.witness.lines())) == len(list(ledger.entries()))


def test_on_a_server(cluster: Any, tmp_path: pathlib.Path) -> None:
    """What a server has forgotten: its last entries are taken away by whoever may do everything."""
    schema = cluster.new_schema()
    places = {"witness": tmp_path / "study.witness"}
    Ledger.create(cluster.address("owner", schema), writer="writer", principal="steward", **places).close()
    address = cluster.address("writer", schema)
    with Ledger(address, principal="ada") as ledger:
        cohort = ledger.population("cohort", cap=CAP, unit="person")
        for key in "abc":
            cohort.settle(order(key), lambda receipt: b"drawn")
        assert total(ledger) == Fraction(3, 100)
        ledger.export(tmp_path / "export.jsonl")
    assert verify_export(tmp_path / "export.jsonl").ok
    cluster.sql(
        f"SET session_replication_role = replica; DELETE FROM {schema}.results WHERE seq > 6; "
        f"DELETE FROM {schema}.entries WHERE seq > 6"  # the payment of b is there, and not that it was begun
    )
    with pytest.raises(LedgerError, match=r"has entry 11 \(drawn\), and the database does not"):
        Ledger(address, principal="ada")
    with Ledger(address, principal="ada", reconcile="taken away") as ledger:
        assert kinds(ledger)[6:] == ["lost", "note", "spend", "note", "note"]
        assert total(ledger) == Fraction(3, 100)
        cohort = ledger.population("cohort")
        assert cohort.settle(order("a"), never) == b"drawn"
        for key in "bc":
            with pytest.raises(ReleaseLostError):
                cohort.settle(order(key), never)
        cohort.settle(order("d"), lambda receipt: b"drawn")
        assert total(ledger) == Fraction(4, 100)
    cluster.sql(f"SET session_replication_role = replica; UPDATE {schema}.entries SET subject = 'x' WHERE seq = 3")
    with Ledger(address, principal="ada") as ledger:
        assert ledger.audit().faults == ("entry 3 (spend) is filed under what it does not say.",)


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_count_every_spend_once(study: Study, seed: int) -> None:
    """Releases, backups, old files put back, copies that were spent from: what was ever paid for is in the total."""
    choose = random.Random(seed)
    study.do(lambda ledger: study.cohort(ledger).raise_cap(GDP("100"), "room"))
    backups, made = ["0"], 0
    study.back_up("0")
    for step in range(1, 15):
        what = choose.choice(["release", "release", "back up", "put back", "part"])
        keys = [f"{step}-{number}" for number in range(choose.randint(1, 3))]
        if what == "release":
            study.release(*keys)
            made += len(keys)
        elif what == "back up":
            backups.append(str(step))
            study.back_up(str(step))
        else:
            study.put_back(choose.choice(backups))
            if what == "part":
                study.alone(*keys)
                made += len(keys)
            for _ in range(choose.randint(1, 2)):
                study.open(reconcile=f"step {step}").close()
    with study.open(reconcile="the end") as ledger:
        assert total(ledger) == Fraction(made, 100)
        assert all(ledger.verify(receipt) == [] for receipt in study.receipts.values())
        states = {key: study.cohort(ledger).status(key) for key in study.receipts}
        assert set(states.values()) <= {"released", "lost"}
