"""The worker: outcomes come out when they are due and not before, and whoever dies, nothing is drawn twice."""

import datetime
import itertools
import json
import os
import signal
import stat
import subprocess
import time

import numpy as np
import pytest
from sqlalchemy import select, update

import dpmanifold as dpm
from dpmanifold import GDP
from dpmanifold.codec import answer_from_bytes
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.service import beats, canonical, registering, tables
from dpmanifold.service.ordering import paused_since
from dpmanifold.service.questions import Question
from dpmanifold.service.worker import Worker, status_of
from service_rooms import desk_of, service_in, tensors
from service_worker import Crew, until

SLOT = 2.0
MEAN = Question("mean", GDP("0.05"))
REQUEST = {"space": "spd", "units": "each-record", "radius": "2.0", "source": "an atlas"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    environ = {"DPM_SERVICE_WORKER_SLOT": str(SLOT), "DPM_SERVICE_WORKER_REGISTER_SECONDS": "6"}
    with service_in(tmp_path_factory.mktemp("service"), **environ) as made:
        sam = desk_of(made, "sam")
        sam.make_population("cohort", GDP("2"), "participant")
        sam.grant("cohort", "ada", GDP("2"), "the study")
        for name, records in sets().items():
            np.save(made.settings.root / f"{name}.npy", records)
            asked = sam.register("cohort", name, {**REQUEST, "path": f"{name}.npy", "confirm": True})
            registering.registered(made, asked.id)
            assert sam.registration(asked.id).state == "done", sam.registration(asked.id).message
        yield made


def sets():
    """Ordinary records; records that are no numbers; records far away."""
    plain = tensors(50)
    broken, far = plain.copy(), plain.copy()
    broken[:20], far[:20] = np.nan, 1e9 * np.eye(2)
    return {"plain": plain, "broken": broken, "far": far}


@pytest.fixture(scope="module")
def crew_of_all(service, tmp_path_factory):
    made = Crew(service, tmp_path_factory.mktemp("flags"))
    yield made
    made.kill()


@pytest.fixture
def crew(crew_of_all):
    """Whoever works here; no flag is up."""
    crew_of_all.lower()
    return crew_of_all


@pytest.fixture
def ada(service):
    return desk_of(service, "ada")


@pytest.fixture
def ask(service, ada):
    def asked(name="plain", question=MEAN):
        resume(service, name)
        return ada.ask(f"cohort/{name}", question, f"key-{os.urandom(6).hex()}")

    return asked


def resume(service, name="plain"):
    """Have the steward look into what was lost, if anything was."""
    sam = desk_of(service, "sam")
    if paused_since(service, "cohort") is not None:
        until(lambda: sam.dataset(f"cohort/{name}").paused)  # which is told when the loss is published
        sam.resume("cohort", "it was a test")


def row_of(service, view):
    return service.database.by_id(tables.releases, view.id)


def has_state(service, view, *states):
    return lambda: row_of(service, view).state in states


def status(service, view):
    return status_of(service, row_of(service, view))


def entries_of(service, view):
    """The entries of a release: what and when."""
    entries = list(service.ledger.entries())
    spend = next(entry for entry in entries if entry.kind == "spend" and entry.facts["key"] == view.key)
    steps = [entry for entry in entries if entry.facts.get("spend") == spend.seq]
    return {entry.kind: entry for entry in [spend, *steps]}


# ------------------------------------------------------------------------------------------- what comes out, and when


def test_a_release_comes_out_when_it_is_due_with_picture_and_report(service, crew, ada, ask):
    crew.start()
    view = ask()
    seen = []
    while row_of(service, view).state == "paid":
        said = status(service, view)
        seen.append((tables.now(), said))  # in this order: the answer was given by then
        time.sleep(0.02)
    row = row_of(service, view)
    assert row.state == "released"
    assert all(said in ("spent", "started") for at, said in seen if at < row.due)
    assert "started" in {said for _, said in seen}
    until(lambda: row_of(service, view).picture and row_of(service, view).report)
    found = answer_from_bytes(ada.result(view.id))
    assert dpm.verify(found).ok
    assert found.receipt.population == "cohort"
    assert ada.picture(view.id).startswith(b"\x89PNG")
    assert ada.report(view.id).startswith(b"<!DOCTYPE html>")
    shown = ada.release(view.id)
    assert (shown.state, shown.pictured, shown.reported) == ("released", True, True)


@pytest.mark.security
def test_what_records_are_does_not_show_in_when_and_how(service, crew, ada, ask):
    crew.start()
    views = {name: ask(name) for name in sets()}
    for view in views.values():
        until(has_state(service, view, "released", "lost"))
    rows = {name: row_of(service, view) for name, view in views.items()}
    assert {row.state for row in rows.values()} == {"released"}
    lengths = {(tables.moment(row.publishes) - tables.moment(row.starts)).total_seconds() for row in rows.values()}
    assert len(lengths) == 1
    shapes = [shape_of(json.loads(row.result)) for row in rows.values()]
    assert all(shape["receipt"].pop("spent") for shape in shapes)  # of which a typed amount has more to say
    assert shapes[0] == shapes[1] == shapes[2]
    ends = sorted((row.starts, row.publishes) for row in rows.values())
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(ends))
    late = {name: after_due(service, view, "drawn") for name, view in views.items()}
    assert all(0 <= seconds <= 2 for seconds in late.values()), late


