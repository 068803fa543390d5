"""Connectivity matrices, as nilearn's ConnectivityMeasure gives them, and the public ball of all correlations.

Matrices between regions of interest, one per recording, as points of SPD(k). Nothing is fitted across recordings: what
becomes of a matrix depends on that matrix and on public numbers alone. nilearn is not needed.
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from dpmanifold._check import Array, FloatArray, index_text, numeric_array, open_fraction, positive_int, shown
from dpmanifold.ball import Ball
from dpmanifold.data.descriptors import ball_about_multiple, smallest_ball
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Public
from dpmanifold.linalg import symmetrize

_KINDS = ("correlation", "covariance", "precision")
_NO_POINTS = {
    "tangent": "is taken at the mean of all recordings, which no noise covers. Give the covariances: they have a "
    "private mean",
    "partial correlation": "is not positive definite in general. Give the precision, of which it is a rescaling",
}
# What rounding leaves of a symmetric matrix with ones on its diagonal, computed in single precision.
_ROUNDING = 1e-5


def from_connectivity(
    array: object,
    *,
    kind: str = "correlation",
    discard_diagonal: bool = False,
    shrinkage: float = 0.0,
    floor: float = 0.0,
) -> FloatArray:
    """Return connectivity matrices (n, k, k) for SPD(k) from what nilearn's ConnectivityMeasure returned.

    Matrices (n, k, k), or vectors (n, k(k+1)/2) of vectorize=True: the lower triangle, row by row, its diagonal divided
    by sqrt(2); without the diagonal if it was discarded. They are as many as recordings: give `units=` the person's id
    of each.

    Correlations of regions that are averages of each other, or of recordings with fewer volumes than regions, are
    singular, which is no point of SPD(k), and refused. Two public remedies, each applied to every matrix by itself:
    `shrinkage` and `floor`. Never choose them by looking at the private matrices; nilearn's default estimator
    (Ledoit-Wolf) chooses a shrinkage for each recording from that recording alone, which is as good.

    Parameters
    ----------
    array : (n, k, k), or (n, entries of a triangle)
    kind : "correlation", "covariance" or "precision", as it was given to ConnectivityMeasure
    discard_diagonal : as it was given to ConnectivityMeasure; for correlations, whose diagonal is known
    shrinkage : s in [0, 1): (1 - s) C + s v I is returned, v being the mean of C's own diagonal, 1 for correlations.
        Eigenvalues of a correlation are then at least s. Public: :func:`correlation_ball` depends on it
    floor : eigenvalues below it become it, after the shrinkage. Correlations then need no longer have ones on their
        diagonal

    Notes
    -----
    Values that are not finite are passed on, and are the statistic's business (`invalid=`).

    Examples
    --------
    >>> from_connectivity([[0.5, 0.2, 0.1]], discard_diagonal=True)
    array([[[1. , 0.5, 0.2],
            [0.5, 1. , 0.1],
            [0.2, 0.1, 1. ]]])
    >>> same = np.ones((1, 2, 2))
    >>> from_connectivity(same, shrinkage=0.1)
    array([[[1. , 0.9],
            [0.9, 1. ]]])
    >>> from_connectivity(same)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidDataError: array: the matrix at index 0 is not positive definite. Give shrinkage= (such as
    0.1) or floor=, chosen without looking at the data; or estimate with a shrinkage (nilearn's default).
    """
    _check_kind(kind, discard_diagonal)
    weight = _from_zero(shrinkage, "shrinkage", below=1.0)
    least = _from_zero(floor, "floor")
    values = numeric_array(array, "array")
    if values.dtype.kind == "c" or values.ndim not in (2, 3) or 0 in values.shape[1:]:
        raise InvalidDataError(
            "array must hold real matrices (n, k, k), or a vector for each (n, entries), got {dtype} of shape "
            "{shape}. One matrix is array[None].",
            dtype=values.dtype,
            shape=Public(values.shape),
        )
    matrices = _from_vectors(values, discard_diagonal) if values.ndim == 2 else _checked(values)
    if kind == "correlation":
        matrices = _with_ones(matrices)
    if weight > 0:
        target = np.trace(matrices, axis1=1, axis2=2)[:, None, None] / matrices.shape[1] * np.eye(matrices.shape[1])
        matrices = (1 - weight) * matrices + weight * target
    return _positive(matrices, least)


def correlation_ball(regions: int, shrinkage: float = 0.1, metric: str = "logeuclid") -> Ball:
    """Return a public ball on SPD(regions) that holds every correlation matrix that was shrunk to the identity.

    Eigenvalues of (1 - s) C + s I are at least s and add up to k, whatever was recorded. So the ball needs no knowledge
    of the data; it is large for many regions, and `refine=True` helps.

    Parameters
    ----------
    regions : k, the number of regions
    shrinkage : s in (0, 1), as it was given to :func:`from_connectivity`
    metric : "logeuclid" or "riemann"

    Notes
    -----
    The radius about c I is sqrt(sum ln^2(eigenvalue/c)) under both metrics. Its largest value is bounded by weak
    duality, as for image descriptors (theory: descriptors, Theorem 4, with eta = s and T = (1 - s) k).

    Examples
    --------
    >>> ball = correlation_ball(10, shrinkage=0.1)
    >>> ball.space, round(ball.radius, 2)
    (SPD(10), 4.98)
    >>> ball.contains(from_connectivity(np.ones((1, 10, 10)), shrinkage=0.1))
    array([ True])
    """
    size, least = positive_int(regions, "regions"), open_fraction(shrinkage, "shrinkage")
    center, radius = smallest_ball(size, least, (1 - least) * size)
    source = f"correlations of {size} regions shrunk by {least:g}: all of them, certified by duality"
    remedy = "Raise the shrinkage, take fewer regions"
    return ball_about_multiple(size, metric, center, radius, source, "correlations", remedy)


def _check_kind(kind: object, discard_diagonal: object) -> None:
    if kind in _NO_POINTS:
        raise InvalidArgumentError("kind {kind!r} {no_points}.", kind=kind, no_points=Public(_NO_POINTS[str(kind)]))
    if kind not in _KINDS:
        raise InvalidArgumentError(
            "kind must be one of {kinds}, got {got}.", kinds=Public(", ".join(_KINDS)), got=shown(kind)
        )
    if not isinstance(discard_diagonal, bool):
        raise InvalidArgumentError("discard_diagonal must be True or False, got {got}.", got=shown(discard_diagonal))
    if discard_diagonal and kind != "correlation":
        raise InvalidArgumentError(
            "discard_diagonal: the diagonal of a {kind} cannot be known. Run ConnectivityMeasure without it.", kind=kind
        )


def _from_zero(value: object, name: str, below: float = math.inf) -> float:
    """Return a number of at least 0 and below a limit."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < below:
        limit = f" and below {below:g}" if below < math.inf else ""
        raise InvalidArgumentError(
            "{name} must be a number of at least 0{limit}, got {got}.",
            name=Argument(name),
            limit=Public(limit),
            got=shown(value),
        )
    return float(value)


def _from_vectors(vectors: Array, discarded: bool) -> FloatArray:
    """Return the matrices of lower triangles, row by row, whose diagonal was divided by sqrt(2) or left out."""
    entries = vectors.shape[1]
    size = (math.isqrt(8 * entries + 1) + 1) // 2 if discarded else (math.isqrt(8 * entries + 1) - 1) // 2
    if size * (size - 1 if discarded else size + 1) != 2 * entries:
        told = "k(k-1)/2 without a diagonal" if discarded else "k(k+1)/2"
        raise InvalidDataError(
            "array: {entries} entries are no triangle of a matrix, which has {told}. Was the diagonal "
            "discarded (discard_diagonal=), or are these columns of something else?",
            entries=Public(entries),
            told=Public(told),
        )
    rows, columns = np.tril_indices(size, -1 if discarded else 0)
    matrices = np.zeros((len(vectors), size, size))
    matrices[:, rows, columns] = matrices[:, columns, rows] = vectors
    diagonal = np.arange(size)
    if discarded:
        matrices[:, diagonal, diagonal] = 1.0
    else:
        matrices[:, diagonal, diagonal] *= math.sqrt(2)
    return matrices


def _checked(values: Array) -> FloatArray:
    """Return symmetric matrices as such to the last digit, or say which is none."""
    if values.shape[1] != values.shape[2]:
        raise InvalidDataError(
            "array must hold square matrices (n, k, k), got shape {shape}.", shape=Public(values.shape)
        )
    matrices = np.asarray(values, dtype=np.float64)
    with np.errstate(all="ignore"):
        apart = np.abs(matrices - np.swapaxes(matrices, 1, 2)).max(axis=(1, 2))
        bad = np.asarray(apart > _ROUNDING * np.abs(matrices).max(axis=(1, 2)))
    if bad.any():
        raise InvalidDataError(
            "array: the matrix{index_text} is not symmetric. Give what ConnectivityMeasure returned.",
            index_text=Public(index_text(bad)),
        )
    return np.asarray(symmetrize(matrices))


def _with_ones(matrices: FloatArray) -> FloatArray:
    """Return correlations with ones on their diagonal to the last digit, or say which are no correlations."""
    diagonal = np.arange(matrices.shape[1])
    with np.errstate(all="ignore"):
        bad = np.asarray((np.abs(matrices[:, diagonal, diagonal] - 1) > _ROUNDING).any(axis=1))
    if bad.any():
        raise InvalidDataError(
            "array: the matrix{index_text} has other numbers than 1 on its diagonal. Correlations have not: "
            'give kind="covariance", or what ConnectivityMeasure was told, such as discard_diagonal=True.',
            index_text=Public(index_text(bad)),
        )
    result = matrices.copy()
    result[:, diagonal, diagonal] = np.where(np.isnan(matrices[:, diagonal, diagonal]), np.nan, 1.0)
    return result


def _positive(matrices: FloatArray, least: float) -> FloatArray:
    """Return matrices whose eigenvalues are at least `least`, or say which is not positive definite."""
    finite = np.flatnonzero(np.isfinite(matrices).all(axis=(1, 2)))
    values, vectors = np.linalg.eigh(matrices[finite])
    low = values[:, 0] < least
    if low.any():
        raised = np.maximum(values[low], least)[:, None, :]
        matrices = matrices.copy()
        matrices[finite[low]] = symmetrize((vectors[low] * raised) @ np.swapaxes(vectors[low], 1, 2))
    bad = np.zeros(len(matrices), dtype=bool)
    size = matrices.shape[1]
    bad[finite] = np.maximum(values[:, 0], least) <= size * np.finfo(float).eps * np.abs(values[:, -1])
    if bad.any():
        raise InvalidDataError(
            "array: the matrix{index_text} is not positive definite. Give shrinkage= (such as 0.1) or floor=, "
            "chosen without looking at the data; or estimate with a shrinkage (nilearn's default).",
            index_text=Public(index_text(bad)),
        )
    return matrices
