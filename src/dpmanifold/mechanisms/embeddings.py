"""Maps from the units' points to vectors whose average is released, and back (theory: estimands).

Each point is mapped by itself, and no two images are farther apart than the sensitivity says, whatever rounding did
before: vectors are shortened last.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.features import logarithms
from dpmanifold.frechet import UnitPoints, outer_products
from dpmanifold.linalg import from_vecd
from dpmanifold.manifolds import KendallShapes, Manifold, Sphere
from dpmanifold.manifolds.sphere import cap_ball
from dpmanifold.manifolds.vectors import EPS, shorten, unit_direction, vector_norm
from dpmanifold.mechanisms.base import Forecast
from dpmanifold.mechanisms.forecasts import carried_over, turned_direction, turned_eigenvector
from dpmanifold.noise import RadialLaw
from dpmanifold.sensitivity import Sensitivity, of_extrinsic_mean, of_tangent_mean


class Embedding(ABC):
    """A ball's points as vectors.

    Attributes
    ----------
    size : length of the vectors
    longest : public bound on the length of their average
    """

    size: int
    longest: float

    def __init__(self, ball: Ball) -> None:
        self.ball, self.frame = ball, ball.frame

    @abstractmethod
    def average(self, points: UnitPoints) -> FloatArray:
        """Return the average image of the units' points, shape (size,)."""

    @abstractmethod
    def place(self, vectors: FloatArray) -> Array:
        """Turn vectors (..., size), averages with noise, into points of the frame. Knows nothing of the data."""

    @abstractmethod
    def sensitivity(self, n: int) -> Sensitivity:
        """Bound how far one of n units moves the average."""

    @abstractmethod
    def forecast(self, radius: RadialLaw) -> Forecast:
        """Bound how far noise on the average carries the point, its length having this law."""

    def _logarithms(self, points: Array) -> FloatArray:
        """Normal coordinates at the frame's origin, no longer than the radius."""
        return shorten(logarithms(points, self.ball), self.ball.radius)


class TangentEmbedding(Embedding):
    """The logarithm at the ball's centre."""

    def __init__(self, ball: Ball) -> None:
        super().__init__(ball)
        self.size, self.longest = ball.space.dim, ball.effective_radius

    def average(self, points: UnitPoints) -> FloatArray:
        """Return the average logarithm."""
        return points.mean_of(self._logarithms, self.ball.radius)

    def place(self, vectors: FloatArray) -> Array:
        """Return the exponential, of vectors shortened to where it is one to one and can be computed."""
        reach = min(self.frame.injectivity_radius * (1 - 4 * EPS), self.frame.farthest)
        return self.frame.exp_coords(self.frame.origin, shorten(vectors, reach))

    def sensitivity(self, n: int) -> Sensitivity:
        """2r/n."""
        return of_tangent_mean(self.ball, n)

    def forecast(self, radius: RadialLaw) -> Forecast:
        """Return the law of the noise's length, or a bound made of it."""
        return carried_over(self.ball, radius)


class SphereEmbedding(Embedding):
    """The point itself, a vector of R^(d+1), seen from the centre of the Euclidean ball about the cap."""

    def __init__(self, ball: Ball) -> None:
        super().__init__(ball)
        self.size = ball.space.dim + 1
        self.height, self.longest = cap_ball(float(self.frame.origin[0]), ball.effective_radius)
        self._shift = np.zeros(self.size)
        self._shift[0] = self.height

    def average(self, points: UnitPoints) -> FloatArray:
        """Return the average vector, less the centre of the Euclidean ball."""
        return points.mean_of(lambda block: shorten(block - self._shift, self.longest), self.longest)

    def place(self, vectors: FloatArray) -> Array:
        """Return the direction, as a point; the origin where there is none."""
        return self.frame.project(vectors + self._shift)

    def sensitivity(self, n: int) -> Sensitivity:
        """2 R sin(r/R)/n."""
        return of_extrinsic_mean(self.ball, n)

    def forecast(self, radius: RadialLaw) -> Forecast:
        """Return the law for the shortest average that the ball allows."""
        return turned_direction(radius, self.ball.space.dim, float(self.frame.origin[0]), self.height)


