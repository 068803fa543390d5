"""What outputs of a mechanism on two neighbouring data sets prove about it: lower bounds with stated confidence.

An audit can refute a promise, never prove one. It sees the mechanism as a black box: solver, clipping and all.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import stats

from dpmanifold._check import FloatArray, fraction
from dpmanifold.errors import InvalidArgumentError


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
    a, b = _outputs(first, "first"), _outputs(second, "second")
    fraction(confidence, "confidence")
    half_a, half_b = a.size // 2, b.size // 2
    sign, threshold, swapped = _best_event(a[:half_a], b[:half_b], delta)
    rest = (b[half_b:], a[half_a:]) if swapped else (a[half_a:], b[half_b:])
    hits = [int((sign * x <= sign * threshold).sum()) for x in rest]
    alpha = (1 - confidence) / 2
    low = float(stats.beta.ppf(alpha, hits[0], rest[0].size - hits[0] + 1)) if hits[0] else 0.0
    high = float(stats.beta.ppf(1 - alpha, hits[1] + 1, rest[1].size - hits[1])) if hits[1] < rest[1].size else 1.0
    return math.log((low - delta) / high) if low - delta > high else 0.0


def observed_delta(log_ratio: npt.ArrayLike, epsilon: float, *, confidence: float = 0.999) -> tuple[float, float]:
    """Return the Monte Carlo estimate of delta(epsilon) and an upper confidence bound, from privacy losses.

    delta(epsilon) = E[(1 - e^(epsilon - loss))_+] for losses log p(x)/q(x) at x drawn from p. The summands lie in
    [0, 1]; the bound is Hoeffding's or Clopper and Pearson's for the event loss > epsilon, whichever is smaller.

    Parameters
    ----------
    log_ratio : losses at draws from the first data set, shape (m,)
    epsilon : of the promise
    confidence : of the bound

    Examples
    --------
    >>> observed_delta(np.zeros(1000), 0.5)[0]
    0.0
    """
    loss = _outputs(log_ratio, "log_ratio")
    summand = np.clip(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0, 1.0)
    m, alpha = loss.size, 1 - confidence
    hoeffding = float(summand.mean()) + math.sqrt(math.log(1 / alpha) / (2 * m))
    hits = int((loss > epsilon).sum())
    share = float(stats.beta.ppf(1 - alpha, hits + 1, m - hits)) if hits < m else 1.0
    return float(summand.mean()), min(hoeffding, share)


def _best_event(a: FloatArray, b: FloatArray, delta: float) -> tuple[float, float, bool]:
    """Return the direction, threshold and order of the pair whose observed ratio is largest."""
    best, choice = -math.inf, (1.0, 0.0, False)
    for swapped, (x, y) in ((False, (a, b)), (True, (b, a))):
        for sign in (1.0, -1.0):
            levels = np.quantile(sign * x, np.geomspace(2e-3, 0.9, 60))
            p = np.searchsorted(np.sort(sign * x), levels, side="right") / x.size
            # One more hit than seen: a threshold that nothing on the other side passed is no proof of infinity.
            q = (np.searchsorted(np.sort(sign * y), levels, side="right") + 1) / y.size
            # A margin of a standard error keeps events apart that are large by luck.
            score = np.log(np.maximum(p - delta - 2 * np.sqrt(p / x.size), 1e-12)) - np.log(q + 2 * np.sqrt(q / y.size))
            i = int(np.argmax(score))
            if score[i] > best:
                best, choice = float(score[i]), (sign, float(sign * levels[i]), swapped)
    return choice


def _outputs(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < 100 or not np.isfinite(array).all():
        raise InvalidArgumentError(f"{name} must be at least 100 finite numbers, shape (m,), got shape {array.shape}.")
    return array
