"""The area of geodesic spheres as a function of their radius: what turns a law of distance into a law of radius.

In normal coordinates the volume element is t^(d-1) J dt du (theory section 2). On flat and rank-one spaces J
depends on t alone and the area is known; on affine-invariant matrices it also depends on the direction, and the
area is made with a ceiling of J (theory section 4), which leaves a factor of at most 1 to be accepted or not.
Terms that grow linearly are kept apart (`rate`), so that a law can subtract them from its own before rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.manifolds.vectors import log_sinhc


@dataclass(frozen=True)
class Area:
    """log area(t) = log_shape(t) + rate * t + log_factor, for 0 < t < end.

    Attributes
    ----------
    log_shape, slope : the part that is not linear in t, and its derivative; log_shape is concave
    rate : the linear part; above 0 only on negatively curved spaces
    log_factor : log of the area of the unit sphere of the tangent space, and powers of 2
    end : where the sphere closes, or infinity
    log_ceiling : where J depends on the direction, the log of its ceiling at radius t, which the area is made with;
        directions are then to be accepted. None where the area is exact
    """

    log_shape: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    rate: float
    log_factor: float
    end: float
    log_ceiling: Callable[[FloatArray], FloatArray] | None = None


def log_unit_sphere(d: int) -> float:
    """Log of the area of the unit sphere in R^d.

    Examples
    --------
    >>> round(math.exp(log_unit_sphere(3)) / math.pi, 12)
    4.0
    """
    return math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)


def flat_area(d: int) -> Area:
    """t^(d-1)."""
    unit = log_unit_sphere(d)
    if d == 1:
        return Area(np.zeros_like, np.zeros_like, 0.0, unit, math.inf)
    return Area(lambda t: (d - 1) * np.log(t), lambda t: (d - 1) / t, 0.0, unit, math.inf)


def closed_area(d: int, double: int, unit: float, end: float) -> Area:
    """(R sin(u))^(d-1) cos(u)^double, u = t/R and R the unit: spheres, and projective spaces, which end earlier."""
    factor = log_unit_sphere(d)
    if d == 1:
        return Area(np.zeros_like, np.zeros_like, 0.0, factor, end)

    def log_shape(t: FloatArray) -> FloatArray:
        u = t / unit
        shape = (d - 1) * np.log(np.sin(u))
        return np.asarray(shape + double * np.log(np.cos(u)) if double else shape)

    def slope(t: FloatArray) -> FloatArray:
        u = t / unit
        falling = double * np.tan(u) if double else 0.0
        return np.asarray(((d - 1) / np.tan(u) - falling) / unit)

    return Area(log_shape, slope, 0.0, factor + (d - 1) * math.log(unit), end)


def sinh_area(d: int, pairs: int, a: float) -> Area:
    """t^(d-1-pairs) (sinh(at)/a)^pairs, with e^(at)/2 taken out of each hyperbolic sine."""
    power = d - 1 - pairs

    def log_shape(t: FloatArray) -> FloatArray:
        return np.asarray(power * np.log(t) + pairs * np.log(-np.expm1(-2 * a * t)))

    def slope(t: FloatArray) -> FloatArray:
        # 1/expm1 written with a decaying exponential: nothing overflows at large t.
        return np.asarray(power / t - pairs * 2 * a * np.exp(-2 * a * t) / np.expm1(-2 * a * t))

    factor = log_unit_sphere(d) - pairs * math.log(2 * a)
    return Area(log_shape, slope, pairs * a, factor, math.inf)


def sinh_ceiling(d: int, pairs: int, a: float) -> Area:
    """The same where it is a ceiling: J <= (sinh(at)/(at))^pairs.

    With pairs = d - 1 and -a^2 the smallest sectional curvature this is Bishop's comparison, which holds on every
    Hadamard space; a space that knows better says so.
    """
    return replace(sinh_area(d, pairs, a), log_ceiling=lambda t: pairs * log_sinhc(a * t))
