"""Data sets of a population: registered by whoever holds them, opened later by whoever asks, and only once paid for."""

import pathlib
import pickle

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, LedgerError, ReleaseLostError
from dpmanifold.ledger import Ledger
from laws.pieces import ListSource

pytestmark = pytest.mark.security

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0, source="an atlas")
X = np.random.default_rng(0).normal(0.0, 0.5, (60, 2))
IDS = [f"p{i // 2}" for i in range(60)]
LABELS = [1.5, 2.5] * 30


def mean(data, cohort, **rest):
    return dpm.private_mean(data, BALL, dpm.GDP("0.1"), units=None, budget=cohort, **rest)


def test_what_was_registered_is_opened_by_somebody_else_later(ledger_url, cohort):
    data = cohort.register("dti", X, BALL, units=IDS)
    assert (data.id, data.n, data.unit, data.ball, data.invalid) == ("dti@1", 30, "unit", BALL, "raise")
    first = mean(data, cohort, key="mean")
    called = []

    def records():
        called.append(len(list(book.entries())))
        return X.tolist()

    with Ledger(ledger_url, principal="ada") as book:
        again = book.population("cohort")
        later = again.dataset("dti", records, units=IDS)
        assert (later.id, later.ball, later.facts) == (data.id, data.ball, data.facts)
        assert mean(later, again, key="mean").to_dict() == first.to_dict()
        assert called == []  # answered before, hence not opened
        before = len(list(book.entries()))
        assert mean(later, again).private
        assert called == [before + 2]  # behind the entries of the spend and of its start
        assert [known.id for known in again.datasets()] == ["dti@1"]


def test_other_records_are_the_next_version_and_the_same_ones_are_not(cohort):
    assert cohort.register("dti", X, BALL, units=IDS).id == "dti@1"
    assert cohort.register("dti", X.tolist(), BALL, units=IDS).id == "dti@1"
    assert cohort.register("dti", X + 0.01, BALL, units=IDS).id == "dti@2"
    smaller = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 2.0)
    assert cohort.register("dti", X, smaller, units=IDS).id == "dti@3"
    assert cohort.dataset("dti", X, units=IDS).ball == smaller
    assert cohort.dataset("dti", X, units=IDS, version=1).ball == BALL
    assert mean(cohort.dataset("dti", X, units=IDS, version=1), cohort).receipt is not None
    with pytest.raises(ReleaseLostError):
        mean(cohort.dataset("dti", X, units=IDS, version=2), cohort)


def test_columns_are_remembered_and_arrays_are_given_again(cohort):
    source = ListSource(X, np.array(IDS), np.array(LABELS), cuts=(20,), block=7)
    named = {"units": "person", "labels": "group", "classes": [1.5, 2.5]}
    data = cohort.register("eeg", source, BALL, **named)
    assert data.facts["touched"] == 2
    found = cohort.dataset("eeg", lambda: source)
    asked = {"units": None, "classes": [1.5, 2.5], "budget": cohort, "key": "means"}
    first = dpm.private_class_means(found, None, BALL, dpm.GDP("0.1"), **asked)
    again = dpm.private_class_means(data, None, BALL, dpm.GDP("0.1"), **asked)
    assert list(first) == [1.5, 2.5]
    assert [one.to_dict() for one in first.values()] == [one.to_dict() for one in again.values()]
    cohort.register("arrays", X, BALL, units=IDS, labels=LABELS, classes=[1.5, 2.5])
    with pytest.raises(InvalidArgumentError, match="units were registered as an array"):
        cohort.dataset("arrays", X)
    with pytest.raises(InvalidArgumentError, match="labels were registered as an array"):
        cohort.dataset("arrays", X, units=IDS)
    assert mean(cohort.dataset("arrays", X, units=IDS, labels=LABELS), cohort).n == 30


def test_bad_records_count_as_the_centre_then_as_now(cohort):
    bad = X.tolist()
    bad[5] = None
    with pytest.raises(InvalidDataError):
        cohort.register("dti", bad, BALL, units="each-record")
    cohort.register("dti", bad, BALL, units="each-record", invalid="center")
    assert mean(cohort.dataset("dti", lambda: bad), cohort).n == 60
    with pytest.raises(ReleaseLostError):
        mean(cohort.dataset("dti", lambda: X), cohort)  # somebody has mended the sixth


def test_what_is_public_is_refused_before_the_spend(ledger, cohort, tmp_path):
    data = cohort.register("dti", X, BALL, units=IDS)
    with pytest.raises(InvalidArgumentError, match=r"no data set 'eeg' is registered.*there are: dti@1"):
        cohort.dataset("eeg", X)
    with pytest.raises(InvalidArgumentError, match="no data set 'dti@2'"):
        cohort.dataset("dti", X, version=2)
    with pytest.raises(InvalidArgumentError, match="X is registered already"):
        cohort.register("again", data, BALL, units=None)
    with pytest.raises(InvalidArgumentError, match="name must have no colon"):
        cohort.register("a:b", X, BALL, units=IDS)
    with pytest.raises(InvalidArgumentError, match="labels and classes go together"):
        cohort.register("dti", X, BALL, units=IDS, labels=LABELS)
    others = ledger.population("others", cap=dpm.GDP("1"), unit="participant")
    with pytest.raises(InvalidArgumentError, match="only its account"):
        mean(data, others)
    assert mean(data, cohort.as_principal("bob")).private
    spent = cohort.spent
    secret = pathlib.Path(ledger.secret)
    moved = secret.rename(tmp_path / "elsewhere.key")
    with pytest.raises(LedgerError):
        mean(data, cohort)
    moved.rename(secret)
    assert cohort.spent == spent


def test_registered_data_travel_with_their_population(cohort):
    data = pickle.loads(pickle.dumps(cohort.register("dti", X, BALL, units=IDS)))
    assert mean(data, cohort).private
    assert repr(data) == "RegisteredData('dti@1', 30 units, population='cohort')"


def test_the_same_records_in_two_populations_are_noted(tmp_path):
    """The curator is told when they are registered, and so is whoever audits: the caps add up for these people."""
    ball, X = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0), np.linspace(-0.5, 0.5, 20)[:, None]
    ids = [f"p{number}" for number in range(20)]
    with Ledger(tmp_path / "study.db", principal="ada") as ledger:
        told = []
        for name in ("first", "second"):
            population = ledger.population(name, cap=dpm.GDP("1"), unit="unit")
            population.register("dti", X, ball, units=ids, curator=told.append)
            population.register("eeg", X + len(told), ball, units=ids, curator=told.append, confirm=True)
        shared = [str(notice) for notice in told if notice.elsewhere]
        assert len(shared) == 1
        assert "registered with 'first'" in shared[0]
        notes = [note for note in ledger.audit().notes if "same records" in note]
        assert notes == ["the same records are in several populations, whose caps add up for them: dti@1 of 'first', "
                         "dti@1 of 'second'."]  # fmt: skip
