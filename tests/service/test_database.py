"""The service's database: one writer, readers beside it, forks, and what it refuses to be opened on."""

import multiprocessing
import os
import stat
import threading
import time

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError

from dpmanifold import InvalidArgumentError, LedgerError
from dpmanifold.ledger import Ledger
from dpmanifold.service import events, service_database as database_room, tables
from dpmanifold.service.http_errors import Unavailable
from dpmanifold.service.service_database import Database

pytestmark = pytest.mark.security


def insert(connection, name="cohort"):
    row = {"population": name, "name": "dti", "approval": False, "note": ""}
    connection.execute(tables.terms.insert(), row)


def names(database):
    with database.reading() as connection:
        return list(connection.execute(sa.select(tables.terms.c.population).order_by("population")).scalars())


# ------------------------------------------------------------------------------------------- the tables


def test_tables_are_made_once(database):
    with database.reading() as connection:
        before = connection.execute(sa.select(tables.facts)).all()
    database.prepare()
    with database.reading() as connection:
        assert connection.execute(sa.select(tables.facts)).all() == before
    assert [event.kind for event in events.page(database)] == ["service-created"]


def prepare_from(where, start):
    start.wait()
    with Database(where) as own:
        own.prepare()


def test_processes_that_prepare_at_once_make_one_service(database_url):
    context = multiprocessing.get_context("fork")
    start = context.Event()
    children = [context.Process(target=prepare_from, args=(database_url, start)) for _ in range(4)]
    for child in children:
        child.start()
    start.set()
    for child in children:
        child.join(30)
    assert [child.exitcode for child in children] == [0] * 4
    with Database(database_url) as database:
        assert [event.kind for event in events.page(database)] == ["service-created"]
        assert events.verify(database) == []


def test_another_version_is_refused(database):
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE service_version SET version = 2")
    with pytest.raises(InvalidArgumentError, match="in version 2, and this dpmanifold knows version 1"):
        database.prepare()


def test_a_database_of_something_else_is_refused(database_url):
    with Database(database_url) as database:
        with database.writing() as connection:
            connection.exec_driver_sql("CREATE TABLE others (x integer)")
        with pytest.raises(InvalidArgumentError, match="tables that are not those of a service"):
            database.prepare()
        with database.reading() as connection:
            assert sa.inspect(connection).get_table_names() == ["others"]


def test_the_ledger_is_no_place_for_it(tmp_path):
    Ledger.create(tmp_path / "study.db", principal="steward").close()
    with Database(tmp_path / "study.db") as database, pytest.raises(InvalidArgumentError, match="of its own"):
        database.prepare()
    with Database(tmp_path / "service.db") as database:
        database.prepare()
    with pytest.raises(LedgerError, match="not those of a ledger"):
        Ledger(tmp_path / "service.db", principal="steward")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"nowhere/service\.db cannot be used: unable to open"):
        Database(tmp_path / "nowhere" / "service.db").prepare()


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path):
    address = f"postgresql://dpm:hidden-word@/service?host={tmp_path}"
    with pytest.raises(InvalidArgumentError, match="cannot be used") as caught:
        Database(address).prepare()
    assert "hidden-word" not in str(caught.value)


@pytest.mark.parametrize("where", ["", None, 3, "mysql://host/service", "postgresql://u:hidden-word@host:port/x"])
def test_a_place_that_is_none_is_refused(where):
    with pytest.raises(InvalidArgumentError, match="where must be") as caught:
        Database(where)
    assert "hidden-word" not in str(caught.value)


def test_a_file_is_not_for_everybody(tmp_path):
    with Database(tmp_path / "service.db") as database:
        database.prepare()
        for path in tmp_path.iterdir():
            assert not stat.S_IMODE(path.stat().st_mode) & 0o007, path


# ------------------------------------------------------------------------------------------ transactions


def test_what_is_written_is_there_at_the_end_of_the_block(database):
    with database.writing() as connection:
        insert(connection)
    assert names(database) == ["cohort"]


def test_nothing_is_written_if_the_block_raises(database):
    def write():
        with database.writing() as connection:
            insert(connection)
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert names(database) == []
    with database.writing() as connection:  # and the next one may write
        insert(connection)
    assert names(database) == ["cohort"]


def test_who_reads_cannot_write(database):
    with pytest.raises((DBAPIError, Unavailable)), database.reading() as connection:
        insert(connection)
    assert names(database) == []


