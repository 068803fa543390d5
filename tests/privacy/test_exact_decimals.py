"""Exact amounts: text is the number it says, a float what it is, and nothing is rounded to the wrong side."""

import json
import math
import pickle
from copy import copy, deepcopy
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st

from dpmanifold.errors import BudgetError, InvalidArgumentError
from dpmanifold.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    PureDP,
    best_guess,
    compose,
    gaussian_scale,
    laplace_scale,
    promise_from_dict,
    split,
    to_approx,
    to_gdp,
    to_zcdp,
)
from dpmanifold.privacy.amounts import (
    added,
    amount_from_text,
    amount_to_text,
    as_promise_down,
    as_promise_up,
    cost_of,
    fits,
    left_of,
    nothing,
)
from dpmanifold.privacy.exact_decimals import (
    decimal_fraction,
    decimal_text,
    float_down,
    float_up,
    root_of,
    stated_down,
    stated_up,
)

SINGLE = (PureDP, ZCDP, GDP)
# As people type them, and as nobody does.
texts = st.builds(
    lambda digits, places, exponent: (
        f"{digits[: len(digits) - places] or '0'}{'.' + digits[-places:] if places else ''}"
        f"{f'e{exponent}' if exponent is not None else ''}"
    ),
    st.text("0123456789", min_size=1, max_size=40).filter(lambda digits: int(digits) > 0),
    st.integers(0, 1),
    st.none() | st.integers(-40, 20),
)
usual = st.builds(lambda n, places: f"{n}e-{places}", st.integers(1, 10**6), st.integers(3, 6))
few = settings(max_examples=60)


def amounts_of(kind, number):
    return kind(number, number) if kind is ApproxDP else kind(number)


# -------------------------------------------------------------------- text


@pytest.mark.parametrize(
    "bad",
    [
        "",
        " 1",
        "1 ",
        "+1",
        "-1",
        ".5",
        "5.",
        "1_0",
        "1/3",
        "1E5",
        "0x1",
        "inf",
        "nan",
        "1e",
        "1e1.5",
        "1,5",
        "1\n",
        "one",
    ],
)
@pytest.mark.parametrize("name", ["epsilon", "mu"])
def test_text_that_is_no_plain_decimal_is_refused_by_name_with_a_remedy(name, bad):
    build = {"epsilon": PureDP, "mu": GDP}[name]
    with pytest.raises(InvalidArgumentError, match=rf'^{name} must be a number above 0, or one as text such as "0.1"'):
        build(bad)


@pytest.mark.parametrize(
    "bad", ["1" * 51, "0." + "1" * 50, "1e401", "1e-401", "1e0001", "\u0663", "\uff11", "1" * 10**6]
)
@pytest.mark.parametrize("name", ["delta", "rho"])
def test_text_with_too_many_digits_or_foreign_ones_is_refused(name, bad):
    build = {"delta": lambda x: ApproxDP(1.0, x), "rho": ZCDP}[name]
    with pytest.raises(
        InvalidArgumentError, match=rf"^{name} must be .*at most 50 digits, an exponent of at most 400"
    ) as e:
        build(bad)
    assert len(str(e.value)) < 500


@pytest.mark.parametrize("bad", ["0", "0.000", "0e5", "1e-330", "1e309", "17976931348623158" + "0" * 33 + "e260"])
def test_text_without_a_float_below_it_or_above_it_is_refused(bad):
    with pytest.raises(InvalidArgumentError, match=r"^mu must be above 0 and within the range of floats, got '"):
        GDP(bad)


@pytest.mark.parametrize("bad", ["1", "1.0", "2", "0." + "9" * 30])
def test_a_typed_delta_stays_below_one(bad):
    with pytest.raises(InvalidArgumentError, match=r"^delta must be below 1, got '.*such as 1e-6"):
        ApproxDP("1", bad)


def test_other_exact_types_are_not_taken_for_text():
    with pytest.raises(InvalidArgumentError, match="epsilon must be a number above 0, got Decimal"):
        PureDP(Decimal("0.1"))
    assert PureDP(np.str_("0.1")) == PureDP("0.1")


