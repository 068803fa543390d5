"""Random programs of spends, grants, raised caps, crashes, retries and restored backups, against a simple model.

A crash is one: the step runs in a forked process that ends, without another instruction, before or after a commit, amid
a line of the witness, or before or after the work. What the process had committed until then comes through a pipe, and
must be the first steps of what the model expects; everything afterwards follows from those.
"""

import json
import os
import pathlib
import shutil
import signal
import tempfile
import warnings
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import dpmanifold.ledger.witness as witness_file
from dpmanifold import GDP, LedgerError, PureDP
from dpmanifold.errors import DPManifoldError
from dpmanifold.ledger import Ledger, reconciling, settling, standing
from dpmanifold.privacy import amounts
from dpmanifold.privacy.amounts import as_promise_down, as_promise_up
from dpmanifold.privacy.budget_accounts import Order
from ledger.model import Fact, Model, cost
from ledger_seen import chain_faults

NAMES = st.sampled_from(["ada", "bob"])
TINY = Fraction(1, 10**12)
KEYS = st.sampled_from(["k1", "k2", "k3", "k4"])
# A double a little above its decimal takes what is left and 1e-17 more: "0.6" and 0.4, for GDP "0.6" and 0.8.
AMOUNTS = st.sampled_from(["0.1", "0.3", "0.5", "0.6", 0.1, 0.3, 0.4, 0.8])
POINTS = st.none() | st.integers(0, 20)
FAILS = st.sampled_from([False, False, False, True])


class Files:
    """A ledger in a file, and backups of it."""

    def __init__(self):
        memory = pathlib.Path("/dev/shm")  # syncing takes no time there
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.where = self.folder / "study.db"
        self.witness = self.folder / "study.db.witness"

    def backup(self):
        """Copy the file and what is written ahead of it: nobody writes meanwhile."""
        return [(path, path.read_bytes()) for path in self._files("", "-wal")]

    def restore(self, content):
        for path in self._files("", "-wal", "-shm"):
            path.unlink()
        for path, found in content:
            path.write_bytes(found)

    def _files(self, *endings):
        paths = (self.folder / f"study.db{ending}" for ending in endings)
        return [path for path in paths if path.exists()]

    def remove(self):
        shutil.rmtree(self.folder)


class Tables:
    """A ledger in a schema of a PostgreSQL server, and backups of its tables."""

    server = None

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.witness = self.folder / "witness"
        self.schema = self.server.new_schema()
        self.where = self.server.address("writer", self.schema)
        owner = self.server.address("owner", self.schema)
        Ledger.create(owner, witness=self.witness, writer="writer", principal="steward").close()

    def backup(self):
        return [(table, self._sql(f"SELECT * FROM {table} ORDER BY seq")) for table in ("entries", "results")]

    def restore(self, content):
        """Put the rows back as a superuser can, whom no trigger stops."""
        quietly = "SET session_replication_role = replica"
        for table, rows in content:
            self._sql(f"DELETE FROM {table}", first=quietly)
            for row in rows:
                self._sql(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row, first=quietly)

    def remove(self):
        self._sql(f"DROP SCHEMA {self.schema} CASCADE")
        shutil.rmtree(self.folder)

    def _sql(self, statement, values=None, first="SELECT 1"):
        import psycopg

        with psycopg.connect(self.server.address("postgres", self.schema)) as connection:
            connection.execute(first)
            done = connection.execute(statement, values)
            return done.fetchall() if done.description else []


class Watched:
    """A ledger whose commits and work are told, and which ends its process at a given point."""

    def __init__(self, ledger, tell, point=lambda: None):
        self._ledger, self._tell, self._point = ledger, tell, point
        self._write, self._append = ledger.store.write, witness_file._write
        self._shares = witness_file

    def __enter__(self):
        self._ledger.store.write = self._commit
        self._shares._write = self._torn
        return self

    def __exit__(self, *problem):
        del self._ledger.store.write
        self._shares._write = self._append

    def _commit(self, ledger, action):
        writers = []

        def acted(writer):
            writers.append(writer)
            value = action(writer)
            self._point()
            return value

        value = self._write(ledger, acted)
        for entry in writers[0].appended:
            self._tell("commit", entry.kind)
        self._point()
        return value

    def _torn(self, handle, content):
        half = len(content) // 2
        self._point()
        self._append(handle, content[:half])
        self._point()
        self._append(handle, content[half:])
        self._point()

    def work(self, content, fails):
        def work(receipt):
            self._point()
            lines = self._ledger.witness.path.read_text(encoding="ascii").splitlines()
            spend = [line for line in lines if receipt.hash in line]
            self._tell("work", receipt.sequence, len(spend) >= 1 and '"started"' in lines[-1])
            if fails:
                raise ValueError("a record that is none")
            self._point()
            return content

        return work


