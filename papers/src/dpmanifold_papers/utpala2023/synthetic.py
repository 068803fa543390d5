"""Simulated matrices: Laplace against tangent Gaussian as the matrices grow, and as delta shrinks."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.plots import canvas
from dpmanifold.stats.curator import Told
from dpmanifold.stats.inputs import EACH_RECORD, prepare_records
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Sample, Task, group
from dpmanifold_papers.utpala2023.drawing import LINES, curve, log_panel, panels, sheet
from dpmanifold_papers.utpala2023.settings import (
    ANALYTIC,
    CLASSICAL,
    DELTA,
    EPSILONS,
    LAPLACE,
    LAPLACE_TWICE,
    OURS,
    OURS_PURE,
    SIZES,
    UNITS,
    Case,
    gap,
    simulated_ball,
    simulated_matrices,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CENTER = "answering with the centre"
CLAIMED_DELTAS = (1e-7, 1e-8, 1e-9)
"""Those over which the paper finds its error not significantly impacted."""
FROM = f"over delta = {CLAIMED_DELTAS[0]:g}"


def simulated_mean(k: int, rng: np.random.Generator) -> tuple[Ball, Array]:
    """Draw a data set; return its ball and its mean in the ball's frame, as a release computes them."""
    ball = simulated_ball(k)
    points = prepare_records(simulated_matrices(k, UNITS, rng), ball, EACH_RECORD, "raise", Told(confirm=True))[0]
    return ball, points.mean()


class _Simulated(Experiment):
    """Tasks are sets of data sets of one size; every row is one data set, and the mean over draws about its mean."""

    cases: Sequence[Case]
    deltas: Sequence[float]

    def tasks(self, quick: bool) -> list[Task]:
        """Return four tasks per size, one if quick."""
        sizes: Sequence[int] = (2, 10, 30) if quick else SIZES
        blocks, sets, draws = (1, 2, 50) if quick else (4, 6, 100)
        return [
            Task({"k": k, "block": block, "sets": sets, "draws": draws}, weight=1 + k * k / 40)
            for k in sizes
            for block in range(blocks)
        ]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Draw data sets, and noise about their means."""
        rng = task.generator(self.name)
        settings = task.settings
        rows: list[Row] = []
        for number in range(settings["sets"]):
            ball, mean = simulated_mean(settings["k"], rng)
            common = {"k": settings["k"], "set": settings["block"] * settings["sets"] + number}
            for epsilon in EPSILONS:
                rows += [common | row for row in self.measure(ball, mean, epsilon, settings["draws"], rng)]
        return rows

    def measure(self, ball: Ball, mean: Array, epsilon: float, draws: int, rng: np.random.Generator) -> list[Row]:
        """Return a row for every case and delta: the mean log-Euclidean error of draws, and its spread."""
        rows: list[Row] = []
        for case in self.cases:
            for delta in [0.0] if case.pure else self.deltas:
                drawn = case.draws(ball, mean, UNITS, epsilon, delta, draws, rng)
                error = np.linalg.norm(drawn - mean, axis=1)
                rows.append(_row(epsilon, delta, case.label, draws, float(error.mean()), float(error.std(ddof=1))))
        rows.append(_row(epsilon, 0.0, CENTER, 1, float(np.linalg.norm(mean)), 0.0))
        return rows


def _row(epsilon: float, delta: float, label: str, draws: int, error: float, spread: float) -> Row:
    return {"epsilon": epsilon, "delta": delta, "mechanism": label, "draws": draws, "error": error, "spread": spread}


def samples(rows: list[Row], value: str = "error") -> dict[tuple[Any, ...], Sample]:
    """Return the numbers of every k, epsilon, delta and mechanism."""
    found = group(rows, "k", "epsilon", "delta", "mechanism")
    return {key: Sample([row[value] for row in some]) for key, some in found.items()}


class SyntheticK(_Simulated):
    """Their Figure 1, first row."""

    name = "utpala2023/synthetic-k"
    title = "Laplace and tangent Gaussian noise as matrices grow"
    cases = (LAPLACE, LAPLACE_TWICE, CLASSICAL, ANALYTIC, OURS, OURS_PURE)
    deltas = (DELTA,)

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return the gap, then the errors."""
        return [_gap_table(rows), _error_table(rows)]

    def figure(self, rows: list[Row]) -> Figure:
        """Return error against size, a panel for each epsilon."""
        footer = (
            "500 simulated matrices with eigenvalues in [exp(-1/4), exp(1/4)]; delta = 1e-6. Bands: 2 standard errors."
        )
        figure = sheet("Error of the private mean by matrix size", "", footer, 5.6)
        axes = panels(figure, 2, 2, sharex=True, sharey=True)
        for panel, epsilon in zip(axes, EPSILONS, strict=True):
            mine = [row for row in rows if row["epsilon"] == epsilon]
            for label, (color, style) in LINES.items():
                curve(panel, [row for row in mine if row["mechanism"] == label], "k", "error", label, color, style)
            log_panel(panel, f"epsilon = {epsilon:g}", "size k of the matrices", "log-Euclidean error", SIZES)
        return canvas.keyed(figure, *axes)


