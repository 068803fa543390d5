"""Several groups: all released means with their regions, and the distances between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmanifold._check import FloatArray, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import KSampleTest
from dpmanifold.plots import canvas
from dpmanifold.plots.marks import footer_of, mark_of
from dpmanifold.plots.spread import ellipse
from dpmanifold.plots.two_sample import LocatedRegion

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Pairs that are drawn, the clearest; and letters of their names.
_MOST_PAIRS, _LETTERS = 15, 24
_STYLES = ("-", "--", "-.", ":")


def groups(result: KSampleTest) -> Figure:
    """Draw a test of several groups: their means with regions, all distances with their intervals, and the p-value.

    The regions are seen in the plane in which the means lie farthest apart, in coordinates at the pooled mean.

    Parameters
    ----------
    result : what `private_k_sample_test` returned

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> labels = np.repeat(["a", "b", "c"], 400)
    >>> X = np.random.default_rng(0).standard_normal((1200, 2)) + 2.0 * (labels == "c")[:, None]
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 6.0)
    >>> about = {"units": dpm.EACH_RECORD, "classes": list("abc")}
    >>> figure = groups(dpm.private_k_sample_test(X, labels, ball, dpm.GDP(1.0), **about))
    >>> figure.texts[0].get_text()
    'The means of the groups differ'
    """
    if not isinstance(result, KSampleTest):
        raise InvalidArgumentError(
            f"groups draws a KSampleTest, got {shown(result)}. Make one with private_k_sample_test."
        )
    said = "p < 0.0001" if result.p_value < 1e-4 else f"p = {result.p_value:.2g}"
    differing = sum(pair.p_value < 1 - result.level for pair in result.pairs)
    title = "The means of the groups differ" if result.rejects else "No difference of the means is shown"
    if differing and not result.rejects:
        title = "One pair of groups differs" if differing == 1 else f"{differing} pairs of groups differ"
    words = f"{said} for all groups at once; {differing} of {len(result.pairs)} pairs differ at {1 - result.level:.2g}"
    releases = list(result.released)
    drawn = min(len(result.pairs), _MOST_PAIRS)
    height = 4.3 + 0.16 * max(0, drawn - 8)
    figure = canvas.new_figure(title, words, mark_of(releases), footer_of(releases), height)
    plane, distances = figure.subplots(1, 2, width_ratios=[1.15, 1])
    _regions(plane, result)
    _distances(distances, result)
    canvas.key(figure, plane, distances)
    return figure


def _regions(axes: Axes, result: KSampleTest) -> None:
    """Draw the regions of all groups in a plane of coordinates at the pooled mean."""
    found = [LocatedRegion(release, result.level, result.pooled) for release in result.released]
    means: FloatArray = np.array([region.at for region in found])
    d = means.shape[1]
    basis = np.linalg.svd(means - means.mean(axis=0), full_matrices=True)[2][: min(d, 2)].T
    colors = [canvas.SERIES[number % len(canvas.SERIES)] for number in range(len(found))]
    for number, (name, region) in enumerate(zip(result.names, found, strict=True)):
        label, color = f"{name} ({region.n:,})", colors[number]
        style = _STYLES[number // len(canvas.SERIES) % len(_STYLES)]
        if d == 1:
            half, x, row = float(np.sqrt(region.shape[0, 0])), float(region.at[0]), len(found) - number
            axes.plot([x - half, x + half], [row, row], color=color, linewidth=6, alpha=0.5, label=label)
            axes.plot(x, row, "o", color=canvas.BLACK, markersize=4)
            continue
        place = region.at @ basis
        curve = ellipse(basis.T @ region.shape @ basis) + place
        axes.fill(*curve.T, color=color, alpha=0.15, linewidth=0)
        axes.plot(*curve.T, color=color, linewidth=1.6, linestyle=style, label=label)
        axes.plot(*place, "o", color=color, markersize=4, markeredgecolor=canvas.BLACK)
    axes.margins(0.08)
    if d == 1:
        axes.set_ylim(0, len(found) + 1)
        axes.set_yticks([])
        canvas.tidy(axes, "distance from the pooled mean", grid="x")
        axes.spines["left"].set_visible(False)
    else:
        axes.set_aspect("equal", adjustable="datalim")
        canvas.tidy(axes, "where the means lie farthest apart", "second direction", grid="both")
        axes.locator_params(axis="x", nbins=4)
    canvas.caption(axes, f"released means, {100 * result.level:g} % region of each")


def _distances(axes: Axes, result: KSampleTest) -> None:
    """Draw the interval of each pair, the clearest on top."""
    pairs = sorted(result.pairs, key=lambda pair: (pair.p_value, -pair.test.corrected_distance))[:_MOST_PAIRS]
    names = []
    for row, pair in enumerate(pairs):
        test = pair.test
        label = f"{100 * result.level:g} % intervals, all together" if row == 0 else None
        axes.plot([test.low, test.high], [-row, -row], color=canvas.PURPLE, linewidth=5, alpha=0.5,
                  solid_capstyle="butt", label=label)  # fmt: skip
        axes.plot(test.corrected_distance, -row, "o", color=canvas.BLACK, markersize=4,
                  label="estimate" if row == 0 else None)  # fmt: skip
        name = f"{pair.names[0]}, {pair.names[1]}"
        star = "*" if pair.p_value < 1 - result.level else ""
        names.append((name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…") + star)
    axes.axvline(0.0, color=canvas.BALL, linewidth=1.2, linestyle="--", label="equal means")
    axes.set_yticks([-row for row in range(len(pairs))], names)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set_ylim(-len(pairs) + 0.4, 0.6)
    canvas.tidy(axes, "distance between means (* differ)", grid="x")
    left = len(result.pairs) - len(pairs)
    canvas.caption(axes, "pairs of groups" + (f", the clearest {len(pairs)} of {len(result.pairs)}" if left else ""))