@few
@given(texts)
@example("0.1")
@example("1e-6")
@example("0" * 49 + "1")
@example("1234567890123456789012345678901234567890.5")
@example("1" * 50 + "e-54")
def test_text_is_the_number_it_says_and_is_kept_in_its_shortest_form(text):
    number = Fraction(text)
    assert decimal_fraction(text, "mu") == number
    promise = GDP(text)
    assert promise.exact == {"mu": number}
    assert Fraction(promise.mu) <= number <= Fraction(promise.above[0])
    assert promise.above[0] in (promise.mu, math.nextafter(promise.mu, math.inf))
    again = decimal_text(number)
    assert decimal_fraction(again, "mu") == number
    assert GDP(again) == promise
    assert repr(GDP(again)) == repr(promise)
    assert eval(repr(promise)) == promise  # our own words


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_text_that_says_a_float_is_that_float_in_every_respect(value):
    text = decimal_text(Fraction(value))
    assume(text is not None)
    for kind in SINGLE:
        typed, plain = kind(text), kind(value)
        assert typed == plain
        assert hash(typed) == hash(plain)
        assert repr(typed) == repr(plain)
        assert typed.to_dict() == plain.to_dict()
        assert vars(typed) == vars(plain)


def test_what_is_typed_is_what_is_shown():
    assert repr(GDP("0.3")) == "GDP(mu='0.3')"
    assert repr(ApproxDP("0.5", "1e-6")) == "ApproxDP(epsilon=0.5, delta='1e-6')"
    assert repr(PureDP("0.10")) == "PureDP(epsilon='0.1')"
    assert repr(PureDP(0.1)) == "PureDP(epsilon=0.1)"


def test_equality_order_and_hash_go_by_the_exact_number():
    below, tenth, above = PureDP(math.nextafter(0.1, 0)), PureDP("0.1"), PureDP(0.1)
    assert tenth.epsilon == below.epsilon
    assert below < tenth < above
    assert len({below, tenth, above, PureDP("0.100"), PureDP("1e-1")}) == 3
    assert tenth != GDP("0.1")
    assert tenth != "0.1"


@few
@given(st.sampled_from([*SINGLE, ApproxDP]), usual.filter(lambda text: Fraction(text) < 1))
def test_copies_and_json_keep_what_was_typed(kind, text):
    promise = amounts_of(kind, text)
    record = json.loads(json.dumps(promise.to_dict()))
    for again in (copy(promise), deepcopy(promise), pickle.loads(pickle.dumps(promise)), promise_from_dict(record)):
        assert again == promise
        assert repr(again) == repr(promise)
    assert ("exact" in record) == (
        kind(*[promise.epsilon] * 2) != promise if kind is ApproxDP else "'" in repr(promise)
    )


def test_a_record_whose_float_is_not_the_one_below_its_text_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"float below record\['exact'\]\['mu'\], got 0.1 for '0.1'"):
        promise_from_dict({"kind": "GDP", "mu": 0.1, "exact": {"mu": "0.1"}})
    for exact in ([], {"rho": "0.1"}, {"mu": 0.1}, None, "0.1"):
        with pytest.raises(InvalidArgumentError, match=r"record\['exact'\] must hold text for mu and nothing else"):
            promise_from_dict({"kind": "GDP", "mu": 0.1, "exact": exact})
    with pytest.raises(InvalidArgumentError, match=r"mu must be a number above 0, got '0\.1'"):
        promise_from_dict({"kind": "GDP", "mu": "0.1"})


def test_replacing_a_part_asks_for_no_more():
    promise = replace(ApproxDP("0.1", "1e-6"), delta="1e-7")
    assert promise <= ApproxDP("0.1", "1e-7")


# -------------------------------------------------------------------- conversions


