"""NOTHING IN THIS MODULE IS PRIVATE: Fréchet means and variances, residuals and iteration counts are data.

The Fréchet mean minimises F(x) = (1/2n) sum dist(x, x_i)^2. With a ball it is solved, for every possible
input, to a tolerance on the gradient that is fixed in advance (theory: solver): fast Barzilai-Borwein steps
first, and where they do not end in time, a descent with a proven iteration cap. Private callers may rely on
the tolerance, and must show neither the residual nor the number of iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dpmanifold._check import Array, FloatArray, positive_float, positive_int
from dpmanifold.ball import Ball
from dpmanifold.errors import ConvergenceError, InvalidArgumentError, InvalidDataError
from dpmanifold.manifolds.base import EPS, Manifold, vector_norm

# Numbers held by one block of points: bounds the memory of a pass whatever n is (32 MiB of doubles).
_BLOCK = 4_194_304

# Barzilai-Borwein steps before the safe descent takes over; they need 5 to 12 on ordinary data.
_FAST_STEPS = 40

# The tolerance private callers get by default, as a share of 2r/n, the flat sensitivity.
_TOL_SHARE = 1e-9


@dataclass(frozen=True)
class FrechetMean:
    """A Fréchet mean and how well it was solved. All of it is data: none of it is private.

    Attributes
    ----------
    value : the mean, shape `space.shape`
    residual : computed norm of the gradient at the mean
    iterations : gradient evaluations after the first
    tol : the tolerance that was asked for
    """

    value: Array
    residual: float
    iterations: int
    tol: float


def gradient_rounding(ball: Ball, n: int) -> float:
    """Bound the rounding error of the computed gradient of F, anywhere in the ball (theory: rounding).

    One logarithm's error plus that of a pairwise sum over n records. Depends on public quantities only.

    >>> from dpmanifold.manifolds import Sphere
    >>> gradient_rounding(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 1000) < 1e-13
    True
    """
    one = 0.0 if ball.space.is_flat else ball.space.log_error(ball.effective_radius)
    return one + (40 + math.log2(max(n, 1))) * EPS * 2 * ball.effective_radius


def default_tol(ball: Ball, n: int) -> float:
    """Return the public tolerance for n units in a ball: 1e-9 of 2r/n, or what rounding allows.

    >>> from dpmanifold.manifolds import Sphere
    >>> default_tol(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 1000)
    1e-12
    """
    return max(_TOL_SHARE * 2 * ball.radius / n, 4 * gradient_rounding(ball, n))


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
    raised; on positively curved spaces the result is then a local mean, near the extrinsic one.

    Parameters
    ----------
    X : points, shape (n, *space.shape)
    where : a Ball, or a space
    weights : n numbers of at least 0, not all 0; equal by default
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
    return FrechetMean(value, residual, iterations, problem.tol)


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
            raise InvalidArgumentError(f"where must be a Ball or a space such as SPD(3), got {type(where).__name__}.")
        ball = where if isinstance(where, Ball) else None
        space = where.space if isinstance(where, Ball) else where
        records = space.as_points(X, "X", batch=True)
        if len(records) == 0:
            raise InvalidDataError("X is empty. A mean needs at least one record.")
        max_iter = positive_int(max_iter, "max_iter")
        share = _normalised(weights, len(records))
        anchor = ball.center if ball is not None else space.extrinsic_mean(records, share)
        points = _in_solver_frame(space, anchor, ball, records)
        if units is not None:
            points, share = _average_units(space, ball, points, units, weights, max_iter)
        return _Problem(space, anchor, ball, points, share, _tolerance(ball, tol, len(points)), max_iter)

    def solve(self) -> tuple[Array, float, int]:
        """Return the mean in the user's frame, the residual and the number of iterations."""
        if self.space.is_flat:
            c = _weighted_sum(self.points, self.weights)
            value = self.space.exp_coords(self.anchor, _shorten(c, self.ball))
            return value, 0.0, 0
        one_group = np.zeros(len(self.points), dtype=np.intp)
        solved = _solve_groups(self.space, self.ball, self.points, self.weights, one_group, 1, self.tol, self.max_iter)
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
            return float(_weighted_sum(vector_norm(gap)[:, None] ** 2, self.weights)[0])
        at = self.space.to_origin(self.anchor, point)
        total = 0.0
        for block in _blocks(len(self.points), self.space):
            squares = self.space.dist(at, self.points[block]) ** 2
            total += float(_weighted_sum(squares[:, None], self.weights[block])[0])
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
    lowest = 4 * gradient_rounding(ball, n)
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

    return np.concatenate([convert(records[block]) for block in _blocks(len(records), space)])


