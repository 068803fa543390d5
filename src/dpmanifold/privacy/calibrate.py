"""How large the noise must be for a promise, and what promise noise of a given size keeps (theory section 5).

For noise added in a flat space, or laws with the same calibration: the mechanisms say which of these they use and
why it holds on a curved one. Every scale is rounded up, and every promise rounded to the weaker side.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from dpmanifold._check import positive_float, positive_int, shown
from dpmanifold.errors import InvalidArgumentError, PromiseError
from dpmanifold.privacy.convert import gdp_sufficient_for
from dpmanifold.privacy.exact_decimals import float_up, sqrt_up
from dpmanifold.privacy.laplace_profile import largest_shift
from dpmanifold.privacy.promises import GDP, ZCDP, ApproxDP, Promise, PureDP, as_promise

# A logarithm, a root and three products, each within eps of its exact value.
_ROUND_UP = 1 + 8 * sys.float_info.epsilon
_METHODS = ("analytic", "classical")


def laplace_scale(sensitivity: float, promise: Promise, *, dim: int | None = None) -> float:
    """Return the scale of noise of density exp(-|z|/scale) that keeps a promise (theory section 5).

    The Laplace mechanism, b = Delta/epsilon; in several dimensions the length of z is Euclidean. PureDP:
    sensitivity/epsilon, in every dimension. ApproxDP: the smallest scale, to 24 bits and rounded up, whose exact
    profile in R^dim keeps it (profile, section 9); never above sensitivity/epsilon.

    Parameters
    ----------
    sensitivity : how far one unit can move the statistic, in the Euclidean (Riemannian) norm, above 0
    promise : a PureDP, or an ApproxDP if `dim` is given
    dim : of the flat space that the noise is drawn in

    Examples
    --------
    >>> laplace_scale(0.25, PureDP(0.5))
    0.5
    >>> round(laplace_scale(1.0, ApproxDP(0.5, 1e-6), dim=15) * 0.5, 4)
    0.8184
    """
    sensitivity = positive_float(sensitivity, "sensitivity")
    match as_promise(promise, "promise"):
        case PureDP(epsilon):
            return _finite(float_up(Fraction(sensitivity) / Fraction(epsilon)), sensitivity, promise)
        case ApproxDP() as approximate if dim is not None:
            shift = largest_shift(positive_int(dim, "dim"), approximate)
            return _finite(float_up(Fraction(sensitivity) / Fraction(shift)), sensitivity, promise)
    raise PromiseError(
        f"promise {promise} is not what Laplace noise is calibrated to. Give a PureDP that implies it, an ApproxDP "
        "with dim=, or use gaussian_scale."
    )


def laplace_promise(sensitivity: float, scale: float) -> PureDP:
    """Return what Laplace noise of this scale keeps: the inverse of `laplace_scale`, rounded up.

    Examples
    --------
    >>> laplace_promise(0.25, 0.5)
    PureDP(epsilon=0.5)
    """
    sensitivity, scale = positive_float(sensitivity, "sensitivity"), positive_float(scale, "scale")
    return PureDP(float_up(Fraction(sensitivity) / Fraction(scale)))


def gaussian_scale(sensitivity: float, promise: Promise, *, method: str = "analytic") -> float:
    """Return the standard deviation of Gaussian noise, in each direction, that keeps a promise (theory section 5).

    The Gaussian mechanism, sigma = Delta/mu. GDP: sensitivity/mu. ZCDP: sensitivity/sqrt(2 rho). ApproxDP: the exact
    condition of Balle and Wang (2018), both arguments as they should be (theory: privacy, (1)), or the classical
    sensitivity sqrt(2 log(1.25/delta))/epsilon, which is proven below epsilon = 1 only. Never below the exact value,
    and within 1e-12 above it wherever delta is 1e-300 or more.

    Parameters
    ----------
    sensitivity : how far one unit can move the statistic, in the Euclidean (Riemannian) norm, above 0
    promise : a GDP, ZCDP or ApproxDP
    method : "analytic" (default) or "classical"; makes a difference for ApproxDP only

    Examples
    --------
    >>> gaussian_scale(1.0, GDP(2.0)), gaussian_scale(1.0, ZCDP(0.5))
    (0.5, 1.0)
    >>> promise = ApproxDP(epsilon=0.5, delta=1e-5)
    >>> round(gaussian_scale(1.0, promise), 4), round(gaussian_scale(1.0, promise, method="classical"), 4)
    (7.0318, 9.6896)
    """
    sensitivity = positive_float(sensitivity, "sensitivity")
    if method not in _METHODS:
        raise InvalidArgumentError(f"method must be one of {', '.join(_METHODS)}, got {shown(method)}.")
    match as_promise(promise, "promise"):
        case GDP(mu):
            scale = float_up(Fraction(sensitivity) / Fraction(mu))
        case ZCDP(rho):
            scale = sqrt_up(Fraction(sensitivity) ** 2 / (2 * Fraction(rho)))
        case ApproxDP() as approximate if method == "classical":
            scale = _classical(sensitivity, approximate)
        case ApproxDP() as approximate:
            scale = float_up(Fraction(sensitivity) / Fraction(gdp_sufficient_for(approximate).mu))
        case _:
            raise PromiseError(
                f"promise {promise} cannot be kept by Gaussian noise of any scale: the ratio of two normal densities "
                "is unbounded. Use laplace_scale, or ask for ApproxDP, ZCDP or GDP."
            )
    return _finite(scale, sensitivity, promise)


def gaussian_promise(sensitivity: float, scale: float) -> GDP:
    """Return what Gaussian noise of this standard deviation keeps: the inverse of `gaussian_scale`.

    It is all there is to know: `to_zcdp` and `to_approx` say what follows.

    Parameters
    ----------
    sensitivity, scale : above 0

    Examples
    --------
    >>> gaussian_promise(1.0, 2.0)
    GDP(mu=0.5)
    """
    sensitivity, scale = positive_float(sensitivity, "sensitivity"), positive_float(scale, "scale")
    return GDP(float_up(Fraction(sensitivity) / Fraction(scale)))


def _classical(sensitivity: float, promise: ApproxDP) -> float:
    if promise.epsilon >= 1:
        raise PromiseError(
            f"epsilon must be below 1 for the classical Gaussian calibration, got {promise.epsilon!r}: beyond it the "
            "noise is too small for the promise. Use method='analytic', which is also smaller."
        )
    # The logs apart, as 1.25/delta can overflow.
    factor = math.sqrt(2 * (math.log(1.25) - math.log(promise.delta)))
    return sensitivity * (factor / promise.epsilon) * _ROUND_UP


def _finite(scale: float, sensitivity: float, promise: Promise) -> float:
    if math.isfinite(scale):
        return scale
    raise PromiseError(
        f"promise {promise} at sensitivity {sensitivity!r} needs noise beyond the range of floating-point numbers. "
        "Use a weaker promise, or other units."
    )
