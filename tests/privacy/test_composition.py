"""Composition of a fixed list, and sharing a promise out (theory section 5)."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    PromiseError,
    PureDP,
    compose,
    gdp_sufficient_for,
    split,
    to_approx,
    to_gdp,
    to_zcdp,
)
from dpmanifold.stats.ball_estimation import REFINE_SHARES
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.moment_chain import REGION_SHARES
from dpmanifold.stats.variance_interval import INTERVAL_SHARES

sizes = st.floats(min_value=1e-6, max_value=50)
deltas = st.floats(min_value=1e-300, max_value=1e-3)
one_kind = st.sampled_from([PureDP, ZCDP, GDP])
weights = st.lists(st.floats(min_value=1e-3, max_value=1e3), min_size=1, max_size=12)
promises = st.one_of(
    st.builds(PureDP, sizes), st.builds(ZCDP, sizes), st.builds(GDP, sizes), st.builds(ApproxDP, sizes, deltas)
)


def parameter(promise):
    return next(value for name, value in promise.to_dict().items() if name != "kind")


def is_rounded_up(value, exact, power=1):
    """Whether a float is the smallest whose power is at least an exact amount: safe, and by less than one unit."""
    return Fraction(math.nextafter(value, 0.0)) ** power < exact <= Fraction(value) ** power


def exact_sum(values, power=1):
    return sum(Fraction(value) ** power for value in values)


@given(one_kind, st.lists(sizes, min_size=1, max_size=20))
def test_one_kind_adds_up(kind, values):
    total = compose([kind(value) for value in values])
    power = 2 if kind is GDP else 1
    assert type(total) is kind
    assert is_rounded_up(parameter(total), exact_sum(values, power), power)


@given(st.lists(st.tuples(sizes, deltas), min_size=1, max_size=20))
def test_approximate_promises_add_both(values):
    total = compose([ApproxDP(*value) for value in values])
    assert is_rounded_up(total.epsilon, exact_sum(e for e, _ in values))
    assert is_rounded_up(total.delta, exact_sum(d for _, d in values))


@given(promises)
def test_one_promise_composes_to_itself(promise):
    assert compose([promise]) == promise


@given(st.lists(promises, min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_order_of_the_list_does_not_matter(parts, random):
    shuffled = random.sample(parts, len(parts))
    assert compose(parts, delta=1e-6) == compose(shuffled, delta=1e-6)


@given(st.lists(promises, min_size=2, max_size=6))
def test_together_is_never_stronger_than_a_part(parts):
    total = compose(parts, delta=1e-6)
    for part in parts:
        assert not total < part


def rho_of_gdp(mu):
    return Fraction(mu) ** 2 / 2


def rho_of_pure(epsilon):
    return min(Fraction(epsilon), Fraction(epsilon) ** 2 / 2)


@given(sizes, sizes, sizes)
@example(1.9, 1 / 3, 1.0)  # converted first, the sum is a unit in the last place larger
def test_mixed_kinds_meet_where_a_conversion_is_valid(a, b, c):
    """The exact sum, rounded up once. Converting first is as safe, but rounds up twice: never less, and may be more."""
    assert compose([PureDP(a), GDP(b)]) == compose([to_gdp(PureDP(a)), GDP(b)])
    assert is_rounded_up(compose([PureDP(a), ZCDP(b)]).rho, rho_of_pure(a) + Fraction(b))
    assert is_rounded_up(compose([ZCDP(a), GDP(b)]).rho, Fraction(a) + rho_of_gdp(b))
    assert is_rounded_up(compose([ZCDP(a), GDP(b), PureDP(c)]).rho, Fraction(a) + rho_of_gdp(b) + rho_of_pure(c))
    for part in (PureDP(a), GDP(a)):
        once, twice = compose([part, ZCDP(b)]), compose([to_zcdp(part), ZCDP(b)])
        assert once.rho <= twice.rho <= math.nextafter(once.rho, math.inf)


def test_with_an_approximate_promise_everything_becomes_approximate():
    assert compose([ApproxDP(0.5, 1e-6), PureDP(0.25)]) == ApproxDP(0.75, 1e-6)
    stated = to_approx(compose([GDP(0.3), GDP(0.4)]), 1e-7)
    total = compose([GDP(0.3), ApproxDP(0.5, 1e-6), GDP(0.4)], delta=1e-7)
    assert total.epsilon == pytest.approx(0.5 + stated.epsilon, rel=1e-15)
    assert total.delta == pytest.approx(1.1e-6, rel=1e-15)
    assert compose([ApproxDP(0.5, 1e-6), ZCDP(0.1), GDP(0.3)], delta=1e-7).epsilon == pytest.approx(
        0.5 + to_approx(ZCDP(0.1 + 0.045), 1e-7).epsilon, rel=1e-12
    )


def test_pure_promises_take_the_cheaper_way_to_an_approximate_one():
    few = compose([ApproxDP(0.5, 1e-6), GDP(1.0), PureDP(0.01)], delta=1e-7)
    many = compose([ApproxDP(0.5, 1e-6), GDP(1.0), *[PureDP(0.1)] * 400], delta=1e-7)
    assert few.epsilon <= 0.5 + to_approx(GDP(1.0), 1e-7).epsilon + 0.01 + 1e-12
    assert many.epsilon < 20 < 400 * 0.1
    assert many.epsilon == pytest.approx(0.5 + to_approx(compose([GDP(1.0), *[PureDP(0.1)] * 400]), 1e-7).epsilon)


def test_a_curve_with_an_approximate_promise_needs_a_delta():
    with pytest.raises(PromiseError, match=r"delta is missing: GDP\(mu=1.0\) meets an ApproxDP.*Give delta="):
        compose([ApproxDP(0.5, 1e-6), GDP(1.0)])
    with pytest.raises(InvalidArgumentError, match="delta must be"):
        compose([ApproxDP(0.5, 1e-6), GDP(1.0)], delta=2.0)


def test_deltas_that_add_up_to_one_promise_nothing():
    with pytest.raises(PromiseError, match=r"add up to 1\.2"):
        compose([ApproxDP(0.1, 0.6), ApproxDP(0.1, 0.6)])


@pytest.mark.parametrize("bad", [PureDP(1.0), None, 3, [], [PureDP(1.0), 0.5], ["GDP"]])
def test_bad_lists_are_refused(bad):
    with pytest.raises(InvalidArgumentError, match=r"^promises"):
        compose(bad)


def test_a_generator_is_a_list_too():
    assert compose(GDP(1.0) for _ in range(4)) == GDP(2.0)


# -------------------------------------------------------------------- split


@given(promises, st.one_of(st.integers(min_value=1, max_value=50), weights))
def test_shares_compose_back_to_the_promise_and_to_no_more(promise, parts):
    shares = split(promise, parts)
    assert len(shares) == (parts if isinstance(parts, int) else len(parts))
    total = compose(shares)
    assert type(total) is type(promise)
    assert total <= promise
    for name, value in promise.to_dict().items():
        assert name == "kind" or total.to_dict()[name] == pytest.approx(value, rel=1e-14, abs=0)


@given(st.one_of(promises, st.builds(ApproxDP, sizes, deltas)), st.one_of(st.integers(1, 50), weights))
def test_what_the_releases_divide_a_promise_into_keeps_it(promise, parts):
    """As refine, regions and intervals do: an approximate promise by way of a Gaussian one; and shares of a share."""
    shares = divide(promise, parts)
    assert compose(shares) <= promise
    nested = [*shares[:-1], *split(shares[-1], 7)]
    assert compose(nested) <= promise
    working = Budget(gdp_sufficient_for(promise) if isinstance(promise, ApproxDP) else promise)
    for share in nested:
        working.spend(share)


@pytest.mark.parametrize("promise", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1), GDP(0.3)], ids=repr)
@pytest.mark.parametrize("parts", [REFINE_SHARES, REGION_SHARES, INTERVAL_SHARES, 2, 3, 10])
def test_the_shares_in_use_keep_the_promise(promise, parts):
    assert compose(divide(promise, parts)) <= promise


@given(one_kind, sizes, st.lists(st.floats(min_value=0.1, max_value=10), min_size=2, max_size=6))
def test_shares_are_in_proportion_of_what_adds_up(kind, size, parts):
    power = 2 if kind is GDP else 1
    shares = [parameter(share) ** power for share in split(kind(size), parts)]
    for share, weight in zip(shares, parts, strict=True):
        assert share == pytest.approx(size**power * weight / math.fsum(parts), rel=1e-13)


def test_equal_shares():
    assert split(GDP(1.0), 4) == [GDP(0.5)] * 4
    assert split(ApproxDP(1.0, 2**-10), 2) == [ApproxDP(0.5, 2**-11)] * 2
    assert split(ZCDP(1.0), [3, 1]) == [ZCDP(0.75), ZCDP(0.25)]


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "3", None, [], [1.0, 0.0], [1.0, -1.0], [1.0, math.nan], ["1"]])
def test_bad_parts_are_refused(bad):
    with pytest.raises(InvalidArgumentError, match=r"^parts"):
        split(PureDP(1.0), bad)


def test_only_promises_are_shared_out():
    with pytest.raises(InvalidArgumentError, match="must be a promise"):
        split(1.0, 2)
