"""The exact privacy profile of noise with density exp(-|z|/scale) in R^d, as proven upper bounds.

For approximate promises such noise does better than its pure one: in many dimensions two shifted densities differ by
the factor e^epsilon almost nowhere. delta(epsilon) is one integral over an angle of a function without singularities
(docs/theory/profile.md, section 9), computed in ball arithmetic: what is returned is above the true value, by proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy
from flint import acb, arb, ctx

from dpmanifold._check import Array, positive_float, positive_int
from dpmanifold.manifolds.exact_points import precision_kept
from dpmanifold.privacy.promises import ApproxDP

# Working precision in bits, and the relative error at which the integration may stop: both far beyond what is needed.
_PRECISION, _ACCURACY = 128, -60
# Values below 2^this are as good as 0 to the integration; every delta that a promise can state is above.
_SMALLEST = -1200
# How often an integrand may be looked at: ten times what was ever needed. Beyond, nothing is known.
_MOST_VALUES = 20_000
# Beyond this epsilon nothing is promised that is worth a search: its pure promise will do.
_LARGEST = 1000.0
# Shifts have 24 bits after the first one: by so little the noise is larger than it need be, and every machine finds
# the same shift.
_STEPS = 2**24
# How far log delta may fall below the wanted one before the search for a first guess stops looking.
_DEEPEST = 50.0
# How near the guess is to it, in the logarithm of the shift.
_NEAR = 1e-9


def laplace_delta(dim: int, shift: float, epsilon: float) -> float:
    """Return the delta at which noise of density exp(-|z|) in R^dim, shifted by `shift`, keeps epsilon; rounded up.

    Theory section 5 (profile, 9). It grows with the shift, so the sensitivity speaks for all smaller ones; for noise of
    another scale the shift is sensitivity/scale.

    Parameters
    ----------
    dim : of the space that the noise is drawn in
    shift : above 0
    epsilon : above 0; from `shift` on delta is 0, the pure promise

    Examples
    --------
    >>> round(laplace_delta(10, 2.0, 1.0), 6), laplace_delta(10, 1.0, 1.0)
    (0.019213, 0.0)
    """
    dim, shift, epsilon = positive_int(dim, "dim"), positive_float(shift, "shift"), positive_float(epsilon, "epsilon")
    with precision_kept():
        ctx.prec = _PRECISION
        found = _delta(dim, shift, epsilon)
        if shift <= epsilon or not found.is_finite():  # should anything have failed, 1 is a bound
            return 0.0 if shift <= epsilon else 1.0
        # The upper end of the ball, rounded up once more on its way to a double.
        return min(1.0, math.nextafter(float(found.upper()), math.inf))


@lru_cache(maxsize=1024)
def largest_shift(dim: int, promise: ApproxDP) -> float:
    """Return the largest shift of noise of density exp(-|z|) in R^dim that keeps an approximate promise, rounded down.

    Never below the epsilon of the promise, which is kept without any delta.

    Examples
    --------
    >>> promise = ApproxDP(1.0, 1e-6)
    >>> [round(largest_shift(dim, promise), 3) for dim in (1, 6, 45)]
    [1.0, 1.025, 1.741]
    """
    epsilon, wanted = promise.epsilon, math.log(promise.delta)
    if epsilon > _LARGEST:
        return epsilon

    def holds(step: int) -> bool:
        return bool(_delta(dim, _shift_at(step), epsilon) <= arb(promise.delta))

    # A guess first, in doubles; then the last step that holds, by proof, which does not depend on the
    # guess, since delta grows with the shift.
    def excess(shift: float) -> float:
        found = _guess(dim, shift, epsilon) - wanted
        return max(found, -_DEEPEST) if found < _DEEPEST else _DEEPEST  # what is not known does not hold

    low, factor = epsilon, 2.0
    while excess(low * factor) <= 0:
        low, factor = low * factor, min(factor * factor, 256.0)
    ends = math.log(low) - 1e-6, math.log(low * factor) + 1e-6  # so that rounding leaves the signs as they are
    while ends[1] - ends[0] > _NEAR:
        middle = (ends[0] + ends[1]) / 2
        ends = (middle, ends[1]) if excess(math.exp(middle)) <= 0 else (ends[0], middle)
    with precision_kept():
        ctx.prec = _PRECISION
        least = _step_below(epsilon)
        return max(epsilon, _shift_at(_last(holds, least, max(least, _step_below(math.exp(ends[0]))))))


def is_broken(dim: int, shift: float, promise: ApproxDP) -> bool:
    """Return whether noise of density exp(-|z|) in R^dim, shifted by `shift`, surely does not keep a promise.

    True only where :func:`largest_shift` is smaller: delta grows with the shift.

    Examples
    --------
    >>> is_broken(6, 1.1, ApproxDP(1.0, 1e-6)), is_broken(6, 1.01, ApproxDP(1.0, 1e-6))
    (True, False)
    """
    if promise.epsilon > _LARGEST:  # nothing beyond epsilon is looked for there
        return shift > promise.epsilon
    with precision_kept():
        ctx.prec = _PRECISION
        return bool(_delta(dim, shift, promise.epsilon) > arb(promise.delta))


def _last(holds: Callable[[int], bool], least: int, guess: int) -> int:
    """Return the last step that holds, where all up to some one do and `least` does."""
    low, high, stride = least, guess + 1, 1
    while holds(high):
        low, high, stride = high, high + stride, 2 * stride
    stride = 1
    while high - stride > low and not holds(high - stride):
        high, stride = high - stride, 2 * stride
    low = max(low, high - stride)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _shift_at(step: int) -> float:
    """Return the numbers of 24 bits after the first one, in ascending order."""
    return math.ldexp(1 + step % _STEPS / _STEPS, step // _STEPS)


def _step_below(shift: float) -> int:
    digits, exponent = math.frexp(shift)
    return (exponent - 1) * _STEPS + int((2 * digits - 1) * _STEPS)


def _delta(dim: int, shift: float, epsilon: float) -> arb:
    """Return a ball that holds delta, at the precision that is set; section 9 has the formula."""
    if shift <= epsilon:
        return arb(0)
    D, e = arb(shift), arb(epsilon)
    if dim == 1:
        return -((e - D) / 2).expm1()
    half, order = D / 2, arb(dim) / 2
    square = acb(1 + 2 * (dim - 1) / D * (half.bessel_k(order) / half.bessel_k(order - 1)))
    a, middle = acb(half), acb(e / 2)

    def weight(angle: acb) -> tuple[acb, acb]:
        cosine = angle.cos()
        return angle.sin() ** (dim - 2) * (square - cosine * cosine), a * cosine

    def difference(angle: acb, _: bool) -> acb:
        w, loss = weight(angle)
        return w * (loss - middle).sinh()

    def density(angle: acb, _: bool) -> acb:
        w, loss = weight(angle)
        return w * loss.exp()

    part = _integral(difference, acb((e / D).acos()))
    return 2 * (e / 2).exp() * part.real / _integral(density, acb.pi()).real


def _guess(dim: int, shift: float, epsilon: float) -> float:
    """Return about log(delta), in doubles, -inf from `shift = epsilon` down; nothing proven rests on it."""
    if shift <= epsilon:
        return -math.inf
    if dim == 1:
        return math.log(-math.expm1((epsilon - shift) / 2))
    half, (nodes, weights) = shift / 2, _double_exponential()
    bessel = scipy.special.kve

    def logs(end: float) -> tuple[Array, Array]:
        angle = end * nodes
        cosine = np.cos(angle)
        return np.log(end * weights * (square - cosine**2)) + (dim - 2) * np.log(np.sin(angle)), half * cosine

    with np.errstate(all="ignore"):
        square = 1 + 2 * (dim - 1) / shift * (bessel(dim / 2, half) / bessel(dim / 2 - 1, half))
        w, loss = logs(math.acos(epsilon / shift))
        over, whole = loss - epsilon / 2, np.add(*logs(math.pi))
        part = w + over + np.log(-np.expm1(-2 * over))
        return float(epsilon / 2 + scipy.special.logsumexp(part) - scipy.special.logsumexp(whole))


@lru_cache(maxsize=1)
def _double_exponential() -> tuple[Array, Array]:
    """Return nodes and weights of tanh-sinh quadrature on (0, 1)."""
    t = np.linspace(-3.0, 3.0, 193)
    u = math.pi * np.sinh(t)
    return 1 / (1 + np.exp(-u)), math.pi * np.cosh(t) / (2 + 2 * np.cosh(u)) * (t[1] - t[0])


def _integral(of: Callable[[acb, bool], acb], end: acb) -> acb:
    """Return a ball that holds the integral from 0 of a function without singularities."""
    return acb.integral(of, 0, end, rel_tol=arb(2) ** _ACCURACY, abs_tol=arb(2) ** _SMALLEST, eval_limit=_MOST_VALUES)
