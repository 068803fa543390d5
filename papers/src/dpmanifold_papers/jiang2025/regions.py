"""Fig. 3 of Jiang, Chang and Hu (2025): 95 % ellipses in the tangent plane, private and not, as mu grows."""

from __future__ import annotations

import math
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import not_private
from dpmanifold.plots.spread import ellipse
from dpmanifold.privacy import GDP
from dpmanifold.stats import EACH_RECORD, private_region
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Sample, Task, group
from dpmanifold_papers.jiang2025.populations import UNITS, sphere_data
from dpmanifold_papers.jiang2025.published import Published

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MU = (0.1, 0.2, 0.3, 0.5, 1.0, 2.5)
PLAIN, THEIRS, OURS = "non-DP", "theirs", "ours"
_STYLE = {
    PLAIN: (canvas.VERMILLION, "^", "not private"),
    THEIRS: (canvas.PURPLE, "s", "private, their formula"),
    OURS: (canvas.BLUE, "o", "private, ours"),
}


class Regions(Experiment):
    """Regions on one data set for every mu, drawn, and their areas over many."""

    name = "jiang2025/regions"
    title = "Fig. 3: 95 % regions in the tangent plane of S^2, as mu grows"

    def tasks(self, quick: bool) -> list[Task]:
        """Return chunks of data sets; the first data set is the one that is drawn."""
        count, chunk = (2, 1) if quick else (60, 5)
        return [Task({"first": i, "repetitions": chunk}, weight=chunk) for i in range(0, count, chunk)]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Make the regions without privacy, theirs and ours."""
        rng = task.generator(self.name)
        rows: list[Row] = []
        first = task.settings["first"]
        for repetition in range(first, first + task.settings["repetitions"]):
            X, ball = sphere_data(UNITS, rng)
            sample, frame = Published.of(X, ball), ball.frame
            plain = sample.region(math.inf, rng)
            for mu in MU:
                theirs = sample.region(mu, rng)
                ours = private_region(X, ball, GDP(mu), units=EACH_RECORD, confirm=True, rng=rng)
                at = ball.into_frame(ours.center[None])[0]
                shapes = {
                    PLAIN: (plain.bound * plain.at_mean, frame.log_coords(plain.mean, frame.origin)),
                    THEIRS: (theirs.bound * theirs.at_mean, frame.log_coords(theirs.mean, frame.origin)),
                    OURS: (ours.threshold * ours.covariance, frame.log_coords(at, frame.origin)),
                }
                rows += [_row(repetition, mu, who, *shape) for who, shape in shapes.items()]
        return rows

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return areas, and those of private regions over those without privacy."""
        lines = []
        for (mu,), mine in group(rows, "mu").items():
            area = {who: np.array([row["area"] for row in part]) for (who,), part in group(mine, "who").items()}
            lines.append([
                f"{mu:g}", *(str(Sample((1e4 * area[who]).tolist())) for who in (PLAIN, THEIRS, OURS)),
                *(str(Sample((area[who] / area[PLAIN]).tolist())) for who in (THEIRS, OURS)),
            ])  # fmt: skip
        count = len(rows) // (3 * len(lines))
        headings = ["mu", "not private", "their formula", "ours", "theirs / not private", "ours / not private"]
        return [ResultTable(headings, lines, f"Area of the 95 % region, 1e-4; n = {UNITS}, {count} data sets")]

    def figure(self, rows: list[Row]) -> Figure:
        """Draw the first data set's regions, one panel for each mu."""
        figure = canvas.new_figure(
            "95 % regions for a mean direction", "each in the tangent plane of its own estimate; marks: the true mean",
            not_private("seeded simulation"), [f"n = {UNITS}, uniform in a ball of radius pi/8 of S^2."], 5.2,
        )  # fmt: skip
        panels = figure.subplots(2, 3, sharex="row", sharey="row").ravel()
        shown = group([row for row in rows if row["repetition"] == 0], "mu")
        for axes, ((mu,), mine) in zip(panels, shown.items(), strict=True):
            for row in mine:
                _draw(axes, row)
            axes.set_aspect("equal")
            canvas.caption(axes, f"mu = {mu:g}")
            canvas.tidy(axes, "distance", "distance", grid="both")
            axes.locator_params(axis="x", nbins=3)
        return canvas.keyed(figure, *panels)


def _row(repetition: int, mu: float, who: str, shape: FloatArray, truth: FloatArray) -> Row:
    return {
        "repetition": repetition, "mu": mu, "who": who, "s11": float(shape[0, 0]), "s12": float(shape[0, 1]),
        "s22": float(shape[1, 1]), "x": float(truth[0]), "y": float(truth[1]),
        "area": math.pi * math.sqrt(float(np.linalg.det(shape))),
    }  # fmt: skip


def _draw(axes: Axes, row: Row) -> None:
    color, marker, label = _STYLE[row["who"]]
    shape = np.array([[row["s11"], row["s12"]], [row["s12"], row["s22"]]])
    axes.plot(*ellipse(shape).T, color=color, linewidth=1.3, label=label)
    axes.plot(row["x"], row["y"], marker, color=color, markersize=4)