class Programs(RuleBasedStateMachine):
    """Programs of one population, by two people."""

    Site = Files

    def __init__(self):
        super().__init__()
        self.site = self.Site()
        self.ledger = None
        self.backups = []
        self.worked = set()
        self.asked, self.drawn = [], {}
        self.count = 0

    @initialize(kind=st.sampled_from([GDP, PureDP]))
    def begin(self, kind):
        self.kind = kind
        self.model = Model(kind("1"))
        self.ledger = Ledger(self.site.where, principal="ada")  # made here, or before
        self.ledger.population("cohort", cap=kind("1"), unit="participant")
        self.before = self._length() - len(self.model.database)
        self._backup()

    # ------------------------------------------------------------------------------- what may happen

    @rule(who=NAMES, key=KEYS, request=st.sampled_from("xxxy"), amount=AMOUNTS, fails=FAILS, crash=POINTS)
    def ask(self, who, key, request, amount, fails, crash):
        self.asked.append((who, key, request, amount))
        self._ask(who, key, request, amount, fails, crash)

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), fails=FAILS, crash=POINTS)
    def ask_again(self, data, fails, crash):
        self._ask(*data.draw(st.sampled_from(self.asked)), fails, crash)

    @rule(who=NAMES, amount=AMOUNTS, crash=POINTS)
    def grant(self, who, amount, crash):
        promise = self.kind(amount)

        def give(watched, ledger):
            ledger.population("cohort").grant(who, promise, "asked for")

        self._open()
        self._do(give, [Fact("grant", who, promise=promise)], None, crash)

    @rule(amount=st.sampled_from(["1.1", "1.5", "0.9"]), crash=POINTS)
    def raise_cap(self, amount, crash):
        promise = self.kind(amount)

        def lift(watched, ledger):
            ledger.population("cohort").raise_cap(promise, "another year")

        self._open()
        more = cost(promise) > cost(self.model.state().cap)
        expected = ([Fact("cap", promise=promise)], None) if more else ([], "InvalidArgumentError")
        self._do(lift, *expected, crash)

    @rule(back=st.integers(1, 6))
    def restore(self, back):
        """Put back one of the last backups; or the first, where there are not so many."""
        self._close()
        content, lines, self.before = self.backups[-min(back, len(self.backups))]
        self.site.restore(content)
        self.model.database = list(lines)

    # ------------------------------------------------------------------------------- what must hold

    def _compare(self):
        state = self.model.state()
        cap = state.cap
        cohort = self.ledger.population("cohort")
        assert cohort.cap == cap
        assert {grant.principal: grant.granted for grant in cohort.grants()} == state.grants
        assert cohort.spent == as_promise_up(cap, (state.total,))
        for who in ("ada", "bob"):
            left = cost(cap) - state.total
            if state.grants:
                left = min(left, cost(state.grants[who]) - state.mine[who] if who in state.grants else 0)
            account = cohort.as_principal(who)
            assert account.remaining == as_promise_down(cap, (max(left, 0),))
            for key in {key for name, key, _, _ in self.asked if name == who}:
                paid = state.paid.get((who, key))
                # Nobody is at work while this looks: what was begun and has no outcome is lost.
                wanted = None if paid is None else {"started": "lost"}.get(paid.state, paid.state)
                assert account.status(key) == wanted
        entries = list(self.ledger.entries())
        assert chain_faults(self.ledger) == []
        assert self.ledger.witness.last() in entries

    def teardown(self):
        try:
            if hasattr(self, "model"):
                self._open()
                audit = self.ledger.audit()
                assert audit.ok, audit
        finally:
            self._close()
            self.site.remove()

    # ------------------------------------------------------------------------------- how it is done

    def _do(self, action, steps, answer, crash):
        """Do something, perhaps until a crash, and compare what was committed and what came back."""
        done = self._here(action) if crash is None else self._elsewhere(action, crash)
        committed = [words[1] for words in done if words[0] == "commit"]
        assert committed == [step.kind for step in steps[: len(committed)]]
        for _, sequence, known in (words for words in done if words[0] == "work"):
            assert known, "the work was begun before the witness had it"
            assert sequence not in self.worked, "one payment, two draws"
            self.worked.add(sequence)
        self.model.happen(steps[: len(committed)])
        ends = [words[1] for words in done if words[0] == "answer"]
        self.model.witness(self._witnessed() - self.before)
        if not ends:
            self._close()
            return None
        assert committed == [step.kind for step in steps]
        (found,) = ends
        found = found.encode() if isinstance(answer, bytes) and found is not None else found
        assert found == answer
        if answer != "ReleaseLostError":  # that somebody else's attempt is dead may be written down later
            assert self.model.remembered[-1] is self.model.database[-1]
        self._compare()
        self._backup()
        return found

    def _ask(self, who, key, request, amount, fails, crash):
        self.count += 1
        content, promise = f"draw {self.count}".encode(), self.kind(amount)
        order = Order(promise, "a mean", key, {"statistic": request, "promise": str(promise)})

        def settle(watched, ledger):
            account = ledger.population("cohort").as_principal(who)
            return account.settle(order, watched.work(content, fails))

        self._open()
        expected = self.model.expects(who, key, f"{request} {promise}", promise, fails, content)
        answer = self._do(settle, *expected, crash)
        if isinstance(answer, bytes):  # what somebody saw is what everybody sees
            assert self.drawn.setdefault((who, key, request, promise), answer) == answer

    def _here(self, action):
        done = []

        def tell(*words):
            done.append(words)

        with Watched(self.ledger, tell) as watched:
            tell("answer", _answer(action, watched, self.ledger))
        return done

    def _elsewhere(self, action, crash):
        """Do it in a process that ends at the point of this number, if it comes to that."""
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which are idle here
            child = os.fork()
        if child == 0:
            self._until(action, crash, writing)
        os.close(writing)
        with open(reading, encoding="utf-8") as pipe:
            done = [json.loads(line) for line in pipe]
        _, status = os.waitpid(child, 0)
        ended = any(words[0] == "answer" for words in done)
        assert os.waitstatus_to_exitcode(status) == (0 if ended else -signal.SIGKILL), done
        return done

    def _until(self, action, crash, writing):
        left = [crash]

        def tell(*words):
            os.write(writing, (json.dumps(words) + "\n").encode())

        def point():
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            with Watched(self.ledger, tell, point) as watched:
                tell("answer", _answer(action, watched, self.ledger))
        finally:
            os._exit(0)

    def _open(self):
        """Open the ledger, and reconcile it where it must be: then and only then it is refused."""
        if self.ledger is not None:
            return
        refused = self.model.refused
        try:
            self.ledger = Ledger(self.site.where, principal="ada")
            assert not refused, "a database that has forgotten was opened"
            self.model.witness()
        except LedgerError:
            assert refused
            self.ledger = Ledger(self.site.where, principal="ada", reconcile="put back from a backup")
            self.model.reconcile()
        self.before = self._length() - len(self.model.database)
        self._compare()

    def _close(self):
        if self.ledger is not None:
            self.ledger.close()
            self.ledger = None

    def _backup(self):
        self.backups.append((self.site.backup(), list(self.model.database), self.before))

    def _length(self):
        return sum(1 for _ in self.ledger.entries())

    def _witnessed(self):
        lines = self.site.witness.read_text(encoding="ascii").split("\n")[:-1]
        return json.loads(lines[-1])["seq"]


