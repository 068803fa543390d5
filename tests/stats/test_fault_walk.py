"""Faults behind the payment, at every line, of every kind, whoever paid: nothing is released, nothing drawn again."""

import collections
import functools
import itertools

import pytest

from dpmanifold.ledger import Ledger
from laws.tiers import pairs
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
SLOTS = ("budget", "ledger", "budget", "nobody", "budget", "budget", "nobody", "ledger")
# Their stored results are written and read in ways that others' are not.
STORED = ("mean", "mean on a sphere", "mean of matrices", "mean of shapes", "mean of pairs", "classes", "components")
# How many lines of a case may not run, as noise does not lead there every time.
MISSED = 0.05


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
    return found[0][0].co_filename.endswith("settling.py")


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
            outcome = Outcome(query, fault, payer, place, 1 if again else when, 1 + again, books, monkeypatch)
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