def _shorten(c: FloatArray, ball: Ball | None) -> FloatArray:
    """Scale coordinates that rounding carried past the radius back onto it."""
    if ball is None:
        return c
    length = vector_norm(c)
    return np.where(
        (length > ball.radius)[..., None], c * (ball.radius / np.maximum(length, ball.radius))[..., None], c
    )


def _average_units(
    space: Manifold, ball: Ball | None, points: Array, units: object, weights: object, max_iter: int
) -> tuple[Array, FloatArray]:
    """Replace the points by one average per unit, and the weights by each unit's share."""
    ids = np.asarray(units)
    if ids.shape != (len(points),):
        raise InvalidArgumentError(f"units must have shape ({len(points)},), one id per record, got {ids.shape}.")
    names, group = np.unique(ids, return_inverse=True)
    inside = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=np.float64)
    total = np.bincount(group, inside, len(names))
    if (total == 0).any():
        raise InvalidArgumentError("weights must leave every unit with something: some unit's weights are all 0.")
    share = inside / total[group]
    if space.is_flat:
        sums = _group_sums(points, share, group, len(names))
        return _shorten(sums, ball), _normalised(None if weights is None else total, len(names))
    # A unit's average is a per-unit map: its own tolerance plays no part in any sensitivity.
    tol = 1e-10 if ball is None else max(1e-10, 4 * gradient_rounding(ball, len(points)))
    solved = _solve_groups(space, ball, points, share, group, len(names), tol, max_iter)
    return solved.points, _normalised(None if weights is None else total, len(names))


# -------------------------------------------------------------------- sums over blocks


