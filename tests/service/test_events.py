"""The log of what people did: it is appended to and nothing else, and whoever changes it is found out."""

import multiprocessing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from dpmanifold.service import events, tables
from dpmanifold.service.http_errors import Unavailable
from dpmanifold.service.service_database import Database
from dpmanifold.storage.chain import BEFORE_ALL
from service.conftest import one_engine

pytestmark = pytest.mark.security


def record(database, kind="granted", who="sven", **facts):
    with database.writing() as connection:
        events.record(connection, kind, who, **facts)


@pytest.fixture
def log(database):
    """Five events, the first of which the service wrote itself."""
    for number in range(4):
        record(database, "granted", "sven", account="ada", mu=f"0.{number}")
    return database


def without_guards(database, change):
    """Do what the triggers forbid, and put them back: what is left to see is the chain."""
    with database.writing() as connection:
        sqlite = connection.dialect.name == "sqlite"
        guards = [one for one in tables.SERVICE.triggers(connection) if one.startswith("CREATE TRIGGER")]
        for statement in guards:
            where = "" if sqlite else " ON service_events"
            connection.exec_driver_sql(f"DROP TRIGGER {statement.split()[2]}{where}")
        change(connection)
        for statement in guards:
            connection.exec_driver_sql(statement)


def edit(database, seq, /, **values):
    chosen = sa.update(tables.events).where(tables.events.c.seq == seq)
    without_guards(database, lambda connection: connection.execute(chosen.values(**values)))


# ------------------------------------------------------------------------------------------ what is kept


def test_events_come_in_order_with_what_they_say(log):
    found = events.page(log)
    assert [event.seq for event in found] == [1, 2, 3, 4, 5]
    assert [event.kind for event in found] == ["service-created"] + ["granted"] * 4
    assert found[0].who == "operator"
    assert found[0].prev == BEFORE_ALL
    assert found[2].facts == {"account": "ada", "mu": "0.1"}
    assert [event.seq for event in events.page(log, after=2, limit=2)] == [3, 4]
    assert [event.seq for event in events.every(log, after=3)] == [4, 5]
    assert events.verify(log) == []


def test_pages_of_the_check_are_read_one_after_the_other(log, monkeypatch):
    monkeypatch.setattr(events, "_PAGE", 2)
    assert len(list(events.every(log))) == 5
    assert events.verify(log) == []
    edit(log, 4, who="mallory")
    assert len(events.verify(log)) == 1


def test_an_event_is_undone_with_what_it_tells(log):
    def do():
        with log.writing() as connection:
            events.record(connection, "granted", "sven")
            raise KeyError

    with pytest.raises(KeyError):
        do()
    assert len(events.page(log)) == 5
    assert events.verify(log) == []


@one_engine
def test_what_cannot_happen_is_refused(log):
    with pytest.raises(ValueError, match="kind must be one of"):
        record(log, "mean-released")
    assert len(events.page(log)) == 5


@one_engine
@pytest.mark.parametrize("value", [0.5, None, True, [1], {"a": 1}, b"x"])
def test_facts_are_texts_and_whole_numbers(log, value):
    with pytest.raises(ValueError, match="texts and whole numbers"):
        record(log, "granted", "sven", amount=value)


def test_any_text_can_be_told(log):
    record(log, "cap-raised", "sven", reason='"\n\x1b[2J \u00e9 \U0001f600 <img onerror>')
    assert events.page(log, after=5)[0].facts["reason"].endswith("<img onerror>")
    assert events.verify(log) == []


# ------------------------------------------------------------------------------------------- what is forbidden

CHANGES = {
    "edited": "UPDATE service_events SET who = 'mallory' WHERE seq = 2",
    "removed": "DELETE FROM service_events WHERE seq = 5",
    "all removed": "DELETE FROM service_events",
    "edited, nothing chosen": "UPDATE service_events SET who = 'mallory'",
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES)
def test_the_database_itself_refuses_changes(log, statement):
    with pytest.raises((DBAPIError, Unavailable)), log.writing() as connection:
        connection.exec_driver_sql(statement)
    assert len(events.page(log)) == 5
    assert events.verify(log) == []


def test_the_ways_around_a_trigger_are_closed(log):
    """SQLite replaces a row without removing it, and PostgreSQL empties a table without deleting from it."""
    last = events.page(log, after=4)[0]
    replaced = (
        "INSERT OR REPLACE INTO service_events (seq, kind, who, body, at, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"
    )
    row = tuple(replace(last, who="mallory").to_dict().values())
    with pytest.raises((DBAPIError, Unavailable)), log.writing() as connection:
        connection.exec_driver_sql(
            *[(replaced, row), ("TRUNCATE service_events",)][connection.dialect.name != "sqlite"]
        )
    assert events.page(log, after=4) == [last]


