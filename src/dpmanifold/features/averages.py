"""Averages of features: each unit's coordinates at the centre, clipped, mapped by itself, and added exactly."""

from __future__ import annotations

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.features.base import FeatureMap
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds.vectors import EPS, shorten
from dpmanifold.sensitivity import Sensitivity

PROOF = "features"


def average(points: UnitPoints, features: FeatureMap) -> FloatArray:
    """Return the average of the units' features, (size,), in one pass over wherever they lie. NOT PRIVATE.

    Parameters
    ----------
    points : one point per unit, in a ball's frame
    features : the map of their coordinates

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
    return points.mean_of(lambda block: features.of(coordinates(block, ball)), most)


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


def coordinates(block: Array, ball: Ball) -> FloatArray:
    """Return the units' coordinates at the centre over the radius, none longer than 1: each by itself. Never raises.

    Parameters
    ----------
    block : points (b, *frame.shape) of the ball's frame
    ball : in whose frame they lie

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> ball = Ball(Euclidean(2), [0.0, 0.0], 2.0)
    >>> coordinates(np.array([[1.0, 0.0], [0.0, -6.0]]), ball)
    array([[ 0.5,  0. ],
           [ 0. , -1. ]])
    """
    v = logarithms(block, ball)
    with np.errstate(all="ignore"):
        return shorten(np.nan_to_num(v / ball.radius), 1.0)


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
