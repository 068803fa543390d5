"""Noise on the mean of directions: on the sphere, and in the surrounding space."""

from __future__ import annotations

import math
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array
from dpmanifold.mechanisms import choose, get
from dpmanifold.noise import RiemannianLaplace
from dpmanifold.noise.source import SimulationSource
from dpmanifold.plots import canvas
from dpmanifold.privacy import PureDP
from dpmanifold_papers import simulation as sim
from dpmanifold_papers.diameters import cap_diameter
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Sample, Task, group

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (25, 50, 75, 100, 150, 200, 250, 300, 350, 400, 450, 500)
QUICK_SIZES = (25, 100, 300)
SMALL_UP_TO = 250
"""Where "smaller" sample sizes end: half of the range, since the paper does not say."""
PRIVACY = PureDP(1.0)
RULES = {
    "theorem 2": "Theorem 2: 2r(2 - h)/(nh)",
    "code": "authors' code: tan(2r)/n",
    "numerical": "their other script: N(r)/(nh), N found numerically",
    "ours": "our bound",
}


class SphereUtility(Experiment):
    """Fourth panel of their Figure 1."""

    name = "reimherr2021/sphere-utility"
    title = "Noise on the mean direction, on the sphere and in the surrounding space"

    def tasks(self, quick: bool) -> list[Task]:
        """One task for each n."""
        sizes, repetitions = (QUICK_SIZES, 200) if quick else (SIZES, 2500)
        return [Task({"n": n, "repetitions": repetitions}, n) for n in sizes]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Draw data sets, release each mean once in every way."""
        rng = task.generator(self.name)
        n, repetitions = task.settings["n"], task.settings["repetitions"]
        X = sim.polar_records(repetitions, n, rng)
        means = sim.means_of(sim.CAP, X)
        source = SimulationSource(rng)
        rows = []
        for name, scale in laplace_scales(n).items():
            draws = sim.noisy(RiemannianLaplace(sim.CAP.space, sim.CAP.center, scale), means, source)
            if name == "ours":
                draws = sim.CAP.pull_in(draws)
            rows.append({"n": n, "method": name, "scale": scale, **_error(draws, means)})
        for name, scale in space_scales(n).items():
            center = X.mean(axis=1) if name == "arithmetic mean" else means
            draws = center + sim.flat_noise(3, scale, repetitions, source)
            rows.append({"n": n, "method": name, "scale": scale, **_error(draws, means)})
            draws = draws / np.linalg.norm(draws, axis=1, keepdims=True)
            rows.append({"n": n, "method": f"{name}, projected", "scale": scale, **_error(draws, means)})
        return rows

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """How much less noise than in the surrounding space; and all errors."""
        lines = []
        for rule, title in RULES.items():
            small, large = (reduction(rows, rule, half) for half in ("small", "large"))
            ours = reduction(rows, rule, "all", "space, valid")
            factor = next(row["n"] * row["scale"] for row in rows if row["method"] == rule)
            lines.append([title, f"{factor:.4f}", str(small), str(large), str(ours)])
        lines.insert(0, ["the paper", "", "16.8", "12", ""])
        headings = [
            "calibration of the Riemannian Laplace", "n times scale",
            f"less noise than their Euclidean, n <= {SMALL_UP_TO}, %", f"the same, n > {SMALL_UP_TO}, %",
            "less noise than a Euclidean that keeps the promise, %",
        ]  # fmt: skip
        methods = [*RULES, "space, their code", "space, valid", "space, valid, projected", "arithmetic mean, projected"]
        errors = []
        for (n,), mine in group(rows, "n").items():
            by = {row["method"]: sim.estimate(n * row["mean"], n * row["error"]) for row in mine}
            errors.append([str(n), *(str(by[method]) for method in methods)])
        return [
            ResultTable(headings, lines, "Noise of the manifold release, epsilon = 1"),
            ResultTable(
                ["n", *RULES.values(), "Euclidean, their 4 sin(r/2)/n", "Euclidean, valid", "the same, projected",
                 "arithmetic mean, 2 sin(r)/n, projected"],
                errors, "n times the mean |mean - release|",
            ),
        ]  # fmt: skip

    def figure(self, rows: list[Row]) -> Figure:
        """Mean errors with twice their standard error, as they are and times n."""
        figure = sim.sheet(
            "Private mean direction on S^2", "epsilon = 1, radius pi/8",
            ["Bands: twice the standard error. Error: |mean - release| in space."], 4.2,
        )  # fmt: skip
        left, right = figure.subplots(1, 2)
        by = group(rows, "method")
        curves = (("space, their code", canvas.VERMILLION, "-", "Euclidean Laplace, theirs"),
                  ("theorem 2", canvas.PURPLE, "-", "Riemannian Laplace, their Theorem 2"),
                  ("code", canvas.BLUE, "-", "Riemannian Laplace, their code"),
                  ("ours", canvas.GREEN, "-", "Riemannian Laplace, ours"),
                  ("space, valid", canvas.ORANGE, "--", "Euclidean Laplace, valid bound"))  # fmt: skip
        for method, color, style, label in curves:
            sim.band(left, by[method,], color, label, style)
            sim.band(right, sim.times_n(by[method,]), color, label, style)
        left.set_yscale("log")
        canvas.tidy(left, "sample size n", "mean error", grid="y")
        right.set_ylim(bottom=0)
        canvas.tidy(right, "sample size n", "n times mean error", grid="y")
        return canvas.keyed(figure, left)


def _error(draws: Array, means: Array) -> Row:
    return sim.summary(np.linalg.norm(draws - means, axis=-1))


def laplace_scales(n: int) -> dict[str, float]:
    """Return Delta/epsilon of the Riemannian Laplace with the sensitivities that are about.

    Examples
    --------
    >>> {name: round(100 * scale, 3) for name, scale in laplace_scales(100).items()}
    {'theorem 2': 1.215, 'code': 1.0, 'numerical': 1.026, 'ours': 0.828}
    """
    r = sim.CAP.radius
    return {
        "theorem 2": sensitivity.of_mean(sim.CAP, n, bound="published").value,
        "code": math.tan(2 * r) / n,
        "numerical": sim.largest_difference(r) / (n * 2 * r / math.tan(2 * r)),
        "ours": choose("riemannian-laplace", sim.CAP, n, PRIVACY)[1].scale,
    }


def space_scales(n: int) -> dict[str, float]:
    """Return the scales of noise in the surrounding space: theirs, and from a bound that holds for the Fréchet mean.

    Theirs bounds the sensitivity of the arithmetic mean, twice the chord from the centre to the edge; the Fréchet mean
    can move by more (:func:`~dpmanifold_papers.reimherr2021.sensitivity.sphere_neighbours`). The sensitivity of
    the arithmetic mean itself is that of :func:`~dpmanifold_papers.diameters.cap_diameter`.

    Examples
    --------
    >>> {name: round(100 * scale, 3) for name, scale in space_scales(100).items()}
    {'space, their code': 0.78, 'space, valid': 0.828, 'arithmetic mean': 0.765}
    """
    return {
        "space, their code": 4 * math.sin(sim.CAP.radius / 2) / n,
        "space, valid": get("extrinsic-laplace").calibrate(sim.CAP, n, PRIVACY).scale,
        "arithmetic mean": cap_diameter(sim.CAP.radius) / n,
    }


def reduction(rows: list[Row], rule: str, half: str, against: str = "space, their code") -> Sample:
    """Return by how many percent a rule's error is below another's, averaged over sizes (small, large or all)."""
    found = []
    for (n,), mine in group(rows, "n").items():
        if half == "all" or (n <= SMALL_UP_TO) == (half == "small"):
            ratio = sim.quotient(sim.one(mine, method=rule), sim.one(mine, method=against))
            found.append(sim.estimate(100 * (1 - ratio.mean), 100 * ratio.error))
    return sim.average(found)


def arithmetic_over_ours(resultant: float) -> float:
    """Return the error of the projected arithmetic mean over that of our release, for large n.

    Noise s z/n in space has 3 s pi/4 of its mean length across the direction of a mean of length `resultant`, and
    projecting it makes it 1/resultant as long; Laplace noise on the sphere has 2 s'.

    Examples
    --------
    >>> r = sim.CAP.radius
    >>> [round(arithmetic_over_ours(length), 3) for length in (1.0, math.sin(r) / r, math.cos(r))]
    [1.088, 1.117, 1.178]
    """
    n = 10**6
    across = 3 * math.pi / 4 * space_scales(n)["arithmetic mean"] / resultant
    return across / (2 * laplace_scales(n)["ours"])


__all__ = ["SphereUtility", "arithmetic_over_ours", "laplace_scales", "reduction", "space_scales"]
