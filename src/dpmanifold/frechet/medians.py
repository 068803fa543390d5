"""Nothing here is private: the geometric (Fréchet) median, by Weiszfeld's steps (theory: median)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray, positive_float, positive_int
from dpmanifold.ball import Ball
from dpmanifold.errors import ConvergenceError
from dpmanifold.frechet.solver import blocks
from dpmanifold.frechet.statistics import problem_of
from dpmanifold.linalg.exact_sums import weighted_sum
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.vectors import vector_norm

# Points nearer than this part of the median distance pull in proportion to their distance: the median may be one of
# the points, where directions are not defined.
_NEAR, _LEAST = 1e-6, 1e-3
# A step that does not bring the points nearer is halved, at most so often.
_HALVINGS = 40
# Up to this gain, as a part of the average distance, a step only meets rounding; so many of them are the last.
_ROUNDING, _PATIENCE = 1e-14, 20
# Where steps agree in direction the next is longer by this factor, at most by the second: the plain ones are slow where
# nearly half of the points are in one place.
_LONGER, _LONGEST = 1.5, 1e6


@dataclass(frozen=True, eq=False)
class FrechetMedian:
    """A geometric median and how well it was solved. All of it is data: none of it is private.

    Attributes
    ----------
    value : the median, shape `space.shape`
    distance : the average distance from it
    residual : length of the average direction there, as far as double precision tells it
    iterations : Weiszfeld steps
    tol : the residual that was asked for
    n : how many units count (records, if no units were given)
    """

    value: Array
    distance: float
    residual: float
    iterations: int
    tol: float
    n: int


def median(
    X: object, where: Ball | Manifold, *, units: object = None, tol: float = 1e-9, max_iter: int = 1000
) -> FrechetMedian:
    """Compute the geometric (Fréchet) median, the point with the least average distance from the points; not private.

    Weiszfeld's algorithm: every point pulls with its direction, and the average pull, over the average of the inverse
    distances, is the next step; steps that go on in the same direction grow, and one that does not help is halved. The
    work is at most `max_iter` steps. Points nearer than a millionth of the median distance pull in proportion to their
    distance, so that a median which is one of the points is found as well, to that millionth. The order of the points
    leaves no trace.

    Parameters
    ----------
    X : points, shape (n, *space.shape); with a ball also a source of them, such as a `data.Dataset`
    where : a Ball, into which records are clipped first, or a space
    units : n ids, all whole numbers or all text; records of one unit are averaged first, and each unit then counts once
    tol : stop where the average direction is no longer than this; a direction has length 1
    max_iter : the largest number of steps; ConvergenceError, if they are not enough

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> result = median([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [50.0, 50.0]], Euclidean(2))
    >>> result.value.round(4)
    array([0.7887, 0.7887])
    """
    tol, max_iter = positive_float(tol, "tol"), positive_int(max_iter, "max_iter")
    problem = problem_of(X, where, None, units, None, 200)
    pull = _Pull(problem.frame, problem.array())
    at, residual, iterations = _solved(pull, tol, max_iter)
    return FrechetMedian(problem.to_user(at[None])[0], pull.distance(at, 0.0), residual, iterations, tol, problem.n)


def _solved(pull: _Pull, tol: float, max_iter: int) -> tuple[Array, float, int]:
    """Return the median in the frame, the length of the average direction there, and the number of steps."""
    frame, at = pull.frame, pull.frame.origin
    near = pull.near(at)
    if near == 0:
        return at, 0.0, 0  # all points are at the start
    value, longer, before, stalled = pull.distance(at, near), 1.0, np.zeros(frame.dim), 0
    for iteration in range(max_iter + 1):
        directions, inverse = pull.average(at, near)
        residual = float(vector_norm(directions))
        if residual <= tol:
            return at, residual, iteration
        # Longer steps as long as they go on in the same direction, shorter ones where they turn back.
        agree = float((directions * before).sum())
        longer = min(longer * _LONGER, _LONGEST) if agree > 0 else max(1.0, longer / 2)
        step, found, before = longer * directions / inverse, None, directions
        for _ in range(_HALVINGS):
            moved = frame.exp_coords(at, step[None])[0]
            reached = pull.distance(moved, near)
            if reached < value * (1 + _ROUNDING):
                found = moved
                break
            step, longer = step / 2, max(1.0, longer / 2)
        stalled = 0 if reached < value * (1 - _ROUNDING) else stalled + 1
        if found is None or stalled > _PATIENCE:
            return at, residual, iteration  # nothing nearer can be told in double precision
        at, value = found, min(value, reached)
        closer = pull.near(at)
        if closer == 0:
            return at, 0.0, iteration + 1
        if closer < near / 2:  # the start was far away
            near = closer
            value = pull.distance(at, near)
    raise ConvergenceError(
        f"the median did not reach tol = {tol:.3g} within max_iter = {max_iter} steps: it is at {residual:.3g}. Raise "
        "tol or max_iter."
    )


class _Pull:
    """How points pull at a point of their frame, each with a direction of length 1."""

    def __init__(self, frame: Manifold, points: Array) -> None:
        self.frame, self._points = frame, points

    def _away(self, at: Array) -> FloatArray:
        parts = [self.frame.dist(at, self._points[part]) for part in blocks(len(self._points), self.frame)]
        return np.concatenate(parts)

    def near(self, at: Array) -> float:
        """Return the distance below which directions are made smooth; 0 if all points are here."""
        away = self._away(at)
        # Where half of the points are here the median distance is 0, and the average one is taken.
        return _NEAR * max(float(np.median(away)), _LEAST * math.fsum(away) / len(away))

    def distance(self, at: Array, near: float) -> float:
        """Return the average distance, that of near points made smooth."""
        away = self._away(at)
        smooth = np.where(away < near, (away * away / near + near) / 2, away) if near else away
        return math.fsum(smooth) / len(away)

    def average(self, at: Array, near: float) -> tuple[FloatArray, float]:
        """Return the average direction in coordinates at a point, (d,), and the average inverse distance."""
        parts = [self.frame.log_coords(at, self._points[part]) for part in blocks(len(self._points), self.frame)]
        vectors = np.concatenate(parts)
        weights = 1 / np.maximum(vector_norm(vectors), near)
        return weighted_sum(vectors, weights) / len(weights), math.fsum(weights) / len(weights)
