"""A released matrix of any size: its entries, and its eigenvalues with what the noise can do to them."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.plots import canvas
from dpmanifold.plots.spread import NOISE_LEVEL, parent_release, point_of, released_mean, spread_of, word_for
from dpmanifold.release import Release

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
