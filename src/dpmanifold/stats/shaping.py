"""From public numbers and released steps to the norm, the ball and the shares of a shaped mean (theory: shaped noise)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from dpmanifold._check import FloatArray, shown
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import Shape, checked_shape
from dpmanifold.linalg import from_vecd
from dpmanifold.manifolds import Euclidean
from dpmanifold.mechanisms import Forecast, choose
from dpmanifold.mechanisms.shaped_noise import shaped_forecast
from dpmanifold.privacy import Promise, PromiseError, PureDP
from dpmanifold.release import Release
from dpmanifold.stats.joint_moments import JOINT_MOMENTS
from dpmanifold.stats.radius import RadiusPlan
from dpmanifold.stats.refine import Wanted
from dpmanifold.stats.sealed import sealed
from dpmanifold.stats.search import RadiusSearch
from dpmanifold.stats.steps import Chosen

PRIVATE = "private"
# Fixed in advance: what the radius and the mean get, of epsilon or of mu^2; and with a private shape what a first
# radius, joint moments, the radius in their norm and the mean get.
PUBLIC_SHARES = (0.15, 0.85)
PRIVATE_SHARES = (0.05, 0.1, 0.1, 0.75)
# A search whose counts may be off by more than this share of the units is not made.
MOST_MISCOUNTED = 0.4
# Shares of the units that a radius is asked to hold, at least and at most. In between: as many as are not lost in the
# noise of counts, and as are worth the noise that reaching farther for them costs.
_FEWEST, _MOST, _COUNTS, _NOISE = 0.6, 0.97, 1.7, 2.0

MECHANISMS_OF = {"auto": "", "wrapped-gaussian": "gaussian", "wrapped-laplace": "laplace"}
"""By name, the mechanisms that draw a shaped mean; "auto" takes Laplace noise for pure promises only."""


def flat_ball(ball: Ball, radius: float) -> Ball:
    """Return a ball of vectors about 0, as public as the ball whose coordinates they are."""
    return Ball(Euclidean(ball.space.dim), np.zeros(ball.space.dim), radius, ball.source, ball.simulated)


def white_ball(ball: Ball, shape: Shape) -> Ball:
    """Return a ball that holds the coordinates of every record in the norm of a shape: none grows longer there."""
    return flat_ball(ball, ball.radius + shape.away)


def settled(ball: Ball, shape: Shape, found: Ball) -> tuple[Shape, Ball]:
    """Return the norm to use, and the ball in it, given the radius that was released: the round one if better."""
    if found.radius * shape.growth < ball.radius:
        return shape, found
    return Shape.round(ball.space.dim), flat_ball(ball, ball.radius)


def learned_shape(joint: Release) -> Shape:
    """Return the shape that released joint moments show: a function of the release alone. Never raises."""
    d = joint.ball.space.dim

    def learned() -> Shape:
        noise = JOINT_MOMENTS.noise_scales(joint)
        return Shape.learned(joint.value[:d], from_vecd(joint.value[d:]), float(noise[0]), float(noise[d]))

    return sealed(learned, lambda: Shape.round(d))


def shape_of(release: Release) -> Shape:
    """Return the shape of a released shaped mean: the public one that it states, or what its steps show."""
    return learned_shape(release.steps[0].steps[0]) if release.shape is None else Shape.public(release.shape)


def coverage_of(dim: int, n: int, search: Promise, rest: Promise) -> float:
    """Return the share of the units that a radius is asked to hold, given the promises of its search and of the mean.

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> coverage_of(6, 100, GDP(0.4), GDP(0.9)), coverage_of(6, 10**6, GDP(0.4), GDP(0.9)) > 0.96
    (0.86..., True)
    """
    counts = RadiusSearch(dim, n, 1.0, search, _MOST).count_noise / n
    noise = choose(law_of("auto", rest), Ball(Euclidean(dim), np.zeros(dim), 1.0), n, rest)[2].mean
    return max(_FEWEST, min(_MOST, _MOST - _COUNTS * counts, 1 - _NOISE * noise))


def law_of(mechanism: str, promise: Promise) -> str:
    """Return the name of the mechanism that draws the noise."""
    if mechanism != "auto":
        return mechanism
    return "wrapped-laplace" if isinstance(promise, PureDP) else "wrapped-gaussian"


def noise_of(ball: Ball, shape: Shape, chosen: Chosen) -> Forecast:
    """Return how far noise in the norm of a shape carries a point of the ball, once it is carried back."""
    mechanism, calibration, _ = chosen
    return shaped_forecast(ball, calibration.scale * shape.stretches, mechanism.noise)


def expected_radius(shape: Shape, plan: RadiusPlan) -> float:
    """Return the radius to expect if the data are normal about the middle, with the shape's second moments."""
    variances = shape.values / shape.stretches**2
    freedom = float(variances.sum() ** 2 / (variances**2).sum())
    reached = shape.length * math.sqrt(special.gammaincinv(freedom / 2, plan.coverage) / (freedom / 2))
    found = int(np.searchsorted(plan.radii, reached * (1 - 1e-12)))
    return float(plan.radii[min(found, len(plan.radii) - 1)])


class Asked(NamedTuple):
    """What was asked for, checked: a public matrix or None for a private shape, and the mechanism's name."""

    matrix: FloatArray | None
    mechanism: str

    @property
    def weights(self) -> tuple[float, ...]:
        """How the promise is shared out."""
        return PRIVATE_SHARES if self.matrix is None else PUBLIC_SHARES


def checked(shape: Any, ball: Ball, wanted: Wanted, refine: bool, privacy: Promise) -> Asked:
    """Return what was asked for, or say why it cannot be: from public numbers, before anything is spent."""
    require_ball(ball)
    if wanted.estimand == "extrinsic" or not (ball.space.is_flat or wanted.estimand == "tangent"):
        raise InvalidArgumentError(
            f'shape is for averages of coordinates: on flat spaces, and elsewhere for estimand="tangent". {ball.space!r} '
            f'is curved, and the Fréchet mean there is no average. Ask for estimand="tangent", or leave shape out.'
            if wanted.estimand != "extrinsic"
            else "shape is for averages of coordinates at the ball's centre, and an extrinsic mean is none. Ask for "
            'estimand="tangent", or leave shape out.'
        )
    if refine:
        raise InvalidArgumentError(
            "refine must be False with a shape, which has a search of its own: for a radius in the shape's norm."
        )
    if wanted.mechanism not in MECHANISMS_OF:
        raise InvalidArgumentError(
            f"mechanism must be one of {', '.join(MECHANISMS_OF)} with a shape, got {shown(wanted.mechanism)}."
        )
    if isinstance(shape, str) and shape != PRIVATE:
        raise InvalidArgumentError(f'shape must be "private", a covariance or public records, got {shown(shape)}.')
    if isinstance(shape, str) and isinstance(privacy, PureDP):
        raise PromiseError(
            f'shape="private" cannot keep {privacy!r}: joint moments need Gaussian noise. Give a public shape, or ask '
            "for GDP, ZCDP or ApproxDP."
        )
    return Asked(None if isinstance(shape, str) else checked_shape(shape, ball), str(wanted.mechanism))
