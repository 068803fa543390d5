"""Shapes: how data are expected to spread, and the norm in which noise then has the same shape (theory: shaped noise).

A shape is a positive definite matrix M in coordinates at the ball's centre, public or released before. Coordinates v
count as y = A (v - middle), A proportional to M^(-1/4): noise that is the same in all directions of y has covariance
proportional to M^(1/2) in v. The factor is chosen so that no vector is longer in y than in v.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from dpmanifold._check import Array, FloatArray, numeric_array
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features.base import logarithms, products
from dpmanifold.manifolds.vectors import shorten

MIXED = 0.05
"""Part of a public shape's trace that is spread over all directions alike: what a wrong shape costs is then bounded."""

# An eigenvalue of a noisy matrix must be this much above those that noise alone has before it is believed.
_ABOVE_NOISE = 1.05
# Trace that is never denied to the directions that were not found, as a part of the whole.
_LEAST_REST = 0.02
# Eigenvalues below this part of the largest are rounding.
_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class Shape:
    """A norm on coordinates at a ball's centre, by a matrix with its eigenvectors, and where it is centred.

    Parameters
    ----------
    values : eigenvalues of M, (d,), above 0
    vectors : its eigenvectors in columns, (d, d)
    middle : coordinates that the norm is taken from, (d,): the ball's centre unless a mean was released before
    known : how many eigenvectors say something; of a public shape all

    Examples
    --------
    >>> shape = Shape.public(np.diag([16.0, 1.0]), mixed=0.0)
    >>> shape.root, shape.gain
    (array([[0.5, 0. ], [0. , 1. ]]), 0.857...)
    """

    values: FloatArray
    vectors: FloatArray
    middle: FloatArray
    known: int

    @staticmethod
    def public(matrix: FloatArray, mixed: float = MIXED) -> Shape:
        """Return the shape of a public positive semidefinite matrix (d, d), mixed with a multiple of the identity."""
        d = len(matrix)
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        values = np.maximum(values, 0.0)
        values = (1 - mixed) * values + mixed * values.sum() / d
        return Shape(np.maximum(values, _SMALLEST * values.max()), vectors, np.zeros(d), d)

    @staticmethod
    def round(dim: int) -> Shape:
        """Return the shape that changes nothing."""
        return Shape(np.ones(dim), np.eye(dim), np.zeros(dim), 0)

    @staticmethod
    def learned(average: FloatArray, moment: FloatArray, scale: float, moment_scale: float) -> Shape:
        """Return the shape that released joint moments show above their noise (theory: shaped noise, section 5).

        Parameters
        ----------
        average, moment : the noisy averages of v and of v v', (d,) and (d, d)
        scale : standard deviation of the noise on every number of the first
        moment_scale : of that on diagonal entries of the second; sqrt 2 times that on the others
        """
        d = len(average)
        shrunken = max(0.0, 1 - (d - 2) * scale**2 / max(float(average @ average), 1e-300)) if d > 2 else 1.0
        middle = shrunken * average
        off = shrunken * scale**2  # what is left of the noise on the middle, about, in every direction
        values, vectors = np.linalg.eigh(moment - np.outer(middle, middle) + off * np.eye(d))
        values, vectors = values[::-1], vectors[:, ::-1]
        spread, kept = moment_scale**2 * d / 2, []
        for value in values[: d - 1].tolist():
            if value <= _ABOVE_NOISE * 2 * math.sqrt(spread):
                break
            # Noise lifts an eigenvalue w to w + spread/w and turns its vector, which keeps w - spread/w of it.
            true = (value + math.sqrt(value**2 - 4 * spread)) / 2
            kept.append(true - spread / true)
        trace = float(values.sum())
        rest = max(trace - sum(kept), moment_scale * math.sqrt(d), _LEAST_REST * trace) / (d - len(kept))
        found = np.maximum(np.array([*kept, *[rest] * (d - len(kept))]), rest)
        return Shape(found, vectors, middle, len(kept))

    # ---------------------------------------------------------------- the norm

    @cached_property
    def stretches(self) -> FloatArray:
        """By how much noise grows in each of the eigenvectors when it is carried back, (d,): 1 or more."""
        return np.asarray((self.values / self.values.min()) ** 0.25)

    @cached_property
    def root(self) -> FloatArray:
        """The matrix A, (d, d): its largest eigenvalue is 1, up to rounding."""
        return np.asarray((self.vectors / self.stretches) @ self.vectors.T)

    @cached_property
    def inverse(self) -> FloatArray:
        """The inverse of A."""
        return np.asarray((self.vectors * self.stretches) @ self.vectors.T)

    @cached_property
    def growth(self) -> float:
        """By how much noise grows in all, root mean square, when it is carried back."""
        return float(np.sqrt((self.stretches**2).mean()))

    @cached_property
    def length(self) -> float:
        """Root mean square length, in the norm, of data whose second moments about the middle are the matrix."""
        return float(np.sqrt((self.values / self.stretches**2).sum()))

    @cached_property
    def lengthening(self) -> float:
        """How much longer such data are in coordinates than in the norm, root mean square."""
        return math.sqrt(float(self.values.sum())) / self.length

    @cached_property
    def gain(self) -> float:
        """Noise for data of this shape against noise that is round, clipped as much: tr M^(1/2)/sqrt(d tr M)."""
        return self.growth / self.lengthening

    @property
    def away(self) -> float:
        """Length of the middle's coordinates."""
        return float(np.linalg.norm(self.middle))

    def back(self, y: FloatArray) -> FloatArray:
        """Return the coordinates (..., d) at the ball's centre that vectors in the norm stand for: post-processing."""
        return np.asarray(self.middle + y @ self.inverse.T)

    def whitening(self, ball: Ball, white: Ball) -> Callable[[Array], FloatArray]:
        """Return the map v -> A (v - middle) of points of a ball's frame, cut to the ball `white` of such vectors.

        It maps each unit's coordinates by itself, bit for bit.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> ball = Ball(Euclidean(2), [0.0, 0.0], 4.0)
        >>> Shape.public(np.diag([16.0, 1.0]), mixed=0.0).whitening(ball, ball)(np.array([[2.0, 1.0], [np.nan, 1.0]]))
        array([[1., 1.],
               [0., 1.]])
        """
        return partial(_whitened, ball, white, self.root, self.middle)


