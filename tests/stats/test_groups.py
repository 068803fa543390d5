"""private_k_sample_test: who may be in it, what it costs, what is drawn, and that nothing fails behind the spend."""

import json
import math

import numpy as np
import pytest
from scipy import special

import dpmanifold as dpm
from dpmanifold.errors import BudgetError, InvalidArgumentError, InvalidDataError, PromiseError
from dpmanifold.ledger import Ledger
from laws.accounts import MemoryAccount
from laws.pieces import ListSource

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0)
EACH = dpm.EACH_RECORD
NAMES = ["a", "b", "c"]
X = np.random.default_rng(0).normal(0.0, 0.5, (90, 2))
LABELS = NAMES * 30
IDS = [f"p{i // 3}{LABELS[i]}" for i in range(90)]
LESS = dpm.GDP("0.1")


def asked(records=X, labels=LABELS, ball=BALL, privacy=LESS, **how):
    return dpm.private_k_sample_test(records, labels, ball, privacy, **{"units": EACH, "classes": NAMES, **how})


def bits(result):
    return [json.dumps(release.to_dict(answers=False)) for release in result.released]


# -------------------------------------------------------------------- who may be in it


def test_nobody_is_in_two_groups():
    assert asked(units=IDS).released[0].unit == "unit"
    shared = ["p", "p", *IDS[2:]]
    budget = dpm.Budget(dpm.GDP(1.0))
    with pytest.raises(InvalidDataError, match=r"a unit has records in 2 groups.*Nothing was spent"):
        asked(units=shared, budget=budget)
    assert budget.spent is None


