"""Pictures of what is no point of a space: a released number with its interval, a vector, a matrix, a ball; a plan."""

from __future__ import annotations

import numpy as np
from scipy import special

from dpmanifold._check import FloatArray, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import VarianceInterval, VarianceShares
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import ball_line, mark_of_ball, promise_text
from dpmanifold.plots.spread import NOISE_LEVEL, circle
from dpmanifold.release import Release
from dpmanifold.statistic import Kind, private_words
from dpmanifold.stats.outlook import Outlook

# More bars than these are drawn without a number under each.
_MOST_LABELS = 20


def vector(result: Release) -> canvas.Figure:
    """Draw a released vector: a bar for each number, and what the noise on it stays below.

    Parameters
    ----------
    result : the release of a statistic whose value is a vector

    Examples
    --------
    >>> vector("mean.json")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: vector draws the Release of a vector, got 'mean.json'.
    """
    _require(result, Kind.VECTOR, "vector")
    values = np.asarray(result.value, dtype=np.float64)
    statistic = result.definition
    away = noise_of_entry(result, len(values))
    below = f"{away:.3g}" if np.ndim(away) == 0 else "its bar"
    words = f"{len(values)} numbers; the noise on each stays below {below} with {100 * NOISE_LEVEL:g} %"
    figure = canvas.released(statistic.words, words, [result], 3.4)
    axes = figure.subplots()
    places = np.arange(1, len(values) + 1)
    axes.bar(places, values, color=canvas.ESTIMATE, alpha=0.75, width=0.7, label="released")
    axes.errorbar(places, values, yerr=away, fmt="none", ecolor=canvas.NOISE, capsize=2, linewidth=1.1,
                  label=f"noise, {100 * NOISE_LEVEL:g} %")  # fmt: skip
    axes.axhline(0, color=canvas.GREY, linewidth=0.7)
    if len(places) <= _MOST_LABELS:
        axes.set_xticks(places)
    canvas.tidy(axes, "number", statistic.words, grid="y")
    return canvas.keyed(figure, axes)


def table(result: Release) -> canvas.Figure:
    """Draw a released matrix of numbers as colours.

    Parameters
    ----------
    result : the release of a statistic whose value is a matrix

    Examples
    --------
    >>> table(3)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: table draws the Release of a matrix, got 3.
    """
    _require(result, Kind.MATRIX, "table")
    values = np.asarray(result.value, dtype=np.float64)
    words = f"{values.shape[0]} x {values.shape[1]} numbers, noise of scale {result.scale:.3g}"
    figure = canvas.released(result.definition.words, words, [result], 4.2)
    axes = figure.subplots()
    most = float(np.abs(values).max()) or 1.0
    image = axes.imshow(values, cmap=canvas.color_map(), vmin=-most, vmax=most)
    figure.colorbar(image, ax=axes, shrink=0.8)
    canvas.tidy(axes, "column", "row")
    return figure


def outlook(result: Outlook) -> canvas.Figure:
    """Draw what a private call would draw: the expected noise of each step as a bar, against its largest value.

    Parameters
    ----------
    result : what `plan` returned for anything but a mean

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5)
    >>> outlook(dpm.plan(500, ball, dpm.GDP(1.0), statistic="variance")).axes[0].get_xlabel()
    'expected noise, as a part of the largest value (%)'
    """
    canvas.require(result, Outlook, "outlook draws an Outlook", "Make one with plan(...).")
    footer = [f"{promise_text(result.privacy)} for each unit, {result.n:,} of them.", ball_line(result.ball)]
    title, words = f"What to expect of {private_words(result.statistic)}", result.verdict.split(". ")[0]
    figure = canvas.new_figure(title, words, mark_of_ball(result.ball), footer, 2.2 + 0.38 * len(result.steps))
    axes = figure.subplots()
    for place, step in enumerate(result.steps):
        part = step.of_range or 0.0
        mark = "" if step.exact else "≤ "
        said = "no error can be stated" if step.error is None else f"{mark}{step.error:.3g}"
        hatch = None if step.exact else "////"
        axes.barh(place, 100 * part, height=0.55, color=canvas.ESTIMATE, alpha=0.85, hatch=hatch, edgecolor="white",
                  linewidth=0)  # fmt: skip
        axes.annotate(said, (100 * part, place), xytext=(6, 0), textcoords="offset points", fontsize=7.5, va="center",
                      color=canvas.INK)  # fmt: skip
    axes.set_yticks(range(len(result.steps)), [f"{step.statistic} ({step.mechanism})" for step in result.steps])
    axes.set_ylim(len(result.steps) - 0.45, -0.55)
    axes.margins(x=0.25)
    canvas.tidy(axes, "expected noise, as a part of the largest value (%)", grid="x")
    return figure


