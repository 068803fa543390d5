"""Statistics of many SPD matrices in one pass: means of logarithms, distances, clipping, whitening.

Each is what its docstring says in terms of :mod:`dpmanifold.linalg.symmetric`, and exactly that on numpy; the
compiled kernels do it without storing what lies between. No checking, as everywhere in this package. Nothing here is
private. `condition` everywhere is a public bound on condition numbers: the number of poles follows from it, never from
the data. A matrix beyond it, or one that is not positive definite, is done by LAPACK instead.
"""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.linalg.cards.arrays import is_card_array
from dpmanifold.linalg.exact_sums import ExactSum, IntArray
from dpmanifold.linalg.native import passes
from dpmanifold.linalg.native.library import card_in_use
from dpmanifold.linalg.symmetric import (
    expm,
    from_vecd,
    log_of_eigenvalues,
    pack_triangles,
    positive_eigenvalues,
    symmetrize,
    to_vecd,
    unpack_triangles,
)

_EPS = float(np.finfo(np.float64).eps)

# Records whose coordinates are held at once by passes that store them; of a card more, which a call takes longer.
_BLOCK, _CARD_BLOCK = 4096, 2**18

# No entry of a logarithm of a matrix of doubles, or of the difference of two, is larger.
LARGEST_LOGARITHM = 2048.0


def log_coordinates(
    x: FloatArray, inverse: FloatArray | None = None, power: int = 0, *, condition: float = passes.ANY_CONDITION
) -> FloatArray:
    """Return vecd of the logarithms of SPD matrices, (..., k, k) -> (..., k(k+1)/2).

    With `inverse`, a lower triangular (k, k), of log(2^-power a x a'): where `a` is the inverse of a Cholesky factor,
    affine-invariant normal coordinates at the matrix behind it.

    Examples
    --------
    >>> log_coordinates(np.diag([1.0, np.e])).round(12) + 0.0
    array([0., 1., 0.])
    >>> log_coordinates(np.diag([4.0, 4 * np.e]), np.eye(2) / 2).round(12) + 0.0
    array([0., 1., 0.])
    """
    return _of_logarithms(x, False, condition, inverse, power)


def log_norm(
    x: FloatArray, inverse: FloatArray | None = None, power: int = 0, *, condition: float = passes.ANY_CONDITION
) -> FloatArray:
    """Return the norms of :func:`log_coordinates`, without eigenvectors, (..., k, k) -> (...).

    With `inverse` they are affine-invariant distances.

    Examples
    --------
    >>> round(float(log_norm(np.diag([1.0, np.e]))), 12)
    1.0
    >>> round(float(log_norm(np.diag([4.0, 4 * np.e]), np.eye(2) / 2)), 12)
    1.0
    """
    return _of_logarithms(x, True, condition, inverse, power)