def _gap_table(rows: list[Row]) -> ResultTable:
    """Laplace over Gaussian, largest size first: the paper's claim, exact expectations, and what was seen."""
    seen = samples(rows)
    body = []
    for k in sorted({row["k"] for row in rows}, reverse=True):
        for epsilon in EPSILONS:
            laplace, twice = (seen[k, epsilon, 0.0, case.label] for case in (LAPLACE, LAPLACE_TWICE))
            cells = [str(k), f"{epsilon:g}", "almost 10" if k >= 20 else "-"]
            for case in (CLASSICAL, ANALYTIC):
                noise = seen[k, epsilon, DELTA, case.label]
                cells += [
                    f"{gap(k, epsilon, case):.2f}",
                    ratio(laplace, noise),
                    f"{gap(k, epsilon, case, LAPLACE_TWICE):.2f}",
                ]
            cells.append(ratio(twice, seen[k, epsilon, DELTA, OURS.label]))
            body.append(cells)
    headings = ["k", "epsilon", "paper"]
    for name in ("classical", "analytic"):
        headings += [f"{name}: exact", f"{name}: seen", f"{name}: exact, Laplace at 2 Delta/epsilon"]
    headings.append("ours: seen, Laplace at 2 Delta/epsilon")
    return ResultTable(headings, body, "How many times the Laplace error is the tangent Gaussian's, delta = 1e-6")


def ratio(numerator: Sample, denominator: Sample) -> str:
    """Return a ratio of means with its Monte Carlo error (first order).

    Examples
    --------
    >>> ratio(Sample([2.0, 2.0]), Sample([1.0, 1.0]))
    '2 ± 0'
    """
    value = numerator.mean / denominator.mean
    error = value * float(np.hypot(numerator.error / numerator.mean, denominator.error / denominator.mean))
    return f"{value:.3g} ± {error:.1g}"


def _error_table(rows: list[Row]) -> ResultTable:
    """Errors at every size, for the smallest and the largest epsilon."""
    seen = samples(rows)
    body = []
    for epsilon in (EPSILONS[0], EPSILONS[-1]):
        for k in sorted({row["k"] for row in rows}):
            ball = simulated_ball(k)
            cells = [f"{epsilon:g}", str(k), f"{ball.radius:.3f}"]
            for case in (LAPLACE, CLASSICAL, ANALYTIC):
                cells.append(f"{case.expected(ball, UNITS, epsilon, DELTA):.4g}")
                cells.append(str(seen[k, epsilon, 0.0 if case.pure else DELTA, case.label]))
            cells += [str(seen[k, epsilon, delta, label]) for label, delta in (
                (OURS.label, DELTA), (OURS_PURE.label, 0.0), (CENTER, 0.0))]  # fmt: skip
            body.append(cells)
    headings = ["epsilon", "k", "radius", "Laplace: exact", "Laplace: seen", "classical: exact", "classical: seen",
                "analytic: exact", "analytic: seen", "ours", "ours, pure",
                CENTER]  # fmt: skip
    return ResultTable(headings, body, "Mean log-Euclidean error; the paper shows these as curves without numbers")


class SyntheticDelta(_Simulated):
    """Their Figure 1, middle row."""

    name = "utpala2023/synthetic-delta"
    title = "The tangent Gaussian as delta shrinks"
    cases = (LAPLACE, CLASSICAL, ANALYTIC, OURS)
    deltas = (DELTA, *CLAIMED_DELTAS)

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return errors at the largest size, and the factor by which they grew."""
        seen = samples(rows)
        k = max(row["k"] for row in rows)
        ball = simulated_ball(k)
        body = []
        for epsilon in EPSILONS:
            for delta in self.deltas:
                cells = [f"{epsilon:g}", f"{delta:g}", str(seen[k, epsilon, 0.0, LAPLACE.label])]
                for case in (CLASSICAL, ANALYTIC):
                    expected = case.expected(ball, UNITS, epsilon, delta)
                    growth = expected / case.expected(ball, UNITS, epsilon, CLAIMED_DELTAS[0])
                    error = seen[k, epsilon, delta, case.label]
                    cells += [f"{expected:.4g}", str(error), f"{growth:.3f}"]
                body.append([*cells, str(seen[k, epsilon, delta, OURS.label])])
        headings = ["epsilon", "delta", "Laplace", "classical: exact", "classical: seen", FROM,
                    "analytic: exact", "analytic: seen", FROM, "ours"]  # fmt: skip
        caption = f"Mean log-Euclidean error at k = {k}; paper: not significantly impacted by delta from 1e-7 to 1e-9"
        return [ResultTable(headings, body, caption)]

    def figure(self, rows: list[Row]) -> Figure:
        """Return error against size, a panel for each epsilon and a line for each delta."""
        footer = "500 simulated matrices; the Laplace promise is pure. Bands: 2 standard errors."
        figure = sheet("Error of the private mean by matrix size and delta", "Analytic calibration", footer, 5.6)
        axes = panels(figure, 2, 2, sharex=True, sharey=True)
        colors = (canvas.SKY, canvas.BLUE, canvas.GREEN, canvas.BLACK)
        styles = ("-", "--", "-.", ":")
        for panel, epsilon in zip(axes, EPSILONS, strict=True):
            mine = [row for row in rows if row["epsilon"] == epsilon]
            laplace = [row for row in mine if row["mechanism"] == LAPLACE.label]
            curve(panel, laplace, "k", "error", LAPLACE.label, *LINES[LAPLACE.label])
            for delta, color, style in zip(self.deltas, colors, styles, strict=True):
                some = [row for row in mine if row["mechanism"] == ANALYTIC.label and row["delta"] == delta]
                curve(panel, some, "k", "error", f"tangent Gaussian, delta = {delta:g}", color, style)
            log_panel(panel, f"epsilon = {epsilon:g}", "size k of the matrices", "log-Euclidean error", SIZES)
        return canvas.keyed(figure, *axes)
