"""A ledger from the outside: populations, spends, keys, grants, data sets; and what its tables refuse."""

import contextlib
import copy
import functools
import multiprocessing
import os
import pickle
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import warnings

import pytest

from dpmanifold import GDP, ApproxDP, BudgetError, InvalidArgumentError, LedgerError, PureDP, ReleaseLostError
from dpmanifold.ledger import Ledger
from dpmanifold.privacy.budget_accounts import Order
from ledger_orders import kinds, never, order
from ledger_seen import chain_faults

pytestmark = pytest.mark.security

# ------------------------------------------------------------------------------------------- spends and keys


def test_an_order_is_paid_for_begun_and_kept(ledger, cohort):
    receipts = []
    answer = cohort.settle(order("k"), lambda receipt: receipts.append(receipt) or b"answer")
    assert answer == b"answer"
    assert kinds(ledger) == ["created", "population", "spend", "started", "drawn"]
    (receipt,) = receipts
    assert (receipt.ledger, receipt.sequence, receipt.population) == (ledger.id, 3, "cohort")
    assert receipt.promise == GDP(0.125) == cohort.spent
    spend = next(entry for entry in ledger.entries() if entry.kind == "spend")
    assert (spend.seq, spend.hash) == (receipt.sequence, receipt.hash)
    assert spend.facts["datasets"] == ["dti@1"]
    assert chain_faults(ledger) == []


def test_the_same_key_and_request_gives_the_same_bytes_and_spends_nothing(ledger, cohort):
    first = cohort.settle(order("k"), lambda receipt: os.urandom(20))
    before = kinds(ledger)
    assert cohort.settle(order("k"), never) == first == cohort.known(order("k"))
    assert kinds(ledger) == before


def test_another_request_under_a_key_is_refused(ledger, cohort):
    cohort.settle(order("k"), lambda receipt: b"")
    for ask in (cohort.known, lambda other: cohort.settle(other, never)):
        with pytest.raises(InvalidArgumentError, match="stands for another request"):
            ask(order("k", statistic="variance"))


def test_keys_belong_to_a_principal_and_a_population(ledger, cohort):
    other = ledger.population("others", cap=GDP(1.0), unit="participant")
    answers = [
        account.settle(order("k"), lambda receipt, number=number: bytes([number]))
        for number, account in enumerate((cohort, cohort.as_principal("bob"), other))
    ]
    assert answers == [b"\0", b"\1", b"\2"]


def test_what_exceeds_the_cap_is_refused_and_binds_no_key(ledger, cohort):
    before = kinds(ledger)
    with pytest.raises(BudgetError, match="more than the population 'cohort' has left"):
        cohort.settle(order("k", GDP(1.5)), never)
    assert kinds(ledger) == before
    assert cohort.status("k") is None
    assert cohort.settle(order("k", GDP(1.0)), lambda receipt: b"all") == b"all"
    assert cohort.remaining is None


def test_sixteen_quarters_fill_a_gaussian_cap_and_the_next_is_refused(ledger, cohort):
    for number in range(16):
        cohort.settle(order(f"k{number}", GDP(0.25)), lambda receipt: b"")
    assert (cohort.spent, cohort.remaining) == (GDP(1.0), None)
    with pytest.raises(BudgetError):
        cohort.settle(order("one more", GDP(1e-9)), never)


def test_work_that_fails_loses_the_answer_and_not_the_spend(ledger, cohort):
    def fail(receipt):
        raise ValueError("record 17 is not positive definite")

    with pytest.raises(ReleaseLostError, match="'k'") as caught:
        cohort.settle(order("k"), fail)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "17" not in str(caught.value)
    assert kinds(ledger)[-3:] == ["spend", "started", "lost"]
    for ask in (cohort.known, lambda same: cohort.settle(same, never)):
        with pytest.raises(ReleaseLostError, match="'k'"):
            ask(order("k"))
    assert cohort.status("k") == "lost"
    assert cohort.spent == GDP(0.125)


def test_an_interruption_loses_the_answer_and_is_passed_on(ledger, cohort):
    def interrupt(receipt):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cohort.settle(order("k"), interrupt)
    assert cohort.status("k") == "lost"


