"""Draws of one result held against each other: two that are nearer than draws come are one draw and a copy of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.errors import DPManifoldError
from dpmanifold.mechanisms import get
from dpmanifold.mechanisms.vector import VectorMechanism
from dpmanifold.noise import RiemannianGaussian, RiemannianLaplace
from dpmanifold.noise.tails import Tail
from dpmanifold.release import Release
from dpmanifold.statistic import Kind
from dpmanifold.stats.additive import ADDITIVE

COPY_ALARM = 1e-8
"""The probability that an honest result is refused because two of its draws came near each other, at most.

It is shared out evenly among all pairs. Were it much smaller, a single number that was moved by one step of its grid,
2^-30 of the scale, would pass for another draw.
"""
# On curved spaces quantiles so near to 0 are quadratures, and volumes are those of flat balls: half of it is on the
# safe side.
_CURVED = 0.5


class Drawn(NamedTuple):
    """One draw of a result: whose it is, in words, its release and the numbers that were drawn."""

    name: str
    release: Release
    numbers: FloatArray


def draws_of(release: Release, name: str = "", balls: bool = True) -> Iterator[Drawn]:
    """Give what was drawn for a release and before it for its steps, the last first; `balls` leaves out theirs."""
    numbers = release.definition.as_drawn(release)
    known = _law(release) in ADDITIVE and (balls or release.definition.kind is not Kind.BALL)
    if numbers is not None and known:
        yield Drawn(f"{name}{release.statistic}", release, numbers)
    for step in release.steps:
        yield from draws_of(step, f"{name}step ", balls)


def copy_faults(draws: Sequence[Drawn]) -> list[str]:
    """Return which draws are copies of others; of two draws one after the other, the later comes first."""
    pairs = [(one, two) for one, two in combinations(draws, 2) if one.numbers.shape == two.numbers.shape]
    return [
        f"{one.name} is a copy of {two.name}, or nearly: two draws do not come so near each other"
        for one, two in pairs
        if _apart(one, two) <= _nearest(one, COPY_ALARM / len(pairs))
    ]


def _law(release: Release) -> str:
    return release.mechanism if release.mechanism in ADDITIVE else get(release.mechanism).noise


def _on_space(drawn: Drawn) -> bool:
    """Return whether noise was on a curved space, and not on the numbers themselves."""
    release = drawn.release
    flat = release.mechanism in ADDITIVE or release.ball.space.is_flat
    return not flat and not isinstance(get(release.mechanism), VectorMechanism)


def _apart(one: Drawn, two: Drawn) -> float:
    """Return how far apart two draws are, where the noise of the first is."""
    if not _on_space(one):
        return float(np.linalg.norm(one.numbers - two.numbers))
    ball, mechanism = one.release.ball, get(one.release.mechanism)
    return float(ball.frame.dist(mechanism.place(ball, one.numbers), mechanism.place(ball, two.numbers)))


def _nearest(drawn: Drawn, alarm: float) -> float:
    """Return how near to any given numbers it comes with that probability at most."""
    release, law = drawn.release, _law(drawn.release)
    if not _on_space(drawn):
        return Tail(law, release.scale, len(drawn.numbers), release.grid).nearest(alarm)
    space = release.ball.frame
    # Where there is no curvature above 0 the law is spread out more than on a flat space.
    found = Tail(law, release.scale, space.dim, release.grid).nearest(alarm)
    if space.curvature[1] > 0:
        radial = RiemannianLaplace if law == ADDITIVE[0] else RiemannianGaussian
        try:
            found = min(found, float(radial(space, space.origin, release.scale).radius.quantile(alarm)))
        except DPManifoldError:  # of products the law of a distance is not known: draws that are equal are copies
            found = min(found, 0.0)
    return _CURVED * found
