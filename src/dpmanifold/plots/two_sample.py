"""Two groups: both released means with their regions, and the distance between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion, TwoSampleTest
from dpmanifold.inference.corrected import estimate_of
from dpmanifold.plots import canvas
from dpmanifold.plots.marks import footer_of, mark_of
from dpmanifold.plots.ranges import parts
from dpmanifold.plots.spread import ellipse
from dpmanifold.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = (canvas.BLUE, canvas.ORANGE)
_STYLES = ("-", "--")


def test(result: TwoSampleTest) -> Figure:
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
    if not isinstance(result, TwoSampleTest):
        raise InvalidArgumentError(
            f"test draws a TwoSampleTest, got {shown(result)}. Make one with private_two_sample_test."
        )
    title = "The two means differ" if result.rejects else "No difference of the means is shown"
    small = result.p_value < 1e-4
    said = f"p {'<' if small else '='} {'0.0001' if small else format(result.p_value, '.2g')}"
    words = (
        f"{said}; distance about {result.corrected_distance:.3g}, between {result.low:.3g} and {result.high:.3g} "
        f"with {100 * result.level:g} %"
    )
    releases = [result.first, result.second]
    figure = canvas.new_figure(title, words, mark_of(releases), footer_of(releases), 4.3)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.15, 1], height_ratios=[1.4, 1])
    plane = figure.add_subplot(grid[:, 0])
    distance, made_of = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    _regions(plane, result)
    _distance(distance, result)
    parts(made_of, result.parts, "what the variance is made of")
    canvas.key(figure, plane, distance, made_of)
    return figure


def _regions(axes: Axes, result: TwoSampleTest) -> None:
    """Draw both regions in a plane of coordinates at the pooled mean."""
    groups = [LocatedRegion(release, result.level, result.pooled) for release in (result.first, result.second)]
    apart = groups[1].at - groups[0].at
    d = len(apart)
    basis = _plane(apart, groups[0].shape + groups[1].shape)
    names = ("first group", "second group")
    middle = (groups[0].at + groups[1].at) / 2 if d > 1 else np.zeros(1)
    for group, name, color, style, height in zip(groups, names, _COLORS, _STYLES, (1.0, 0.0), strict=True):
        label = f"{name} ({group.n:,})"
        if d == 1:
            half = float(np.sqrt(group.shape[0, 0]))
            x = float(group.at[0])
            axes.plot([x - half, x + half], [height, height], color=color, linewidth=6, alpha=0.5, label=label)
            axes.plot(x, height, "o", color=canvas.BLACK, markersize=4)
            continue
        place = (group.at - middle) @ basis
        curve = ellipse(basis.T @ group.shape @ basis) + place
        axes.fill(*curve.T, color=color, alpha=0.22, linewidth=0)
        axes.plot(*curve.T, color=color, linewidth=1.6, linestyle=style, label=label)
        axes.plot(*place, "o", color=canvas.BLACK, markersize=4)
    axes.margins(0.08)
    if d == 1:
        axes.set_ylim(-1, 2)
        axes.set_yticks([])
        canvas.tidy(axes, "distance from the pooled mean", grid="x")
        axes.spines["left"].set_visible(False)
    else:
        axes.set_aspect("equal", adjustable="datalim")
        canvas.tidy(axes, "distance from mean to mean", "distance across", grid="both")
        axes.locator_params(axis="x", nbins=4)
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


def _distance(axes: Axes, result: TwoSampleTest) -> None:
    low, high = result.low, result.high
    label = f"{100 * result.level:g} % interval"
    axes.plot([low, high], [0, 0], color=canvas.PURPLE, linewidth=7, alpha=0.5, solid_capstyle="butt", label=label)
    axes.plot(result.distance, 0, "o", color=canvas.BLACK, markersize=5, label="released means")
    axes.axvline(0.0, color=canvas.BALL, linewidth=1.2, linestyle="--", label="equal means")
    axes.set_xlim(-0.08 * high, 1.12 * high)
    axes.set_ylim(-1, 1)
    axes.set_yticks([])
    canvas.tidy(axes, "distance between the means", grid="x")
    axes.spines["left"].set_visible(False)
