"""Positive definite 2 x 2 and 3 x 3 matrices as ellipses and ellipsoids: half axes are roots of eigenvalues.

One released tensor is drawn as its outline, and the band in which the outline may lie; a matrix of any size as its
entries and its eigenvalues, with what the noise can do to them; and the factors of a product of spaces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from dpmanifold._check import Array, FloatArray, numeric_array, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.manifolds import SPD, Manifold, Product
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import PUBLIC_DATA
from dpmanifold.plots.globe import Camera
from dpmanifold.plots.spread import (
    NOISE_LEVEL,
    Spread,
    circle,
    ellipse,
    parent_release,
    point_of,
    released_mean,
    spread_of,
    word_for,
)
from dpmanifold.release import Release
from dpmanifold.stats.shaped import SHAPED

# More glyphs than this are too small to see on a page; so many in a row still are not.
MOST_GLYPHS, _LONGEST_ROW = 2500, 10
_CELL = 0.46  # of a cell's width: the longest half axis of all


def tensors(result: Release | ConfidenceRegion | Mapping[Any, Release] | Array) -> canvas.Figure:
    """Draw positive definite matrices as ellipses (2 x 2) or shaded ellipsoids (3 x 3).

    A released mean comes with the band in which its outline may lie; several matrices come as a grid, coloured by
    anisotropy (0: a circle or sphere, 1: a line).

    Parameters
    ----------
    result : the release of a mean or a region on SPD(2) or SPD(3); what `private_class_means` returns; or an array
        (..., k, k) of PUBLIC matrices, which is marked as public data

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> figure = tensors(dpm.SPD(3).random_point((2, 5), rng=0))
    >>> figure.texts[2].get_text()
    'public data'
    """
    if isinstance(result, Mapping):
        return _groups(result)
    if isinstance(result, (Release, ConfidenceRegion)):
        release = released_mean(result, "tensors")
        _require_size(release.ball.space)
        return draw_mean(result)
    matrices = numeric_array(result, "result")
    if matrices.ndim < 2 or matrices.shape[-1] not in (2, 3) or matrices.shape[-1] != matrices.shape[-2]:
        raise InvalidArgumentError(
            f"tensors draws matrices (..., 2, 2) or (..., 3, 3), got {shown(matrices)}. Use matrix for larger ones."
        )
    matrices = SPD(matrices.shape[-1]).as_points(matrices, "result")
    grid = as_grid(matrices)
    subtitle = f"{math.prod(matrices.shape[:-2]):,} matrices; half axes are roots of eigenvalues"
    height = grid_height(grid.shape[0], grid.shape[1])
    figure = canvas.new_figure("Tensors", subtitle, PUBLIC_DATA, ["An array given by the user, no release."], height)
    axes = figure.subplots()
    draw_grid(figure, axes, grid)
    canvas.tidy(axes, "column", "row")
    axes.locator_params(integer=True)
    return figure


def _groups(releases: Mapping[Any, Release]) -> canvas.Figure:
    """Draw one mean per class, side by side and to the same scale."""
    means = [released_mean(release, "tensors") for release in releases.values()]
    if not means:
        raise InvalidArgumentError("tensors needs at least one release. Give what private_class_means returned.")
    for release in means:
        _require_size(release.ball.space, "show(releases[name]), one by one,")
    grid = as_grid(np.stack([np.asarray(release.value) for release in means]))
    rows, columns = grid.shape[:2]
    subtitle = f"{len(means)} released means; half axes are roots of eigenvalues"
    height = grid_height(rows, columns) - 0.3
    figure = canvas.released("One mean per class", subtitle, means, height)
    axes = figure.subplots()
    draw_grid(figure, axes, grid)
    for number, (name, release) in enumerate(zip(releases, means, strict=True)):
        row, column = divmod(number, columns)
        text = f"{str(name)[:24]} ({release.n:,})"
        axes.text(column, row + 0.56, text, fontsize=8, ha="center", va="center", parse_math=False)
    axes.set_ylim(rows - 0.3, -0.55)
    axes.axis("off")
    return figure


def _require_size(space: Manifold, remedy: str = "show(result)") -> None:
    if space.picture != "tensors":
        raise InvalidArgumentError(f"tensors draws SPD(2) and SPD(3), got {space!r}. Use {remedy} instead.")


def as_grid(matrices: FloatArray) -> FloatArray:
    """Return (rows, columns, k, k): a list is wrapped like text, further axes are joined to the rows.

    Examples
    --------
    >>> as_grid(np.stack([np.eye(2)] * 12)).shape
    (2, 10, 2, 2)
    """
    k = matrices.shape[-1]
    count = math.prod(matrices.shape[:-2])
    if not 0 < count <= MOST_GLYPHS:
        raise InvalidArgumentError(f"tensors draws 1 to {MOST_GLYPHS:,} matrices, got {count:,}. Take a slice.")
    if matrices.ndim > 3:
        return matrices.reshape(-1, matrices.shape[-3], k, k)
    # A square would waste the page's width.
    columns = min(count, max(_LONGEST_ROW, math.ceil(math.sqrt(2 * count))))
    filled = np.full((math.ceil(count / columns) * columns, k, k), np.nan)
    filled[:count] = matrices.reshape(-1, k, k)
    return filled.reshape(-1, columns, k, k)


def grid_height(rows: int, columns: int) -> float:
    """Return how many inches a sheet with so many rows and columns should have.

    Examples
    --------
    >>> round(grid_height(1, 10), 2)
    2.6
    """
    return float(np.clip(1.75 + 5.3 * (rows + 0.2) / (columns + 0.2), 2.6, 8.0))


def anisotropy(matrices: FloatArray) -> FloatArray:
    """Return the fractional anisotropy of matrices (..., k, k): 0 for the identity, 1 for a single direction.

    Examples
    --------
    >>> anisotropy(np.stack([np.eye(3), np.diag([1.0, 1e-9, 1e-9])])).round(4)
    array([0., 1.])
    """
    values = np.linalg.eigvalsh(matrices)
    k = values.shape[-1]
    apart = values - values.mean(axis=-1, keepdims=True)
    return np.asarray(np.linalg.norm(apart, axis=-1) / np.linalg.norm(values, axis=-1) * math.sqrt(k / (k - 1)))


def draw_grid(figure: canvas.Figure, axes: canvas.Axes, grid: FloatArray) -> None:
    """Draw matrices (rows, columns, k, k) as glyphs, those that are not finite left out."""
    from matplotlib.cm import ScalarMappable

    rows, columns, k = grid.shape[:3]
    present = np.asarray(np.isfinite(grid).all(axis=(-1, -2)))
    longest = math.sqrt(float(np.linalg.eigvalsh(grid[present])[..., -1].max()))
    scaled = grid * (_CELL / longest) ** 2
    colors = np.asarray(canvas.color_map()(anisotropy(np.where(present[..., None, None], grid, np.eye(k)))))
    camera = Camera.towards(_VIEW)
    pixels = int(np.clip(1400 / columns, 24, 400))
    for row, column in np.argwhere(present):
        matrix, color = scaled[row, column], colors[row, column]
        if k == 2:
            # Rows count downwards while matrices have y upwards.
            outline = ellipse(matrix) * [1, -1] + [column, row]
            axes.fill(*outline.T, facecolor=color, edgecolor="white", linewidth=0.4)
            continue
        image = camera.shaded(matrix, color[:3], 0.5, pixels)
        extent = (column - 0.5, column + 0.5, row + 0.5, row - 0.5)
        axes.imshow(image, extent=extent, origin="lower", interpolation="bilinear")
    axes.set_aspect("equal")
    axes.set_xlim(-0.6, columns - 0.4)
    axes.set_ylim(rows - 0.4, -0.6)
    shades = ScalarMappable(cmap=canvas.color_map())
    bar = figure.colorbar(shades, ax=axes, shrink=0.7, aspect=14, pad=0.02)
    bar.set_label("anisotropy", fontsize=8.5)
    bar.ax.tick_params(labelsize=7.5, width=0.6, length=2.5)
    bar.outline.set_linewidth(0.5)


_VIEW = np.array([0.5, -1.0, 0.45])
_STEP = 1e-4  # of central differences of a smooth function of order 1
# A band wider than this factor between its edges would leave nothing but the band on the paper.
_WIDEST = math.log(10.0)
_NAMES = "xyz"
_CIRCLE = circle(361)


def draw_mean(result: Release | ConfidenceRegion) -> canvas.Figure:
    """Draw the mean on SPD(2) as an ellipse, on SPD(3) as an ellipsoid with its three shadows.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), 2.0)
    >>> release = dpm.private_mean([np.eye(2)] * 50, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> len(draw_mean(release).axes)
    1
    """
    spread = spread_of(result, "tensors")
    k = len(spread.center)
    figure = canvas.released(spread.titled("tensor"), spread.sentence, [parent_release(result)], 4.4 if k == 2 else 5.8)
    if k == 2:
        axes = figure.subplots()
        _outline(axes, spread, (0, 1))
        return canvas.keyed(figure, axes)
    panels = figure.subplots(2, 2)
    _solid(panels[0, 0], spread.center, spread.what)
    shadows = panels.ravel()[1:]
    for axes, plane in zip(shadows, ((0, 1), (0, 2), (1, 2)), strict=True):
        _outline(axes, spread, plane)
        canvas.caption(axes, f"shadow in {_NAMES[plane[0]]} and {_NAMES[plane[1]]}")
    limit = max(axes.get_xlim()[1] for axes in shadows)
    for axes in shadows:  # one scale, or the smallest shadow would look as large as the others
        canvas.square(axes, limit)
    return canvas.keyed(figure, panels[0, 1])


def _solid(axes: canvas.Axes, matrix: FloatArray, what: str) -> None:
    from matplotlib.colors import to_rgb

    camera = Camera.towards(_VIEW)
    width = 1.2 * math.sqrt(float(np.linalg.eigvalsh(matrix)[-1]))
    color = np.array(to_rgb(canvas.SKY))
    axes.imshow(camera.shaded(matrix, color, width, 600), extent=(-width, width, -width, width), origin="lower")
    seen = np.linalg.inv(camera.on_paper(camera.on_paper(matrix).T))

    def shadow(x: float, y: float) -> float:
        """Below 1 in front of the ellipsoid."""
        return float(np.array([x, y]) @ seen @ np.array([x, y]))

    # Axes start at the surface, so that they show where it is.
    for name, axis in zip(_NAMES, np.eye(3), strict=True):
        start = axis / math.sqrt(float(axis @ np.linalg.solve(matrix, axis)))
        if camera.in_front(axis) < 0:
            start = -start  # the end that faces the eye
            axis, name = -axis, f"−{name}"
        ends = camera.on_paper(np.stack([start, start + 0.2 * width * axis]))
        x, y = camera.on_paper(start + 0.32 * width * axis)
        ink = "white" if shadow(x, y) < 1 else canvas.INK
        axes.plot(*ends.T, color=ink, linewidth=0.9)
        axes.text(x, y, name, fontsize=8, ha="center", va="center", color=ink)
    axes.set_aspect("equal")
    axes.axis("off")
    canvas.caption(axes, f"the released {what}")


def _outline(axes: canvas.Axes, spread: Spread, plane: tuple[int, int]) -> None:
    """Draw the shadow of the tensor on a coordinate plane, and its band."""
    middle = radii(spread.center, plane)
    directions = _CIRCLE.T
    low, high = band(spread, plane)
    drawn = bool(np.log(high / low).max() <= _WIDEST)
    if drawn:
        edge = np.concatenate([(high * directions).T, (low * directions).T[::-1]])
        axes.fill(*edge.T, color=canvas.ESTIMATE, alpha=0.25, linewidth=0, label=spread.label)
    else:
        axes.plot([], [], color="none", label=f"{spread.label}: too wide to draw")
    outline = ellipse(spread.center[np.ix_(plane, plane)])
    axes.plot(*outline.T, color=canvas.ESTIMATE, linewidth=1.5, label=f"released {spread.what}")
    axes.plot(0, 0, "+", color=canvas.GREY, markersize=6, markeredgewidth=0.8)
    limit = 1.15 * float((high if drawn else middle).max())
    canvas.square(axes, limit)
    canvas.tidy(axes, f"{_NAMES[plane[0]]} (root of eigenvalue)", f"{_NAMES[plane[1]]}", grid="both")


def radii(matrices: Array, plane: tuple[int, int]) -> FloatArray:
    """Return how far the shadow {x : x' M^-1 x <= 1} of matrices (..., k, k) reaches at each angle, (..., 361).

    M is the block of the matrix in that plane.

    Examples
    --------
    >>> radii(np.diag([4.0, 1.0]), (0, 1))[[0, 90]].round(6)
    array([2., 1.])
    """
    block = np.linalg.inv(matrices[..., plane, :][..., :, plane])[..., None, :, :]
    u = _CIRCLE
    return np.asarray(1 / np.sqrt(np.einsum("ai,...aij,aj->...a", u, np.broadcast_to(
        block, (*block.shape[:-3], len(u), 2, 2)), u)))  # fmt: skip


def band(spread: Spread, plane: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest radius at each angle over the tensors of the ellipsoid.

    The farthest tensor at an angle is looked for where the gradient of the log radius points: exact to second order
    in the size of the ellipsoid, and every tensor found is one of it.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), 2.0)
    >>> release = dpm.private_mean([np.eye(2)] * 50, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> low, high = band(spread_of(release, "tensors"), (0, 1))
    >>> bool((low < radii(release.value, (0, 1))).all() and (radii(release.value, (0, 1)) < high).all())
    True
    """
    d = len(spread.shape)
    steps = _STEP * np.eye(d)
    ahead, behind = (np.log(radii(spread.move(sign * steps), plane)) for sign in (1.0, -1.0))
    gradient = (ahead - behind).T / (2 * _STEP)  # (angles, d)
    moved = gradient @ spread.shape
    farthest = moved / np.sqrt(np.maximum((gradient * moved).sum(axis=-1, keepdims=True), 1e-300))
    count = np.arange(len(_CIRCLE))
    low = radii(spread.move(-farthest), plane)[count, count]
    high = radii(spread.move(farthest), plane)[count, count]
    return low, high


# -------------------------------------------------------------------- matrices of any size


_WRITTEN_OUT = 7  # numbers fit into the cells up to this size
_LARGEST_EXPONENT = 300.0


def matrix(result: Release | ConfidenceRegion) -> canvas.Figure:
    """Draw a mean on SPD(k) as a heat map of its entries, beside its eigenvalues on a logarithmic scale.

    The bars about the eigenvalues hold all of them at once with 95 %, as far as noise goes: under both metrics a
    matrix at distance r has its logarithmic eigenvalues within r (Weyl's inequality).

    Parameters
    ----------
    result : release of a mean on SPD(k), or a region there, of which the mean is drawn

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.SPD(5), np.eye(5), 2.0)
    >>> release = dpm.private_mean([np.eye(5)] * 90, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> [axes.get_ylabel() for axes in matrix(release).axes]
    ['row', 'eigenvalue', '']
    """
    release = released_mean(result, "matrix")
    if release.ball.space.picture not in ("matrix", "tensors"):
        raise InvalidArgumentError(f"matrix draws SPD(k), got {release.ball.space!r}. Use show(result).")
    away = float(release.noise_quantile(NOISE_LEVEL))
    words = (
        f"the noise changes no eigenvalue by more than a factor {np.exp(min(away, _LARGEST_EXPONENT)):.3g} with 95 %"
    )
    if release.definition.besides_noise(release) is not None:
        words = spread_of(release, "matrix").sentence
    title = f"{word_for(release).capitalize()} matrix and its eigenvalues"
    figure = canvas.released(title, words, [parent_release(result)], 4.1)
    left, right = figure.subplots(1, 2, width_ratios=[1.12, 1])
    value = point_of(result)
    _heat_map(figure, left, value)
    _spectrum(right, np.linalg.eigvalsh(value)[::-1], away)
    return canvas.keyed(figure, right)


def _heat_map(figure: canvas.Figure, axes: canvas.Axes, values: FloatArray) -> None:
    # Diffusion tensors are of order 0.001: their power of ten is said once, over the picture.
    exponent = int(np.floor(np.log10(np.abs(values).max())))
    if not -1 <= exponent <= 2:
        values = values / 10.0**exponent
        canvas.caption(axes, f"entries in units of 1e{exponent}")
    k, largest = len(values), float(np.abs(values).max())
    shades = canvas.color_map(canvas.BLUE, "#FFFFFF", canvas.VERMILLION)
    image = axes.imshow(values, cmap=shades, vmin=-largest, vmax=largest, interpolation="nearest")
    if k <= _WRITTEN_OUT:
        decimals = 2 if largest < 10 else 0 if largest >= 100 else 1
        for (row, column), entry in np.ndenumerate(values):
            color = "white" if abs(entry) > 0.65 * largest else canvas.INK
            text = f"{round(entry, decimals) + 0.0:.{decimals}f}"
            axes.text(column, row, text, fontsize=7.5, ha="center", va="center", color=color)
    canvas.tidy(axes, "column", "row")
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    ticks = np.arange(k) if k <= 12 else np.unique(np.linspace(0, k - 1, 6).astype(int))
    axes.set_xticks(ticks, [str(t + 1) for t in ticks])
    axes.set_yticks(ticks, [str(t + 1) for t in ticks])
    bar = figure.colorbar(image, ax=axes, shrink=0.75, aspect=18, pad=0.03)
    bar.ax.tick_params(labelsize=7.5, width=0.6, length=2.5)
    bar.outline.set_visible(False)


def _spectrum(axes: canvas.Axes, values: FloatArray, away: float) -> None:
    k = len(values)
    rank = np.arange(1, k + 1)
    factor = np.exp(min(away, _LARGEST_EXPONENT))
    wide = 0.6
    low, high = values / factor, values * factor
    label = "noise, 95 %, all at once"
    axes.bar(rank, high - low, bottom=low, width=wide, color=canvas.NOISE, alpha=0.35, linewidth=0, label=label)
    axes.hlines(values, rank - wide / 2, rank + wide / 2, color=canvas.ESTIMATE, linewidth=1.6, label="released")
    axes.set_yscale("log")
    # A nearly constant spectrum still needs an axis with two labels on it.
    axes.set_ylim(float(low.min()) / 1.3, float(high.max()) * 1.3)
    axes.set_xlim(0.4, k + 0.6)
    if k <= 12:
        axes.set_xticks(rank)
    _few_ticks(axes)
    canvas.tidy(axes, "rank", "eigenvalue", grid="y")


def _few_ticks(axes: canvas.Axes) -> None:
    """Label a logarithmic axis also where it spans less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_ylim()
    subs = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high / low < 6 else (1.0, 2.0, 5.0) if high / low < 200 else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=subs, numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


# -------------------------------------------------------------------- products of spaces


# More factors than these are drawn without a number under each.
_MOST_LABELS = 20
_CHART = 2.2  # inches for the chart of distances


def product(result: Release) -> canvas.Figure:
    """Draw the factors of a mean on a product of spaces: how far each is from the centre's, against its noise.

    Factors that are 2 x 2 or 3 x 3 matrices are drawn as ellipses or ellipsoids too, in the order of the factors.

    Parameters
    ----------
    result : the release of a mean on a :class:`~dpmanifold.Product`

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> space = dpm.Product([dpm.SPD(3)] * 12)
    >>> ball = dpm.Ball(space, space.origin, 2.0)
    >>> release = dpm.private_mean([space.origin] * 50, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> product(release).texts[0].get_text()
    'Mean of 12 factors'
    """
    release = released_mean(result, "product")
    if release.ball.space.picture != "product":
        raise InvalidArgumentError(f"product draws means on a Product, got {release.ball.space!r}. Use show(result).")
    space = cast(Product, release.ball.space)
    away, noise = _distances(release, space)
    words = "how far each factor is from the centre's, in its own units, and what noise alone would do"
    drawn = None if release.raw is None else _away(release, space, release.raw)
    if drawn is not None:
        words = "how far each factor is from the centre's: drawn, and moved towards the centre, as released"
    tensors = space.factors[0].picture == "tensors" and len(set(space.factors)) == 1
    title = f"{word_for(release).capitalize()} of {len(space.factors)} factors"
    if not tensors or len(space.factors) > MOST_GLYPHS:
        figure = canvas.released(title, words, [release], 1.3 + _CHART)
        axes = figure.subplots()
    else:
        grid = as_grid(np.asarray(release.value))
        height = grid_height(*grid.shape[:2])
        figure = canvas.released(title, words, [release], height + _CHART)
        above, axes = figure.subplots(2, 1, gridspec_kw={"height_ratios": [height - 1.1, _CHART]})
        draw_grid(figure, above, grid)
        above.axis("off")
    _chart(axes, away, noise, drawn)
    return canvas.keyed(figure, axes)


def _away(release: Release, space: Product, point: Array) -> FloatArray:
    """Return each factor's distance from the centre's."""
    parts = zip(space.factors, space.split(release.ball.center), space.split(point), strict=True)
    return np.array([float(factor.dist(center, value)) for factor, center, value in parts])


def _distances(release: Release, space: Product) -> tuple[FloatArray, FloatArray | None]:
    """Return each factor's distance from the centre's, and its share of the noise's median length; None without a ball.

    Noise that has no direction of its own gives a factor with d_j of d dimensions d_j/d of its squared length; noise
    with a shape what its covariance says.
    """
    away = _away(release, space, release.value)
    if release.ball.is_whole:
        return away, None
    squares = np.ones(space.dim)
    if release.statistic == SHAPED.name:
        squares = np.diag(SHAPED.noise_covariance(release))
    ends = np.cumsum([factor.dim for factor in space.factors])
    own = np.array([part.sum() for part in np.split(squares, ends[:-1])])
    return away, float(release.noise_quantile(0.5)) * np.sqrt(own / squares.sum()) / np.asarray(space.weights)


def _chart(axes: canvas.Axes, away: FloatArray, noise: FloatArray | None, drawn: FloatArray | None) -> None:
    places = np.arange(len(away))
    released = "released" if drawn is None else "released: moved towards the centre"
    axes.vlines(places, 0, away, color=canvas.ESTIMATE, linewidth=1.0, alpha=0.5)
    axes.plot(places, away, "o", color=canvas.ESTIMATE, markersize=3.5, label=released)
    said = "typical length of the noise"
    if drawn is not None:
        axes.plot(places, drawn, "o", color=canvas.ESTIMATE, markersize=3.5, fillstyle="none", label="drawn (raw)")
        said += " on the draw"
    if noise is not None:
        axes.step(places, noise, where="mid", color=canvas.NOISE, linewidth=1.1, label=said)
    if len(places) <= _MOST_LABELS:
        axes.set_xticks(places)
    axes.set_ylim(bottom=0)
    canvas.tidy(axes, "factor", "distance from the centre", grid="y")
