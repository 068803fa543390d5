"""What outputs of a mechanism on two neighbouring data sets prove about it: lower bounds with stated confidence.

An audit can refute a promise, never prove one. It sees the mechanism as a black box: solver, clipping and all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from dpmanifold._check import FloatArray, fraction
from dpmanifold.errors import InvalidArgumentError

Measure: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""What the probabilities of an event on two neighbouring data sets show; grows with the first, falls with the second.

It is asked where the first is the larger one; what it says elsewhere only ranks events.
"""

Counts: TypeAlias = npt.NDArray[np.intp]

# Probabilities are kept this far from 0 and 1 where a measure would be infinite.
_TINY = 1e-12
# Rényi orders, 1 among them, at which two probabilities are compared.
_ORDERS = 1 + np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 121)])


@dataclass(frozen=True)
class Certificate:
    """What an attack shows.

    Attributes
    ----------
    estimate : the measure at the observed frequencies
    lower : what it exceeds at the stated confidence, 0 or more
    """

    estimate: float
    lower: float


def advantage(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return p - q: how much more often than by chance somebody is right who guesses by the event.

    Examples
    --------
    >>> float(advantage(np.array(0.75), np.array(0.25)))
    0.5
    """
    return np.asarray(p - q)


def epsilon_of(delta: float = 0.0) -> Measure:
    """Return the measure log((p - delta)/q), which an (epsilon, delta)-promise keeps at epsilon or below.

    Examples
    --------
    >>> round(float(epsilon_of(0.0)(np.array(0.5), np.array(0.25))), 4)
    0.6931
    """
    return lambda p, q: np.asarray(np.log(np.maximum(p - delta, _TINY)) - np.log(np.maximum(q, _TINY)))


def mu_of(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return Phi^-1(p) - Phi^-1(q), which a GDP promise keeps at mu or below.

    Examples
    --------
    >>> round(float(mu_of(special.ndtr(np.array(0.5)), special.ndtr(np.array(-0.5)))), 6)
    1.0
    """
    inside = [np.clip(share, _TINY, 1 - _TINY) for share in (p, q)]
    return np.asarray(special.ndtri(inside[0]) - special.ndtri(inside[1]))


def rho_of(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the largest D_a(p, q)/a over Rényi orders a >= 1, which a zCDP promise keeps at rho or below.

    D_a is the divergence between events of these probabilities, which no order of the outputs' own falls below. It is 0
    here where p does not exceed q.

    Examples
    --------
    >>> 0.3 < float(rho_of(special.ndtr(np.array(0.5)), special.ndtr(np.array(-0.5)))) < 0.5    # a Gaussian of rho 1/2
    True
    """
    p, q = (np.clip(share, _TINY, 1 - _TINY)[..., None] for share in (p, q))
    order = _ORDERS[1:]
    logs = np.stack(
        np.broadcast_arrays(
            order * np.log(p) + (1 - order) * np.log(q), order * np.log1p(-p) + (1 - order) * np.log1p(-q)
        )
    )
    divergence = special.logsumexp(logs, axis=0) / (order - 1) / order
    kullback = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    largest = np.maximum(divergence.max(axis=-1), kullback[..., 0])
    return np.where(p[..., 0] > q[..., 0], largest, 0.0)


def certified_epsilon(
    first: npt.ArrayLike, second: npt.ArrayLike, *, delta: float = 0.0, confidence: float = 0.999
) -> float:
    """Return an epsilon that the mechanism does certainly exceed or equal, at the given confidence.

    The first half of the outputs picks the event (a threshold on the number that was computed from each output, in
    either direction), the second half tests it, with Clopper-Pearson bounds: (p - delta)/q <= e^epsilon must hold.

    Parameters
    ----------
    first, second : one number per output on either data set, shape (m,)
    delta : the promise's delta
    confidence : of the result, in (0, 1)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.laplace(0, 1, 20_000), rng.laplace(1, 1, 20_000)         # epsilon = 1
    >>> 0.8 < certified_epsilon(a, b) <= 1
    True
    """
    return certified(first, second, epsilon_of(delta), confidence=confidence).lower


def certified(
    first: npt.ArrayLike, second: npt.ArrayLike, measure: Measure, *, confidence: float = 0.999
) -> Certificate:
    """Return what the best event says that a promise bounds: an estimate, and a bound from below that is certain.

    As in :func:`certified_epsilon`: the first half of the outputs picks an event, the second half tests it.

    Parameters
    ----------
    first, second : one number per output on either data set, shape (m,)
    measure : what the probabilities p and q of an event show, such as `advantage`: grows with p and falls with q
    confidence : of the lower bound, in (0, 1)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = certified(rng.normal(0, 1, 20_000), rng.normal(1, 1, 20_000), mu_of)        # mu = 1
    >>> 0.8 < found.lower < found.estimate < 1.1
    True
    """
    a, b = _outputs(first, "first"), _outputs(second, "second")
    fraction(confidence, "confidence")
    half_a, half_b = a.size // 2, b.size // 2
    alpha = (1 - confidence) / 2
    sign, threshold, swapped = _best_event(a[:half_a], b[:half_b], measure, alpha)
    rest = (b[half_b:], a[half_a:]) if swapped else (a[half_a:], b[half_b:])
    hits = [np.array([(sign * x <= sign * threshold).sum()]) for x in rest]
    low, high = _at_least(hits[0], rest[0].size, alpha), _at_most(hits[1], rest[1].size, alpha)
    seen = [(count + 0.5) / (x.size + 1) for count, x in zip(hits, rest, strict=True)]
    return Certificate(_above_zero(measure, *seen), _above_zero(measure, low, high))


def _above_zero(measure: Measure, p: FloatArray, q: FloatArray) -> float:
    """Return what two probabilities show; nothing where the first is not the larger one."""
    return max(0.0, float(measure(p, q)[0])) if p > q else 0.0


def _at_least(hits: Counts, m: int, alpha: float) -> FloatArray:
    """Return what probabilities exceed but for a chance of alpha, from m trials each (Clopper and Pearson)."""
    return np.where(hits > 0, stats.beta.ppf(alpha, np.maximum(hits, 1), m - hits + 1), 0.0)


def _at_most(hits: Counts, m: int, alpha: float) -> FloatArray:
    """Return what probabilities stay below but for a chance of alpha."""
    return np.where(hits < m, stats.beta.ppf(1 - alpha, hits + 1, np.maximum(m - hits, 1)), 1.0)


def _best_event(a: FloatArray, b: FloatArray, measure: Measure, alpha: float) -> tuple[float, float, bool]:
    """Return the direction, threshold and order of the pair whose bounds show most: no event wins by luck alone."""
    best, choice = -math.inf, (1.0, 0.0, False)
    for swapped, (x, y) in ((False, (a, b)), (True, (b, a))):
        for sign in (1.0, -1.0):
            levels = np.quantile(sign * x, np.geomspace(2e-3, 0.9, 60))
            p, q = (np.searchsorted(np.sort(sign * seen), levels, side="right") for seen in (x, y))
            score = measure(_at_least(p, x.size, alpha), _at_most(q, y.size, alpha))
            i = int(np.argmax(score))
            if score[i] > best:
                best, choice = float(score[i]), (sign, float(sign * levels[i]), swapped)
    return choice


def _outputs(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < 100 or not np.isfinite(array).all():
        raise InvalidArgumentError(f"{name} must be at least 100 finite numbers, shape (m,), got shape {array.shape}.")
    return array
