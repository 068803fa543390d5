"""Who is protected: records as units of their own, one person in two groups, and data of refused requests."""

import threading
import warnings

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.errors import BudgetError, InvalidArgumentError
from dpmanifold.ledger import Ledger
from dpmanifold.stats import private_class_means

pytestmark = pytest.mark.security

BALL = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
X = np.linspace(-0.5, 0.5, 60)[:, None]
IDS = [f"p{i // 5}" for i in range(60)]
EACH = dpm.EACH_RECORD
LESS = dpm.GDP("0.1")


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "study.db", principal="ada") as book:
        yield book


@pytest.fixture
def cohort(ledger):
    return ledger.population("cohort", cap=dpm.GDP("1"), unit="participant")


def kinds(ledger):
    return [entry.kind for entry in ledger.entries()]


# -------------------------------------------------------------------- records as units of their own


def test_records_of_people_are_no_units_unless_the_steward_says_so(ledger, cohort):
    def mean(records, **more):
        return dpm.private_mean(records, BALL, LESS, units=EACH, budget=cohort, **more)

    with pytest.raises(InvalidArgumentError, match=r"protects each participant.*registering them by name.*Nothing was"):
        mean(X)
    with pytest.raises(InvalidArgumentError, match="protects each participant"):
        private_class_means(X, ["a", "b"] * 30, BALL, LESS, units=EACH, classes=["a", "b"], budget=cohort)
    assert kinds(ledger) == ["created", "population"]
    assert mean(cohort.register("eeg", X, BALL, units=EACH)).n == 60
    for records in (X, X[::-1]):  # of which the first are registered: which is not told
        with pytest.raises(InvalidArgumentError, match="protects each participant"):
            mean(records)
    records = ledger.population("records", cap=dpm.GDP("1"), unit="record")
    assert dpm.private_mean(X, BALL, LESS, units=EACH, budget=records).n == 60


@pytest.mark.parametrize("by_name", [True, False])
def test_records_that_have_owners_are_no_units(cohort, by_name):
    if by_name:
        early = cohort.register("early", X, BALL, units=EACH)
        cohort.register("dti", X, BALL, units=IDS)
        with pytest.raises(InvalidArgumentError, match=r"registered with ids, as dti@1.*Nothing was spent"):
            dpm.private_mean(early, BALL, LESS, units=None, budget=cohort)
        assert cohort.spent is None
    else:
        dpm.private_mean(X, BALL, LESS, units=IDS, budget=cohort)
    spent = cohort.spent
    with pytest.raises(InvalidArgumentError, match="the same records are registered with ids"):
        cohort.register("dti2", list(X), BALL, units=EACH)
    assert cohort.spent == spent


# -------------------------------------------------------------------- one person in two groups


def test_groups_of_people_are_compared_by_their_ids_before_the_spend(ledger, cohort):
    def test(one, two, units, budget=cohort):
        return dpm.private_two_sample_test(one, two, BALL, LESS, units=units, budget=budget)

    others = [f"q{i // 5}" for i in range(60)]
    shared = ["p0", *others[1:]]
    for one, two in ((IDS, others), (IDS, shared)):  # what is said must not tell which
        handles = [cohort.register(f"{k}{two is shared}", X, BALL, units=ids) for k, ids in (("a", one), ("b", two))]
        with pytest.raises(InvalidArgumentError, match=r"arrays or sources with ids.*opened after the spend"):
            test(*handles, None)
    with pytest.raises(InvalidArgumentError, match=r"arrays or sources with ids.*does not tell people apart"):
        test(X, -X[::-1] / 2, EACH)
    with pytest.raises(InvalidArgumentError, match="overlap"):
        test(X, X / 2, (IDS, shared))
    assert cohort.spent is None
    assert test(X, X / 2, (IDS, others)).private
    records = ledger.population("records", cap=dpm.GDP("1"), unit="record")
    with pytest.raises(InvalidArgumentError, match="the same records twice"):
        test(X, X.tolist(), EACH, records)
    handles = [records.register(name, X, BALL, units=ids) for name, ids in (("a", IDS), ("b", EACH))]
    with pytest.raises(InvalidArgumentError, match=r"registered with ids.*Nothing was spent"):
        test(*handles, None, records)
    assert records.spent is None


# -------------------------------------------------------------------- refused requests leave nothing


def test_a_refused_request_registers_nothing(ledger_url):
    with Ledger(ledger_url, principal="ada") as ledger:
        cohort = ledger.population("cohort", cap=dpm.GDP("1"), unit="participant")
        cohort.register("dti", X, BALL, units=IDS)
        dpm.private_mean(X, BALL, LESS, units=IDS, budget=cohort, key="mean")
        before = kinds(ledger)
        for guess in (0.5, 0.25):  # the record that it is, and another
            guessed = X.copy()
            guessed[-1] = guess
            with pytest.raises(BudgetError):
                dpm.private_mean(guessed, BALL, dpm.GDP("2"), units=IDS, budget=cohort)
        with pytest.raises(InvalidArgumentError, match="another request"):
            dpm.private_mean(guessed, BALL, LESS, units=IDS, budget=cohort, key="mean")
        assert kinds(ledger) == before
        dpm.private_mean(guessed, BALL, LESS, units=IDS, budget=cohort)
        assert kinds(ledger)[len(before) :] == ["dataset", "spend", "started", "drawn"]
        assert ledger.audit().ok


def test_data_that_get_a_name_meanwhile_are_asked_for_again(cohort, monkeypatch):
    marked = type(cohort).marked

    def slowly(self, *given):
        found = marked(self, *given)
        self.register("dti", X, BALL, units=IDS)
        return found

    monkeypatch.setattr(type(cohort), "marked", slowly)
    with pytest.raises(InvalidArgumentError, match="registered as dti@1 while this was asked"):
        dpm.private_mean(X, BALL, LESS, units=IDS, budget=cohort)
    assert cohort.spent is None


# -------------------------------------------------------------------- public numbers, and warnings of other threads


@pytest.mark.parametrize("call", [dpm.private_mean, dpm.private_region])
def test_what_public_numbers_refuse_costs_nothing(cohort, call):
    space = dpm.Hyperbolic(2)
    points = space.exp_coords(space.origin, 0.1 * np.random.default_rng(0).standard_normal((60, 2)))
    data = cohort.register("far", points, dpm.Ball(space, space.origin, 1.0), units=IDS)
    wide = dpm.Ball(space, space.origin, 30.0)
    for given, units, budget in ((points, IDS, None), (data, None, cohort)):
        with pytest.raises(InvalidArgumentError, match="too large for a mean"):
            call(given, wide, dpm.GDP("0.5"), units=units, budget=budget, estimand="tangent")
    assert cohort.spent is None


def test_a_thread_that_puts_its_filters_back_shows_no_warning_of_the_work(cohort):
    shown, entered, go = [], threading.Event(), threading.Event()
    cohort.register("dti", X, BALL, units=IDS)

    def other():
        with warnings.catch_warnings():
            entered.set()
            go.wait(10)

    def records():
        go.set()
        thread.join()
        warnings.warn("p7 is odd", stacklevel=1)
        return X

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *rest, **more: shown.append(str(message))
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait(10)
        data = cohort.dataset("dti", records, units=IDS)
        assert dpm.private_mean(data, BALL, LESS, units=None, budget=cohort).private
        warnings.warn("afterwards", stacklevel=1)
    assert shown == ["afterwards"]
