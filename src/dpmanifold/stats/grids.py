"""Exact releases held against their grid: what was drawn lies on it, and the value follows from what was drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg import from_vecd
from dpmanifold.mechanisms import Calibration, get
from dpmanifold.noise.exact import grid_of
from dpmanifold.release import EXACT, FLOAT, Release
from dpmanifold.stats.mean import placed
from dpmanifold.stats.ranges import is_beyond, rounding_of
from dpmanifold.stats.refine import center_in_space, center_of

# The same numbers made into a point on another machine: relative to the largest of them.
_ROUNDING = 1e-9
_POWERS = {"variance": 2, "second moment": 2, "fourth moment": 4}


def arithmetic_faults(release: Release, calibration: Calibration, noise: float) -> list[str]:
    """Return what is wrong with the arithmetic that a release states, if noise on a point is no longer than this."""
    if release.arithmetic == FLOAT:
        return []
    if release.arithmetic != EXACT or release.drawn is None:
        return [f"arithmetic: there is no {release.arithmetic!r}"]
    right = _grid(release, replace(calibration, scale=release.scale))
    if right is None:
        return [f"arithmetic: {release.mechanism} cannot be drawn exactly there"]
    if release.grid != right:
        return [f"grid: stated {release.grid}, recomputed {right}"]
    if not on_grid(release.drawn, right):
        return [f"drawn: not multiples of 2^{right}"]
    if release.statistic == "ball" and not _count_on_grid(release):
        return ["units inside: not on the grid of the counts"]
    if _is_point(release) and is_beyond(release.ball, _point(release, False), release.ball.radius + noise):
        return ["drawn: no noise of that scale carries a draw so far from the ball"]
    return [] if _follows(release) else ["value: it does not follow from what was drawn"]


def on_grid(numbers: FloatArray | float, grid: int) -> bool:
    """Return whether numbers are multiples of 2^grid.

    Examples
    --------
    >>> on_grid(0.75, -2), on_grid(0.75, -1)
    (True, False)
    """
    multiples = np.ldexp(numbers, -grid)
    return bool((multiples == np.rint(multiples)).all())


def _grid(release: Release, calibration: Calibration) -> int | None:
    """Return the exponent of the grid that public numbers give; None if the mechanism draws doubles."""
    power = _POWERS.get(release.statistic)
    if power is not None:
        away = release.details["reference to centre"]
        return grid_of(release.scale, sensitivity.reach(release.ball, away=away) ** power)
    mechanism = get(release.mechanism)
    return mechanism.grid(release.ball, calibration) if mechanism.offers_exact(release.ball, calibration) else None


def _count_on_grid(release: Release) -> bool:
    return on_grid(release.details["units inside"], grid_of(release.details["count noise"], release.n))


def _is_point(release: Release) -> bool:
    return release.statistic == "mean"


def _point(release: Release, project: bool) -> Array:
    assert release.drawn is not None
    return placed(release.ball, get(release.mechanism).place(release.ball, release.drawn), project)


def _follows(release: Release) -> bool:
    """Return whether the value is what post-processing makes of what was drawn."""
    assert release.drawn is not None
    match release.statistic:
        case "mean":
            given = release.value if release.raw is None else release.raw
            return _agree(release, given, _point(release, release.projected and release.raw is None))
        case "ball":
            if release.value == release.ball:
                return True
            drawn = get(release.mechanism).place(release.ball, release.drawn)
            return _agree(release, release.value.center, center_in_space(release.ball, center_of(release.ball, drawn)))
        case "variance":
            return bool(release.value == max(0.0, float(release.drawn[0]) - release.details["excess subtracted"]))
        case "second moment":
            return bool(np.allclose(release.value, from_vecd(release.drawn), rtol=_ROUNDING, atol=0))
    return bool(release.value == release.drawn[0])


def _agree(release: Release, stated: Array, computed: Array) -> bool:
    slack = _ROUNDING * float(np.abs(computed).max()) + rounding_of(release.ball, computed)
    return bool(np.abs(stated - computed).max() <= slack)