def after_due(service, view, kind):
    """Seconds from the end of a slot to the entry of its outcome; the ledger's clock has whole ones."""
    entered = datetime.datetime.fromisoformat(entries_of(service, view)[kind].facts["time"]).timestamp()
    return entered - int(tables.moment(row_of(service, view).due).timestamp())


def shape_of(record):
    """The keys of a record, without its values."""
    if isinstance(record, dict):
        return {key: shape_of(value) for key, value in sorted(record.items())}
    return [shape_of(value) for value in record] if isinstance(record, list) else type(record).__name__


@pytest.mark.slow
def test_no_two_attempts_overlap(service, crew, ask):
    crew.start()
    views = [ask() for _ in range(3)]
    for view in views:
        until(has_state(service, view, "released"))
    seqs = [[entry.seq for kind, entry in entries_of(service, view).items() if kind != "spend"] for view in views]
    flat = [seq for pair in seqs for seq in pair]
    assert flat == sorted(flat)


# ------------------------------------------------------------------------------------------- what is lost


def test_work_that_is_not_done_in_its_slot_is_killed_and_lost(service, crew, ask):
    crew.start()
    crew.flag("open", "60")
    slow = ask()
    until(lambda: crew.saw("open"))
    crew.lower()
    after = ask()
    assert row_of(service, slow).state == "paid"
    until(has_state(service, slow, "lost"))
    assert tables.now() >= row_of(service, slow).due
    assert row_of(service, after).state == "paid"  # until a steward has looked
    resume(service)
    until(has_state(service, after, "released"))
    assert status(service, slow) == "lost"
    assert set(entries_of(service, slow)) == {"spend", "started", "lost"}
    row = row_of(service, slow)
    assert (row.result, row.picture, row.report) == (None, None, None)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["SIGSEGV", "SIGKILL"])
def test_an_attempt_that_ends_its_process_is_lost_and_no_sooner(service, crew, ask, word):
    crew.flag("open", word)
    crew.start()
    view = ask()
    until(lambda: crew.saw("open"))
    assert row_of(service, view).state == "paid"
    until(has_state(service, view, "lost"))
    assert after_due(service, view, "lost") >= 0


@pytest.mark.security
def test_why_a_release_is_lost_is_in_the_vault_alone(service, crew, ask):
    folder = registering.folder_of(service, "cohort", "far@1")
    path = folder / "records.npy"
    before = path.read_bytes()
    changed = np.array(canonical.open_folder(folder).records)
    changed[40, 0, 0] += 1e-9
    try:
        np.save(path, changed)
        worker = crew.worker
        view = ask("far")
        until(has_state(service, view, "lost", "released"))
        worker.terminate()
        said = worker.stderr.read()
    finally:
        path.write_bytes(before)
    assert row_of(service, view).state == "lost"
    notice = service.settings.vault / "notices" / f"{view.id}.txt"
    assert "not those that were registered" in notice.read_text(encoding="utf-8")
    assert stat.S_IMODE(notice.stat().st_mode) == 0o600
    assert b"registered as" not in said
    assert row_of(service, view).reason is None
    assert after_due(service, view, "lost") >= 0


# ------------------------------------------------------------------------------------------- workers that die


@pytest.mark.slow
def test_a_worker_killed_at_work_leaves_nobody_and_the_release_is_lost(service, crew, ask):
    crew.flag("open", "60")
    worker = crew.worker
    view = ask()
    until(lambda: crew.saw("open"))
    child = children_of(worker.pid)
    assert child
    worker.kill()
    worker.wait()
    until(lambda: not any(alive(pid) for pid in child))
    crew.lower()
    crew.start()
    until(has_state(service, view, "lost"))
    assert tables.now() >= row_of(service, view).due
    assert status(service, view) == "lost"


