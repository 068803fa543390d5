"""Covariances that were estimated, some of them with noise, and what an error measured by them stays below.

Hotelling's T^2 law for few units, an allowance of second order for the noise (theory section 7, region). Public and
released numbers come in, nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from scipy import special

from dpmanifold._check import FloatArray
from dpmanifold.linalg import symmetrize

# From here on the F distribution is a chi-square to all digits that matter.
MANY = 1e7
# Probabilities below this one are not told apart: their quantiles would end at infinity.
_LEAST = 1e-300
# The noise that bounds of a second moment allow for in low dimension, where the semicircle says little: one in twenty.
_USUAL = 0.05


def _edge(dim: int) -> float:
    """Return the expected operator norm of noise: the semicircle's edge, less its first correction."""
    return math.sqrt(2 * dim) - 0.85 / math.pow(dim, 1 / 6)


def _second_order(dim: int, tail: float, count: int = 1) -> float:
    """Return (d + c)/4, c the chi-square quantile at `tail`: what small noise of variance 1 must add, over x.

    Where the squared lengths of `count` errors are added up, c is that of their sum, and its weight follows from the
    same expansion (theory: k-sample).
    """
    quantile = float(special.chdtri(count * dim, max(tail, _LEAST)))
    return max((dim + 1 - count + (count + dim + 1) / (count * dim + 2) * quantile) / 4, 0.25)


def spectral_noise(scale: float, dim: int) -> float:
    """Return the operator norm to allow for in symmetric noise of standard deviation `scale` on vecd.

    Examples
    --------
    >>> round(spectral_noise(1.0, 2), 3), round(spectral_noise(1.0, 45), 3)
    (1.413, 9.036)
    """
    return scale * max(_edge(dim), math.sqrt(_second_order(dim, _USUAL)))


def safe_variances(values: FloatArray, noise: float, tail: float, count: int = 1) -> FloatArray:
    """Return eigenvalues of a covariance that was estimated with noise, enlarged so that dividing by them is safe.

    An eigenvalue x becomes x + b s^2/(x + b s/k) with b = (d + c)/4, c the chi-square quantile at `tail`. Where the
    noise is small, what is added is of second order, as much as keeps the level asked for; where it swamps x, its own
    size k s takes its place (theory section 7, region). It grows as `tail` falls.

    Parameters
    ----------
    values : eigenvalues, (d,)
    noise : s, the standard deviation of the noise on vecd
    tail : the probability to be outside, 1 - level
    count : of how many errors the squared lengths are added up

    Examples
    --------
    >>> safe_variances(np.array([0.0, 1.0, 99.0]), 1.0, 0.05).round(3)
    array([ 1.742,  2.059, 99.027])
    """
    values = np.maximum(values, 0.0)
    if noise == 0:
        return values
    b = _second_order(len(values), tail, count)
    size = max(_edge(len(values)), math.sqrt(b))
    return np.asarray(values + noise * (b / (values / noise + b / size)))


