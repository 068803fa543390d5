"""Arithmetic with vectors that several spaces share: norms, directions, bases, and functions of one angle."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg.exact_sums import weighted_sum

EPS = float(np.finfo(np.float64).eps)

# Sums of squares between this and its inverse have lost nothing to underflow or overflow.
_SMALLEST_SQUARE = 1e-200


def sum_and_longest(vectors: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
    """Return the weighted sum of vectors (n, d), shape (d,), and the length of the longest."""
    return weighted_sum(vectors, weights), float(vector_norm(vectors).max())


def vector_norm(c: Array) -> FloatArray:
    """Euclidean norm over the last axis, safe from overflow and underflow of the squares.

    >>> float(vector_norm(np.array([0.0, -4e300])))
    4e+300
    """
    # Complex vectors are read as twice as many reals: plain sums of squares do not depend on the batch, while
    # vectorised complex arithmetic may round differently at its edges.
    real = np.ascontiguousarray(c).view(np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = np.asarray((real * real).sum(axis=-1))
        norm = np.asarray(np.sqrt(squares))
        extreme = ~((squares > _SMALLEST_SQUARE) & (squares < 1 / _SMALLEST_SQUARE))
        if not extreme.any():
            return norm
        # Scaled by a power of two, which rounds nothing: the same bits wherever both ways work.
        far = real[extreme]
        scale = np.ldexp(1.0, np.clip(np.frexp(np.abs(far).max(axis=-1, initial=0.0))[1], -1000, 1000))
        scaled = far / scale[..., None]
        # A norm beyond the largest double is infinite, and callers can tell.
        norm[extreme] = np.sqrt((scaled * scaled).sum(axis=-1)) * scale
    return norm


def shorten(c: FloatArray, limit: float) -> FloatArray:
    """Scale vectors longer than `limit` to that length, along the last axis; safe from overflow.

    >>> shorten(np.array([[1e308, 1e308], [0.1, 0.0]]), 1.0).round(3)
    array([[0.707, 0.707],
           [0.1  , 0.   ]])
    """
    length = vector_norm(c)
    outside = ~(length <= limit)
    if not outside.any():
        return c
    result = c.copy()
    far = c[outside]
    far = far / np.abs(far).max(axis=-1, keepdims=True)  # first, so that no norm overflows
    result[outside] = far * (limit / vector_norm(far))[..., None]
    return result


def unit_direction(c: Array, length: FloatArray) -> Array:
    """Return `c / length` along the last axis, and the first basis vector where the length is 0.

    >>> unit_direction(np.zeros(2), np.array(0.0))
    array([1., 0.])
    """
    first = np.zeros(c.shape[-1], dtype=c.dtype)
    first[0] = 1.0
    zero = length == 0
    # Complex vectors are divided as twice as many reals, as in vector_norm. At the smallest lengths numpy 1.26 warns of
    # numbers that it fills a block up with.
    with np.errstate(over="ignore"):
        real = np.ascontiguousarray(c).view(np.float64) / np.where(zero, 1.0, length)[..., None]
    return np.where(zero[..., None], first, real.view(c.dtype))


def complete_basis(u: Array) -> Array:
    """Return an orthogonal (or unitary) matrix whose first column is the unit vector `u`; (..., d) -> (..., d, d).

    >>> complete_basis(np.array([0.0, 1.0])).round(12) + 0.0
    array([[0., 1.],
           [1., 0.]])
    """
    d = u.shape[-1]
    # A Householder reflection takes the first basis vector to -phase * u without cancellation.
    head = u[..., :1]
    size = np.abs(head)
    phase = np.where(size > 0, head / np.where(size > 0, size, 1.0), 1.0)
    w = u.copy()
    w[..., :1] += phase
    outer = w[..., :, None] * np.conj(w)[..., None, :] / (1 + size)[..., None]
    basis = (np.eye(d, dtype=u.dtype) - outer) * -np.conj(phase)[..., None]
    basis[..., :, 0] = u
    return np.asarray(basis)


def log_sinc(u: FloatArray) -> FloatArray:
    """Log of sin(u)/u, 0 at 0 and minus infinity from pi on.

    >>> float(log_sinc(np.array(0.0))), float(log_sinc(np.array(np.pi)))
    (0.0, -inf)
    """
    inside = u < np.pi
    ratio = np.sinc(np.where(inside, u, 0.0) / np.pi)
    with np.errstate(divide="ignore"):
        return np.where(inside, np.log(ratio), -np.inf)


def u_cot_u(u: FloatArray) -> FloatArray:
    """Return u cot(u), 1 at 0.

    >>> float(u_cot_u(np.array(0.0)))
    1.0
    """
    safe = np.where(u == 0, 1.0, u)
    return np.where(u == 0, 1.0, safe / np.tan(safe))


def log_sinhc(u: FloatArray) -> FloatArray:
    """Log of sinh(u)/u for u >= 0 without overflow; 0 at 0.

    >>> float(log_sinhc(np.array(0.0))), round(float(log_sinhc(np.array(1000.0))), 3)
    (0.0, 992.399)
    """
    small = u < 1e-2
    large = np.where(small, 1.0, u)
    square = np.where(small, u * u, 0.0)
    series = square / 6 * (1 - square / 30 + square * square / 472.5)
    return np.where(small, series, large + np.log(-np.expm1(-2 * large)) - np.log(2 * large))


def u_coth_u(u: FloatArray) -> FloatArray:
    """Return u coth(u), 1 at 0.

    >>> float(u_coth_u(np.array(0.0)))
    1.0
    """
    safe = np.where(u == 0, 1.0, u)
    return np.where(u == 0, 1.0, safe / np.tanh(safe))
