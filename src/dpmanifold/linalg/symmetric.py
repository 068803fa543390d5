"""Functions of symmetric matrices, batched over leading axes: by the compiled kernels, or by LAPACK's eigensolver.

Not for general matrices, and no checking: callers pass symmetric arrays (only the lower triangle is read). Relative
accuracy is LAPACK's, `eps * cond` for the logarithm, whichever does it. The kernels take every batch they can, single
matrices included, so that a result does not depend on its batch; the few matrices they mark (not positive definite,
not finite, or a condition number near 1/eps) go to LAPACK, each for itself.

Graded matrices have functions to full relative accuracy, in numpy: one-sided Jacobi on the Cholesky factor. The
eigensolvers lose eigenvalues below eps times the largest; this method keeps every digit that the entries determine
(Demmel and Veselić 1992). Slow: the compiled kernels have the same method, and are used where they exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg.cards.arrays import fetched
from dpmanifold.linalg.native import passes

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


_SQRT2 = float(np.sqrt(2.0))

# A positive definite matrix whose smallest eigenvalue sinks below this share of its largest one has
# lost that eigenvalue to rounding; the logarithm then uses the share itself, so that it stays finite.
_EIGENVALUE_FLOOR = float(np.finfo(np.float64).eps) / 4


@cache
def _lower(k: int) -> tuple[Array, Array]:
    """Rows and columns of a lower triangle, by rows."""
    return np.tril_indices(k)


@cache
def _upper(k: int) -> tuple[Array, Array]:
    """Rows and columns of a strict upper triangle, by rows."""
    return np.triu_indices(k, 1)


@cache
def _vecd_places(k: int) -> tuple[Array, FloatArray]:
    """Where in a packed lower triangle the entries of vecd stand, and what they are multiplied by."""
    rows, columns = _upper(k)
    diagonal = np.arange(k)
    places = np.concatenate([diagonal * (diagonal + 3) // 2, columns * (columns + 1) // 2 + rows])
    return places, np.concatenate([np.ones(k), np.full(len(rows), _SQRT2)])


@cache
def _places_in_vecd(k: int) -> tuple[Array, FloatArray]:
    """Where in vecd the entries of a matrix stand, and what they are divided by; (k, k) each."""
    places, factors = _vecd_places(k)
    order = np.argsort(places)
    return unpack_triangles(order.astype(np.float64)).astype(np.intp), unpack_triangles(factors[order])


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
    rows, columns = _upper(k)
    diagonal = np.diagonal(a, axis1=-2, axis2=-1)
    return np.concatenate([diagonal, _SQRT2 * a[..., rows, columns]], axis=-1)


def from_vecd(c: FloatArray) -> FloatArray:
    """Undo :func:`to_vecd`. Shapes (..., k(k+1)/2) -> (..., k, k).

    >>> from_vecd(np.array([1.0, 3.0, 2 * np.sqrt(2)]))
    array([[1., 2.],
           [2., 3.]])
    """
    places, factors = _places_in_vecd(math.isqrt(2 * c.shape[-1]))
    return np.take(c, places, axis=-1) / factors


def outer_products(vectors: FloatArray) -> FloatArray:
    """Return v v' of vectors (n, d) as vecd of symmetric matrices, (n, d(d+1)/2), whose norms are |v|^2.

    >>> outer_products(np.array([[1.0, 2.0]])).round(3)
    array([[1.   , 4.   , 2.828]])
    """
    rows, columns = _upper(vectors.shape[1])
    return np.hstack([vectors * vectors, _SQRT2 * (vectors[:, rows] * vectors[:, columns])])


def pack_triangles(matrices: FloatArray) -> FloatArray:
    """Return lower triangles packed by rows, (..., k, k) -> (..., k(k+1)/2).

    >>> pack_triangles(np.array([[1.0, 2.0], [2.0, 3.0]]))
    array([1., 2., 3.])
    """
    rows, columns = _lower(matrices.shape[-1])
    return np.ascontiguousarray(matrices[..., rows, columns])


def unpack_triangles(triangles: FloatArray) -> FloatArray:
    """Undo :func:`pack_triangles`, (..., k(k+1)/2) -> (..., k, k).

    >>> unpack_triangles(np.array([1.0, 2.0, 3.0]))
    array([[1., 2.],
           [2., 3.]])
    """
    triangles = fetched(triangles)
    k = passes.size_of(triangles.shape[-1])
    rows, columns = _lower(k)
    matrices = np.empty((*triangles.shape[:-1], k, k))
    matrices[..., rows, columns] = triangles
    matrices[..., columns, rows] = triangles
    return matrices


def vecd_of_triangles(triangles: FloatArray) -> FloatArray:
    """Return packed triangles as isometric coordinates, (..., d) both ways.

    >>> vecd_of_triangles(np.array([1.0, 2.0, 3.0])).round(3)
    array([1.   , 3.   , 2.828])
    """
    places, factors = _vecd_places(passes.size_of(triangles.shape[-1]))
    return np.asarray(triangles[..., places] * factors)


def positive_eigenvalues(values: FloatArray) -> FloatArray:
    """Raise eigenvalues that rounding pushed to zero or below to a floor relative to the largest.

    >>> bool(positive_eigenvalues(np.array([-1e-18, 1.0]))[0] > 0)
    True
    """
    return np.maximum(values, _EIGENVALUE_FLOOR * values[..., -1:])


def _by_eigenvalues(a: FloatArray, f: Callable[[FloatArray], FloatArray]) -> FloatArray:
    values, vectors = np.linalg.eigh(passes.plain(a))
    return symmetrize((vectors * f(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def log_of_eigenvalues(a: FloatArray) -> FloatArray:
    """Matrix logarithm by LAPACK, whatever backend is in use; (..., k, k) -> (..., k, k).

    >>> log_of_eigenvalues(np.diag([1.0, np.e])).round(12)
    array([[0., 0.],
           [0., 1.]])
    """
    return _by_eigenvalues(a, lambda values: np.log(positive_eigenvalues(values)))


def _positive_function(
    a: FloatArray, number: int, f: Callable[[FloatArray], FloatArray], accurate: bool, condition: float
) -> FloatArray:
    """Apply a function of SPD matrices: f to their eigenvalues, kept positive unless they are accurate."""
    a = passes.entered(a, "a", accurate)
    if accurate and not passes.usable(a, accurate):
        return graded_function(a, f)
    return _function(a, number, lambda values: f(positive_eigenvalues(values)), accurate, condition)


def _function(
    a: FloatArray, number: int, f: Callable[[FloatArray], FloatArray], accurate: bool, condition: float
) -> FloatArray:
    """Apply the kernels' function `number`, or f to the eigenvalues where the kernels do not."""
    if not passes.usable(a, accurate):
        return _by_eigenvalues(a, f)
    k = a.shape[-1]
    x = passes.plain(a).reshape(-1, k, k)
    found = passes.run(x, number, matrices=True, accurate=accurate, condition=condition)
    assert found.matrices is not None
    if found.marked.size and accurate:
        raise not_definite_error(int(found.marked[0]))
    if found.marked.size:
        found.matrices[found.marked] = _by_eigenvalues(x[found.marked], f)
    return found.matrices.reshape(a.shape)


