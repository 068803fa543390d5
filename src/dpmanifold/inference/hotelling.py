"""Covariances that were estimated, some of them with noise, and what an error measured by them stays below.

Hotelling's T^2 law for few units, an allowance of second order for the noise (theory section 7, region). Public and
released numbers come in, nothing else.

Noise spreads eigenvalues apart, and whoever divides by them pays for it. Where it hides a covariance in part they are
moved back by what noise of known size must have done, and what remains uncertain enters as degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

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


# -------------------------------------------------------------------- covariances that noise hides in part


# Eigenvalues are not taken below this part of the largest eigenvalue that noise alone has. Chosen on handwritten digits
# and chest X-rays, see the theory page; between 0.05 and 0.2 hardly anything changes.
FLOOR = 0.1
# No eigenvalue is below this part of the largest entry: beyond, an inverse has no digits left.
_LEAST_SHARE = 1e-12


def denoised(matrix: FloatArray, noise: float) -> FloatArray:
    """Return a positive definite estimate of a covariance from one with noise: eigenvalues moved, eigenvectors kept.

    Noise pushes the eigenvalues of a matrix apart. Where they are many, by how much is known: each is moved back by
    what the others push it (for normal noise of known size, the best that keeps eigenvectors). What is left below a
    tenth of the largest eigenvalue of noise alone is taken to be that.

    Parameters
    ----------
    matrix : symmetric, (d, d)
    noise : standard deviation of the noise on vecd of it, above 0

    Examples
    --------
    >>> np.diag(denoised(np.diag([4.0, -1.0]), 0.05)).round(4)
    array([3.9995, 0.01  ])
    """
    size = max(float(np.abs(matrix).max()), noise)  # so that no square is beyond double precision
    values, vectors = np.linalg.eigh(matrix / size)
    moved = shifted(values, noise / size)
    least = max(FLOOR * edge(len(values), noise / size), _LEAST_SHARE)
    return np.asarray((vectors * (size * np.maximum(moved, least))) @ vectors.T)


def edge(dim: int, noise: float) -> float:
    """Return about the largest eigenvalue of a (d, d) matrix of noise with this standard deviation on vecd.

    Examples
    --------
    >>> edge(8, 0.5)
    2.0
    """
    return noise * math.sqrt(2 * dim)


def shifted(values: FloatArray, noise: float) -> FloatArray:
    """Return sorted eigenvalues moved back by what noise pushed them apart; in the same order.

    Parameters
    ----------
    values : (d,), in ascending order
    noise : as in :func:`denoised`

    Examples
    --------
    >>> shifted(np.array([1.0, 1.1]), 0.01).round(4)
    array([1.001, 1.099])
    """
    d = len(values)
    width = max(edge(d, noise) / math.sqrt(d), _LEAST_SHARE * float(np.abs(values).max()), 1e-150)
    apart = values[:, None] - values[None, :]
    pushed = (apart / (apart**2 + width**2)).sum(axis=1)
    # An eigenvalue moves by the sum of (half the variance on vecd) / (distance to another one), and its eigenvector's
    # turn costs as much again: the covariance along the released one is the eigenvalue less both.
    return np.asarray(np.maximum.accumulate(values - noise**2 * pushed))


# Below this many degrees of freedom the law of the squared length has no variance, by which it is fitted.
_FEWEST = 4.0
# Ratios beyond this are not told apart: their squares and products must stay finite.
_LARGEST_RATIO = 1e60
_LEAST_NOISE = 1e-60


class Spectrum(NamedTuple):
    """What :func:`freed` makes of eigenvalues (d,).

    Attributes
    ----------
    values : freed of what noise did to them, never below the known part
    sampling : their part due to sampling, as much of it as cannot be noise
    stretch : the mean squared length of an error measured by `values`, over d
    free : degrees of freedom that what remains uncertain leaves
    together, apart : what remains uncertain: the variance of the sum of relative errors of `values`, and the expected
        sum of squares of all relative errors, those of their vectors included
    """

    values: FloatArray
    sampling: FloatArray
    stretch: float
    free: float
    together: float = 0.0
    apart: float = 0.0


def free_of(together: float, apart: float, dim: int, count: int = 1) -> float:
    """Return Satterthwaite's degrees of freedom: by the second moment of a squared length, or of the sum of `count`.

    Given the relative errors A of the covariance it has mean count (d + tr A) and variance about 2 count (d + |A|^2).

    Examples
    --------
    >>> free_of(0.02, 0.02, 1), free_of(0.02, 0.02, 1, 3)
    (100.0, 100.0)
    """
    relative = (2 * apart + count * together) / (dim * (count * dim + 2))
    return max(2 / relative, _FEWEST) if relative > 0 else math.inf


def freed(values: FloatArray, noise: float, per_degree: float) -> Spectrum:
    """Return eigenvalues freed of what noise did to them; their known part is 1 in every direction.

    Noise pushes eigenvalues i and j apart by t/(x_i - x_j), t its variance in the plane of the two, and turns their
    vectors as much again: twice that is taken back, in a form that stays finite, and what is left of the spread within
    the width of the noise is smoothed. What would end below the known part ends up to 0.71 standard deviations above
    it (theory section 7, region).

    Parameters
    ----------
    values : eigenvalues as released, (d,), the known part included
    noise : variance of the noise on vecd
    per_degree : 1 over the degrees of freedom of the sampling part

    Examples
    --------
    >>> freed(np.array([2.0, 2.0, 8.0]), 1e-6, 0.0).values.round(3)
    array([2., 2., 8.])
    >>> noisy = np.linalg.eigvalsh(2 * np.eye(9) + np.tri(9) @ np.diag(np.linspace(-0.02, 0.02, 9)) @ np.tri(9).T)
    >>> bool(np.ptp(freed(noisy, 0.01, 0.0).values) < np.ptp(noisy) / 2)
    True
    """
    d = len(values)
    apart = values[:, None] - values
    squares = apart**2

    def moved(noise: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Return how far noise moved eigenvalues, and where they belong, smoothed."""
        shift = (noise * apart / (squares + noise / 4)).sum(axis=1)
        weights = (d * noise / (squares + d * noise)) ** 2
        return shift, np.asarray(weights @ (values - shift) / weights.sum(axis=1))

    spread = np.maximum(moved(noise)[1] - 1.0, 0.0)
    # With few units for the dimension, small eigenvalues may be small by chance.
    spread = spread + min(d * per_degree, _LARGEST_RATIO) * spread.mean()
    pairs = noise + 2 * per_degree * np.outer(spread, spread)
    shift, center = moved(pairs)
    own = np.diag(pairs)
    error = own / (2 * d * pairs / (squares + 2 * d * pairs)).sum(axis=1)
    excess = center - 1.0
    root = np.sqrt(excess**2 + 2 * error)
    result = 1.0 + (excess + root) / 2
    # What of the noise is left in them, over their size.
    left = (1 + excess / root) / 2 / result
    alone = float((own * left**2).sum())
    both = (float(left @ pairs @ left) + alone) / 2
    taken = (values - center - shift) ** 2 - shift**2
    uncertain = max(both + float((left**2 * taken).sum()), alone / d)
    stretch = 1 + float((error * left**2).sum()) / d
    sampling = np.maximum(excess - np.sqrt(error), 0.0)
    return Spectrum(result, sampling, stretch, free_of(alone, uncertain, d), alone, uncertain)


