"""Two groups or several: all released means with their regions, and the distances between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.inference import ConfidenceRegion, KSampleTest, TwoSampleTest
from dpmanifold.inference.joint import estimate_of
from dpmanifold.plots import canvas
from dpmanifold.plots.numbers import parts
from dpmanifold.plots.spread import ellipse
from dpmanifold.release import Release

_LOOKS = ((canvas.BLUE, "-"), (canvas.ORANGE, "--"))


def test(result: TwoSampleTest) -> canvas.Figure:
    """Draw a two-sample test: both means with their regions, their distance with its interval, and the p-value.

    The regions are seen in a plane through both means, in coordinates at the pooled mean: across is the direction from
    one mean to the other.

    Parameters
    ----------
    result : what `private_two_sample_test` returned

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> X, Y = np.random.default_rng(0).standard_normal((2, 500, 2)) + [[[0.0, 0.0]], [[1.0, 0.0]]]
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 4.0)
    >>> figure = test(dpm.private_two_sample_test(X, Y, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD))
    >>> figure.texts[0].get_text()
    'The two means differ'
    """
    canvas.require(result, TwoSampleTest, "test draws a TwoSampleTest", "Make one with private_two_sample_test.")
    title = "The two means differ" if result.rejects else "No difference of the means is shown"
    words = (
        f"{canvas.p_told(result.p_value)}; distance about {result.bias_corrected_distance:.3g}, "
        f"between {result.low:.3g} and {result.high:.3g} with {100 * result.level:g} %"
    )
    figure = canvas.released(title, words, result.released, 4.3)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.15, 1], height_ratios=[1.4, 1])
    plane = figure.add_subplot(grid[:, 0])
    distance, made_of = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    _regions(plane, result)
    _distance(distance, result)
    parts(made_of, result.variance_shares, "what the variance is made of")
    return canvas.keyed(figure, plane, distance, made_of)


def _regions(axes: canvas.Axes, result: TwoSampleTest) -> None:
    """Draw both regions in a plane of coordinates at the pooled mean."""
    one, two = groups = [LocatedRegion(release, result.level, result.pooled) for release in result.released]
    basis = _plane(two.at - one.at, one.shape + two.shape)
    if len(one.at) > 1:
        middle = (one.at + two.at) / 2
        one.at, two.at = one.at - middle, two.at - middle
    ways = ("distance from mean to mean", "distance across")
    draw_regions(axes, ["first group", "second group"], groups, _LOOKS, basis, ways, 0.22)
    canvas.caption(axes, f"released means, {100 * result.level:g} % regions")


class LocatedRegion:
    """A group's mean and region in coordinates at the pooled mean."""

    def __init__(self, release: Release, level: float, pooled: Array) -> None:
        region, mean = ConfidenceRegion(release, level), estimate_of(release).mean
        inner = mean.derivative(pooled)
        self.n = release.n
        self.at: FloatArray = mean.coordinates(pooled)
        self.shape: FloatArray = region.threshold * inner @ region.covariance @ inner.T


def _plane(apart: FloatArray, total: FloatArray) -> FloatArray:
    """Return the direction between the means and the least certain one across it, (d, 2)."""
    length = float(np.linalg.norm(apart))
    first = apart / length if length > 0 else np.eye(len(apart))[0]
    if len(apart) == 1:
        return first[:, None]
    across = np.eye(len(apart)) - np.outer(first, first)
    second = np.linalg.eigh(across @ total @ across)[1][:, -1]
    return np.stack([first, second], axis=-1)


def _distance(axes: canvas.Axes, result: TwoSampleTest) -> None:
    low, high = result.low, result.high
    label = f"{100 * result.level:g} % interval"
    axes.plot([low, high], [0, 0], color=canvas.PURPLE, linewidth=7, alpha=0.5, solid_capstyle="butt", label=label)
    axes.plot(result.distance, 0, "o", color=canvas.BLACK, markersize=5, label="released means")
    axes.axvline(0.0, color=canvas.BALL, linewidth=1.2, linestyle="--", label="equal means")
    axes.set_xlim(-0.08 * high, 1.12 * high)
    axes.set_ylim(-1, 1)
    canvas.bare(axes, "distance between the means")


