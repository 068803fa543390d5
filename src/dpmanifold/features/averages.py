"""Averages of features: each unit's coordinates at the centre, clipped, mapped by itself, and added exactly."""

from __future__ import annotations

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray, numeric_array
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features.base import FeatureMap
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds.vectors import EPS, shorten
from dpmanifold.sensitivity import Sensitivity

PROOF = "docs/theory/features.md"


def average(points: UnitPoints, features: FeatureMap, norm: FloatArray | None = None) -> FloatArray:
    """Return the average of the units' features, (size,), in one pass over wherever they lie. NOT PRIVATE.

    Parameters
    ----------
    points : one point per unit, in a ball's frame
    features : the map of their coordinates
    norm : as in :func:`coordinates`

    Examples
    --------
    >>> from dpmanifold.features import JointMoments
    >>> from dpmanifold.manifolds import Euclidean
    >>> points = UnitPoints.of(np.array([[1.0, 0.0], [0.0, 2.0]]), Ball(Euclidean(2), [0.0, 0.0], 2.0))
    >>> average(points, JointMoments(0.25))
    array([0.25  , 0.5   , 0.0625, 0.25  , 0.    ])
    """
    ball = points.ball
    most = features.longest(ball.frame.dim)
    # Rounding may carry an entry beyond the bound by a few units in its last place: no harm is done by cutting it.
    return points.mean_of(lambda block: features.of(coordinates(block, ball, norm)), most)


def sensitivity_of(features: FeatureMap, dim: int, n: int, statistic: str = "") -> Sensitivity:
    """Bound how far one of n units moves the computed average: the diameter over n, and rounding (theory: features).

    Parameters
    ----------
    features : the map
    dim : dimension of the space
    n : number of units
    statistic : what the bound says that it is of; the map's name if left out

    Examples
    --------
    >>> from dpmanifold.features import JointMoments
    >>> round(sensitivity_of(JointMoments(0.5), 3, 100).value, 9)
    0.02
    """
    apart = computed_diameter(features, dim)
    return sensitivity.of_average(features.longest(dim), n, statistic or features.name, PROOF, diameter=apart)


def computed_diameter(features: FeatureMap, dim: int) -> float:
    """Bound the distance between the computed features of two units: the diameter, and what rounding adds to it.

    Examples
    --------
    >>> from dpmanifold.features import Tangent
    >>> 2.0 < computed_diameter(Tangent(), 3) < 2.0 + 1e-13
    True
    """
    # Clipped vectors are longer than 1 by at most this share; features grow by no more than the power of their degree.
    stretch = (1 + (dim + 8) * EPS) ** features.degree
    return (features.diameter(dim) * stretch + 2 * features.rounding(dim) * EPS) * (1 + 4 * EPS)


def coordinates(block: Array, ball: Ball, norm: FloatArray | None = None) -> FloatArray:
    """Return the units' coordinates at the centre over the radius, none longer than 1: each by itself. Never raises.

    Parameters
    ----------
    block : points (b, *frame.shape) of the ball's frame
    ball : in whose frame they lie
    norm : a matrix A, (d, d), public or released: a vector v of coordinates counts as A v, and that is what is cut to
        length 1. Without it A is the identity over the radius, and points of the ball stay as they are

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> ball = Ball(Euclidean(2), [0.0, 0.0], 2.0)
    >>> coordinates(np.array([[1.0, 0.0], [0.0, -1.0]]), ball, norm=np.diag([3.0, 0.25]))
    array([[ 1.  ,  0.  ],
           [ 0.  , -0.25]])
    """
    v = logarithms(block, ball)
    with np.errstate(all="ignore"):
        seen = v / ball.radius if norm is None else products(v, norm)
    return shorten(np.nan_to_num(seen), 1.0)


def logarithms(block: Array, ball: Ball) -> FloatArray:
    """Return the coordinates (b, dim) of points of the ball's frame at its origin; finite, whatever they are.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> logarithms(np.array([[np.nan]]), Ball(Euclidean(1), [0.0], 2.0))
    array([[0.]])
    """
    frame = ball.frame
    with np.errstate(all="ignore"):
        return np.nan_to_num(frame.log_coords(frame.origin, block))


def checked_norm(norm: object, dim: int) -> FloatArray:
    """Return a matrix that vectors are clipped by, or refuse what is none: before anything is spent.

    Examples
    --------
    >>> checked_norm([[2.0]], 1)
    array([[2.]])
    """
    matrix = np.asarray(numeric_array(norm, "norm"), dtype=np.float64)
    if matrix.shape != (dim, dim) or not np.isfinite(matrix).all():
        raise InvalidArgumentError(f"norm must be a finite matrix of shape ({dim}, {dim}), got {matrix.shape}.")
    if np.linalg.matrix_rank(matrix) < dim:
        raise InvalidArgumentError("norm must be invertible: otherwise the mean cannot be told. Give it full rank.")
    return matrix


def products(v: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return A v for rows v, column by column: a product of matrices would round by the length of the batch.

    Examples
    --------
    >>> products(np.array([[1.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 1.0]]))
    array([[3., 2.]])
    """
    found = np.zeros((len(v), len(matrix)))
    for number, column in enumerate(matrix.T):
        found += v[:, number, None] * column
    return found
