"""Positive definite 2 x 2 and 3 x 3 matrices as ellipses and ellipsoids: half axes are roots of eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray, numeric_array, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.manifolds import SPD, Manifold
from dpmanifold.plots import canvas
from dpmanifold.plots.marks import PUBLIC_DATA
from dpmanifold.plots.projection import Camera
from dpmanifold.plots.spread import ellipse, released_mean
from dpmanifold.plots.tensor_mean import draw_mean
from dpmanifold.release import Release

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
    camera = Camera.towards(np.array([0.5, -1.0, 0.45]))
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
