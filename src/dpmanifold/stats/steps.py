"""Draws as public numbers foresee them, and the choice of the mechanism that makes one."""

from __future__ import annotations

from typing import Any

from dpmanifold.ball import Ball
from dpmanifold.mechanisms import Calibration, Forecast, candidates, choose
from dpmanifold.privacy import Promise, PromiseError
from dpmanifold.release import EXACT, FLOAT
from dpmanifold.statistic import Header, Statistic, Step
from dpmanifold.stats.draws import AUTO, Chosen, drawn_as


def choose_for(
    header: Header,
    mechanism: Any,
    share: Promise,
    estimand: str | None = None,
    otherwise: str = "",
    decision: str = "mechanism",
) -> Chosen:
    """Return the mechanism that keeps a share in the header's ball, or refuse; of "auto" which one is a decision.

    Parameters
    ----------
    header : what it is about
    mechanism : "auto", a name or an object
    share : what the draw may cost
    estimand : as in :func:`~dpmanifold.mechanisms.choose`
    otherwise : the estimand to fall back on where no mechanism of the first keeps the share
    decision : the name of the decision
    """
    ball, n = header.ball, header.n
    if mechanism != AUTO:
        return choose(mechanism, ball, n, share, estimand)
    found: list[Chosen] = []

    def best() -> str:
        try:
            found.append(choose(AUTO, ball, n, share, estimand))
        except PromiseError:
            if not otherwise:
                raise
            found.append(choose(AUTO, ball, n, share, otherwise))
        return found[0][0].name

    name = header.decide(decision, best, lambda name: is_candidate(name, estimand, otherwise))
    return found[0] if found else choose(name, ball, n, share)


def is_candidate(name: str, *estimands: str | None) -> bool:
    """Return whether "auto" looks at a mechanism of that name for one of these means."""
    return any(one.name == name for estimand in estimands if estimand != "" for one in candidates(estimand))


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


def additive_step(
    statistic: Statistic,
    header: Header,
    calibration: Calibration,
    error: float | None,
    most: float | None,
    exact: bool = True,
) -> Step:
    """Return the draw of numbers with noise.

    Parameters
    ----------
    statistic, header, calibration : which the draw is of, the question and the noise
    error, most : the error to expect, and the size that it is held against
    exact : whether the scale is the one to come, and not a bound
    """
    arithmetic = FLOAT if header.arithmetic == FLOAT else EXACT
    made = calibration
    return Step(
        statistic.name, made.mechanism, made.privacy, made.scale, made.rule, error, most, exact, arithmetic=arithmetic
    )
