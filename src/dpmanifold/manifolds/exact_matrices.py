"""Affine-invariant matrices in balls of real numbers: how they are moved, and their volume in a direction.

A matrix T T', T lower triangular with a positive diagonal, is written down as the k logarithms of T's diagonal and
then, row by row, the entries of T below it, each divided by its row's diagonal entry.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from flint import acb, acb_mat, arb, arb_mat, ctx

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.linalg import symmetrize
from dpmanifold.manifolds.exact_points import ExactPoints, ExactVolume, norm, precision_kept

if TYPE_CHECKING:
    from dpmanifold.manifolds.spd import SPD

# For eigenvalues that are known to 1e-15 or so from doubles.
_QUICK_BITS = 80
# Doubles that are a positive definite matrix to working precision are seen to be so at four times as many bits.
_CHECK_BITS = 256
# Logarithms of a triangular factor's entries are cut off here: products of them stay far from overflow.
_LONGEST_LOG = 145.0
# Eigenvalues below this share of the largest are lifted where a matrix is not positive definite in doubles.
_FLOOR = 1e-12


class ExactMatrices(ExactPoints):
    """Matrices by their triangular factors."""

    space: SPD

    def __init__(self, space: SPD) -> None:
        super().__init__(space)
        self.size = self.normals = space.dim

    @cached_property
    def volume(self) -> ExactVolume:  # type: ignore[override]
        """J by eigenvalues."""
        return _EigenvalueVolume(self.space.size)

    def moved(self, footpoint: Array, distance: arb, gaussian: list[arb]) -> list[arb] | None:
        """Return the numbers of L exp(S) L' for L L' the footpoint and S of that length.

        The law of S is invariant under orthogonal matrices, so that L exp(S) L' has the law about L L' whichever factor
        L is. With exp(S) = C C', both factors lower triangular, L C is the drawn matrix's own factor.
        """
        k = self.space.size
        step = symmetric_matrix(k, gaussian) * distance
        outer, inner = _footpoint_factor(footpoint), _factor(step.exp().tolist())
        if outer is None or inner is None:
            return None
        product = (outer * inner).tolist()
        logs = [product[i][i].log() for i in range(k)]
        return logs + [product[i][j] / product[i][i] for i in range(k) for j in range(i)]

    def largest(self, radius: float) -> float:
        """Return the radius."""
        return radius

    def require_footpoint(self, footpoint: Array) -> None:
        """Refuse matrices that are not positive definite."""
        with precision_kept():
            ctx.prec = _CHECK_BITS
            if _footpoint_factor(footpoint) is None:
                raise InvalidArgumentError("footpoint must be positive definite.")

    def place(self, numbers: FloatArray) -> Array:
        """Return T T' for the factor T that finite numbers stand for; a matrix of the space whatever they are.

        Logarithms that would leave the doubles are cut off, and a matrix that is not positive definite to working
        precision is lifted until it is.

        Examples
        --------
        >>> from dpmanifold.manifolds import SPD
        >>> SPD(2, metric="riemann").exact_points.place(np.array([0.0, 0.0, 2.0]))
        array([[1., 2.],
               [2., 5.]])
        """
        k = self.space.size
        diagonal = np.exp(np.clip(numbers[:k], -_LONGEST_LOG, _LONGEST_LOG))
        largest = math.exp(_LONGEST_LOG)
        factor = np.eye(k)
        factor[np.tril_indices(k, -1)] = np.clip(numbers[k:], -largest, largest)
        factor *= diagonal[:, None]
        matrix = symmetrize(factor @ factor.T)
        if self.space.check(matrix) is None:
            return matrix
        size = np.abs(matrix).max()
        values, vectors = np.linalg.eigh(matrix / size)
        lifted = np.maximum(values, _FLOOR * values[-1])
        return np.asarray(symmetrize((vectors * lifted) @ vectors.T) * size)


class _EigenvalueVolume(ExactVolume):
    """J(S), the product over pairs of eigenvalues of sinh(x)/x, x half their difference.

    With N = k(k-1)/2 pairs and a = 1/sqrt(2(k-1)), J(S) <= (sinh(a t)/(a t))^N at |S| = t, as log(sinh(x)/x) is concave
    in x^2 and the squares of the x sum up to at most k t^2/4 = N (a t)^2.
    """

    def __init__(self, size: int) -> None:
        self._size, self.pairs = size, size * (size - 1) // 2

    def stretch(self) -> arb:
        """Return a."""
        return 1 / arb(2 * (self._size - 1)).sqrt()

    def at(self, distance: arb, gaussian: list[arb], *, quick: bool) -> arb | None:
        """Return J by eigenvalues of the direction: from doubles, or at working precision."""
        direction = symmetric_matrix(self._size, gaussian)
        with ctx.workprec(_QUICK_BITS if quick else ctx.prec):
            values = near_eigenvalues(direction) if quick else close_eigenvalues(direction)
            if values is None:
                return None
            volume = arb(1)
            for first, second in combinations(values, 2):
                volume *= sinhc(distance * (first - second) / 2)
            return volume


def symmetric_matrix(k: int, gaussian: list[arb]) -> arb_mat:
    """Return a symmetric matrix of Frobenius norm 1, uniform if the numbers are normal."""
    length = norm(gaussian)
    off = 1 / (length * arb(2).sqrt())
    entries = arb_mat(k, k)
    for i in range(k):
        entries[i, i] = gaussian[i] / length
    for (i, j), z in zip(combinations(range(k), 2), gaussian[k:], strict=True):
        entries[i, j] = entries[j, i] = z * off
    return entries


def near_eigenvalues(matrix: arb_mat) -> list[arb] | None:
    """Return balls that hold the eigenvalues of a symmetric matrix, from eigenvectors in doubles; None if they fail.

    With Q the doubles' eigenvectors and A = Q' S Q, the eigenvalues of A differ from its diagonal by at most the norm
    of what is off it (Weyl), and from those of S by factors between the extreme eigenvalues of Q'Q (Ostrowski), which
    are within |Q'Q - I| of 1. All three matrices are computed in balls, so nothing depends on how Q was found.

    Examples
    --------
    >>> values = near_eigenvalues(arb_mat([[2, 1], [1, 2]]))
    >>> [value.contains(exact) for value, exact in zip(values, (1, 3), strict=True)]
    [True, True]
    """
    k = matrix.nrows()
    middle = np.array([float(entry) for entry in matrix.entries()]).reshape(k, k)
    if not np.isfinite(middle).all():
        return None
    q = arb_mat(k, k, np.linalg.eigh(middle)[1].ravel().tolist())
    turned = (q.transpose() * matrix * q).tolist()
    gram = (q.transpose() * q).tolist()
    error, factor = arb(0, _norm_off(turned)), arb(1, _norm_off(gram) + _norm([gram[i][i] - 1 for i in range(k)]))
    return [(turned[i][i] + error) / factor for i in range(k)]


def _norm(entries: Iterable[arb]) -> arb:
    """Return an upper bound of the norm of a vector."""
    return sum((entry.abs_upper() ** 2 for entry in entries), start=arb(0)).sqrt().upper()


def _norm_off(rows: Sequence[Sequence[arb]]) -> arb:
    """Return an upper bound of the Frobenius norm of what is off a matrix's diagonal."""
    return _norm(entry for i, row in enumerate(rows) for j, entry in enumerate(row) if i != j)


