"""Nothing here is private: means, variances and averages of units, and the checks before them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray, index_text, positive_float, positive_int, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.frechet.solver import (
    blocks,
    default_tol,
    group_sums,
    lowest_tol,
    shorten,
    solve_groups,
    weighted_sum,
)
from dpmanifold.manifolds.base import Manifold, vector_norm


@dataclass(frozen=True, eq=False)
class FrechetMean:
    """A Fréchet mean and how well it was solved. All of it is data: none of it is private.

    Attributes
    ----------
    value : the mean, shape `space.shape`
    residual : computed norm of the gradient at the mean
    iterations : gradient evaluations after the first
    tol : the tolerance that was asked for
    n : how many units were averaged (records, if no units were given)
    """

    value: Array
    residual: float
    iterations: int
    tol: float
    n: int


def mean(
    X: object,
    where: Ball | Manifold,
    *,
    weights: object = None,
    units: object = None,
    tol: float | None = None,
    max_iter: int = 200,
) -> FrechetMean:
    """Compute the Fréchet mean of points; not private.

    With a ball, records are first clipped into it; the result lies in the ball and its gradient is at most
    `tol`, for every input (theory: solver). With a space alone, the tolerance is met or ConvergenceError is
    raised; on positively curved spaces the result is then a stationary point of F near the extrinsic mean, which need
    be neither unique nor a minimum if the data are spread too far.

    Parameters
    ----------
    X : points, shape (n, *space.shape)
    where : a Ball, or a space
    weights : n numbers of at least 0, not all 0; equal by default, and sensitivities hold for equal ones only. With
        units, they weigh records within a unit, and a unit counts with the sum of its weights
    units : n ids; records of one unit are averaged first, and each unit then counts once
    tol : bound on the gradient's norm; `default_tol(ball, n)` with a ball, 1e-10 with a space
    max_iter : limit without a ball (with one, the limit follows from the ball)

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> result = mean([np.eye(2), np.diag([1.0, 16.0])], SPD(2, metric="riemann"))
    >>> result.value.round(9)
    array([[1., 0.],
           [0., 4.]])
    """
    problem = _Problem.prepare(X, where, weights, units, tol, max_iter)
    value, residual, iterations = problem.solve()
    return FrechetMean(value, residual, iterations, problem.tol, len(problem.points))


def variance(
    X: object,
    where: Ball | Manifold,
    *,
    about: object = None,
    weights: object = None,
    units: object = None,
    tol: float | None = None,
) -> float:
    """Compute the mean squared distance to `about`, or to the Fréchet mean; not private.

    Parameters are those of :func:`mean`; with a ball, records are clipped into it first.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> variance([[0.0], [2.0]], Euclidean(1))
    1.0
    """
    problem = _Problem.prepare(X, where, weights, units, tol, 200)
    point = problem.solve()[0] if about is None else problem.space.as_points(about, "about", batch=False)
    return problem.mean_squared_distance(point)


def unit_means(X: object, units: object, where: Ball | Manifold) -> Array:
    """Average each unit's records; returns (number of units, *shape), in the order of the sorted ids.

    With a ball, records are clipped into it and the averages lie in it again (it is convex). Not private.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> unit_means([[0.0], [4.0], [10.0]], ["ann", "ann", "bob"], Euclidean(1))
    array([[ 2.],
           [10.]])
    """
    problem = _Problem.prepare(X, where, None, units, None, 200)
    return problem.to_user(problem.points)


# -------------------------------------------------------------------- the problem, in the solver's frame


@dataclass(frozen=True)
class _Problem:
    """Points moved so that the ball's centre (or the starting point) is the origin, weights that sum to 1.

    On flat spaces `points` holds coordinates instead, shape (n, dim).
    """

    space: Manifold
    anchor: Array
    ball: Ball | None
    points: Array
    weights: FloatArray
    tol: float
    max_iter: int

    @staticmethod
    def prepare(
        X: object, where: Ball | Manifold, weights: object, units: object, tol: float | None, max_iter: int
    ) -> _Problem:
        if not isinstance(where, (Ball, Manifold)):
            raise InvalidArgumentError(
                f"where must be a Ball or a space such as SPD(3), got {shown(where)}. The arguments are (X, where)."
            )
        ball = where if isinstance(where, Ball) else None
        space = where.space if isinstance(where, Ball) else where
        records = space.as_points(X, "X", batch=True)
        if len(records) == 0:
            raise InvalidDataError("X is empty. A mean needs at least one record.")
        max_iter = positive_int(max_iter, "max_iter")
        share = _normalised(weights, len(records))
        if ball is not None:
            anchor = ball.center
        else:
            anchor = space.origin if space.is_flat else space.extrinsic_mean(records, share)
        points = _in_solver_frame(space, anchor, ball, records)
        if units is not None:
            points, share = _average_units(space, ball, points, units, weights, max_iter)
        return _Problem(space, anchor, ball, points, share, _tolerance(ball, tol, len(points)), max_iter)

    def solve(self) -> tuple[Array, float, int]:
        """Return the mean in the user's frame, the residual and the number of iterations."""
        if self.space.is_flat:
            c = weighted_sum(self.points, self.weights)
            value = self.space.exp_coords(self.anchor, shorten(c, self.ball))
            return value, 0.0, 0
        one_group = np.zeros(len(self.points), dtype=np.intp)
        solved = solve_groups(self.space, self.ball, self.points, self.weights, one_group, 1, self.tol, self.max_iter)
        value = self.to_user(solved.points)[0]
        return value, float(solved.residuals[0]), solved.iterations

    def to_user(self, points: Array) -> Array:
        """Move points of the solver's frame back, and into the ball."""
        if self.space.is_flat:
            return self.space.exp_coords(self.anchor, points)
        moved = self.space.project(self.space.from_origin(self.anchor, points))
        return moved if self.ball is None else self.ball.clip(moved)

    def mean_squared_distance(self, point: Array) -> float:
        if self.space.is_flat:
            gap = self.points - self.space.log_coords(self.anchor, point)
            return float(weighted_sum(vector_norm(gap)[:, None] ** 2, self.weights)[0])
        at = self.space.to_origin(self.anchor, point)
        total = 0.0
        for block in blocks(len(self.points), self.space):
            squares = self.space.dist(at, self.points[block]) ** 2
            total += float(weighted_sum(squares[:, None], self.weights[block])[0])
        return total