def draw_regions(
    axes: canvas.Axes,
    names: Sequence[str],
    regions: Sequence[LocatedRegion],
    looks: Sequence[tuple[str, str]],
    basis: FloatArray,
    ways: tuple[str, str],
    alpha: float,
    *,
    own_dots: bool = False,
) -> None:
    """Draw regions of several groups in the plane of `basis` (d, 2); on a line, as intervals one under the other.

    Parameters
    ----------
    axes : where
    names : of the groups
    regions : their regions
    looks : colour and style of each
    basis : two directions, across and up
    ways : what they are, in words
    alpha : how much of a region's colour fills it
    own_dots : whether means have the colours of their groups
    """
    on_a_line = len(basis) == 1
    for row, (name, region, (color, style)) in enumerate(zip(names, regions, looks, strict=True)):
        label, height = f"{name} ({region.n:,})", len(regions) - row
        if on_a_line:
            half, x = float(np.sqrt(region.shape[0, 0])), float(region.at[0])
            axes.plot([x - half, x + half], [height, height], color=color, linewidth=6, alpha=0.5, label=label)
            axes.plot(x, height, "o", color=canvas.BLACK, markersize=4)
            continue
        place = region.at @ basis
        curve = ellipse(basis.T @ region.shape @ basis) + place
        axes.fill(*curve.T, color=color, alpha=alpha, linewidth=0)
        axes.plot(*curve.T, color=color, linewidth=1.6, linestyle=style, label=label)
        axes.plot(*place, "o", color=color if own_dots else canvas.BLACK, markersize=4, markeredgecolor=canvas.BLACK)
    axes.margins(0.08)
    if on_a_line:
        axes.set_ylim(0, len(regions) + 1)
        canvas.bare(axes, "distance from the pooled mean")
    else:
        axes.set_aspect("equal", adjustable="datalim")
        canvas.tidy(axes, *ways, grid="both")
        axes.locator_params(axis="x", nbins=4)


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
    _all_regions(plane, result)
    _distances(distances, result)
    return canvas.keyed(figure, plane, distances)


def _all_regions(axes: canvas.Axes, result: KSampleTest) -> None:
    """Draw the regions of all groups in a plane of coordinates at the pooled mean."""
    found = [LocatedRegion(release, result.level, result.pooled) for release in result.released]
    means: FloatArray = np.array([region.at for region in found])
    basis = np.linalg.svd(means - means.mean(axis=0), full_matrices=True)[2][: min(means.shape[1], 2)].T
    kinds = len(canvas.SERIES)
    looks = [(canvas.SERIES[number % kinds], _STYLES[number // kinds % len(_STYLES)]) for number in range(len(found))]
    ways = ("where the means lie farthest apart", "second direction")
    draw_regions(axes, [f"{name}" for name in result.classes], found, looks, basis, ways, 0.15, own_dots=True)
    canvas.caption(axes, f"released means, {100 * result.level:g} % region of each")


def _distances(axes: canvas.Axes, result: KSampleTest) -> None:
    """Draw the interval of each pair, the clearest on top."""
    pairs = sorted(result.pairs, key=lambda pair: (pair.p_value, -pair.test.bias_corrected_distance))[:_MOST_PAIRS]
    for row, pair in enumerate(pairs):
        test = pair.test
        label = f"{100 * result.level:g} % intervals, all together" if row == 0 else None
        axes.plot([test.low, test.high], [-row, -row], color=canvas.PURPLE, linewidth=5, alpha=0.5,
                  solid_capstyle="butt", label=label)  # fmt: skip
        axes.plot(test.bias_corrected_distance, -row, "o", color=canvas.BLACK, markersize=4,
                  label="estimate" if row == 0 else None)  # fmt: skip
    axes.axvline(0.0, color=canvas.BALL, linewidth=1.2, linestyle="--", label="equal means")
    named = [(canvas.shortened(", ".join(map(str, pair.names)), _LETTERS), pair.p_value) for pair in pairs]
    canvas.named_rows(axes, [name + ("*" if p_value < 1 - result.level else "") for name, p_value in named])
    canvas.tidy(axes, "distance between means (* differ)", grid="x")
    left = len(result.pairs) - len(pairs)
    canvas.caption(axes, "pairs of groups" + (f", the clearest {len(pairs)} of {len(result.pairs)}" if left else ""))
