"""Do the low bits of an output tell which of two data sets it came from: a classifier on what doubles look like.

Noise in real numbers leaves nothing in the last bits. Floating-point noise may: which doubles can occur, how many
trailing zeros they have and what is left of y - x depend on the statistic x. The classifier looks at every coordinate's
last bits and trailing zeros, at the gaps to the two candidate statistics in units of the last place, and at whether a
candidate gives the output back when its logarithm is taken and undone. It knows nothing of the sampler, and finds less
than whoever counts its random words (:mod:`dpmanifold.audit.floating_point_attack`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball

Labels = npt.NDArray[np.int64]

_LOW_BITS = 20
# Every feature is a whole number below this.
_KINDS = 64
# Added to every count: a look that was never seen on one side is no proof.
_PRIOR = 1.0
# Units in the last place are those of numbers of at least this size: 0 has none of use.
_LEAST = 2.0**-900
# Residuals are told apart up to this many units in the last place.
_FARTHEST = 8


def low_bit_scores(first: Array, second: Array, ball: Ball, statistics: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return one number per output, large where the low bits look like those of the first data set.

    The first half of the outputs on either side trains a naive Bayes classifier; scores of the second half are fair.

    Parameters
    ----------
    first, second : outputs on either data set, shapes (m, *space.shape)
    ball : the ball of the releases
    statistics : the two candidates in the ball's frame, which the attacker knows

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> rng = np.random.default_rng(0)
    >>> even, any_ = np.round(rng.normal(size=(400, 1)) * 2**30) / 2**30, rng.normal(size=(400, 1))
    >>> ball = Ball(Euclidean(1), [0.0], 1.0)
    >>> a, b = low_bit_scores(even, any_, ball, (np.zeros(1), np.ones(1)))
    >>> bool(a[200:].min() > b[200:].max())
    True
    """
    m, k = len(first), len(second)
    labels = _features(np.concatenate([first, second]), ball, statistics)
    trained = np.zeros(m + k, dtype=bool)
    trained[: m // 2] = trained[m : m + k // 2] = True
    ours = np.arange(m + k) < m
    score = np.zeros(m + k)
    for label in labels:
        counts = [
            np.bincount(label[trained & side], minlength=_KINDS).astype(np.float64) + _PRIOR for side in (ours, ~ours)
        ]
        weight = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
        score += weight[label]
    return score[:m], score[m:]


def _features(values: Array, ball: Ball, statistics: tuple[Array, Array]) -> list[Labels]:
    """Return what outputs look like: whole numbers from 0 to _KINDS - 1, an array (m,) for each feature."""
    numbers = _numbers(values)
    # The columns without copies: a symmetric matrix tells nothing twice.
    columns = np.sort(np.unique(numbers.view(np.int64), axis=1, return_index=True)[1])
    found: list[Labels] = []
    for number in numbers[:, columns].T:
        bits = number.view(np.int64)
        found += [*((bits >> shift) & 15 for shift in range(0, _LOW_BITS, 4)), _trailing_zeros(number)]
    for statistic in statistics:
        point = _numbers(ball.from_frame(statistic[None]))[0]
        back = _numbers(_there_and_back(values, ball, statistic))
        for column in columns:
            number, there = numbers[:, column], point[column]
            gap, unit = number - there, np.spacing(np.maximum(np.abs(number), _LEAST))
            residual = (back[:, column] - number) / unit
            found += [
                _trailing_zeros(gap),
                np.rint(np.clip(np.abs(gap) / unit, 0, 2.0**52)).astype(np.int64) & 63,
                _multiple(number, np.spacing(max(abs(there), _LEAST))),
                (np.clip(np.nan_to_num(residual), -_FARTHEST, _FARTHEST) + _FARTHEST).astype(np.int64),
            ]
    return found


def _there_and_back(values: Array, ball: Ball, statistic: Array) -> Array:
    """Return the outputs again, from their coordinates at a candidate: rounding is the same for the right one alone."""
    frame, space = ball.frame, ball.space
    with np.errstate(all="ignore"):
        inside = space.into_frame(ball.center, values)
        return ball.from_frame(frame.exp_coords(statistic, frame.log_coords(statistic, inside)))


def _numbers(values: Array) -> FloatArray:
    """Return points as rows of doubles, complex ones as two each."""
    rows = np.ascontiguousarray(values).reshape(len(values), -1)
    return np.asarray(rows.view(np.float64) if np.iscomplexobj(rows) else rows, dtype=np.float64) + 0.0


def _trailing_zeros(number: FloatArray) -> Labels:
    """Count the trailing zero bits of significands, 53 for 0."""
    whole = (np.frexp(np.abs(number))[0] * 2.0**53).astype(np.int64)
    lowest = whole & -whole
    return np.where(whole == 0, 53, np.frexp(lowest.astype(np.float64))[1] - 1).astype(np.int64)


def _multiple(number: FloatArray, unit: float) -> Labels:
    """Return whether doubles are multiples of a power of two, and of its halves, quarters and eighths."""
    return np.asarray(np.sum([np.fmod(number, unit / 2**k) == 0 for k in range(4)], axis=0), dtype=np.int64)
