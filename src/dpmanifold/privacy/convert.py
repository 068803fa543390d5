"""Which promise follows from which, and by what numbers (theory section 5).

Valid: pure to all others, Gaussian to zero-concentrated and approximate, zero-concentrated to approximate. The
rest is refused with the reason. Every result is rounded to the safe side: a converted promise is never stronger
than the original warrants. What noise a promise asks for is in `calibrate`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import cast, overload

import numpy as np
import numpy.typing as npt
from scipy import special

from dpmanifold._check import FloatArray, numeric_array, positive_float, shown
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, PromiseError
from dpmanifold.privacy.exact_decimals import stated_up
from dpmanifold.privacy.promises import GDP, ZCDP, ApproxDP, Promise, PureDP, as_delta, as_promise

_EPS = sys.float_info.epsilon
_LOG_SQRT_TWO_PI = math.log(2 * math.pi) / 2
# Rounding allowance, in units of eps times the condition of the formula. Measured against 60 digits the need is
# below 2 (tests/privacy/test_convert.py); what `implies` accepts has one allowance to spare, what a conversion
# returns two and what a calibration aims at three, so that each step accepts what the next one made.
_ALLOWANCE = 16 * _EPS
_ROUND_UP = 1 + 16 * _EPS
# An ApproxDP has epsilon > 0. Where epsilon = 0 would do, this is what is said: e^epsilon is then 1 to 12 digits.
SMALLEST_EPSILON = 1e-12
# A log delta below -e^200 is of no use to anyone; orders that could lead there, and overflow, are not tried.
_LARGEST_LOG = 200.0
# Up to mu = 1 the difference of two Mills ratios is the integral of their derivative: ten nodes give 1e-16.
_LEGENDRE = np.polynomial.legendre.leggauss(10)
_NODES, _WEIGHTS = (_LEGENDRE[0] + 1) / 2, _LEGENDRE[1] / 2
# Beyond these the Mills ratio's derivative comes from its asymptotic series, and from the first term of that.
_FAR, _VERY_FAR = 50.0, 1e7
_ONE_POINT = "one epsilon and delta say nothing about what happens at smaller deltas"


def to_pure(promise: Promise) -> PureDP:
    """Return a pure promise as it is, and refuse every other: none of them bounds the likelihood of all outcomes.

    Examples
    --------
    >>> to_pure(PureDP(0.5))
    PureDP(epsilon=0.5)
    """
    if isinstance(as_promise(promise, "promise"), PureDP):
        return cast(PureDP, promise)
    raise PromiseError(
        f"promise {promise} cannot become pure: it allows rare outcomes of which the likelihood grows without bound. "
        "Ask for PureDP from the start, with a Laplace mechanism, or state the result as ApproxDP."
    )


def to_approx(promise: Promise, delta: float | str) -> ApproxDP:
    """Return the approximate promise with this delta that `promise` implies (theory section 5).

    PureDP keeps its epsilon. GDP goes by its exact curve and ZCDP by the best order of Canonne, Kamath and Steinke
    (2020, Proposition 12). ApproxDP can only take a larger delta. Epsilon is 1e-12 where 0 would do.

    Parameters
    ----------
    promise : of any kind
    delta : above 0 and below 1; a number, or text as in a promise

    Examples
    --------
    >>> round(to_approx(GDP(1.0), 1e-5).epsilon, 4), round(to_approx(ZCDP(0.5), 1e-5).epsilon, 4)
    (4.3772, 4.7284)
    """
    promise, allowed = as_promise(promise, "promise"), as_delta(delta)
    match promise:
        case PureDP():
            return ApproxDP(promise.stated["epsilon"], delta)
        case GDP():
            return ApproxDP(max(gdp_epsilon(promise.above[0], allowed), SMALLEST_EPSILON), delta)
        case ZCDP():
            return ApproxDP(max(zcdp_epsilon(promise.above[0], allowed), SMALLEST_EPSILON), delta)
        case ApproxDP():
            found = ApproxDP(promise.stated["epsilon"], delta)
            if promise.exact["delta"] <= found.exact["delta"]:
                return found
    raise PromiseError(
        f"delta must be at least that of {promise}, got {delta!r}: an approximate promise at one delta says nothing "
        "about smaller ones. State the result as GDP or ZCDP, which hold at every delta."
    )


def to_zcdp(promise: Promise) -> ZCDP:
    """Return the zero-concentrated promise that `promise` implies (theory section 5).

    mu-GDP is mu^2/2-zCDP. epsilon-DP is min(epsilon, epsilon^2/2)-zCDP: the second by Bun and Steinke (2016,
    Proposition 1.4), the first as no Rényi divergence exceeds epsilon and the order is above 1.

    Examples
    --------
    >>> to_zcdp(GDP(1.0)), to_zcdp(PureDP(1.0)), to_zcdp(PureDP(8.0))
    (ZCDP(rho=0.5), ZCDP(rho=0.5), ZCDP(rho=8.0))
    """
    promise = as_promise(promise, "promise")
    return promise if isinstance(promise, ZCDP) else ZCDP(stated_up(rho_of(promise)))


def to_gdp(promise: Promise) -> GDP:
    """Return the Gaussian promise that `promise` implies: of another kind, only a pure one does (theory section 5).

    mu = -2 Phi^-1(1/(1 + e^epsilon)), the smallest possible.

    Examples
    --------
    >>> round(to_gdp(PureDP(1.0)).mu, 6)
    1.232035
    """
    promise = as_promise(promise, "promise")
    match promise:
        case GDP():
            return promise
        case PureDP():
            return GDP(_mu_of_pure(promise.above[0]))
        case ZCDP():
            reason = "its bound on Rényi divergences allows trade-offs that no Gaussian one does. Stay with ZCDP"
        case _:
            reason = f"{_ONE_POINT}. For planning, gdp_sufficient_for gives the GDP that implies it"
    raise PromiseError(f"promise {promise} cannot become GDP: {reason}.")


def gdp_sufficient_for(promise: ApproxDP) -> GDP:
    """Return the weakest Gaussian promise that implies an approximate one. For planning: NOT a conversion of it.

    Noise that keeps the result keeps `promise`; the other way round does not hold. The largest mu with
    delta(epsilon) <= delta (theory section 5), rounded down, within 1e-12 of the exact one.

    Examples
    --------
    >>> round(gdp_sufficient_for(ApproxDP(epsilon=0.5, delta=1e-5)).mu, 6)
    0.142211
    """
    if not isinstance(promise, ApproxDP):
        raise InvalidArgumentError(f"promise must be an ApproxDP, got {shown(promise)}. For other kinds see to_gdp.")
    return _sufficient(promise.epsilon, promise.delta)


@lru_cache(maxsize=256)
def _sufficient(epsilon: float, delta: float) -> GDP:
    # Two values that are small enough: one by delta <= exp(-a^2/2)/2, the other by delta(0) <= mu / sqrt(2 pi).
    tail = math.sqrt(-2 * math.log(delta))
    inside = max(2 * (epsilon / (tail + math.hypot(tail, math.sqrt(2) * math.sqrt(epsilon)))), 2 * delta)

    def holds(mu: float) -> bool:
        return gdp_keeps(mu, epsilon, delta, allowances=3)

    while not holds(inside):  # only where epsilon is so large that rounding is all there is
        inside /= 2
    while holds(2 * inside):
        inside *= 2
    return GDP(_bisect(inside, 2 * inside, holds))


def implies(first: Promise, second: Promise) -> bool:
    """Return True if whatever keeps `first` is known to keep `second`; see `Promise.implies`.

    Examples
    --------
    >>> implies(PureDP(1.0), ZCDP(0.5)), implies(ZCDP(0.5), PureDP(1.0))
    (True, False)
    """
    # What follows from the first is rounded up, and what the second asks for is rounded down, or neither is.
    match as_promise(first, "first"), as_promise(second, "second"):
        case (PureDP(), PureDP()) | (GDP(), GDP()) | (ApproxDP(), ApproxDP()):
            return all(number <= second.exact[name] for name, number in first.exact.items())
        case (PureDP(), ApproxDP(wanted, delta)):
            if first.exact["epsilon"] <= second.exact["epsilon"]:
                return True
            # The whole curve of the worst pure mechanism, randomised response, so that the order is transitive.
            epsilon = first.above[0]
            loss = -math.expm1(min(wanted - epsilon, 0.0)) / (1 + math.exp(-epsilon))
            return loss * _ROUND_UP <= delta
        case (PureDP(), GDP(mu)):
            return _mu_of_pure(first.above[0]) <= mu
        case (PureDP() | GDP() | ZCDP(), ZCDP()):
            return rho_of(first) <= second.exact["rho"]
        case (GDP(), ApproxDP(epsilon, delta)):
            return gdp_keeps(first.above[0], epsilon, delta)
        case (ZCDP(), ApproxDP(epsilon, delta)):
            return zcdp_log_delta(first.above[0], epsilon) <= math.log(delta)
    return False


def rho_of(promise: Promise) -> Fraction:
    """Return, exactly, the rho of the zero-concentrated promise that `promise` implies; refuse ApproxDP.

    Examples
    --------
    >>> rho_of(GDP(1.0))
    Fraction(1, 2)
    """
    match promise:
        case ZCDP():
            return promise.exact["rho"]
        case GDP():
            return promise.exact["mu"] ** 2 / 2
        case PureDP():
            epsilon = promise.exact["epsilon"]
            return min(epsilon, epsilon**2 / 2)
    raise PromiseError(f"promise {promise} cannot become ZCDP: {_ONE_POINT}. Ask for ZCDP or GDP from the start.")


def _mu_of_pure(epsilon: float) -> float:
    """Solve Phi(-mu/2) = 1/(1 + e^epsilon), rounded up; one Newton step makes up for any starting inverse."""
    if epsilon < 1:  # as erf(mu / sqrt 8) = tanh(epsilon / 2), where the first form would cancel
        level = math.tanh(max(epsilon, 1e-300) / 2)  # below, floats have too few digits left for what follows
        half = float(special.erfinv(level))
        half -= (math.erf(half) - level) * math.sqrt(math.pi) / 2 * math.exp(half * half)
        return 2 * math.sqrt(2) * half * _ROUND_UP
    log_level = -epsilon - math.log1p(math.exp(-epsilon))
    quantile = -float(special.ndtri_exp(log_level))
    quantile += (float(special.log_ndtr(-quantile)) - log_level) * _mills(quantile)
    return 2 * quantile * _ROUND_UP


# -------------------------------------------------------------------- the Gaussian curve


@overload
def gdp_log_delta(mu: float, epsilon: float) -> float: ...
@overload
def gdp_log_delta(mu: float, epsilon: npt.ArrayLike) -> float | FloatArray: ...
def gdp_log_delta(mu: float, epsilon: npt.ArrayLike) -> float | FloatArray:
    """Return log delta(epsilon) of mu-GDP, exact to 1e-12 of delta down to delta = 1e-300 (theory section 5).

    The privacy profile, a hockey-stick divergence: delta(epsilon) = Phi(-a) - e^epsilon Phi(-b) with a = epsilon/mu -
    mu/2 and b = a + mu. As e^epsilon phi(b) = phi(a), this is phi(a) (M(a) - M(b)) for the Mills ratio M = Phi(-.)/phi,
    which does not overflow.

    Parameters
    ----------
    mu : above 0
    epsilon : 0 or more; a number or an array of any shape

    Returns
    -------
    a float, or an array of the shape of `epsilon`

    Examples
    --------
    >>> round(gdp_log_delta(1.0, 1.0), 6), round(gdp_log_delta(0.1, 3.7), 1)
    (-2.064066, -693.1)
    """
    mu = positive_float(mu, "mu")
    try:
        values = numeric_array(epsilon, "epsilon")
    except InvalidDataError as problem:  # the same words, but this is an argument and not a record
        raise InvalidArgumentError(str(problem)) from None
    if values.dtype.kind == "c" or not (values >= 0).all() or np.isinf(values).any():
        raise InvalidArgumentError(f"epsilon must be finite and at least 0 everywhere, got {shown(epsilon)}.")
    if values.ndim == 0:
        return _log_delta(mu, float(values))
    return np.array([_log_delta(mu, float(value)) for value in values.ravel()]).reshape(values.shape)


@overload
def gdp_delta(mu: float, epsilon: float) -> float: ...
@overload
def gdp_delta(mu: float, epsilon: npt.ArrayLike) -> float | FloatArray: ...
def gdp_delta(mu: float, epsilon: npt.ArrayLike) -> float | FloatArray:
    """Return delta(epsilon) of mu-GDP: the smallest delta for each epsilon; see `gdp_log_delta`.

    Examples
    --------
    >>> round(gdp_delta(1.0, 1.0), 6)
    0.126937
    """
    logs = gdp_log_delta(mu, epsilon)
    return math.exp(logs) if isinstance(logs, float) else np.exp(logs)


def gdp_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 at which mu-GDP is (epsilon, delta)-DP, rounded up (theory section 5).

    Examples
    --------
    >>> round(gdp_epsilon(1.0, 1e-5), 6), gdp_epsilon(0.1, 0.1)
    (4.377178, 0.0)
    """
    mu, delta = positive_float(mu, "mu"), as_delta(delta)
    if gdp_keeps(mu, 0.0, delta, allowances=2):
        return 0.0
    # Large enough by delta(epsilon) <= exp(-a^2/2)/2.
    inside = mu * (mu / 2 + math.sqrt(-2 * math.log(delta)))
    while not gdp_keeps(mu, inside, delta, allowances=2):  # only where rounding is all there is
        inside *= 2
    return _bisect(inside, 0.0, lambda epsilon: gdp_keeps(mu, epsilon, delta, allowances=2))