class ShapeEmbedding(Embedding):
    """The matrix z z* less its trace, in C^(k-1) with the origin as first basis vector; real, in an orthonormal basis.

    Diagonals against Helmert rows, then real and imaginary parts above the diagonal times sqrt 2.
    """

    longest = 1.0

    def __init__(self, ball: Ball) -> None:
        super().__init__(ball)
        self.rows = ball.space.dim // 2 + 1
        self.size = self.rows**2 - 1
        steps = np.arange(1, self.rows)
        contrasts = np.tril(np.ones((self.rows - 1, self.rows)))
        contrasts[steps - 1, steps] = -steps
        self._contrasts = contrasts / np.sqrt(steps * (steps + 1))[:, None]
        self._above = np.triu_indices(self.rows, 1)

    def _parts(self, points: Array) -> FloatArray:
        """Return real and imaginary parts, unit vectors by construction: the origin's coordinate, real, then others."""
        c = self._logarithms(points)
        t = vector_norm(c)[:, None]
        across = np.sinc(t / np.pi) * c
        half = self.rows - 1
        return np.hstack([np.cos(t), across[:, :half], across[:, half:]])

    def average(self, points: UnitPoints) -> FloatArray:
        """Return the average matrix in coordinates."""
        moment = from_vecd(points.mean_of(lambda block: outer_products(self._parts(block)), 1.0))
        zeros = np.zeros((self.rows, self.rows))
        real, skew = moment[: self.rows, : self.rows].copy(), zeros
        # z = x + iy with y_0 = 0: the real part of z z* is xx' + yy', the imaginary part yx' - xy'.
        real[1:, 1:] += moment[self.rows :, self.rows :]
        skew[1:, :] = moment[self.rows :, : self.rows]
        skew = skew - skew.T
        root = math.sqrt(2)
        return np.concatenate(
            [self._contrasts @ np.diag(real), root * real[self._above], root * skew[self._above]],
        )

    def place(self, vectors: FloatArray) -> Array:
        """Return the shape of the top eigenvector; the origin where all entries are 0."""
        flat = vectors.reshape(-1, self.size)
        # Scaled by a power of two, so that nothing overflows: eigenvectors stay as they are.
        flat = np.ldexp(flat, -np.frexp(np.abs(flat).max(axis=1, keepdims=True))[1])
        pairs = len(self._above[0])
        diagonal, real, imaginary = np.split(flat, [self.rows - 1, self.rows - 1 + pairs], axis=1)
        matrix = np.zeros((len(flat), self.rows, self.rows), dtype=np.complex128)
        matrix[:, *self._above] = (real + 1j * imaginary) / math.sqrt(2)
        matrix += np.conj(matrix.transpose(0, 2, 1))
        index = np.arange(self.rows)
        matrix[:, index, index] = diagonal @ self._contrasts
        matrix[~flat.any(axis=1), 0, 0] = 1.0
        y = np.linalg.eigh(matrix)[1][:, :, -1]
        size = np.abs(y[:, :1])
        y = y * np.where(size > 0, np.conj(y[:, :1]) / np.where(size > 0, size, 1.0), 1.0)
        length = vector_norm(y[:, 1:])
        c = unit_direction(y[:, 1:], length) * np.arctan2(length, size[:, 0])[:, None]
        points = self.frame.exp_coords(self.frame.origin, np.hstack([c.real, c.imag]))
        return points.reshape(*vectors.shape[:-1], *self.frame.shape)

    def sensitivity(self, n: int) -> Sensitivity:
        """Sqrt 2 sin(2r)/n."""
        return of_extrinsic_mean(self.ball, n)

    def forecast(self, radius: RadialLaw) -> Forecast:
        """Return the law for the smallest gap of eigenvalues that the ball allows: cos(2r)."""
        gap = 0.0 if self.ball.is_whole else math.cos(2 * self.ball.effective_radius)
        return turned_eigenvector(radius, self.rows, gap)


EXTRINSIC: dict[type[Manifold], type[Embedding]] = {Sphere: SphereEmbedding, KendallShapes: ShapeEmbedding}
"""The surrounding space of each class of spaces that has one; such a space also has bounds for it (`extrinsic`)."""


def extrinsic_embedding(ball: Ball) -> Embedding | None:
    """Return the embedding that is registered for the ball's space, as for spheres and planar shapes; None elsewhere.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> extrinsic_embedding(Ball.whole(Sphere(2))).size, extrinsic_embedding(Ball.whole(KendallShapes(8))).size
    (3, 48)
    >>> extrinsic_embedding(Ball(SPD(2), np.eye(2), 1.0)) is None
    True
    """
    kind = EXTRINSIC.get(type(ball.space))
    return None if kind is None else kind(ball)
