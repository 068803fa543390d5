"""Many at once: exactly what fits is paid for, and what is asked for at the same time is drawn once."""

from __future__ import annotations

import functools
from collections import Counter
from fractions import Fraction

import pytest

from dpmanifold import PureDP
from dpmanifold.ledger import Ledger
from ledger_clients import POPULATION
from ledger_seen import faults

few = functools.partial(pytest.param, marks=pytest.mark.security)
many = functools.partial(pytest.param, marks=pytest.mark.slow)  # the same race, with more in it


@pytest.fixture
def race(clients, ledger_url, tmp_path):
    """Lets clients race, and returns what is wrong, and how often each thing happened."""

    def run(keys, cap, cost, **facts):
        with Ledger(ledger_url, principal="ada") as ledger:
            ledger.population(POPULATION, cap=PureDP(cap), unit="participant")
        answer, seen = clients.run("race", ledger_url, tmp_path, clients=keys, cost=cost, **{"threads": 1, **facts})
        with Ledger.open(ledger_url, principal="ada") as ledger:
            found = faults(ledger, seen, Fraction(cap))
        print(f"{len(keys)} clients, {answer['cpu']:.1f} s CPU")
        return found, Counter(line["what"] for line in seen), seen

    return run


def each_its_own(clients, requests):
    return [[f"{client}-{number}" for number in range(requests)] for client in range(clients)]


@pytest.mark.parametrize(("requests", "fit"), [few(5, 10), many(50, 100)])
def test_eight_clients_are_paid_exactly_what_fits(race, requests, fit):
    found, happened, _ = race(each_its_own(8, requests), "1", f"{1 / fit}")
    assert found == []
    assert happened == {"drawn": fit, "returned": fit, "refused": 8 * requests - fit}


@pytest.mark.parametrize(("processes", "threads"), [few(2, 25), many(50, 1)])
def test_one_key_fifty_times_at_once_is_drawn_once(race, processes, threads):
    found, happened, seen = race([["k"]] * processes, "1", "0.5", threads=threads, pause=0.05)
    assert found == []
    assert happened == {"drawn": 1, "returned": 50}
    assert len({line["sha256"] for line in seen}) == 1


@pytest.mark.security
@pytest.mark.parametrize("broken", ["looks_before_it_locks", "takes_the_living_for_dead", "begins_what_was_begun"])
def test_ledgers_that_a_race_breaks_are_found_out(race, broken):
    if broken == "looks_before_it_locks":
        found, happened, _ = race(each_its_own(4, 2), "1", "0.5", broken=broken)
        assert happened["returned"] > 2
        assert any("spent of 1" in fault for fault in found)
    else:
        found, happened, _ = race([["k"]] * 4, "1", "0.5", pause=0.1, broken=broken)
        assert happened["returned"] < 4 or any("was drawn again" in fault for fault in found), (happened, found)
