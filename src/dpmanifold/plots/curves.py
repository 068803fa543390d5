"""What a promise means at every epsilon: the curve delta(epsilon) that was promised, and the exact one if known."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import FloatArray, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms import Calibration
from dpmanifold.mechanisms.registry import profile_of
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import Mark, ball_line, footer_of, mark_of, mark_of_ball, promise_text
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP, gdp_delta, to_approx, zcdp_log_delta
from dpmanifold.release import Release

_POINTS = 121
# The curve is drawn down to here; deltas people state are larger.
_SMALLEST = 1e-10


def profile(result: Release | Calibration, ball: Ball | None = None) -> canvas.Figure:
    """Draw the privacy profile: the smallest delta at every epsilon, as promised and, where it is known, exactly.

    The exact curve is of the law that was drawn from, at the sensitivity it was calibrated to, and lies below the
    promise; it is known for Riemannian Laplace and Gaussian noise on spheres and planar shapes.

    Parameters
    ----------
    result : a release, or the calibration of a mechanism
    ball : with a calibration, its ball

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.6)
    >>> calibration = dpm.mechanisms.get("riemannian-gaussian").calibrate(ball, 20, dpm.GDP(1.0))
    >>> figure = profile(calibration, ball)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['promised', 'exact, riemannian-gaussian']
    """
    calibration, where, total, mark, footer = _read(result, ball)
    exact = None
    try:
        exact = profile_of(where, calibration)
        words = f"{calibration.mechanism}, scale {calibration.scale:.4g}: the exact curve is at or below the promise"
    except InvalidArgumentError:
        words = f"{calibration.mechanism}, scale {calibration.scale:.4g}: what was promised; no exact curve is known"
    figure = canvas.new_figure("What the promise means at every epsilon", words, mark, footer, 4.3)
    axes = figure.subplots()
    furthest = max(_last_epsilon(calibration.privacy), _last_epsilon(total))
    corners = [p.above[0] for p in (total, calibration.privacy) if isinstance(p, (PureDP, ApproxDP))]
    corners += [exact.largest_loss] if exact is not None else []
    # Curves turn sharply at these: just before, and at them.
    sharp = [x for corner in corners if corner < furthest for x in (corner * (1 - 1e-3), corner * (1 - 1e-6), corner)]
    epsilon = np.unique(np.concatenate([np.linspace(0.0, furthest, _POINTS), sharp]))
    several = total != calibration.privacy
    label = f"promised in total, {promise_text(total)}" if several else "promised"
    axes.plot(epsilon, _positive(promised_delta(total, epsilon)), color=canvas.ESTIMATE, linewidth=1.7, label=label)
    if several:
        delta = _positive(promised_delta(calibration.privacy, epsilon))
        axes.plot(epsilon, delta, color=canvas.SKY, linewidth=1.5, linestyle="-.", label="this step's share")
    if exact is not None:
        delta = _positive(exact.delta(epsilon))
        said = f"exact, {calibration.mechanism}"
        axes.plot(epsilon, delta, color=canvas.NOISE, linewidth=1.5, linestyle="--", label=said)
    axes.set_yscale("log")
    axes.set_ylim(_SMALLEST, 1.5)
    axes.set_xlim(0, furthest)
    canvas.tidy(axes, "epsilon (log of the likelihood ratio)", "delta (probability)", grid="both")
    return canvas.keyed(figure, axes)


def _read(result: object, ball: Ball | None) -> tuple[Calibration, Ball, Promise, Mark, list[str]]:
    """Return calibration, ball, the promise in total, the mark and the footer."""
    if isinstance(result, Release):
        return result.calibration, result.ball, result.privacy, mark_of([result]), footer_of([result])
    if not isinstance(result, Calibration):
        raise InvalidArgumentError(
            f"profile draws a Release or a Calibration, got {shown(result)}. Give region.release for a region, or "
            "get(name).calibrate(ball, n, privacy) for a mechanism."
        )
    if not isinstance(ball, Ball):
        raise InvalidArgumentError(
            f"`ball` must be the Ball of the calibration, got {shown(ball)}. profile(result, ball)."
        )
    footer = [
        f"{promise_text(result.privacy)} for each unit, at a sensitivity of {result.sensitivity.value:.4g}.",
        ball_line(ball),
    ]
    return result, ball, result.privacy, mark_of_ball(ball), footer


def promised_delta(promise: Promise, epsilon: FloatArray) -> FloatArray:
    """Return the smallest delta that a promise implies at each epsilon >= 0.

    Of a pure or approximate promise below its own epsilon, that of the mechanism that only just keeps it (Kairouz, Oh
    and Viswanath 2015): delta + (1 - delta) (e^epsilon0 - e^epsilon)/(1 + e^epsilon0).

    Examples
    --------
    >>> promised_delta(PureDP(1.0), np.array([0.0, 1.0, 2.0])).round(4)
    array([0.4621, 0.    , 0.    ])
    """
    if isinstance(promise, GDP):
        return np.asarray(gdp_delta(promise.above[0], epsilon))
    if isinstance(promise, ZCDP):
        # The bound is for epsilon above 0; delta falls with epsilon, and is at most 1 where nothing is known.
        return np.array([math.exp(zcdp_log_delta(promise.above[0], e)) if e > 0 else 1.0 for e in epsilon.tolist()])
    own, extra = promise.above if isinstance(promise, ApproxDP) else (_pure(promise), 0.0)
    # (e^own - e^epsilon)/(1 + e^own), written so that nothing overflows.
    short = -np.expm1(np.minimum(epsilon - own, 0.0)) / (1 + math.exp(-own))
    return np.asarray(extra + (1 - extra) * short)


def _pure(promise: Promise) -> float:
    if isinstance(promise, PureDP):
        return promise.above[0]
    raise InvalidArgumentError(
        f"profile knows PureDP, ApproxDP, ZCDP and GDP, got {shown(promise)}. State one of them."
    )


def _last_epsilon(promise: Promise) -> float:
    """Return where the picture may end: a little past the last epsilon at which something happens."""
    if isinstance(promise, (PureDP, ApproxDP)):
        return 1.3 * promise.above[0]
    return to_approx(promise, _SMALLEST).above[0]


def _positive(delta: FloatArray) -> FloatArray:
    """A logarithmic axis has no zero: where delta is 0 the line leaves the picture at its bottom."""
    return np.maximum(delta, _SMALLEST / 1e3)