def _spectrum(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors, the former not below what rounding leaves of them: to divide by, without fail."""
    values, vectors = np.linalg.eigh(covariance)
    return np.maximum(values, max(np.finfo(float).eps * float(values[-1]), np.finfo(float).tiny)), vectors


@dataclass(frozen=True, eq=False)
class NoisyCovariance:
    """The covariance of an error, estimated with noise, as a family of ellipsoids: one for every level, nested.

    A subclass that adds up the squared lengths of several errors says how many there are (`count`).

    Parameters
    ----------
    covariance : (d, d), as estimated
    noise : standard deviation of the noise in it, on vecd; 0 if there is none
    free : degrees of freedom of the estimate, more than d - 1

    Examples
    --------
    >>> error = NoisyCovariance(np.eye(2), 0.1, math.inf)
    >>> statistic = error.statistic(np.array([3.0, 0.0]))
    >>> tail = exceedance(statistic, 2, error.free)
    >>> bool(np.isclose(9 / error.safe(tail)[0, 0], error.threshold(tail)))
    True
    """

    covariance: FloatArray
    noise: float
    free: float
    count = 1

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        return _spectrum(self.covariance)

    def safe(self, tail: float) -> FloatArray:
        """Return the covariance to divide by where the truth may be outside with probability `tail`, (d, d)."""
        values, vectors = self._spectrum
        return symmetrize((vectors * safe_variances(values, self.noise, tail, self.count)) @ vectors.T)

    def threshold(self, tail: float) -> float:
        """Return the squared radius of the ellipsoid, in units of :meth:`safe`."""
        return threshold(tail, len(self.covariance), self.free)

    def exceedance(self, statistic: float) -> float:
        """Return the probability that the squared length of an error is larger: undoes :meth:`threshold`."""
        return exceedance(statistic, len(self.covariance), self.free)

    def statistic(self, vector: FloatArray) -> float:
        """Return the squared length of a vector (d,) in units of the ellipsoid on whose boundary it lies.

        Of several vectors, (k, d), the squared lengths are added up.

        Both :meth:`safe` and :meth:`threshold` grow as the tail falls, so it lies on one boundary only: where the
        squared length, which falls with the tail, meets the threshold. Its :func:`exceedance` is the p-value.
        """
        values, vectors = self._spectrum
        squares = sum((vectors.T @ one) ** 2 for one in np.atleast_2d(vector))

        def length(candidate: float) -> float:
            tail = self.exceedance(candidate)
            return float((squares / safe_variances(values, self.noise, tail, self.count)).sum())

        longest = length(0.0)
        if self.noise == 0 or not 0 < longest < math.inf:
            return longest
        # Never above what the smallest allowance gives, never below 0: the root is between, as a share of the former.
        share = scipy.optimize.brentq(
            lambda x: length(x * longest) / longest - x, 0.0, 1.0 + 1e-9, xtol=1e-13, disp=False
        )
        return float(share * longest)


def threshold(tail: float, d: int, free: float) -> float:
    """Return what Hotelling's statistic in d dimensions exceeds with probability `tail`.

    Examples
    --------
    >>> round(threshold(0.05, 2, math.inf), 3), round(threshold(0.05, 2, 20.0), 3)
    (5.991, 7.415)
    """
    if free > MANY:
        return float(special.chdtri(d, tail))
    # The statistic over `free` is u/(1 - u), u a beta variable. Each of u and 1 - u has a quantile of its own, so no
    # digits are lost at either end; the quantile of F itself, in scipy before 1.17, goes astray near level 1.
    half, rest = d / 2, (free - d + 1) / 2
    return float(free * special.betainccinv(half, rest, tail) / special.betaincinv(rest, half, tail))


def exceedance(statistic: float, d: int, free: float) -> float:
    """Return the probability that Hotelling's statistic is larger: undoes :func:`threshold`.

    Examples
    --------
    >>> round(exceedance(5.991, 2, math.inf), 4), round(exceedance(7.415, 2, 20.0), 4)
    (0.05, 0.05)
    """
    if free > MANY:
        return float(special.chdtrc(d, statistic))
    return float(special.fdtrc(d, free - d + 1, statistic * (free - d + 1) / (free * d)))


def degrees_of_freedom(sampling: list[tuple[FloatArray, int]], total: FloatArray) -> float:
    """Return the degrees of freedom of a covariance of which parts were estimated (after Krishnamoorthy and Yu 2004).

    The Welch-Satterthwaite approximation in several dimensions (Behrens-Fisher): n - 1 for a single group without
    noise; noise of a known variance counts as known, so that more of it means more degrees of freedom. What exceeds the
    smallest n - 1 is shortened by (d/(n - 1))^2, because with few units small eigenvalues look as if they were noise
    (theory section 7, region).

    Parameters
    ----------
    sampling : covariance and number of units of each group
    total : the covariance of everything, noise included

    Examples
    --------
    >>> round(degrees_of_freedom([(np.eye(3), 25)], np.eye(3)), 9)
    24.0
    """
    d = len(total)
    values, vectors = _spectrum(total)
    whiten = vectors / np.sqrt(values)
    used = 0.0
    for covariance, n in sampling:
        share = whiten.T @ covariance @ whiten
        used += (float((share**2).sum()) + float(np.trace(share)) ** 2) / (n - 1)
    if used == 0:
        return math.inf
    fewest = min(n for _, n in sampling) - 1
    return fewest + max(0.0, 1 - (d / fewest) ** 2) * ((d + d * d) / used - fewest)


def squared_length(covariance: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return v' covariance^-1 v for vectors (..., d)."""
    values, axes = _spectrum(covariance)
    return np.asarray(((vectors @ axes) ** 2 / values).sum(axis=-1))


def average_error(
    spread: float, noise: float, known: float, widest: float, n: int, tail: float, own: float = 0.0
) -> tuple[float, float]:
    """Return the variance of an average of n numbers whose spread was released with noise, and its degrees of freedom.

    It is safe to divide by where the truth may be outside with probability `tail`. With too few units to tell, it is
    the largest that public numbers allow (theory section 6).

    Parameters
    ----------
    spread : variance of one unit's number as released
    noise : standard deviation of the noise in it
    known : variance of the noise on the average itself
    widest : no spread is larger
    own : what the error of the sample's mean adds to the spread

    Examples
    --------
    >>> [round(number, 6) for number in average_error(1.0, 0.0, 0.0, 4.0, 101, 0.05)]
    [0.009901, 100.0]
    >>> average_error(1.0, 0.0, 0.0, 4.0, 2, 0.05)
    (2.0, inf)
    """
    # A spread that noise has hidden is no known one: for the degrees of freedom it counts as large as the noise.
    sampling = (min(max(spread, 0.0), widest) + own) / n
    seen = sampling + noise / n
    free = degrees_of_freedom([(np.array([[seen]]), n)], np.array([[seen + known]]))
    if free <= 2:
        return known + widest / n, math.inf
    safe = float(safe_variances(np.array([sampling + known]), noise / n, tail)[0])
    return min(safe, known + (widest + own) / n), free


def stretched(value: float, half: float) -> float:
    """Return the upper half of an interval for a variance: one that came out too small has too small a width.

    Examples
    --------
    >>> round(stretched(10.0, 1.0), 3), round(stretched(0.0, 1.0), 3)
    (1.051, 1.649)
    """
    return half * math.exp(half / (2 * max(value, half)))
