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
    discussion = """
**Setting.** Their supplement is not to be had: ball and records are those of Reimherr and others (2021), S^2, r =
pi/8, both polar coordinates uniform. epsilon = 1; 10,000 releases for each n, mechanism and calibration, as in the
paper: 200 of each of 50 data sets, the error being that of the data sets' averages. KNG is drawn exactly, by the law
the paper leaves to a chain.

**What the order depends on.** For large n, n times the error is 2s for a Laplace law on the sphere with scale s/n, 3s
in space, 3s pi/4 after projection, and 2s over the mean Hessian (0.991 here) for KNG. The printed bounds, with 2
Delta/epsilon for all of them, give 3.68 (projected), 3.85 (KNG), 4.68 (Euclidean), 4.86 (Riemannian Laplace); we see
3.67, 3.81, 4.67, 4.85. That is not the paper's order: KNG second, and the Riemannian Laplace last instead of third. If
the numerator 2r(2 - h) = 0.954 is replaced by the largest |log_x p - log_x q|, found numerically (0.806, as a script
of the earlier paper's authors does), the order is the paper's: KNG 3.21, projected 3.67, Riemannian Laplace 4.08,
Euclidean 4.69.

**What agrees.** KNG beats the Riemannian Laplace by the factor h = 0.785 in the bounds, if both pay 2 Delta/epsilon:
0.785 measured.

**What does not.** They need not both pay it. The Riemannian Laplace on a homogeneous space has the same normaliser at
every footpoint, and Delta/epsilon suffices (Theorem 1 of Reimherr and others). The normaliser of KNG depends on the
data, and 2 Delta/epsilon is what is proven for it. At the smallest *proven* scales, with our bounds, the Riemannian
Laplace is first (1.86), projected Euclidean second (2.17), Euclidean third (2.77), and KNG last (3.48): 1.87 times the
Riemannian Laplace.

That KNG is last is a statement about proofs: a better one might do with less than 2 Delta/epsilon. That it is not
first holds whatever may be proven. Let all records be at one point of the edge and one of them move to the opposite
point. For large n, KNG restricted to the ball, as in their Theorem 3, is then a Laplace law on a half-plane whose
centre moves inwards from the edge. At scale Delta/epsilon, Delta = 2r/n, its loss is 1.63 epsilon for epsilon = 0.05
(1 + 2/pi in the limit), and at epsilon = 1 no scale below 1.48 x 2r/n = 1.16/n keeps the promise. Its error for these
records is then at least 2.35: third at best.

**Ours.** Against KNG as published, our Riemannian Laplace has 0.49 of the error, our KNG 0.91. All of these release
the Fréchet mean; the arithmetic mean with noise in space at its own sensitivity, 2 sin(r)/n, and projected, is as good
as our Riemannian Laplace here (see Reimherr and others, noise on the mean direction). A chain for KNG that starts at
the ball's centre is 25 % short after 3 steps, 12 % after 10, and agrees within Monte Carlo error from 30 on: on S^2 it
mixes fast. How many steps are enough elsewhere it does not say; exact draws do not ask.
"""

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
        canvas.key(figure, panels[0])
        return figure


def scales(n: int, rule: str) -> dict[str, float]:
    """Return the scale of every mechanism at epsilon = 1 by a rule.

    Examples
    --------
    >>> {name: round(100 * scale, 3) for name, scale in scales(100, "printed").items()}
    {'kng': 1.908, 'laplace': 2.429, 'space': 1.561}
    >>> {name: round(100 * scale, 3) for name, scale in scales(100, "numerical").items()}
    {'kng': 1.612, 'laplace': 2.053, 'space': 1.561}
    >>> {name: round(100 * scale, 3) for name, scale in scales(100, "valid").items()}
    {'kng': 1.745, 'laplace': 0.923, 'space': 0.923}
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