@few
@given(usual, st.floats(0.01, 10))
def test_a_conversion_implies_nothing_that_the_exact_promise_does_not(text, wanted):
    """From the left the float above: what PureDP("x") implies, PureDP(float above x) implies as well."""
    number = Fraction(text)
    for kind in SINGLE:
        promise, above = kind(text), kind(float_up(number))
        for other in (GDP(wanted), ZCDP(wanted), PureDP(wanted), ApproxDP(wanted, 1e-6)):
            if promise.implies(other):
                assert above.implies(other) or type(other) is kind
    assert to_zcdp(GDP(text)).exact["rho"] >= number**2 / 2
    assert to_gdp(PureDP(text)) == to_gdp(PureDP(float_up(number)))
    assert to_approx(GDP(text), 1e-6) == to_approx(GDP(float_up(number)), 1e-6)
    assert to_approx(ZCDP(text), "1e-6").epsilon >= to_approx(ZCDP(float_up(number)), 1e-6).epsilon
    assert best_guess(PureDP(text)) == best_guess(PureDP(float_up(number)))


@few
@given(usual)
def test_noise_is_calibrated_to_the_float_below(text):
    number = Fraction(text)
    assert Fraction(laplace_scale(1.0, PureDP(text))) >= 1 / number
    assert Fraction(gaussian_scale(1.0, GDP(text))) >= 1 / number
    assert Fraction(gaussian_scale(1.0, ZCDP(text))) ** 2 >= 1 / (2 * number)
    assert gaussian_scale(1.0, ApproxDP(text, "1e-6")) == gaussian_scale(
        1.0, ApproxDP(float_down(number), float_down(Fraction(1, 10**6)))
    )


def test_exact_numbers_stay_exact_through_conversions():
    assert to_approx(PureDP("0.1"), "1e-6") == ApproxDP("0.1", "1e-6")
    assert to_approx(ApproxDP("0.1", "1e-7"), "1e-6") == ApproxDP("0.1", "1e-6")
    assert to_zcdp(GDP("0.1")) == ZCDP("0.005")
    assert PureDP("0.1").implies(ApproxDP("0.1", 1e-300))
    assert compose([PureDP("0.1")] * 10) == PureDP("1")
    assert compose([GDP("0.3"), GDP("0.4")]) == GDP("0.5")
    assert compose([ApproxDP("0.1", "1e-7")] * 3) == ApproxDP("0.3", "3e-7")
    assert compose([ZCDP("0.1"), GDP("0.2")]) == ZCDP("0.12")


@few
@given(st.sampled_from([*SINGLE, ApproxDP]), usual.filter(lambda text: Fraction(text) < 1), st.integers(1, 9))
def test_shares_of_a_typed_promise_compose_to_no_more_than_it(kind, text, parts):
    promise = amounts_of(kind, text)
    assert compose(split(promise, parts)) <= promise


# -------------------------------------------------------------------- amounts


@given(st.fractions(min_value=0, max_value=100))
def test_amounts_as_text_come_back_and_nothing_else_is_read(amount):
    assert amount_from_text(amount_to_text((amount, Fraction(0)))) == (amount, 0)
    for bad in ("", "01", "2/4", "1/0", "-1", "1/1", "0/1", " 1", "1.5", "٣", 1, None):
        with pytest.raises(InvalidArgumentError, match="an amount must be text"):
            amount_from_text([bad])


@few
@given(st.sampled_from([*SINGLE, ApproxDP]), st.lists(usual, min_size=1, max_size=6))
def test_statements_about_amounts_lie_on_the_safe_side_and_are_exact_where_they_can_be(kind, shares):
    cap = amounts_of(kind, "0.9")
    whole, total = cost_of(cap, cap), nothing(cap)
    for text in shares:
        share = amounts_of(kind, decimal_text(Fraction(text) % Fraction(9, 10) or Fraction(1, 10)))
        more = added(total, cost_of(share, cap))
        if not fits(more, whole):
            continue
        total = more
    left = left_of(whole, total)
    spent, remaining = as_promise_up(cap, total), as_promise_down(cap, left)
    for said, amount, sign in ((spent, total, 1), (remaining, left, -1)):
        if said is None:
            assert amount[0] == 0 or sign < 0
            continue
        stated = cost_of(said, cap)
        assert all(sign * x >= sign * y for x, y in zip(stated, amount, strict=True))
        if kind is not GDP or root_of(amount[0]) is not None:
            assert stated == amount
    if spent is not None:
        assert spent <= cap


