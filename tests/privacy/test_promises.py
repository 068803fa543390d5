"""Promises: what they accept, what they say, how they are ordered, and the rounding they share."""

import json
import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpmanifold.errors import DPManifoldError, InvalidArgumentError
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PromiseError, PureDP, promise_from_dict
from dpmanifold.privacy.exact_decimals import float_down, float_up, sqrt_down, sqrt_up
from dpmanifold.privacy.promises import as_promise

positive = st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False)
probabilities = st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True)
every_promise = st.one_of(
    st.builds(PureDP, positive),
    st.builds(ApproxDP, positive, probabilities),
    st.builds(ZCDP, positive),
    st.builds(GDP, positive),
)
ordinary = st.floats(min_value=1e-3, max_value=20)
ordinary_promises = st.one_of(
    st.builds(PureDP, ordinary),
    st.builds(ApproxDP, ordinary, st.floats(min_value=1e-12, max_value=0.5)),
    st.builds(ZCDP, ordinary),
    st.builds(GDP, ordinary),
)

BAD_POSITIVE = [0, 0.0, -1.0, math.nan, math.inf, -math.inf, True, "one", None, [1.0], 1j, np.array([1.0]), 10**400]
BUILDERS = {
    "epsilon": [PureDP, lambda x: ApproxDP(x, 1e-5)],
    "rho": [ZCDP],
    "mu": [GDP],
    "delta": [lambda x: ApproxDP(1.0, x)],
}


@pytest.mark.parametrize("bad", BAD_POSITIVE, ids=repr)
@pytest.mark.parametrize("name", BUILDERS)
def test_bad_parameters_are_refused_by_name_with_a_remedy(name, bad):
    for build in BUILDERS[name]:
        with pytest.raises(InvalidArgumentError, match=rf"^{name} must .*got .*(private|promise)"):
            build(bad)


@pytest.mark.parametrize("bad", [1, 1.0, 1.5, 1e300])
def test_delta_stays_below_one(bad):
    with pytest.raises(InvalidArgumentError, match=r"^delta must be below 1, got .*such as 1e-6"):
        ApproxDP(1.0, bad)


def test_numbers_of_every_kind_become_floats():
    for value in (1, np.float64(1), np.float32(1), np.int64(1), Fraction(1)):
        assert type(PureDP(value).epsilon) is float
        assert PureDP(value) == PureDP(1.0)
    assert ApproxDP(1, Fraction(1, 4)) == ApproxDP(1.0, 0.25)


def test_promises_are_frozen_hashable_and_picklable():
    promise = ApproxDP(0.5, 1e-5)
    with pytest.raises(FrozenInstanceError):
        promise.epsilon = 100.0
    assert len({promise, ApproxDP(0.5, 1e-5), PureDP(0.5), ZCDP(0.5), GDP(0.5)}) == 4
    assert pickle.loads(pickle.dumps(promise)) == promise
    with pytest.raises(TypeError):
        Promise()


def test_kinds_with_the_same_number_differ():
    assert len({PureDP(0.5), ZCDP(0.5), GDP(0.5)}) == 3
    assert PureDP(0.5) != ZCDP(0.5)


@given(every_promise)
def test_json_round_trip_is_bit_for_bit(promise):
    again = promise_from_dict(json.loads(json.dumps(promise.to_dict())))
    assert type(again) is type(promise)
    assert repr(again) == repr(promise)  # repr of a float is exact
    assert again == promise


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "record must be a mapping"),
        ([("kind", "GDP")], "record must be a mapping"),
        ({}, r"record\['kind'\] must be one of PureDP, ApproxDP, ZCDP, GDP, got None"),
        ({"kind": "RDP", "alpha": 2.0}, "got 'RDP'"),
        ({"kind": ["GDP"], "mu": 2.0}, "got list"),
        ({"kind": "GDP"}, "must hold mu and nothing else, got nothing"),
        ({"kind": "GDP", "mu": 1.0, "delta": 0.1}, "got delta, mu"),
        ({"kind": "ApproxDP", "epsilon": 1.0}, "must hold delta, epsilon"),
        ({"kind": "PureDP", "epsilon": "1"}, "epsilon must be a number"),
        ({"kind": "PureDP", "epsilon": -1}, "epsilon must be finite"),
    ],
)
def test_a_bad_record_is_refused(record, message):
    with pytest.raises(InvalidArgumentError, match=message):
        promise_from_dict(record)


