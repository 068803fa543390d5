"""Arithmetic with complex vectors that rounds alike wherever an entry lies in memory.

Complex numbers are multiplied and divided by their real and imaginary parts, never as complex arrays: numpy's complex
loops round in one of two ways, by where an entry lies in memory, and a record's image would depend on its neighbours.
"""

from __future__ import annotations

import numpy as np

from dpmanifold._check import Array, FloatArray


def unit_sized(z: Array) -> Array:
    """Scale configurations by a power of two so that their largest entry is between 1/2 and 1 (0 stays 0)."""
    parts = np.ascontiguousarray(z).view(np.float64)
    exponent = np.frexp(np.abs(parts).max(axis=-1, keepdims=True))[1]
    return np.asarray(np.ldexp(parts, -exponent).view(np.complex128))


def centre(z: Array) -> Array:
    """Subtract the mean along the last axis."""
    return np.asarray(z - z.mean(axis=-1, keepdims=True))


def helmert_rows(k: int) -> FloatArray:
    """Orthonormal rows (k-1, k), each orthogonal to the constant vector."""
    rows = np.tril(np.ones((k - 1, k)))
    steps = np.arange(1, k)
    rows[np.arange(k - 1), steps] = -steps
    return np.asarray(rows / np.sqrt(steps * (steps + 1))[:, None])


def times(a: Array, b: Array) -> Array:
    """Multiply complex arrays, batches broadcast, in real arithmetic (the module's docstring says why)."""
    real = a.real * b.real - a.imag * b.imag
    result = np.empty(real.shape, dtype=np.complex128)
    result.real = real
    result.imag = a.real * b.imag + a.imag * b.real
    return result


def scale_by(z: Array, factor: FloatArray) -> Array:
    """Multiply complex vectors by real numbers (..., 1)."""
    return np.asarray((np.ascontiguousarray(z).view(np.float64) * factor).view(np.complex128))


def modulus(z: Array) -> FloatArray:
    """Return |z|, entry by entry."""
    return np.asarray(np.hypot(z.real, z.imag))


def unit_phase(z: Array) -> Array:
    """Return z/|z|, and 1 where z = 0."""
    size = modulus(z)
    divisor = np.where(size > 0, size, 1.0)
    result = np.empty(z.shape, dtype=np.complex128)
    result.real = np.where(size > 0, z.real / divisor, 1.0)
    result.imag = np.where(size > 0, z.imag / divisor, 0.0)
    return result


def as_real(c: Array) -> FloatArray:
    """Return real parts, then imaginary parts, along the last axis."""
    return np.concatenate([c.real, c.imag], axis=-1)


def as_pairs(c: FloatArray) -> Array:
    """Undo :func:`as_real`."""
    half = c.shape[-1] // 2
    return np.asarray(c[..., :half] + 1j * c[..., half:])


def to_unitary_frame(x: Array, v: Array) -> Array:
    """Complex coordinates of v in the unitary frame at the unit vector x.

    With the phase of x_0 divided out of both, the frame is b_j = e_j - w conj(x_j)/(1 + x_0), w = x + e_0.
    """
    turn = np.conj(unit_phase(x[..., :1]))
    x, v = times(x, turn), times(v, turn)
    overlap = times(np.conj(x), v).sum(axis=-1, keepdims=True) + v[..., :1]
    return np.asarray(v[..., 1:] - times(x[..., 1:], scale_by(overlap, 1 / (1 + x[..., :1].real))))


def from_unitary_frame(x: Array, c: Array) -> Array:
    """Return the vector with complex coordinates c in the same frame."""
    phase = unit_phase(x[..., :1])
    x = times(x, np.conj(phase))
    overlap = times(np.conj(x[..., 1:]), c).sum(axis=-1, keepdims=True)
    weight = scale_by(overlap, 1 / (1 + x[..., :1].real))
    first = -times(x[..., :1] + 1, weight)
    return times(np.concatenate([first, c - times(x[..., 1:], weight)], axis=-1), phase)


def as_doubles(z: Array) -> FloatArray:
    """Return complex vectors as real and imaginary parts in turn, (..., k) -> (..., 2k).

    >>> as_doubles(np.array([1 + 2j, 3j]))
    array([1., 2., 0., 3.])
    """
    return np.ascontiguousarray(z).view(np.float64)
