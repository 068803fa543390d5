"""Draws of points as public numbers foresee them."""

from __future__ import annotations

from dpmanifold.mechanisms import Calibration, Forecast, Mechanism
from dpmanifold.statistic import Header, Statistic, Step
from dpmanifold.stats.draws import drawn_as

Chosen = tuple[Mechanism, Calibration, Forecast]
"""A mechanism, its scale and what to expect of it: what :func:`dpmanifold.mechanisms.choose` returns."""


def mean_step(statistic: Statistic, header: Header, chosen: Chosen) -> Step:
    """Return the draw of a point by a mechanism; without a ball no error can be stated."""
    mechanism, calibration, forecast = chosen
    ball, whole = header.ball, header.ball.is_whole
    return Step(
        statistic.name,
        mechanism.name,
        calibration.privacy,
        calibration.scale,
        calibration.rule,
        None if whole else forecast.mean,
        None if whole else ball.radius,
        forecast.exact,
        mechanism.covers_timing,
        drawn_as(header.arithmetic, mechanism, ball, calibration),
    )