def test_an_owner_that_comes_late_discards_its_draw(ledger, cohort):
    """Somebody takes the attempt for dead while it is at work: here its lock is let go of under its hands."""

    def late(receipt):
        for held in list(holds):
            held.release()
        with pytest.raises(ReleaseLostError):
            cohort.settle(order("k"), never)
        return b"late"

    holds = []
    hold = ledger.store.hold
    ledger.store.hold = lambda token: holds.append(hold(token)) or holds[-1]
    with pytest.raises(ReleaseLostError):
        cohort.settle(order("k"), late)
    assert kinds(ledger).count("drawn") == 0
    assert kinds(ledger).count("lost") == 1


def test_a_waiter_gets_the_bytes_of_whoever_is_at_work(ledger, cohort):
    begun, go_on = threading.Event(), threading.Event()

    def slow(receipt):
        begun.set()
        go_on.wait(10)
        return b"slow"

    answers = []
    first = threading.Thread(target=lambda: answers.append(cohort.settle(order("k"), slow)))
    second = threading.Thread(target=lambda: answers.append(cohort.settle(order("k"), never)))
    first.start()
    begun.wait(10)
    assert cohort.status("k") == "started"
    assert cohort.known(order("k")) is None
    second.start()
    time.sleep(0.05)
    assert answers == []
    go_on.set()
    first.join(10)
    second.join(10)
    assert answers == [b"slow", b"slow"]


def test_a_spend_that_nobody_began_is_begun_by_whoever_asks_again(ledger, cohort, monkeypatch):
    """The process ends, or the witness's disk is full, right after the commit of the spend."""
    witnessed = type(ledger).witnessed
    calls = []

    def full(self):
        calls.append(1)
        if len(calls) == 2:  # the first is before the spend
            raise LedgerError("the witness cannot be written: No space left on device.")
        witnessed(self)

    monkeypatch.setattr(type(ledger), "witnessed", full)
    with pytest.raises(LedgerError, match="paid for under key 'k'"):
        cohort.settle(order("k"), never)
    assert cohort.status("k") == "spent"
    assert cohort.settle(order("k"), lambda receipt: b"at last") == b"at last"
    assert kinds(ledger).count("spend") == 1


def test_a_lock_that_cannot_be_had_is_found_out_before_the_spend(ledger, cohort, monkeypatch):
    def full(token):
        raise LedgerError("no attempt can be begun: Permission denied.")

    with monkeypatch.context() as patch:
        patch.setattr(ledger.store, "hold", full)
        with pytest.raises(LedgerError, match="Permission denied"):
            cohort.settle(order("k"), never)
    assert cohort.status("k") is cohort.spent is None
    assert cohort.settle(order("k"), lambda receipt: b"now") == b"now"


# ------------------------------------------------------------------------------------- populations and grants


def test_a_population_is_made_once_and_keeps_its_cap_and_unit(ledger, cohort):
    assert ledger.population("cohort") == ledger.population("cohort", cap=GDP(1.0), unit="participant") == cohort
    for wrong in ({"cap": GDP(2.0)}, {"unit": "scan"}, {"cap": PureDP(1.0)}):
        with pytest.raises(InvalidArgumentError, match="cohort"):
            ledger.population("cohort", **wrong)
    with pytest.raises(InvalidArgumentError, match="no population 'other'"):
        ledger.population("other")
    assert [population.name for population in ledger.populations()] == ["cohort"]
    assert kinds(ledger).count("population") == 1


def test_names_that_could_be_mistaken_are_refused(ledger):
    for name in ("a:b", "", " a", "a\n", 7, "x" * 201):
        with pytest.raises(InvalidArgumentError, match="name"):
            ledger.population(name, cap=GDP(1.0), unit="participant")


def test_a_cap_is_raised_with_a_reason_and_never_lowered(ledger, cohort):
    cohort.settle(order("k", GDP(1.0)), lambda receipt: b"")
    cohort.raise_cap(GDP(2.0), "the second wave was recruited")
    assert cohort.cap == GDP(2.0) == ledger.population("cohort", cap=GDP(2.0)).cap
    assert cohort.spent == GDP(1.0)
    cohort.settle(order("k2", GDP(1.0)), lambda receipt: b"")
    for wrong in (GDP(2.0), GDP(1.0), PureDP(9.0)):
        with pytest.raises(InvalidArgumentError, match="cap must be"):
            cohort.raise_cap(wrong, "because")
    with pytest.raises(InvalidArgumentError, match="reason"):
        cohort.raise_cap(GDP(3.0), "")


