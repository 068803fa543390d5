"""Numbers with their uncertainty: the interval of a Fréchet variance, or a bare variance with its noise."""

from __future__ import annotations

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import Parts, VarianceInterval
from dpmanifold.plots import canvas
from dpmanifold.plots.numbers import noise_of_entry
from dpmanifold.plots.spread import NOISE_LEVEL
from dpmanifold.release import Release
from dpmanifold.statistic import Kind

_VARIANCE = "Fréchet variance (squared distance)"
_PARTS = ("noise", "sampling", "allowance for the noisy spread")
_PART_COLORS = (canvas.NOISE, canvas.SAMPLING, canvas.GREY)


def interval(result: VarianceInterval | Release) -> canvas.Figure:
    """Draw a confidence interval for a Fréchet variance, and what its squared width is made of.

    Parameters
    ----------
    result : an interval; or the release of a variance, or of any other number: its noise is drawn, sampling is not

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 1))
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> figure = interval(dpm.private_variance_interval(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD))
    >>> figure.axes[0].get_xlabel()
    'Fréchet variance (squared distance)'
    """
    if isinstance(result, VarianceInterval):
        level = f"{100 * result.level:g} % confidence interval"
        words = f"{result.value:.4g}, between {result.low:.4g} and {result.high:.4g} with {100 * result.level:g} %"
        figure = canvas.released("Fréchet variance", words, [result.release], 3.2)
        panel, made_of = figure.subplots(2, 1, height_ratios=[1.5, 1])
        _range(panel, result.low, result.value, result.high, level, result.ball.effective_radius**2, _VARIANCE)
        parts(made_of, result.parts, "what the squared width is made of")
        return canvas.keyed(figure, panel, made_of)
    if not isinstance(result, Release) or result.definition.kind is not Kind.NUMBER:
        got = f"the release of a {result.statistic}" if isinstance(result, Release) else shown(result)
        raise InvalidArgumentError(
            f"interval draws a VarianceInterval or the Release of a variance or another number, got {got}. "
            "private_variance_interval and private_variance make them; show(result) draws any other result."
        )
    away, what = float(noise_of_entry(result, 1)), result.definition.words
    least, most = result.definition.limits(result.ball)
    value, level = float(result.value), f"noise, {100 * NOISE_LEVEL:g} %"
    words = f"{value:.4g}; its noise stays below {away:.3g} with {100 * NOISE_LEVEL:g} %, sampling comes on top"
    figure = canvas.released(what.partition(" (")[0], words, [result], 2.5)
    panel = figure.subplots()
    _range(panel, max(least, value - away), value, value + away, level, most, what)
    return canvas.keyed(figure, panel)


def _range(axes: canvas.Axes, low: float, value: float, high: float, label: str, most: float, what: str) -> None:
    axes.plot([low, high], [0, 0], color=canvas.ESTIMATE, linewidth=7, alpha=0.35, solid_capstyle="butt", label=label)
    for end, side in ((low, "right"), (high, "left")):
        axes.plot([end, end], [-0.3, 0.3], color=canvas.ESTIMATE, linewidth=1.4)
        shift = (-5, 0) if side == "right" else (5, 0)
        axes.annotate(
            f"{end:.4g}", (end, 0), xytext=shift, textcoords="offset points", fontsize=8, ha=side, va="center"
        )
    axes.plot(value, 0, "o", color=canvas.BLACK, markersize=5, label="estimate")
    room = max(0.35 * (high - low), 1e-12)
    left, right = max(low - room, -0.15 * high) if 0 <= low < room else low - room, high + room
    if left < most < right:
        axes.axvline(most, color=canvas.BALL, linewidth=1.2, linestyle="--", label="largest in the ball")
    axes.set_xlim(left, right)
    axes.set_ylim(-1, 1)
    canvas.bare(axes, what)


def parts(axes: canvas.Axes, made_of: Parts, what: str) -> None:
    """Draw one bar of three parts: noise, sampling, and the allowance for the noise on the spread.

    Examples
    --------
    >>> axes = canvas.figure_class()().subplots()
    >>> parts(axes, Parts(0.25, 0.5, 0.25), "what the variance is made of")
    >>> axes.get_xlabel()
    'what the variance is made of (%)'
    """
    start = 0
    for width, label, color, hatch in zip(made_of.percent, _PARTS, _PART_COLORS, ("////", "", ".."), strict=True):
        axes.barh(0, width, left=start, height=0.6, color=color, alpha=0.75, hatch=hatch, edgecolor="white",
                  linewidth=0, label=f"{label}, {width} %")  # fmt: skip
        start += width
    axes.set_xlim(0, 100)
    axes.set_ylim(-0.5, 0.5)
    canvas.bare(axes, f"{what} (%)", grid=None)
