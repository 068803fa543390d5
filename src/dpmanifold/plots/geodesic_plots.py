"""Along geodesics: principal components, with the mean moved along each, and a regression, with its bands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.data.landmarks import landmark_links
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import GeodesicRegression, PrincipalComponents
from dpmanifold.manifolds import KendallShapes
from dpmanifold.plots import canvas
from dpmanifold.plots.globe import bare_globe, camera_on, draw_curve
from dpmanifold.plots.glyphs import draw_grid
from dpmanifold.plots.landmark_shapes import aligned, outline, strokes

# So many are drawn; a table has the others.
_MOST = 4
_BAR = 0.32  # inches for a share
_MINUS, _PLUS = canvas.VERMILLION, canvas.BLUE
_STEPS = (-2.0, -1.0, 0.0, 1.0, 2.0)
# More coordinates than this are joined by a line.
_FEW = 15


def components(result: PrincipalComponents, *, links: object = None) -> canvas.Figure:
    """Draw components: their shares with intervals, and the mean moved along each by one standard deviation.

    Tensors are drawn as ellipses or ellipsoids and shapes as outlines, two standard deviations on either side; means
    on the sphere S^2 move along curves; on other spaces the coordinates of each direction are drawn, and of Euclidean
    spaces those of the mean.

    Parameters
    ----------
    result : what `private_pga` returned
    links : of planar shapes, which landmarks to join by lines: see :func:`shape`

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> X = np.random.default_rng(0).normal(0.0, [1.0, 0.3], (900, 2))
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 4.0)
    >>> figure = components(dpm.private_pga(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, count=1))
    >>> figure.texts[0].get_text()
    'One principal component'
    """
    canvas.require(result, PrincipalComponents, "components draws PrincipalComponents", "Make them with private_pga.")
    picture = result.space.picture
    if links is not None and picture != "shape":
        raise InvalidArgumentError(f"links means nothing in a picture on {result.space!r}. Leave it out.")
    count = min(result.count, _MOST)
    title = "One principal component" if result.count == 1 else f"{result.count} principal components"
    words = _words(result) + (f"; the first {count} are drawn" if count < result.count else "")
    bars = 0.75 + _BAR * count
    below = {"tensors": 0.35 + 1.0 * count, "shape": 2.6, "sphere": 3.6}.get(picture, 2.2)
    figure = canvas.released(title, words, [result.release], 1.6 + bars + below)
    above, rest = np.asarray(figure.subfigures(2, 1, height_ratios=[bars, below]))
    _shares(above.subplots(), result, count)
    drawn: Callable[..., canvas.Axes] = {"tensors": _tensors, "shape": _shapes, "sphere": _globe}.get(
        picture, _coordinates
    )
    key = drawn(rest, result, count, **({"links": links} if picture == "shape" else {}))
    return canvas.keyed(figure, key)


def _words(result: PrincipalComponents) -> str:
    """Say how much they hold together."""
    if result.count == result.space.dim:
        return "as many as the space has dimensions: all of the variance"
    if not result.is_identifiable:
        return "noise hides the total variance: their shares of it are not known"
    least, most = result.explained_interval
    return f"{result.explained:.0%} of the variance, between {least:.0%} and {most:.0%} with {100 * result.level:g} %"


def _shares(axes: canvas.Axes, result: PrincipalComponents, count: int) -> None:
    """Draw the share of every component with its interval."""
    for number in range(count):
        low, high = result.share_intervals[number]
        axes.plot([low, high], [number, number], color=canvas.ESTIMATE, linewidth=6, alpha=0.45, solid_capstyle="butt")
        if result.is_identifiable:  # a point at 0 or 1 is drawn in full
            axes.plot(result.shares[number], number, "o", color=canvas.BLACK, markersize=4, clip_on=False, zorder=5)
    axes.set_yticks(range(count), [f"{number + 1}" for number in range(count)])
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_xlim(0.0, min(1.0, 1.15 * float(result.share_intervals[:count].max())))
    axes.xaxis.set_major_formatter("{x:.0%}")
    canvas.tidy(axes, f"share of the variance, {100 * result.level:g} % intervals", "component", grid="x")


def _panels(figure: Any, count: int, **options: Any) -> list[canvas.Axes]:
    """Return one panel for each component, in a row, with its number over it."""
    panels = list(np.atleast_1d(figure.subplots(1, count, **options)))
    for number, axes in enumerate(panels):
        canvas.caption(axes, f"along component {number + 1}")
    return panels


def _tensors(figure: Any, result: PrincipalComponents, count: int) -> canvas.Axes:
    """Draw the mean moved along each component, one row for each."""
    grid = np.stack([result.moved(number, _STEPS) for number in range(count)])
    axes: canvas.Axes = figure.subplots()
    draw_grid(figure, axes, grid)
    axes.set_xticks(range(len(_STEPS)), [f"{step:+g} sd" if step else "mean" for step in _STEPS], fontsize=8)
    axes.set_yticks(range(count), [f"{number + 1}" for number in range(count)], fontsize=8)
    canvas.tidy(axes, "", "component")
    return axes


def _shapes(figure: Any, result: PrincipalComponents, count: int, links: object = None) -> canvas.Axes:
    """Draw the outline of the mean and of the mean moved two standard deviations to either side."""
    space = cast(KendallShapes, result.space)
    joined = outline(space.landmarks) if links is None else landmark_links(links, space.landmarks) - 1
    panels = _panels(figure, count, sharex=True, sharey=True)
    for number, axes in enumerate(panels):
        for step, color, width in ((-2.0, _MINUS, 1.2), (2.0, _PLUS, 1.2), (0.0, canvas.BLACK, 1.0)):
            moved = aligned(space, result.center, result.moved(number, [step]))[0]
            label = f"mean {step:+g} sd" if step else "released mean"
            axes.plot(*strokes(moved, joined).T, color=color, linewidth=width, label=label, solid_capstyle="round")
        axes.set_aspect("equal")
        axes.axis("off")
    return panels[0]


def _globe(figure: Any, result: PrincipalComponents, count: int) -> canvas.Axes:
    """Draw the curves that the mean moves along, two standard deviations to either side."""
    axes: canvas.Axes = figure.subplots()
    space = result.space
    radius, camera = float(np.linalg.norm(space.origin)), camera_on(result.center)
    bare_globe(axes, camera)
    for number, color in zip(range(count), canvas.SERIES, strict=False):
        curve = np.asarray(result.moved(number, np.linspace(-2.0, 2.0, 81))) / radius
        draw_curve(axes, camera, curve, color, f"component {number + 1}: 2 sd to either side", 2.0)
        ends = camera.on_paper(np.asarray(result.moved(number, [-1.0, 1.0])) / radius)
        axes.plot(*ends.T, "|", color=color, markersize=8, label="1 sd" if number == 0 else None)
    mean = camera.on_paper(result.center / radius)
    axes.plot(*mean, "o", color=canvas.BLACK, markersize=3.5, label="released mean")
    return axes


def _coordinates(figure: Any, result: PrincipalComponents, count: int) -> canvas.Axes:
    """Draw the mean and the mean moved by one standard deviation; elsewhere than on R^d the directions themselves."""
    panels = _panels(figure, count, sharey=True)
    flat = result.space.shape == (result.space.dim,)
    for number, axes in enumerate(panels):
        if flat:
            rows = [("released mean", result.center, canvas.BLACK)]
            rows += [
                (f"mean {step:+g} sd", result.moved(number, step), color) for step, color in ((-1, _MINUS), (1, _PLUS))
            ]
        else:
            rows = [("direction", result.directions[number], canvas.ESTIMATE)]
        style = "-" if len(rows[0][1]) > _FEW else "o-"
        for label, values, color in rows:
            places = np.arange(1, len(values) + 1)
            axes.plot(places, values, style, color=color, linewidth=1.0, markersize=3, label=label)
        axes.locator_params(axis="x", integer=True, nbins=5)
        where = "coordinate" if flat else "coordinate at the mean"
        canvas.tidy(axes, where, ("value" if flat else "of the direction") if number == 0 else "", grid="both")
    return panels[0]


# -------------------------------------------------------------------- a geodesic regression


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


def _globe_with_bands(figure: canvas.Figure, axes: canvas.Axes, result: GeodesicRegression) -> None:
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


def _tensors_along(figure: canvas.Figure, axes: canvas.Axes, result: GeodesicRegression) -> None:
    """Draw tensors along the curve."""
    x = _values(result, _SHOWN)
    draw_grid(figure, axes, np.asarray(result.curve(x))[None])
    for column, value in enumerate(x):
        axes.text(column, 0.6, f"{value:.4g}", fontsize=8, ha="center", va="center")
    axes.axis("off")


def _shapes_along(figure: canvas.Figure, axes: canvas.Axes, result: GeodesicRegression) -> None:
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


_OWN = {"sphere": _globe_with_bands, "tensors": _tensors_along, "shape": _shapes_along}
