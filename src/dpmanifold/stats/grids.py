"""Exact releases held against their grid: what was drawn lies on it, and the value follows from what was drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.mechanisms import Calibration
from dpmanifold.release import EXACT, FLOAT, Release
from dpmanifold.stats.ranges import rounding_of

# The same numbers made into a point on another machine: relative to the largest of them.
DRAWN_ROUNDING = 1e-9
DOES_NOT_FOLLOW = "value: it does not follow from what was drawn"


def arithmetic_faults(release: Release, calibration: Calibration, noise: float) -> list[str]:
    """Return what is wrong with the arithmetic that a release states, if noise on a point is no longer than this."""
    if release.arithmetic == FLOAT:
        return []
    if release.arithmetic != EXACT or release.drawn is None:
        return [f"arithmetic: there is no {release.arithmetic!r}"]
    right = release.definition.grid(release, replace(calibration, scale=release.scale))
    if right is None:
        return [f"arithmetic: {release.mechanism} cannot be drawn exactly there"]
    if release.grid != right:
        return [f"grid: stated {release.grid}, recomputed {right}"]
    if not on_grid(release.drawn, right):
        return [f"drawn: not multiples of 2^{right}"]
    return release.definition.drawn_faults(release, noise)


def on_grid(numbers: FloatArray | float, grid: int) -> bool:
    """Return whether numbers are multiples of 2^grid.

    Examples
    --------
    >>> on_grid(0.75, -2), on_grid(0.75, -1)
    (True, False)
    """
    multiples = np.ldexp(numbers, -grid)
    return bool((multiples == np.rint(multiples)).all())


def follows(release: Release, stated: Array, computed: Array) -> list[str]:
    """Return whether what is stated is not what post-processing makes of the draw, rounding of points aside."""
    slack = DRAWN_ROUNDING * float(np.abs(computed).max()) + rounding_of(release.ball, computed)
    return [] if bool(np.abs(stated - computed).max() <= slack) else [DOES_NOT_FOLLOW]
