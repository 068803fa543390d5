"""A covariance that was released with known noise, made one that can be inverted (theory: classes)."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import FloatArray

# Eigenvalues are not taken below this part of the largest eigenvalue that noise alone has. Chosen on handwritten digits
# and chest X-rays, see the theory page; between 0.05 and 0.2 hardly anything changes.
FLOOR = 0.1
# No eigenvalue is below this part of the largest entry: beyond, an inverse has no digits left.
_LEAST = 1e-12


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
    least = max(FLOOR * edge(len(values), noise / size), _LEAST)
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
    width = max(edge(d, noise) / math.sqrt(d), _LEAST * float(np.abs(values).max()), 1e-150)
    apart = values[:, None] - values[None, :]
    pushed = (apart / (apart**2 + width**2)).sum(axis=1)
    # An eigenvalue moves by the sum of (half the variance on vecd) / (distance to another one), and its eigenvector's
    # turn costs as much again: the covariance along the released one is the eigenvalue less both.
    return np.asarray(np.maximum.accumulate(values - noise**2 * pushed))
