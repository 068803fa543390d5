"""The databases below a ledger: commits that were not answered, readers beside writers, rights, who may be first."""

import os
import threading
import time
import weakref

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from dpmanifold import GDP, InvalidArgumentError, LedgerError, MissingPackageError
from dpmanifold.ledger import Ledger
from dpmanifold.ledger.stores import SqliteStore
from dpmanifold.storage import forks
from ledger_orders import kinds, never, order

pytestmark = pytest.mark.security

# ------------------------------------------------------------------------- commits that were not answered


def unanswered(monkeypatch, number, arrives):
    """The connection breaks in the commit of this number, after or before it took place."""
    commit, seen = Connection.commit, []

    def broken(self):
        seen.append(1)
        if len(seen) != number:
            return commit(self)
        if arrives:
            commit(self)
        raise OperationalError("COMMIT", {}, Exception("server closed the connection unexpectedly"))

    monkeypatch.setattr(Connection, "commit", broken)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_commit_that_took_place_counts_although_nobody_answered(ledger, cohort, monkeypatch, step):
    unanswered(monkeypatch, step, arrives=True)
    assert cohort.settle(order("k"), lambda receipt: b"answer") == b"answer"
    assert kinds(ledger)[2:] == ["spend", "started", "drawn"]


def test_a_spend_whose_commit_did_not_take_place_did_not_happen(ledger, cohort, monkeypatch):
    unanswered(monkeypatch, 1, arrives=False)
    with pytest.raises(LedgerError, match="recorded nothing: server closed"):
        cohort.settle(order("k"), never)
    assert cohort.status("k") is cohort.spent is None
    assert cohort.settle(order("k"), lambda receipt: b"now") == b"now"


def test_a_start_whose_commit_did_not_take_place_is_made_by_who_asks_again(ledger, cohort, monkeypatch):
    unanswered(monkeypatch, 2, arrives=False)
    with pytest.raises(LedgerError, match="paid for under key 'k'"):
        cohort.settle(order("k"), never)
    assert cohort.status("k") == "spent"
    assert cohort.settle(order("k"), lambda receipt: b"now") == b"now"
    assert cohort.spent == GDP(0.125)


def test_a_draw_whose_commit_did_not_take_place_is_not_returned(ledger, cohort, monkeypatch):
    unanswered(monkeypatch, 3, arrives=False)
    with pytest.raises(LedgerError, match="paid for under key 'k'"):
        cohort.settle(order("k"), lambda receipt: b"drawn")
    assert cohort.status("k") == "lost"
    assert kinds(ledger).count("drawn") == 0


# ------------------------------------------------------------------------------------ readers and writers


def test_a_reader_does_not_wait_for_a_writer(ledger, cohort):
    """The writer is this thread, which ends after the reader: who waited would be refused at last."""
    with ledger.store.writing() as connection:
        assert cohort.remaining == GDP(1.0)
        assert len(ledger.history()) == 2
        assert connection.in_transaction()
        connection.rollback()


def test_a_writer_waits_for_another_one(ledger, cohort):
    done = []
    with ledger.store.writing() as connection:
        thread = threading.Thread(target=lambda: done.append(cohort.settle(order("k"), lambda receipt: b"")))
        thread.start()
        time.sleep(0.1)
        assert done == []
        connection.rollback()
    thread.join(10)
    assert done == [b""]


def test_one_transaction_sees_one_state(ledger, cohort):
    def look(reader):
        before = reader.head()
        cohort.settle(order("k"), lambda receipt: b"")
        return before == reader.head()

    assert ledger.store.read(look)


def test_tables_of_another_version_are_refused(tmp_path):
    with Ledger(tmp_path / "study.db", principal="ada") as ledger, ledger.store.writing() as connection:
        connection.exec_driver_sql("UPDATE ledger_version SET version = 2")
        connection.commit()
    for opened in (Ledger, Ledger.open, Ledger.create):
        with pytest.raises(LedgerError, match="of a ledger in version 2, and this dpmanifold knows version 1"):
            opened(tmp_path / "study.db", principal="ada")


def test_an_audit_misses_a_trigger(ledger_url, request, ledger, cohort):
    assert ledger.audit().ok
    if ledger.store.engine.dialect.name == "sqlite":
        with ledger.store.writing() as connection:
            connection.exec_driver_sql("DROP TRIGGER entries_remain")
            connection.commit()
    else:
        schema = ledger_url.split("search_path%3D")[1]
        cluster = request.getfixturevalue("cluster")
        cluster.sql("ALTER TABLE entries DISABLE TRIGGER entries_stay", "owner", schema)
    assert [fault for fault in ledger.audit().faults if "trigger entries_" in fault]


