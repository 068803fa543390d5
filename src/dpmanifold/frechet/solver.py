"""The solver behind Fréchet means: many means at once, to a public tolerance (theory: solver). Not private."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dpmanifold._check import Array, FloatArray, positive_float
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import ConvergenceError, InvalidArgumentError
from dpmanifold.linalg import weighted_sum
from dpmanifold.manifolds.base import EPS, Manifold, shorten, vector_norm

# Numbers held by one block of points: bounds the memory of a pass whatever n is (32 MiB of doubles).
_BLOCK = 4_194_304

# Barzilai-Borwein steps before the safe descent takes over; they need 5 to 12 on ordinary data.
_FAST_STEPS = 40

# Points that the first step is tried on.
_TRIAL = 256

# A tolerance beyond this share of the radius would say next to nothing about the mean.
_WORST_TOL = 0.01

# The tolerance private callers get by default, as a share of 2r/n, the flat sensitivity.
_TOL_SHARE = 1e-9


def gradient_rounding(ball: Ball, n: int) -> float:
    """Bound the rounding error of the computed gradient of F, anywhere in the ball (theory: rounding).

    One logarithm's error plus that of a pairwise sum over n records. Depends on public quantities only.

    >>> from dpmanifold.manifolds import Sphere
    >>> gradient_rounding(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 1000) < 1e-13
    True
    """
    return ball.frame.log_error(ball.effective_radius) + (60 + math.log2(n)) * EPS * 2 * ball.effective_radius


def lowest_tol(ball: Ball, n: int) -> float:
    """Return the smallest tolerance that rounding lets the solver guarantee in a ball, or refuse the ball.

    >>> from dpmanifold.manifolds import Sphere
    >>> lowest_tol(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 1000) < 1e-12
    True
    """
    lowest = 8 * gradient_rounding(ball, n)
    if not lowest <= _WORST_TOL * ball.radius:
        raise InvalidArgumentError(
            f"a radius of {ball.radius:.4g} on {ball.space!r} is too large for a mean with a guarantee: points so far "
            f"apart lose too many digits in double precision. {ball.space.smaller_ball}"
        )
    return lowest


def default_tol(ball: Ball, n: int) -> float:
    """Return the public tolerance for n units in a ball: 1e-9 of 2r/n, or what rounding allows.

    >>> from dpmanifold.manifolds import Sphere
    >>> default_tol(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 1000)
    1e-12
    """
    return max(_TOL_SHARE * 2 * ball.radius / n, lowest_tol(ball, n))


def blocks(n: int, space: Manifold) -> list[slice]:
    """Cut n records into slices whose working arrays stay within the memory bound."""
    step = _block_length(space)
    return [slice(start, start + step) for start in range(0, n, step)]


def _block_length(space: Manifold) -> int:
    """Return how many records a block holds."""
    return max(1, _BLOCK // (8 * max(space.dim, math.prod(space.shape))))


def whole_groups(group: Array, space: Manifold) -> list[slice]:
    """Cut points that are sorted by group like :func:`blocks`, but where a group ends."""
    step = _block_length(space)
    ends = np.cumsum(np.bincount(group))
    found, start = [], 0
    while start < len(group):
        last = max(np.searchsorted(ends, start + step, "right") - 1, np.searchsorted(ends, start, "right"))
        found.append(slice(start, int(ends[last])))
        start = int(ends[last])
    return found


def group_sums(values: FloatArray, weights: FloatArray, group: Array, groups: int) -> FloatArray:
    """Return one weighted sum per group, shape (groups, columns)."""
    if groups == 1:
        return weighted_sum(values, weights)[None]
    n = len(group)
    matrix = sparse.csr_array((weights, (group, np.arange(n))), shape=(groups, n))
    return np.asarray(matrix @ values)


def public_tol(ball: Ball, n: int, tol: float | None) -> float:
    """Return the tolerance asked for, the default if none was, or refuse one that rounding would hide.

    >>> from dpmanifold.manifolds import Sphere
    >>> public_tol(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), 1000, 1e-6)
    1e-06
    """
    require_ball(ball)
    if tol is None:
        return default_tol(ball, n)
    lowest = lowest_tol(ball, n)
    if positive_float(tol, "tol") < lowest:
        raise InvalidArgumentError(
            f"tol must be at least {lowest:.3g} for {n} units in this ball, got {tol:.3g}: rounding hides a smaller "
            "gradient. Give a larger tol or leave it out."
        )
    return float(tol)


@dataclass(frozen=True)
class Solved:
    """Means in the solver's frame, their computed gradient norms, and the iterations taken."""

    points: Array
    residuals: FloatArray
    iterations: int


