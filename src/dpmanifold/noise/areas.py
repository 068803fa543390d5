"""The area of geodesic spheres as a function of their radius: what turns a law of distance into a law of radius.

In normal coordinates the volume element is t^(d-1) J dt du (theory section 2). On flat and rank-one spaces J
depends on t alone and the area is known; on affine-invariant matrices it also depends on the direction, and the
area below is the ceiling of theory section 4, which leaves a factor of at most 1 to be accepted or not.
Terms that grow linearly are kept apart (`rate`), so that a law can subtract them from its own before rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpmanifold._check import FloatArray, positive_float
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import SPD, Hyperbolic, KendallShapes, Manifold, Sphere
from dpmanifold.manifolds.hyperbolic import log_sinhc

# Exponentials overflow beyond about this many units on matrices, or curvature radii on hyperbolic space.
_FARTHEST = 290.0
# Scales outside this range make no sense, and their squares or reciprocals leave the doubles.
_SCALES = (1e-300, 1e300)


@dataclass(frozen=True)
class Area:
    """log area(t) = log_shape(t) + rate * t + log_factor, for 0 < t < end.

    Attributes
    ----------
    log_shape, slope : the part that is not linear in t, and its derivative
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


def farthest(space: Manifold) -> float:
    """Return the length beyond which normal coordinates at the origin cannot be represented as a point.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> farthest(Euclidean(2))
    inf
    """
    if isinstance(space, Hyperbolic):
        return _FARTHEST * float(space.origin[0])
    return _FARTHEST if isinstance(space, SPD) else math.inf


def checked_scale(scale: object) -> float:
    """Return a scale as a float in the range that makes sense, or say what is wrong with it.

    Examples
    --------
    >>> checked_scale(0.5)
    0.5
    """
    number = positive_float(scale, "scale")
    if not _SCALES[0] <= number <= _SCALES[1]:
        raise InvalidArgumentError(f"scale must be between {_SCALES[0]:g} and {_SCALES[1]:g}, got {number:g}.")
    return number


def area_of(space: Manifold) -> Area:
    """Return the area function of a space.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> area = area_of(Sphere(2))
    >>> t = np.array([np.pi / 2])
    >>> bool(np.isclose(np.exp(area.log_shape(t) + area.log_factor), 2 * np.pi)[0])    # the equator's length
    True
    """
    d = space.dim
    unit = log_unit_sphere(d)
    if space.is_flat:
        return _power_area(d, unit)
    if isinstance(space, Sphere):
        return _sphere_area(d, space.injectivity_radius / math.pi, unit)
    if isinstance(space, KendallShapes):
        return _kendall_area(d, unit)
    if isinstance(space, Hyperbolic):
        return _sinh_area(0, d - 1, 1 / float(space.origin[0]), unit)
    if isinstance(space, SPD):
        k = space.size
        pairs, a = k * (k - 1) // 2, 1 / math.sqrt(2 * (k - 1))
        area = _sinh_area(k - 1, pairs, a, unit)
        return replace(area, log_ceiling=lambda t: pairs * log_sinhc(a * t))
    raise InvalidArgumentError(f"no noise law is known on {space!r}.")


def log_unit_sphere(d: int) -> float:
    """Log of the area of the unit sphere in R^d.

    Examples
    --------
    >>> round(math.exp(log_unit_sphere(3)) / math.pi, 12)
    4.0
    """
    return math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)


def _power_area(d: int, unit: float) -> Area:
    """t^(d-1)."""
    if d == 1:
        return Area(np.zeros_like, np.zeros_like, 0.0, unit, math.inf)
    return Area(lambda t: (d - 1) * np.log(t), lambda t: (d - 1) / t, 0.0, unit, math.inf)


def _sphere_area(d: int, radius: float, unit: float) -> Area:
    """(R sin(t/R))^(d-1)."""
    end = math.pi * radius
    if d == 1:
        return Area(np.zeros_like, np.zeros_like, 0.0, unit, end)
    return Area(
        lambda t: (d - 1) * np.log(np.sin(t / radius)),
        lambda t: (d - 1) / np.tan(t / radius) / radius,
        0.0,
        unit + (d - 1) * math.log(radius),
        end,
    )


def _kendall_area(d: int, unit: float) -> Area:
    """sin^(d-1)(t) cos(t)."""
    return Area(
        lambda t: (d - 1) * np.log(np.sin(t)) + np.log(np.cos(t)),
        lambda t: (d - 1) / np.tan(t) - np.tan(t),
        0.0,
        unit,
        math.pi / 2,
    )


def _sinh_area(power: int, pairs: int, a: float, unit: float) -> Area:
    """t^power (sinh(at)/a)^pairs, with e^(at)/2 taken out of each hyperbolic sine."""

    def log_shape(t: FloatArray) -> FloatArray:
        return np.asarray(power * np.log(t) + pairs * np.log(-np.expm1(-2 * a * t)))

    def slope(t: FloatArray) -> FloatArray:
        # 1/expm1 written with a decaying exponential: nothing overflows at large t.
        return np.asarray(power / t - pairs * 2 * a * np.exp(-2 * a * t) / np.expm1(-2 * a * t))

    factor = unit - pairs * math.log(2 * a)
    return Area(log_shape, slope, pairs * a, factor, math.inf)