OTHER_TRIGGERS = {
    "sqlite": (
        "DROP TRIGGER entries_stay",
        "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT 1; END",
    ),
    "postgresql, another trigger": (
        "DROP TRIGGER entries_stay ON entries",
        "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries FOR EACH STATEMENT WHEN (false) "
        "EXECUTE FUNCTION ledger_refuse()",
    ),
    "postgresql, another function": (
        "CREATE OR REPLACE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql "
        "SET search_path = {schema}, pg_temp AS $$ BEGIN RETURN NULL; END $$",
    ),
    "postgresql, another search path": ("ALTER FUNCTION ledger_refuse() RESET search_path",),
}


@pytest.mark.parametrize("case", OTHER_TRIGGERS)
def test_an_audit_knows_a_trigger_by_what_it_does(case, request, tmp_path):
    if case == "sqlite":
        with Ledger(tmp_path / "study.db", principal="ada") as ledger:
            assert ledger.audit().ok
            with ledger.store.writing() as connection:
                for statement in OTHER_TRIGGERS[case]:
                    connection.exec_driver_sql(statement)
                connection.commit()
            assert [fault for fault in ledger.audit().faults if "trigger entries_stay" in fault]
        return
    url, cluster = request.getfixturevalue("postgres_url"), request.getfixturevalue("cluster")
    with Ledger(url, principal="ada") as ledger:
        assert ledger.audit().ok
        schema = url.split("search_path%3D")[1]
        for statement in OTHER_TRIGGERS[case]:
            cluster.sql(statement.format(schema=schema), "owner", schema)
        assert [fault for fault in ledger.audit().faults if "trigger entries_stay" in fault]


# --------------------------------------------------------------------------------------------- who is first


def test_two_who_make_a_ledger_at_once_share_it(tmp_path):
    gate, ids, problems = threading.Barrier(4), [], []

    def make():
        try:
            gate.wait()
            with Ledger(tmp_path / "study.db", principal="ada") as ledger:
                ids.append(ledger.id)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(set(ids)) == 1
    with Ledger(tmp_path / "study.db", principal="ada") as ledger:
        assert kinds(ledger) == ["created"]


def test_a_creation_that_was_cut_short_is_finished(tmp_path):
    """The process ended after the witness and the key were made, and before the commit."""
    (tmp_path / "study.db").touch()
    (tmp_path / "study.db.witness").touch()
    key = tmp_path / "study.db.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    with Ledger.create(tmp_path / "study.db", principal="ada") as ledger:
        assert ledger.population("cohort", cap=GDP(1.0), unit="p").remaining == GDP(1.0)


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingPackageError, match=r"dpmanifold\[postgres\]"):
        Ledger("postgresql://me@there/ledger")


# ------------------------------------------------------------------------------------------------ PostgreSQL


def test_the_writer_can_append_and_nothing_else(cluster, postgres_url):
    import psycopg

    with Ledger(postgres_url, principal="ada") as ledger:
        ledger.population("cohort", cap=GDP(1.0), unit="p").settle(order("k"), lambda receipt: b"bytes")
        before = list(ledger.entries())
        schema = postgres_url.split("search_path%3D")[1]
        for statement in (
            "UPDATE entries SET body = '{}'",
            "DELETE FROM entries",
            "TRUNCATE entries",
            "UPDATE results SET bytes = ''",
            "DELETE FROM results",
            "TRUNCATE results",
            "DROP TABLE entries",
            "ALTER TABLE entries DISABLE TRIGGER ALL",
            "INSERT INTO entries SELECT * FROM entries WHERE seq = 3 ON CONFLICT (seq) DO UPDATE SET body = '{}'",
            "INSERT INTO entries SELECT 9, kind, population, NULL, body, hash, hash, sets, subject FROM entries "
            "WHERE seq = 5",
            "INSERT INTO entries SELECT 6, kind, population, NULL, body, prev, hash, sets, subject FROM entries "
            "WHERE seq = 3",
            "INSERT INTO entries SELECT 6, kind, population, once, body, (SELECT hash FROM entries WHERE seq = 5), "
            "hash, sets, subject FROM entries WHERE seq = 3",
            "INSERT INTO results VALUES (3, '')",
            "INSERT INTO results VALUES (5, '')",
        ):
            with pytest.raises(psycopg.Error):
                cluster.sql(statement, "writer", schema)
        for statement in ("UPDATE entries SET body = '{}'", "DELETE FROM entries", "TRUNCATE entries"):
            with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
                cluster.sql(statement, "owner", schema)
        assert list(ledger.entries()) == before


def test_whoever_could_change_entries_reads_and_does_not_write(cluster, postgres_url):
    with Ledger(postgres_url, principal="ada") as ledger:
        ledger.population("cohort", cap=GDP(1.0), unit="p")
    for role in ("owner", "postgres"):
        with Ledger(postgres_url.replace("writer@", f"{role}@"), principal="ada") as ledger:
            assert ledger.population("cohort").remaining == GDP(1.0)
            assert ledger.audit().ok
            with pytest.raises(LedgerError, match="could change and remove entries"):
                ledger.population("cohort").settle(order("k"), never)


