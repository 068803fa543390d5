"""Sums over many records, whose rounding must stay within what every sensitivity allows for."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import FloatArray


def weighted_sum(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sum_i w_i values_i over the first axis, summed pairwise (theory: rounding).

    A matrix product would add in order, with an error that grows with n; numpy adds pairwise along contiguous memory.

    >>> weighted_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 0.5]))
    array([2., 3.])
    """
    return np.asarray(np.ascontiguousarray((values * weights[:, None]).T).sum(axis=1))
