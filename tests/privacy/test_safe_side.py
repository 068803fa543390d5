"""Every conversion rounds to the safe side: against mpmath, on floats of all sizes and close to where the answer turns.

A promise that is stated follows from the one that is kept exactly, not up to rounding. Each property also has the
other side, that little is given away, so that a very large rounding would fail as well.
"""

import math
from fractions import Fraction

import mpmath
from hypothesis import example, given, strategies as st

from dpmanifold.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    PureDP,
    gaussian_promise,
    gaussian_scale,
    gdp_sufficient_for,
    laplace_promise,
    laplace_scale,
    to_approx,
    to_gdp,
    to_zcdp,
    zcdp_log_delta,
)

DIGITS = 60


def powers(low, high):
    return st.floats(min_value=low, max_value=high).map(lambda x: 10**x)


ordinary, deltas = powers(-4, 2), st.one_of(powers(-300, -0.001), powers(-12, -1).map(lambda x: 1 - x))
# Half units in the last place on either side of where an exact answer turns.
nudges = st.integers(min_value=-200, max_value=200)


def nudged(value, steps):
    return float(value) * (1 + steps * 2.0**-53)


def gaussian_delta(mu, epsilon):
    """delta(epsilon) of mu-GDP; the digits are doubled, as the two terms can agree in that many."""
    with mpmath.workdps(2 * DIGITS):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        a, b, root = e / m - m / 2, e / m + m / 2, mpmath.sqrt(2)
        return (mpmath.erfc(a / root) - mpmath.exp(e) * mpmath.erfc(b / root)) / 2


def pure_delta(epsilon, wanted):
    """delta(wanted) of randomised response, the worst mechanism that keeps epsilon."""
    with mpmath.workdps(2 * DIGITS):
        e, w = mpmath.mpf(epsilon), mpmath.mpf(wanted)
        return max(-mpmath.expm1(w - e) / (1 + mpmath.exp(-e)), mpmath.mpf(0))


def concentrated_log_delta(rho, epsilon):
    """Log of the least delta over all orders 1 + u by Canonne, Kamath and Steinke (2020), to DIGITS digits."""
    with mpmath.workdps(DIGITS):
        r, e = mpmath.mpf(rho), mpmath.mpf(epsilon)

        def slope(x):  # of the bound in u = e^x, which grows
            u = mpmath.exp(x)
            return (1 + 2 * u) * r - mpmath.log1p(1 / u) - e

        low, high = mpmath.mpf(-1), mpmath.mpf(1)
        while slope(low) > 0:
            low *= 2
        while slope(high) < 0:
            high *= 2
        for _ in range(120):  # the bound is flat at its minimum: half the digits of x are enough for all of its own
            middle = (low + high) / 2
            low, high = (low, middle) if slope(middle) > 0 else (middle, high)
        u = mpmath.exp(low)
        return min(u * (1 + u) * r - u * e - u * mpmath.log1p(1 / u) - mpmath.log1p(u), mpmath.mpf(0))


# -------------------------------------------------------------------- what is stated


@given(st.one_of(powers(-300, -0.0), powers(-1, 2.9)))
@example(1.0)
@example(math.nextafter(1.0, 0.0))
@example(1e-300)
def test_pure_to_gdp(epsilon):
    """Phi(-mu/2) = 1/(1 + e^epsilon), or mu = sqrt(8) erfinv(tanh(epsilon/2)): compared by the epsilon of mu."""
    mu = to_gdp(PureDP(epsilon)).mu

    def epsilon_of(m):
        with mpmath.workdps(DIGITS + 400 if m < 1 else DIGITS):
            x = mpmath.mpf(m) / mpmath.sqrt(8)
            if m < 1e-150:
                return 4 * x / mpmath.sqrt(mpmath.pi)
            return mpmath.log(mpmath.erfc(-x)) - mpmath.log(mpmath.erfc(x))

    assert epsilon_of(mpmath.mpf(mu)) >= mpmath.mpf(epsilon)
    assert epsilon_of(mpmath.mpf(mu) * (1 - mpmath.mpf("1e-14"))) < mpmath.mpf(epsilon)


@given(st.floats(min_value=1e-100, max_value=1e100))
def test_to_zcdp(size):
    for promise, exact in (
        (GDP(size), Fraction(size) ** 2 / 2),
        (PureDP(size), min(Fraction(size), Fraction(size) ** 2 / 2)),
    ):
        rho = to_zcdp(promise).rho
        assert Fraction(math.nextafter(rho, 0.0)) < exact <= Fraction(rho)


@given(ordinary, deltas)
def test_gdp_to_approx(mu, delta):
    epsilon = to_approx(GDP(mu), delta).epsilon
    assert gaussian_delta(mu, epsilon) <= mpmath.mpf(delta)
    if epsilon > 1e-3 * mu:
        assert gaussian_delta(mu, mpmath.mpf(epsilon) * (1 - mpmath.mpf("1e-9"))) > mpmath.mpf(delta)


@given(ordinary, deltas)
def test_zcdp_to_approx(rho, delta):
    epsilon = to_approx(ZCDP(rho), delta).epsilon
    with mpmath.workdps(DIGITS):
        wanted = mpmath.log(mpmath.mpf(delta))
        assert concentrated_log_delta(rho, epsilon) <= wanted
        if epsilon > 1e-3:
            assert concentrated_log_delta(rho, mpmath.mpf(epsilon) * (1 - mpmath.mpf("1e-9"))) > wanted


