"""SPD matrices in the frame of their log-Euclidean mean, kept on a CUDA card: two passes, and none is fetched."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg.cards.arrays import is_card_array, room_on_card
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.linalg.fused import LARGEST_LOGARITHM, affine_factor
from dpmanifold.linalg.log_sums import clipped_log_sums, whitened_triangles
from dpmanifold.linalg.native import passes
from dpmanifold.linalg.native.library import card_in_use
from dpmanifold.linalg.symmetric import expm, unpack_triangles


@dataclass(frozen=True)
class Anchored:
    """What was found of matrices on a card.

    Attributes
    ----------
    odd : the indices of those that are no SPD matrices; nothing else means anything if there are any
    anchor : (k, k), the log-Euclidean mean
    stored : (n, k(k+1)/2), the matrices whitened by it, packed lower triangles on the card
    sums : the sum of their logarithms
    """

    odd: Array
    anchor: FloatArray
    stored: Array
    sums: ExactSum


def anchored_there(x: Array, tolerance: float) -> Anchored | None:
    """Check matrices (n, k, k) and whiten them by their log-Euclidean mean, where a card does it; None elsewhere.

    `tolerance` says by what share of the largest entry mirrored entries may differ.

    Examples
    --------
    >>> anchored_there(np.eye(2)[None], 1e-6) is None
    True
    """
    if not (card_in_use(is_card_array(x)) and passes.usable(x)):
        return None
    k = x.shape[-1]
    size = k * (k + 1) // 2
    logs = clipped_log_sums(x, tolerance=tolerance)
    anchor = expm(unpack_triangles(logs.sums.total()[0]) / len(x))
    sums, odd = ExactSum(size, LARGEST_LOGARITHM), logs.faulty_places
    if odd.size:
        return Anchored(odd, anchor, np.empty((0, size)), sums)
    inverse, power = affine_factor(anchor)
    out = room_on_card((len(x), size), beside=x)
    stored, found = whitened_triangles(x, inverse, power, math.inf, tolerance=tolerance, out=out, sums=sums)
    return Anchored(found.faulty_places, anchor, stored, sums)