def test_grants_bound_each_principal_and_the_cap_bounds_all(ledger, cohort):
    bob, eve = cohort.as_principal("bob"), cohort.as_principal("eve")
    cohort.grant("bob", GDP(0.75))
    cohort.grant("ada", GDP(0.875), "the thesis")
    assert eve.remaining is None
    with pytest.raises(BudgetError, match="'eve' has no grant"):
        eve.settle(order("k"), never)
    bob.settle(order("k", GDP(0.75)), lambda receipt: b"")
    with pytest.raises(BudgetError, match="grant of 'bob'"):
        bob.settle(order("k2"), never)
    assert cohort.remaining.mu == pytest.approx((1 - 0.75**2) ** 0.5, rel=1e-15)  # the cap, not the grant
    with pytest.raises(BudgetError, match="population 'cohort'"):
        cohort.settle(order("k", GDP(0.875)), never)
    assert {(grant.principal, grant.granted, grant.spent) for grant in cohort.grants()} == {
        ("bob", GDP(0.75), GDP(0.75)),
        ("ada", GDP(0.875), None),
    }


def test_a_new_grant_takes_the_place_of_the_old_one(ledger, cohort):
    cohort.grant("ada", GDP(0.25))
    cohort.settle(order("k", GDP(0.25)), lambda receipt: b"")
    cohort.grant("ada", GDP(0.5))
    cohort.settle(order("k2", GDP(0.25)), lambda receipt: b"")
    with pytest.raises(InvalidArgumentError, match="kind of the cap"):
        cohort.grant("ada", PureDP(1.0))


def test_approximate_caps_add_both_parts(ledger):
    people = ledger.population("people", cap=ApproxDP(1.0, 2**-20), unit="person")
    people.settle(order("k", ApproxDP(0.5, 2**-20)), lambda receipt: b"")
    assert people.remaining == PureDP(0.5)
    with pytest.raises(BudgetError):
        people.settle(order("k2", ApproxDP(0.25, 2**-30)), never)
    people.settle(order("k2", PureDP(0.5)), lambda receipt: b"")


# ------------------------------------------------------------------------------------------------- data sets

FACTS = {"space": "SPD(3)", "n": 40, "unit": "participant"}


def test_data_are_recognised_by_content_and_facts(ledger, cohort):
    def asked(key, content, facts=FACTS):
        data = cohort.marked(lambda: content, facts)
        cohort.settle(Order(GDP("0.1"), "mean", key, {"data": [data.id]}, (data,)), lambda receipt: b"")
        return data.id

    first = asked("a", [b"some", b"bytes"])
    assert cohort.marked(lambda: [b"some", b"bytes"], FACTS).new is None
    assert asked("b", [b"somebytes"]) == first
    assert asked("c", [b"other"]) != first
    assert asked("d", [b"somebytes"], {**FACTS, "n": 41}) != first
    assert kinds(ledger).count("dataset") == 3
    found = cohort.datasets()[0]
    assert (found.id, found.n, found.unit, found.space) == (first, 40, "participant", "SPD(3)")


def test_another_key_is_not_taken_for_the_ledgers(ledger_url, ledger, cohort, tmp_path):
    other = tmp_path / "other.key"
    other.write_bytes(bytes(32))
    other.chmod(0o600)
    with Ledger(ledger_url, secret=other, principal="ada") as wrong, pytest.raises(LedgerError, match="not the one"):
        wrong.population("cohort").marked(lambda: [b""], FACTS)


# ---------------------------------------------------------------------------- history, opening, copies, forks


def test_history_comes_in_pages_with_the_state_of_each_release(ledger, cohort):
    for number in range(5):
        cohort.settle(order(f"k{number}"), lambda receipt: b"")
    pages, after = [], 0
    while after is not None:
        page = ledger.history(after=after, limit=4)
        assert len(page) <= 4
        pages.append(page)
        after = page.next
    assert [entry.seq for page in pages for entry in page] == list(range(1, 18))
    assert [line.state for page in pages for line in page.releases] == ["released"] * 5
    assert len(cohort.history(limit=100)) == 16
    for wrong in ({"after": -1}, {"limit": 0}, {"after": True}):
        with pytest.raises(InvalidArgumentError):
            ledger.history(**wrong)


def test_the_history_of_a_population_that_is_not_there_is_refused(ledger, cohort):
    ledger.population("twins", cap=GDP(1.0), unit="participant")
    with pytest.raises(InvalidArgumentError, match=r"ledger's \(cohort, twins\) or None, got 'cohrot'"):
        ledger.history("cohrot")