@given(ordinary, ordinary)
def test_zcdp_log_delta(rho, epsilon):
    exact, found = concentrated_log_delta(rho, epsilon), mpmath.mpf(zcdp_log_delta(rho, epsilon))
    assert exact <= found
    assert found <= exact + mpmath.mpf("1e-12") * (1 + abs(exact)) * (1 + 1 / mpmath.mpf(rho))


@given(ordinary, deltas)
def test_gdp_sufficient_for_approx(epsilon, delta):
    mu = gdp_sufficient_for(ApproxDP(epsilon, delta)).mu
    assert gaussian_delta(mu, epsilon) <= mpmath.mpf(delta)
    assert gaussian_delta(mpmath.mpf(mu) * (1 + mpmath.mpf("1e-10")), epsilon) > mpmath.mpf(delta)


# -------------------------------------------------------------------- what is said to follow


@given(ordinary, st.floats(min_value=0.0, max_value=0.9999), nudges)
@example(1e-300, 0.5, 0)
@example(700.0, 0.999, 0)
def test_pure_implies_approx_only_if_it_does(epsilon, share, nudge):
    wanted = max(epsilon * share, 1e-308)
    exact = pure_delta(epsilon, wanted)
    delta = nudged(exact, nudge)
    if not 0 < delta < 1:
        return
    if PureDP(epsilon).implies(ApproxDP(wanted, delta)):
        assert exact <= mpmath.mpf(delta)
    else:
        assert exact > mpmath.mpf(delta) * (1 - mpmath.mpf("1e-13"))


@given(ordinary, st.floats(min_value=-5.0, max_value=30.0), nudges)
def test_gdp_implies_approx_only_if_it_does(mu, a, nudge):
    epsilon = mu * (a + mu / 2)
    if not 0 < epsilon < 1e4:
        return
    exact = gaussian_delta(mu, epsilon)
    delta = nudged(exact, nudge)
    if not 0 < delta < 1:
        return
    if GDP(mu).implies(ApproxDP(epsilon, delta)):
        assert exact <= mpmath.mpf(delta)
    else:
        assert exact > mpmath.mpf(delta) * (1 - mpmath.mpf("1e-9"))


@given(ordinary, ordinary, nudges)
def test_zcdp_implies_approx_only_if_it_does(rho, epsilon, nudge):
    with mpmath.workdps(DIGITS):
        log_exact = concentrated_log_delta(rho, epsilon)
        delta = nudged(mpmath.exp(log_exact), nudge)
        if not 0 < delta < 1:
            return
        if ZCDP(rho).implies(ApproxDP(epsilon, delta)):
            assert log_exact <= mpmath.log(mpmath.mpf(delta))


@given(powers(-3, 1), nudges)
def test_pure_implies_gdp_and_zcdp_only_if_it_does(epsilon, nudge):
    with mpmath.workdps(DIGITS):
        exact = mpmath.sqrt(8) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(epsilon) / 2))
        mu = nudged(exact, nudge)
        assert not PureDP(epsilon).implies(GDP(mu)) or exact <= mpmath.mpf(mu)
    rho = min(Fraction(epsilon), Fraction(epsilon) ** 2 / 2)
    stated = nudged(rho, nudge)
    assert PureDP(epsilon).implies(ZCDP(stated)) == (rho <= Fraction(stated))
    rho = Fraction(epsilon) ** 2 / 2
    stated = nudged(rho, nudge)
    assert GDP(epsilon).implies(ZCDP(stated)) == (rho <= Fraction(stated))


# -------------------------------------------------------------------- noise


@given(powers(-9, 9), ordinary)
def test_scales_and_what_they_keep(sensitivity, size):
    """Exact in rational arithmetic: the smallest scale that will do, and the strongest promise that holds."""
    d, s = Fraction(sensitivity), Fraction(size)
    for scale, exact, power in (
        (laplace_scale(sensitivity, PureDP(size)), d / s, 1),
        (gaussian_scale(sensitivity, GDP(size)), d / s, 1),
        (gaussian_scale(sensitivity, ZCDP(size)), d**2 / (2 * s), 2),
    ):
        assert Fraction(math.nextafter(scale, 0.0)) ** power < exact <= Fraction(scale) ** power
    for stated, exact in (
        (laplace_promise(sensitivity, size).epsilon, d / s),
        (gaussian_promise(sensitivity, size).mu, d / s),
    ):
        assert Fraction(math.nextafter(stated, 0.0)) < exact <= Fraction(stated)


@given(powers(-9, 9), st.floats(min_value=1e-6, max_value=0.999), powers(-300, -0.01))
def test_classical_scale(sensitivity, epsilon, delta):
    with mpmath.workdps(DIGITS):
        exact = mpmath.mpf(sensitivity) * mpmath.sqrt(2 * mpmath.log(mpmath.mpf("1.25") / delta)) / mpmath.mpf(epsilon)
        found = mpmath.mpf(gaussian_scale(sensitivity, ApproxDP(epsilon, delta), method="classical"))
        assert exact <= found <= exact * (1 + mpmath.mpf("1e-14"))
