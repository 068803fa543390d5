"""Noise on the mean of SPD matrices: on the manifold, and on the entries."""

from __future__ import annotations

import math
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.linalg import from_vecd, to_vecd
from dpmanifold.mechanisms import choose, get
from dpmanifold.noise import RiemannianLaplace
from dpmanifold.noise.source import SimulationSource
from dpmanifold.plots import canvas
from dpmanifold.privacy import PureDP
from dpmanifold_papers import simulation as sim
from dpmanifold_papers.diameters import matrix_diameter
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Task, group

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 500)
QUICK_SIZES = (20, 40, 100)
SMALL = (20, 30, 40)
"""Sizes at which the paper counts releases that are not positive definite."""
CHAIN_STEPS = 10_000
ARITHMETIC = "entries of the arithmetic mean"
PRIVACY = PureDP(1.0)


class SPDUtility(Experiment):
    """Second panel of their Figure 1."""

    name = "reimherr2021/spd-utility"
    title = "Noise on the mean of SPD matrices, on the manifold and on the entries"

    def tasks(self, quick: bool) -> list[Task]:
        """One task for each n, and the authors' chain at three of them."""
        if quick:
            tasks = [Task({"n": n, "repetitions": 100}, n) for n in QUICK_SIZES]
            return [*tasks, Task({"n": 20, "chains": 50, "steps": 300})]
        counts = {n: 4000 if n in SMALL else 1000 for n in SIZES}
        tasks = [Task({"n": n, "repetitions": counts[n]}, n * counts[n] / 1000) for n in SIZES]
        return [*tasks, *(Task({"n": n, "chains": 1000, "steps": CHAIN_STEPS}, 100) for n in (20, 100, 500))]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Draw data sets, release each mean once in every way."""
        rng = task.generator(self.name)
        n, r = task.settings["n"], sim.MATRICES.radius
        if "chains" in task.settings:
            return [_chain_row(n, task.settings["chains"], task.settings["steps"], rng)]
        X = sim.wishart_records(task.settings["repetitions"], n, rng)
        means = sim.means_of(sim.MATRICES, X)
        source = SimulationSource(rng)
        _, calibration, _ = choose("auto", sim.MATRICES, n, PRIVACY)
        rows = []
        for name, scale in (("theirs", 2 * 2 * r / n), ("ours", calibration.scale)):
            law = RiemannianLaplace(sim.MATRICES.space, np.eye(2), scale)
            draws = sim.noisy(law, means, source)
            if name == "ours":
                draws = sim.MATRICES.pull_in(draws)
            rows.append({"n": n, "method": name, "outside": 0.0, **_error(draws, means)})
        for name, each in _entry_scales(X, n).items():
            noise = sim.flat_noise(3, 1.0, len(means), source) * np.reshape(each, (-1, 1))
            if name == "entries, valid":
                draws = from_vecd(to_vecd(means) + noise)
            else:
                draws = means + noise[:, [[0, 1], [1, 2]]]
            outside = float((np.linalg.eigvalsh(draws)[:, 0] <= 0).mean())
            rows.append({"n": n, "method": name, "outside": outside, **_error(draws, means)})
        # Another mean: its error is the distance from itself.
        plain = X.mean(axis=1)
        noise = sim.flat_noise(3, matrix_diameter(r) / n, len(plain), source)
        draws = plain + noise[:, [[0, 1], [1, 2]]]
        outside = float((np.linalg.eigvalsh(draws)[:, 0] <= 0).mean())
        rows.append({"n": n, "method": ARITHMETIC, "outside": outside, **_error(draws, plain)})
        return rows

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Errors, shares of releases that are not positive definite, and the chain."""
        found = [row for row in rows if "method" in row]
        errors = []
        for (n,), mine in group(found, "n").items():
            by = {row["method"]: row for row in mine}
            errors.append([
                str(n), *(str(sim.estimate(by[m]["mean"], by[m]["error"])) for m in
                          ("theirs", "entries, their code", "ours", "entries, valid", ARITHMETIC)),
                str(sim.quotient(by["theirs"], by["entries, their code"])), str(sim.quotient(by["ours"], by["theirs"])),
            ])  # fmt: skip
        tables = [ResultTable(
            ["n", "Riemannian Laplace, theirs: 4r/n", "Laplace on entries, theirs: 4(e^r - 1)/n",
             "Riemannian Laplace, ours: 2r/n", "Laplace on entries, valid: 2r e^r/n",
             f"arithmetic mean, Laplace on entries: {matrix_diameter(sim.MATRICES.radius):.3f}/n", "theirs / entries",
             "ours / theirs"],
            errors, "Mean |vech(mean) - vech(release)|, epsilon = 1",
        )]  # fmt: skip
        tables.append(_share_table(found))
        chains = [
            [str(row["n"]), f"{row['accepted']:.3f}", str(sim.estimate(row["mean"], row["error"])),
             f"{row['exact']:.5f}"] for row in rows if "accepted" in row
        ]  # fmt: skip
        tables.append(ResultTable(
            ["n", "accepted share of steps", "mean distance, chain", "mean distance, quadrature of the law"], chains,
            "Their chain for the Riemannian Laplace at their scale 4r/n",
        ))  # fmt: skip
        return tables

    def figure(self, rows: list[Row]) -> Figure:
        """Mean errors with twice their standard error, and the share outside the space."""
        figure = sim.sheet(
            "Private mean of SPD(2) matrices", "epsilon = 1, radius 1.5, affine-invariant metric",
            ["Bands: twice the standard error. Error: |vech(mean) - vech(release)|."], 4.0,
        )  # fmt: skip
        left, right = figure.subplots(1, 2)
        by = group((row for row in rows if "method" in row), "method")
        curves = (("entries, their code", canvas.VERMILLION, "-", "Laplace on entries, theirs"),
                  ("entries, valid", canvas.ORANGE, "--", "Laplace on entries, valid bound"),
                  ("theirs", canvas.BLUE, "-", "Riemannian Laplace, theirs"),
                  ("ours", canvas.GREEN, "-", "Riemannian Laplace, ours"))  # fmt: skip
        for method, color, style, label in curves:
            sim.band(left, by[method,], color, label, style)
        left.set_yscale("log")
        canvas.tidy(left, "sample size n", "mean error", grid="y")
        for method, color, style, _ in curves[:2]:
            mine = sorted(by[method,], key=lambda row: row["n"])
            right.plot([row["n"] for row in mine], [row["outside"] for row in mine], style, color=color, linewidth=1.3)
        right.plot([20, 40], [0.25, 0.25], color=canvas.BLACK, linewidth=3, label="the paper: about 25 %")
        right.set_xlim(0, 220)
        canvas.tidy(right, "sample size n", "share not positive definite", grid="y")
        return canvas.keyed(figure, left, right)


