"""Symmetric positive definite matrices under two metrics: affine-invariant and log-Euclidean."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import Array, FloatArray, index_text, positive_int
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.linalg import (
    congruence,
    divided_differences_exp,
    divided_differences_log,
    expm,
    from_vecd,
    logm,
    symmetrize,
    to_vecd,
)
from dpmanifold.linalg.symmetric import positive_eigenvalues
from dpmanifold.manifolds.base import EPS, POINT_TOLERANCE, Manifold, vector_norm
from dpmanifold.manifolds.hyperbolic import log_sinhc, u_coth_u

# A normal coordinate beyond this would overflow the exponential of some matrix it belongs to.
_LONGEST = 300.0


class SPD(Manifold):
    """SPD(k): positive definite k x k matrices, with pyRiemann's names for the two metrics.

    `metric="logeuclid"` (default) is flat: distance is the Frobenius norm of the difference of matrix
    logarithms. `metric="riemann"` is the affine-invariant metric, of curvature in [-1/2, 0]: congruences
    x -> a x a' are isometries. The origin is the identity. Frames come from the matrix logarithm's
    derivative on the first, from the Cholesky factor of the base point on the second.

    Parameters
    ----------
    k : size of the matrices
    metric : "logeuclid" or "riemann"

    Examples
    --------
    >>> space = SPD(2, metric="riemann")
    >>> round(float(space.dist(np.eye(2), np.diag([1.0, np.e]))), 12)
    1.0
    """

    # The public class only picks the metric: the geometry is in the two classes below.
    metric: str
    size: int
    injectivity_radius = math.inf
    is_hadamard = True

    def __new__(cls, k: int, metric: str = "logeuclid") -> SPD:
        """Return the space with the metric asked for."""
        classes: dict[str, type[SPD]] = {"logeuclid": _LogEuclidean, "riemann": _AffineInvariant}
        if metric not in classes:
            raise InvalidArgumentError(f'metric must be "logeuclid" or "riemann" on SPD matrices, got {metric!r}.')
        return super().__new__(classes[metric])

    def __init__(self, k: int, metric: str = "logeuclid") -> None:
        self.size = positive_int(k, "k")
        self.metric = metric
        self.dim = self.size * (self.size + 1) // 2
        self.shape = (self.size, self.size)
        self.is_flat = metric == "logeuclid" or self.size == 1
        self.curvature = (0.0, 0.0) if self.is_flat else (-0.5, 0.0)
        self.origin = np.eye(self.size)

    def __getnewargs__(self) -> tuple[int, str]:
        return self.size, self.metric

    def __repr__(self) -> str:
        return f"SPD({self._arguments()})"

    def _arguments(self) -> str:
        return str(self.size) if self.metric == "logeuclid" else f'{self.size}, metric="{self.metric}"'

    def check(self, p: object) -> str | None:
        """Return why `p` is not symmetric positive definite, with the index, or None."""
        array, reason = self._entries_reason(p)
        if array is None or reason is not None:
            return reason
        largest = np.abs(array).max(axis=(-1, -2), initial=0.0)
        gap = np.abs(array - np.swapaxes(array, -1, -2)).max(axis=(-1, -2), initial=0.0)
        bad = gap > POINT_TOLERANCE * largest
        if bad.any():
            return f"the matrix{index_text(bad)} is not symmetric. Use its symmetric part (a + a')/2 if that is meant."
        # A Cholesky factorisation of the whole batch settles the usual case at a fraction of the cost of
        # eigenvalues; they are computed only to say what is wrong.
        scale = np.where(largest > 0, largest, 1.0)[..., None, None]
        scaled = symmetrize(array / scale)
        try:
            pivots = np.diagonal(np.linalg.cholesky(scaled), axis1=-2, axis2=-1)
            if (np.min(pivots, axis=-1, initial=np.inf) ** 2 > self.size * EPS).all():
                return None
        except np.linalg.LinAlgError:
            pass
        values = np.linalg.eigvalsh(scaled)
        bad = values[..., 0] <= self.size * EPS * values[..., -1]
        if not bad.any():
            return None
        smallest = np.atleast_1d(values[..., 0] * scale[..., 0, 0])[np.atleast_1d(bad)][0]
        return (
            f"the matrix{index_text(bad)} is not positive definite to working precision (smallest eigenvalue "
            f"{smallest:.3g}). Use more observations per matrix, add a ridge, or drop dependent channels."
        )

    def project(self, p: object) -> Array:
        """Return the symmetric part."""
        return symmetrize(self._array(p))

    def _random(self, batch: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.exp_coords(self.origin, rng.standard_normal((*batch, self.dim)))

    def extrinsic_mean(self, points: Array, weights: FloatArray) -> Array:
        """Return the log-Euclidean mean."""
        return expm(np.tensordot(weights, logm(points), axes=1))

    def _short(self, c: object) -> FloatArray:
        c = self._coordinates(c)
        if (vector_norm(c) > _LONGEST).any():
            raise InvalidArgumentError(f"c must be at most {_LONGEST:g} long: the end point would overflow.")
        return c

    def _condition_error(self, log_condition: float) -> float:
        """Error of a logarithm's norm when eigenvalues carry an error of 4 k^2.5 eps times the largest one."""
        if log_condition > 600:
            return math.inf
        lost = 4 * self.size**2.5 * EPS * math.exp(log_condition)
        return lost / (1 - lost) if lost < 0.5 else math.inf


