"""scikit-learn's tools with an account: clones share it, a key is one fit, pickles are safe."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import dpmanifold as dpm
from dpmanifold.errors import BudgetError, InvalidArgumentError
from dpmanifold.estimators import PrivateFrechetMean, PrivateMDM
from dpmanifold.ledger import Ledger
from laws.accounts import MemoryAccount

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0)
X = np.random.default_rng(0).normal(0.0, 0.5, (60, 2))
Y = np.array(["a", "b"] * 30)
ACCOUNTS = {}


class NamedAccount(MemoryAccount):
    """An account that is pickled by its name, as a ledger's is."""

    def __init__(self, cap, name):
        super().__init__(cap, name)
        ACCOUNTS[name] = self

    def __reduce__(self):
        return account_named, (self.name,)


def account_named(name):
    return ACCOUNTS[name]


@pytest.fixture
def account():
    return NamedAccount(dpm.GDP("1"), "cohort")


def mean_model(account, **rest):
    return PrivateFrechetMean(BALL, dpm.GDP("0.5"), units="each-record", budget=account, **rest)


def class_model(account, **rest):
    return PrivateMDM(BALL, dpm.GDP("0.5"), classes=["a", "b"], units="each-record", budget=account, **rest)


def released(model):
    return model.release_ if isinstance(model, PrivateFrechetMean) else model.releases_["a"]


def test_a_key_is_one_fit_and_other_records_are_refused_under_it(account):
    for model in (mean_model(account, key="mean"), class_model(account, key="classes")):
        copy = clone(model)
        assert copy.budget is account
        assert copy.key == model.key
        model.fit(X, Y)
        copy.fit(X, Y)  # stored, and free
        stated = [
            vars(one.release_ if one.__class__ is PrivateFrechetMean else one.releases_["a"]) for one in (model, copy)
        ]
        assert stated[0]["receipt"] == stated[1]["receipt"]
        assert np.array_equal(stated[0]["value"], stated[1]["value"])
        with pytest.raises(InvalidArgumentError, match="another request"):
            copy.fit(X[::-1], Y)
    assert len(account.orders) == 2


def test_a_cross_validation_with_a_key_stops_at_its_second_fold_and_one_without_pays_for_each(account):
    with pytest.raises(InvalidArgumentError, match="another request"):
        cross_val_score(class_model(account, key="classes"), X, Y, cv=3, error_score="raise")
    assert len(account.orders) == 1
    other = NamedAccount(dpm.GDP("1"), "other")
    with pytest.raises(BudgetError):  # four of a half each fill the cap of 1
        cross_val_score(class_model(other), X, Y, cv=5, error_score="raise")
    assert other.spent == dpm.GDP("1")
    assert len({order.key for order in other.orders}) == 4


def test_an_unfitted_estimator_takes_its_account_along_and_a_fitted_one_leaves_it(account):
    model = pickle.loads(pickle.dumps(mean_model(account)))
    assert model.budget is account
    model.fit(X)
    assert account.spent == dpm.GDP("0.5")
    stored = pickle.dumps(model)
    assert b"account_named" not in stored
    loaded = pickle.loads(stored)
    assert loaded.budget is None
    assert np.array_equal(loaded.transform(X), model.transform(X))
    with pytest.raises(InvalidArgumentError, match="budget must be given"):
        loaded.fit(X)
    assert clone(model).budget is account


def test_seeds_keys_without_account_and_registered_data_are_refused(account):
    with pytest.raises(InvalidArgumentError, match="rng must be None"):
        mean_model(account, random_state=0).fit(X)
    with pytest.raises(InvalidArgumentError, match="key goes with an account"):
        mean_model(dpm.Budget(dpm.GDP(1.0)), key="mean").fit(X)
    data = account.register("study", X, BALL, dpm.EACH_RECORD)
    with pytest.raises(InvalidArgumentError, match="got registered data"):
        mean_model(account).fit(data)
    assert account.spent is None


@pytest.mark.slow  # starts two processes
def test_processes_share_the_account_of_a_ledger(tmp_path):
    with Ledger.create(str(tmp_path / "study.db")) as ledger:
        cohort = ledger.population("cohort", cap=dpm.GDP("1"), unit="record")
        scores = cross_val_score(class_model(cohort), X, Y, cv=4, n_jobs=2, error_score="raise")
        assert len(scores) == 4
        assert cohort.spent == dpm.GDP("1")
        assert cohort.remaining is None
        with pytest.raises(BudgetError):
            class_model(cohort).fit(X, Y)
        assert [entry.kind for entry in ledger.entries()].count("drawn") == 4
        assert ledger.audit().ok
