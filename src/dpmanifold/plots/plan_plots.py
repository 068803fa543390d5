"""What to expect before any data is touched: the mechanisms, their errors, and what a promise means.

Mechanisms stand side by side; errors are drawn against the number of units; and delta(epsilon) as promised, beside the
exact curve if it is known.
"""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import FloatArray, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms import Calibration, get
from dpmanifold.mechanisms.registry import profile_of
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import Mark, ball_line, footer_of, mark_of, mark_of_ball, promise_text
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP, gdp_delta, to_approx, zcdp_log_delta
from dpmanifold.release import Release
from dpmanifold.stats.mean_plan import Plan, PlanRow

# Errors that differ by more than this factor are drawn on a logarithmic scale.
_WIDE = 30.0
_DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def plan(result: Plan) -> canvas.Figure:
    """Draw the mechanisms of a plan: the expected error of each as a bar, its 5 to 95 % range as a line.

    Without a ball no error can be stated: the bars are the scales of the noise on the average record.

    Parameters
    ----------
    result : what `plan_mean` returned

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5)
    >>> figure = plan(dpm.plan_mean(500, ball, dpm.GDP(1.0)))
    >>> figure.axes[0].get_xlabel()
    'distance between the release and the mean it hides'
    """
    canvas.require(result, Plan, "plan draws a Plan", "Make one with plan_mean(n, ball, privacy).")
    rows = [row for row in result.rows if not get(row.mechanism).baseline]
    if not rows:
        raise InvalidArgumentError(
            f"the plan has no mechanism to draw: none can keep {result.privacy} there. See plan.refused for the "
            "reasons; use more units, a smaller ball or a weaker promise."
        )
    left_out = " Baselines are not drawn: their error is no distance." if len(rows) < len(result.rows) else ""
    footer = [f"{promise_text(result.privacy)} for each unit, {result.n:,} of them.{left_out}", ball_line(result.ball)]
    words = result.verdict.split(". ")[0]
    title = "Which mechanism adds least noise"
    figure = canvas.new_figure(title, words, mark_of_ball(result.ball), footer, 2.3 + 0.38 * len(rows))
    axes = figure.subplots()
    if result.ball.is_whole:
        _scales(axes, rows)
    else:
        _bars(axes, rows, result.ball.radius)
    return canvas.keyed(figure, axes)


def _scales(axes: canvas.Axes, rows: list[PlanRow]) -> None:
    for number, row in enumerate(rows):
        axes.barh(number, row.scale, height=0.55, color=canvas.SKY if number else canvas.ESTIMATE, alpha=0.85)
        axes.annotate(f"{row.scale:.3g}", (row.scale, number), xytext=(6, 0), textcoords="offset points", fontsize=7.5,
                      va="center", color=canvas.INK)  # fmt: skip
    axes.margins(x=0.2)
    canvas.named_bars(
        axes, [row.mechanism for row in rows], "scale of the noise on the average record (no error follows)"
    )


def _bars(axes: canvas.Axes, rows: list[PlanRow], radius: float) -> None:
    wide = max(row.high for row in rows) > _WIDE * min(row.error for row in rows)
    for number, row in enumerate(rows):
        color = canvas.ESTIMATE if number == 0 else canvas.SKY
        hatch = None if row.exact else "////"
        axes.barh(number, row.error, height=0.55, color=color, alpha=0.85, hatch=hatch, edgecolor="white", linewidth=0)
        axes.plot([row.low, row.high], [number, number], color=canvas.INK, linewidth=1.1)
        axes.plot(row.high, number, "|", color=canvas.INK, markersize=8, markeredgewidth=1.1)
        mark = "" if row.exact else "≤ "
        text = f"{mark}{row.error:.3g}" + ("" if row.covers_timing else "  (running time not covered)")
        axes.annotate(text, (max(row.high, row.error), number), xytext=(6, 0), textcoords="offset points", fontsize=7.5,
                      va="center", color=canvas.INK)  # fmt: skip
    axes.bar(0, 0, color=canvas.ESTIMATE, alpha=0.85, label='expected error, taken by "auto"')
    if len(rows) > 1:
        axes.bar(0, 0, color=canvas.SKY, alpha=0.85, label="expected error, others")
    if not all(row.exact for row in rows):
        axes.bar(0, 0, color="#CCCCCC", hatch="////", edgecolor="white", linewidth=0, label="proven upper bound")
    axes.plot([], [], color=canvas.INK, linewidth=1.1, label="5 % to 95 %")
    if wide:
        axes.set_xscale("log")
        axes.set_xlim(min(row.low for row in rows) / 2, max(row.high for row in rows) * 8)
    else:
        axes.set_xlim(0, max(row.high for row in rows) * (1.25 if all(row.covers_timing for row in rows) else 1.7))
    if radius <= max(row.high for row in rows):
        axes.axvline(radius, color=canvas.BALL, linewidth=1.2, linestyle="--", label="radius of the ball")
    canvas.named_bars(axes, [row.mechanism for row in rows], "distance between the release and the mean it hides")


# -------------------------------------------------------------------- what a promise means at every epsilon


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
