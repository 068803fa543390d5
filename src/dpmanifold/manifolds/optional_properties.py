"""What some spaces can say of themselves and others cannot: kinds of facts that :class:`Manifold` may offer.

A space that has nothing to say returns None, and whatever needs the fact is refused there, with a reason.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.vectors import log_sinc, log_sinhc


@dataclass(frozen=True)
class Area:
    """The area of geodesic spheres by their radius: what turns a law of distance into a law of radius.

    log area(t) = log_shape(t) + rate * t + log_factor, for 0 < t < end. In normal coordinates the volume element is
    t^(d-1) J dt du (theory section 2). On flat and rank-one spaces J depends on t alone and the area is known; where it
    also depends on the direction, the area is made with a ceiling of J (theory section 4), which leaves a factor of at
    most 1 to be accepted or not. Terms that grow linearly are kept apart (`rate`), so that a law can subtract them from
    its own before rounding.

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

    With pairs = d - 1 and -a^2 the smallest sectional curvature this is Bishop and Gromov's volume comparison, which
    holds on every Hadamard space; a space that knows better says so.
    """
    return replace(sinh_area(d, pairs, a), log_ceiling=lambda t: pairs * log_sinhc(a * t))


@dataclass(frozen=True)
class RankOne:
    """A space whose directions are all alike: what its volume density is, where it ends, and its law of cosines.

    J(t) = (sin u/u)^single (sin 2u/2u)^double with u = t/unit; with sinh for sin where `end` is infinite. Everything is
    stated, nothing is computed from something else: real projective spaces have the volume of a sphere and another end.

    Attributes
    ----------
    unit : the length of one radian
    end : how many half turns of a geodesic, pi units each, are shortest: 1 on spheres, 1/2 on projective spaces
    single, double : exponents; together d - 1
    triangle : the law of cosines; "sphere", "real" or "complex" (projective), "hyperbolic", or "" where none is known
    """

    unit: float
    end: float
    single: int
    double: int
    triangle: Literal["sphere", "real", "complex", "hyperbolic", ""]

    @property
    def reach(self) -> float:
        """The length at which geodesics meet again."""
        return self.unit * (math.pi * self.end)

    def log_volume(self, t: FloatArray) -> FloatArray:
        """Log of J at distance t, minus infinity from the end on."""
        u = t / self.unit
        if math.isinf(self.end):
            return np.asarray(self.single * log_sinhc(u) + self.double * log_sinhc(2 * u))
        with np.errstate(invalid="ignore"):
            inside = self.single * log_sinc(u)
            if self.double:
                inside = inside + self.double * log_sinc(2 * u)
        return np.where(t < self.reach, inside, -np.inf)

    def area(self) -> Area:
        """Area of geodesic spheres."""
        if math.isinf(self.end):
            return sinh_area(self.single + self.double + 1, self.single, 1 / self.unit)
        return closed_area(self.single + self.double + 1, self.double, self.unit, self.reach)


class StoredNumbers(ABC):
    """The numbers that a point is stored as, to which the papers' extrinsic baselines add noise.

    Attributes
    ----------
    size : how many of them are free
    """

    size: int

    def refusal(self, center: Array) -> str | None:
        """Return why the baselines cannot be used in a ball about this centre, or None: by default any will do."""
        return None

    @abstractmethod
    def stretch(self, radius: float) -> float:
        """Bound how far numbers move, in terms of the distance that their points move, in a ball about the origin."""

    def from_frame(self, point: Array) -> Array:
        """Return the numbers of a point of a ball's frame, about the space's origin: by default its entries."""
        return point

    @abstractmethod
    def with_noise(self, stored: Array, noise: FloatArray) -> Array:
        """Add noise (n, size) to the numbers of one point; they need not be a point's any more."""

    @abstractmethod
    def carried(self, center: Array, stored: Array) -> Array:
        """Apply the linear map by which the isometry from the origin to the centre acts on numbers."""

    @abstractmethod
    def away(self, center: Array, stored: Array, radius: float) -> tuple[float, float, float]:
        """Return how far numbers are from the centre's, how far those of the ball's points are, and the rounding.

        All three are taken after the map is undone: noise is as long there as it was drawn.
        """
