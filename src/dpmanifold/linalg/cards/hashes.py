"""Which of many points on a card to try first: those with the smallest hashes of their own bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array
from dpmanifold.linalg.cards.arrays import CardArray, on_host
from dpmanifold.linalg.cards.presence import cupy_module, failures_told

# Points whose hashes are held at a time.
_BLOCK = 2**24


def smallest(stored: CardArray, most: int) -> tuple[Array, npt.NDArray[np.uint64]]:
    """Return the points with the smallest hashes, `most` of them or a few more, and the hashes; fetched.

    The hash is that of :mod:`dpmanifold.frechet.passes`, number by number.
    """
    with failures_told(), stored.array.device:
        share = min(1.0, 4 * most / max(1, len(stored)))
        while True:
            points, hashes = _below(stored, share, most)
            if len(hashes) >= min(most, len(stored)) or share == 1.0:
                return points, hashes
            share = min(1.0, 16 * share)


def _below(stored: CardArray, share: float, most: int) -> tuple[Array, npt.NDArray[np.uint64]]:
    """Return points whose hashes are within this share of all numbers, and the hashes.

    Of each block at most so many: what is fetched must not depend on how many points are alike.
    """
    cupy = cupy_module()
    numbers = stored.array.reshape(len(stored), -1)
    points, hashes = [], []
    for start in range(0, len(stored), _BLOCK):
        part = numbers[start : start + _BLOCK]
        mixed = part[:, 0].copy().view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed += part[:, part.shape[1] // 2].copy().view(np.uint64)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
        chosen = cupy.arange(len(mixed))
        if share < 1.0:
            chosen = cupy.flatnonzero(mixed < np.uint64(share * 2.0**63) * np.uint64(2))
        if len(chosen) > most:
            chosen = chosen[cupy.argpartition(mixed[chosen], most - 1)[:most]]
        part, mixed = part[chosen], mixed[chosen]
        points.append(on_host(part))
        hashes.append(on_host(mixed))
    return np.concatenate(points).reshape(-1, *stored.shape[1:]), np.concatenate(hashes)


__all__ = ["smallest"]