def solve_groups(
    space: Manifold,
    ball: Ball | None,
    points: Array,
    weights: FloatArray,
    group: Array,
    groups: int,
    tol: float,
    max_iter: int,
    strict: bool = True,
) -> Solved:
    """Solve `groups` means at once, starting from the origin; `group` says where each point belongs.

    With `strict`, the tolerance is met or ConvergenceError raised; without, the last points are taken as they are.
    """
    if space.is_flat:
        return Solved(group_sums(points, weights, group, groups), np.zeros(groups), 0)

    if groups > 1:
        # A group's sum must not depend on how many points the others have: no block may cut through a group.
        order = np.argsort(group, kind="stable")
        points, weights, group = points[order], weights[order], group[order]
        parts = whole_groups(group, space)
    else:
        parts = blocks(len(points), space)

    # How far points may be from the origin: public with a ball. Without one, where nothing is private, the first
    # gradient, which is taken at the origin, tells.
    spread = math.inf if ball is None else ball.effective_radius

    def sums_of_one(x: Array) -> list[FloatArray]:
        nonlocal spread
        reach = spread + (ball.effective_radius if ball is not None else float(space.dist(space.origin, x[0])))
        found = [space.weighted_log(x[0], points[block], weights[block], reach) for block in parts]
        if spread == math.inf:
            spread = max(farthest for _, farthest in found)
        return [total[None] for total, _ in found]

    def sums_of_many(x: Array) -> list[FloatArray]:
        return [
            group_sums(space.log_coords(x[group[block]], points[block]), weights[block], group[block], groups)
            for block in parts
        ]

    def gradient(x: Array) -> FloatArray:
        sums = sums_of_one(x) if groups == 1 else sums_of_many(x)
        # Blocks are added pairwise as well (numpy does so along contiguous memory).
        return np.asarray(-np.ascontiguousarray(np.moveaxis(np.array(sums), 0, -1)).sum(axis=-1))

    # Half the tolerance is met by the computed gradient; the other half covers its rounding error.
    goal = tol / 2
    start = np.broadcast_to(space.origin, (groups, *space.shape)).copy()
    limit = _FAST_STEPS if ball is not None else max_iter
    first = _first_step(space, points) if groups == 1 else 1.0
    x, residual, iterations = _fast_descent(space, ball, gradient, start, goal, limit, first)
    unsolved = ~(residual <= goal)
    if unsolved.any() and ball is None and strict:
        raise ConvergenceError(
            f"the mean did not reach tol = {tol:.3g} within max_iter = {max_iter} steps. Raise tol or max_iter, or "
            "give a Ball: inside one the mean is unique and always found."
        )
    if unsolved.any() and ball is not None:
        safe, safe_residual, more = _safe_descent(space, ball, gradient, start, goal)
        x = np.where(unsolved.reshape(-1, *(1,) * len(space.shape)), safe, x)
        residual = np.where(unsolved, safe_residual, residual)
        iterations += more
        if strict and not (residual <= goal).all():  # pragma: no cover - excluded by theory: solver
            raise ConvergenceError(
                "the safe descent missed its proven cap. Please report this with the ball's parameters."
            )
    return Solved(x, residual, iterations)


