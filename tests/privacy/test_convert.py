"""Conversions against mpmath at 60 digits and against brute force (theory section 5)."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    PromiseError,
    PureDP,
    gdp_delta,
    gdp_epsilon,
    gdp_log_delta,
    gdp_sufficient_for,
    to_approx,
    to_gdp,
    to_pure,
    to_zcdp,
    zcdp_epsilon,
    zcdp_log_delta,
)
from dpmanifold.privacy.convert import SMALLEST_EPSILON, gdp_keeps

EPS = float(np.finfo(float).eps)
DIGITS = 60


def exact_delta(mu, epsilon):
    """delta(epsilon) of mu-GDP; 60 more digits than wanted, as the two terms can agree in that many."""
    with mpmath.workdps(2 * DIGITS):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        root = mpmath.sqrt(2)
        return (mpmath.erfc(a / root) - mpmath.exp(epsilon) * mpmath.erfc(b / root)) / 2


def curve_grid():
    """(mu, epsilon) with mu from 1e-8 to 100 and a = epsilon/mu - mu/2 from as low as it goes to 37 (delta 1e-300)."""
    for mu in (*np.logspace(-8, 2, 31), 0.999999, 1.0, 1.000001):
        for a in (-8.0, -3.0, -1.0, -0.1, 0.0, 1e-8, 0.1, 0.5, 1.0, 2.0, 5.0, 8.0, 13.0, 20.0, 27.0, 33.0, 36.9):
            epsilon = mu * (a + mu / 2)
            if epsilon >= 0:
                yield float(mu), float(epsilon)


# -------------------------------------------------------------------- the Gaussian curve


def test_gdp_curve_against_mpmath():
    worst_delta, worst_need = 0.0, 0.0
    for mu, epsilon in curve_grid():
        exact = exact_delta(mu, epsilon)
        ours = gdp_log_delta(mu, epsilon)
        error = float(abs(ours - mpmath.log(exact)))
        a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        worst_delta = max(worst_delta, error)
        worst_need = max(worst_need, error / (EPS * (1 + abs(ours) + (1 + abs(a)) * b)))
        assert gdp_delta(mu, epsilon) == pytest.approx(float(exact), rel=1e-11, abs=0)
    assert worst_delta < 2e-12  # 3e-13 here; 1e-11 asked for
    assert worst_need < 4  # of the 16 that every decision allows for; 1.2 here


def test_gdp_curve_near_one_has_digits_in_the_complement():
    for mu in (5.0, 10.0, 14.0, 20.0):
        for epsilon in (0.0, 1e-3, 1.0, 5.0):
            missing = float(1 - exact_delta(mu, epsilon))
            assert 1 - gdp_delta(mu, epsilon) == pytest.approx(missing, rel=1e-12, abs=2 * EPS)


def test_gdp_curve_far_beyond_floats_is_in_logs():
    for mu, epsilon in [(0.1, 10.0), (2.0, 200.0), (1e-3, 1.0), (3.0, 3e5), (1e-6, 700.0), (2.0, 2.5e7), (1e-8, 1.0)]:
        with mpmath.workdps(50):
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            a, b = e / m - m / 2, e / m + m / 2

            # The asymptotic series of x M(x) - 1, to be subtracted after 1/a - 1/b = mu/(a b) was taken out.
            def series(x):
                return mpmath.fsum((-1) ** k * mpmath.fac2(2 * k - 1) / x ** (2 * k + 1) for k in range(1, 20))

            mills = m / (a * b) + series(a) - series(b)
            exact = -a * a / 2 - mpmath.log(2 * mpmath.pi) / 2 + mpmath.log(mills)
        assert gdp_log_delta(mu, epsilon) == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("mu", [5e-324, 1e-300, 1e-8, 0.5, 1.0, 2.0, 1e10, 1e200, 1.7e308])
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-12, 1.0, 700.0, 1e20, 1e200, 1.7e308])
def test_gdp_curve_never_fails(mu, epsilon):
    assert -math.inf <= gdp_log_delta(mu, epsilon) <= 0
    assert 0 <= gdp_delta(mu, epsilon) <= 1
    for delta in (5e-324, 1e-9, 0.5, 0.6, 1 - EPS / 2):
        assert gdp_keeps(mu, epsilon, delta) in (True, False)


def test_gdp_curve_of_an_array_has_its_shape():
    epsilon = np.array([[0.0, 0.5, 1.0], [2.0, 3.0, 40.0]])
    logs, deltas = gdp_log_delta(1.0, epsilon), gdp_delta(1.0, epsilon)
    assert logs.shape == deltas.shape == (2, 3)
    assert logs[1, 2] == gdp_log_delta(1.0, 40.0)
    assert np.array_equal(deltas, np.exp(logs))
    assert gdp_delta(1.0, []).shape == (0,)
    assert isinstance(gdp_delta(1.0, 1), float)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, [0.5, -0.1], 1j])
def test_gdp_curve_refuses_a_bad_epsilon(bad):
    with pytest.raises(InvalidArgumentError, match="epsilon must be finite and at least 0"):
        gdp_delta(1.0, bad)


def test_gdp_curve_refuses_words_as_an_argument():
    with pytest.raises(InvalidArgumentError, match="epsilon must be an array of numbers"):
        gdp_delta(1.0, "small")


def test_gdp_curve_refuses_a_bad_mu():
    for curve in (gdp_delta, gdp_log_delta, gdp_epsilon):
        with pytest.raises(InvalidArgumentError, match="mu must be"):
            curve(-1.0, 0.5)


DELTAS = (1e-300, 1e-100, 1e-20, 1e-8, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.99, 1 - 1e-12)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.1, 0.7, 1.0, 1.5, 5.0, 30.0])
def test_gdp_epsilon_is_the_smallest_and_on_the_safe_side(mu):
    for delta in DELTAS:
        epsilon = gdp_epsilon(mu, delta)
        assert exact_delta(mu, epsilon) <= mpmath.mpf(delta)
        if epsilon > 1e-3 * mu:  # closer to 0, delta tells epsilon only to an absolute error
            assert exact_delta(mu, epsilon * (1 - 1e-9)) > mpmath.mpf(delta)
        elif epsilon > 0:
            assert exact_delta(mu, max(epsilon - 1e-9 * mu, 0)) > mpmath.mpf(delta)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 5.0, 20.0, 700.0])
def test_gdp_sufficient_for_is_the_weakest_and_implies_it(epsilon):
    for delta in DELTAS:
        promise = ApproxDP(epsilon, delta)
        found = gdp_sufficient_for(promise)
        assert found.implies(promise)
        assert exact_delta(found.mu, epsilon) <= mpmath.mpf(delta)
        assert exact_delta(found.mu * (1 + 1e-12), epsilon) > mpmath.mpf(delta)
        assert not GDP(found.mu * (1 + 1e-12)).implies(promise)
        # What is said about it at the same delta is no more than was asked for.
        assert to_approx(found, delta).epsilon <= epsilon


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e20, 1e200, 1.7e308])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 0.4, 0.6, 1 - EPS / 2])
def test_gdp_sufficient_for_holds_at_the_ends_of_the_floats(epsilon, delta):
    promise = ApproxDP(epsilon, delta)
    assert gdp_sufficient_for(promise).implies(promise)


@pytest.mark.parametrize("bad", [GDP(1.0), PureDP(1.0), 0.5, None])
def test_gdp_sufficient_for_takes_approximate_promises_only(bad):
    with pytest.raises(InvalidArgumentError, match="must be an ApproxDP"):
        gdp_sufficient_for(bad)


# -------------------------------------------------------------------- zero-concentrated


def test_zcdp_to_approx_against_brute_force_over_the_orders():
    u = np.exp(np.linspace(-8, 20, 400_001))
    for rho, delta in itertools.product((1e-6, 1e-3, 0.1, 0.5, 2.0, 20.0), (1e-300, 1e-30, 1e-6, 0.01, 0.5)):
        alpha = 1 + u
        # Canonne, Kamath and Steinke (2020), as it stands in the paper.
        log_ratio = np.log(u) - np.log1p(u)
        of_order = rho * alpha + (math.log(1 / delta) + u * log_ratio - np.log(alpha)) / u
        best = max(of_order.min(), 0.0)
        epsilon = zcdp_epsilon(rho, delta)
        assert epsilon == pytest.approx(best, rel=1e-7, abs=1e-12)
        if epsilon > 0:
            of_order = (alpha - 1) * (alpha * rho - epsilon) - np.log(u) + alpha * log_ratio
            log_delta = zcdp_log_delta(rho, epsilon)
            assert log_delta == pytest.approx(of_order.min(), rel=1e-7, abs=1e-7)
            assert math.log(delta) - 1e-6 < log_delta <= math.log(delta)
            assert ZCDP(rho).implies(ApproxDP(epsilon, delta))
            assert not ZCDP(rho).implies(ApproxDP(epsilon * (1 - 1e-9), delta))


@pytest.mark.parametrize("rho", [1e-6, 1e-2, 0.5, 5.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-20, 1e-5, 0.1])
def test_zcdp_to_approx_is_rounded_up(rho, delta):
    """Against the exact minimum at 60 digits: never below it, within 1e-9 above it."""
    with mpmath.workdps(DIGITS):
        r, surprise = mpmath.mpf(rho), -mpmath.log(mpmath.mpf(delta))
        ends = (min(mpmath.sqrt(surprise / r / 2), surprise / 2), mpmath.sqrt(surprise / r))
        u = mpmath.findroot(lambda u: r * u * u + mpmath.log1p(u) - surprise, ends, solver="anderson")
        exact = r * (1 + u) + (surprise - mpmath.log1p(u)) / u - mpmath.log1p(1 / u)
        if exact <= 0:
            assert zcdp_epsilon(rho, delta) == 0
        else:
            assert exact <= zcdp_epsilon(rho, delta) <= exact * (1 + mpmath.mpf("1e-9"))


def test_zcdp_conversion_is_valid_for_the_gaussian_and_better_than_bun_and_steinke():
    for mu, delta in itertools.product((0.01, 0.3, 1.0, 4.0), (1e-100, 1e-10, 1e-5, 1e-2)):
        rho = to_zcdp(GDP(mu)).rho
        epsilon = to_approx(ZCDP(rho), delta).epsilon
        assert epsilon >= to_approx(GDP(mu), delta).epsilon
        assert epsilon <= rho + 2 * math.sqrt(-rho * math.log(delta))  # their Proposition 1.3


@pytest.mark.parametrize("rho", [1e-300, 1e-100, 1e-12, 1.0, 1e3, 1e10, 1e100, 1e300])
def test_zcdp_curve_never_fails(rho):
    for delta in (5e-324, 1e-9, 0.6, 1 - EPS / 2):
        assert 0 <= zcdp_epsilon(rho, delta) < math.inf
    for epsilon in (5e-324, 1e-12, 1.0, 1e20, 1.7e308):
        assert -math.inf <= zcdp_log_delta(rho, epsilon) <= 0


# -------------------------------------------------------------------- pure


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.999999, 1.0, 3.0, 20.0, 100.0, 700.0, 800.0])
def test_pure_to_gdp_solves_its_equation_and_is_rounded_up(epsilon):
    mu = to_gdp(PureDP(epsilon)).mu
    with mpmath.workdps(DIGITS):
        level = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        # Phi(-mu/2) falls with mu: at the exact mu it is the level. Written with erf where it is near 1/2.
        tail = lambda m: (1 - mpmath.erf(mpmath.mpf(m) / mpmath.sqrt(8))) / 2  # noqa: E731
        if epsilon > 20:
            tail = lambda m: mpmath.erfc(mpmath.mpf(m) / mpmath.sqrt(8)) / 2  # noqa: E731
        assert tail(mu) < level < tail(mpmath.mpf(mu) * (1 - mpmath.mpf("1e-14")))


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-300, 1e5, 1e300, 1.7e308])
def test_pure_to_gdp_at_the_ends_of_the_floats(epsilon):
    """mu is sqrt(pi/2) epsilon for small epsilon and 2 sqrt(2 epsilon) for large, to leading order."""
    mu = to_gdp(PureDP(epsilon)).mu
    if epsilon >= 1:
        assert mu == pytest.approx(2 * math.sqrt(2) * math.sqrt(epsilon), rel=1e-3)
    else:
        assert math.sqrt(math.pi / 2) * epsilon <= mu <= 1.26e-300


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0])
def test_pure_is_gaussian_by_brute_force_over_the_trade_off(epsilon):
    """The trade-off of the worst pure mechanism stays above the Gaussian one, and touches it."""
    alpha = np.linspace(0, 1, 20_001)[1:-1]
    pure = np.maximum(0, np.maximum(1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha)))
    gaussian = stats.norm.cdf(stats.norm.isf(alpha) - to_gdp(PureDP(epsilon)).mu)
    assert (pure >= gaussian - 1e-12).all()
    corner = 1 / (1 + math.exp(epsilon))
    assert stats.norm.cdf(stats.norm.isf(corner) - to_gdp(PureDP(epsilon)).mu) == pytest.approx(corner, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 3.0, 10.0])
def test_pure_is_zcdp_by_brute_force_over_the_orders(epsilon):
    """The Rényi divergence of randomised response, the worst pure mechanism, is at most rho alpha at every order."""
    rho = to_zcdp(PureDP(epsilon)).rho
    assert rho == min(epsilon, epsilon**2 / 2)
    alpha = 1 + np.exp(np.linspace(-6, 6, 2001))
    p, q = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    logs = np.logaddexp(
        alpha * math.log(p) + (1 - alpha) * math.log(q), alpha * math.log(q) + (1 - alpha) * math.log(p)
    )
    assert (logs / (alpha - 1) <= rho * alpha * (1 + 1e-9)).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_pure_implies_approx_exactly_where_randomised_response_does(epsilon):
    p, q = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    for wanted in (0.01, epsilon / 2, 0.9 * epsilon):
        delta = p - math.exp(wanted) * q
        assert PureDP(epsilon).implies(ApproxDP(wanted, delta * (1 + 1e-9)))
        assert not PureDP(epsilon).implies(ApproxDP(wanted, delta * (1 - 1e-9)))
    assert PureDP(epsilon).implies(ApproxDP(epsilon, 1e-300))


# -------------------------------------------------------------------- which are valid

ordinary = st.floats(min_value=1e-6, max_value=100)
deltas = st.floats(min_value=1e-300, max_value=0.999)


@given(ordinary, deltas)
def test_a_converted_promise_is_implied_by_the_original(x, delta):
    for promise in (PureDP(x), ZCDP(x), GDP(x)):
        assert promise.implies(to_approx(promise, delta))
        assert promise.implies(to_zcdp(promise))
    assert PureDP(x).implies(to_gdp(PureDP(x)))
    assert PureDP(x) <= to_gdp(PureDP(x)) <= to_zcdp(to_gdp(PureDP(x)))


def test_conversions_of_a_kind_to_itself_change_nothing():
    assert to_pure(PureDP(0.3)) == PureDP(0.3)
    assert to_zcdp(ZCDP(0.3)) == ZCDP(0.3)
    assert to_gdp(GDP(0.3)) == GDP(0.3)
    assert to_approx(ApproxDP(0.3, 1e-6), 1e-6) == ApproxDP(0.3, 1e-6)
    assert to_approx(ApproxDP(0.3, 1e-6), 1e-5) == ApproxDP(0.3, 1e-5)
    assert to_approx(PureDP(0.3), 1e-300) == ApproxDP(0.3, 1e-300)


def test_epsilon_stays_above_zero_where_delta_alone_is_enough():
    assert to_approx(GDP(0.1), 0.1) == ApproxDP(SMALLEST_EPSILON, 0.1)
    assert to_approx(ZCDP(1e-9), 0.5) == ApproxDP(SMALLEST_EPSILON, 0.5)


@pytest.mark.parametrize(
    ("convert", "reason"),
    [
        (lambda: to_pure(ApproxDP(1.0, 1e-5)), "cannot become pure.*likelihood"),
        (lambda: to_pure(ZCDP(1.0)), "cannot become pure"),
        (lambda: to_pure(GDP(1.0)), "cannot become pure.*Laplace"),
        (lambda: to_zcdp(ApproxDP(1.0, 1e-5)), "cannot become ZCDP.*smaller deltas"),
        (lambda: to_gdp(ApproxDP(1.0, 1e-5)), "cannot become GDP.*gdp_sufficient_for"),
        (lambda: to_gdp(ZCDP(1.0)), "cannot become GDP.*Rényi"),
        (lambda: to_approx(ApproxDP(1.0, 1e-5), 1e-6), "delta must be at least"),
    ],
)
def test_what_does_not_follow_is_refused_with_the_reason(convert, reason):
    with pytest.raises(PromiseError, match=reason):
        convert()


@pytest.mark.parametrize("convert", [to_pure, to_zcdp, to_gdp, lambda p: to_approx(p, 1e-5)])
@pytest.mark.parametrize("bad", [None, 1.0, "GDP", GDP])
def test_only_promises_are_converted(convert, bad):
    with pytest.raises(InvalidArgumentError, match="promise must be a promise, got"):
        convert(bad)


@pytest.mark.parametrize("bad", [0, 1, -0.1, math.nan, None])
def test_a_bad_delta_is_refused(bad):
    for convert in (lambda: to_approx(GDP(1.0), bad), lambda: gdp_epsilon(1.0, bad), lambda: zcdp_epsilon(1.0, bad)):
        with pytest.raises(InvalidArgumentError, match="delta must be"):
            convert()


def test_best_guess_is_what_an_observer_can_reach():
    """Exact for the Gaussian and the pure promise, never below what an approximate promise or zCDP allows."""
    from scipy import stats

    from dpmanifold.privacy import ZCDP, ApproxDP, PureDP, best_guess

    for mu in (0.1, 1.0, 3.0):
        apart = 2 * stats.norm.cdf(mu / 2) - 1  # total variation of N(0, 1) and N(mu, 1)
        assert abs(best_guess(GDP(mu)) - (1 + apart) / 2) < 1e-12
        assert best_guess(ZCDP(mu**2 / 2)) >= best_guess(GDP(mu))  # the Gaussian mechanism keeps both
        for delta in (1e-6, 1e-2):
            assert best_guess(ApproxDP(gdp_epsilon(mu, delta), delta)) >= best_guess(GDP(mu)) - 1e-12
    assert best_guess(PureDP(0.5)) < best_guess(PureDP(1.0)) < 1
    assert best_guess(ApproxDP(1.0, 0.9)) <= 1
    assert best_guess(ZCDP(50.0)) == 1