def _answer(action, watched, ledger):
    """Return what came back, as text, or the name of the error."""
    try:
        answer = action(watched, ledger)
    except DPManifoldError as problem:
        return type(problem).__name__
    return None if answer is None else answer.decode()


def run(machine=Programs, programs=12, steps=14):
    """Run random programs; the same ones each time."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=programs,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_programs_do_what_the_model_does():
    run(programs=7)


def begun():
    machine = Programs()
    machine.begin(GDP)
    return machine


def test_what_was_drawn_in_an_earlier_life_is_not_drawn_again():
    """Put back a file from before the spend, reconcile, and then one from between the spend and its draw."""
    machine = begun()
    crash = 0
    while len(machine.model.database) == 1:  # until the spend is all that was committed
        machine.ask("ada", "k1", "x", "0.1", False, crash)
        machine._open()
        crash += 1
    machine._backup()
    machine.ask("ada", "k1", "x", "0.1", False, None)
    assert machine.ledger.population("cohort").status("k1") == "released"
    for back in (3, 2):
        machine.restore(back)
        machine._open()
        assert machine.ledger.population("cohort").status("k1") == "lost"
    machine.teardown()


def test_of_two_grants_the_later_is_in_force_in_every_life():
    machine = begun()
    machine.grant("ada", "0.5", None)
    machine.grant("ada", "0.1", None)
    for back in (3, 2):
        machine.restore(back)
        machine._open()
        assert [grant.granted for grant in machine.ledger.population("cohort").grants()] == [GDP("0.1")]
    machine.teardown()


@pytest.mark.slow
def test_more_and_longer_programs():
    run(programs=30, steps=25)


@pytest.mark.slow
def test_programs_on_a_server(cluster, monkeypatch):
    class OnServer(Programs):
        Site = Tables

    monkeypatch.setattr(Tables, "server", cluster)
    run(OnServer, programs=12, steps=15)


# ------------------------------------------------------------------------------- ledgers that are wrong


def begun_before_the_witness_knows(monkeypatch):
    begin = settling.Settling._begin

    def hasty(self, spend, token):
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(Ledger, "witnessed", lambda ledger: None)
            return begin(self, spend, token)

    monkeypatch.setattr(settling.Settling, "_begin", hasty)


def opened_whatever_the_witness_has(monkeypatch):
    monkeypatch.setattr(witness_file.Witness, "_compare", lambda self, last, entry_at: None)


def drawn_again_after_a_crash(monkeypatch):
    """Who finds an attempt without an outcome does the work itself."""

    def ended(reader, spend):
        return spend.kind == "recovered" or bool(reader.among([settling._outcome(spend)]))

    def start(self, writer, spend, token):
        if ended(writer, spend):
            return False
        writer.append("started", self.name, None, spend=spend.seq, token=token)
        return True

    monkeypatch.setattr(settling, "_was_begun", ended)
    monkeypatch.setattr(settling.Settling, "_start", start)


def a_tolerance_in_the_last_digits(monkeypatch):
    monkeypatch.setattr(
        standing, "fits", lambda total, cap: all(a <= b + TINY for a, b in zip(total, cap, strict=True))
    )


def recovered_for_free(monkeypatch):
    counted = reconciling._Recovery._counted

    def free(self, population, facts):
        found = counted(self, population, facts)
        before = amounts.amount_from_text(found["spent"])[0] - amounts.amount_from_text(found["cost"])[0]
        return {**found, "spent": [str(before)]}

    monkeypatch.setattr(reconciling._Recovery, "_counted", free)


def grants_without_a_limit(monkeypatch):
    after = standing.Standing.after

    def generous(self, promise, population, principal):
        return after(replace(self, granted=False, grant=None), promise, population, principal)

    monkeypatch.setattr(standing.Standing, "after", generous)


@pytest.mark.security
@pytest.mark.parametrize(
    "defect",
    [
        begun_before_the_witness_knows,
        opened_whatever_the_witness_has,
        drawn_again_after_a_crash,
        a_tolerance_in_the_last_digits,
        recovered_for_free,
        grants_without_a_limit,
    ],
    ids=lambda defect: defect.__name__,
)
def test_a_ledger_that_is_wrong_is_found_out(defect, monkeypatch):
    defect(monkeypatch)
    with pytest.raises(AssertionError):
        run(programs=200, steps=40)  # in long ones most defects show at once
