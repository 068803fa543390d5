"""Grids of exact draws."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import FloatArray


def on_grid(numbers: FloatArray | float, grid: int) -> bool:
    """Return whether numbers are multiples of 2^grid.

    Examples
    --------
    >>> on_grid(0.75, -2), on_grid(0.75, -1)
    (True, False)
    """
    multiples = np.ldexp(numbers, -grid)
    return bool((multiples == np.rint(multiples)).all())