def _error(draws: FloatArray, means: FloatArray) -> Row:
    return sim.summary(np.linalg.norm(sim.vech(draws - means), axis=-1))


def _entry_scales(X: FloatArray, n: int) -> dict[str, float | FloatArray]:
    """Return the scales of noise on the entries: of their code, variants of it, and of a bound that holds."""
    grown = math.exp(sim.MATRICES.radius) - 1
    # Their earlier code also measured the largest distance from I of each data set, as a matrix.
    seen = np.linalg.norm(X - np.eye(2), axis=(2, 3)).max(axis=1)
    farthest = sim.MATRICES.space.dist(sim.MATRICES.center, X).max(axis=1)
    return {
        "entries, their code": 2 * 2 * grown / n,
        "entries, Delta/eps": 2 * grown / n,
        "entries, radius seen": 2 * 2 * seen / n,
        "entries, valid": get("extrinsic-laplace").calibrate(sim.MATRICES, n, PRIVACY).scale,
        "entries, distance seen": 2 * 2 * np.expm1(farthest) / n,
    }


def _share_table(rows: list[Row]) -> ResultTable:
    methods = ("entries, distance seen", "entries, their code", "entries, Delta/eps", "entries, radius seen",
               "entries, valid", ARITHMETIC)  # fmt: skip
    lines, small = [], []
    for (n,), mine in group(rows, "n").items():
        by = {row["method"]: row for row in mine}
        shares = [sim.estimate(by[m]["outside"], math.sqrt(by[m]["outside"] * (1 - by[m]["outside"]) / by[m]["count"]))
                  for m in methods]  # fmt: skip
        lines.append([str(n), "about 0.25" if n in SMALL else "", *map(str, shares), "0"])
        if n in SMALL:
            small.append(shares)
    if small:
        means = [str(sim.average(list(column))) for column in zip(*small, strict=True)]
        lines.append([f"mean of {' to '.join(map(str, (SMALL[0], SMALL[-1])))}", "about 0.25", *means, "0"])
    return ResultTable(
        ["n", "paper", "their code: 4(e^R - 1)/n, R the largest distance seen", "the same, r for R: 4(e^r - 1)/n",
         "half of it: 2(e^r - 1)/n", "4R/n, R the largest Frobenius distance from I seen",
         "valid: 2r e^r/n on vecd", f"arithmetic mean, {matrix_diameter(sim.MATRICES.radius):.3f}/n",
         "ours, on the manifold"],
        lines, "Share of releases that are not positive definite",
    )  # fmt: skip


def _chain_row(n: int, chains: int, steps: int, rng: np.random.Generator) -> Row:
    """Run their chain for the eigenvalues' logarithms: uniform steps of +-0.5 from a uniform start in [0, 1]^2."""
    scale = 2 * 2 * sim.MATRICES.radius / n
    x = rng.random((2, chains))

    def height(y: FloatArray) -> FloatArray:
        return np.asarray(np.log(np.sinh(np.abs(y[0] - y[1]) / 2)) - np.hypot(*y) / scale)

    now, accepted = height(x), 0
    for _ in range(steps):
        new = x + rng.random((2, chains)) - 0.5
        later = height(new)
        taken = np.log(rng.random(chains)) < later - now
        x[:, taken], now[taken] = new[:, taken], later[taken]
        accepted += int(taken.sum())
    return {
        "n": n, "accepted": accepted / (steps * chains), "exact": mean_distance(scale), **sim.summary(np.hypot(*x)),
    }  # fmt: skip


def mean_distance(scale: float) -> float:
    """Return E rho under the Riemannian Laplace on SPD(2), by quadrature in polar coordinates of the eigenvalues.

    Examples
    --------
    >>> round(mean_distance(1e-3) / 1e-3, 3)
    3.0
    """
    # The eigenvalues' logarithms have density exp(-t/scale) sinh(|x_1 - x_2|/2), |x_1 - x_2| = sqrt(2) t |cos|.
    t = np.linspace(0.0, 60 * scale, 4001)
    angle = (np.arange(200) + 0.5) / 200 * np.pi / 2
    weight = np.exp(-t / scale) * t * np.sinh(t[:, None] * np.cos(angle) / math.sqrt(2)).mean(axis=1)
    return float((t * weight).sum() / weight.sum())
