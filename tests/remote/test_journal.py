"""A key is on the disk before it is used, and stays with its request until that is answered."""

import contextlib
import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys

import pytest

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.remote.journal import Journal, state_folder

pytestmark = pytest.mark.security

REQUEST = {"dataset": "cohort/dti", "question": {"statistic": "mean", "options": {"level": 0.9}}}
OTHER = {"dataset": "cohort/dti", "question": {"statistic": "mean", "options": {"level": 0.8}}}


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "state" / "requests.sqlite")


def keys_on_disk(path):
    with contextlib.closing(sqlite3.connect(path)) as book:
        return [row[0] for row in book.execute("SELECT key FROM requests")]


def test_a_key_is_on_the_disk_when_it_is_handed_out(journal):
    key = journal.key_for(REQUEST)
    assert keys_on_disk(journal.path) == [key]
    assert not journal.path.with_name(journal.path.name + "-journal").exists()
    noted = Journal(journal.path).find(key)
    assert (noted.request, noted.answered) == (REQUEST, False)


def test_a_request_keeps_its_key_until_it_is_answered(journal):
    key = journal.key_for(REQUEST)
    assert journal.key_for(REQUEST) == key
    assert journal.key_for(OTHER) != key
    journal.answered(key)
    again = journal.key_for(REQUEST)
    assert again != key
    assert journal.key_for(REQUEST) == again


def test_the_order_of_names_does_not_make_another_request(journal):
    assert journal.key_for({"a": 1, "b": 2}) == journal.key_for({"b": 2, "a": 1})


def test_a_key_that_is_given_wins_and_is_kept_as_well(journal):
    first = journal.key_for(REQUEST)
    assert journal.key_for(REQUEST, "mean-v1") == "mean-v1"
    journal.answered(first)
    assert journal.key_for(REQUEST) == "mean-v1"  # asked and not answered
    journal.answered("mean-v1")
    assert journal.key_for(REQUEST) not in (first, "mean-v1")
    assert journal.key_for(REQUEST, "mean-v1") == "mean-v1"
    assert not journal.find("mean-v1").answered  # until the answer is here once more


def test_a_key_does_not_change_its_request(journal):
    journal.key_for(REQUEST, "mean-v1")
    journal.key_for(OTHER, "mean-v1")
    assert journal.find("mean-v1").request == REQUEST


@pytest.mark.parametrize("key", ["", "two\nlines", "x" * 201, 7])
def test_a_key_that_no_ledger_takes_is_refused(journal, key):
    with pytest.raises(InvalidArgumentError, match="key must be text"):
        journal.key_for(REQUEST, key)
    key = journal.key_for(REQUEST)
    assert keys_on_disk(journal.path) == [key]


def test_nobody_else_reads_it(journal):
    journal.key_for(REQUEST)
    assert stat.S_IMODE(os.stat(journal.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(journal.path.parent).st_mode) == 0o700


def test_accounts_and_services_have_journals_of_their_own():
    places = {Journal.of(*pair).path for pair in [("https://a", "ada"), ("https://a", "bob"), ("https://b", "ada")]}
    assert len(places) == 3
    assert all(path.parent == state_folder() for path in places)
    assert Journal.of("https://a", "ada").path in places


def test_where_it_cannot_be_written_nothing_is_handed_out(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="nothing was sent"):
        Journal(tmp_path / "file" / "requests.sqlite").key_for(REQUEST)


def test_a_damaged_journal_hands_nothing_out(tmp_path):
    (tmp_path / "requests.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(InvalidArgumentError, match="nothing was sent"):
        Journal(tmp_path / "requests.sqlite").key_for(REQUEST)


def _asked(path, barrier, found):
    barrier.wait()
    found.put(Journal(path).key_for(REQUEST))


def test_processes_that_ask_the_same_at_once_have_one_key(journal):
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    barrier, found = context.Barrier(4), context.Queue()
    workers = [context.Process(target=_asked, args=(journal.path, barrier, found)) for _ in range(4)]
    for worker in workers:
        worker.start()
    keys = {found.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join()
    assert len(keys) == 1
    assert keys_on_disk(journal.path) == list(keys)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_process_that_is_killed_once_it_has_a_key_leaves_it(journal):
    code = (
        "import os, signal, sys\n"
        "from dpmanifold.remote.journal import Journal\n"
        f"print(Journal({str(journal.path)!r}).key_for({REQUEST!r}), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert journal.key_for(REQUEST) == ended.stdout.strip()
