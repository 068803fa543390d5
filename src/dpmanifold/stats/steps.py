"""Draws of points as public numbers foresee them."""

from __future__ import annotations

from typing import Protocol

from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import Calibration, Forecast, Mechanism
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Prepared, Statistic, Step
from dpmanifold.stats.draws import Bits, drawn_as

Chosen = tuple[Mechanism, Calibration, Forecast]
"""A mechanism, its scale and what to expect of it: what :func:`dpmanifold.mechanisms.choose` returns."""


def mean_step(statistic: Statistic, header: Header, chosen: Chosen, project: bool = True) -> Step:
    """Return the draw of a point by a mechanism; without a ball no error can be stated.

    Parameters
    ----------
    statistic : which the draw is of
    header : the question
    chosen : the mechanism, its scale and what to expect of it
    project : whether the draw is moved into the ball
    """
    mechanism, calibration, drawn = chosen
    ball, whole = header.ball, header.ball.is_whole
    forecast = placed_forecast(chosen, ball, project)
    return Step(
        statistic.name,
        mechanism.name,
        calibration.privacy,
        calibration.scale,
        calibration.rule,
        None if whole else forecast.mean,
        None if whole else ball.radius,
        drawn.exact,
        mechanism.covers_timing,
        drawn_as(header.arithmetic, mechanism, ball, calibration),
        error_exact=forecast.exact,
    )


def placed_forecast(chosen: Chosen, ball: Ball, project: bool = True) -> Forecast:
    """Return what to expect of the point that is released: draws are moved into the ball, but for those of baselines.

    Parameters
    ----------
    chosen : the mechanism, its scale and what to expect of its draw
    ball : the public ball, or the whole space
    project : whether the draw is moved into the ball
    """
    mechanism, _, drawn = chosen
    return drawn.moved_into(ball) if project and not (ball.is_whole or mechanism.baseline) else drawn


class OneStep(Protocol):
    """How something will be drawn, by itself or on the way to another statistic."""

    def step(self, header: Header) -> Step:
        """Return the draw to come."""

    def release(self, points: UnitPoints, header: Header, bits: Bits) -> Release:
        """Draw it. Never raises."""


class Alone(Prepared):
    """One step that is asked for by itself.

    Parameters
    ----------
    header : what it is about
    plan : the step
    """

    def __init__(self, header: Header, plan: OneStep) -> None:
        self.header, self._plan = header, plan

    def steps(self) -> tuple[Step, ...]:
        """Return the step."""
        return (self._plan.step(self.header),)

    def release(self, points: UnitPoints, bits: Bits) -> Release:
        """Draw it."""
        return self._plan.release(points, self.header, bits)