def _normalised(weights: object, n: int) -> FloatArray:
    if weights is None:
        return np.full(n, 1 / n)
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InvalidArgumentError("weights must be numbers, one per record.") from problem
    if w.shape != (n,):
        raise InvalidArgumentError(f"weights must have shape ({n},), one per record, got {w.shape}.")
    if not (np.isfinite(w).all() and (w >= 0).all() and w.sum() > 0):
        raise InvalidArgumentError("weights must be finite, at least 0 and not all 0.")
    return np.asarray(w / w.sum())


def _tolerance(ball: Ball | None, tol: float | None, n: int) -> float:
    if ball is None:
        return 1e-10 if tol is None else positive_float(tol, "tol")
    if tol is None:
        return default_tol(ball, n)
    lowest = lowest_tol(ball, n)
    if positive_float(tol, "tol") < lowest:
        raise InvalidArgumentError(
            f"tol must be at least {lowest:.3g} for {n} units in this ball, got {tol:.3g}: rounding hides a smaller "
            "gradient. Give a larger tol or leave it out."
        )
    return float(tol)


def _in_solver_frame(space: Manifold, anchor: Array, ball: Ball | None, records: Array) -> Array:
    def convert(block: Array) -> Array:
        if ball is None:
            return space.log_coords(anchor, block) if space.is_flat else space.to_origin(anchor, block)
        return ball.clip_coords(block) if space.is_flat else ball.clip_to_origin(block)

    return np.concatenate([convert(records[block]) for block in blocks(len(records), space)])


def _average_units(
    space: Manifold, ball: Ball | None, points: Array, units: object, weights: object, max_iter: int
) -> tuple[Array, FloatArray]:
    """Replace the points by one average per unit, and the weights by each unit's share."""
    ids = np.asarray(units)
    if ids.shape != (len(points),):
        raise InvalidArgumentError(f"units must have shape ({len(points)},), one id per record, got {ids.shape}.")
    missing = np.array([i is None or i != i for i in ids.tolist()], dtype=bool)
    if missing.any():
        raise InvalidArgumentError(
            f"units has a missing id{index_text(missing)}. Give every record the id of its unit."
        )
    try:
        names, group = np.unique(ids, return_inverse=True)
    except TypeError as problem:
        raise InvalidArgumentError("units must be ids of one kind, all numbers or all text.") from problem
    inside = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=np.float64)
    total = np.bincount(group, inside, len(names))
    if (total == 0).any():
        raise InvalidArgumentError("weights must leave every unit with something: some unit's weights are all 0.")
    share = inside / total[group]
    if space.is_flat:
        sums = group_sums(points, share, group, len(names))
        return shorten(sums, ball), _normalised(None if weights is None else total, len(names))
    # A unit's average is a per-unit map: its own tolerance plays no part in any sensitivity.
    tol = 1e-10 if ball is None else max(1e-10, lowest_tol(ball, len(points)))
    solved = solve_groups(space, ball, points, share, group, len(names), tol, max_iter)
    return solved.points, _normalised(None if weights is None else total, len(names))