def _whitened(ball: Ball, white: Ball, root: FloatArray, middle: FloatArray, block: Array) -> FloatArray:
    v = shorten(logarithms(block, ball), ball.radius)
    with np.errstate(all="ignore"):
        return white.pull_in(products(v - middle, root))


def checked_shape(noise_shape: object, ball: Ball) -> FloatArray:
    """Return the matrix (d, d) that a public shape stands for, or say what is wrong with it.

    Parameters
    ----------
    noise_shape : a positive semidefinite matrix (d, d), the second moments to be expected of coordinates at the ball's
        centre; or public records, in any form that a mean takes them, whose second moments about that centre, not
        about their own mean, are taken, as far as so many records tell them
    ball : the public ball

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> checked_shape([[1.0], [3.0]], Ball(Euclidean(1), [0.0], 5.0))
    array([[5.]])
    """
    space, d = ball.space, ball.space.dim
    given = None if isinstance(noise_shape, tuple) else numeric_array(noise_shape, "noise_shape")
    if given is None or (given.shape != (d, d) and given.shape[1:] in space.record_shapes.values()):
        matrix = _second_moments(space.as_points(noise_shape, "noise_shape", batch=True), ball)
    else:
        if given.shape != (d, d) or given.dtype.kind not in "fiu":
            kinds = " or ".join(f"(n, {', '.join(map(str, one))})" for one in space.record_shapes.values())
            raise InvalidArgumentError(
                f'`noise_shape` must be "private", a covariance of shape ({d}, {d}) in coordinates at the ball\'s '
                f"centre, or public records of shape {kinds}, got an array of shape {given.shape}."
            )
        matrix = np.asarray(given, dtype=np.float64)
        if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, rtol=1e-8, atol=0):
            raise InvalidArgumentError("`noise_shape` must be a symmetric matrix of finite numbers. Give (S + S.T)/2.")
        matrix = (matrix + matrix.T) / 2
    values = np.linalg.eigvalsh(matrix)
    if not (1e-140 < values[-1] < 1e140 and values[0] >= -1e-8 * values[-1]):
        raise InvalidArgumentError(
            "`noise_shape` must have no eigenvalue below 0 and a largest one above 0: a covariance of public data has."
        )
    return np.asarray(matrix)


def _second_moments(records: Array, ball: Ball) -> FloatArray:
    """Return the second moments of public records about the ball's centre, as far as so few records tell them.

    The matrix is drawn towards a multiple of the identity by as much as Ledoit and Wolf (2004) estimate from the
    records themselves: a matrix of few records has directions in which nobody varies, and others vary more there.
    """
    if len(records) < 2:
        raise InvalidArgumentError(f"`noise_shape` must have at least 2 public records, got {len(records)}. Give more.")
    away = ball.space.dist(ball.center, records)
    if (away > ball.radius).all():
        raise InvalidArgumentError(
            f"shape's public records all lie outside the ball, at least {away.min() / ball.radius:.3g} times its "
            "radius from the centre. Give records in the units of measurement of the data, or another ball."
        )
    v = logarithms(ball.to_frame(records), ball)  # clipped to the ball, as the data will be
    matrix = v.T @ v / len(v)
    even = np.eye(len(matrix)) * matrix.trace() / len(matrix)
    off = float(((matrix - even) ** 2).sum())
    # Mean squared error of the matrix, estimated without bias by how much the records' own v v' vary.
    fourth = float(((v**2).sum(axis=1) ** 2).mean())
    error = (fourth - float((matrix**2).sum())) / (len(v) - 1)
    part = min(1.0, max(error, 0.0) / off) if off > 0 else 0.0
    return np.asarray((1 - part) * matrix + part * even)
