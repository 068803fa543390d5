"""How large the ball of all descriptors is beside the descriptors that there are."""

from __future__ import annotations

import math
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.data import descriptor_ball
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import PUBLIC_DATA
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Task, group
from dpmanifold_papers.utpala2023.drawing import panels, sheet
from dpmanifold_papers.utpala2023.sources import (
    ETA,
    EXPECTED,
    SETS,
    absent_note,
    class_descriptors,
    missing_row,
    split_missing,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ETAS = (1e-6, 1e-4, 1e-3)
BLANK = "a blank image"


def blank_eigenvalues(kind: int, eta: float, side: int = 28) -> FloatArray:
    """Return the eigenvalues of a blank image's descriptor: only the positions vary.

    Examples
    --------
    >>> blank_eigenvalues(9, 1e-6).round(4)[-3:]
    array([0.    , 0.0895, 0.0895])
    """
    values = np.full(kind, eta)
    values[-2:] += (side + 1) / (12 * (side - 1))
    return values


def radius_rows(values: FloatArray) -> list[Row]:
    """Return, for both balls and every eta, the radius and the largest and the median distance from its centre.

    Descriptors differ by a multiple of I as eta does, and the centres are multiples of I: eigenvalues (n, k) of the
    covariances, without eta, are all that matters.
    """
    kind = values.shape[-1]
    rows: list[Row] = []
    for eta in ETAS:
        for bound in ("published", "tight"):
            ball = descriptor_ball(kind, eta, bound)
            away = np.linalg.norm(np.log((values + eta) / ball.center[0, 0]), axis=-1)
            rows.append(
                {
                    "eta": eta, "bound": bound, "radius": ball.radius, "largest": float(away.max()),
                    "median": float(np.median(away)),
                }
            )  # fmt: skip
    return rows


class Bound(Experiment):
    """Their Figure 4 (c)."""

    name = "utpala2023/bound"
    title = "The radius bound against the largest radius seen"
    needs = tuple(SETS[name].asked_for for name in EXPECTED)

    def tasks(self, quick: bool) -> list[Task]:
        """Return one task per class."""
        most = 1500 if quick else None
        classes = [(one.name, label) for one in SETS.values() for label in range(1 if quick else one.classes)]
        return [Task({"dataset": name, "class": label, "most": most}) for name, label in classes]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Look at every descriptor of one class."""
        settings = task.settings
        X = class_descriptors(settings["dataset"], settings["class"], settings["most"], data)
        if X is None:
            return [missing_row(settings["dataset"])]
        common = {"dataset": settings["dataset"], "class": settings["class"], "n": len(X)}
        # Subtracting eta may leave rounding below 0.
        values = np.maximum(np.linalg.eigvalsh(X) - ETA, 0.0)
        return [common | row for row in radius_rows(values)]

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return ratios for every class, and what a blank image gives."""
        found, absent = split_missing(rows)
        body = []
        for (name, label), mine in group(found, "dataset", "class").items():
            body.append([f"{name} {label}", str(mine[0]["n"]), *_ratios(mine)])
        for kind, word in ((9, "gray"), (11, "RGB")):
            blank = radius_rows(blank_eigenvalues(kind, 0.0)[None])
            body.append([f"{BLANK}, {word}, 28 x 28", "1", *_ratios(blank)])
        headings = ["images", "N", "paper", "published radius", "largest seen", "ratio", "our radius",
                    "largest seen", "ratio", "ours/published",
                    *(f"ours at eta = {eta:g} (ratio)" for eta in ETAS[1:])]  # fmt: skip
        caption = "Radius of the public ball over the largest distance from its centre, eta = 1e-6" + absent_note(
            absent
        )
        return [ResultTable(headings, body, caption)]

    def figure(self, rows: list[Row]) -> Figure:
        """Return the ratios as bars, class by class."""
        found, _ = split_missing(rows)
        figure = sheet(
            "Radius bound over the largest radius seen", "1 would be sharp", f"eta = {ETA:g}.", 4.2, PUBLIC_DATA
        )
        axes = panels(figure, 1, 1)[0]
        names = [f"{name} {label}" for name, label in group(found, "dataset", "class")]
        for shift, bound, color, words in (
            (-0.2, "published", canvas.VERMILLION, "published ball, about I"),
            (0.2, "tight", canvas.BLUE, "our public ball, about c I"),
        ):
            mine = [row for row in found if row["bound"] == bound and row["eta"] == ETA]
            heights = [row["radius"] / row["largest"] for row in mine]
            axes.bar(np.arange(len(mine)) + shift, heights, width=0.38, color=color, label=words)
        axes.axhline(1.0, color=canvas.INK, linewidth=0.8, linestyle=":")
        axes.set_xticks(range(len(names)), names)
        canvas.tidy(axes, "", "bound / largest seen", grid="y")
        axes.tick_params(axis="x", labelsize=7, labelrotation=35)
        for text in axes.get_xticklabels():
            text.set_horizontalalignment("right")
        return canvas.keyed(figure, axes)


def _ratios(rows: list[Row]) -> list[str]:
    found = {(row["eta"], row["bound"]): row for row in rows}
    cells = ["tight"]
    for bound in ("published", "tight"):
        row = found[ETA, bound]
        cells += [f"{row['radius']:.2f}", f"{row['largest']:.2f}", f"{row['radius'] / row['largest']:.3f}"]
    cells.append(f"{found[ETA, 'tight']['radius'] / found[ETA, 'published']['radius']:.3f}")
    for eta in ETAS[1:]:
        row = found[eta, "tight"]
        cells.append(f"{row['radius']:.2f} ({row['radius'] / row['largest']:.3f})")
    return cells


def blank_radius(kind: int = 9, eta: float = ETA) -> float:
    """Return how far a blank image is from I: no ball about I can be smaller.

    Examples
    --------
    >>> round(blank_radius(), 1)
    36.7
    """
    return math.sqrt(float((np.log(blank_eigenvalues(kind, eta)) ** 2).sum()))