@pytest.mark.parametrize("promise", [PureDP(0.5), PureDP(800.0), ApproxDP(0.5, 1e-300), ZCDP(1e-9), GDP(3.0)], ids=repr)
def test_description_is_one_sentence_about_replacing_one_unit(promise):
    text = promise.describe()
    assert text.endswith(".")
    assert ". " not in text
    assert "one unit" in text
    assert "replac" in text.lower()
    assert all(f"{value:.4g}" in text for name, value in promise.to_dict().items() if name != "kind")


# -------------------------------------------------------------------- order


@given(ordinary_promises)
def test_order_is_reflexive(promise):
    assert promise <= promise
    assert promise >= promise
    assert not promise < promise
    assert not promise > promise


@given(ordinary_promises, ordinary_promises)
def test_order_agrees_with_implies_and_is_antisymmetric(a, b):
    assert (a <= b) == a.implies(b) == (b >= a)
    assert (a < b) == (a <= b and not b <= a) == (b > a)
    if type(a) is type(b) and a <= b <= a:
        assert a == b


def test_order_is_transitive():
    """All triples of 160 promises, 40 of each kind: a <= b <= c gives a <= c, by whatever conversions."""
    rng = np.random.default_rng(20_240_607)
    sizes = 10 ** rng.uniform(-3, 1.3, size=(4, 40))
    deltas = 10 ** rng.uniform(-9, -0.1, size=40)
    promises = [kind(x) for kind, row in zip((PureDP, ZCDP, GDP), sizes, strict=False) for x in row]
    promises += [ApproxDP(x, delta) for x, delta in zip(sizes[3], deltas, strict=True)]
    holds = np.array([[a <= b for b in promises] for a in promises])
    steps = holds.astype(int) @ holds.astype(int)
    assert steps.sum() > 100_000  # triples, so that the test says something
    assert holds[steps > 0].all()


def test_order_within_a_kind_is_by_size():
    assert PureDP(0.5) < PureDP(1.0)
    assert ZCDP(0.5) < ZCDP(1.0)
    assert GDP(0.5) < GDP(1.0)
    assert ApproxDP(0.5, 1e-6) < ApproxDP(1.0, 1e-5)


def test_what_cannot_be_compared_is_neither_more_nor_less():
    for a, b in [(ApproxDP(0.5, 1e-3), ApproxDP(1.0, 1e-5)), (ZCDP(0.1), GDP(1.0)), (ApproxDP(1.0, 1e-9), PureDP(5.0))]:
        assert not a <= b
        assert not b <= a
        assert not a < b
        assert not b < a


@pytest.mark.parametrize("other", [1.0, "GDP", None])
def test_order_with_anything_else_is_a_type_error(other):
    for compare in (lambda: GDP(1.0) <= other, lambda: GDP(1.0) < other, lambda: GDP(1.0) >= other):
        with pytest.raises(TypeError):
            compare()
    with pytest.raises(InvalidArgumentError, match="must be a promise"):
        GDP(1.0).implies(other)


def test_as_promise_says_what_to_give():
    with pytest.raises(InvalidArgumentError, match=r"^privacy must be a promise, got 0.5. Give PureDP\(epsilon\)"):
        as_promise(0.5)
    with pytest.raises(InvalidArgumentError, match="got the class GDP"):
        as_promise(GDP)


def test_promise_error_is_ours_and_a_value_error():
    assert issubclass(PromiseError, DPManifoldError)
    assert issubclass(PromiseError, ValueError)


# -------------------------------------------------------------------- rounding

fractions = st.builds(lambda a, b: Fraction(a) / Fraction(b), positive, positive)


@given(fractions)
def test_floats_next_to_a_fraction(value):
    up, down = float_up(value), float_down(value)
    assert down <= value
    assert up == math.inf or up >= value
    assert up == down if Fraction(down) == value else up == math.nextafter(down, math.inf)


@given(fractions)
def test_floats_next_to_a_root(value):
    up, down = sqrt_up(value), sqrt_down(value)
    assert Fraction(down) ** 2 <= value
    assert up == math.inf or Fraction(up) ** 2 >= value
    assert up == down if Fraction(down) ** 2 == value else up == math.nextafter(down, math.inf)


@given(positive)
def test_roots_of_squares_and_floats_are_exact(value):
    assert sqrt_up(Fraction(value) ** 2) == sqrt_down(Fraction(value) ** 2) == value
    assert float_up(Fraction(value)) == float_down(Fraction(value)) == value


def test_rounding_of_nothing():
    assert [f(Fraction(0)) for f in (float_up, float_down, sqrt_up, sqrt_down)] == [0.0] * 4