def gdp_keeps(mu: float, epsilon: float, delta: float, allowances: int = 1) -> bool:
    """Return True if mu-GDP is (epsilon, delta)-DP, with some allowances for rounding to spare.

    Examples
    --------
    >>> gdp_keeps(1.0, 4.3772, 1e-5), gdp_keeps(1.0, 4.3771, 1e-5)
    (True, False)
    """
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a == math.inf:
        return True
    # a is known to eps b, and log delta moves by 1 + |a| per unit of a; the logs have rounding of their own.
    allowance = allowances * _ALLOWANCE * (1 - math.log(delta) + (1 + abs(a)) * b)
    if delta <= 0.5:
        return _log_delta(mu, epsilon) + allowance <= math.log(delta)
    # Near 1 the complement is what has digits. At a > 1 delta is below Phi(-1).
    return a > 1 or _log_complement(a, b) - allowance >= math.log1p(-delta)


def _log_delta(mu: float, epsilon: float) -> float:
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a > _VERY_FAR:
        return math.log(mu) - math.log(a) - math.log(b) - a * a / 2 - _LOG_SQRT_TWO_PI
    if mu <= 1:
        return math.log(mu) + math.log(_WEIGHTS @ _mills_slope(a + mu * _NODES)) - a * a / 2 - _LOG_SQRT_TWO_PI
    if a > 0:
        return math.log(_mills(a) - _mills(b)) - a * a / 2 - _LOG_SQRT_TWO_PI
    return math.log(-math.expm1(_log_complement(a, b)))


