"""Forks, threads and pickles: a population goes wherever work goes, and stays one account."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
from fractions import Fraction

import joblib
import pytest

from dpmanifold import PureDP
from dpmanifold.errors import BudgetError
from dpmanifold.ledger import Ledger
from ledger_clients import POPULATION, order
from ledger_seen import faults, server_when_slow

KEYS = [f"k{number}" for number in range(12)]


def tenth(cohort, key):
    """Spend a tenth, once for each key; return who did the work, None if it is too much."""
    try:
        return cohort.settle(order(key, PureDP("0.1")), lambda receipt: str(os.getpid()).encode())
    except BudgetError:
        return None


@pytest.fixture
def cohort(ledger_url):
    with Ledger.open(ledger_url, principal="ada") as ledger:
        yield ledger.population(POPULATION, cap=PureDP("1"), unit="participant")
        assert ledger.audit().ok
        spends = [entry for entry in ledger.entries() if entry.kind == "spend"]
        assert len(spends) == 10  # exactly what fits


def checked(answers):
    """Ten were paid for, the rest were refused; return by whom."""
    paid = [answer for answer in answers if answer is not None]
    assert (len(answers), len(paid)) == (12, 10)
    return set(paid)


@server_when_slow
def test_threads_share_a_population(cohort):
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert len(checked(list(pool.map(lambda key: tenth(cohort, key), KEYS)))) == 1


def spend_into(cohort, keys, queue):
    queue.put([tenth(cohort, key) for key in keys])


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes_are_given_a_population(cohort, method):
    """By inheritance where they are forked, while the parent spends as well; pickled where they start afresh."""
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    children = [context.Process(target=spend_into, args=(cohort, KEYS[part::4], queue)) for part in range(3)]
    for child in children:
        child.start()
    answers = [tenth(cohort, key) for key in KEYS[3::4]]
    for _ in children:
        answers += queue.get()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert len(checked(answers)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "multiprocessing", "loky"])
def test_joblib_is_given_a_population(cohort, backend):
    jobs = joblib.Parallel(n_jobs=2, backend=backend)
    checked(jobs(joblib.delayed(tenth)(cohort, key) for key in KEYS))


def inherited(clients, where, folder, **facts):
    """What is wrong after processes were forked that have a ledger in use from their parent."""
    with Ledger.open(where, principal="ada") as ledger:
        ledger.population(POPULATION, cap=PureDP("1"), unit="participant")
    keys = [KEYS[part::4] for part in range(4)]
    _, seen = clients.run(
        "race", where, folder, clients=keys, cost="0.1", threads=2, inherited=True, patience=10, **facts
    )
    with Ledger.open(where, principal="ada") as ledger:
        return faults(ledger, seen, Fraction(1))


@pytest.mark.slow
def test_forks_have_connections_of_their_own(clients, ledger_url, tmp_path):
    assert inherited(clients, ledger_url, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)
def test_forks_that_share_a_connection_are_found_out(clients, ledger_url, tmp_path):
    found = inherited(clients, ledger_url, tmp_path, broken="keeps_its_connections_over_forks")
    assert any("a client failed" in fault for fault in found)
