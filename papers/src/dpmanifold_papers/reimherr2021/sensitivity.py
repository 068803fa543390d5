"""How far one record moves a mean: what random replacements do, what an adversary does, and the bounds."""

from __future__ import annotations

import math
import pathlib
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold import frechet, sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.plots import canvas
from dpmanifold_papers import simulation as sim
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Sample, Task, group

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 500)
QUICK_SIZES = (20, 100)
DATA_SETS, REPLACED = 50, 10
"""Data sets for each n, and how often one record of each is replaced (the authors' code: one, and 30 or 100)."""


class _Sensitivity(Experiment):
    """Shifts of the mean for replaced records, and bounds."""

    ball: Ball

    @abstractmethod
    def _records(self, repetitions: int, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw data sets."""

    @abstractmethod
    def _worst(self, n: int) -> tuple[Array, Array]:
        """Return two neighbouring data sets made to move the mean far."""

    @abstractmethod
    def _drawn_bound(self, n: int) -> tuple[float, str]:
        """Return the bound that the authors' code draws, and its formula."""

    def tasks(self, quick: bool) -> list[Task]:
        """One task for each n."""
        sizes = QUICK_SIZES if quick else SIZES
        return [Task({"n": n, "sets": 5 if quick else DATA_SETS, "replaced": 5 if quick else REPLACED}, n)
                for n in sizes]  # fmt: skip

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Replace the last record of some data sets, many times each."""
        rng = task.generator(self.name)
        n, sets, replaced = (task.settings[name] for name in ("n", "sets", "replaced"))
        X = np.repeat(self._records(sets, n, rng)[:, None], replaced + 1, axis=1)
        X[:, 1:, -1] = self._records(sets * replaced, 1, rng).reshape(sets, replaced, *self.ball.space.shape)
        means = sim.means_of(self.ball, X.reshape(-1, *X.shape[2:])).reshape(sets, replaced + 1, *X.shape[3:])
        shifts = self.ball.space.dist(means[:, :1], means[:, 1:])
        rows: list[Row] = [
            {"n": n, "kind": "replaced", "set": number, "shift": float(shift)}
            for number in range(sets)
            for shift in shifts[number]
        ]
        first, second = (frechet.mean(X, self.ball).value for X in self._worst(n))
        rows.append({"n": n, "kind": "worst", "shift": float(self.ball.space.dist(first, second))})
        for bound in ("published", "sharp"):
            found = sensitivity.of_mean(self.ball, n, bound=bound).value
            rows.append({"n": n, "kind": bound, "shift": found})
        rows.append({"n": n, "kind": "drawn", "shift": self._drawn_bound(n)[0]})
        return rows

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Everything times n, so that lines can be compared."""
        lines = []
        for (n,), mine in group(rows, "n").items():
            by = {kind: [n * row["shift"] for row in found] for (kind,), found in group(mine, "kind").items()}
            # Shifts of one data set go together: the error is that of the data sets' averages.
            sets = group((row for row in mine if row["kind"] == "replaced"), "set").values()
            average = Sample([float(np.mean([n * row["shift"] for row in found])) for found in sets])
            lines.append([
                str(n), str(average), f"{max(by['replaced']):.3f}", f"{by['worst'][0]:.4f}",
                f"{by['drawn'][0]:.4f}", f"{by['published'][0]:.4f}", f"{by['sharp'][0]:.4f}",
            ])  # fmt: skip
        headings = [
            "n", "replaced records, mean", "replaced, largest", "two data sets made for it",
            f"bound drawn by the authors' code, {self._drawn_bound(1)[1]}", "their Theorem 2", "our bound",
        ]  # fmt: skip
        return [ResultTable(headings, lines, "n times the distance between the means of neighbouring data sets")]

    def figure(self, rows: list[Row]) -> Figure:
        """Points, their average and the bounds, on a logarithmic axis."""
        title = f"Sensitivity of the Fréchet mean on {'SPD(2)' if self.ball is sim.MATRICES else 'S^2'}"
        said = f"Radius {self.ball.radius:.4g}; one record replaced, at random or between two data sets made for it."
        figure = sim.sheet(title, "", [said])
        axes = figure.subplots()
        by = group(rows, "kind")
        axes.plot([r["n"] for r in by["replaced",]], [r["shift"] for r in by["replaced",]], ".", color=canvas.SKY,
                  markersize=1.5, label="a replaced record", rasterized=True)  # fmt: skip
        by_n = group(by["replaced",], "n")
        axes.plot([n for (n,) in by_n], [Sample([r["shift"] for r in found]).mean for found in by_n.values()],
                  color=canvas.BLUE, linewidth=1.3, label="their average")  # fmt: skip
        lines = (("worst", canvas.BLACK, ":", "data made for it"), ("published", canvas.VERMILLION, "-", "Theorem 2"),
                 ("drawn", canvas.ORANGE, "-.", "bound in the authors' code"),
                 ("sharp", canvas.GREEN, "--", "our bound"))  # fmt: skip
        for kind, color, style, label in lines:
            axes.plot([r["n"] for r in by[kind,]], [r["shift"] for r in by[kind,]], style, color=color, linewidth=1.3,
                      label=label)  # fmt: skip
        axes.set_yscale("log")
        axes.set_ylim(bottom=min(r["shift"] for r in by["sharp",]) / 100)
        canvas.tidy(axes, "sample size n", "distance between the two means", grid="y")
        return canvas.keyed(figure, axes)


class SphereSensitivity(_Sensitivity):
    """Third panel of their Figure 1."""

    name = "reimherr2021/sphere-sensitivity"
    title = "How far one record moves the mean on the sphere"
    ball = sim.CAP

    def _records(self, repetitions: int, n: int, rng: np.random.Generator) -> FloatArray:
        return sim.polar_records(repetitions, n, rng)

    def _worst(self, n: int) -> tuple[Array, Array]:
        return sphere_neighbours(n)

    def _drawn_bound(self, n: int) -> tuple[float, str]:
        return math.tan(2 * self.ball.radius) / n, "tan(2r)/n"


class SPDSensitivity(_Sensitivity):
    """First panel of their Figure 1."""

    name = "reimherr2021/spd-sensitivity"
    title = "How far one record moves the mean of SPD matrices"
    ball = sim.MATRICES

    def _records(self, repetitions: int, n: int, rng: np.random.Generator) -> FloatArray:
        return sim.wishart_records(repetitions, n, rng)

    def _worst(self, n: int) -> tuple[Array, Array]:
        return matrix_neighbours(n)

    def _drawn_bound(self, n: int) -> tuple[float, str]:
        return 2 * self.ball.radius / n, "2r/n"


def sphere_neighbours(n: int) -> tuple[Array, Array]:
    """Return neighbouring data sets on the cap whose means are about 2 tan(r)/n apart.

    The records sit half and half at two opposite points of the edge, where they hold the mean least against a move
    across; one record jumps between the two edge points in between. At the centre the Hessian across is r cot r.

    Examples
    --------
    >>> first, second = sphere_neighbours(201)
    >>> shift = sim.CAP.space.dist(frechet.mean(first, sim.CAP).value, frechet.mean(second, sim.CAP).value)
    >>> bool(abs(201 * shift / (2 * math.tan(sim.CAP.radius)) - 1) < 0.01)
    True
    """
    space, r = sim.CAP.space, sim.CAP.radius * (1 - 1e-12)
    c = np.zeros((n, 2))
    c[:, 0] = np.where(np.arange(n) % 2 == 0, r, -r)
    c[-1] = 0.0, r
    d = c.copy()
    d[-1] = 0.0, -r
    return space.exp_coords(space.origin, c), space.exp_coords(space.origin, d)


def matrix_neighbours(n: int) -> tuple[Array, Array]:
    """Return neighbouring data sets on SPD(2) whose means are exactly 2r/n apart: all on one geodesic.

    Examples
    --------
    >>> first, second = matrix_neighbours(30)
    >>> shift = sim.MATRICES.space.dist(*(frechet.mean(X, sim.MATRICES).value for X in (first, second)))
    >>> round(30 * float(shift), 9)
    3.0
    """
    r = sim.MATRICES.radius * (1 - 1e-12) / math.sqrt(2)
    first = np.tile(np.eye(2), (n, 1, 1))
    second = first.copy()
    first[-1], second[-1] = np.diag(np.exp([r, -r])), np.diag(np.exp([-r, r]))
    return first, second