def close_eigenvalues(matrix: arb_mat) -> list[arb] | None:
    """Return balls that hold the eigenvalues of a symmetric matrix, at working precision; None if some overlap.

    Examples
    --------
    >>> sorted(round(float(value), 6) for value in close_eigenvalues(arb_mat([[2, 1], [1, 2]])))
    [1.0, 3.0]
    """
    try:
        return [value.real for value in acb_mat(matrix).eig()]
    except ValueError:
        return None


def _footpoint_factor(footpoint: FloatArray) -> arb_mat | None:
    """Return the triangular factor of the symmetric part of a matrix of doubles."""
    return _factor([[(arb(a) + arb(b)) / 2 for a, b in zip(*pair, strict=True)] for pair in _rows(footpoint)])


def _rows(matrix: FloatArray) -> list[tuple[list[float], list[float]]]:
    return list(zip(matrix.tolist(), matrix.T.tolist(), strict=True))


def _factor(rows: Sequence[Sequence[arb]]) -> arb_mat | None:
    """Return T, lower triangular with a positive diagonal, T T' the matrix; None if it is not certainly positive."""
    k = len(rows)
    factor: list[list[arb]] = []
    for i in range(k):
        row: list[arb] = []
        for j in range(i):
            other = factor[j]
            row.append((rows[i][j] - sum((a * b for a, b in zip(row, other, strict=False)), start=arb(0))) / other[j])
        pivot = rows[i][i] - sum((a * a for a in row), start=arb(0))
        if not pivot > 0:
            return None
        factor.append([*row, pivot.sqrt()])
    return arb_mat([row + [arb(0)] * (k - len(row)) for row in factor])


def sinhc(x: arb) -> arb:
    """Return sinh(x)/x, 1 at 0: sin(z)/z at the imaginary number z = ix."""
    return acb(0, x).sinc().real
