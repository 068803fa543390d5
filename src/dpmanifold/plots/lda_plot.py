"""Classes: where they lie in the plane that tells them apart best, and how many units each has."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold.inference import LinearDiscriminant
from dpmanifold.plots import canvas
from dpmanifold.plots.spread import ellipse

# Classes that are drawn and named, the largest; letters of their names.
_MOST, _LETTERS = 14, 18
# Half of a plane's normal units lie within so many standard deviations; noise stays below so many with 95 %.
_HALF, _SURELY = math.sqrt(2 * math.log(2)), 1.96


def classes(result: LinearDiscriminant) -> canvas.Figure:
    """Draw a discriminant: the classes in the plane in which they differ most, and their noisy counts.

    Across and up are scores in which the units of a class spread by 1 in every direction.

    Parameters
    ----------
    result : what `private_lda` returned

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(3, size=2000)
    >>> X = rng.normal(size=(2000, 2)) + 3 * np.eye(3)[labels][:, :2]
    >>> ball = dpm.Ball(dpm.Euclidean(2), [1.0, 1.0], 6.0)
    >>> figure = classes(dpm.private_lda(X, labels, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, classes=[0, 1, 2]))
    >>> figure.texts[0].get_text()
    'What tells 3 classes apart'
    """
    canvas.require(result, LinearDiscriminant, "classes draws a LinearDiscriminant", "Make one with private_lda.")
    words = f"class means are {result.apart_told} apart"
    title = f"What tells {len(result.classes)} classes apart"
    figure = canvas.released(title, words, [result.release], 4.3)
    plane, counts = figure.subplots(1, 2, width_ratios=[1.5, 1])
    drawn = np.argsort(-result.priors, kind="stable")[:_MOST].tolist()
    if result.axes.shape[1] == 1:
        _curves(plane, result, drawn)
    else:
        _plane(plane, result, drawn)
    _counts(counts, result, drawn)
    return canvas.keyed(figure, plane, counts)


def _color(number: int) -> str:
    return canvas.SERIES[number % len(canvas.SERIES)]


def _named(result: LinearDiscriminant, number: int) -> str:
    return canvas.shortened(str(result.classes[number]), _LETTERS)


def _plane(axes: canvas.Axes, result: LinearDiscriminant, drawn: list[int]) -> None:
    """Draw each class as the circle that holds half of it, and its mean with its noise."""
    basis = result.axes[:, :2]
    places = result.shrunken_means @ basis
    for number in drawn:
        color, place = _color(number), places[number]
        curve = _HALF * ellipse(np.eye(2)) + place
        noise = _HALF * result.mean_noise[number] * ellipse(basis.T @ basis) + place
        axes.fill(*curve.T, color=color, alpha=0.12, linewidth=0)
        axes.plot(*curve.T, color=color, linewidth=1.6, label=_named(result, number))
        axes.plot(*noise.T, color=color, linewidth=1.0, linestyle=":")
        axes.plot(*place, "o", color=color, markersize=4, markeredgecolor=canvas.BLACK)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.06)
    canvas.tidy(axes, "first score", "second score", grid="both")
    canvas.caption(axes, "circles: half of a class; dotted: noise on its mean")


def _curves(axes: canvas.Axes, result: LinearDiscriminant, drawn: list[int]) -> None:
    """Draw each class along the one axis as a normal curve of its size."""
    places = (result.shrunken_means @ result.axes[:, 0])[drawn]
    across = np.linspace(places.min() - 3.5, places.max() + 3.5, 400)
    for place, number in zip(places.tolist(), drawn, strict=True):
        height = result.priors[number] * np.exp(-((across - place) ** 2) / 2)
        axes.fill_between(across, height, color=_color(number), alpha=0.15, linewidth=0)
        axes.plot(across, height, color=_color(number), linewidth=1.6, label=_named(result, number))
    axes.set_ylim(bottom=0.0)
    canvas.bare(axes, "score")
    canvas.caption(axes, "classes as normal curves")


def _counts(axes: canvas.Axes, result: LinearDiscriminant, drawn: list[int]) -> None:
    """Draw how many units each class has, with its noise."""
    counts, off = result.units_by_class, _SURELY * result.count_noise
    for row, number in enumerate(drawn):
        axes.barh(-row, max(counts[number], 0.0), color=_color(number), alpha=0.5, height=0.7)
        if off:
            axes.plot([counts[number] - off, counts[number] + off], [-row, -row], color=canvas.BLACK, linewidth=1.4,
                      label="noise, 95 %" if row == 0 else None)  # fmt: skip
    canvas.named_rows(axes, [_named(result, number) for number in drawn])
    canvas.tidy(axes, "units", grid="x")
    axes.locator_params(axis="x", nbins=4)
    left = len(result.classes) - len(drawn)
    canvas.caption(
        axes, "public counts" if result.labels_public else "noisy counts" + (", the largest" if left else "")
    )
