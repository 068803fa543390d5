"""Two groups: both released means with their regions, and the distance between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.inference import ConfidenceRegion, TwoSampleTest
from dpmanifold.inference.corrected import estimate_of
from dpmanifold.plots import canvas
from dpmanifold.plots.ranges import parts
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
        f"{canvas.p_told(result.p_value)}; distance about {result.corrected_distance:.3g}, "
        f"between {result.low:.3g} and {result.high:.3g} with {100 * result.level:g} %"
    )
    figure = canvas.released(title, words, result.released, 4.3)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.15, 1], height_ratios=[1.4, 1])
    plane = figure.add_subplot(grid[:, 0])
    distance, made_of = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    _regions(plane, result)
    _distance(distance, result)
    parts(made_of, result.parts, "what the variance is made of")
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
