"""Sheets for the figures of this paper's experiments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import Mark, not_private
from dpmanifold_papers.framework import Row, group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The same line for the same thing in every figure: colour and dashes both, so that either is enough.
LINES: dict[str, tuple[str, str]] = {
    "Laplace": (canvas.VERMILLION, "-"),
    "Laplace, twice the scale": (canvas.ORANGE, "--"),
    "tangent Gaussian, classical": (canvas.PURPLE, "-."),
    "tangent Gaussian, analytic": (canvas.SKY, "-"),
    "ours": (canvas.BLUE, "-"),
    "ours, pure": (canvas.GREEN, "--"),
    "answering with the centre": (canvas.GREY, ":"),
}


def sheet(title: str, subtitle: str, footer: str, height: float, mark: Mark | None = None) -> Figure:
    """Return an empty sheet, stamped: what is drawn comes from seeded draws, unless another mark is given."""
    return canvas.new_figure(title, subtitle, mark or not_private("seeded"), [footer], height)


def panels(figure: Figure, rows: int, columns: int, **options: Any) -> list[Axes]:
    """Return axes, row by row."""
    made = figure.subplots(rows, columns, squeeze=False, **options)
    return [axes for line in made for axes in line]


def curve(axes: Axes, rows: Iterable[Row], x: str, y: str, label: str, color: str, style: str) -> None:
    """Draw the mean of `y` over rows against `x`, with a band of two standard errors."""
    places, middle, low, high = [], [], [], []
    for (place,), some in group(rows, x).items():
        values = np.array([row[y] for row in some], dtype=float)
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
        places.append(place)
        middle.append(values.mean())
        low.append(values.mean() - 2 * error)
        high.append(values.mean() + 2 * error)
    if places:
        axes.plot(places, middle, color=color, linestyle=style, linewidth=1.5, marker="o", markersize=2.6, label=label)
        axes.fill_between(places, low, high, color=color, alpha=0.2, linewidth=0)


def log_panel(axes: Axes, heading: str, x: str, y: str, ticks: Sequence[float] | None = None) -> None:
    """Finish a panel with a logarithmic y axis."""
    axes.set_yscale("log")
    if ticks is not None:
        axes.set_xticks(list(ticks))
    canvas.tidy(axes, x, y, grid="y")
    canvas.caption(axes, heading)