def test_a_ledger_is_made_for_another_role_and_with_a_witness(cluster, tmp_path):
    address = cluster.address("owner", cluster.new_schema())
    witness = tmp_path / "w.witness"
    for wrong in ({}, {"writer": "owner"}, {"writer": "nobody here"}, {"writer": "postgres"}):
        with pytest.raises(InvalidArgumentError, match="writer must be"):
            Ledger.create(address, witness=witness, principal="ada", **wrong)
    with pytest.raises(InvalidArgumentError, match="witness must be given"):
        Ledger.create(address, writer="writer", principal="ada")
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger(cluster.address("writer", cluster.new_schema()), principal="ada")
    assert not witness.exists()


def test_a_server_that_does_not_sync_is_refused(cluster, postgres_url):
    with Ledger(postgres_url, principal="ada") as ledger:
        cohort = ledger.population("cohort", cap=GDP(1.0), unit="p")
        try:
            set_fsync(cluster, "off")
            with pytest.raises(LedgerError, match="fsync = off"):
                cohort.settle(order("k"), never)
        finally:
            set_fsync(cluster, "on")
        assert cohort.settle(order("k"), lambda receipt: b"") == b""


def set_fsync(cluster, value):
    cluster.sql(f"ALTER SYSTEM SET fsync = {value}")
    cluster.sql("SELECT pg_reload_conf()")
    for _ in range(200):
        if cluster.sql("SHOW fsync") == [(value,)]:
            return
        time.sleep(0.02)
    raise AssertionError("the server did not take the setting")


def test_commits_are_synchronous_whatever_the_role_has(cluster, postgres_url):
    with Ledger(postgres_url + "%20-csynchronous_commit%3Doff", principal="ada") as ledger:
        with ledger.store.reading() as connection:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "off"
        with ledger.store.writing() as connection:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
            connection.rollback()


def test_an_old_server_is_refused(cluster, postgres_url, tmp_path):
    with Ledger(postgres_url, principal="ada") as ledger:
        ledger.store.engine.dialect.server_version_info = (13, 4)
        with pytest.raises(LedgerError, match=r"is PostgreSQL 13\.4, and a ledger needs 14 or later"):
            ledger.store.prepare()
        with pytest.raises(LedgerError, match="needs 14 or later"):
            ledger.store.make("writer")


@pytest.mark.parametrize("second", ["witnessed", "reconcile"])
def test_machines_take_turns_at_a_witness_whose_file_cannot_be_locked(postgres_url, monkeypatch, second):
    """As on a network file system that grants every lock: the database sees to it."""
    monkeypatch.setattr("dpmanifold.storage.locks.fcntl.flock", lambda handle, how: None)
    inside, go_on, entered = threading.Event(), threading.Event(), threading.Event()

    def slow(read):
        inside.set()
        go_on.wait(20)

    with Ledger(postgres_url, principal="ada") as here, Ledger(postgres_url, principal="bob") as there:
        monkeypatch.setattr(here.witness, "catch_up", slow)
        monkeypatch.setattr(there.witness, "catch_up", lambda read: entered.set())
        monkeypatch.setattr(there.witness, "reconcile", lambda read, recover: entered.set())
        act = there.witnessed if second == "witnessed" else lambda: there.reconcile("a backup")
        threads = [threading.Thread(target=here.witnessed), threading.Thread(target=act)]
        try:
            threads[0].start()
            assert inside.wait(20)
            threads[1].start()
            assert not entered.wait(0.2)
        finally:
            go_on.set()
            for thread in threads:
                thread.join()
        assert entered.is_set()


def test_sessions_that_a_server_ended_are_made_anew(cluster, postgres_url):
    with Ledger(postgres_url, principal="ada") as ledger:
        cohort = ledger.population("cohort", cap=GDP(1.0), unit="p")
        cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'writer'")
        assert cohort.settle(order("k"), lambda receipt: b"") == b""


def test_an_attempt_ends_with_its_session(cluster, postgres_url):
    with Ledger(postgres_url, principal="ada") as ledger:
        held = ledger.store.hold("a token")
        assert ledger.store.is_held("a token")
        cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'writer'")
        for _ in range(200):
            if not ledger.store.is_held("a token"):
                break
            time.sleep(0.02)
        assert not ledger.store.is_held("a token")
        held.release()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cret@127.0.0.1:1/ledger",
        "postgresql://me:s3cret@localhost:not-a-port/ledger",
        "mysql://me:s3cret@there/ledger",
    ],
)
def test_what_cannot_be_reached_is_said_without_the_password(address):
    with pytest.raises((LedgerError, InvalidArgumentError)) as caught:
        Ledger(address, principal="ada")
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_must_know_of_forks_is_whole_when_it_does(tmp_path, monkeypatch):
    """Another thread may fork as soon as something is known to be open: what it is told then must work."""

    class ForksAtOnce(weakref.WeakSet):
        def add(self, thing):
            thing.before_fork()
            thing.after_fork_in_child()
            super().add(thing)

    monkeypatch.setattr(forks, "_known", ForksAtOnce())
    with SqliteStore(tmp_path / "study.db") as store:
        store.prepare()
        store.hold("a token").release()
