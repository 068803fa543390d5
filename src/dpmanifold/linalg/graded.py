"""Functions of graded SPD matrices to full relative accuracy, in numpy: one-sided Jacobi on the Cholesky factor.

The eigensolvers lose eigenvalues below eps times the largest; this method keeps every digit that the entries
determine (Demmel and Veselić 1992). Slow: the compiled kernels have the same method, and are used where they exist.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpmanifold._check import FloatArray

_MOST_SWEEPS = 30  # 6 to 10 are usual
_EPS = float(np.finfo(np.float64).eps)


def not_definite_error(index: int) -> np.linalg.LinAlgError:
    """Return the error that says which matrix of a batch, counted in its flattened order, has no Cholesky factor.

    >>> str(not_definite_error(3))
    'the matrix at index 3 is not positive definite, and accurate=True needs it to be.'
    """
    return np.linalg.LinAlgError(
        f"the matrix at index {index} is not positive definite, and accurate=True needs it to be."
    )


def graded_function(a: FloatArray, f: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return f of SPD matrices, (..., k, k) both ways; raises LinAlgError if one is not positive definite.

    `f` takes eigenvalues in increasing order along the last axis.

    >>> graded_function(np.diag([1e-30, 1.0]), np.sqrt)
    array([[1.e-15, 0.e+00],
           [0.e+00, 1.e+00]])
    """
    a = np.asarray(a, dtype=np.float64)
    k = a.shape[-1]
    columns = np.swapaxes(_cholesky(a), -1, -2).copy()  # one row per column of the factor
    for _ in range(_MOST_SWEEPS):
        moved = False
        for p in range(k - 1):
            for q in range(p + 1, k):
                moved |= _rotate(columns, p, q, k)
        if not moved:
            break
    values = (columns * columns).sum(axis=-1)
    order = np.argsort(values, axis=-1)
    values = np.take_along_axis(values, order, axis=-1)
    columns = np.take_along_axis(columns, order[..., None], axis=-2)
    half = np.swapaxes(columns, -1, -2) * (f(values) / values)[..., None, :] @ columns / 2
    return np.asarray(half + np.swapaxes(half, -1, -2))


def _cholesky(a: FloatArray) -> FloatArray:
    try:
        factor = np.asarray(np.linalg.cholesky(a), dtype=np.float64)
    except np.linalg.LinAlgError:
        for index, matrix in enumerate(a.reshape(-1, *a.shape[-2:])):  # which one it was is worth a second look
            try:
                np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                raise not_definite_error(index) from None
        raise
    broken = ~np.isfinite(factor).all(axis=(-1, -2)).reshape(-1)  # NaN passes LAPACK without a word
    if broken.any():
        raise not_definite_error(int(broken.argmax()))
    return factor


def _rotate(columns: FloatArray, p: int, q: int, k: int) -> bool:
    """Make two columns orthogonal, in every matrix where they are not; returns whether any were not."""
    x, y = columns[..., p, :], columns[..., q, :]
    alpha, beta, gamma = (x * x).sum(axis=-1), (y * y).sum(axis=-1), (x * y).sum(axis=-1)
    needed = np.abs(gamma) > _EPS * np.sqrt(k) * np.sqrt(alpha) * np.sqrt(beta)
    if not needed.any():
        return False
    gap = beta - alpha
    tangent = 2 * gamma / (np.abs(gap) + np.hypot(gap, 2 * gamma) + np.finfo(np.float64).tiny)
    tangent = np.where(needed, np.where(gap < 0, -tangent, tangent), 0.0)[..., None]
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    columns[..., p, :], columns[..., q, :] = cosine * (x - tangent * y), cosine * (tangent * x + y)
    return True
