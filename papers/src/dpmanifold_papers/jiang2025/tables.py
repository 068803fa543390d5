"""Tables 1 to 4 of Jiang, Chang and Hu (2025): distance from the truth and coverage, by mu."""

from __future__ import annotations

import math
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.manifolds import Sphere
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import not_private
from dpmanifold.privacy import tightest_mu
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Sample, Task, group
from dpmanifold_papers.jiang2025 import predict, printed
from dpmanifold_papers.jiang2025.populations import DATA, UNITS, facts
from dpmanifold_papers.jiang2025.published import (
    Published,
    interval_row,
    our_interval_row,
    our_region_row,
    region_row,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLAIN = "non-DP"
REPETITIONS, CHUNK = 400, 10
_QUICK_MU, _QUICK_REPETITIONS, _QUICK_CHUNK = (0.1, 1.0), 6, 3
_SPACES = {"sphere": "S^2", "spd": "SPD(2)"}
_TICKS = (10, 20, 50, 100, 200, 500)
_COVERED, _WIDTH, _DISTANCE = "covered", "width", "distance"


class Coverage(Experiment):
    """Coverage and mean distance on one of the two populations; the same data sets for every mu.

    Parameters
    ----------
    number : of their table
    space : "sphere" or "spd"
    what : "mean" or "variance"
    """

    def __init__(self, number: int, space: str, what: str) -> None:
        self.number, self.space, self.what = number, space, what
        self.name = f"jiang2025/table{number}"
        self.title = f"Table {number}: the Fréchet {what} on {_SPACES[space]}, coverage and distance from the truth"

    def tasks(self, quick: bool) -> list[Task]:
        """Return chunks of repetitions."""
        mus = list(_QUICK_MU if quick else printed.MU)
        count, chunk = (_QUICK_REPETITIONS, _QUICK_CHUNK) if quick else (REPETITIONS, CHUNK)
        return [Task({"first": i, "repetitions": chunk, "mu": mus}, weight=chunk) for i in range(0, count, chunk)]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Draw data sets; for each mu make their region or interval, and ours."""
        rng, other = task.generator(self.name), task.generator(f"{self.name}, R = r")
        first = task.settings["first"]
        rows: list[Row] = []
        for repetition in range(first, first + task.settings["repetitions"]):
            X, ball = DATA[self.space](UNITS, rng)
            sample = Published.of(X, ball)
            for mu in (*task.settings["mu"], math.inf):
                theirs = self._theirs(sample, mu, rng)
                row: Row = {"repetition": repetition, "mu": mu if math.isfinite(mu) else PLAIN}
                row |= _named("theirs", theirs)
                if math.isfinite(mu):
                    row |= _named("ours", self._ours(X, ball, mu, rng))
                    if self.what == "mean":
                        row |= _named("narrow", region_row(sample, mu, other, reach=1.0))
                rows.append(row)
        return rows

    def _theirs(self, sample: Published, mu: float, rng: np.random.Generator) -> tuple[float, float, float]:
        if self.what == "mean":
            return region_row(sample, mu, rng)
        return interval_row(sample, mu, facts(self.space).variance, rng)

    def _ours(self, X: Array, ball: Ball, mu: float, rng: np.random.Generator) -> tuple[float, float, float]:
        if self.what == "mean":
            return our_region_row(X, ball, mu, rng)
        return our_interval_row(X, ball, mu, facts(self.space).variance, rng)

    # ---------------------------------------------------------------- tables

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return distances and coverage, then what the printed distances stand for."""
        tables = [self._main(rows), self._widths(rows)]
        if self.what == "mean":
            tables += [self._implied(), self._candidates()]
        if self.number == 1:
            tables.append(_exact_mu())
        return tables

    @property
    def unit(self) -> float:
        """The unit that the printed distances are in, corrected."""
        return printed.MEANT_UNIT[self.space, self.what]

    def _main(self, rows: list[Row]) -> ResultTable:
        key, unit = (self.space, self.what), self.unit
        lines = []
        for (mu,), mine in group(rows, "mu").items():
            at = printed.MU.index(mu) if mu != PLAIN else -1
            number = math.inf if mu == PLAIN else mu
            narrow = [_sample(mine, f"narrow_{_COVERED}")] if self.what == "mean" else []
            lines.append([
                _mu(mu), f"{printed.DISTANCE[key][at]:g}", f"{predict.distance_at(*key, number) / unit:.1f}",
                _sample(mine, f"theirs_{_DISTANCE}", unit), _sample(mine, f"ours_{_DISTANCE}", unit),
                f"{printed.PAPER[key][at]:.3f}", _sample(mine, f"theirs_{_COVERED}"), *narrow,
                _sample(mine, f"ours_{_COVERED}"),
            ])  # fmt: skip
        count = len(rows) // len(lines)
        headings = ["mu", "MD, paper", "MD, their formula, by hand", "MD, their formula", "MD, ours",
                    "coverage, paper", "coverage, their formula",
                    *(["coverage, their formula, R = r"] if self.what == "mean" else []), "coverage, ours"]  # fmt: skip
        off = "" if unit == printed.PRINTED_UNIT[key] else f" (the paper prints {printed.PRINTED_UNIT[key]:g})"
        caption = (
            f"Mean distance MD in units of {unit:g}{off}, coverage at 95 %; n = {UNITS}, {count} repetitions, "
            f"± Monte Carlo error; the paper's is {self._paper_error():.1%} of its MD and 0.007 of its coverage"
        )
        return ResultTable(headings, lines, caption)

    def _paper_error(self) -> float:
        # A mean length of d = 2, 3 or 1 normal entries, over 1000 repetitions.
        flat = [1.0] * (facts(self.space).dim if self.what == "mean" else 1)
        return predict.length_error(flat) / predict.expected_length(flat)

    def _widths(self, rows: list[Row]) -> ResultTable:
        lines = []
        for (mu,), mine in group(rows, "mu").items():
            if mu == PLAIN:
                lines.append([PLAIN, _sample(mine, f"theirs_{_WIDTH}", self.unit), "", ""])
                continue
            theirs, ours = ([row[f"{who}_{_WIDTH}"] for row in mine] for who in ("theirs", "ours"))
            ratio = Sample([a / b for a, b in zip(ours, theirs, strict=True)])
            lines.append([
                _mu(mu), _sample(mine, f"theirs_{_WIDTH}", self.unit), _sample(mine, f"ours_{_WIDTH}", self.unit),
                str(ratio),
            ])  # fmt: skip
        size = "effective radius of the region" if self.what == "mean" else "half width of the interval"
        return ResultTable(
            ["mu", "their formula", "ours", "ours / theirs, on the same data"], lines,
            f"Mean {size} in units of {self.unit:g}: what the promise leaves to be said (the paper prints none)",
        )  # fmt: skip

    def _implied(self) -> ResultTable:
        stated = math.sqrt(3) * predict.published_sensitivity(self.space)
        headings = ["mu", "MD, paper", "n mu sigma it implies"]
        plain = self.space == "spd"
        headings += ["the same if plain entries are meant"] if plain else []
        headings += ["n mu sigma as stated"]
        lines = []
        for mu, value in zip(printed.MU, printed.DISTANCE[self.space, "mean"], strict=False):
            line = [_mu(mu), f"{value:g}", _implied(self.space, value * self.unit, mu, False)]
            line += [_implied(self.space, value * self.unit, mu, True)] if plain else []
            lines.append([*line, f"{stated:.3f}"])
        return ResultTable(
            headings, lines,
            "The noise sigma that a printed MD stands for, its Monte Carlo error, and Delta sqrt(3)/mu as stated",
        )  # fmt: skip

    def _candidates(self) -> ResultTable:
        lines = [
            [what, f"{factor:.3f}", f"{predict.misfit(self.space, factor, plain):.1f}"]
            for what, (factor, plain) in predict.calibrations(self.space).items()
        ]
        return ResultTable(
            ["calibration", "n mu sigma", "chi-square of the nine printed MD"], lines,
            "Which calibration the printed MD fit: chi-square is about 9 where one fits, and below 22 in 99 % of cases",
        )  # fmt: skip

    # ---------------------------------------------------------------- figure

    def figure(self, rows: list[Row]) -> Figure:
        """Draw distance and coverage by mu: printed, their formula and ours."""
        count = len(rows) // len(group(rows, "mu"))
        figure = canvas.new_figure(
            f"The Fréchet {self.what} on {_SPACES[self.space]}",
            f"n = {UNITS}, {count} repetitions; bars: 2 standard errors",
            not_private("seeded simulation"),
            [f"Jiang, Chang and Hu (2025), Table {self.number}, made again."],
            3.9,
        )
        left, right = figure.subplots(1, 2)
        self._draw(left, rows, _DISTANCE, np.array(printed.DISTANCE[self.space, self.what]), self.unit)
        self._draw(right, rows, _COVERED, np.array(printed.PAPER[self.space, self.what]), 1.0)
        grid = np.geomspace(0.09, 2.7, 60)
        curve = [predict.distance_at(self.space, self.what, mu) / self.unit for mu in grid]
        left.plot(grid, curve, color=canvas.VERMILLION, linewidth=1, label="their formula, by hand")
        left.axhline(
            predict.distance_at(self.space, self.what, math.inf) / self.unit, color=canvas.GREY, linewidth=1,
            linestyle=":", label="sampling alone",
        )  # fmt: skip
        left.set_yscale("log")
        low, high = left.get_ylim()
        ticks = [tick for tick in _TICKS if low <= tick <= high]
        left.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        left.minorticks_off()
        right.axhline(0.95, color=canvas.GREY, linewidth=1)
        right.set_ylim(min(0.88, right.get_ylim()[0]), 1.0)
        canvas.caption(left, "mean distance from the truth")
        canvas.caption(right, "coverage of 95 % regions" if self.what == "mean" else "coverage of 95 % intervals")
        canvas.tidy(left, "mu", f"mean distance / {self.unit:g}", grid="both")
        canvas.tidy(right, "mu", "coverage", grid="both")
        return canvas.keyed(figure, left, right)

    def _draw(self, axes: Axes, rows: list[Row], number: str, paper: FloatArray, unit: float) -> None:
        axes.set_xscale("log")
        axes.set_xticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
        axes.minorticks_off()
        axes.plot(printed.MU, paper[:-1], "x", color=canvas.BLACK, markersize=5, label="printed", zorder=4)
        private = group([row for row in rows if row["mu"] != PLAIN], "mu")
        for who, color, shift in (("theirs", canvas.VERMILLION, 0.97), ("ours", canvas.BLUE, 1.03)):
            found = [Sample([row[f"{who}_{number}"] / unit for row in mine]) for mine in private.values()]
            axes.errorbar(
                [mu * shift for (mu,) in private], [x.mean for x in found], [2 * x.error for x in found], fmt="o",
                color=color, markersize=3, linewidth=1, label="their formula" if who == "theirs" else "ours",
            )  # fmt: skip


def _named(who: str, row: tuple[float, float, float]) -> Row:
    return {f"{who}_{name}": value for name, value in zip((_COVERED, _WIDTH, _DISTANCE), row, strict=True)}


def _mu(mu: float | str) -> str:
    return mu if isinstance(mu, str) else f"{mu:g}"


def _sample(rows: list[Row], name: str, unit: float = 1.0) -> str:
    values = [row[name] / unit for row in rows if name in row]
    return str(Sample(values)) if values else ""


def _implied(space: str, value: float, mu: float, plain: bool) -> str:
    noise, error = predict.implied_noise(space, value, mu, plain)
    return f"{noise:.3f} ± {error:.3f}" if math.isfinite(error) else "less than sampling alone"


def _exact_mu() -> ResultTable:
    """Return mu*: what the Riemannian Gaussian keeps exactly at Delta/mu."""
    distance = predict.published_sensitivity("sphere") / UNITS
    lines = []
    for mu, paper in zip(printed.MU, printed.EXACT_MU, strict=True):
        sigma = distance / mu
        exact = tightest_mu(Sphere(2), "gaussian", sigma, distance)
        lines.append([
            _mu(mu), f"{paper:.3f}", f"{exact:.6f}", f"{predict.attained_mu(sigma, distance):.6f}",
            f"{predict.expanded_mu(sigma, distance):.6f}", f"{sigma:.4f}",
        ])  # fmt: skip
    headings = ["mu", "mu*, paper", "mu*, certified", "mu that a test attains", "mu(1 - sigma^2/6)", "sigma"]
    return ResultTable(headings, lines, "The exact mu* of noise of scale sigma = Delta/mu: at most the certified one, "
                       "at least what a test attains")  # fmt: skip


TABLES = (
    Coverage(1, "sphere", "mean"),
    Coverage(2, "sphere", "variance"),
    Coverage(3, "spd", "mean"),
    Coverage(4, "spd", "variance"),
)