def test_who_appends_without_waiting_for_their_turn_is_refused(log):
    """Two that saw the same last event cannot both follow it."""
    last = events.page(log, after=4)[0]
    fork = replace(last, seq=6, who="mallory")  # names the hash that event 5 names
    with pytest.raises(DBAPIError), log.writing() as connection:
        connection.execute(tables.events.insert(), fork.to_dict())
    assert events.verify(log) == []


# ------------------------------------------------------------------------------------------- what is found out


@one_engine
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"who": "mallory"}, "event 3 (granted) is not what was written"),
        ({"kind": "cap-raised"}, "event 3 (cap-raised) is not what was written"),
        ({"at": "2020-01-01T00:00:00.000000Z"}, "event 3 (granted) is not what was written"),
        ({"body": '{"account":"eve","mu":"9"}'}, "event 3 (granted) is not what was written"),
        ({"body": '{"account": "ada"}'}, "event 3 (granted) has a body that is no canonical JSON"),
        ({"body": "[1]"}, "event 3 (granted) has a body that is no canonical JSON of a dict"),
        ({"hash": "0" * 64}, "event 4 (granted) does not name the hash of event 3"),
        ({"prev": "1" * 64}, "event 3 (granted) does not name the hash of event 2"),
        ({"seq": 33}, "event 33 (granted) stands where event 6 should"),
    ],
)
def test_an_edited_event_is_named(log, values, said):
    edit(log, 3, **values)
    assert any(fault.startswith(said) for fault in events.verify(log)), events.verify(log)


def test_an_event_with_a_new_hash_is_found_by_the_next_one(log):
    with log.reading() as connection:
        service = connection.execute(sa.select(tables.facts.c.service)).scalar_one()
    forged = replace(events.page(log)[2], who="mallory")
    edit(log, 3, who="mallory", hash=forged.hash_in(service))
    assert events.verify(log) == ["event 4 (granted) does not name the hash of event 3 before it."]


@pytest.mark.parametrize("seq", [1, 3])
def test_a_removed_event_is_missed(log, seq):
    without_guards(
        log, lambda connection: connection.execute(sa.delete(tables.events).where(tables.events.c.seq == seq))
    )
    assert events.verify(log)[0] == f"event {seq + 1} (granted) stands where event {seq} should."


def test_an_empty_log_is_missed(log):
    without_guards(log, lambda connection: connection.execute(sa.delete(tables.events)))
    assert events.verify(log) == ["the log has no events: its first one is missing."]


def test_events_of_another_service_are_told_apart(log):
    with log.writing() as connection:
        connection.execute(sa.update(tables.facts).values(service="another"))
    assert len(events.verify(log)) == 5


def test_a_trigger_that_is_missing_is_named(log):
    with log.writing() as connection:
        where = "" if connection.dialect.name == "sqlite" else " ON service_events"
        connection.exec_driver_sql(f"DROP TRIGGER service_events_stay{where}")
    assert [fault for fault in events.verify(log) if "trigger service_events_stay is missing" in fault]


def test_a_trigger_that_does_nothing_is_named(log):
    with log.writing() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("DROP TRIGGER service_events_stay")
            connection.exec_driver_sql(
                "CREATE TRIGGER service_events_stay BEFORE UPDATE ON service_events BEGIN SELECT 1; END"
            )
        else:
            connection.exec_driver_sql(
                "CREATE OR REPLACE FUNCTION service_refuse() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RETURN NULL; END $$"
            )
    assert [fault for fault in events.verify(log) if "trigger service_events_stay is" in fault]


# ------------------------------------------------------------------------------------------------ at once


def append(database, who, number, start):
    start.wait()
    for turn in range(number):
        record(database, "granted", who, turn=turn)


@pytest.mark.parametrize("inherited", [True, False], ids=["inherited", "opened anew"])
def test_processes_that_write_at_once_keep_the_chain_whole(log, database_url, inherited):
    context = multiprocessing.get_context("fork")
    start = context.Event()

    def run(who):
        if inherited:
            return append(log, who, 15, start)
        with Database(database_url) as own:
            return append(own, who, 15, start)

    children = [context.Process(target=run, args=(f"child-{number}",)) for number in range(3)]
    for child in children:
        child.start()
    start.set()
    append(log, "parent", 15, start)
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert events.verify(log) == []
    found = list(events.every(log, after=5))
    assert [event.seq for event in found] == list(range(6, 66))
    for who in ("parent", "child-0", "child-1", "child-2"):
        assert [event.facts["turn"] for event in found if event.who == who] == list(range(15))
