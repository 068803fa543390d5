"""The random words behind a point of a curved space: noise in a tangent space, carried over by the exponential.

A wrapped mechanism adds noise to coordinates and maps them to the space. Whoever sees the point takes its logarithm,
tries the doubles next to it, keeps those that the program maps to exactly this point, and counts the random words
behind each of them (:mod:`dpmanifold.audit.words`). There are (2 reach + 1)^d neighbours: this is for few dimensions.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import special

from dpmanifold._check import Array, FloatArray, positive_int
from dpmanifold.audit.words import CERTAIN, word_log_likelihood
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError

# Points that are tried at a time, and for one output at most.
_TRIED_AT_ONCE, _MOST = 200_000, 20_000


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
    if not space.is_hadamard or (2 * reach + 1) ** d > _MOST:
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
    block = max(1, _TRIED_AT_ONCE // len(steps))
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
