"""Nothing here is private: means, variances and averages of units, and the checks before them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray, positive_float, positive_int, shown
from dpmanifold._ids import unit_ids
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.frechet.points import UnitPoints
from dpmanifold.frechet.solver import Solved, blocks, lowest_tol, public_tol, solve_groups
from dpmanifold.linalg import to_vecd, weighted_sum
from dpmanifold.manifolds import Euclidean
from dpmanifold.manifolds.base import Manifold

# Terms of a matrix product that are added without care for rounding.
MOMENT_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class FrechetMean:
    """A Fréchet mean and how well it was solved. All of it is data: none of it is private.

    Attributes
    ----------
    value : the mean, shape `space.shape`
    in_frame : the same point in the ball's frame (`ball.frame`), about whose origin it was solved: what tolerance and
        sensitivity are about, and where noise belongs. `value` is this point moved back, which rounds once more
    residual : computed norm of the gradient at the mean
    iterations : gradient evaluations after the first
    tol : the tolerance that was asked for
    n : how many units were averaged (records, if no units were given)
    """

    value: Array
    in_frame: Array
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

    With a ball, records are first clipped into it and moved to its frame; there the result lies in the ball and its
    gradient is at most `tol`, for every input (theory: solver). With a space alone, the tolerance is met or
    ConvergenceError is raised; on positively curved spaces the result is then a stationary point of F near the
    extrinsic mean, which need be neither unique nor a minimum if the data are spread too far.

    Parameters
    ----------
    X : points, shape (n, *space.shape)
    where : a Ball, or a space
    weights : n numbers of at least 0, not all 0; equal by default, and sensitivities hold for equal ones only. With
        units, they weigh records within a unit, and a unit counts with the sum of its weights
    units : n ids, all whole numbers or all text; records of one unit are averaged first, and each unit then counts once
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
    solved = problem.solve()
    return FrechetMean(
        problem.to_user(solved.points)[0],
        solved.points[0],
        float(solved.residuals[0]),
        solved.iterations,
        problem.tol,
        len(problem.points),
    )


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
    return problem.mean_squared_distance(None if about is None else about)


def second_moment(vectors: FloatArray) -> FloatArray:
    """Return the mean of v v' over vectors (n, d), shape (d, d); not private.

    Summed by blocks of `MOMENT_BLOCK`, which keeps the rounding of a long sum within what the sensitivity allows.

    Examples
    --------
    >>> second_moment(np.array([[1.0, 1.0], [3.0, -1.0]]))
    array([[ 5., -1.],
           [-1.,  1.]])
    """
    total = np.zeros((vectors.shape[1], vectors.shape[1]))
    for start in range(0, len(vectors), MOMENT_BLOCK):
        part = vectors[start : start + MOMENT_BLOCK]
        total += part.T @ part
    return np.asarray(total / len(vectors))


def outer_products(vectors: FloatArray) -> FloatArray:
    """Return v v' of vectors (n, d) as vecd of symmetric matrices, (n, d(d+1)/2), whose norms are |v|^2.

    Examples
    --------
    >>> outer_products(np.array([[1.0, 2.0]])).round(3)
    array([[1.   , 4.   , 2.828]])
    """
    return to_vecd(vectors[:, :, None] * vectors[:, None, :])


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


def unit_points(X: object, ball: Ball, units: object = None) -> UnitPoints:
    """Return one point per unit in the ball's frame: records clipped, moved there and averaged. Not private.

    The mean of these points about the frame's origin is the mean of the data; private statistics start from them.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> unit_points([[1.0], [3.0], [9.0]], Ball(Euclidean(1), [1.0], 5.0), ["ann", "ann", "bob"]).array()
    array([[1.],
           [5.]])
    """
    records = ball.space.as_points(X, "X", batch=True)
    if len(records) == 0:
        raise InvalidDataError("X is empty. A mean needs at least one record.")
    points = record_points(records, ball)
    return UnitPoints.of(points, ball) if units is None else unit_averages(points, ball, units)


def record_points(records: Array, ball: Ball) -> Array:
    """Clip valid records and move them into the ball's frame, a block at a time: (n, *frame.shape). Not private.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> record_points(np.array([[1.0], [9.0]]), Ball(Euclidean(1), [1.0], 5.0))
    array([[0.],
           [5.]])
    """
    points = np.empty((len(records), *ball.frame.shape), dtype=ball.frame.dtype)
    for block in blocks(len(records), ball.space):
        points[block] = ball.into_frame(records[block])
    return points


def unit_averages(points: Array, ball: Ball, units: object) -> UnitPoints:
    """Average each unit's points, all in the ball's frame. Not private.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> ball = Ball(Euclidean(1), [0.0], 5.0)
    >>> unit_averages(np.array([[1.0], [3.0], [5.0]]), ball, ["ann", "ann", "bob"]).array()
    array([[2.],
           [5.]])
    """
    return UnitPoints.of(_average_units(ball.frame, ball, points, units, None, 200)[0], ball, "unit")


# -------------------------------------------------------------------- the problem, in its frame


@dataclass(frozen=True)
class _Problem:
    """Points in the frame of a ball (or about a starting point, without one), and weights that sum to 1."""

    space: Manifold
    frame: Manifold
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
        frame = ball.frame if ball is not None else Euclidean(space.dim) if space.is_flat else space
        if ball is not None:
            anchor = ball.center
        else:
            anchor = space.origin if space.is_flat else space.extrinsic_mean(records, share)
        points = np.empty((len(records), *frame.shape), dtype=frame.dtype)
        for block in blocks(len(records), space):
            points[block] = _in_frame(space, anchor, ball, records[block])
        if units is not None:
            points, share = _average_units(frame, ball, points, units, weights, max_iter)
        tol = (
            (1e-10 if tol is None else positive_float(tol, "tol"))
            if ball is None
            else public_tol(ball, len(points), tol)
        )
        return _Problem(space, frame, anchor, ball, points, share, tol, max_iter)

    def solve(self) -> Solved:
        """Return the mean in the frame, as a batch of one, with its residual and the number of iterations."""
        group = np.zeros(len(self.points), dtype=np.intp)
        return solve_groups(self.frame, self.ball, self.points, self.weights, group, 1, self.tol, self.max_iter)

    def to_user(self, points: Array) -> Array:
        """Move points of the frame back to the space, and into the ball should rounding have left it."""
        if self.ball is not None:
            return self.ball.pull_in(self.ball.from_frame(points))
        if self.space.is_flat:
            return self.space.exp_coords(self.anchor, points)
        return self.space.project(self.space.from_origin(self.anchor, points))

    def mean_squared_distance(self, about: object) -> float:
        """Return the mean squared distance to a point of the space, or to the mean."""
        if about is None:
            at = self.solve().points[0]
        else:
            point = self.space.as_points(about, "about", batch=False)
            move = self.space.log_coords if self.space.is_flat else self.space.to_origin
            at = move(self.anchor, point)
        sums = [
            weighted_sum(self.frame.dist(at, self.points[block])[:, None] ** 2, self.weights[block])
            for block in blocks(len(self.points), self.frame)
        ]
        return float(np.sum(sums))


def _in_frame(space: Manifold, anchor: Array, ball: Ball | None, records: Array) -> Array:
    if ball is not None:
        return ball.to_frame(records)
    return space.log_coords(anchor, records) if space.is_flat else space.to_origin(anchor, records)


def _normalised(weights: object, n: int) -> FloatArray:
    if weights is None:
        return np.full(n, 1 / n)
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InvalidArgumentError("weights must be numbers, one per record.") from problem
    if w.shape != (n,):
        raise InvalidArgumentError(f"weights must have shape ({n},), one per record, got {w.shape}.")
    if not (np.isfinite(w).all() and (w >= 0).all() and w.max() > 0):
        raise InvalidArgumentError("weights must be finite, at least 0 and not all 0.")
    w = w / w.max()  # so that the sum does not overflow
    return np.asarray(w / w.sum())


def _average_units(
    frame: Manifold, ball: Ball | None, points: Array, units: object, weights: object, max_iter: int
) -> tuple[Array, FloatArray]:
    """Replace the points by one average per unit, and the weights by each unit's share."""
    if ball is not None:
        require_ball(ball)
    ids = unit_ids(units, len(points))
    group, count = ids.group, len(ids.names)
    inside = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=np.float64)
    total = np.bincount(group, inside, count)
    if (total == 0).any():
        raise InvalidArgumentError("weights must leave every unit with something: some unit's weights are all 0.")
    share = inside / total[group]
    # A unit's average is a per-unit map: how exactly it is solved plays no part in any sensitivity. Its tolerance
    # must not depend on other units (not even on how many records they have), and failure must not show.
    tol = 1e-10 if ball is None else max(1e-10 * ball.radius, lowest_tol(ball, 1))
    solved = solve_groups(frame, ball, points, share, group, count, tol, max_iter, strict=ball is None)
    averages = solved.points
    if ball is not None:
        averages = ball.in_frame.clip(averages)
    return averages, _normalised(None if weights is None else total, count)
