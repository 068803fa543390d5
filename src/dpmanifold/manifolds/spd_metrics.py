"""The geometry of SPD matrices under two metrics, on arrays that were checked by :class:`SPD`."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg import (
    affine_factor,
    congruence,
    divided_differences_exp,
    divided_differences_log,
    expm,
    from_vecd,
    log_coordinates,
    log_norm,
    logm,
    to_vecd,
    whitened,
    whitened_log_sum,
)
from dpmanifold.linalg.symmetric import positive_eigenvalues
from dpmanifold.manifolds.vectors import EPS, log_sinhc, sum_and_longest, u_coth_u, vector_norm


class _Metric:
    """What both metrics share; their methods mean what they mean on :class:`Manifold`."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.dim = size * (size + 1) // 2

    def _condition_error(self, log_condition: float) -> float:
        """Error of a logarithm's norm when eigenvalues carry an error of 4 k^2.5 eps times the largest one."""
        if log_condition > 600:
            return math.inf
        lost = 4 * self.size**2.5 * EPS * math.exp(log_condition)
        return lost / (1 - lost) if lost < 0.5 else math.inf


class LogEuclideanMetric(_Metric):
    """The flat metric: everything happens on matrix logarithms."""

    def dist(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Frobenius norm of the difference of logarithms."""
        return vector_norm(self.log_coords(p, q))

    def to_origin(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Subtract the logarithm of p."""
        return expm(logm(q) - logm(p))

    def from_origin(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Add the logarithm of p."""
        return expm(logm(q) + logm(p))

    def log_coords(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Difference of logarithms, flattened."""
        return log_coordinates(q) - log_coordinates(p)

    def weighted_log(self, p: FloatArray, q: FloatArray, weights: FloatArray, reach: float) -> tuple[FloatArray, float]:
        """Weighted sum of differences of logarithms."""
        return sum_and_longest(self.log_coords(p, q), weights)

    def exp_coords(self, p: FloatArray, c: FloatArray) -> FloatArray:
        """Exponential of the sum of logarithms."""
        tangent = from_vecd(c)
        at_origin = p.ndim == 2 and bool((p == np.eye(len(p))).all())  # whose logarithm, 0, is not worth a call
        return expm(tangent if at_origin else logm(p) + tangent)

    def coords(self, p: FloatArray, v: FloatArray) -> FloatArray:
        """Derivative of the logarithm at p, applied to v, flattened."""
        values, vectors = np.linalg.eigh(p)
        weights = divided_differences_log(positive_eigenvalues(values))
        turned = congruence(np.swapaxes(vectors, -1, -2), v)
        return to_vecd(congruence(vectors, weights * turned))

    def vector(self, p: FloatArray, c: FloatArray) -> FloatArray:
        """Derivative of the exponential at log p."""
        values, vectors = np.linalg.eigh(p)
        weights = divided_differences_exp(np.log(positive_eigenvalues(values)))
        turned = congruence(np.swapaxes(vectors, -1, -2), from_vecd(c))
        return congruence(vectors, weights * turned)

    def dist_error(self, logs: FloatArray, radius: float) -> float:
        """Error of two logarithms; a matrix in the ball is as ill-conditioned as its distance allows."""
        spread = float(logs[-1] - logs[0])
        stored = 8 * EPS * (2 * float(vector_norm(logs)) + radius)  # what it takes to write both down
        return self._condition_error(spread) + self._condition_error(spread + math.sqrt(2) * radius) + stored

    def log_error(self, radius: float) -> float:
        """Error of two logarithms of matrices in the ball about the identity."""
        return 2 * self._condition_error(math.sqrt(2) * radius)


class AffineInvariantMetric(_Metric):
    """The metric that congruences leave alone: everything happens after whitening with a Cholesky factor."""

    def _whitened(self, p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return L^-1 q L^-T for p = L L', and the log of the power of two taken out of it."""
        p_power = _power_of_two(p)
        factor = np.linalg.cholesky(np.ldexp(p, -p_power[..., None, None]))
        return self._whitened_by(_inverse(factor), p_power, q)

    def _whitened_by(self, inverse: FloatArray, p_power: Array, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        q_power = _power_of_two(q)
        return congruence(inverse, np.ldexp(q, -q_power[..., None, None])), (q_power - p_power) * math.log(2)

    def _factor(self, p: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.cholesky(p), dtype=np.float64)

    def dist(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Norm of the logarithms of the generalised eigenvalues."""
        if p.ndim == 2:
            return log_norm(q, *affine_factor(p))
        white, shift = self._whitened(p, q)
        return vector_norm(np.log(_eigenvalues(white)) + shift[..., None])

    def to_origin(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Apply the congruence with the inverse Cholesky factor of p."""
        if p.ndim == 2:
            inverse, power = affine_factor(p)
            return whitened(inverse, q, power)
        white, shift = self._whitened(p, q)
        return white * np.exp(shift)[..., None, None]

    def from_origin(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Apply the congruence with the Cholesky factor of p."""
        return congruence(self._factor(p), q)

    def log_coords(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Logarithm of the whitened matrix, flattened."""
        if p.ndim == 2:
            return log_coordinates(q, *affine_factor(p))
        return self._shifted_log(*self._whitened(p, q))

    def log_coords_by(self, inverse: FloatArray, power: Array, q: FloatArray) -> FloatArray:
        """Normal coordinates where the inverse factors of base points are known, and the powers taken out of them."""
        return self._shifted_log(*self._whitened_by(inverse, power, q))

    def _shifted_log(self, white: FloatArray, shift: FloatArray) -> FloatArray:
        c = log_coordinates(white)
        c[..., : self.size] += shift[..., None]
        return c

    def weighted_log(self, p: FloatArray, q: FloatArray, weights: FloatArray, reach: float) -> tuple[FloatArray, float]:
        """Weighted sum of logarithms of whitened matrices."""
        inverse, power = affine_factor(p)
        # Logarithms of two eigenvalues differ by at most sqrt(2) times the norm of all of them; 1 % for rounding.
        condition = math.exp(min(math.sqrt(2) * reach + 0.01, 700.0))
        total, lengths = whitened_log_sum(inverse, q, weights, power, condition=condition)
        return total, float(lengths.max())

    def exp_coords(self, p: FloatArray, c: FloatArray) -> FloatArray:
        """Congruence of an exponential."""
        return congruence(self._factor(p), expm(from_vecd(c)))

    def coords(self, p: FloatArray, v: FloatArray) -> FloatArray:
        """Whitened tangent vector, flattened."""
        return to_vecd(congruence(_inverse(self._factor(p)), v))

    def vector(self, p: FloatArray, c: FloatArray) -> FloatArray:
        """Return the congruence of the symmetric matrix with coordinates `c`."""
        return congruence(self._factor(p), from_vecd(c))

    def log_volume_density(self, c: FloatArray) -> FloatArray:
        """Sum of log(sinh x / x) over pairs of eigenvalues, x half their difference."""
        values = np.linalg.eigvalsh(from_vecd(c))
        rows, columns = np.triu_indices(self.size, 1)
        return np.asarray(log_sinhc((values[..., columns] - values[..., rows]) / 2).sum(axis=-1))

    def hessian_spectrum(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """1 on matrices that commute with the geodesic's direction, x coth x on the pairs."""
        values, vectors = np.linalg.eigh(from_vecd(c))
        k = self.size
        rows, columns = np.triu_indices(k, 1)
        eigenvalues = np.ones((*values.shape[:-1], self.dim))
        eigenvalues[..., k:] = u_coth_u((values[..., columns] - values[..., rows]) / 2)
        # The orthonormal basis of symmetric matrices, turned into the eigenbasis.
        basis = congruence(vectors[..., None, :, :], from_vecd(np.eye(self.dim)))
        return eigenvalues, np.swapaxes(to_vecd(basis), -1, -2)

    def curvature_operator(self, second_moment: FloatArray) -> FloatArray:
        """R(w, v)v = -[v, [v, w]]/4; the moment is a sum of squares of vectors, taken one at a time."""
        values, vectors = np.linalg.eigh(second_moment)
        basis = from_vecd(np.eye(self.dim))
        total = np.zeros((self.dim, self.dim))
        for weight, v in zip(values, from_vecd(vectors.T), strict=True):
            commutators = (v @ basis - basis @ v).reshape(self.dim, -1)
            total -= weight / 4 * commutators @ commutators.T
        return total

    def dist_error(self, logs: FloatArray, radius: float) -> float:
        """Error of whitening by the centre, seen by the smallest eigenvalue a distance allows."""
        return self._condition_error(float(logs[-1] - logs[0]) + math.sqrt(2) * radius)

    def log_error(self, radius: float) -> float:
        """Error of whitening one matrix of the ball about the identity by another."""
        return self._condition_error(2 * math.sqrt(2) * radius)


def _inverse(factor: FloatArray) -> FloatArray:
    """Return the inverse of triangular factors."""
    identity = np.broadcast_to(np.eye(factor.shape[-1]), factor.shape)  # numpy 1 would take one for a stack of vectors
    return np.asarray(np.linalg.solve(factor, identity), dtype=np.float64)


def _eigenvalues(a: FloatArray) -> FloatArray:
    """Return eigenvalues in increasing order, kept positive."""
    return positive_eigenvalues(np.asarray(np.linalg.eigvalsh(a), dtype=np.float64))


def _power_of_two(a: FloatArray) -> Array:
    """Return the exponent of the largest diagonal entry of each matrix."""
    return np.asarray(np.frexp(np.diagonal(a, axis1=-2, axis2=-1).max(axis=-1))[1])