def test_a_change_that_the_witness_cannot_learn_of_is_refused(ledger, cohort):
    path = ledger.witness.path
    path.rename(path.with_suffix(".away"))
    with pytest.raises(LedgerError, match="is missing"):
        cohort.grant("bob", GDP(0.5))
    assert kinds(ledger) == ["created", "population"]
    path.with_suffix(".away").rename(path)


def test_a_change_that_the_witness_did_not_learn_of_stands(ledger, cohort, monkeypatch):
    path, write = ledger.witness.path, Ledger.write

    def written(self, action):
        value = write(self, action)
        path.rename(path.with_suffix(".away"))
        return value

    monkeypatch.setattr(Ledger, "write", written)
    with pytest.raises(LedgerError, match=r"is missing.* in the database and stands"):
        cohort.grant("bob", GDP(0.5))
    path.with_suffix(".away").rename(path)
    assert kinds(ledger)[-1] == "grant"


def test_a_ledger_is_opened_again_as_it_was(ledger_url, ledger, cohort):
    cohort.settle(order("k"), lambda receipt: b"kept")
    with Ledger.open(ledger_url, principal="ada") as again:
        assert again.id == ledger.id
        assert again.population("cohort").settle(order("k"), never) == b"kept"


def test_copies_are_itself_and_pickles_open_it_again(ledger, cohort):
    assert copy.copy(cohort) is copy.deepcopy(cohort) is cohort
    assert copy.deepcopy(ledger) is ledger
    again = pickle.loads(pickle.dumps(cohort.as_principal("bob")))
    assert again == cohort.as_principal("bob")
    again.settle(order("k"), lambda receipt: b"")
    assert cohort.spent == GDP(0.125)
    again._ledger.close()


