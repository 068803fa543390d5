"""Maps from a ball's points to vectors whose average is released, and back (theory: estimands).

Each point is mapped by itself, and no two images are farther apart than `diameter` says, whatever rounding did before:
vectors are shortened last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.vectors import EPS, shorten

if TYPE_CHECKING:
    from dpmanifold.manifolds.base import Manifold

SLACK = 1e-9
"""What quantiles of forecasts may be wrong by, as a share of them; and public numbers that bounds are made with."""


class VectorMap(ABC):
    """A map from the points of a ball about the origin to vectors, and back.

    Parameters
    ----------
    space : of the points
    radius : of the ball

    Attributes
    ----------
    reach : the radius that is true of what the program computes: distances are rounded
    size : length of the vectors
    longest : public bound on the length of their average
    """

    size: int
    longest: float

    def __init__(self, space: Manifold, radius: float) -> None:
        self.space, self.radius = space, radius
        self.reach = radius + space.dist_error(space.origin, radius)

    @property
    def bound(self) -> float:
        """No entry of an image is above it in size."""
        return self.longest

    @abstractmethod
    def images(self, points: Array) -> FloatArray:
        """Return what is averaged, (b, m), of points (b, *shape)."""

    def coordinates(self, average: FloatArray) -> FloatArray:
        """Return the vector that an average of images stands for, shape (size,): itself, unless said otherwise."""
        return average

    @abstractmethod
    def place(self, vectors: FloatArray) -> Array:
        """Turn vectors (..., size), averages with noise, into points. Knows nothing of the data."""

    def logarithms(self, points: Array) -> FloatArray:
        """Return normal coordinates at the origin, finite and no longer than the radius."""
        with np.errstate(all="ignore"):
            return shorten(np.nan_to_num(self.space.log_coords(self.space.origin, points)), self.radius)


class TangentMap(VectorMap):
    """The logarithm at the ball's centre, which every space has."""

    def __init__(self, space: Manifold, radius: float) -> None:
        super().__init__(space, radius)
        self.size, self.longest = space.dim, self.reach

    @property
    def bound(self) -> float:
        """The radius, which logarithms are shortened to."""
        return self.radius

    def images(self, points: Array) -> FloatArray:
        """Return logarithms."""
        return self.logarithms(points)

    def place(self, vectors: FloatArray) -> Array:
        """Return the exponential, of vectors shortened to where it is one to one and can be computed."""
        reach = min(self.space.injectivity_radius * (1 - 4 * EPS), self.space.farthest)
        return self.space.exp_coords(self.space.origin, shorten(vectors, reach))


class Embedding(VectorMap):
    """A space within a vector space: what extrinsic means are made of (theory: estimands).

    Attributes
    ----------
    shares : parameters of the Beta law of that share of the noise's squared length which decides on the error
    farthest : no error is larger
    """

    shares: tuple[float, float]
    farthest: float

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Bound on the distance between the computed images of two points."""

    @abstractmethod
    def rounding(self, terms: float) -> float:
        """Bound what rounding does to the average of images, their sum apart.

        `terms` counts the roundings of one entry where images are averaged by a matrix product.
        """

    @abstractmethod
    def pull(self) -> tuple[float, float]:
        """Return s and f(2r): extrinsic and Fréchet mean are within s f(2r)/(1 - s(1 - h)) of each other."""

    @abstractmethod
    def error(self, t: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Bound how far noise carries the point, its length at most t and its share between low and high; grows in t.

        Of all averages that points of the ball have.
        """
