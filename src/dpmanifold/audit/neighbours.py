"""Neighbouring data sets made from public numbers: what an audit shows to a mechanism. No data is touched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.mechanisms import Mechanism
from dpmanifold.stats.draws import hidden_mean

# Records lie inside by this share of the radius, so that rounding clips none of them.
_INSIDE = 1 - 1e-6
# Generic data are the same in every audit: nothing about them matters.
_SEED = 0


@dataclass(frozen=True)
class Neighbours:
    """Two data sets that differ in one unit.

    Attributes
    ----------
    name : "worst case" or "generic"
    first, second : records, shape (n, *space.shape), one per unit
    """

    name: str
    first: Array
    second: Array


def neighbours(ball: Ball, n: int, seed: int = _SEED) -> tuple[Neighbours, Neighbours]:
    """Return the worst case (everybody at one edge, one moved to the opposite edge) and generic data.

    The edge point lies in a direction in which every coordinate moves, so that every coordinate may tell. Generic data
    are drawn in the ball, and one unit is moved to the other side of the centre.

    Parameters
    ----------
    ball : the public ball
    n : number of units
    seed : of the generic data

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> worst, generic = neighbours(Ball(Euclidean(1), [0.0], 2.0), 10)
    >>> worst.first.shape, np.flatnonzero((worst.first != worst.second)[:, 0]), generic.name
    ((10, 1), array([9]), 'generic')
    """
    d, radius = ball.space.dim, _INSIDE * ball.radius
    edge = np.full((n, d), radius / np.sqrt(d))
    rng = np.random.default_rng(seed)
    inside = rng.standard_normal((n, d))
    inside *= (radius * rng.random(n) ** (1 / d) / np.linalg.norm(inside, axis=1))[:, None]
    return _with_one_moved("worst case", ball, edge), _with_one_moved("generic", ball, inside)


def _with_one_moved(name: str, ball: Ball, coords: FloatArray) -> Neighbours:
    other = coords.copy()
    other[-1] = -other[-1]
    first, second = (ball.space.project(ball.space.exp_coords(ball.center, c)) for c in (coords, other))
    return Neighbours(name, first, second)


def hidden_in_frame(X: Array, ball: Ball, mechanism: Mechanism) -> tuple[Array, frechet.UnitPoints]:
    """Return the mean that a mechanism hides and the units' points, both in the ball's frame. NOT PRIVATE.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.mechanisms import get
    >>> ball = Ball(Euclidean(1), [0.0], 4.0)
    >>> hidden_in_frame(np.array([[1.0], [3.0]]), ball, get("tangent-mean-gaussian"))[0]
    array([2.])
    """
    points = frechet.unit_points(X, ball, units=None)
    return hidden_mean(ball, mechanism, points), points
