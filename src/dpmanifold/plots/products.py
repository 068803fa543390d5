"""Products of spaces: every factor of a mean beside the others."""

from __future__ import annotations

from typing import cast

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Product
from dpmanifold.plots import canvas
from dpmanifold.plots.glyphs import MOST_GLYPHS, as_grid, draw_grid, grid_height
from dpmanifold.plots.spread import released_mean, word_for
from dpmanifold.release import Release
from dpmanifold.stats.shaped import SHAPED

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
