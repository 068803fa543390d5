"""KNG on the sphere against Laplace noise on it and in space: who is best depends on the calibration."""

from __future__ import annotations

import itertools
import math
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import FloatArray
from dpmanifold.mechanisms import get
from dpmanifold.noise import GradientLaw, RiemannianLaplace
from dpmanifold.noise.source import SimulationSource
from dpmanifold.plots import canvas
from dpmanifold.privacy import PureDP
from dpmanifold_papers import simulation as sim
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Sample, Task, group
from dpmanifold_papers.soto2022.chain import walk

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (25, 50, 100, 200, 350, 500)
PRIVACY = PureDP(1.0)
METHODS = {"kng": "KNG", "projected": "Euclidean Laplace, projected", "laplace": "Riemannian Laplace",
           "space": "Euclidean Laplace"}  # fmt: skip
"""In the paper's order, best first."""
RULES = {
    "printed": "printed bounds, 2 Delta/eps for all",
    "numerical": "numerator found numerically, 2 Delta/eps for all",
    "valid": "ours: our bounds, the smallest scales that are proven",
}
CHAIN = {"n": 100, "chains": 2000, "steps": [3, 10, 30, 100, 300]}


class KNGSphere(Experiment):
    """First panel of their Figure 1."""

    name = "soto2022/sphere"
    title = "K-norm gradient on the sphere, against Laplace noise"

    def tasks(self, quick: bool) -> list[Task]:
        """One task for each n, and the chain."""
        if quick:
            tasks = [Task({"n": n, "sets": 2, "draws": 50}, n) for n in (25, 100)]
            return [*tasks, Task({"n": 50, "chains": 100, "steps": [3, 10]})]
        return [*(Task({"n": n, "sets": 50, "draws": 200}, 100 + n) for n in SIZES), Task(CHAIN, 300)]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Draw data sets and release each mean many times."""
        rng = task.generator(self.name)
        n = task.settings["n"]
        if "chains" in task.settings:
            return _chain_rows(n, task.settings["chains"], task.settings["steps"], rng)
        sets, draws = task.settings["sets"], task.settings["draws"]
        X = sim.polar_records(sets, n, rng)
        means = sim.means_of(sim.CAP, X)
        source = SimulationSource(rng)
        each = np.repeat(means, draws, axis=0)
        rows = []
        for rule in RULES:
            scale = scales(n, rule)
            released = {
                "laplace": sim.noisy(RiemannianLaplace(sim.CAP.space, sim.CAP.center, scale["laplace"]), each, source),
                "space": each + sim.flat_noise(3, scale["space"], len(each), source),
                "kng": np.concatenate([GradientLaw(sim.CAP, x, scale["kng"]).sample(draws, source) for x in X]),
            }
            if rule == "valid":
                released["laplace"] = sim.CAP.pull_in(released["laplace"])
            length = np.linalg.norm(released["space"], axis=1, keepdims=True)
            released["projected"] = released["space"] / length
            for method, points in released.items():
                error = np.linalg.norm(points - each, axis=1).reshape(sets, draws)
                found = sim.summary(error.mean(axis=1))
                rows.append({"n": n, "rule": rule, "method": method, "scale": scale.get(method, scale["space"]),
                             **found, "count": sets * draws})  # fmt: skip
        return rows

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Order by rule; n times error by n; the chain."""
        found = [row for row in rows if "rule" in row]
        lines = []
        for number, (method, title) in enumerate(METHODS.items(), 1):
            cells = [f"{scaled(found, rule, method)} ({rank(found, rule, method)})" for rule in RULES]
            lines.append([title, str(number), *cells])
        order = ResultTable(
            ["", "the paper's order", *RULES.values()], lines,
            "n times the mean error, averaged over n; in brackets the place, best first",
        )  # fmt: skip
        detail = []
        for (n,), mine in group(found, "n").items():
            for rule in RULES:
                by = {row["method"]: row for row in mine if row["rule"] == rule}
                cells = [str(sim.estimate(n * by[m]["mean"], n * by[m]["error"])) for m in METHODS]
                detail.append([str(n), RULES[rule].partition(",")[0].partition(":")[0], *cells])
        by_size = ResultTable(["n", "calibration", *METHODS.values()], detail, "The same for each n")
        chain = [[str(row["steps"]), str(sim.estimate(row["mean"], row["error"])),
                  str(sim.estimate(row["exact"], row["exact_error"]))] for row in rows if "steps" in row]  # fmt: skip
        return [order, by_size, ResultTable(
            ["steps of the chain", "mean distance, chain", "mean distance, exact draws"], chain,
            "KNG by a Metropolis chain from the ball's centre, with normal steps of the law's scale; printed bound",
        )]  # fmt: skip

    def figure(self, rows: list[Row]) -> Figure:
        """Errors by n: the paper's order with numerical numerators, and ours."""
        figure = sim.sheet(
            "K-norm gradient and Laplace noise on S^2", "epsilon = 1, radius pi/8; n times the mean error",
            ["Bands: twice the standard error. Left and middle: 2 Delta/epsilon for all mechanisms."], 4.2,
        )  # fmt: skip
        panels = figure.subplots(1, 3, sharey=True)
        by = group((row for row in rows if "rule" in row), "rule", "method")
        colors = dict(zip(METHODS, (canvas.BLUE, canvas.ORANGE, canvas.GREEN, canvas.VERMILLION), strict=True))
        titles = ("printed bounds", "numerical numerators", "smallest proven scales (ours)")
        for axes, rule, title in zip(panels, RULES, titles, strict=True):
            for method, label in METHODS.items():
                sim.band(axes, sim.times_n(by[rule, method]), colors[method], label)
            canvas.tidy(axes, "sample size n", "n times mean error" if rule == "printed" else "", grid="y")
            canvas.caption(axes, title)
            axes.set_ylim(bottom=0)
        return canvas.keyed(figure, panels[0])


