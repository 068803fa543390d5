"""Matrices on a CUDA card about their log-Euclidean mean, where the solver starts: nothing of them is fetched.

For means without a ball on the affine-invariant metric. Not private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.frechet.records import Records
from dpmanifold.linalg import affine_factor, clipped_log_sums, expm, unpack_triangles, vecd_of_triangles
from dpmanifold.linalg import whitened_triangles as whiten
from dpmanifold.linalg.cards.arrays import is_card_array, room_beside
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.linalg.fused import LARGEST_LOGARITHM
from dpmanifold.linalg.native.library import card_in_use
from dpmanifold.manifolds import SPD
from dpmanifold.manifolds.base import POINT_TOLERANCE


@dataclass(frozen=True)
class Anchored:
    """Points in the frame of their log-Euclidean mean.

    Attributes
    ----------
    anchor : the log-Euclidean mean
    stored : the points there, packed, on the card
    first : (1, dim), the sum of their logarithms at the origin
    """

    anchor: Array
    stored: Array
    first: FloatArray


def anchored_on_card(records: Records) -> Anchored | None:
    """Check and whiten matrices where they lie on a card; None where they do not, or where some need a closer look.

    Examples
    --------
    >>> anchored_on_card(Records.of(np.eye(2)[None], SPD(2, metric="riemann"))) is None
    True
    """
    raw, space = records.raw, records.space
    if not (isinstance(space, SPD) and card_in_use(lies_there=is_card_array(raw))) or space.is_flat:
        return None
    if not is_card_array(raw) or raw.shape[1:] != space.shape:
        return None
    return _anchored(records, records.raw, space)


def _anchored(records: Records, raw: Array, space: SPD) -> Anchored | None:
    logs = clipped_log_sums(raw, tolerance=POINT_TOLERANCE)
    if not logs.clean and logs.faulty.any():
        records.rows(np.flatnonzero(logs.faulty))  # refuses them, unless they are points after all
        return None
    anchor = expm(unpack_triangles(logs.sums.total()[0]) / len(raw))
    inverse, power = affine_factor(anchor)
    sums, out = ExactSum(space.dim, LARGEST_LOGARITHM), room_beside(raw, (len(raw), space.dim))
    stored, found = whiten(raw, inverse, power, math.inf, tolerance=POINT_TOLERANCE, out=out, sums=sums)
    if not found.clean and found.status.any():
        return None
    return Anchored(anchor, stored, vecd_of_triangles(sums.total()))