def test_a_thread_does_not_wait_for_itself(database):
    with database.writing() as connection:
        insert(connection)
        with pytest.raises(RuntimeError, match="hand the connection on"), database.writing():
            pass
    assert names(database) == ["cohort"]


def test_a_reader_sees_one_state_and_waits_for_nobody(database):
    with database.reading() as reader:
        with database.writing() as writer:
            insert(writer)
            assert names(database) == []  # who waited would be refused at last: the writer ends later, in this thread
            assert writer.in_transaction()
        assert reader.execute(sa.select(tables.terms)).all() == []
    assert names(database) == ["cohort"]


def test_a_writer_waits_for_another_one(database):
    done = []

    def write():
        with database.writing() as connection:
            insert(connection, "second")
            done.append(True)

    with database.writing() as connection:
        thread = threading.Thread(target=write)
        thread.start()
        time.sleep(0.1)
        assert done == []
        insert(connection, "first")
    thread.join(10)
    assert names(database) == ["first", "second"]


def test_who_waits_too_long_is_told_without_details(database_url, monkeypatch):
    monkeypatch.setattr(database_room, "PATIENCE", 1.0)
    with Database(database_url) as one, Database(database_url) as other:
        one.prepare()
        with one.writing():
            with pytest.raises(Unavailable) as caught, other.writing():
                pass
            assert str(caught.value) == "The service cannot reach its database. Try again in a moment."
        with other.writing() as connection:
            insert(connection)
        assert names(one) == ["cohort"]


def test_a_second_row_of_one_key_is_what_it_is(database):
    write_many(database, "one", 1)
    with pytest.raises(IntegrityError):
        write_many(database, "one", 1)
    assert names(database) == ["one-0"]


def test_what_belongs_to_an_account_needs_it(database):
    row = {"id": "a", "hash": "b", "account": "nobody", "label": "", "created": "", "expires": ""}
    with pytest.raises(IntegrityError), database.writing() as connection:
        connection.execute(tables.tokens.insert(), row)


@pytest.mark.parametrize("state", ["paid", "drawn"])
def test_a_release_has_one_of_the_states(accounts, database, state):
    needed = [column.name for column in tables.releases.c if not column.nullable]
    row = dict.fromkeys(needed, "x")
    row |= {"account": "ada", "state": state}
    if state in tables.RELEASE_STATES:
        with database.writing() as connection:
            connection.execute(tables.releases.insert(), row)
        return
    with pytest.raises(IntegrityError), database.writing() as connection:
        connection.execute(tables.releases.insert(), row)


# ------------------------------------------------------------------------------------------------ forks


def write_many(database, who, number):
    for turn in range(number):
        with database.writing() as connection:
            insert(connection, f"{who}-{turn}")


def test_children_and_their_parent_write_side_by_side(database):
    """With connections open in the parent's pool, of which the children get none."""
    assert names(database) == []
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=write_many, args=(database, f"child-{n}", 10)) for n in range(3)]
    for child in children:
        child.start()
    write_many(database, "parent", 10)
    for child in children:
        child.join(30)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert len(names(database)) == 40


def test_a_fork_waits_for_threads_that_write(database):
    """A child that had a copy of an open transaction could end it."""
    within, go = threading.Event(), threading.Event()

    def write():
        with database.writing() as connection:
            within.set()
            go.wait(10)
            insert(connection, "thread")

    thread = threading.Thread(target=write)
    thread.start()
    within.wait(10)
    threading.Timer(0.2, go.set).start()
    child = os.fork()
    if not child:
        try:
            found = names(database)
            write_many(database, "child", 1)
            os._exit(0 if found == ["thread"] else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join(10)
    write_many(database, "parent", 1)
    assert names(database) == ["child-0", "parent-0", "thread"]


def test_a_child_begun_within_a_transaction_has_one_of_its_own(database):
    with database.writing() as connection:
        insert(connection, "parent")
        child = os.fork()
        if not child:
            try:
                os._exit(0 if names(database) == [] else 2)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert names(database) == ["parent"]


def test_what_was_closed_opens_again(database):
    database.close()
    write_many(database, "again", 1)
    assert names(database) == ["again-0"]


# ------------------------------------------------------------------------------------------------ times


def test_times_sort_as_they_passed_and_come_back():
    stamps = [tables.now() for _ in range(50)]
    assert stamps == sorted(stamps)
    assert [tables.stamp(tables.moment(text)) for text in stamps] == stamps
    assert {len(text) for text in stamps} == {27}


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="without a zone"):
        tables.stamp(tables.moment(tables.now()).replace(tzinfo=None))
