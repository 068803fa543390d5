"""The pure promise that a Laplace mechanism keeps when asked for another: never too weak (theory section 5)."""

import math

import mpmath
import pytest
from hypothesis import example, given, strategies as st

from dpmanifold.mechanisms.base import pure_epsilon
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, PureDP

CLOSE = mpmath.mpf("1e-14")
exponents = st.floats(min_value=-300, max_value=math.log10(40))


def exact_of_gdp(mu):
    """2 atanh(erf(mu / sqrt 8)) to 60 digits: as a series where erf would need hundreds, and as logs where it is 1."""
    with mpmath.workdps(60):
        x = mpmath.mpf(mu) / mpmath.sqrt(8)
        if mu < 1e-60:  # the next term is mu^2 of this one
            return 4 * x / mpmath.sqrt(mpmath.pi)
        if mu < 1:
            with mpmath.workdps(200):
                return 2 * mpmath.atanh(mpmath.erf(x))
        return mpmath.log(mpmath.erfc(-x)) - mpmath.log(mpmath.erfc(x))


@given(exponents.map(lambda x: 10**x))
@example(1e-300)
@example(1e-290)
@example(1e-15)  # the difference of two logarithms was 11 % too large here
@example(1e-10)
@example(2.0)
@example(math.nextafter(2.0, 0.0))
@example(40.0)
def test_of_gdp_is_never_above_the_exact_value_and_hardly_below(mu):
    found, exact = mpmath.mpf(pure_epsilon(GDP(mu))), exact_of_gdp(mu)
    assert exact * (1 - CLOSE) <= found <= exact


@given(st.floats(min_value=0.0, max_value=40.0, exclude_min=True))
@example(5e-324)
@example(1e-310)
def test_of_gdp_is_never_above_the_exact_value_on_any_float(mu):
    assert mpmath.mpf(pure_epsilon(GDP(mu))) <= exact_of_gdp(mu)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_of_zcdp_is_the_largest_float_by_its_rule(rho):
    epsilon, wanted = pure_epsilon(ZCDP(rho)), mpmath.mpf(rho)
    with mpmath.workdps(60):
        assert min(mpmath.mpf(epsilon), mpmath.mpf(epsilon) ** 2 / 2) <= wanted
        above = mpmath.mpf(math.nextafter(epsilon, math.inf))
        assert min(above, above**2 / 2) > wanted


@given(st.floats(min_value=1e-6, max_value=100), st.floats(min_value=1e-300, max_value=0.999))
def test_the_pure_promise_implies_the_one_asked_for(size, delta):
    """For GDP up to 1e-13: `implies` rounds to the safe side as well, by 16 units in the last place."""
    for promise in (PureDP(size), ApproxDP(size, delta), ZCDP(size)):
        assert PureDP(pure_epsilon(promise)).implies(promise)
    assert PureDP(pure_epsilon(GDP(size)) * (1 - 1e-13)).implies(GDP(size))


@pytest.mark.parametrize("mu", [100.0, 1e6, 1e154, 1e200, 1.7e308])
def test_a_promise_that_promises_nothing_still_has_one(mu):
    assert mu < pure_epsilon(GDP(mu)) < math.inf
