"""In a notebook a plan or a result is displayed once, by the notebook: making its text displays nothing."""

import sys
import types

import numpy as np
import pytest
import rich.console

import dpmanifold as dpm

BALL = dpm.Ball(dpm.SPD(2), np.eye(2), 1.0)
X = np.repeat(np.eye(2)[None], 40, axis=0)
T = np.linspace(0.0, 1.0, 40)
LABELS = ["a", "b"] * 20
TERMS = {"units": dpm.EACH_RECORD, "rng": 0}
G = dpm.GDP(1.0)


@pytest.fixture
def displayed(monkeypatch):
    """Pretend to be a notebook; return what was displayed by itself."""
    shown = []
    inside = types.ModuleType("IPython.display")
    inside.display = lambda *what, **how: shown.append(what)
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    return shown


def test_the_notebook_is_one(displayed):
    rich.console.Console().print("seen")
    assert len(displayed) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: dpm.plan(40, BALL, G),
        lambda: dpm.plan((20, 20), BALL, G, statistic="two-sample-test"),
        lambda: dpm.private_mean(X, BALL, G, **TERMS),
        lambda: dpm.private_region(X, BALL, G, **TERMS),
        lambda: dpm.private_variance_interval(X, BALL, G, **TERMS),
        lambda: dpm.private_two_sample_test(X, X, BALL, G, **TERMS),
        lambda: dpm.private_k_sample_test(X, LABELS, BALL, G, classes=["a", "b"], **TERMS),
        lambda: dpm.private_lda(X, LABELS, BALL, G, classes=["a", "b"], **TERMS),
        lambda: dpm.private_regression(X, T, BALL, G, covariate_range=(0, 1), **TERMS),
        lambda: dpm.verify(dpm.private_mean(X, BALL, G, **TERMS)),
    ],
)
def test_it_is_displayed_once(displayed, monkeypatch, make):
    found = make()
    texts = [repr(found), getattr(found, "_repr_html_", lambda: "")()]
    assert displayed == []
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: False)
    assert repr(found) == texts[0]