def scales(n: int, rule: str) -> dict[str, float]:
    """Return the scale of every mechanism at epsilon = 1 by a rule.

    Examples
    --------
    >>> {name: round(100 * scale, 3) for name, scale in scales(100, "printed").items()}
    {'kng': 1.908, 'laplace': 2.429, 'space': 1.561}
    >>> {name: round(100 * scale, 3) for name, scale in scales(100, "numerical").items()}
    {'kng': 1.612, 'laplace': 2.053, 'space': 1.561}
    >>> {name: round(100 * scale, 3) for name, scale in scales(100, "valid").items()}
    {'kng': 1.612, 'laplace': 0.828, 'space': 0.828}
    """
    r = sim.CAP.radius
    if rule == "valid":
        names = {"kng": "kng", "laplace": "riemannian-laplace", "space": "extrinsic-laplace"}
        return {name: get(full).calibrate(sim.CAP, n, PRIVACY).scale for name, full in names.items()}
    h = 2 * r / math.tan(2 * r)
    gradient = sensitivity.of_gradient(sim.CAP, n, bound="published").value
    if rule == "numerical":
        gradient = sim.largest_difference(r) / n
    return {"kng": 2 * gradient, "laplace": 2 * gradient / h, "space": 2 * 4 * math.sin(r / 2) / n}


def scaled(rows: list[Row], rule: str, method: str) -> Sample:
    """Return n times the mean error, averaged over n."""
    mine = [row for row in rows if row.get("rule") == rule and row["method"] == method]
    return sim.average([sim.estimate(row["n"] * row["mean"], row["n"] * row["error"]) for row in mine])


def rank(rows: list[Row], rule: str, method: str) -> int:
    """Return a method's place by a rule, 1 for the best."""
    errors = {name: scaled(rows, rule, name).mean for name in METHODS}
    return sorted(errors, key=lambda name: errors[name]).index(method) + 1


def _chain_rows(n: int, chains: int, steps: list[int], rng: np.random.Generator) -> list[Row]:
    """Compare chains of KNG with exact draws, for one data set."""
    X = sim.polar_records(1, n, rng)[0]
    law = GradientLaw(sim.CAP, X, scales(n, "printed")["kng"])
    mean = sim.means_of(sim.CAP, X[None])[0]
    exact = sim.summary(_away(law.sample(10 * chains, SimulationSource(rng)), mean))
    start = np.tile(sim.CAP.center, (chains, 1))
    rows: list[Row] = []
    states = walk(sim.CAP.space, law.logpdf, start, law.scale, rng)
    for number, (points, _) in enumerate(itertools.islice(states, max(steps)), 1):
        if number in steps:
            rows.append({"n": n, "steps": number, **sim.summary(_away(points, mean)), "exact": exact["mean"],
                         "exact_error": exact["error"]})  # fmt: skip
    return rows


def _away(points: FloatArray, mean: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(points - mean, axis=-1))
