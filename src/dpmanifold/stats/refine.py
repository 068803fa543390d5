"""A ball nobody told us: found privately inside a large public one (theory section 8)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray, fraction
from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError
from dpmanifold.mechanisms import Calibration, Mechanism, choose
from dpmanifold.mechanisms.base import pure_epsilon
from dpmanifold.noise.source import RandomSource, Rng
from dpmanifold.privacy import Budget, Promise, PureDP, gaussian_scale, laplace_scale, split
from dpmanifold.release import DRAW_COVERED, NOT_COVERED, Release
from dpmanifold.stats.inputs import divide, fresh_bits, prepare, spend

# Fixed in advance: a tenth on the centre, a tenth on the radius, the rest on the mean.
REFINE_SHARES = (0.1, 0.1, 0.8)
# A ball alone: half on its centre, half on its radius.
BALL_SHARES = (0.5, 0.5)
# Radii that are tried: a geometric grid below the outer radius, searched with 6 counts.
_RADII = 64
_SMALLEST_SHARE = 1 / 256
# How the origin of a released ball begins.
RELEASED = "released under"


def private_ball(
    X: object,
    outer: Ball,
    privacy: Promise,
    *,
    units: object = None,
    coverage: float = 0.95,
    invalid: str = "raise",
    budget: Budget | None = None,
    rng: Rng = None,
) -> Release:
    """Release a ball that holds most of the units, inside a public one that may be far too large.

    Half the promise finds a centre, half a radius: the smallest of 64 fixed ones that covers the wanted share, by a
    binary search of six noisy counts. If none does, the outer ball comes back.

    Parameters
    ----------
    X, privacy, units, invalid, budget, rng : as in :func:`private_mean`
    outer : the public ball
    coverage : share of the units the new ball should hold, in (0, 1]

    Returns
    -------
    a Release whose value is a Ball; its origin says that it was released, and what that cost

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> X = np.random.default_rng(0).normal(5.0, 0.1, (2000, 1))
    >>> release = private_ball(X, Ball(Euclidean(1), [0.0], 100.0), GDP(1.0), units=EACH_RECORD)
    >>> release.value.radius < 2
    True
    """
    coverage = fraction(coverage, "coverage")
    points, unit = prepare(X, outer, privacy, units, invalid)
    shares = divide(privacy, BALL_SHARES)
    prepared = prepare_ball(outer, len(points), shares)  # refuses before anything is spent
    bits = fresh_bits(rng, outer)
    spend(budget, privacy, "ball")
    return released_ball(points, outer, prepared, privacy, unit, bits, coverage)


@dataclass(frozen=True)
class BallPlan:
    """How a ball will be found: the mechanism of the centre, and the promise and noise of one count."""

    mechanism: Mechanism
    calibration: Calibration
    count_share: Promise
    count_noise: float


def prepare_ball(outer: Ball, n: int, shares: Sequence[Promise]) -> BallPlan:
    """Make every choice, and every refusal, before anything is spent: public numbers only."""
    mechanism, calibration, _ = choose("auto", outer, n, shares[0])
    count_share = split(shares[1], counts_asked())[0]
    return BallPlan(mechanism, calibration, count_share, count_scale(count_share))


def released_ball(
    points: Array,
    outer: Ball,
    plan: BallPlan,
    total: Promise,
    unit: str,
    bits: tuple[RandomSource, bool],
    coverage: float = 0.95,
) -> Release:
    """Find a centre with the first share and a radius with the second, from units' points in the outer frame."""
    source, private = bits
    mechanism, calibration = plan.mechanism, plan.calibration
    n = len(points)
    frame = outer.frame
    tol = frechet.default_tol(outer, n)
    mean = frechet.mean(points, outer.in_frame, tol=tol).in_frame
    # Clipped into the old ball: on positive curvature the new one must not reach around.
    center = outer.in_frame.pull_in(mechanism.draw(outer, calibration, mean, points, source))
    away = frame.dist(center, points)
    radii = radii_tried(outer)
    found = _search(away, radii, coverage * n, plan, source)
    radius = outer.radius if found is None else float(radii[found])
    value = outer
    if radius < outer.radius:
        said = origin_of(total, outer)
        # What was drawn may be no centre for a ball (a matrix singular to working precision): decided by the release.
        with contextlib.suppress(DPManifoldError):
            value = Ball(
                outer.space, outer.pull_in(outer.from_frame(center[None]))[0], radius, said, simulated=not private
            )
    return Release(
        statistic="ball",
        value=value,
        privacy=total,
        share=calibration.privacy,
        mechanism=mechanism.name,
        scale=calibration.scale,
        rule=calibration.rule,
        sensitivity=calibration.sensitivity,
        ball=outer,
        n=n,
        unit=unit,
        tol=tol,
        projected=True,
        private=private,
        timing=timing_of(mechanism, ()),
        details={"count noise": plan.count_noise, "counts": float(counts_asked()), "coverage": coverage},
    )


def radii_tried(outer: Ball) -> FloatArray:
    """Return the radii that the search chooses from, the outer one last."""
    return np.asarray(outer.radius * np.geomspace(_SMALLEST_SHARE, 1.0, _RADII))


def origin_of(total: Promise, outer: Ball) -> str:
    """Say where a released ball comes from, and what it cost."""
    return f"{RELEASED} {total} inside: {outer.origin or outer!r}"


def counts_asked() -> int:
    """Return how many questions a binary search over the radii asks."""
    return math.ceil(math.log2(_RADII))


def timing_of(mechanism: Mechanism, steps: tuple[Release, ...]) -> str:
    """Say what the running time tells: the draw's own, unless a step's depends on the data."""
    fine = mechanism.covers_timing and all(step.timing == DRAW_COVERED for step in steps)
    return DRAW_COVERED if fine else NOT_COVERED


def _search(away: Array, radii: Array, wanted: float, plan: BallPlan, source: RandomSource) -> int | None:
    """Return the index of the smallest radius that seems to cover enough, or None.

    Every count has sensitivity 1: replacing a unit changes it by at most one. The number of questions is fixed.
    """
    low, high = 0, len(radii) - 1
    found: int | None = None
    for _ in range(counts_asked()):
        middle = (low + high) // 2
        count = float((away <= radii[middle]).sum()) + _count_noise(plan.count_share, plan.count_noise, source)
        if count >= wanted:
            found, high = middle, max(low, middle - 1)
        else:
            low = min(high, middle + 1)
    return found


def count_scale(privacy: Promise) -> float:
    """Return the scale of the noise on one count of sensitivity 1."""
    if isinstance(privacy, PureDP):
        return laplace_scale(1.0, PureDP(pure_epsilon(privacy)))
    return gaussian_scale(1.0, privacy)


def _count_noise(privacy: Promise, scale: float, source: RandomSource) -> float:
    if isinstance(privacy, PureDP):
        return float(scale * source.exponential(()) * source.direction((), 1)[0])
    return float(scale * source.normal(()))
