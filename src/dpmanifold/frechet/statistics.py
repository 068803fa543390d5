"""Nothing here is private: means, variances, medians and averages of units, and the checks before them."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray, positive_float, positive_int, shown
from dpmanifold._merged_ids import unit_ids
from dpmanifold.ball import Ball, require_ball
from dpmanifold.engines import current_engine
from dpmanifold.errors import ConvergenceError, InvalidArgumentError, InvalidDataError, Public
from dpmanifold.frechet.map_reduce import unpacked
from dpmanifold.frechet.points_from_sources import made_of
from dpmanifold.frechet.points_per_unit import UnitPoints, made_from
from dpmanifold.frechet.reading import Reading
from dpmanifold.frechet.record_blocks import Records
from dpmanifold.frechet.solver import Solved, blocks, solve_groups
from dpmanifold.frechet.tolerances import lowest_tol, public_tol
from dpmanifold.linalg import ExactSum
from dpmanifold.linalg.exact_sums import weighted_sum
from dpmanifold.linalg.fused import LARGEST_LOGARITHM
from dpmanifold.manifolds import Euclidean
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.throughput import RawFrame
from dpmanifold.manifolds.vectors import vector_norm
from dpmanifold.sources import as_source


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
    X : points, shape (n, *space.shape); with a ball and without weights also a source of them, such as a `data.Dataset`
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
    problem = problem_of(X, where, weights, units, tol, max_iter)
    solved = problem.solve()
    value, residual = problem.to_user(solved.points)[0], float(solved.residuals[0])
    return FrechetMean(value, solved.points[0], residual, solved.iterations, problem.tol, problem.n)


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
    return problem_of(X, where, weights, units, tol, 200).mean_squared_distance(about)


def unit_means(X: object, where: Ball | Manifold, *, units: object) -> Array:
    """Average each unit's records; returns (number of units, *shape), in the order of the sorted ids.

    With a ball, records are clipped into it and the averages lie in it again (it is convex). Not private.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> unit_means([[0.0], [4.0], [10.0]], Euclidean(1), units=["ann", "ann", "bob"])
    array([[ 2.],
           [10.]])
    """
    problem = problem_of(X, where, None, units, None, 200)
    return problem.to_user(problem.array())


def unit_points(X: object, ball: Ball, *, units: object) -> UnitPoints:
    """Return one point per unit in the ball's frame: records clipped, moved there and averaged. Not private.

    The mean of these points about the frame's origin is the mean of the data; private statistics start from them.
    `units` are one id per record (or the name of a column, where X is a source that has columns), or None where each
    record is a unit.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> unit_points([[1.0], [3.0], [9.0]], Ball(Euclidean(1), [1.0], 5.0), units=["ann", "ann", "bob"]).array()
    array([[1.],
           [5.]])
    """
    source = as_source(X)
    if source is not None:
        reading = Reading(ball, functools.partial(_block_of, ball.space))
        pieces = source.bound(ball.space, units, None)
        return made_of(pieces, reading, units is not None, current_engine(), _refuse_none).groups[0]
    records = _checked(X, ball.space)
    return made_from(records, ball, None if units is None else unit_ids(units, len(records))).points


def _block_of(space: Manifold, block: Array, first: int) -> Records:
    return Records.of(block, space, first)


def _refuse_none(counts: Array) -> None:
    if counts.sum() == 0:
        raise InvalidDataError("`X` is empty. A mean needs at least one record.")


def _checked(X: object, space: Manifold) -> Records:
    if as_source(X) is not None:
        raise InvalidArgumentError(
            "`X` must be an array here, got a source of records. A mean of a source takes a Ball and no "
            "weights: frechet.mean(X, ball)."
        )
    records = Records.of(X, space)
    if len(records) == 0:
        raise InvalidDataError("`X` is empty. A mean needs at least one record.")
    return records


# -------------------------------------------------------------------- the problem, in its frame


class _Problem(ABC):
    """Points in a frame, with weights that add up to 1, and how a mean is found there and moved back.

    Parameters
    ----------
    space : of the records
    ball : the ball in whose frame they are, if there is one
    anchor : the point of the space that is the frame's origin
    n : how many points there are
    tol : as it was given
    """

    weights: FloatArray | None = None  # None: all the same

    def __init__(self, space: Manifold, ball: Ball | None, anchor: Array, n: int, tol: float | None) -> None:
        self.space, self.ball, self.anchor, self.n = space, ball, anchor, n
        self.frame = _frame_of(space, ball)
        if ball is None:
            self.tol = 1e-10 if tol is None else positive_float(tol, "tol")
        else:
            self.tol = public_tol(ball, n, tol)

    @abstractmethod
    def solve(self) -> Solved:
        """Return the mean in the frame, as a batch of one, with its residual and the number of iterations."""

    @abstractmethod
    def parts(self) -> Iterable[Array]:
        """Return the points in several arrays, (b, *frame.shape) each."""

    def array(self) -> Array:
        """Return the points, (n, *frame.shape)."""
        return np.concatenate(list(self.parts()))

    def to_user(self, points: Array) -> Array:
        """Move points of the frame back to the space."""
        if self.ball is not None:
            return self.ball.pull_in(self.ball.from_frame(points))  # should rounding have left it
        if self.space.is_flat:
            return self.space.exp_coords(self.anchor, points)
        return self.space.project(self.space.from_origin(self.anchor, points))

    def mean_squared_distance(self, about: object) -> float:
        """Return the mean squared distance to a point of the space, or to the mean."""
        if about is None:
            at = self.solve().points[0]
        else:
            at = self.space.into_frame(self.anchor, self.space.as_points(about, "about", batch=False))
        squares = np.concatenate([self.frame.dist(at, part) for part in self.parts()]) ** 2
        return math.fsum(squares / self.n if self.weights is None else squares * self.weights)


def _frame_of(space: Manifold, ball: Ball | None) -> Manifold:
    return ball.frame if ball is not None else Euclidean(space.dim) if space.is_flat else space


class _InBall(_Problem):
    """Clipped records in the frame of a ball, each with the same weight."""

    def __init__(self, points: UnitPoints, tol: float | None) -> None:
        super().__init__(points.ball.space, points.ball, points.ball.center, len(points), tol)
        self._points = points

    def solve(self) -> Solved:
        return self._points.solved(self.tol)

    def parts(self) -> Iterable[Array]:
        return self._points.blocks()


class _Weighted(_Problem):
    """Points about a starting point, or in the frame of a ball, with weights."""

    def __init__(
        self,
        records: Records,
        ball: Ball | None,
        weights: object,
        units: object,
        tol: float | None,
        max_iter: int,
    ) -> None:
        space, share = records.space, _normalised(weights, len(records))
        frame, valid = _frame_of(space, ball), records.array()
        if ball is not None:
            anchor = ball.center
        else:
            anchor = space.origin if space.is_flat else space.extrinsic_mean(valid, share)
        points = np.empty((len(valid), *frame.shape), dtype=frame.dtype)
        for block in blocks(len(valid), space):
            moved = space.into_frame(anchor, valid[block]) if ball is None else ball.into_frame(valid[block])
            points[block] = moved
        if units is not None:
            points, share = _average_units(frame, ball, points, units, weights, max_iter)
        super().__init__(space, ball, anchor, len(points), tol)
        self._points, self.weights, self._max_iter = points, share, max_iter

    def solve(self) -> Solved:
        group = np.zeros(self.n, dtype=np.intp)
        return solve_groups(self.frame, self.ball, self._points, self.weights, group, 1, self.tol, self._max_iter)

    def parts(self) -> Iterable[Array]:
        return (self._points[part] for part in blocks(self.n, self.frame))


class _Framed(_Problem):
    """Records of a curved space without a ball, which passes over them moved to a frame, where they stay."""

    def __init__(self, framed: RawFrame, space: Manifold, tol: float | None, max_iter: int) -> None:
        super().__init__(space, None, framed.anchor, len(framed.stored), tol)
        self._stored, self._first, self._max_iter = framed.stored, framed.first, max_iter

    def solve(self) -> Solved:
        stored, first = self._stored, self._first
        return solve_groups(self.frame, None, stored, None, None, 1, self.tol, self._max_iter, first=first)

    def parts(self) -> Iterable[Array]:
        return unpacked(self.frame, self._stored)


class _Summed(_Problem):
    """Records of a flat space without a ball, whose sum one pass over them gave."""

    def __init__(self, records: Records, total: FloatArray, tol: float | None) -> None:
        super().__init__(records.space, None, records.space.origin, len(records), tol)
        self._records, self._total = records, total

    def solve(self) -> Solved:
        return Solved((self._total / self.n)[None], np.zeros(1), 0)

    def parts(self) -> Iterable[Array]:
        return (self.space.log_coords(self.anchor, block) for _, block, _ in self._records.blocks())


def problem_of(
    X: object, where: Ball | Manifold, weights: object, units: object, tol: float | None, max_iter: int
) -> _Problem:
    """Return the points of a statistic in their frame, checked, and how to move back; or refuse."""
    if not isinstance(where, (Ball, Manifold)):
        raise InvalidArgumentError(
            "where must be a Ball or a space such as SPD(3), got {got}. The arguments are (X, where).", got=shown(where)
        )
    max_iter = positive_int(max_iter, "max_iter")
    if isinstance(where, Ball):
        require_ball(where)
        if weights is None:
            return _InBall(unit_points(X, where, units=units), tol)
        return _Weighted(_checked(X, where.space), where, weights, units, tol, max_iter)
    records = _checked(X, where)
    if where.is_flat and weights is None and units is None:
        sums = ExactSum(where.dim, LARGEST_LOGARITHM)  # no logarithm of a stored number is longer
        found = where.clipped_sums(records.raw, where.origin, math.inf, sums)
        if found is not None:
            odd = np.flatnonzero(found.odd)
            if odd.size == 0:
                return _Summed(records, where.from_addends(sums.total())[0], tol)
            records.rows(odd)  # refuses them, unless they are points after all
    framed = where.framed_records(records.raw) if weights is None and units is None else None
    if framed is not None:
        if framed.odd.size == 0:
            return _Framed(framed, where, tol, max_iter)
        records.rows(framed.odd)  # refuses them, unless they are points after all
    return _Weighted(records, None, weights, units, tol, max_iter)


def _normalised(weights: object, n: int) -> FloatArray:
    if weights is None:
        return np.full(n, 1 / n)
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InvalidArgumentError("weights must be numbers, one per record.") from problem
    if w.shape != (n,):
        raise InvalidArgumentError(
            "weights must have shape ({n},), one per record, got {shape}.", n=Public(n), shape=Public(w.shape)
        )
    if not (np.isfinite(w).all() and (w >= 0).all() and w.max() > 0):
        raise InvalidArgumentError("weights must be finite, at least 0 and not all 0.")
    w = w / w.max()  # so that the sum does not overflow
    return np.asarray(w / math.fsum(w))  # exact: it does not depend on the order


def _average_units(
    frame: Manifold, ball: Ball | None, points: Array, units: object, weights: object, max_iter: int
) -> tuple[Array, FloatArray]:
    """Replace the points by one average per unit, and the weights by each unit's share."""
    if ball is not None:
        require_ball(ball)
    ids = unit_ids(units, len(points))
    group, count = ids.group, len(ids)
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
        averages = ball.in_frame.pull_in(averages)
    return averages, _normalised(None if weights is None else total, count)


# -------------------------------------------------------------------- the median, by Weiszfeld's steps (theory: median)


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
        "the median did not reach tol = {tol:.3g} within max_iter = {max_iter} steps: it is at {residual:.3g}. Raise "
        "tol or max_iter.",
        tol=Public(tol),
        max_iter=Public(max_iter),
        residual=residual,
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
