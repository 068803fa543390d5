"""Faults behind the payment, at every line, of every kind, whoever paid: nothing is released, nothing drawn again."""

import collections
import functools
import itertools
import signal
import sys
import time

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, Ball, _fallback
from dpmanifold.ledger import Ledger
from dpmanifold.stats import draws
from laws.tiers import pairs
from stats import fault_walk
from stats.fault_walk import (
    FAULTS,
    PAYERS,
    QUERIES,
    REGISTERED,
    Books,
    Outcome,
    forget_public_choices,
    lines_of,
    wrong_with,
)

# A file that a fault leaves open is closed when it is forgotten, and says so.
pytestmark = [
    pytest.mark.security,
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# Lines of each case in the default run.
FEW = 4
# Who pays at a line, in turn.
SLOTS = ("budget", "ledger", "budget", "nobody", "budget", "budget", "nobody", "budget")
# Their stored results are written and read in ways that others' are not.
STORED = ("mean", "mean on a sphere", "mean of matrices", "mean of shapes", "mean of pairs", "classes", "components")
# How many lines of a case may not run: neither noise nor the sum of what was spent leads to all of them every time.
MISSED = 0.15


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    with Ledger.create(str(tmp_path_factory.mktemp("walk") / "study.db")) as ledger:
        yield Books(ledger)


def lines(query, payer, books):
    """Return the lines behind a payment; a ledger's own are those of one query."""
    if query in REGISTERED:
        return lines_of(query, "ledger", books)
    found = lines_of(query, "budget", books)
    if payer == "ledger":
        found = [one for one in found if not _at_the_door(one)] + lines_of("mean", "ledger", books)
    return found


def _at_the_door(found):
    """Return whether a line may depend on who pays."""
    return found[0][0].co_filename.endswith("payment.py")


@functools.cache
def owned(query, books):
    """Return the lines of a query that no query before it has: those that run whoever pays, and those of a ledger."""
    paid = [*((name, "budget") for name in QUERIES), *((name, "ledger") for name in (*STORED, *REGISTERED))]
    known, found = set(), {"budget": [], "ledger": []}
    for name, payer in paid:
        for (code, line), times in lines_of(name, payer, books):
            if (code.co_filename, line) not in known:
                known.add((code.co_filename, line))
                if name == query:
                    found[payer].append(((code, line), times))
    return found["budget"], found["ledger"]


def walk(query, fault, payer, places, books, monkeypatch):
    """Fail at each of some lines; return what is wrong, and how many lines did not run."""
    wrong, missed = [], 0
    for number, (place, times) in enumerate(places):
        when = 1 if number % 2 == 0 else (times + 1) // 2
        for again in range(3):
            if again == 1:
                forget_public_choices()
            # Another seed each time: what is released is new then, and what follows from it not computed before.
            seed = (number, again, FAULTS.index(fault), PAYERS.index(payer))
            outcome = Outcome(query, fault, payer, place, 1 if again else when, seed, books, monkeypatch)
            if outcome.fault.fired:
                found = wrong_with(query, payer, outcome, books, monkeypatch, thorough=number % 5 == 0)
                wrong += [f"{outcome.where}: {one}" for one in found]
                break
        else:
            missed += 1
    return wrong, missed


def named(value):
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(
    ("query", "fault", "payer"),
    pairs(QUERIES, FAULTS, PAYERS, ids=named) + pairs(REGISTERED, FAULTS, ("ledger",), ids=named),
)
def test_a_fault_behind_the_payment_is_a_loss(query, fault, payer, books, monkeypatch):
    """At some lines of each query: those of a case are spread over all, and differ from case to case."""
    places = lines(query, payer, books)
    first = (7 * FAULTS.index(fault) + 3 * PAYERS.index(payer)) % (step := len(places) // FEW)
    wrong, missed = walk(query, fault, payer, places[first::step][:FEW], books, monkeypatch)
    assert not wrong, "\n".join(wrong)
    assert missed < len(places[first::step][:FEW])


@pytest.mark.whole
@pytest.mark.parametrize("fault", FAULTS, ids=named)
@pytest.mark.parametrize("query", [*QUERIES, *REGISTERED])
def test_a_fault_at_any_line_behind_the_payment_is_a_loss(query, fault, books, monkeypatch):
    """Every line of the library that runs there, each with every kind of fault."""
    drawing, keeping = owned(query, books)
    turn = itertools.cycle(SLOTS[2 * FAULTS.index(fault) :] + SLOTS[: 2 * FAULTS.index(fault)])
    by_payer = collections.defaultdict(list)
    for place in drawing:
        by_payer["budget" if _at_the_door(place) else next(turn)].append(place)
    by_payer["ledger"] += keeping
    for payer, places in by_payer.items():
        wrong, missed = walk(query, fault, payer, places, books, monkeypatch)
        assert not wrong, "\n".join(wrong)
        assert missed <= max(1, MISSED * len(places))


# -------------------------------------------------------------------- wrong variants that the walk must find


def swallowing(compute, fallback, *refusals):
    """Take the fallback whatever goes wrong."""
    try:
        result = compute()
    except Exception:
        return fallback()
    return result if _fallback.is_finite(result) else fallback()


def drawing_again(ball, mechanism, calibration, mean, points, bits):
    """Draw about the centre what could not be drawn about the mean."""
    try:
        return DRAW_ABOUT(ball, mechanism, calibration, mean, points, bits)
    except Exception:
        return DRAW_ABOUT(ball, mechanism, calibration, ball.frame.origin, points.at_center(ball), bits)


DRAW_ABOUT = draws.draw_about


def found_by_walking(fault, payer, books, monkeypatch, file):
    """Return what a walk through some lines of one file says of the mean on a sphere."""
    places = [one for one in lines("mean on a sphere", "budget", books) if one[0][0].co_filename.endswith(file)]
    assert places
    return walk("mean on a sphere", fault, payer, places[:: len(places) // 6], books, monkeypatch)[0]


@pytest.mark.parametrize("payer", PAYERS)
@pytest.mark.parametrize("fault", FAULTS[:3], ids=named)
def test_a_seal_that_swallows_everything_is_found(fault, payer, books, monkeypatch):
    with pytest.MonkeyPatch.context() as wrong:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == dpm.__name__ and hasattr(module, "with_fallback"):
                wrong.setattr(module, "with_fallback", swallowing)
        found = found_by_walking(fault, payer, books, monkeypatch, "frechet/solver.py")
    assert any("something was released" in one for one in found)
    assert not found_by_walking(fault, payer, books, monkeypatch, "frechet/solver.py")


@pytest.mark.parametrize("payer", PAYERS)
def test_a_second_draw_is_found(payer, books, monkeypatch):
    with pytest.MonkeyPatch.context() as wrong:
        wrong.setattr(draws, "draw_about", drawing_again)
        found = found_by_walking(MemoryError, payer, books, monkeypatch, "noise/exact_radii.py")
    assert any("something was drawn after the fault" in one for one in found)
    assert not found_by_walking(MemoryError, payer, books, monkeypatch, "noise/exact_radii.py")


# -------------------------------------------------------------------- an alarm

SPHERE = dpm.Sphere(2)
CAP = Ball(SPHERE, SPHERE.origin, 0.7, source="a field of view")
# All of them lie far from the centre, so that a release of that is told from any other.
ASIDE = np.array([0.5, 0.0]) + 0.05 * np.random.default_rng(0).standard_normal((5000, 2))
RECORDS = SPHERE.exp_coords(SPHERE.origin, ASIDE)


def with_an_alarm(seconds, monkeypatch):
    """Ask for a mean with an alarm so long after the payment; return it or the error, the budget, and how long it took.

    The alarm is one of whoever runs the program: its handler raises, as those of time limits do.
    """
    spend, budget, began = dpm.Budget.spend, dpm.Budget(fault_walk.PROMISE), []

    def ring(number, frame):
        raise TimeoutError(fault_walk.SECRET)

    def spending(self, *arguments):
        spend(self, *arguments)
        began.append(time.perf_counter())
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, ring)
    monkeypatch.setattr(dpm.Budget, "spend", spending)
    try:
        try:
            found = dpm.private_mean(RECORDS, CAP, fault_walk.PROMISE, units=EACH_RECORD, budget=budget)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)  # which may ring once more before it is off
            time.sleep(0)
    except (TimeoutError, dpm.ReleaseLostError) as problem:
        found = problem
    finally:
        signal.signal(signal.SIGALRM, before)
        monkeypatch.undo()
    return found, budget, time.perf_counter() - began[0]


def test_an_alarm_behind_the_payment_never_becomes_a_release_of_the_centre(monkeypatch):
    """At 120 times, from at once to after the end; whether one comes before the draw is up to the machine."""
    usual = min(with_an_alarm(60.0, monkeypatch)[2] for _ in range(3))
    lost = released = 0
    for share in [*np.linspace(0.001, 1.5, 119), 1000.0]:
        found, budget, _ = with_an_alarm(share * usual, monkeypatch)
        assert len(budget.history) == 1
        if isinstance(found, dpm.Release):
            released += 1
            assert SPHERE.dist(SPHERE.origin, found.value) > 0.3, f"the centre, at {share:.3f} of the time"
        else:
            lost += 1
    assert lost
    assert released