def _blocks(n: int, space: Manifold) -> list[slice]:
    """Cut n records into slices whose working arrays stay within the memory bound."""
    step = max(1, _BLOCK // (8 * max(space.dim, math.prod(space.shape))))
    return [slice(start, start + step) for start in range(0, n, step)]


def _weighted_sum(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sum_i w_i values_i over the first axis, summed pairwise (numpy does so along contiguous memory)."""
    return np.asarray(np.ascontiguousarray((values * weights[:, None]).T).sum(axis=1))


def _group_sums(values: FloatArray, weights: FloatArray, group: Array, groups: int) -> FloatArray:
    """Return one weighted sum per group, shape (groups, columns)."""
    if groups == 1:
        return _weighted_sum(values, weights)[None]
    n = len(group)
    matrix = sparse.csr_array((weights, (group, np.arange(n))), shape=(groups, n))
    return np.asarray(matrix @ values)


# -------------------------------------------------------------------- the solver


@dataclass(frozen=True)
class _Solved:
    points: Array
    residuals: FloatArray
    iterations: int


def _solve_groups(
    space: Manifold,
    ball: Ball | None,
    points: Array,
    weights: FloatArray,
    group: Array,
    groups: int,
    tol: float,
    max_iter: int,
) -> _Solved:
    """Solve `groups` means at once, starting from the origin; `group` says where each point belongs."""

    def gradient(x: Array) -> FloatArray:
        total = np.zeros((groups, space.dim))
        for block in _blocks(len(points), space):
            base = x if groups == 1 else x[group[block]]
            c = space.log_coords(base[0] if groups == 1 else base, points[block])
            total -= _group_sums(c, weights[block], group[block], groups)
        return total

    # Half the tolerance is met by the computed gradient; the other half covers its rounding error.
    goal = tol / 2
    start = np.broadcast_to(space.origin, (groups, *space.shape)).copy()
    limit = _FAST_STEPS if ball is not None else max_iter
    x, residual, iterations = _fast_descent(space, ball, gradient, start, goal, limit)
    unsolved = ~(residual <= goal)
    if unsolved.any() and ball is None:
        raise ConvergenceError(
            f"the mean did not reach tol = {tol:.3g} within max_iter = {max_iter} steps. Raise tol or max_iter, or "
            "give a Ball: inside one the mean is unique and always found."
        )
    if unsolved.any() and ball is not None:
        safe, safe_residual, more = _safe_descent(space, ball, gradient, start, goal)
        x = np.where(unsolved.reshape(-1, *(1,) * len(space.shape)), safe, x)
        residual = np.where(unsolved, safe_residual, residual)
        iterations += more
        if not (residual <= goal).all():  # pragma: no cover - excluded by theory: solver
            raise ConvergenceError(
                "the safe descent missed its proven cap. Please report this with the ball's parameters."
            )
    return _Solved(x, residual, iterations)


def _fast_descent(
    space: Manifold,
    ball: Ball | None,
    gradient: Callable[[Array], FloatArray],
    x: Array,
    goal: float,
    limit: int,
) -> tuple[Array, FloatArray, int]:
    """Take Barzilai-Borwein steps from x; returns the last points, their residuals and the steps taken.

    A step runs along the gradient, so its parallel transport to the new point is minus the logarithm back: no
    other transport is needed.
    """
    g = gradient(x)
    residual = vector_norm(g)
    # The first step takes the mean Hessian to be the identity, which is right for small spreads.
    step = np.ones(len(x))
    longest = math.inf if ball is None else 2 * ball.radius
    longest = min(longest, 0.45 * space.injectivity_radius, 10.0)
    iterations = 0
    while iterations < limit and (residual > goal).any():
        active = residual > goal
        step = np.minimum(step, longest / np.maximum(residual, longest * EPS))
        move = np.where(active[:, None], -step[:, None] * g, 0.0)
        new = space.exp_coords(x, move)
        if ball is not None:
            new = _clip_iterates(space, ball, new)
        new_g = gradient(new)
        arrived = -space.log_coords(new, x)
        change = new_g + arrived / step[:, None]
        slope = (arrived * change).sum(axis=-1)
        length = (arrived * arrived).sum(axis=-1)
        good = active & (slope > 0.05 * length) & (length > 0)
        step = np.where(good, length / np.where(good, slope, 1.0), 1.0)
        x, g = new, new_g
        residual = vector_norm(g)
        iterations += 1
    return x, residual, iterations


def _clip_iterates(space: Manifold, ball: Ball, x: Array) -> Array:
    """Keep iterates in the ball about the origin."""
    c = space.log_coords(space.origin, x)
    outside = vector_norm(c) > ball.radius
    if not outside.any():
        return x
    x = x.copy()
    x[outside] = space.exp_coords(space.origin, _shorten(c[outside], ball))
    return x


def safe_step_and_cap(ball: Ball, tol: float) -> tuple[float, int]:
    """Return the step of the safe descent and the number of steps that suffices (theory: solver).

    >>> from dpmanifold.manifolds import Sphere
    >>> step, cap = safe_step_and_cap(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.77), 1e-12)
    >>> step, cap < 100
    (1.0, True)
    """
    space, r = ball.space, ball.effective_radius
    low, _ = space.hessian_bounds(2 * r)
    _, high = space.hessian_bounds(r)
    step = 1 / high
    rate = 1 - (1 - (1 - low) / 4) / high
    # |gradient|^2 <= 2 high (F - F*), and F - F* starts at r^2/2 at most.
    needed = math.log(max(high * r * r / tol**2, 2.0)) / -math.log(max(rate, EPS))
    # Twice what exact arithmetic needs: each step may lose a little to the gradient's rounding.
    return step, 2 * math.ceil(needed) + 10


def _safe_descent(
    space: Manifold, ball: Ball, gradient: Callable[[Array], FloatArray], x: Array, goal: float
) -> tuple[Array, FloatArray, int]:
    """Descend from the ball's centre with the step and the cap of the theory."""
    step, cap = safe_step_and_cap(ball, goal)
    g = gradient(x)
    residual = vector_norm(g)
    iterations = 0
    while iterations < cap and (residual > goal).any():
        move = np.where((residual > goal)[:, None], -step * g, 0.0)
        x = _clip_iterates(space, ball, space.exp_coords(x, move))
        g = gradient(x)
        residual = vector_norm(g)
        iterations += 1
    return x, residual, iterations


__all__ = ["FrechetMean", "default_tol", "gradient_rounding", "mean", "unit_means", "variance"]