def log_mean(
    x: FloatArray, weights: FloatArray | None = None, *, condition: float = passes.ANY_CONDITION
) -> FloatArray:
    """Return the mean of logarithms of SPD matrices, (n, k, k) -> (k, k); with weights, their weighted sum.

    Examples
    --------
    >>> log_mean(np.stack([np.eye(2), np.diag([1.0, np.exp(4.0)])])).round(12) + 0.0
    array([[0., 0.],
           [0., 2.]])
    """
    x = passes.entered(x)
    _one_axis(x)
    if weights is not None:
        return from_vecd(_weighted_sum(x, weights, log_norm(x, condition=condition), condition))
    sums = ExactSum(x.shape[-1] * (x.shape[-1] + 1) // 2, LARGEST_LOGARITHM)
    left: Array | slice = slice(None)
    if passes.usable(x):
        left = passes.run(_batch(x), passes.LOG, sums=sums, condition=condition).marked
    sums.add(pack_triangles(log_of_eigenvalues(x[left])))
    return unpack_triangles(sums.total()[0]) / len(x)


def log_euclidean_mean(
    x: FloatArray, weights: FloatArray | None = None, *, condition: float = passes.ANY_CONDITION
) -> FloatArray:
    """Return the log-Euclidean mean of SPD matrices, (n, k, k) -> (k, k); weights, if given, must add up to 1.

    Examples
    --------
    >>> log_euclidean_mean(np.stack([np.eye(2), np.diag([1.0, 16.0])])).round(12)
    array([[1., 0.],
           [0., 4.]])
    """
    return expm(log_mean(x, weights, condition=condition))


def whitened_log_sum(
    inverse: FloatArray,
    x: FloatArray,
    weights: FloatArray,
    power: int = 0,
    *,
    condition: float = passes.ANY_CONDITION,
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted sum of :func:`log_coordinates` and their norms, (n, k, k) -> (k(k+1)/2,), (n,).

    Minus the gradient of the mean squared affine-invariant distance, halved; and the distances.

    Examples
    --------
    >>> whitened_log_sum(np.eye(1), np.exp([[[2.0]], [[4.0]]]), np.array([0.5, 0.5]))
    (array([3.]), array([2., 4.]))
    """
    x = passes.entered(x)
    _one_axis(x)
    lengths = log_norm(x, inverse, power, condition=condition)
    return _weighted_sum(x, weights, lengths, condition, inverse, power), lengths


def affine_factor(base: FloatArray) -> tuple[FloatArray, int]:
    """Return the inverse Cholesky factor of an SPD matrix divided by 2^power, and the power.

    The power stays an integer until it meets that of another matrix: so distances between two huge matrices keep
    their digits.

    Examples
    --------
    >>> inverse, power = affine_factor(np.eye(1) * 4.0)
    >>> round(float(inverse[0, 0] ** 2 * 2.0**-power), 12)
    0.25
    """
    power = int(np.frexp(np.diagonal(base).max())[1])
    factor = np.linalg.cholesky(np.ldexp(base, -power))
    return np.asarray(np.linalg.solve(factor, np.eye(len(base)))), power


def affine_factors(bases: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return :func:`affine_factor` of each of several matrices: (groups, k, k) -> (groups, k, k), (groups,).

    Examples
    --------
    >>> affine_factors(np.eye(1)[None] * 4.0)[1]
    array([3])
    """
    power = np.asarray(np.frexp(np.diagonal(bases, axis1=-2, axis2=-1).max(axis=-1))[1], dtype=np.int64)
    factor = np.linalg.cholesky(np.ldexp(bases, -power[:, None, None].astype(np.int32)))
    identity = np.broadcast_to(np.eye(bases.shape[-1]), bases.shape)
    return np.asarray(np.linalg.solve(factor, identity)), power


def affine_distances(x: FloatArray, base: FloatArray, *, condition: float = passes.ANY_CONDITION) -> FloatArray:
    """Return affine-invariant distances of SPD matrices (..., k, k) to one of them, (k, k).

    Examples
    --------
    >>> affine_distances(np.diag([2.0, 2 * np.e])[None], 2 * np.eye(2)).round(12)
    array([1.])
    """
    x = passes.entered(x)
    _same_size(base, x)
    return log_norm(x, *affine_factor(base), condition=condition)


def inspect(x: FloatArray, tolerance: float) -> tuple[Array, Array]:
    """Return which matrices (..., k, k) are not symmetric, and whose symmetric part may not be positive definite.

    Symmetric means that mirrored entries differ by at most `tolerance` times the largest entry. What is not called
    doubtful has a smallest eigenvalue above k eps times the largest; what is, need not be singular.

    Examples
    --------
    >>> uneven, doubtful = inspect(np.stack([np.eye(2), np.array([[1.0, 0.5], [0.0, 1.0]]), -np.eye(2)]), 1e-6)
    >>> uneven.tolist(), doubtful.tolist()
    ([False, True, False], [False, False, True])
    """
    x = passes.entered(x)
    if passes.usable(x):
        status = passes.run(_batch(x), passes.CHECK, radius=tolerance).status.reshape(x.shape[:-2])
        return (status & passes.NOT_SYMMETRIC) != 0, (status & (passes.UNUSABLE | passes.NOT_FINITE)) != 0
    k = x.shape[-1]
    largest = np.abs(x).max(axis=(-1, -2), initial=0.0)
    scaled = x / np.where(largest > 0, largest, 1.0)[..., None, None]
    gap = np.abs(scaled - np.swapaxes(scaled, -1, -2)).max(axis=(-1, -2), initial=0.0)
    try:
        inverse = np.linalg.solve(np.linalg.cholesky(symmetrize(scaled)), np.broadcast_to(np.eye(k), x.shape))
        # Smallest eigenvalue >= 1/|L^-1|^2, largest <= k.
        doubtful = ~((inverse * inverse).sum(axis=(-1, -2)) * (2 * k * k * _EPS) < 1)
    except np.linalg.LinAlgError:  # of one of them, which decides nothing about the others
        finite = np.asarray(np.isfinite(scaled).all(axis=(-1, -2)))
        values = np.linalg.eigvalsh(np.where(finite[..., None, None], symmetrize(scaled), -np.eye(k)))
        doubtful = ~(values[..., 0] > 4 * k * _EPS * values[..., -1])
    return np.asarray(gap > tolerance), np.asarray(doubtful)


def symmetrize_batch(x: FloatArray) -> FloatArray:
    """Return the symmetric parts, (..., k, k): :func:`symmetrize`, to the last bit, without its temporaries.

    Examples
    --------
    >>> symmetrize_batch(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    x = passes.entered(x)
    if not passes.usable(x):
        return symmetrize(x)
    return passes.images(x, passes.SYMMETRIZE)


def whitened(inverse: FloatArray, x: FloatArray, power: int = 0) -> FloatArray:
    """Return 2^-power a x a' for one lower triangular `a`, symmetric to the last bit; (..., k, k) both ways.

    Examples
    --------
    >>> whitened(np.eye(2) / 2, 4 * np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """
    x = passes.entered(x)
    if not passes.usable(x):
        white, taken = whitened_scaled(inverse, x)
        return np.asarray(np.ldexp(white, (taken - power)[..., None, None]))
    return passes.images(x, passes.NONE, factor=passes.plain(inverse), power=power)


def _one_axis(x: FloatArray) -> None:
    if x.ndim != 3 or len(x) == 0:
        raise InvalidArgumentError(
            f"x must be a batch of at least one matrix, shape (n, k, k), got {x.shape}. x[None] makes a batch of one."
        )


def _same_size(base: FloatArray, x: FloatArray) -> None:
    if base.shape != x.shape[-2:]:
        raise InvalidArgumentError(f"base must be one matrix of shape {x.shape[-2:]}, got {base.shape}.")


def _batch(x: FloatArray) -> FloatArray:
    return passes.plain(x).reshape(-1, *x.shape[-2:])


def _block_of(x: FloatArray) -> int:
    return _CARD_BLOCK if card_in_use(is_card_array(x)) else _BLOCK


def _weighted_sum(
    x: FloatArray,
    weights: FloatArray,
    lengths: FloatArray,
    condition: float,
    inverse: FloatArray | None = None,
    power: int = 0,
) -> FloatArray:
    """Return the exact weighted sum of :func:`log_coordinates`, whose lengths are known; a block at a time."""
    if np.shape(weights) != (len(x),):
        raise InvalidArgumentError(f"weights must be of shape ({len(x)},), one per matrix, got {np.shape(weights)}.")
    size = x.shape[-1] * (x.shape[-1] + 1) // 2
    # Lengths and coordinates are computed in two ways: 1 % for what rounding may make of it.
    bound = 1.01 * float(lengths.max()) * float(np.abs(weights).max())
    if bound == 0:
        return np.zeros(size)
    sums = ExactSum(size, bound)
    step = _block_of(x)
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        sums.add(log_coordinates(x[part], inverse, power, condition=condition) * weights[part, None])
    return np.asarray(sums.total()[0])


def shortened(matrices: FloatArray, radius: float) -> tuple[FloatArray, FloatArray]:
    """Return symmetric matrices (n, k, k) shortened to `radius`, and their lengths before.

    Short by what the norm of a result of this size may round, as the kernels do it: nothing is left outside.

    Examples
    --------
    >>> shortened(np.full((1, 1, 1), 4.0), 2.0)[1]
    array([4.])
    """
    lengths = np.asarray(np.linalg.norm(matrices, axis=(-1, -2)))
    slack = matrices.shape[-1] * 2.0**-51
    share = np.ones(len(matrices))
    far = lengths > radius
    share[far] = radius * (1 - slack) / lengths[far]
    return matrices * share[:, None, None], lengths


def _of_logarithms(x: FloatArray, norms: bool, condition: float, inverse: FloatArray | None, power: int) -> FloatArray:
    """Return norms or vecd of logarithms, whitened first where an inverse factor is given: (..., k, k) -> (..., )."""
    by_lapack = _lengths_by_lapack if norms else _coordinates_by_lapack
    x = passes.entered(x)
    if not passes.usable(x):
        return by_lapack(x, inverse, power)
    batch, factor = _batch(x), None if inverse is None else passes.plain(inverse)
    found = passes.run(
        batch, passes.LOG, factor=factor, power=power, norms=norms, coordinates=not norms, condition=condition
    )
    out = found.norms if norms else found.coordinates
    assert out is not None
    if found.marked.size:
        out[found.marked] = by_lapack(batch[found.marked], inverse, power)
    return out.reshape((*x.shape[:-2], *out.shape[1:]))


def _coordinates_by_lapack(x: FloatArray, inverse: FloatArray | None, power: int) -> FloatArray:
    if inverse is None:
        return to_vecd(log_of_eigenvalues(x))
    white, taken = whitened_scaled(inverse, x)
    c = to_vecd(log_of_eigenvalues(white))
    c[..., : x.shape[-1]] += ((taken - power) * math.log(2))[..., None]
    return c


def _lengths_by_lapack(x: FloatArray, inverse: FloatArray | None, power: int) -> FloatArray:
    white, taken = (passes.plain(x), np.zeros(x.shape[:-2])) if inverse is None else whitened_scaled(inverse, x)
    # A matrix that overflowed on its way is at no finite distance; LAPACK would refuse all of them for it.
    finite = np.asarray(np.isfinite(white).all(axis=(-1, -2)))
    white = np.where(finite[..., None, None], white, 1.0)
    values = np.log(positive_eigenvalues(np.asarray(np.linalg.eigvalsh(white))))
    lengths = np.linalg.norm(values + ((taken - power) * math.log(2))[..., None], axis=-1)
    return np.asarray(np.where(finite, lengths, np.inf))


def whitened_scaled(inverse: FloatArray, x: FloatArray) -> tuple[FloatArray, Array]:
    """Return a x a' after a power of two was taken out of each matrix, and the powers; one `a`, or one for each.

    >>> whitened_scaled(np.eye(1), np.array([[[8.0]]]))
    (array([[[0.5]]]), array([4], dtype=int32))
    """
    x = passes.plain(x)
    taken = np.asarray(np.frexp(np.diagonal(x, axis1=-2, axis2=-1).max(axis=-1))[1])
    return symmetrize(inverse @ np.ldexp(x, -taken[..., None, None]) @ np.swapaxes(inverse, -1, -2)), taken