class _LogEuclidean(SPD):
    """The flat metric: everything happens on matrix logarithms."""

    def dist(self, p: Array, q: Array) -> FloatArray:
        """Frobenius norm of the difference of logarithms."""
        return vector_norm(self.log_coords(p, q))

    def to_origin(self, p: Array, q: Array) -> Array:
        """Subtract the logarithm of p."""
        return expm(logm(self._array(q, "q")) - logm(self._array(p)))

    def from_origin(self, p: Array, q: Array) -> Array:
        """Add the logarithm of p."""
        return expm(logm(self._array(q, "q")) + logm(self._array(p)))

    def log_coords(self, p: Array, q: Array) -> FloatArray:
        """Difference of logarithms, flattened."""
        return to_vecd(logm(self._array(q, "q"))) - to_vecd(logm(self._array(p)))

    def exp_coords(self, p: Array, c: FloatArray) -> Array:
        """Exponential of the sum of logarithms."""
        return expm(logm(self._array(p)) + from_vecd(self._short(c)))

    def coords(self, p: Array, v: Array) -> FloatArray:
        """Derivative of the logarithm at p, applied to v, flattened."""
        values, vectors = np.linalg.eigh(self._array(p))
        weights = divided_differences_log(positive_eigenvalues(values))
        turned = congruence(np.swapaxes(vectors, -1, -2), symmetrize(self._array(v, "v")))
        return to_vecd(congruence(vectors, weights * turned))

    def vector(self, p: Array, c: FloatArray) -> Array:
        """Derivative of the exponential at log p."""
        values, vectors = np.linalg.eigh(self._array(p))
        weights = divided_differences_exp(np.log(positive_eigenvalues(values)))
        turned = congruence(np.swapaxes(vectors, -1, -2), from_vecd(self._coordinates(c)))
        return congruence(vectors, weights * turned)

    def log_volume_density(self, c: FloatArray) -> FloatArray:
        """Return 0: the metric is flat."""
        return np.zeros(self._coordinates(c).shape[:-1])

    def hessian_spectrum(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ones and the identity: the metric is flat."""
        c = self._coordinates(c)
        return np.ones(c.shape), np.broadcast_to(np.eye(self.dim), (*c.shape, self.dim))

    def hessian_diameter(self, distance: float) -> float:
        """Return 0: the metric is flat."""
        return 0.0

    def dist_error(self, center: Array, radius: float) -> float:
        """Error of two logarithms; a matrix in the ball is as ill-conditioned as its distance allows."""
        spread = float(np.ptp(np.log(_eigenvalues(center))))
        return self._condition_error(spread) + self._condition_error(spread + math.sqrt(2) * radius)

    def log_error(self, radius: float) -> float:
        """Error of two logarithms of matrices in the ball about the identity."""
        return 2 * self._condition_error(math.sqrt(2) * radius)


class _AffineInvariant(SPD):
    """The metric that congruences leave alone: everything happens after whitening with a Cholesky factor."""

    def _whitened(self, p: object, q: object) -> tuple[FloatArray, FloatArray]:
        """Return L^-1 q L^-T for p = L L', and the log of the power of two taken out of it."""
        p, q = self._array(p), self._array(q, "q")
        p_power, q_power = _power_of_two(p), _power_of_two(q)
        factor = np.linalg.cholesky(np.ldexp(p, -p_power[..., None, None]))
        return congruence(_inverse(factor), np.ldexp(q, -q_power[..., None, None])), (q_power - p_power) * math.log(2)

    def _factor(self, p: object) -> FloatArray:
        return np.linalg.cholesky(self._array(p))

    def dist(self, p: Array, q: Array) -> FloatArray:
        """Norm of the logarithms of the generalised eigenvalues."""
        white, shift = self._whitened(p, q)
        return vector_norm(np.log(_eigenvalues(white)) + shift[..., None])

    def to_origin(self, p: Array, q: Array) -> Array:
        """Apply the congruence with the inverse Cholesky factor of p."""
        white, shift = self._whitened(p, q)
        return white * np.exp(shift)[..., None, None]

    def from_origin(self, p: Array, q: Array) -> Array:
        """Apply the congruence with the Cholesky factor of p."""
        return congruence(self._factor(p), self._array(q, "q"))

    def log_coords(self, p: Array, q: Array) -> FloatArray:
        """Logarithm of the whitened matrix, flattened."""
        white, shift = self._whitened(p, q)
        c = to_vecd(logm(white))
        c[..., : self.size] += shift[..., None]
        return c

    def exp_coords(self, p: Array, c: FloatArray) -> Array:
        """Congruence of an exponential."""
        return congruence(self._factor(p), expm(from_vecd(self._short(c))))

    def coords(self, p: Array, v: Array) -> FloatArray:
        """Whitened tangent vector, flattened."""
        return to_vecd(congruence(_inverse(self._factor(p)), symmetrize(self._array(v, "v"))))

    def vector(self, p: Array, c: FloatArray) -> Array:
        """Return the congruence of the symmetric matrix with coordinates `c`."""
        return congruence(self._factor(p), from_vecd(self._coordinates(c)))

    def log_volume_density(self, c: FloatArray) -> FloatArray:
        """Sum of log(sinh x / x) over pairs of eigenvalues, x half their difference."""
        values = np.linalg.eigvalsh(from_vecd(self._coordinates(c)))
        rows, columns = np.triu_indices(self.size, 1)
        return np.asarray(log_sinhc((values[..., columns] - values[..., rows]) / 2).sum(axis=-1))

    def hessian_spectrum(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """1 on matrices that commute with the geodesic's direction, x coth x on the pairs."""
        values, vectors = np.linalg.eigh(from_vecd(self._coordinates(c)))
        k = self.size
        rows, columns = np.triu_indices(k, 1)
        eigenvalues = np.ones((*values.shape[:-1], self.dim))
        eigenvalues[..., k:] = u_coth_u((values[..., columns] - values[..., rows]) / 2)
        # The orthonormal basis of symmetric matrices, turned into the eigenbasis.
        basis = congruence(vectors[..., None, :, :], from_vecd(np.eye(self.dim)))
        return eigenvalues, np.swapaxes(to_vecd(basis), -1, -2)

    def hessian_diameter(self, distance: float) -> float:
        """(x coth x - 1) sqrt(k), x = distance/sqrt 2; 0 for numbers."""
        return 0.0 if self.size == 1 else math.sqrt(self.size) * (self.hessian_bounds(distance)[1] - 1)

    def dist_error(self, center: Array, radius: float) -> float:
        """Error of whitening by the centre, seen by the smallest eigenvalue a distance allows."""
        spread = float(np.ptp(np.log(_eigenvalues(center))))
        return self._condition_error(spread + math.sqrt(2) * radius)

    def log_error(self, radius: float) -> float:
        """Error of whitening one matrix of the ball about the identity by another."""
        return self._condition_error(2 * math.sqrt(2) * radius)


def _inverse(factor: FloatArray) -> FloatArray:
    """Return the inverse of triangular factors."""
    return np.asarray(np.linalg.solve(factor, np.eye(factor.shape[-1])), dtype=np.float64)


def _eigenvalues(a: FloatArray) -> FloatArray:
    """Return eigenvalues in increasing order, kept positive."""
    return positive_eigenvalues(np.asarray(np.linalg.eigvalsh(a), dtype=np.float64))


def _power_of_two(a: FloatArray) -> Array:
    """Return the exponent of the largest diagonal entry of each matrix."""
    return np.asarray(np.frexp(np.diagonal(a, axis1=-2, axis2=-1).max(axis=-1))[1])
