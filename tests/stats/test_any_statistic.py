"""`private_statistic` for every statistic there is: what it draws costs what it charges, whatever options it takes."""

import inspect
import sys

import numpy as np
import pytest

import dpmanifold as dpm
from laws.data import in_ball

BALL = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.6, source="by design")
X = in_ball(BALL, 3000, np.random.default_rng(0))
NAMES = ["mean", "variance", "ball", "second moment", "fourth moment", "joint moments", "joint lengths",
         "joint distances", "radius", "shaped mean",
         "median"]  # fmt: skip
NAMES += ["signs", "components"]
# What records alone do not give: asked for by a call of its own.
WITH_MORE = {"class moments", "regression"}
# One value of each option besides the default; an option that is missing here fails the test that reads it.
OTHER = {
    "mechanism": "riemannian-gaussian",
    "estimand": "tangent",
    "refine": True,
    "project": False,
    "shrinkage": None,
    "count": 1,
    "coverage": 0.9,
    "about": BALL.center,
    "weight": 1.0,
    "square": 1.0,
    "fourth": 2.0,
    "products": 0.5,
    "third": 2.0,
    "noise_shape": np.diag([4.0, 1.0]),
}
# Where another one than that is what the statistic takes.
FOR_ITSELF = {("ball", "mechanism"): "auto", ("joint moments", "mechanism"): "gaussian",
              ("joint lengths", "mechanism"): "gaussian",
              ("joint distances", "mechanism"): "gaussian", ("radius", "mechanism"): "gaussian",
              ("mean", "noise_shape"): None, ("shaped mean", "mechanism"): "wrapped-gaussian",
              ("shaped mean", "refine"): False,
              ("median", "mechanism"): "gaussian", ("median", "refine"): False}  # fmt: skip


def options_of(name):
    return [option for option in inspect.signature(dpm.STATISTICS.get(name).prepared).parameters if option != "header"]


def test_all_of_the_librarys_own_are_here():
    def is_ours(one):  # and not of an example in a docstring
        return getattr(sys.modules.get(type(one).__module__), type(one).__name__, None) is type(one)

    ours = [one for one in dpm.STATISTICS.own() if type(one).__module__.startswith("dpmanifold") and is_ours(one)]
    assert {one.name for one in ours} == {*NAMES, *WITH_MORE}


@pytest.mark.parametrize("name", NAMES)
def test_no_option_is_a_promise_a_share_or_a_detail(name):
    """What a call may cost is said once, by the promise that the budget is charged with."""
    prepared = dpm.STATISTICS.get(name).prepared
    for option in options_of(name):
        assert option not in {"share", "shares", "details", "privacy", "budget", "steps", "scale"}
        said = str(inspect.signature(prepared).parameters[option].annotation)
        assert not any(word in said for word in ("Promise", "DP", "Budget", "dict"))


@pytest.mark.parametrize("option", ["share", "details", "header", "steps"])
@pytest.mark.parametrize("name", NAMES)
def test_what_a_call_may_cost_is_no_option(name, option):
    budget = dpm.Budget(dpm.GDP(1.0))
    given = {option: {} if option == "details" else dpm.GDP(100.0)}
    with pytest.raises(dpm.InvalidArgumentError, match="no option"):
        dpm.private_statistic(X, BALL, dpm.GDP(0.1), statistic=name, units=dpm.EACH_RECORD, budget=budget, **given)
    with pytest.raises(dpm.InvalidArgumentError, match="no option"):
        dpm.plan(3000, BALL, dpm.GDP(0.1), statistic=name, **given)
    assert not budget.history


@pytest.mark.parametrize(("name", "option"), [(name, option) for name in NAMES for option in [None, *options_of(name)]])
def test_a_release_costs_what_was_charged(name, option):
    """`verify` recomputes every share and scale from the promise that is stated, which is the one charged."""
    budget, privacy = dpm.Budget(dpm.GDP(5.0)), dpm.GDP(2.0)
    given = {} if option is None else {option: FOR_ITSELF.get((name, option), OTHER[option])}
    release = dpm.private_statistic(X, BALL, privacy, statistic=name, units=dpm.EACH_RECORD, budget=budget, **given)
    assert release.privacy == privacy
    assert [spent.privacy for spent in budget.history] == [privacy]
    found = dpm.verify(release)
    assert found.ok, found.wrong


def test_means_by_class_refuse_what_is_no_promise():
    labels = ["a", "b"] * 1500
    with pytest.raises(dpm.InvalidArgumentError, match="privacy must be a promise such as"):
        dpm.private_class_means(X, labels, BALL, "x", units=dpm.EACH_RECORD, classes=["a", "b"])
    units = np.arange(3000) // 3
    with pytest.raises(dpm.InvalidArgumentError, match="privacy must be a promise such as"):
        dpm.private_class_means(X, labels, BALL, 1.0, units=units, classes=["a", "b"])
