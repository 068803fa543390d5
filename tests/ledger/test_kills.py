"""Clients that are killed at any moment: nothing is drawn unpaid or twice, nothing answered is forgotten, all goes on.

The tests are told apart from luck by ledgers that are wrong on purpose, which they must find out.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpmanifold import BudgetError, PureDP
from dpmanifold.ledger import Ledger
from ledger_clients import POPULATION, Clients, order
from ledger_seen import ends, faults

SOON = 5.0  # seconds from a kill to the next answer
COST = "0.001"


@pytest.fixture(scope="module")
def clients():
    """A process that has imported all it needs, and forks clients."""
    running = Clients()
    yield running
    running.close()


@pytest.fixture
def scene(clients, ledger_url, tmp_path):
    """Runs a job on a new ledger, and returns what is wrong after it."""

    def run(job, cap, **facts):
        with Ledger(ledger_url, principal="ada") as ledger:
            ledger.population(POPULATION, cap=PureDP(cap), unit="participant")
        answer, seen = clients.run(job, ledger_url, tmp_path, cost=COST, seed=18, **facts)
        with Ledger.open(ledger_url, principal="ada") as ledger:
            found = faults(ledger, seen, Fraction(cap))
            found += [f"after a kill {wait:.1f} s went by." for wait in answer["waits"] if wait > SOON]
            return found, answer, ends(ledger)

    return run


def killed(scene, kills, cap, **facts):
    found, answer, states = scene("kills", cap, processes=8, kills=kills, spread=0.03, **{"patience": 60.0, **facts})
    if len(answer["waits"]) < kills:
        found.append(f"nobody was answered after kill {len(answer['waits']) + 1}.")
    return found, answer, states


def test_thirty_kills_among_eight_processes(scene):
    found, answer, _ = killed(scene, 30, "0.05")
    assert found == []
    print(max(answer["waits"]), _)


@pytest.mark.slow
def test_a_thousand_kills_among_eight_processes(scene):
    found, answer, states = killed(scene, 1000, "2")
    assert found == []
    assert min(states[state] for state in ("queued", "begun", "drawn", "lost")) > 0
    print(max(answer["waits"]), states)