def noise_of_entry(result: Release, size: int) -> FloatArray | float:
    """Return what noise on one of `size` numbers stays below with 95 %: one coordinate of Laplace's or normal noise.

    In the numbers' own units: one for all, or one for each.
    """
    scale = result.definition.noise_scales(result)
    if result.mechanism != "laplace":
        return scale * float(special.ndtri((1 + NOISE_LEVEL) / 2))
    if size == 1:
        return scale * float(np.log(1 / (1 - NOISE_LEVEL)))
    # A coordinate is no longer than the whole.
    return scale * float(special.gammaincinv(size, NOISE_LEVEL))


def _require(result: object, kind: Kind, picture: str) -> None:
    if not isinstance(result, Release) or result.definition.kind is not kind:
        got = f"the release of a {result.statistic}" if isinstance(result, Release) else shown(result)
        raise InvalidArgumentError(f"{picture} draws the Release of a {kind.value}, got {got}.")


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
        parts(made_of, result.variance_shares, "what the squared width is made of")
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


def parts(axes: canvas.Axes, made_of: VarianceShares, what: str) -> None:
    """Draw one bar of three parts: noise, sampling, and the allowance for the noise on the spread.

    Examples
    --------
    >>> axes = canvas.figure_class()().subplots()
    >>> parts(axes, VarianceShares(0.25, 0.5, 0.25), "what the variance is made of")
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


def balls(result: Release) -> canvas.Figure:
    """Draw a released ball and the public one around it: radii and the distance of the centres are true.

    Parameters
    ----------
    result : what `private_ball` returned

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> outer = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 100.0)
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> figure = balls(dpm.private_ball(X, outer, dpm.GDP(1.0), units=dpm.EACH_RECORD))
    >>> figure.texts[0].get_text()
    'A smaller ball, released'
    """
    if not isinstance(result, Release) or not isinstance(result.value, Ball):
        raise InvalidArgumentError(
            f"balls draws the Release of a ball, got {shown(result)}. Make one with private_ball."
        )
    outer, inner = result.ball, result.value
    apart = float(outer.space.dist(outer.center, inner.center))
    words = (
        f"radius {inner.radius:.4g} instead of {outer.radius:.4g}, its centre {apart:.4g} from that of the public one"
    )
    figure = canvas.released("A smaller ball, released", words, [result], 4.4)
    axes = figure.subplots()
    axes.plot(*(outer.radius * circle(361)).T, color=canvas.BALL, linewidth=1.6, label="public ball")
    axes.plot(0, 0, "+", color=canvas.BALL, markersize=8)
    edge = inner.radius * circle(361) + [apart, 0.0]
    axes.fill(*edge.T, color=canvas.ESTIMATE, alpha=0.2, linewidth=0)
    axes.plot(*edge.T, color=canvas.ESTIMATE, linewidth=1.6, label="released ball")
    axes.plot(apart, 0, "o", color=canvas.BLACK, markersize=4, label="its centre")
    axes.set_aspect("equal")
    axes.margins(0.06)
    canvas.tidy(axes, "distance", "distance", grid="both")
    return canvas.keyed(figure, axes)