def logm(a: FloatArray, *, accurate: bool = False, condition: float = passes.ANY_CONDITION) -> FloatArray:
    """Matrix logarithm of SPD matrices, (..., k, k) -> (..., k, k).

    Parameters
    ----------
    a : SPD matrices
    accurate : one-sided Jacobi on the Cholesky factor: slower, and right to the last digits on graded matrices; a
        matrix that is not positive definite is then an error (numpy's LinAlgError, with its index)
    condition : a public bound on the condition numbers, if one is known: the compiled kernels then do less work

    Examples
    --------
    >>> logm(np.diag([1.0, np.e])).round(12) + 0.0
    array([[0., 0.],
           [0., 1.]])
    """
    return _positive_function(a, passes.LOG, np.log, accurate, condition)


def expm(a: FloatArray) -> FloatArray:
    """Matrix exponential of symmetric matrices, (..., k, k) -> (..., k, k).

    >>> expm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    return _function(passes.entered(a, "a"), passes.EXP, np.exp, False, passes.ANY_CONDITION)


def sqrtm(a: FloatArray, *, accurate: bool = False, condition: float = passes.ANY_CONDITION) -> FloatArray:
    """Square root of SPD matrices, (..., k, k) -> (..., k, k); keywords as in :func:`logm`.

    >>> sqrtm(np.diag([4.0, 9.0])).round(12)
    array([[2., 0.],
           [0., 3.]])
    """
    return _positive_function(a, passes.ROOT, np.sqrt, accurate, condition)


def invsqrtm(a: FloatArray, *, accurate: bool = False, condition: float = passes.ANY_CONDITION) -> FloatArray:
    """Inverse square root of SPD matrices, (..., k, k) -> (..., k, k); keywords as in :func:`logm`.

    >>> invsqrtm(np.diag([4.0, 16.0])).round(12)
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return _positive_function(a, passes.INVERSE_ROOT, lambda values: 1 / np.sqrt(values), accurate, condition)


def congruence(a: FloatArray, x: FloatArray) -> FloatArray:
    """Return a x a' for symmetric x, symmetric to the last bit; (..., k, k) each, batches broadcast.

    One small product per matrix, never one tall product: a result does not depend on its batch.

    >>> congruence(np.diag([1.0, 2.0]), np.ones((2, 2)))
    array([[1., 2.],
           [2., 4.]])
    """
    x = passes.entered(x)
    if a.ndim == 2 and x.ndim > 2 and x.shape[-2:] == a.shape and passes.usable(x):
        return passes.images(x, passes.NONE, factor=passes.plain(a), lower=False)
    x = fetched(x)
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
