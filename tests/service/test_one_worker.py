"""There is one worker, on whatever host, and it has the records that it is to open; whoever is not it burns nothing."""

import dataclasses
import os
import socket

import numpy as np
import pytest
from sqlalchemy import select

from dpmanifold import GDP, InvalidArgumentError
from dpmanifold.service import registering, tables, worker as worker_room
from dpmanifold.service.checks import FAIL, findings
from dpmanifold.service.http_errors import Unavailable
from dpmanifold.service.questions import Question
from dpmanifold.service.service import Service
from dpmanifold.service.service_database import Database
from dpmanifold.service.worker import Worker, status_of
from dpmanifold.storage.locks import HeldFile
from service_rooms import desk_of, service_in, tensors
from service_worker import until

pytestmark = pytest.mark.security
SLOT = 0.8
REQUEST = {"path": "dti.npy", "space": "spd", "units": "each-record", "radius": "2"}


@pytest.fixture
def service(database_url, tmp_path):
    environ = {"DPM_SERVICE_SERVICE_DATABASE": database_url, "DPM_SERVICE_WORKER_SLOT": str(SLOT)}
    with service_in(tmp_path, **environ) as made:
        sam = desk_of(made, "sam")
        sam.make_population("cohort", GDP("2"), "participant")
        sam.grant("cohort", "ada", GDP("1"), "the study")
        yield made


@pytest.fixture
def elsewhere(service, tmp_path):
    """The same databases, seen from another host: with a vault of its own."""
    vault = tmp_path / "another" / "vault"
    vault.mkdir(parents=True, mode=0o700)
    with Service(dataclasses.replace(service.settings, vault=vault)) as made:
        yield made


@pytest.fixture
def hire():
    """Make workers, who are sent home at the end."""
    hired = []

    def one(service):
        hired.append(Worker(service))
        return hired[-1]

    yield one
    for worker in hired:
        worker.close()


def register(service):
    np.save(service.settings.root / "dti.npy", tensors(50))
    asked = desk_of(service, "sam").register("cohort", "dti", REQUEST)
    registering.registered(service, asked.id)
    found = desk_of(service, "sam").registration(asked.id)
    assert found.state == "done", found.message


def ask(service):
    return desk_of(service, "ada").ask("cohort/dti", Question("mean", GDP("0.05")), f"key-{os.urandom(6).hex()}")


def row_of(service, view):
    return service.database.by_id(tables.releases, view.id)


def works_until(worker, states, view):
    def done():
        worker.step()
        return row_of(worker.service, view).state in states

    until(done)


# ------------------------------------------------------------------------------------------- who comes second


def refuses_a_second(hire, service, elsewhere):
    hire(service)
    with pytest.raises(InvalidArgumentError, match="another worker is at work with the database") as caught:
        hire(elsewhere)
    assert f"process {os.getpid()} on {socket.gethostname()}, seen " in str(caught.value)
    assert "Stop it first" in str(caught.value)


def test_a_worker_of_another_host_is_told_who_works(hire, service, elsewhere):
    refuses_a_second(hire, service, elsewhere)


def test_the_lock_of_a_file_in_the_vault_alone_would_let_it_in(hire, service, elsewhere, monkeypatch):
    numbers = iter(range(9))
    monkeypatch.setattr(
        Database, "hold", lambda self, name: HeldFile(service.settings.vault / f"{name}-{next(numbers)}", 0o600)
    )
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        refuses_a_second(hire, service, elsewhere)


def test_who_ends_makes_room_and_children_hold_nothing(hire, service, elsewhere):
    first = hire(service)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    try:
        first.close()
        hire(elsewhere)
    finally:
        os.close(writer)
        os.waitpid(child, 0)
        os.close(reader)


def test_two_services_have_a_worker_each(hire, service, tmp_path, request):
    cluster = None if "://" not in service.settings.database else request.getfixturevalue("cluster")
    where = str(tmp_path / "second.db") if cluster is None else cluster.address("owner", cluster.new_schema())
    (tmp_path / "second").mkdir()
    hire(service)
    with service_in(tmp_path / "second", DPM_SERVICE_SERVICE_DATABASE=where) as second:
        hire(second)


