"""The solver behind Fréchet means: many means at once, to a public tolerance (theory: solver). Not private.

Riemannian gradient descent, x <- exp_x(-t grad F(x)), as for Karcher means. Gradients are sums over points in one
array, or in many places; sums are exact.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import ConvergenceError
from dpmanifold.frechet.map_reduce import OverPoints, Part, Sample, merged, over, sample_of, sampling, unpacked
from dpmanifold.frechet.tolerances import reach
from dpmanifold.linalg.cards.arrays import is_card_array
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.linalg.log_sums import longest_triangle
from dpmanifold.linalg.native.library import card_in_use
from dpmanifold.manifolds.base import EPS, Manifold, shorten, vector_norm
from dpmanifold.progress import quietly

# The bound of sums of points that all are at the origin.
_SMALLEST_BOUND = 1e-200

# The first step of a solver is tried on about so many points, and not if they come to more than four times as many.
TRIAL = 256
MOST_TRIED = 4 * TRIAL


class Summands(ABC):
    """Points in groups, to be added up as logarithms at one base point for each group.

    Attributes
    ----------
    n : how many there are
    counts : (groups,), how many points each group has
    shares : whether sums are weighted by shares that add up to 1
    """

    n: int
    counts: Array
    shares: bool = False

    @abstractmethod
    def sums(self, x: Array, active: Array | None, at: object) -> FloatArray:
        """Return sums of logarithms at x, (groups, dim); with `active`, a boolean each, for these groups alone.

        `at` is what the space makes of x.
        """

    def some(self) -> Array:
        """Return about TRIAL points of the only group, packed, chosen by their own bits; any, if over MOST_TRIED."""
        raise NotImplementedError  # pragma: no cover - asked for one group alone


class Stored(Summands):
    """Points in one array, by groups or all in one, with weights that add up to 1 in each group or without.

    Parameters are those of :func:`~dpmanifold.frechet.solver.solve_groups`.
    """

    def __init__(
        self,
        space: Manifold,
        ball: Ball | None,
        points: Array,
        weights: FloatArray | None,
        group: Array | None,
        groups: int,
    ) -> None:
        self._space, self.n = space, len(points)
        packed = space.pack(points) if points.shape[1:] == space.shape else points
        self._there = is_card_array(packed)
        self._stored = packed if self._there else np.ascontiguousarray(packed)
        self._group = None if group is None else np.ascontiguousarray(group, dtype=np.int64)
        self.counts = np.full(1, self.n) if self._group is None else np.bincount(self._group, minlength=groups)
        equal = 1 / np.maximum(self.counts, 1)
        if weights is not None and np.array_equal(weights, equal[np.zeros(self.n, int) if group is None else group]):
            weights = None
        self._weights, self.shares = weights, weights is not None
        self._spread: float | None = None  # the farthest point's distance from the origin, where no ball bounds it
        self._reach = None if ball is None else reach(ball)

    def sums(self, x: Array, active: Array | None, at: object) -> FloatArray:
        """Add them up in one pass."""
        rows = None
        if active is not None and self._group is not None and not active.all():
            rows = np.flatnonzero(active[self._group])
        space, bound = self._space, self._bound(x)
        if self._weights is not None:
            return space.log_sums(x, self._stored, bound, group=self._group, rows=rows, weights=self._weights)
        return space.from_log_words(x, space.log_words(at, self._stored, bound, group=self._group, rows=rows))

    def _bound(self, x: Array) -> float:
        """Return what no logarithm of a point at x exceeds: public with a ball."""
        space = self._space
        if self._reach is not None:
            return self._reach
        if self._spread is None and self._there and card_in_use(lies_there=True):
            self._spread = longest_triangle(self._stored)
        if self._spread is None:
            self._spread = max(float(space.dist(space.origin, part).max()) for part in unpacked(space, self._stored))
        # Nothing is private here, and a maximum does not depend on the order either; 1 % for rounding.
        return max(1.01 * (self._spread + float(space.dist(space.origin, x).max())), _SMALLEST_BOUND)

    def some(self) -> Array:
        """Choose them."""
        sample = sample_of(MOST_TRIED + 1, self._stored)
        return self._stored[:0] if sample is None else sample.below(TRIAL / self.n)


class Spread(Summands):
    """The points of one group, in parts that open as packed points of a ball's frame, in arrays of any size.

    Parameters
    ----------
    ball : in whose frame the points are
    parts : where they are
    n : how many there are
    sample : some of them, by a pass of :func:`sampling`, where one was made already
    """

    def __init__(self, ball: Ball, parts: Sequence[Part], n: int, sample: Sample | None = None) -> None:
        self._ball, self._parts, self.n, self._sample = ball, parts, n, sample
        self._bound = reach(ball)
        self.counts = np.full(1, n)

    def sums(self, x: Array, active: Array | None, at: object) -> FloatArray:
        """Broadcast the base point and merge the integers that come back."""
        frame = self._ball.frame
        with quietly():  # how many passes there are is data
            words = over(OverPoints(partial(_log_words, frame, at, self._bound), merged), self._parts, self.n)
        return frame.from_log_words(x, ExactSum(frame.dim, self._bound) if words is None else words)

    def some(self) -> Array:
        """Choose within every part, and then among those."""
        if self._sample is None:
            with quietly():
                self._sample = over(sampling(MOST_TRIED + 1), self._parts, self.n)
        assert self._sample is not None  # there are points
        return self._sample.below(TRIAL / self.n)


def _log_words(space: Manifold, at: object, bound: float, stored: Array) -> ExactSum | None:
    """Return exact sums of logarithms at one base point, (1, *shape), or what the space made of it."""
    return space.log_words(at, stored, bound) if len(stored) else None


# Numbers held by one block of points: bounds the memory of a pass whatever n is (32 MiB of doubles).
_BLOCK = 4_194_304

# Barzilai-Borwein steps before the safe descent takes over; they need 5 to 12 on ordinary data.
_FAST_STEPS = 40

# Up to so many numbers in the points, a fixed number of gradients is taken.
_FIXED_WORK = 200_000


def blocks(n: int, space: Manifold) -> list[slice]:
    """Cut n records into slices whose working arrays stay within the memory bound."""
    step = max(1, _BLOCK // (8 * max(space.dim, math.prod(space.shape))))
    return [slice(start, start + step) for start in range(0, n, step)]


@dataclass(frozen=True)
class Solved:
    """Means in the solver's frame, their computed gradient norms, and the iterations taken."""

    points: Array
    residuals: FloatArray
    iterations: int


def solve_groups(
    space: Manifold,
    ball: Ball | None,
    points: Array | Summands,
    weights: FloatArray | None,
    group: Array | None,
    groups: int,
    tol: float,
    max_iter: int,
    strict: bool = True,
    first: FloatArray | None = None,
) -> Solved:
    """Solve `groups` means at once, starting from the origin. What comes out does not depend on the order of points.

    With `strict`, the tolerance is met or ConvergenceError raised; without, the last points are taken as they are.

    Parameters
    ----------
    space : the frame
    ball : the ball about the frame's origin that holds the points, or None
    points : (n, *shape), or packed by `space.pack`; trusted. Or what knows of them, weights and groups
    weights : (n,), adding up to 1 in every group; None for equal ones
    group : (n,), where each point belongs; None where there is one group
    groups : how many there are
    tol, max_iter, strict : when to stop
    first : (groups, dim), the sums of logarithms at the origin, where they are known already
    """
    gradient = _Gradient(space, ball, points, weights, group if groups > 1 else None, groups, first)
    if space.is_flat:
        return Solved(-gradient(np.broadcast_to(space.origin, (groups, *space.shape))), np.zeros(groups), 0)

    # Half the tolerance is met by the computed gradient; the other half covers its rounding error.
    goal = tol / 2
    start = np.broadcast_to(space.origin, (groups, *space.shape)).copy()
    limit = _FAST_STEPS if ball is not None else max_iter
    least = (
        0
        if ball is None or groups > 1
        else fixed_steps(ball, points.n if isinstance(points, Summands) else len(points), tol)
    )
    x, residual, iterations = _fast_descent(space, ball, gradient, start, goal, limit, gradient.first_step(), least)
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


class _Gradient:
    """Gradients of F for each group, by exact sums: the order of the points leaves no trace."""

    def __init__(
        self,
        space: Manifold,
        ball: Ball | None,
        points: Array | Summands,
        weights: FloatArray | None,
        group: Array | None,
        groups: int,
        first: FloatArray | None,
    ) -> None:
        self._space, self._ball, self._groups, self._known = space, ball, groups, first
        self._at: object = None  # what the space made of the last base points
        self._summands = points if isinstance(points, Summands) else Stored(space, ball, points, weights, group, groups)
        self._counts = np.maximum(self._summands.counts, 1)[:, None].astype(np.float64)

    def __call__(self, x: Array, active: Array | None = None) -> FloatArray:
        """Return the gradients at x, (groups, dim); with `active`, those of these groups alone, the others 0."""
        if self._known is not None:
            sums, self._known = self._known, None  # asked for at the origin, once, before anything else
        else:
            self._at = self._space.at(x)
            sums = self._summands.sums(x, active, self._at)
        return np.asarray(-sums if self._summands.shares else -(sums / self._counts))

    def back(self, active: Array, new: Array, here: Array) -> FloatArray:
        """Return the coordinates of `here` at the active groups' points, where a gradient was just taken."""
        return self._space.log_coords_at(self._at, active, new, here)

    def first_step(self) -> float:
        """Return the step that some of many points ask for after a step of 1 from the origin; 1 where there are few.

        A step of 1 takes the mean Hessian to be the identity, which is right for small spreads only. Which points are
        tried is decided by their own bits: so it depends neither on their order nor on where they are.
        """
        if self._groups > 1 or self._summands.n < MOST_TRIED:
            return 1.0
        few = self._summands.some()
        if not 16 <= len(few) <= MOST_TRIED:
            return 1.0
        space, trial = self._space, _Gradient(self._space, self._ball, few, None, None, 1, None)
        start = space.origin[None]
        longest = min(0.45 * space.injectivity_radius, 10.0)
        new = space.exp_coords(start, shorten(-trial(start), longest))
        if self._ball is not None:
            new = _clip_iterates(space, self._ball, new)
        return float(_next_step(-space.log_coords(new, start), trial(new), np.ones(1))[0])


def fixed_steps(ball: Ball, n: int, tol: float) -> int:
    """Return how many gradients are taken at least, from public numbers alone; 0 where that would cost too much.

    Enough for ordinary data, so that running time tells little about them (theory: solver).

    >>> from dpmanifold.manifolds import Sphere
    >>> ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5)
    >>> fixed_steps(ball, 1000, 1e-12), fixed_steps(ball, 10**6, 1e-12)
    (14, 0)
    """
    if n * math.prod(ball.space.shape) > _FIXED_WORK:
        return 0
    low, high = ball.space.hessian_bounds(2 * ball.radius)
    rate = max((high - low) / (high + low), 0.01)
    return min(_FAST_STEPS, 4 + math.ceil(math.log(2 * ball.radius / tol) / (2 * -math.log(rate))))


def _fast_descent(
    space: Manifold,
    ball: Ball | None,
    gradient: _Gradient,
    x: Array,
    goal: float,
    limit: int,
    first: float,
    least: int = 0,
) -> tuple[Array, FloatArray, int]:
    """Take Barzilai-Borwein steps from x; returns the last points, their residuals and the steps taken.

    A step runs along the gradient, so its parallel transport to the new point is minus the logarithm back: no
    other transport is needed. Groups that are done stay as they are, bit for bit, and are not looked at again.
    Gradients beyond the last one needed are taken up to `least`, and thrown away.
    """
    g = gradient(x)
    residual = vector_norm(g)
    step = np.full(len(x), first)
    longest = math.inf if ball is None else 2 * ball.radius
    longest = min(longest, 0.45 * space.injectivity_radius, 10.0)
    iterations = 0
    while iterations < limit and (residual > goal).any():
        active = residual > goal
        here, slope = x[active], g[active]
        length = np.minimum(step[active], longest / np.maximum(residual[active], longest * EPS))
        new = space.exp_coords(here, -length[:, None] * slope)
        if ball is not None:
            new = _clip_iterates(space, ball, new)
        x = x.copy()
        x[active] = new
        new_g = gradient(x, active)
        step[active] = _next_step(-gradient.back(active, new, here), new_g[active], length)
        g[active] = new_g[active]
        residual = vector_norm(g)
        iterations += 1
    for _ in range(iterations, least):
        gradient(x)
    return x, residual, iterations


def _next_step(arrived: FloatArray, gradient: FloatArray, step: FloatArray) -> FloatArray:
    """Return the Barzilai-Borwein step after one of length `step` that arrived along `arrived` where `gradient` is."""
    change = gradient + arrived / step[:, None]
    slope = (arrived * change).sum(axis=-1)
    length = (arrived * arrived).sum(axis=-1)
    good = (slope > 0.05 * length) & (length > 0)
    return np.asarray(np.where(good, length / np.where(good, slope, 1.0), 1.0))


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
    space: Manifold, ball: Ball, gradient: _Gradient, x: Array, goal: float
) -> tuple[Array, FloatArray, int]:
    """Descend from the ball's centre with the step and the cap of the theory."""
    step, cap = safe_step_and_cap(ball, goal)
    x, g = x.copy(), gradient(x)
    residual = vector_norm(g)
    iterations = 0
    while iterations < cap and (residual > goal).any():
        active = residual > goal
        x[active] = _clip_iterates(space, ball, space.exp_coords(x[active], -step * g[active]))
        g[active] = gradient(x, active)[active]
        residual = vector_norm(g)
        iterations += 1
    return x, residual, iterations