@given(st.lists(st.floats(min_value=1e-9, max_value=2.0**40), min_size=2, max_size=6))
def test_sums_of_floats_stay_floats(numbers):
    """Scripts that use floats see floats: a sum that is none is stated rounded, as it always was."""
    total = sum(map(Fraction, numbers))
    assert stated_up(total) == float_up(total)
    assert stated_down(total) == float_down(total)


# -------------------------------------------------------------------- budgets


@pytest.mark.parametrize(
    ("cap", "share", "count"),
    [
        (PureDP("1"), PureDP("0.1"), 10),
        (PureDP(1.0), PureDP("0.1"), 10),
        (GDP("1"), GDP("0.1"), 100),
        (ZCDP("0.3"), ZCDP("0.1"), 3),
        (ApproxDP("0.3", "3e-6"), ApproxDP("0.1", "1e-6"), 3),
        (PureDP("1e-300"), PureDP("1e-301"), 10),
    ],
)
def test_typed_shares_fill_a_cap_exactly(cap, share, count):
    budget = Budget(cap)
    for _ in range(count):
        budget.spend(share)
    assert budget.spent == cap
    assert budget.remaining is None
    with pytest.raises(BudgetError, match="nothing of"):
        budget.spend(share)


@pytest.mark.parametrize(("cap", "share", "count"), [(PureDP(1.0), PureDP(0.1), 10), (GDP(1.0), GDP(0.1), 100)])
def test_as_many_floats_do_not_fit_and_the_refusal_says_why_and_what_to_write(cap, share, count):
    budget = Budget(cap)
    for _ in range(count - 1):
        budget.spend(share)
    with pytest.raises(BudgetError, match="Only the last digits do not fit") as refused:
        budget.spend(share)
    name = type(cap).__name__
    said = str(refused.value)
    assert "the float 0.1, for one, is slightly more than a tenth" in said
    assert f'Write amounts as text, which is exact, from the first one on: {name}("0.1") of {name}("1").' in said
    assert "Nothing was spent" in said
    assert len(budget.history) == count - 1


def test_a_float_cap_slightly_below_its_decimal_takes_no_more_than_it_is():
    """The float 0.3 is slightly less than three tenths: three typed tenths do not fit into it."""
    budget = Budget(PureDP(0.3))
    budget.spend(PureDP("0.1"))
    budget.spend(PureDP("0.1"))
    with pytest.raises(BudgetError, match=r'PureDP\("0.1"\) of PureDP\("0.3"\)'):
        budget.spend(PureDP("0.1"))
    budget.spend(budget.remaining)
    assert budget.spent <= PureDP(0.3)


def test_a_tolerance_of_the_last_digit_would_be_noticed():
    """The wrong variant: a budget that compares floats lets more through than the cap."""
    total = 0.0
    for _ in range(10):
        total += 0.1
    assert total <= 1.0  # what a sum of floats says
    assert not fits((10 * Fraction(0.1),), (Fraction(1),))


def test_a_float_and_a_typed_number_that_look_the_same_are_told_apart_by_quotes():
    budget = Budget(PureDP("0.2"))
    budget.spend(PureDP("0.1"))
    with pytest.raises(
        BudgetError, match=r"^promise PureDP\(epsilon=0.1\) is more .* left, PureDP\(epsilon='0.1'\) of"
    ):
        budget.spend(PureDP(0.1))


def test_people_see_numbers_without_quotes():
    assert str(GDP("0.3")) == "GDP(mu=0.3)"
    assert str(ApproxDP("0.5", "1e-6")) == "ApproxDP(epsilon=0.5, delta=1e-6)"
