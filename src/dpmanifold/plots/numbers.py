"""Pictures of released numbers that are no points of a space: a vector, a matrix; and of what is to be expected."""

from __future__ import annotations

import numpy as np
from scipy import special

from dpmanifold._check import FloatArray, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.plots import canvas
from dpmanifold.plots.marks import ball_line, mark_of_ball, promise_text
from dpmanifold.plots.spread import NOISE_LEVEL
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
