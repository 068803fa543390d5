"""Several groups: all released means with their regions, and the distances between them."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.inference import KSampleTest
from dpmanifold.plots import canvas
from dpmanifold.plots.two_sample import LocatedRegion, draw_regions

# Pairs that are drawn, the clearest; and letters of their names.
_MOST_PAIRS, _LETTERS = 15, 24
_STYLES = ("-", "--", "-.", ":")


def groups(result: KSampleTest) -> canvas.Figure:
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
    canvas.require(result, KSampleTest, "groups draws a KSampleTest", "Make one with private_k_sample_test.")
    differing = sum(pair.p_value < 1 - result.level for pair in result.pairs)
    title = "The means of the groups differ" if result.rejects else "No difference of the means is shown"
    if differing and not result.rejects:
        title = "One pair of groups differs" if differing == 1 else f"{differing} pairs of groups differ"
    words = (
        f"{canvas.p_told(result.p_value)} for all groups at once; {differing} of {len(result.pairs)} pairs differ at "
        f"{1 - result.level:.2g}"
    )
    drawn = min(len(result.pairs), _MOST_PAIRS)
    height = 4.3 + 0.16 * max(0, drawn - 8)
    figure = canvas.released(title, words, result.released, height)
    plane, distances = figure.subplots(1, 2, width_ratios=[1.15, 1])
    _regions(plane, result)
    _distances(distances, result)
    return canvas.keyed(figure, plane, distances)


def _regions(axes: canvas.Axes, result: KSampleTest) -> None:
    """Draw the regions of all groups in a plane of coordinates at the pooled mean."""
    found = [LocatedRegion(release, result.level, result.pooled) for release in result.released]
    means: FloatArray = np.array([region.at for region in found])
    basis = np.linalg.svd(means - means.mean(axis=0), full_matrices=True)[2][: min(means.shape[1], 2)].T
    kinds = len(canvas.SERIES)
    looks = [(canvas.SERIES[number % kinds], _STYLES[number // kinds % len(_STYLES)]) for number in range(len(found))]
    ways = ("where the means lie farthest apart", "second direction")
    draw_regions(axes, [f"{name}" for name in result.names], found, looks, basis, ways, 0.15, own_dots=True)
    canvas.caption(axes, f"released means, {100 * result.level:g} % region of each")


def _distances(axes: canvas.Axes, result: KSampleTest) -> None:
    """Draw the interval of each pair, the clearest on top."""
    pairs = sorted(result.pairs, key=lambda pair: (pair.p_value, -pair.test.corrected_distance))[:_MOST_PAIRS]
    for row, pair in enumerate(pairs):
        test = pair.test
        label = f"{100 * result.level:g} % intervals, all together" if row == 0 else None
        axes.plot([test.low, test.high], [-row, -row], color=canvas.PURPLE, linewidth=5, alpha=0.5,
                  solid_capstyle="butt", label=label)  # fmt: skip
        axes.plot(test.corrected_distance, -row, "o", color=canvas.BLACK, markersize=4,
                  label="estimate" if row == 0 else None)  # fmt: skip
    axes.axvline(0.0, color=canvas.BALL, linewidth=1.2, linestyle="--", label="equal means")
    named = [(canvas.shortened(", ".join(map(str, pair.names)), _LETTERS), pair.p_value) for pair in pairs]
    canvas.named_rows(axes, [name + ("*" if p_value < 1 - result.level else "") for name, p_value in named])
    canvas.tidy(axes, "distance between means (* differ)", grid="x")
    left = len(result.pairs) - len(pairs)
    canvas.caption(axes, "pairs of groups" + (f", the clearest {len(pairs)} of {len(result.pairs)}" if left else ""))