def children_of(pid):
    found = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_what_nobody_began_in_time_gets_another_slot(service, crew, ask):
    crew.kill()
    view = ask()
    before = row_of(service, view)
    until(lambda: tables.now() > before.publishes)
    crew.start()
    until(has_state(service, view, "released", "lost"))
    after = row_of(service, view)
    assert after.state == "released"
    assert after.starts > before.publishes
    first, second = (
        (tables.moment(row.publishes) - tables.moment(row.starts)).total_seconds() for row in (before, after)
    )
    assert first == second


@pytest.mark.slow
def test_what_was_drawn_and_not_written_down_is_the_same_and_no_records_are_opened(service, crew, ask):
    crew.start()
    view = ask()
    until(has_state(service, view, "released"))
    stored = row_of(service, view).result
    chosen = tables.releases.c.id == view.id
    with service.database.writing() as connection:
        connection.execute(update(tables.releases).where(chosen).values(state="paid", result=None))
    crew.flag("open", "SIGKILL")
    crew.start()
    until(has_state(service, view, "released"))
    assert row_of(service, view).result == stored
    assert not crew.saw("open")
    assert len([kind for kind in entries_of(service, view) if kind == "drawn"]) == 1


@pytest.mark.slow
def test_what_the_ledger_knows_nothing_of_is_lost_and_not_paid_for(service, crew, ask):
    crew.kill()
    view = ask()
    spent = service.ledger.population("cohort").spent
    forged = {**row_of(service, view)._mapping, "id": "forged", "key": "never-paid"}
    with service.database.writing() as connection:
        connection.execute(tables.releases.insert(), forged)
    crew.start()
    until(lambda: service.database.by_id(tables.releases, "forged").state == "lost")
    resume(service)
    until(has_state(service, view, "released", "lost"))
    assert service.ledger.population("cohort").spent == spent


@pytest.mark.slow
def test_a_payer_that_died_is_finished(service, crew, ask):
    crew.kill()
    view = ask()
    chosen = tables.releases.c.id == view.id
    nothing = {"state": "asked", "starts": None, "due": None, "publishes": None}
    with service.database.writing() as connection:
        connection.execute(update(tables.releases).where(chosen).values(**nothing))
    crew.start()
    until(has_state(service, view, "released"))


@pytest.mark.slow
def test_asked_to_stop_a_worker_ends_its_attempt_first(service, crew, ask):
    crew.flag("open", "0.5")
    worker = crew.worker
    view = ask()
    until(lambda: crew.saw("open"))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert row_of(service, view).state == "released"


@pytest.mark.slow
def test_there_is_one_worker(service, crew):
    crew.start()
    with pytest.raises(InvalidArgumentError, match="another worker is at work with the database"):
        Worker(service)


# ------------------------------------------------------------------------------------------- registrations


def registered(service, name="late", **more):
    sam = desk_of(service, "sam")
    np.save(service.settings.root / f"{name}.npy", tensors(20, seed=len(name)))
    view = sam.register("cohort", name, {**REQUEST, "path": f"{name}.npy", **more})
    return until(lambda: (found := sam.registration(view.id)).state in ("done", "refused") and found, seconds=30)


@pytest.mark.slow
def test_a_loader_that_crashes_takes_nothing_with_it(service, crew, ask):
    crew.start()
    crew.flag("read", "SIGSEGV")
    refused = registered(service, "crashes")
    assert refused.state == "refused"
    assert "ended the process" in refused.message
    crew.lower()
    assert registered(service, "crashes").state == "done"
    view = ask("crashes")
    until(has_state(service, view, "released"))


@pytest.mark.slow
def test_a_registration_has_its_time_and_attempts_do_not_wait_for_it(service, crew, ask):
    crew.start()
    crew.flag("read", "60")
    sam = desk_of(service, "sam")
    np.save(service.settings.root / "slow.npy", tensors(20))
    slow = sam.register("cohort", "slow", {**REQUEST, "path": "slow.npy"})
    until(lambda: crew.saw("read"))
    view = ask()
    until(has_state(service, view, "released"))
    until(lambda: sam.registration(slow.id).state == "refused")
    assert "took longer than 6 seconds" in sam.registration(slow.id).message
    assert not list(service.settings.vault.glob(".staging-*"))


def test_the_worker_says_that_it_is_there(service, crew):
    crew.start()
    until(lambda: beats.is_alive(service.database))
    assert beats.last(service.database).owner == os.geteuid()


def test_every_release_has_an_outcome(service):
    """Run last: nothing that was paid for hangs."""
    with service.database.reading() as connection:
        states = set(connection.execute(select(tables.releases.c.state)).scalars())
    assert states <= {"released", "lost"}
