"""Clients that are killed at any moment: nothing is drawn unpaid or twice, nothing answered is forgotten, all goes on.

The tests are told apart from luck by ledgers that are wrong on purpose, which they must find out.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from fractions import Fraction

import pytest

from dpmanifold import BudgetError, PureDP
from dpmanifold.ledger import Ledger
from ledger_clients import POPULATION, order
from ledger_seen import ends, faults

COST = "0.001"


@pytest.fixture
def scene(clients, ledger_url, tmp_path):
    """Runs a job on a new ledger, and returns what is wrong after it."""

    def run(job, cap, meanwhile=None, **facts):
        with Ledger(ledger_url, principal="ada") as ledger:
            ledger.population(POPULATION, cap=PureDP(cap), unit="participant")
        with meanwhile or contextlib.nullcontext():
            answer, seen = clients.run(job, ledger_url, tmp_path, cost=COST, seed=18, **facts)
        with Ledger.open(ledger_url, principal="ada") as ledger:
            found = faults(ledger, seen, Fraction(cap))
            if not answer["went on"]:
                found.append(f"nobody was answered after kill {answer['killed']}.")
            states = ends(ledger)
        waits = f"{len(answer['waits'])} waits of {max(answer['waits'], default=0.0):.2f} s at most"
        print(f"{job}: {answer['killed']} kills, {waits}, {dict(states)}, {answer['cpu']:.1f} s CPU")
        return found, answer, states

    return run


def killed(scene, kills, cap, **facts):
    return scene("kills", cap, processes=8, kills=kills, spread=0.03, **{"patience": 60, **facts})


@pytest.mark.parametrize("ledger_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_thirty_kills_among_eight_processes(scene, ledger_url):
    found, answer, states = killed(scene, 30, "0.05")
    assert found == []
    assert answer["killed"] == 30
    with Ledger.open(ledger_url, principal="ada") as ledger:  # what is left can be spent to the last digit
        cohort, left = ledger.population(POPULATION), 50 - sum(states.values())
        if left:
            cohort.settle(order("the rest", PureDP(f"0.{left:03d}")), lambda receipt: b"")
        with pytest.raises(BudgetError):
            cohort.settle(order("one more", PureDP("1e-300")), lambda receipt: b"")


@pytest.mark.slow
def test_a_thousand_kills_among_eight_processes(scene):
    found, answer, states = killed(scene, 1000, "1.5")
    assert found == []
    assert answer["killed"] == 1000
    assert answer["paid"] > 100  # rounds of kills after which the next answer was a release, not a refusal
    assert min(states[state] for state in ("queued", "begun", "drawn", "lost")) > 0


@contextlib.contextmanager
def trouble(cluster):
    """A server that ends all sessions twice a second, and now and then itself, without time to write anything."""
    stop = threading.Event()

    def make():
        for turn in itertools.count(1):
            if stop.wait(0.5):
                return
            if turn % 4:
                cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'writer'")
            else:
                cluster.stop("immediate")
                cluster.start()

    thread = threading.Thread(target=make)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)
def test_sessions_and_servers_that_end_while_clients_are_killed(scene, cluster):
    """A commit that is not answered took place or not: who asks again gets what is right."""
    facts = {"meanwhile": trouble(cluster), "server ends": True}
    found, answer, _ = killed(scene, 40, "1", **facts)
    assert found == []
    assert answer["killed"] == 40


@pytest.mark.parametrize(
    ("ledger_url", "step"),
    [
        ("sqlite", 149),
        pytest.param("sqlite", 23, marks=pytest.mark.slow),
        pytest.param("postgresql", 23, marks=pytest.mark.slow),
    ],
    indirect=["ledger_url"],
)
def test_a_kill_at_every_line_of_the_ledger(scene, step):
    """Also of those that run between two commits, where a kill at random hardly ever falls."""
    found, answer, states = scene("lines", "1", first=step // 2, step=step, patience=60)
    assert found == []
    assert answer["lines"] > 300
    assert min(states[state] for state in ("drawn", "lost")) > 0


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        pytest.param("draws_before_it_pays", "nobody paid for it", marks=pytest.mark.slow),
        ("begins_what_was_begun", "was drawn again"),
        pytest.param(
            *("returns_what_it_did_not_keep", "was answered with what the ledger does not have"),
            marks=pytest.mark.slow,
        ),
        pytest.param("locks_by_a_file", "nobody was answered after kill", marks=pytest.mark.slow),
        pytest.param("waits_for_a_clock", "nobody was answered after kill", marks=pytest.mark.slow),
    ],
)
def test_ledgers_that_a_kill_breaks_are_found_out(scene, broken, fault):
    patience = 5 if fault.startswith("nobody") else 60  # where nobody ever is, there is nothing to wait for
    # A second draw takes a kill between the first and its commit; for the others any kill will do.
    late = {"from the draw": True, "first": 0, "step": 40} if broken == "begins_what_was_begun" else {}
    found, _, _ = scene("lines", "1", **{"first": 20, "step": 220, "patience": patience, "broken": broken, **late})
    assert any(fault in sentence for sentence in found), found