def test_one_vault_is_not_for_two_services(hire, service, tmp_path):
    (tmp_path / "second").mkdir()
    hire(service)
    with service_in(tmp_path / "second") as second:
        shared = dataclasses.replace(second.settings, vault=service.settings.vault)
        with Service(shared) as wrong, pytest.raises(InvalidArgumentError, match="of another database, is at work in"):
            hire(wrong)
        hire(second)


# ------------------------------------------------------------------------------------------- who loses the lock


def take_the_lock_away(service, request):
    if "://" in service.settings.database:
        held = "(SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted) AS held"
        assert request.getfixturevalue("cluster").sql(f"SELECT pg_terminate_backend(pid) FROM {held}")
    else:
        (lock,) = service.settings.path.parent.glob("service.db.locks/worker-*")
        lock.unlink()


def test_who_has_lost_the_lock_begins_nothing_more_and_ends(hire, service, elsewhere, request, monkeypatch):
    register(service)
    worker = hire(service)
    view = ask(service)
    take_the_lock_away(service, request)
    monkeypatch.setattr(worker_room.signal, "signal", lambda number, action: None)
    with pytest.raises(Unavailable, match="lost its lock"):
        worker.run()
    assert (row_of(service, view).state, status_of(service, row_of(service, view))) == ("paid", "spent")
    works_until(hire(service), ("released",), view)


def test_who_does_not_look_after_the_lock_works_on_without_it(hire, service, request, monkeypatch):
    """So the test above can fail."""
    register(service)
    worker = hire(service)
    monkeypatch.setattr(Worker, "_is_the_one", lambda self: True)
    view = ask(service)
    take_the_lock_away(service, request)
    works_until(worker, ("released",), view)


# ------------------------------------------------------------------------------------------- another vault


def test_a_vault_without_what_is_registered_is_refused_and_nothing_is_lost(hire, service, elsewhere):
    register(service)
    view = ask(service)
    with pytest.raises(InvalidArgumentError, match="has not the records of cohort/dti@1") as caught:
        hire(elsewhere)
    assert str(elsewhere.settings.vault) in str(caught.value)
    assert "records.vault" in str(caught.value)
    assert any(one.state == FAIL and "has not the records of" in one.what for one in findings(elsewhere.settings))
    assert not any("has not the records of" in one.what for one in findings(service.settings))
    works_until(hire(service), ("released", "lost"), view)
    assert row_of(service, view).state == "released"


def test_without_these_looks_a_release_is_burned(hire, service, elsewhere, monkeypatch):
    """So the tests beside this one can fail."""
    register(service)
    monkeypatch.setattr(registering, "refuse_another_vault", lambda database, vault: None)
    monkeypatch.setattr(registering.canonical, "has_records", lambda folder: True)
    view = ask(service)
    works_until(hire(elsewhere), ("released", "lost"), view)
    assert row_of(service, view).state == "lost"


def test_records_that_vanish_meanwhile_are_waited_for(hire, service, monkeypatch):
    register(service)
    monkeypatch.setattr(worker_room, "_NO_RECORDS", 0.1)
    worker = hire(service)
    folder = registering.folder_of(service, "cohort", "dti@1")
    folder.rename(folder.with_suffix(".away"))
    view = ask(service)
    publishes = row_of(service, view).publishes
    until(lambda: [worker.step(), tables.now() > publishes][1])
    assert (row_of(service, view).state, status_of(service, row_of(service, view))) == ("paid", "spent")
    folder.with_suffix(".away").rename(folder)
    works_until(worker, ("released", "lost"), view)
    assert row_of(service, view).state == "released"


def test_records_that_are_gone_for_good_are_registered_again(hire, service, elsewhere):
    register(service)
    (elsewhere.settings.vault / service.database.value(select(tables.files.c.folder))).mkdir()
    view = ask(service)
    worker = hire(elsewhere)
    register(elsewhere)
    assert [one.id for one in elsewhere.ledger.population("cohort").datasets()] == ["dti@1"]
    works_until(worker, ("released", "lost"), view)
    assert row_of(service, view).state == "released"
