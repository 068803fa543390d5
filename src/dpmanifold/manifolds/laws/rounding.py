"""Bounds on rounding hold: what relations between computed numbers show of it, and what a reference does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpmanifold._check import Array
from dpmanifold.manifolds.base import EPS, Manifold
from dpmanifold.manifolds.laws.samples import points, reach, require
from dpmanifold.manifolds.vectors import vector_norm

Reference = Callable[[Array, Array], tuple[Any, Sequence[Any]]]
"""Takes two points as they are stored; returns their distance and normal coordinates, in numbers of many digits."""

_PAIRS = 25


def rounding_bounds_hold(space: Manifold, rng: np.random.Generator, reference: Reference | None = None) -> None:
    """Compare stated errors with one rounding, with two ways to compute one number, and with a reference if given."""
    r, o = 0.9 * min(space.radius_limit, reach(space)), space.origin
    of_dist, of_log = float(space.dist_error(o, r)), float(space.log_error(r))
    for name, stated in (("dist_error", of_dist), ("log_error", of_log)):
        require(stated >= EPS * r / 8, f"{name} is {stated:.2g} at {r:.3g}, less than writing the number down costs")
    x = points(space, rng, 300, far=r)
    y = x[rng.permutation(300)]
    off = np.abs(vector_norm(space.log_coords(o, x)) - space.dist(o, x)).max()
    require(
        off <= of_dist + of_log + 4 * EPS * r,
        f"|log| and dist differ by {off:.2g}, and the bounds are {of_log:.2g} and {of_dist:.2g}",
    )
    for a, b in zip(x[:_PAIRS], y[:_PAIRS], strict=True):
        off = abs(float(vector_norm(space.log_coords(a, b))) - float(space.dist(b, a)))
        allowed = float(space.dist_error(b, 2 * r)) + of_log + 8 * EPS * r
        require(off <= allowed, f"|log| and dist of two points differ by {off:.2g}, and the bounds are {allowed:.2g}")
    if reference is not None:
        _hold_against(space, reference, x[:_PAIRS], y[:_PAIRS], of_dist, of_log)


def _hold_against(space: Manifold, reference: Reference, x: Array, y: Array, of_dist: float, of_log: float) -> None:
    o = space.origin
    worst_dist = worst_log = 0.0
    for a, b in zip(x, y, strict=True):
        distance, _ = reference(o, b)
        worst_dist = max(worst_dist, abs(float(distance - _as(distance, space.dist(o, b)))))
        _, coordinates = reference(a, b)
        computed = np.asarray(space.log_coords(a, b))
        off = [float(true - _as(true, one)) for true, one in zip(coordinates, computed, strict=True)]
        worst_log = max(worst_log, float(np.linalg.norm(off)))
    require(worst_dist <= of_dist, f"dist is off by {worst_dist:.2g} from the reference, dist_error is {of_dist:.2g}")
    require(worst_log <= of_log, f"log_coords is off by {worst_log:.2g} from the reference, log_error is {of_log:.2g}")


def _as(like: Any, value: Any) -> Any:
    """Return a double as a number of many digits: the difference of the two must not be rounded first."""
    return type(like)(float(value))
