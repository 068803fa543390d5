"""Functions of symmetric matrices, batched over leading axes, by LAPACK's symmetric eigensolver.

Not for general matrices, and no checking: callers pass symmetric float64 arrays (only the lower
triangle is read by the eigensolver). Relative accuracy is LAPACK's: `eps * cond` for the logarithm.
"""

from __future__ import annotations

import numpy as np

from dpmanifold._check import FloatArray

_SQRT2 = float(np.sqrt(2.0))

# A positive definite matrix whose smallest eigenvalue sinks below this share of its largest one has
# lost that eigenvalue to rounding; the logarithm then uses the share itself, so that it stays finite.
_EIGENVALUE_FLOOR = float(np.finfo(np.float64).eps) / 4


def symmetrize(a: FloatArray) -> FloatArray:
    """Return the symmetric part of `a`, shape (..., k, k).

    >>> symmetrize(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    half = a / 2  # halved first, so that entries near the largest double do not overflow
    return np.asarray(half + np.swapaxes(half, -1, -2))


def to_vecd(a: FloatArray) -> FloatArray:
    """Flatten symmetric matrices isometrically (theory section 2, vecd).

    The diagonal comes first, then sqrt(2) times the strict upper triangle, row by row: the Frobenius
    norm of the matrix is the Euclidean norm of the vector. Shapes (..., k, k) -> (..., k(k+1)/2).

    >>> to_vecd(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3)
    array([1.   , 3.   , 2.828])
    """
    k = a.shape[-1]
    rows, columns = np.triu_indices(k, 1)
    diagonal = np.diagonal(a, axis1=-2, axis2=-1)
    return np.concatenate([diagonal, _SQRT2 * a[..., rows, columns]], axis=-1)


def from_vecd(c: FloatArray) -> FloatArray:
    """Undo :func:`to_vecd`. Shapes (..., k(k+1)/2) -> (..., k, k).

    >>> from_vecd(np.array([1.0, 3.0, 2 * np.sqrt(2)]))
    array([[1., 2.],
           [2., 3.]])
    """
    k = int((np.sqrt(8 * c.shape[-1] + 1) - 1) / 2 + 0.5)
    rows, columns = np.triu_indices(k, 1)
    a = np.zeros((*c.shape[:-1], k, k))
    diagonal = np.arange(k)
    a[..., diagonal, diagonal] = c[..., :k]
    off = c[..., k:] / _SQRT2
    a[..., rows, columns] = off
    a[..., columns, rows] = off
    return a


def positive_eigenvalues(values: FloatArray) -> FloatArray:
    """Raise eigenvalues that rounding pushed to zero or below to a floor relative to the largest.

    >>> bool(positive_eigenvalues(np.array([-1e-18, 1.0]))[0] > 0)
    True
    """
    return np.maximum(values, _EIGENVALUE_FLOOR * values[..., -1:])


def _rebuild(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return vectors diag(values) vectors', symmetric to the last bit."""
    return symmetrize((vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def logm(a: FloatArray) -> FloatArray:
    """Matrix logarithm of SPD matrices, (..., k, k) -> (..., k, k).

    >>> logm(np.diag([1.0, np.e])).round(12)
    array([[0., 0.],
           [0., 1.]])
    """
    values, vectors = np.linalg.eigh(a)
    return _rebuild(np.log(positive_eigenvalues(values)), vectors)


def expm(a: FloatArray) -> FloatArray:
    """Matrix exponential of symmetric matrices, (..., k, k) -> (..., k, k).

    >>> expm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    values, vectors = np.linalg.eigh(a)
    return _rebuild(np.exp(values), vectors)


def sqrtm(a: FloatArray) -> FloatArray:
    """Square root of SPD matrices, (..., k, k) -> (..., k, k).

    >>> sqrtm(np.diag([4.0, 9.0])).round(12)
    array([[2., 0.],
           [0., 3.]])
    """
    values, vectors = np.linalg.eigh(a)
    return _rebuild(np.sqrt(positive_eigenvalues(values)), vectors)


def invsqrtm(a: FloatArray) -> FloatArray:
    """Inverse square root of SPD matrices, (..., k, k) -> (..., k, k).

    >>> invsqrtm(np.diag([4.0, 16.0])).round(12)
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    values, vectors = np.linalg.eigh(a)
    return _rebuild(1 / np.sqrt(positive_eigenvalues(values)), vectors)


def congruence(a: FloatArray, x: FloatArray) -> FloatArray:
    """Return a x a' for symmetric x, symmetric to the last bit; (..., k, k) each, batches broadcast.

    One small product per matrix, never one tall product: a result does not depend on its batch.

    >>> congruence(np.diag([1.0, 2.0]), np.ones((2, 2)))
    array([[1., 2.],
           [2., 4.]])
    """
    return symmetrize(a @ x @ np.swapaxes(a, -1, -2))


def divided_differences_log(values: FloatArray) -> FloatArray:
    """First divided differences of log at positive eigenvalues, (..., k) -> (..., k, k).

    Entry (i, j) is (ln a - ln b)/(a - b), and 1/a where a = b: the weights of the logarithm's
    derivative in the eigenbasis (Daleckii and Krein).

    >>> divided_differences_log(np.array([1.0, 1.0]))
    array([[1., 1.],
           [1., 1.]])
    """
    low = np.minimum(values[..., :, None], values[..., None, :])
    high = np.maximum(values[..., :, None], values[..., None, :])
    excess = (high - low) / low
    safe = np.where(excess > 0, excess, 1.0)
    return np.where(excess > 0, np.log1p(safe) / safe, 1.0) / low


def divided_differences_exp(values: FloatArray) -> FloatArray:
    """First divided differences of exp, (..., k) -> (..., k, k); exp(a) on the diagonal.

    >>> divided_differences_exp(np.array([0.0, 0.0]))
    array([[1., 1.],
           [1., 1.]])
    """
    low = np.minimum(values[..., :, None], values[..., None, :])
    gap = np.abs(values[..., :, None] - values[..., None, :])
    safe = np.where(gap > 0, gap, 1.0)
    return np.exp(low) * np.where(gap > 0, np.expm1(safe) / safe, 1.0)
