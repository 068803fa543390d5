"""PrivateLDA on matrices, beside pyRiemann; scikit-learn's own checks on vectors are in test_estimators.py."""

import pickle

import numpy as np
import pytest
from pyriemann.classification import TSClassifier
from pyriemann.estimation import Covariances
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import dpmanifold as dpm
from dpmanifold import GDP, SPD, Ball, Budget, BudgetError, InvalidArgumentError, InvalidDataError
from dpmanifold.estimators import PrivateLDA

BALL = Ball(SPD(3), np.eye(3), 1.5, source="simulation")
CLASSES = ["left", "right", "up"]


def epochs(n=300, samples=60, seed=0):
    """Trials (n, 3 channels, samples) of three classes that differ in which channel is loud."""
    rng = np.random.default_rng(seed)
    number = rng.permutation(n) % 3
    loud = 1 + 0.25 * np.eye(3)[number]
    return rng.standard_normal((n, 3, samples)) * loud[:, :, None], np.array(CLASSES)[number]


def matrices(n=300, seed=0):
    E, y = epochs(n, seed=seed)
    return Covariances().transform(E), y


def made(privacy=None, **changes):
    given = {"units": "each-record", "budget": None if "public_data" in changes else Budget(GDP(1.0))}
    return PrivateLDA(BALL, privacy or GDP(0.5), **{**given, "classes": CLASSES, **changes})


def test_a_fit_is_the_function_with_that_seed():
    X, y = matrices()
    model = made(classes=CLASSES[::-1], random_state=5).fit(X, y)
    alone = dpm.private_lda(X, y, BALL, GDP(0.5), units=dpm.EACH_RECORD, classes=CLASSES, rng=5)
    assert model.classes_.tolist() == CLASSES
    np.testing.assert_array_equal(model.release_.value, alone.release.value)
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.means_.shape == (3, 3, 3)
    assert model.covariance_.shape == (6, 6)
    assert not model.release_.private


def test_two_classes_have_one_score():
    X, y = matrices()
    model = made(classes=CLASSES[:2]).fit(X[y != "up"], y[y != "up"])
    score, proba = model.decision_function(X), model.predict_proba(X)
    assert score.shape == (300,)
    np.testing.assert_allclose(score, np.log(proba[:, 1] / proba[:, 0]), rtol=1e-6, atol=1e-9)
    assert ((score > 0) == (model.predict(X) == "right")).all()


def test_a_generous_budget_is_nearly_as_accurate_as_pyriemann():
    """The same discriminant in the tangent space without privacy; seeded."""
    (X, y), (X_new, y_new) = matrices(900, seed=1), matrices(1500, seed=2)
    plain = TSClassifier(metric="logeuclid", clf=LinearDiscriminantAnalysis()).fit(X, y).score(X_new, y_new)
    private = made(GDP(20.0), budget=Budget(GDP(20.0)), random_state=0).fit(X, y).score(X_new, y_new)
    assert 0.8 < plain < 0.99  # neither too hard nor too easy to tell anything
    assert private > plain - 0.02


def test_a_class_without_units_is_not_seen():
    X, y = matrices()
    model = made().fit(X[y != "up"], y[y != "up"])
    assert model.classes_.tolist() == CLASSES
    assert model.predict_proba(X).shape == (300, 3)
    with pytest.raises(InvalidDataError, match="class 'up' has no records"):
        made(labels_public=True).fit(X[y != "up"], y[y != "up"])


def test_budgets_clones_and_pickles():
    X, y = matrices()
    model = made()
    assert clone(model).budget is model.budget
    assert PrivateLDA(**model.get_params()).get_params() == model.get_params()
    clone(model).fit(X, y)
    model.fit(X, y)
    assert model.budget.spent.mu == pytest.approx(0.5 * 2**0.5)
    with pytest.raises(BudgetError):
        model.set_params(privacy=GDP(0.9)).fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.budget is None
    learnt = {name for name in vars(model) if name not in model.get_params()}
    assert learnt == {"discriminant_", "classes_", "n_features_in_"}
    assert dpm.verify(model.discriminant_).ok


def test_refused_and_unfitted_models_are_not_fitted():
    X, y = matrices()
    model = made(privacy=GDP(9.0))
    with pytest.raises(BudgetError):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(made(), "means_")
    with pytest.raises(InvalidArgumentError, match="classes must be a list of names"):
        made(classes="left").fit(X, y)
    with pytest.raises(InvalidArgumentError, match="budget must be given"):
        made(budget=None).fit(X, y)
    assert made(public_data=True).fit(X, y).release_.private is False


def test_it_goes_into_pipelines_with_units():
    E, y = epochs(450)
    pipe = make_pipeline(Covariances(), made(GDP(0.4), refine=True, random_state=0))
    scores = cross_val_score(pipe, E, y, cv=3, error_score="raise")
    assert scores.mean() > 0.6
    X, y = matrices(600)
    owners = np.arange(600) // 4  # with trials of several classes each
    model = made(units=None, random_state=0).fit(X, y, units=owners)  # one seed in 25 scores less than is asked for
    assert (model.release_.n, model.release_.unit) == (150, "unit")
    assert model.score(X, y) > 0.6
