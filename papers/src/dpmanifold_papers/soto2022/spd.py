"""KNG on SPD(2) against Laplace noise on the manifold and on the entries."""

from __future__ import annotations

import math
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold.linalg import from_vecd, to_vecd
from dpmanifold.mechanisms import get
from dpmanifold.noise import GradientLaw, RiemannianLaplace
from dpmanifold.noise.source import SimulationSource
from dpmanifold.plots import canvas
from dpmanifold.privacy import PureDP
from dpmanifold_papers import simulation as sim
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Task, group

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (20, 50, 100, 200, 350, 500)
PRIVACY = PureDP(1.0)
METHODS = {
    "kng": "KNG, 2 Delta/eps (theirs and ours)", "laplace": "Riemannian Laplace, 2 Delta/eps (theirs)",
    "entries": "Laplace on entries, theirs", "ours": "Riemannian Laplace, Delta/eps (ours)",
    "entries, valid": "Laplace on entries, valid bound",
}  # fmt: skip


class KNGMatrices(Experiment):
    """Second panel of their Figure 1."""

    name = "soto2022/spd"
    title = "K-norm gradient on SPD matrices, against Laplace noise"

    def tasks(self, quick: bool) -> list[Task]:
        """One task for each n."""
        sizes, sets, draws = ((20, 100), 2, 25) if quick else (SIZES, 100, 50)
        return [Task({"n": n, "sets": sets, "draws": draws}, 100 + n) for n in sizes]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Draw data sets and release each mean many times."""
        rng = task.generator(self.name)
        n, sets, draws = (task.settings[name] for name in ("n", "sets", "draws"))
        X = sim.wishart_records(sets, n, rng)
        each = np.repeat(sim.means_of(sim.MATRICES, X), draws, axis=0)
        source = SimulationSource(rng)
        scale = scales(n)
        laplace = {
            name: sim.noisy(RiemannianLaplace(sim.MATRICES.space, np.eye(2), scale[name]), each, source)
            for name in ("laplace", "ours")
        }
        noise = sim.flat_noise(3, scale["entries"], len(each), source)
        released = {
            "kng": np.concatenate([GradientLaw(sim.MATRICES, x, scale["kng"]).sample(draws, source) for x in X]),
            "laplace": laplace["laplace"],
            "ours": sim.MATRICES.pull_in(laplace["ours"]),
            "entries": each + noise[:, [[0, 1], [1, 2]]],
            "entries, valid": from_vecd(to_vecd(each) + sim.flat_noise(3, scale["entries, valid"], len(each), source)),
        }
        rows = []
        for method, points in released.items():
            error = np.linalg.norm(sim.vech(points - each), axis=-1).reshape(sets, draws)
            rows.append({"n": n, "method": method, "scale": scale[method], **sim.summary(error.mean(axis=1)),
                         "count": sets * draws})  # fmt: skip
        return rows

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Errors and ratios by n."""
        lines = []
        for (n,), mine in group(rows, "n").items():
            by = {row["method"]: row for row in mine}
            lines.append([
                str(n), *(str(sim.estimate(by[m]["mean"], by[m]["error"])) for m in METHODS),
                str(sim.quotient(by["kng"], by["laplace"])), str(sim.quotient(by["kng"], by["entries"])),
                str(sim.quotient(by["ours"], by["kng"])),
            ])  # fmt: skip
        headings = ["n", *METHODS.values(), "KNG / Laplace, theirs (paper: about 1)",
                    "KNG / entries, theirs (paper: below 1)", "ours / KNG"]  # fmt: skip
        return [ResultTable(headings, lines, "Mean |vech(mean) - vech(release)|, epsilon = 1")]

    def figure(self, rows: list[Row]) -> Figure:
        """Mean errors with twice their standard error."""
        figure = sim.sheet(
            "K-norm gradient and Laplace noise on SPD(2)", "epsilon = 1, radius 1.5, affine-invariant metric",
            ["Bands: twice the standard error. Error: |vech(mean) - vech(release)|."], 4.2,
        )  # fmt: skip
        axes = figure.subplots()
        by = group(rows, "method")
        looks = ((canvas.BLUE, "-"), (canvas.PURPLE, "--"), (canvas.VERMILLION, "-"), (canvas.GREEN, "-"),
                 (canvas.ORANGE, "--"))  # fmt: skip
        for (method, label), (color, style) in zip(METHODS.items(), looks, strict=True):
            sim.band(axes, by[method,], color, label, style)
        axes.set_yscale("log")
        canvas.tidy(axes, "sample size n", "mean error", grid="y")
        return canvas.keyed(figure, axes)


def scales(n: int) -> dict[str, float]:
    """Return the scale of every mechanism at epsilon = 1.

    Examples
    --------
    >>> {name: round(100 * scale, 2) for name, scale in scales(100).items()}
    {'kng': 6.0, 'laplace': 6.0, 'ours': 3.0, 'entries': 13.93, 'entries, valid': 13.45}
    """
    r = sim.MATRICES.radius
    return {
        "kng": get("kng").calibrate(sim.MATRICES, n, PRIVACY).scale,
        "laplace": 2 * 2 * r / n,
        "ours": get("riemannian-laplace").calibrate(sim.MATRICES, n, PRIVACY).scale,
        "entries": 2 * 2 * (math.exp(r) - 1) / n,
        "entries, valid": get("extrinsic-laplace").calibrate(sim.MATRICES, n, PRIVACY).scale,
    }