@dataclass(frozen=True, eq=False)
class ShrunkCovariance:
    """The covariance of an error, a known part and one estimated with noise, as a family of nested ellipsoids.

    Parameters
    ----------
    covariance : (d, d), as estimated: on average the truth, and not necessarily positive
    known : the variance along each axis that is known to be part of it, above 0
    noise : standard deviation of the noise in it, on vecd
    per_degree : 1 over the degrees of freedom of what is estimated
    most : what is estimated has no larger eigenvalue than this

    Examples
    --------
    >>> error = ShrunkCovariance(3 * np.eye(2), 1.0, 1e-9, 0.0)
    >>> error.safe(0.05).round(6) + 0.0
    array([[3., 0.], [0., 3.]])
    >>> round(error.threshold(0.05), 3), round(error.exceedance(5.991), 3)
    (5.991, 0.05)
    """

    covariance: FloatArray
    known: float
    noise: float
    per_degree: float
    most: float = math.inf

    @cached_property
    def _spectrum(self) -> tuple[Spectrum, FloatArray]:
        """Eigenvalues over the known part, and eigenvectors."""
        values, vectors = np.linalg.eigh(symmetrize(self.covariance / self.known))
        values = np.clip(values, -_LARGEST_RATIO, _LARGEST_RATIO)
        noise = min(max((self.noise / self.known) ** 2, _LEAST_NOISE), _LARGEST_RATIO)
        return freed(values, noise, self.per_degree), vectors

    @property
    def spectrum(self) -> Spectrum:
        """Eigenvalues over the known part, freed of noise, and how uncertain they are."""
        return self._spectrum[0]

    @property
    def free(self) -> float:
        """Degrees of freedom of the estimate."""
        return self._spectrum[0].free

    def safe(self, tail: float) -> FloatArray:
        """Return the covariance to divide by, (d, d); the same for every `tail`."""
        found, vectors = self._spectrum
        values = self.known * np.minimum(found.values, 1 + self.most / self.known)
        return symmetrize((vectors * values) @ vectors.T)

    @property
    def sampling(self) -> FloatArray:
        """The estimated part, as much of it as cannot be noise, (d, d)."""
        found, vectors = self._spectrum
        return symmetrize((vectors * np.minimum(self.known * found.sampling, self.most)) @ vectors.T)

    def threshold(self, tail: float) -> float:
        """Return the squared radius of the ellipsoid, in units of :meth:`safe`: a quantile of F, of mean d stretch."""
        d, free, stretch = len(self.covariance), self.free, self._spectrum[0].stretch
        if free > MANY:
            return stretch * float(special.chdtri(d, tail))
        # F is free/d u/(1 - u), u a beta variable, and each of u and 1 - u has a quantile of its own.
        inner, outer = special.betainccinv(d / 2, free / 2, tail), special.betaincinv(free / 2, d / 2, tail)
        return stretch * float((free - 2) * inner / outer)

    def exceedance(self, statistic: float) -> float:
        """Return the probability that the squared length of an error is larger: undoes :meth:`threshold`."""
        d, free, stretch = len(self.covariance), self.free, self._spectrum[0].stretch
        if free > MANY:
            return float(special.chdtrc(d, statistic / stretch))
        return float(special.fdtrc(d, free, statistic / stretch / d * free / (free - 2)))

    def statistic(self, vector: FloatArray) -> float:
        """Return the squared length of a vector (d,) in units of :meth:`safe`; of several, (k, d), the sum."""
        return float(squared_length(self.safe(1.0), vector).sum())