def _fast_descent(
    space: Manifold,
    ball: Ball | None,
    gradient: Callable[[Array], FloatArray],
    x: Array,
    goal: float,
    limit: int,
    first: float,
) -> tuple[Array, FloatArray, int]:
    """Take Barzilai-Borwein steps from x; returns the last points, their residuals and the steps taken.

    A step runs along the gradient, so its parallel transport to the new point is minus the logarithm back: no
    other transport is needed.
    """
    g = gradient(x)
    residual = vector_norm(g)
    step = np.full(len(x), first)
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
        # Finished groups stay as they are, bit for bit.
        new = np.where(active.reshape(-1, *(1,) * len(space.shape)), new, x)
        new_g = gradient(new)
        step = np.where(active, _next_step(-space.log_coords(new, x), new_g, step), 1.0)
        x, g = new, new_g
        residual = vector_norm(g)
        iterations += 1
    return x, residual, iterations


def _next_step(arrived: FloatArray, gradient: FloatArray, step: FloatArray) -> FloatArray:
    """Return the Barzilai-Borwein step after one of length `step` that arrived along `arrived` where `gradient` is."""
    change = gradient + arrived / step[:, None]
    slope = (arrived * change).sum(axis=-1)
    length = (arrived * arrived).sum(axis=-1)
    good = (slope > 0.05 * length) & (length > 0)
    return np.asarray(np.where(good, length / np.where(good, slope, 1.0), 1.0))


def _first_step(space: Manifold, points: Array) -> float:
    """Return the step that a few of many points ask for after a step of 1 from the origin; 1 where there are few.

    A step of 1 takes the mean Hessian to be the identity, which is right for small spreads only.
    """
    if len(points) < 4 * _TRIAL:
        return 1.0
    few = points[:: len(points) // _TRIAL]
    weights = np.full(len(few), 1 / len(few))
    move = space.weighted_log(space.origin, few, weights)[0]
    new = space.exp_coords(space.origin, shorten(move[None], min(0.45 * space.injectivity_radius, 10.0)))
    gradient = -space.weighted_log(new[0], few, weights)[0]
    return float(_next_step(-space.log_coords(new[0], space.origin)[None], gradient[None], np.ones(1))[0])


def _clip_iterates(space: Manifold, ball: Ball, x: Array) -> Array:
    """Keep iterates in the ball about the origin."""
    c = space.log_coords(space.origin, x)
    outside = vector_norm(c) > ball.radius
    if not outside.any():
        return x
    x = x.copy()
    x[outside] = space.exp_coords(space.origin, shorten(c[outside], ball.radius))
    return x


def safe_step_and_cap(ball: Ball, tol: float) -> tuple[float, int]:
    """Return the step of the safe descent and the number of steps that suffices (theory: solver).

    >>> from dpmanifold.manifolds import Sphere
    >>> step, cap = safe_step_and_cap(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.77), 1e-12)
    >>> step, cap < 120
    (1.0, True)
    """
    space, r = ball.space, ball.effective_radius
    low, _ = space.hessian_bounds(2 * r)
    _, high = space.hessian_bounds(r)
    step = 1 / high
    # 8/9: a step with a gradient that is wrong by at most a third still gains that share (theory: solver).
    rate = 1 - 8 / 9 * (1 - (1 - low) / 4) / high
    # |gradient|^2 <= 2 high (F - F*), and F - F* starts at r^2/2 at most.
    needed = math.log(max(high * r * r / tol**2, 2.0)) / -math.log(max(rate, EPS))
    # Twice as many, because the points themselves are rounded too.
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
        moved = _clip_iterates(space, ball, space.exp_coords(x, move))
        x = np.where((residual > goal).reshape(-1, *(1,) * len(space.shape)), moved, x)
        g = gradient(x)
        residual = vector_norm(g)
        iterations += 1
    return x, residual, iterations