def test_a_pickle_never_starts_a_fresh_budget(tmp_path):
    with Ledger(tmp_path / "study.db") as ledger:
        kept = pickle.dumps(ledger)
    for path in tmp_path.glob("study.db*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(InvalidArgumentError, match="there is no ledger"):
        pickle.loads(kept)
    Ledger(tmp_path / "study.db").close()
    with pytest.raises(LedgerError, match="another ledger"):
        pickle.loads(kept)


def forked(action):
    """Run an action in a forked child, which ends with it, and return the child's number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which wait for this one
        child = os.fork()
    if child:
        return child
    try:
        action()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def test_children_of_a_fork_spend_by_connections_of_their_own(ledger, cohort):
    """Also while another thread of the parent is in the ledger: the fork waits for it."""
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            cohort.spent  # noqa: B018

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        spend = [functools.partial(cohort.settle, order(f"c{number}"), lambda receipt: b"") for number in range(4)]
        children = [forked(action) for action in spend]
        codes = [os.waitpid(child, 0)[1] for child in children]
    finally:
        stop.set()
        thread.join()
    assert codes == [0] * 4
    cohort.settle(order("parent"), lambda receipt: b"")
    assert kinds(ledger).count("drawn") == 5


def test_a_lock_does_not_outlive_its_holder_in_a_forked_child(ledger, cohort):
    """The holder dies at work and leaves a child behind: the next asker is told that the answer is lost."""
    reader, writer = os.pipe()

    def heir():
        time.sleep(60)
        os.write(writer, b"has ended")

    def work(receipt):
        os.write(writer, str(forked(heir)).encode())
        os._exit(0)

    holder = forked(lambda: cohort.settle(order("k"), work))
    assert os.waitpid(holder, 0)[1] == 0
    child = int(os.read(reader, 20))
    try:
        with pytest.raises(ReleaseLostError):
            cohort.settle(order("k"), never)
        assert select.select([reader], [], [], 0)[0] == []  # told while the child is there
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(reader)
        os.close(writer)


# ------------------------------------------------------------------------------------ what the tables refuse


def rows(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


ENTRY = "(seq, kind, population, once, body, prev, hash, sets, subject)"


WRONG = (
    "UPDATE entries SET body = '{}' WHERE seq = 3",
    "DELETE FROM entries WHERE seq = 5",
    "DELETE FROM entries",
    "UPDATE results SET bytes = x'00'",
    "DELETE FROM results",
    f"INSERT OR REPLACE INTO entries {ENTRY} SELECT seq, kind, population, once, '{{}}', prev, hash, sets, subject "
    "FROM entries WHERE seq = 3",
    f"INSERT OR REPLACE INTO entries {ENTRY} SELECT 6, kind, population, once, body, "
    "(SELECT hash FROM entries WHERE seq = 5), hash, sets, subject FROM entries WHERE seq = 3",
    f"INSERT OR REPLACE INTO entries {ENTRY} SELECT 6, kind, population, NULL, body, prev, hash, sets, subject "
    "FROM entries WHERE seq = 3",
    f"INSERT INTO entries {ENTRY} SELECT 7, kind, population, NULL, body, "
    "(SELECT hash FROM entries WHERE seq = 5), hash, sets, subject FROM entries WHERE seq = 3",
    "INSERT OR REPLACE INTO results (seq, bytes) VALUES (5, x'00')",
    "INSERT INTO results (seq, bytes) VALUES (3, x'00')",
)


def test_sqlite_triggers_refuse_what_is_not_appending(tmp_path):
    path = tmp_path / "study.db"
    with Ledger(path, principal="ada") as ledger:
        ledger.population("cohort", cap=GDP(1.0), unit="p").settle(order("k"), lambda receipt: b"bytes")
        before = list(ledger.entries())
        assert len(before) == 5
        for statement in WRONG:
            with pytest.raises(sqlite3.IntegrityError):
                rows(path, statement)
        assert list(ledger.entries()) == before
        assert rows(path, "SELECT bytes FROM results") == [(b"bytes",)]


def test_a_commit_syncs_a_log_that_is_written_ahead(tmp_path):
    with Ledger(tmp_path / "study.db") as ledger, ledger.store.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_what_is_no_ledger_is_refused(tmp_path):
    text, other = tmp_path / "text.db", tmp_path / "other.db"
    text.write_text("these are no tables, and there are more than a hundred characters of it." * 20)
    with contextlib.closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    for path in (text, other):
        with pytest.raises(LedgerError):
            Ledger(path)
    with pytest.raises(InvalidArgumentError, match="there is no ledger"):
        Ledger.open(tmp_path / "mistyped.db")
    assert not (tmp_path / "mistyped.db").exists()
    Ledger.create(tmp_path / "new.db").close()
    with pytest.raises(InvalidArgumentError, match="already"):
        Ledger.create(tmp_path / "new.db")
    with pytest.raises(InvalidArgumentError, match="postgresql://"):
        Ledger("mysql://me:secret@there/ledger")


def test_what_is_no_ledger_is_not_touched(tmp_path):
    """To look whether a file is a ledger must not turn it into one: the log that is written ahead is its property."""
    empty, bare, other = (tmp_path / name for name in ("empty.db", "bare.db", "other?#.db"))
    empty.touch()
    for path, statement in ((bare, "VACUUM"), (other, "CREATE TABLE people (name TEXT)")):
        rows(path, statement)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(map(len, before.values())) == [0, 4096, 8192]
    for path in (empty, bare):
        with pytest.raises(InvalidArgumentError, match="there is no ledger"):
            Ledger.open(path)
    for opened in (Ledger, Ledger.open, Ledger.create):
        with pytest.raises(LedgerError, match="not those of a ledger"):
            opened(other)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_that_a_crash_left_in_the_middle_of_a_write_is_opened(tmp_path):
    """A journal that has to be taken back first, which a look that may not write cannot do."""
    source, path = tmp_path / "source.db", tmp_path / "study.db"
    rows(source, "VACUUM")
    with contextlib.closing(sqlite3.connect(source)) as connection:
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("CREATE TABLE people (name TEXT)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO people VALUES (?)", [("x" * 1000,)] * 100)
        for end in ("", "-journal"):
            shutil.copyfile(f"{source}{end}", f"{path}{end}")
        connection.rollback()
    with pytest.raises(LedgerError, match="not those of a ledger"):
        Ledger.open(path)


def test_a_database_that_was_removed_is_not_a_fresh_budget(tmp_path):
    with Ledger(tmp_path / "study.db") as ledger:
        ledger.population("cohort", cap=GDP(1.0), unit="p")
    for name in ("study.db", "study.db-wal", "study.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(LedgerError, match="is gone"):
        Ledger(tmp_path / "study.db")


def test_importing_the_library_does_not_load_the_ledgers_packages():
    loaded = "import sys, dpmanifold; sys.exit(any(name in sys.modules for name in ('sqlalchemy', 'psycopg')))"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0


def test_processes_started_afresh_share_the_ledger(ledger, cohort):
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.apply(_spend_elsewhere, (cohort,)) == b"elsewhere"
    assert cohort.spent == GDP(0.125)


def _spend_elsewhere(cohort):
    return cohort.settle(order("k"), lambda receipt: b"elsewhere")
