"""How noise is drawn behind the spend: exactly, on a public grid, or in doubles (theory: exact noise).

A release of the library's own bits is exact wherever its mechanism allows. Simulations with a seed keep the same laws
in doubles, which are faster, unless exact ones are asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray, shown
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import Calibration, Mechanism
from dpmanifold.mechanisms.base import FRECHET, Draw
from dpmanifold.mechanisms.vector import VectorMechanism
from dpmanifold.noise.exact import grid_of, noisy_vector
from dpmanifold.noise.source import RandomSource, Rng, as_source
from dpmanifold.privacy import PromiseError
from dpmanifold.release import DRAW_COVERED, EXACT, FLOAT, NOT_COVERED, Release

AUTO = "auto"
# Whether a smaller scale would help is seen at this share of the calibrated one.
_TINY = 1e-6


class Bits(NamedTuple):
    """Where random bits come from, whether they make a private release, and whether noise is exact where it can be."""

    source: RandomSource
    private: bool
    exact: bool


def fresh_bits(rng: Rng, ball: Ball, arithmetic: str = AUTO) -> Bits:
    """Return the bits that an `rng=` and an `arithmetic=` stand for.

    Only bits that the library itself takes from the operating system make a private release, and only on a ball that
    was not found by a simulation: whatever was handed in could be predicted by whoever made it.
    """
    exact = rng is None if checked_arithmetic(arithmetic) == AUTO else arithmetic == EXACT
    return Bits(as_source(rng), rng is None and not ball.simulated, exact)


def checked_arithmetic(arithmetic: object) -> str:
    """Return "auto", "exact" or "float", or refuse anything else."""
    if isinstance(arithmetic, str) and arithmetic in (AUTO, EXACT, FLOAT):
        return arithmetic
    raise InvalidArgumentError(f'`arithmetic` must be "auto", "exact" or "float", got {shown(arithmetic)}.')


def drawn_as(arithmetic: str, mechanism: Mechanism, ball: Ball, calibration: Calibration) -> str:
    """Return "exact" or "float": how a release of the library's own bits would draw a point's noise."""
    return FLOAT if arithmetic == FLOAT or not mechanism.offers_exact(ball, calibration) else EXACT


def refuse_inexact(arithmetic: str, mechanism: Mechanism, ball: Ball, calibration: Calibration) -> None:
    """Refuse a mechanism that draws doubles where exact noise was asked for, before anything is spent."""
    if checked_arithmetic(arithmetic) == EXACT and not mechanism.offers_exact(ball, calibration):
        depends = mechanism.offers_exact(ball, replace(calibration, scale=_TINY * calibration.scale))
        why = f" with a scale of {calibration.scale:.3g}, only with a smaller one" if depends else ""
        raise PromiseError(
            f'mechanism "{mechanism.name}" cannot be drawn exactly on {ball.space!r}{why}. `mechanism="auto"` takes '
            'one that can, where any of those that keep the promise can. Otherwise use `arithmetic="float"`, against '
            "which an attacker who reads all digits wins."
        )


# -------------------------------------------------------------------- means


def draw_mean(ball: Ball, mechanism: Mechanism, calibration: Calibration, points: UnitPoints, bits: Bits) -> Draw:
    """Solve the mean of points in the ball's frame and draw about it."""
    origin = ball.frame.origin

    def solved() -> Array:
        mean = hidden_mean(ball, mechanism, points)
        if ball.frame.check(mean) is not None:
            raise FloatingPointError("what was solved is no point")
        return mean

    # Other means are averages of the points themselves, which the mechanism gets anyway.
    mean = with_fallback(solved, lambda: origin) if mechanism.estimand == FRECHET else origin
    return draw_about(ball, mechanism, calibration, mean, points, bits)


def hidden_mean(ball: Ball, mechanism: Mechanism, points: UnitPoints) -> Array:
    """Return the mean of points in the ball's frame that a mechanism hides. NOT PRIVATE, and it may raise."""
    if isinstance(mechanism, VectorMechanism) and mechanism.estimand != FRECHET:
        return mechanism.place(ball, mechanism.vector(ball, ball.frame.origin, points))
    mean = points.mean()
    # Elsewhere nothing is moved after the solver: the sensitivity is about what it returns.
    return ball.in_frame.pull_in(mean[None])[0] if mechanism.needs_inside else mean


def draw_about(
    ball: Ball, mechanism: Mechanism, calibration: Calibration, mean: Array, points: UnitPoints, bits: Bits
) -> Draw:
    """Draw about a point of the frame: once, and whatever goes wrong meanwhile, the release is lost.

    What is made of the draw afterwards is a function of it alone: the frame's origin stands in for what is no point.
    """
    origin = ball.frame.origin
    if bits.exact and mechanism.offers_exact(ball, calibration):
        numbers = mechanism.numbers(ball, calibration, mean, points, bits.source)
        point = with_fallback(lambda: mechanism.place(ball, numbers), lambda: origin)
        return Draw(point, numbers, mechanism.grid(ball, calibration))
    drawn = mechanism.draw(ball, calibration, mean, points, bits.source)
    return Draw(with_fallback(lambda: drawn, lambda: origin))


def tolerance_of(mechanism: Mechanism, ball: Ball, n: int) -> float:
    """Return the public tolerance that a mean is solved to; 0 where none is solved."""
    return frechet.default_tol(ball, n) if mechanism.estimand == FRECHET else 0.0


def timing_of(mechanism: Mechanism, steps: tuple[Release, ...]) -> str:
    """Say what the running time tells: the draw's own, unless a step's depends on the data."""
    fine = mechanism.covers_timing and all(step.timing == DRAW_COVERED for step in steps)
    return DRAW_COVERED if fine else NOT_COVERED


# -------------------------------------------------------------------- numbers


class Noisy(NamedTuple):
    """Numbers with noise, (d,), and the exponent of the grid they were rounded to; None where they are doubles."""

    numbers: FloatArray
    grid: int | None


def noisy(values: FloatArray | float, law: str, scale: float, largest: float, bits: Bits) -> Noisy:
    """Add noise to numbers (d,) or to one: "gaussian", or "laplace" with a density of exp(-|z|/scale).

    Parameters
    ----------
    largest : a public bound on their size, for the grid
    """
    v = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if bits.exact:
        grid = grid_of(scale, largest)
        return Noisy(noisy_vector(v, law, scale, grid, bits.source), grid)
    if law == "laplace":
        length = scale * bits.source.exponential(len(v)).sum()
        return Noisy(v + length * bits.source.direction((), len(v)), None)
    return Noisy(v + scale * bits.source.normal(v.shape), None)


def stated(drawn: Draw | Noisy) -> dict[str, Any]:
    """Return what a release states about its arithmetic."""
    if drawn.numbers is None or drawn.grid is None:
        return {"arithmetic": FLOAT}
    return {"arithmetic": EXACT, "grid": drawn.grid, "drawn": drawn.numbers}