@pytest.mark.parametrize("unit", ["record", "participant"])
def test_registered_groups_are_opened_once_they_are_paid_for(tmp_path, unit):
    """That a unit is in two groups is known when they are registered: it is refused before the spend."""
    ids = EACH if unit == "record" else IDS
    with Ledger(tmp_path / "study.db", principal="ada") as ledger:
        cohort = ledger.population("cohort", cap=dpm.GDP("1"), unit=unit)
        data = cohort.register("study", X, BALL, units=ids, labels=LABELS, classes=NAMES)
        found = asked(data, None, units=None, budget=cohort, key="once")
        assert found.verify().ok
        assert {release.receipt.population for release in found.released} == {"cohort"}
        assert bits(asked(data, None, units=None, budget=cohort, key="once")) == bits(found)
        assert cohort.spent == LESS
        with pytest.raises(InvalidArgumentError, match="another request"):
            asked(data, None, units=None, budget=cohort, key="once", refine=True)
        if unit == "participant":
            mixed = cohort.register("mixed", X, BALL, units=[f"p{i // 2}" for i in range(90)], labels=LABELS,
                                    classes=NAMES)  # fmt: skip
            with pytest.raises(InvalidDataError, match="a unit has records in 2 groups"):
                asked(mixed, None, units=None, budget=cohort)
            with pytest.raises(InvalidArgumentError, match="protects each participant"):
                asked(budget=cohort)
        with pytest.raises(InvalidArgumentError, match="classes must be those"):
            asked(data, None, units=None, budget=cohort, classes=["a", "b"])
        assert cohort.spent == LESS


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"classes": ["a"]}, "two or more distinct names, got 1 name"),
        ({"classes": ["a", "b", "c", "c"]}, "'c' is there twice"),
        ({"classes": [1, "1"]}, "1 and '1' are written alike"),
        ({"classes": "abc"}, "a list of names, got 'abc'"),
        ({"classes": ["a", "b"]}, "outside the public classes"),
        ({"classes": ["a", "b", "c", "d"]}, "class 'd' has no records"),
        ({"labels": LABELS[1:]}, "labels must have shape"),
        ({"ball": LESS, "privacy": BALL}, "ball must be a Ball"),
        ({"estimand": "median"}, "estimand must be"),
        ({"level": 95}, "level must be"),
        ({"refine": "yes"}, "refine"),
        ({"privacy": dpm.PureDP(1.0)}, "needs Gaussian noise"),
        ({"units": None}, "units"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(changed, words):
    account = MemoryAccount(dpm.GDP(5.0))
    with pytest.raises((InvalidArgumentError, InvalidDataError, PromiseError), match=words):
        asked(budget=account, **changed)
    assert account.orders == []


# -------------------------------------------------------------------- what it costs


def test_all_comparisons_cost_what_one_does():
    budget = dpm.Budget(dpm.GDP(1.0))
    found = asked(privacy=dpm.GDP(1.0), budget=budget)
    assert found.privacy == dpm.GDP(1.0) == budget.spent
    assert {release.privacy for release in found.released} == {dpm.GDP(1.0)}
    with pytest.raises(BudgetError):
        asked(privacy=dpm.GDP(0.5), budget=budget)
    account = MemoryAccount(dpm.GDP(5.0))
    first = asked(budget=account, key="once")
    assert account.events == ["registered", "spent", "started", "drawn"]
    assert bits(asked(budget=account, key="once", level=0.9)) == bits(first)  # the level is no part of what is drawn
    order = [NAMES.index(name) for name in LABELS]
    for other in ({"refine": True}, {"classes": NAMES[::-1]}, {"labels": order, "classes": [0, 1, 2]}):
        with pytest.raises(InvalidArgumentError, match="another request"):
            asked(budget=account, key="once", **other)
    assert len(account.orders) == 1


def test_a_seed_is_no_release():
    found = asked(rng=1)
    assert not found.private
    assert found.verify().ok
    assert not found.verify().private
    assert bits(found) == bits(asked(rng=1))
    assert asked().private


# -------------------------------------------------------------------- what is drawn


def test_each_group_is_released_by_itself_as_a_region_is():
    """What others hold changes no bit of a group before theirs, and each has the noise of a region."""
    found = asked(rng=1, units=IDS)
    moved = X.copy()
    moved[np.array(LABELS) == "c"] = 2.9
    assert bits(asked(moved, rng=1, units=IDS))[:2] == bits(found)[:2]
    region = dpm.private_region(X[:30], BALL, LESS, units=EACH).release
    assert {(release.scale, release.statistic, release.n) for release in found.released} == {
        (region.scale, region.statistic, region.n)
    }


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize(
    ("space", "estimand"),
    [
        (dpm.Euclidean(2), None),
        (dpm.Sphere(2), None),
        *(pytest.param(dpm.SPD(2, metric="riemann"), one, marks=pytest.mark.slow) for one in (None, "tangent")),
    ],
)
def test_a_plan_foresees_what_is_drawn(space, estimand, refine):
    ball = dpm.Ball(space, space.origin, 0.7)
    c = 0.01 * np.random.default_rng(0).standard_normal((900, space.dim))
    how = {"estimand": estimand, "refine": refine}
    found = asked(space.exp_coords(ball.center, c), NAMES * 300, ball, dpm.GDP(1.0), **how)
    outlook = dpm.plan([300, 300, 300], ball, dpm.GDP(1.0), statistic="k-sample-test", **how)
    drawn = []
    for release in found.released:
        chain = [release]
        while chain[0].steps:
            chain.insert(0, chain[0].steps[0])
        drawn += chain if not drawn else [one for one in chain if one.statistic != "ball"]
    assert [step.statistic for step in outlook.steps] == [one.statistic for one in drawn]
    assert [step.mechanism for step in outlook.steps] == [one.mechanism for one in drawn]
    assert found.verify().ok
    assert outlook.n == 900
    if refine:
        assert len({json.dumps(mean.release.steps[0].to_dict()) for mean in found.means}) == 1
        assert found.ball.radius < ball.radius


def test_plans_want_the_units_of_each_group():
    for n, got in ((300, "300"), ([300], "1 of them"), ("33", "'33'")):
        with pytest.raises(InvalidArgumentError, match=f"n must be the units of each group.* got {got}"):
            dpm.plan(n, BALL, LESS, statistic="k-sample-test")


def test_plans_say_which_group_has_how_much_noise_and_what_differences_are_found():
    outlook = dpm.plan([300, 100, 200], BALL, dpm.GDP(1.0), statistic="k-sample-test")
    assert [step.group for step in outlook.steps] == [
        f"group {i} ({n} units)" for i, n in ((1, 300), (2, 100), (3, 200))
    ]
    assert "group 2 (100 units)" in repr(outlook)
    assert "of group 2 (100 units), the most of all groups," in outlook.verdict
    assert f"{outlook.steps[1].error:.3g}" in outlook.verdict
    worth = outlook.prospect
    pair = dpm.plan((100, 200), BALL, dpm.GDP(1.0), statistic="two-sample-test").prospect
    assert (worth.pairs, pair.pairs) == (3, 1)
    assert worth.size > pair.size  # of three pairs each must be clearer than if it were the only one
    assert "any two groups" in worth.verdict
    assert dpm.plan([100, 200], BALL, dpm.GDP(1.0), statistic="k-sample-test").prospect == pair
    assert dpm.plan([300, 100, 200], BALL, dpm.GDP(1.0), statistic="k-sample-test", fill=0.3).prospect.size < worth.size
    even = dpm.plan([100, 100], BALL, dpm.GDP(1.0), statistic="k-sample-test", refine=True)
    assert "of each group" in even.verdict
    assert "draws of several kinds" in even.prospect.verdict


@pytest.mark.slow
def test_groups_are_found_to_differ_as_the_plan_says():
    """Two smallest of three groups, 300 tests: the share is at least 0.8 but for 4 standard deviations of 0.023.

    Half as far apart, fewer than 0.6 are.
    """
    numbers, spread = [60, 60, 200], 0.5 * BALL.radius / math.sqrt(special.chdtri(2, 0.05))
    size = dpm.plan(numbers, BALL, dpm.GDP(1.0), statistic="k-sample-test").prospect.size
    labels = np.repeat(NAMES, numbers)
    rng = np.random.default_rng(5)

    def power(apart):
        moved = np.repeat([[-apart / 2, 0.0], [apart / 2, 0.0], [0.0, 0.0]], numbers, axis=0)
        tests = [
            asked(moved + spread * rng.standard_normal((320, 2)), labels, privacy=dpm.GDP(1.0), rng=i)
            for i in range(300)
        ]
        return np.mean([test.pair("a", "b").p_value <= 0.05 for test in tests])

    assert power(size) > 0.8 - 4 * 0.023
    assert power(size / 2) < 0.6


def test_products_are_compared_and_pieces_give_the_same_bits():
    space = dpm.Product([dpm.SPD(2), dpm.Euclidean(1)])
    ball = dpm.Ball(space, space.origin, 2.0)
    c = 0.2 * np.random.default_rng(0).standard_normal((90, space.dim))
    assert asked(space.exp_coords(ball.center, c), ball=ball, units=IDS).verify().ok
    pieces = ListSource.at_random(X, IDS, LABELS, rng=np.random.default_rng(1))
    for refine in (False, True):
        whole = asked(units=IDS, rng=3, refine=refine)
        assert bits(asked(pieces, "group", units="person", rng=3, refine=refine)) == bits(whole)


# -------------------------------------------------------------------- behind the spend

STRANGE = {
    "one point": np.zeros((90, 2)),
    "all outside": np.full((90, 2), 1e9),
    "far outside": np.full((90, 2), 1e308),
    "hardly anything": np.full((90, 2), 5e-324),
    "one far": np.vstack([np.full((1, 2), 1e300), np.zeros((89, 2))]),
    "none of them numbers": np.full((90, 2), np.nan),
    "some of them numbers": np.where(np.arange(180).reshape(90, 2) % 7, 0.1, np.inf),
}


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("name", STRANGE)
def test_nothing_fails_behind_the_spend(name, refine):
    how = {"invalid": "center", "confirm": True, "privacy": dpm.GDP(1.0)}
    found = asked(STRANGE[name], refine=refine, arithmetic="float" if refine else "auto", **how)
    assert dpm.KSampleTest.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))).verify().ok
    assert 0 <= found.p_value <= 1


def test_points_of_a_curved_space_that_lie_in_one_place():
    for space in (dpm.Sphere(2), dpm.KendallShapes(4)):
        ball = dpm.Ball(space, space.origin, 0.3)
        records = np.repeat(space.origin[None], 90, axis=0)
        for estimand in ("frechet", "tangent"):
            found = asked(records, ball=ball, estimand=estimand, privacy=dpm.GDP(1.0))
            assert found.verify().ok
            assert found.p_value > 1e-6
