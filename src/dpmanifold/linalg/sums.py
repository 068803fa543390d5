"""Sums over many records, whose order leaves no trace."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.linalg.exact_sums import ExactSum

# Records that are added at a time.
_BLOCK = 16_384


def weighted_sum(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sum_i w_i values_i over the first axis: the products are added exactly, whatever their order.

    The scale of the integers follows from the largest entry and the largest weight: nothing here is private.

    >>> weighted_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 0.5]))
    array([2., 3.])
    """
    bound = float(np.abs(values).max(initial=0.0)) * float(np.abs(weights).max(initial=0.0))
    if not (0 < bound < np.inf):
        return np.asarray((values * weights[:, None]).sum(axis=0))
    sums = ExactSum(values.shape[1], bound)
    for start in range(0, len(values), _BLOCK):
        sums.add(values[start : start + _BLOCK] * weights[start : start + _BLOCK, None])
    return np.asarray(sums.total()[0])
