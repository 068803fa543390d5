"""A geodesic regression: the curve in its space, and how far its points may be off along the range."""

from __future__ import annotations

from typing import cast

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.inference import GeodesicRegression
from dpmanifold.manifolds import KendallShapes
from dpmanifold.plots import canvas
from dpmanifold.plots.globe import bare_globe, camera_on, draw_curve
from dpmanifold.plots.glyphs import draw_grid
from dpmanifold.plots.landmarks import aligned

_SMOOTH, _SHOWN = 61, 5  # values along the range: of a line, of points drawn one by one


def regression(result: GeodesicRegression) -> canvas.Figure:
    """Draw a geodesic regression: the curve in its space, and the way along it with both bands.

    The way is measured along the curve from its middle, where a geodesic is a straight line; bands are cut in the
    direction of the curve, and across it by the longest half axis there.

    Parameters
    ----------
    result : what `private_regression` returned

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> rng = np.random.default_rng(0)
    >>> x, ball = rng.uniform(0, 10, 500), dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 4.0)
    >>> X = np.stack([0.3 * x - 1.5, 0 * x], axis=1) + 0.3 * rng.standard_normal((500, 2))
    >>> found = dpm.private_regression(X, x, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, covariate_range=(0, 10))
    >>> regression(found).texts[0].get_text()
    'The mean moves with the covariate'
    """
    canvas.require(result, GeodesicRegression, "regression draws a GeodesicRegression", "private_regression makes one.")
    moves = result.p_value < 1 - result.level
    title = "The mean moves with the covariate" if moves else "No change with the covariate is shown"
    low, high = result.covariate_range
    moved = f"{result.speed:.3g} per unit, {result.speed * (high - low):.3g} from {low:g} to {high:g}"
    picture = result.space.picture
    tall = picture in ("tensors", "shape")
    figure = canvas.released(title, f"{canvas.p_told(result.p_value)}; {moved}", [result.release], 5.2 if tall else 4.3)
    if result.space.dim == 1:
        along = across = figure.subplots()
    elif picture not in _OWN:
        along, across = figure.subplots(1, 2)
    elif tall:
        grid = figure.add_gridspec(2, 2, height_ratios=[1, 1.1])
        _OWN[picture](figure, figure.add_subplot(grid[0, :]), result)
        along, across = figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1])
    else:
        grid = figure.add_gridspec(2, 2, width_ratios=[1.1, 1])
        _OWN[picture](figure, figure.add_subplot(grid[:, 0]), result)
        along, across = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    _ways(along, across, result)
    return canvas.keyed(figure, along)


def _values(result: GeodesicRegression, count: int) -> FloatArray:
    return np.linspace(*result.covariate_range, count)


def _ways(along: canvas.Axes, across: canvas.Axes, result: GeodesicRegression) -> None:
    """Draw the way along the curve, and how far points may be off across it."""
    x = _values(result, _SMOOTH)
    velocity = result.slope
    length = float(np.linalg.norm(velocity))
    d = len(velocity)
    first = velocity / length if length > 0 else np.eye(d)[0]
    rest = np.eye(d) - np.outer(first, first)
    way = length * (x - (x[0] + x[-1]) / 2)
    for simultaneous, alpha, name in ((True, 0.18, "all at once"), (False, 0.32, "each by itself")):
        band = result.band(x, simultaneous)
        half = np.sqrt(band.threshold * np.maximum(np.einsum("i,kij,j->k", first, band.covariance, first), 0.0))
        label = f"{100 * result.level:g} % band, {name}"
        along.fill_between(x, way - half, way + half, color=canvas.ESTIMATE, alpha=alpha, linewidth=0, label=label)
        if d > 1:
            widest = np.linalg.eigvalsh(rest @ band.covariance @ rest)[:, -1]
            far = np.sqrt(band.threshold * np.maximum(widest, 0.0))
            across.fill_between(x, -far, far, color=canvas.ESTIMATE, alpha=alpha, linewidth=0)
    along.plot(x, way, color=canvas.BLACK, linewidth=1.4, label="released curve")
    canvas.tidy(along, "covariate", "along the curve", grid="both")
    if d > 1:
        across.axhline(0.0, color=canvas.BLACK, linewidth=1.4)
        canvas.tidy(across, "covariate", "off the curve", grid="both")


def _globe(figure: canvas.Figure, axes: canvas.Axes, result: GeodesicRegression) -> None:
    """Draw the curve on the globe, with the band at a few values."""
    ball, radius = result.ball, float(np.linalg.norm(result.space.origin))
    camera = camera_on(ball.center)
    circle = bare_globe(axes, camera)
    rim = ball.space.exp_coords(ball.center, ball.radius * circle) / radius
    draw_curve(axes, camera, rim, canvas.BALL, None, 1.2)
    for edge in result.outlines(_values(result, _SHOWN)):
        draw_curve(axes, camera, edge / radius, canvas.ESTIMATE, None, 0.8, filled=True)
    curve = result.curve(_values(result, _SMOOTH)) / radius
    draw_curve(axes, camera, curve, canvas.BLACK, None, 1.6)
    for value, point in zip(result.covariate_range, curve[[0, -1]], strict=True):
        place = camera.on_paper(point)
        axes.plot(*place, "o", color=canvas.BLACK, markersize=3)
        axes.annotate(f"{value:g}", (place[0], place[1]), (4, 4), textcoords="offset points", fontsize=7.5)


def _tensors(figure: canvas.Figure, axes: canvas.Axes, result: GeodesicRegression) -> None:
    """Draw tensors along the curve."""
    x = _values(result, _SHOWN)
    draw_grid(figure, axes, np.asarray(result.curve(x))[None])
    for column, value in enumerate(x):
        axes.text(column, 0.6, f"{value:.4g}", fontsize=8, ha="center", va="center")
    axes.axis("off")


def _shapes(figure: canvas.Figure, axes: canvas.Axes, result: GeodesicRegression) -> None:
    """Draw shapes along the curve over one another, turned to fit that in the middle."""
    space = cast(KendallShapes, result.space)
    x = _values(result, _SHOWN)
    shapes = result.curve(x)
    colors = canvas.color_map(canvas.BLUE, canvas.PURPLE, canvas.VERMILLION)(np.linspace(0, 1, _SHOWN))
    for value, landmarks, color in zip(x, aligned(space, shapes[_SHOWN // 2], shapes), colors, strict=True):
        closed = np.vstack([landmarks, landmarks[:1]])
        axes.plot(*closed.T, "-o", color=color, linewidth=1.0, markersize=2, label=f"{value:.4g}")
    axes.set_aspect("equal")
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    canvas.tidy(axes, "x (shape scaled to unit size)", "y")


_OWN = {"sphere": _globe, "tensors": _tensors, "shape": _shapes}
