"""What some spaces can say of themselves and others cannot: kinds of facts that :class:`Manifold` may offer.

A space that has nothing to say returns None, and whatever needs the fact is refused there, with a reason.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from dpmanifold._check import Array, FloatArray


@dataclass(frozen=True)
class RankOne:
    """A round sphere, or a complex projective space with curvature between 1 and 4: what J looks like there.

    J(t) = (sin u/u)^single (sin 2u/2u)^double with u = t/radius, and geodesics meet again at u = pi, or at pi/2 where
    `double` is 1.

    Attributes
    ----------
    radius : the length of one radian
    single : d - 1 on a sphere, d - 2 on a projective space
    double : 0 or 1
    """

    radius: float
    single: int
    double: int

    @property
    def end(self) -> float:
        """The length at which geodesics meet again."""
        return self.radius * (math.pi / 2 if self.double else math.pi)


class ExtrinsicBounds(ABC):
    """Bounds for averages in the space that surrounds a space, as extrinsic means are (theory: estimands).

    `radius` is that of a ball about the origin in which all points lie, rounding included; the injectivity radius
    stands for the whole space.
    """

    @abstractmethod
    def diameter(self, radius: float) -> float:
        """Bound the distance between the computed images of two points."""

    @abstractmethod
    def rounding(self, radius: float, terms: float) -> float:
        """Bound what rounding does to the average of images, their sum apart.

        `terms` counts the roundings of one entry where images are averaged by a matrix product.
        """

    @abstractmethod
    def pull(self, radius: float) -> tuple[float, float]:
        """Return s and f(2r): extrinsic and Fréchet mean are within s f(2r)/(1 - s(1 - h)) of each other."""


class StoredNumbers(ABC):
    """The numbers that a point is stored as, to which the papers' extrinsic baselines add noise.

    Attributes
    ----------
    size : how many of them are free
    """

    size: int

    @abstractmethod
    def refusal(self, center: Array) -> str | None:
        """Return why the baselines cannot be used in a ball about this centre, or None."""

    @abstractmethod
    def stretch(self, radius: float) -> float:
        """Bound how far numbers move, in terms of the distance that their points move, in a ball about the origin."""

    @abstractmethod
    def from_frame(self, point: Array) -> Array:
        """Return the numbers of a point of a ball's frame, about the space's origin."""

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
