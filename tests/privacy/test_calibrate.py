"""Calibration against mpmath at 50 digits (theory sections 5 and 10.1): never below the exact scale, 1e-9 above."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    PromiseError,
    PureDP,
    gaussian_promise,
    gaussian_scale,
    laplace_promise,
    laplace_scale,
    to_approx,
)

DIGITS = 50
CLOSE = mpmath.mpf("1e-9")
CLOSER = mpmath.mpf("1e-12")  # what we do

# The grid of the issue, epsilon 1e-3 to 20 and delta 1e-300 to 0.1, and beyond it in both directions.
EPSILONS = [1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0]
DELTAS = [*(10.0**-k for k in range(300, 10, -29)), 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1]
WIDER_EPSILONS = [1e-12, 1e-6, 1e-4, 0.7, 50.0, 200.0, 700.0]
WIDER_DELTAS = [1e-300, 1e-150, 1e-16, 1e-6, 1e-2, 0.2, 0.4, 0.5, 0.500001, 0.7, 0.9, 0.999, 1 - 1e-9, 1 - 1e-15]


def exact_delta(ratio, epsilon):
    """delta of Gaussian noise of scale/sensitivity = ratio: Balle and Wang (2018), corrected as in section 10.1."""
    a, b = epsilon * ratio - 1 / (2 * ratio), epsilon * ratio + 1 / (2 * ratio)
    return (mpmath.erfc(a / mpmath.sqrt(2)) - mpmath.exp(epsilon) * mpmath.erfc(b / mpmath.sqrt(2))) / 2


def verdict(scale, sensitivity, epsilon, delta, close=CLOSE):
    """'below', 'above' or 'good': delta falls with the scale, so the exact scale need not be found to compare."""
    # 60 digits on top of the 50 asked for, as the two terms of delta can agree in that many.
    with mpmath.workdps(DIGITS + 60):
        ratio = mpmath.mpf(scale) / mpmath.mpf(sensitivity)
        epsilon, delta = mpmath.mpf(epsilon), mpmath.mpf(delta)
        if exact_delta(ratio, epsilon) > delta:
            return "below"
        return "good" if exact_delta(ratio * (1 - close), epsilon) > delta else "above"


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_analytic_scale_is_never_below_and_hardly_above_the_exact_one(epsilon):
    for delta in DELTAS:
        assert verdict(gaussian_scale(1.0, ApproxDP(epsilon, delta)), 1.0, epsilon, delta, CLOSER) == "good", delta


@pytest.mark.parametrize("epsilon", WIDER_EPSILONS)
def test_analytic_scale_on_the_wider_grid(epsilon):
    for delta in WIDER_DELTAS:
        assert verdict(gaussian_scale(1.0, ApproxDP(epsilon, delta)), 1.0, epsilon, delta, CLOSER) == "good", delta


@given(
    st.floats(min_value=-3, max_value=math.log10(20)).map(lambda x: 10**x),
    st.floats(min_value=-300, max_value=-1).map(lambda x: 10**x),
    st.floats(min_value=-9, max_value=9).map(lambda x: 10**x),
)
def test_analytic_scale_anywhere_on_the_issues_range(epsilon, delta, sensitivity):
    scale = gaussian_scale(sensitivity, ApproxDP(epsilon, delta))
    assert verdict(scale, sensitivity, epsilon, delta) == "good"


def _smallest_scale(condition):
    """Bisect for the smallest scale at which a condition holds, as the papers do."""
    low, high = 1e-3, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if condition(middle) else (middle, high)
    return high


def _phi(x):
    return float(mpmath.ncdf(x))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (0.5, 1e-5), (1.0, 1e-3), (3.0, 1e-6)])
def test_the_test_rejects_the_papers_condition_and_other_mistakes(epsilon, delta):
    """Papers 000 and 001 give both Phi the same argument (section 10.1): any scale satisfies that."""

    def published(s):
        return _phi(1 / (2 * s) - epsilon * s) - math.exp(epsilon) * _phi(1 / (2 * s) - epsilon * s) <= delta

    def published_with_the_other_sign(s):
        return _phi(-1 / (2 * s) - epsilon * s) - math.exp(epsilon) * _phi(-1 / (2 * s) - epsilon * s) <= delta

    def corrected(s):
        return _phi(1 / (2 * s) - epsilon * s) - math.exp(epsilon) * _phi(-1 / (2 * s) - epsilon * s) <= delta

    for wrong in (published, published_with_the_other_sign):
        assert verdict(_smallest_scale(wrong), 1.0, epsilon, delta) == "below"
    assert verdict(_smallest_scale(corrected) * (1 + 5e-10), 1.0, epsilon, delta) == "good"
    right = gaussian_scale(1.0, ApproxDP(epsilon, delta))
    assert verdict(right * (1 - 2e-12), 1.0, epsilon, delta) == "below"
    assert verdict(right * (1 + 2e-9), 1.0, epsilon, delta) == "above"
    assert verdict(right / 2, 1.0, epsilon, delta) == "below"


# -------------------------------------------------------------------- closed forms

positive = st.floats(min_value=1e-70, max_value=1e70)


@given(positive, positive)
def test_closed_forms_are_the_next_float_above_the_exact_scale(sensitivity, parameter):
    exact = Fraction(sensitivity) / Fraction(parameter)
    for scale in (laplace_scale(sensitivity, PureDP(parameter)), gaussian_scale(sensitivity, GDP(parameter))):
        assert scale >= exact > math.nextafter(scale, 0.0)
    scale = gaussian_scale(sensitivity, ZCDP(parameter))
    square = Fraction(sensitivity) ** 2 / (2 * Fraction(parameter))
    assert Fraction(scale) ** 2 >= square > Fraction(math.nextafter(scale, 0.0)) ** 2


@given(positive, positive)
def test_what_a_scale_keeps_implies_what_was_asked(sensitivity, parameter):
    pure, gaussian = PureDP(parameter), GDP(parameter)
    assert laplace_promise(sensitivity, laplace_scale(sensitivity, pure)) <= pure
    assert gaussian_promise(sensitivity, gaussian_scale(sensitivity, gaussian)) <= gaussian


@pytest.mark.parametrize("method", ["analytic", "classical"])
def test_what_an_approximate_scale_keeps_implies_what_was_asked(method):
    epsilons = [e for e in EPSILONS + WIDER_EPSILONS if method == "analytic" or e < 1]
    for epsilon, delta in itertools.product(epsilons, DELTAS):
        asked = ApproxDP(epsilon, delta)
        scale = gaussian_scale(0.37, asked, method=method)
        assert gaussian_promise(0.37, scale) <= asked
        kept = to_approx(gaussian_promise(0.37, scale), delta)
        assert kept <= asked
        if method == "analytic":
            # Nearly all of it is used. Where delta alone does most of the work, epsilon is not what decides.
            mu = gaussian_promise(0.37, scale).mu
            assert kept.epsilon == pytest.approx(epsilon, rel=1e-9, abs=1e-9 * mu)


@given(positive, positive)
def test_kept_promises_are_rounded_to_the_weaker_side(sensitivity, scale):
    ratio = Fraction(sensitivity) / Fraction(scale)
    assert laplace_promise(sensitivity, scale).epsilon >= ratio
    assert gaussian_promise(sensitivity, scale).mu >= ratio


def test_scales_of_round_numbers_are_round():
    assert laplace_scale(1.0, PureDP(0.5)) == 2.0
    assert gaussian_scale(1.0, GDP(0.25)) == 4.0
    assert gaussian_scale(3.0, ZCDP(0.125)) == 6.0


# -------------------------------------------------------------------- classical


@pytest.mark.parametrize("epsilon", [e for e in EPSILONS if e < 1] + [1e-6, 0.7, 0.999999])
def test_classical_scale_is_its_formula_rounded_up_and_keeps_the_promise(epsilon):
    for delta in DELTAS + WIDER_DELTAS:
        scale = gaussian_scale(0.3, ApproxDP(epsilon, delta), method="classical")
        with mpmath.workdps(DIGITS):
            log = mpmath.log(mpmath.mpf(5) / 4 / mpmath.mpf(delta))
            exact = mpmath.mpf(0.3) * mpmath.sqrt(2 * log) / mpmath.mpf(epsilon)
            assert exact <= scale <= exact * (1 + mpmath.mpf("1e-14"))
        assert scale >= gaussian_scale(0.3, ApproxDP(epsilon, delta))


@pytest.mark.parametrize("epsilon", [1.0, 1.5, 20.0])
def test_classical_refuses_epsilon_from_one_on(epsilon):
    with pytest.raises(PromiseError, match=r"epsilon must be below 1 .* got .*method='analytic'"):
        gaussian_scale(1.0, ApproxDP(epsilon, 1e-5), method="classical")


def test_classical_would_break_its_promise_at_large_epsilon():
    epsilon, delta = 20.0, 0.1
    assert verdict(math.sqrt(2 * math.log(1.25 / delta)) / epsilon, 1.0, epsilon, delta) == "below"


def test_method_makes_no_difference_for_other_promises():
    assert gaussian_scale(1.0, GDP(0.3), method="classical") == gaussian_scale(1.0, GDP(0.3))


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, None, "1", np.ones(2)], ids=repr)
def test_bad_sensitivities_and_scales_are_refused(bad):
    for call in (
        lambda: laplace_scale(bad, PureDP(1.0)),
        lambda: gaussian_scale(bad, GDP(1.0)),
        lambda: laplace_promise(bad, 1.0),
        lambda: gaussian_promise(bad, 1.0),
    ):
        with pytest.raises(InvalidArgumentError, match="sensitivity must be"):
            call()
    for call in (lambda: laplace_promise(1.0, bad), lambda: gaussian_promise(1.0, bad)):
        with pytest.raises(InvalidArgumentError, match="scale must be"):
            call()


@pytest.mark.parametrize("promise", [ApproxDP(1.0, 1e-5), ZCDP(1.0), GDP(1.0)], ids=repr)
def test_laplace_takes_pure_promises_only(promise):
    with pytest.raises(PromiseError, match=r"Laplace.*PureDP.*gaussian_scale"):
        laplace_scale(1.0, promise)


def test_gaussian_noise_keeps_no_pure_promise():
    with pytest.raises(PromiseError, match="cannot be kept by Gaussian noise of any scale"):
        gaussian_scale(1.0, PureDP(1.0))


def test_other_bad_arguments():
    with pytest.raises(InvalidArgumentError, match="promise must be a promise"):
        gaussian_scale(1.0, 1.0)
    with pytest.raises(InvalidArgumentError, match="promise must be a promise"):
        laplace_scale(1.0, 1.0)
    with pytest.raises(InvalidArgumentError, match="method must be one of analytic, classical, got 'exact'"):
        gaussian_scale(1.0, GDP(1.0), method="exact")


def test_noise_beyond_floats_is_refused():
    for call in (
        lambda: laplace_scale(1e300, PureDP(1e-300)),
        lambda: gaussian_scale(1e300, GDP(1e-300)),
        lambda: gaussian_scale(1e300, ApproxDP(1e-300, 1e-300), method="classical"),
    ):
        with pytest.raises(PromiseError, match="beyond the range of floating-point"):
            call()