def _log_complement(a: float, b: float) -> float:
    """Return log(1 - delta) = log(phi(a) (M(-a) + M(b))), for a of at most about 1: no term cancels."""
    return math.log(_mills(-a) + _mills(b)) - a * a / 2 - _LOG_SQRT_TWO_PI


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2) * float(special.erfcx(x / math.sqrt(2)))


def _mills_slope(x: FloatArray) -> FloatArray:
    """Return -M'(x) = 1 - x M(x), which is above 0, at x >= -1/2; the entries lie within 1 of one another."""
    if x[0] < _FAR:
        return np.asarray(1 - x * math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2)))
    square = x**-2
    return np.asarray(square * (1 - 3 * square * (1 - 5 * square * (1 - 7 * square))))


# -------------------------------------------------------------------- the zero-concentrated curve


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 that the best Rényi order proves for rho-zCDP at delta, rounded up.

    Canonne, Kamath and Steinke (2020, Proposition 12), with the order alpha = 1 + u: epsilon = rho (1 + u) +
    (log(1/delta) - log(1 + u))/u + log(u/(1 + u)), least where rho u^2 = log(1/delta) - log(1 + u). Every order
    gives a valid epsilon, so the accuracy of u costs no privacy.

    Examples
    --------
    >>> round(zcdp_epsilon(0.5, 1e-5), 6)
    4.728387
    """
    rho, delta = positive_float(rho, "rho"), as_delta(delta)
    surprise = -math.log(delta)
    # rho u^2 + log(1 + u) is below `surprise` at the first end and above it at the second.
    low = min(math.sqrt(surprise / rho / 2), surprise / 2)
    u = _bisect(low, math.sqrt(surprise / rho), lambda u: rho * u * u + math.log1p(u) < surprise)
    terms = (rho * (1 + u), surprise / u, -math.log1p(u) / u, -math.log1p(1 / u))
    return max(math.fsum(terms) + 4 * _ALLOWANCE * sum(map(abs, terms)), 0.0)


def zcdp_log_delta(rho: float, epsilon: float) -> float:
    """Return the log of the smallest delta that the best Rényi order proves for rho-zCDP at epsilon, rounded up.

    The bound of `zcdp_epsilon`, solved for delta: least where (1 + 2u) rho + log(u/(1 + u)) = epsilon.

    Examples
    --------
    >>> round(zcdp_log_delta(0.5, 4.728387), 4), round(math.log(1e-5), 4)
    (-11.5129, -11.5129)
    """
    rho, epsilon = positive_float(rho, "rho"), positive_float(epsilon, "epsilon")
    # In log u, as u can be e^-rho. The ends have opposite slopes unless the cap, which avoids overflow, cuts in.
    cap = _LARGEST_LOG - max(0.0, math.log(epsilon))
    low, high = min(0.0, epsilon - 3 * rho, cap), min(math.log(epsilon / rho / 2 + 1 / math.sqrt(rho)), cap)
    log_u = _bisect(low, high, lambda x: (1 + 2 * math.exp(x)) * rho - np.logaddexp(0.0, -x) < epsilon)
    u = math.exp(log_u)
    terms = (u * (1 + u) * rho, -u * epsilon, -u * float(np.logaddexp(0.0, -log_u)), -math.log1p(u))
    return min(math.fsum(terms) + _ALLOWANCE * sum(map(abs, terms)), 0.0)


def _bisect(inside: float, outside: float, holds: Callable[[float], bool]) -> float:
    """Move `inside`, where `holds` is true, towards `outside`, where it is not, up to a few units in the last place."""
    while abs(outside - inside) > 2 * _EPS * abs(inside):
        middle = inside / 2 + outside / 2
        if middle in (inside, outside):  # neighbours among the smallest floats
            break
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside
