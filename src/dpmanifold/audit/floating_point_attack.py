"""Which random words give exactly the doubles that left: the likelihood of an output under floating-point noise.

A double y = x + noise that a program computes comes from finitely many words of random bits. For two candidate
statistics x and x' somebody who knows the program counts the words that lead to y from either. In real numbers the two
likelihoods differ by what the promise allows; in doubles one of them may be 0, and every coordinate tells again. Exact
noise (rounded once, from real numbers) leaves nothing to count: the candidates then fit equally often.

What is counted here are the words of :class:`dpmanifold.noise.source.RandomSource`, for normal noise on vectors and for
Laplace noise on numbers. A draw is a monotone function of one uniform u, a double whose probability is the gap above
it, so that only the few doubles about the solution of x + scale z(u) = y have to be tried.

On a curved space a wrapped mechanism adds noise to coordinates and maps them to the space. Whoever sees the point takes
its logarithm, tries the doubles next to it, keeps those that the program maps to exactly this point, and counts the
words behind each of them. There are (2 reach + 1)^d neighbours: this is for few dimensions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from dpmanifold._check import Array, FloatArray, positive_float, positive_int, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError

# Doubles on either side of the solution that are tried besides those it needs: what inverses are off by, and what is
# added to that per unit of their condition.
_MARGIN, _MARGIN_PER_CONDITION = 32, 16
# Where more words than this lead to one double their number is as good as their share: no gap is left to see.
_MANY = 512
# Log ratios are cut here: beyond e^50 nothing is left to tell.
CERTAIN = 50.0
_TRIED_AT_ONCE = 4_000_000
_LARGEST_BELOW_ONE = np.float64(1.0).view(np.int64) - 1
_SMALLEST_NORMAL = np.float64(2.0**-1022).view(np.int64)


@dataclass(frozen=True)
class _Half:
    """One half of the law of |noise|/scale, as a function of a uniform, with its inverse and the inverse's condition.

    The functions are those of `RandomSource`, operation by operation: an audit of a copy would find nothing.
    """

    of_uniform: Callable[[FloatArray], FloatArray]
    to_uniform: Callable[[FloatArray], FloatArray]
    condition: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class _Law:
    """A symmetric law drawn by inversion from its own end in either half."""

    middle: float
    inner: _Half
    outer: _Half
    density: Callable[[FloatArray], FloatArray]


_LAWS = {
    "gaussian": _Law(
        float(special.ndtri(0.75)),
        _Half(
            lambda u: math.sqrt(2) * special.erfinv(u / 2),
            lambda z: 2 * special.erf(z / math.sqrt(2)),
            np.ones_like,
        ),
        _Half(lambda u: -special.ndtri(u / 4), lambda z: 4 * special.ndtr(-z), np.square),
        lambda z: np.exp(-z * z / 2) / math.sqrt(2 * math.pi),
    ),
    "laplace": _Law(
        math.log(2),
        _Half(lambda u: -np.log1p(-(u / 2)), lambda z: -2 * np.expm1(-z), np.ones_like),
        _Half(lambda u: -np.log(u / 2), lambda z: 2 * np.exp(-z), lambda z: z),
        lambda z: np.exp(-z) / 2,
    ),
}


def word_log_likelihood(
    outputs: npt.ArrayLike,
    statistic: npt.ArrayLike,
    scale: float,
    *,
    law: str = "gaussian",
    center: npt.ArrayLike = 0.0,
) -> FloatArray:
    """Return the log probability that floating-point noise on `statistic` gives exactly these doubles.

    Parameters
    ----------
    outputs : doubles that left, shape (m, d)
    statistic : the candidate, shape (d,) or one per output (m, d): the doubles that noise would have been added to
    scale : of the noise
    law : "gaussian" (any d) or "laplace" (d = 1)
    center : what the program adds last, shape (d,) or a number: outputs are center + (statistic + noise)

    Returns
    -------
    array, shape (m,); minus infinity where no word of random bits leads from the candidate to the output

    Examples
    --------
    >>> from dpmanifold.noise.source import SimulationSource
    >>> y = 0.1 + SimulationSource(0).normal((1000, 3)) * 2.0
    >>> own, other = (word_log_likelihood(y, [x, x, x], 2.0) for x in (0.1, -0.1))
    >>> bool(np.isfinite(own).all()), float(np.mean(other == -np.inf)) > 0.4
    (True, True)
    """
    y, x = np.asarray(outputs, dtype=np.float64), np.asarray(statistic, dtype=np.float64)
    if y.ndim != 2 or x.shape not in (y.shape, y.shape[1:]):
        raise InvalidArgumentError(
            f"outputs must have shape (m, d) and statistic (d,) or (m, d), got {y.shape} and {x.shape}. Reshape them."
        )
    if not isinstance(law, str) or law not in _LAWS or (law == "laplace" and y.shape[1] != 1):
        raise InvalidArgumentError(
            f'law must be "gaussian", or "laplace" with d = 1, got {shown(law)} with d = {y.shape[1]}.'
        )
    scale = positive_float(scale, "scale")
    about, shift = (np.broadcast_to(numbers, y.shape).ravel() for numbers in (x, np.asarray(center, dtype=np.float64)))
    share = _shares(y.ravel(), about, shift, scale, _LAWS[law])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share).reshape(y.shape).sum(axis=1))


def word_log_ratio(
    outputs: npt.ArrayLike, first: npt.ArrayLike, second: npt.ArrayLike, scale: float, **how: Any
) -> FloatArray:
    """Return by how much `first` explains the doubles better than `second`: a log ratio cut at 50 on either side.

    It is 0 where neither explains them: the noise was then not drawn in doubles.

    Parameters
    ----------
    outputs, scale, how : as in :func:`word_log_likelihood`
    first, second : the two candidates

    Examples
    --------
    >>> word_log_ratio([[0.25]], [0.125], [0.125], 1.0)
    array([0.])
    """
    ours, theirs = (word_log_likelihood(outputs, candidate, scale, **how) for candidate in (first, second))
    with np.errstate(invalid="ignore"):
        return np.clip(np.nan_to_num(ours - theirs, nan=0.0), -CERTAIN, CERTAIN)


def _shares(y: FloatArray, x: FloatArray, shift: FloatArray, scale: float, law: _Law) -> FloatArray:
    """Return the share of the words with shift + (x + noise) == y, one for each entry."""
    # The reals that round to y, a little generously, as values of noise/scale.
    moved = y - shift
    room = (np.spacing(np.abs(y)) + np.spacing(np.abs(moved)) + np.spacing(np.abs(x))) / scale
    z = (moved - x) / scale
    size, sign = np.abs(z), np.where(z < 0, -1.0, 1.0)
    share = law.density(size) * np.spacing(np.abs(y)) / scale
    for half, mine in ((law.inner, size <= law.middle), (law.outer, size > law.middle)):
        which = np.flatnonzero(mine)
        ends = half.to_uniform(np.maximum(size[which] - room[which], 0.0)), half.to_uniform(size[which] + room[which])
        low, high = (np.clip(u, 2.0**-1022, 1.0).view(np.int64) for u in (np.minimum(*ends), np.maximum(*ends)))
        margin = _MARGIN + (_MARGIN_PER_CONDITION * half.condition(size[which])).astype(np.int64)
        few = high - low <= _MANY
        tried = which[few]
        windows = (low - margin)[few], (high - low + 2 * margin + 1)[few]
        share[tried] = _counted(y[tried], x[tried], shift[tried], sign[tried] * scale, half, *windows)
    return share


def _counted(
    y: FloatArray,
    x: FloatArray,
    shift: FloatArray,
    scale: FloatArray,
    half: _Half,
    low: npt.NDArray[np.int64],
    width: npt.NDArray[np.int64],
) -> FloatArray:
    """Try the doubles u of each window and add up the probabilities of those that give y; scales carry the sign."""
    found = np.zeros_like(y)
    if y.size == 0:
        return found
    offset = np.arange(int(width.max()))
    step = max(1, _TRIED_AT_ONCE // offset.size)
    for start in range(0, y.size, step):
        part = slice(start, start + step)
        bits = low[part, None] + offset
        valid = (bits >= _SMALLEST_NORMAL) & (bits <= _LARGEST_BELOW_ONE) & (offset < width[part, None])
        u = np.clip(bits, _SMALLEST_NORMAL, _LARGEST_BELOW_ONE).view(np.float64)
        reached = shift[part, None] + (x[part, None] + half.of_uniform(u) * scale[part, None])
        # A quarter for the sign and the half; a uniform's probability is the gap above it.
        found[part] = (np.spacing(u) * (valid & (reached == y[part, None]))).sum(axis=1) / 4
    return found


# -------------------------------------------------------------------- behind a point of a curved space


# Points that are tried at a time, and for one output at most.
_POINTS_AT_ONCE, _MOST_NEIGHBOURS = 200_000, 20_000


def tangent_word_log_ratio(
    values: Array, ball: Ball, first: Array, second: Array, scale: float, *, reach: int = 4
) -> FloatArray:
    """Return by how much `first` explains released points better than `second`, under wrapped normal noise in doubles.

    As :func:`word_log_ratio`; 0 where none of the neighbours of a point's logarithm is mapped to it.

    Parameters
    ----------
    values : released points, shape (m, *space.shape)
    ball : the ball of the releases, on a flat or Hadamard space
    first, second : the two candidate means, in the ball's frame
    scale : of the noise
    reach : how many doubles to try on either side of each coordinate; (2 reach + 1)^dim may be 20,000 at most

    Examples
    --------
    >>> from dpmanifold.manifolds import Hyperbolic
    >>> from dpmanifold.noise import WrappedGaussian
    >>> space = Hyperbolic(2)
    >>> ball = Ball(space, space.origin, 1.0)
    >>> a, b = space.exp_coords(space.origin, np.array([[0.3, 0.1], [-0.2, 0.05]]))
    >>> draws = space.project(WrappedGaussian(space, space.origin, a, 1.0).sample(100, rng=0))
    >>> bool((tangent_word_log_ratio(draws, ball, a, b, 1.0) > 0).mean() > 0.7)
    True
    """
    frame, space, d = ball.frame, ball.space, ball.frame.dim
    reach = positive_int(reach, "reach")
    if not space.is_hadamard or (2 * reach + 1) ** d > _MOST_NEIGHBOURS:
        raise InvalidArgumentError(
            f"points of a flat or Hadamard space of few dimensions can be attacked this way, got {space!r} with "
            f"reach = {reach}: {2 * reach + 1}^{d} neighbours. Use low_bit_scores."
        )
    with np.errstate(all="ignore"):
        near = _coords(values, ball)
    offsets = np.arange(-reach, reach + 1)
    grid = near[..., None] + np.spacing(np.abs(near))[..., None] * offsets
    steps = np.array(list(itertools.product(range(offsets.size), repeat=d)))
    logs = [
        _log_shares(grid, x if space.is_flat else frame.log_coords(frame.origin, x), scale) for x in (first, second)
    ]
    ratio = np.zeros(len(values))
    block = max(1, _POINTS_AT_ONCE // len(steps))
    for start in range(0, len(values), block):
        part = slice(start, start + block)
        tried = grid[part][:, np.arange(d), steps]
        with np.errstate(all="ignore"):
            points = ball.from_frame(tried if space.is_flat else frame.exp_coords(frame.origin, tried))
        same = (points == values[part, None]).reshape(*points.shape[:2], -1).all(axis=-1)
        ours, theirs = (_total(log[part][:, np.arange(d), steps].sum(axis=-1), same) for log in logs)
        with np.errstate(invalid="ignore"):
            ratio[part] = np.clip(np.nan_to_num(ours - theirs, nan=0.0), -CERTAIN, CERTAIN)
    return ratio


def _coords(values: Array, ball: Ball) -> FloatArray:
    """Return what the noisy coordinates were, but for rounding."""
    if ball.space.is_flat:
        return ball.space.log_coords(ball.center, values)
    return ball.frame.log_coords(ball.frame.origin, ball.space.to_origin(ball.center, values))


def _log_shares(grid: FloatArray, x: FloatArray, scale: float) -> FloatArray:
    """Return the log share of the words behind every double of the grid (m, d, k), for the candidate x (d,)."""
    about = np.broadcast_to(x[:, None], grid.shape)
    return word_log_likelihood(grid.reshape(-1, 1), about.reshape(-1, 1), scale).reshape(grid.shape)


def _total(logs: FloatArray, same: Array) -> FloatArray:
    """Return the log of the sum over those neighbours that are mapped to the point."""
    with np.errstate(divide="ignore"):
        return np.asarray(special.logsumexp(np.where(same, logs, -np.inf), axis=1))
