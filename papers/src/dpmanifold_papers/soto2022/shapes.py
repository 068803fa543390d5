"""Private mean shapes: KNG, Laplace noise on shapes, and noise landmark by landmark.

The paper's 409 corpus callosa belong to a study that does not allow them to be passed on. Ape skulls (8 landmarks) and
outlines of mouse vertebrae (60 points) stand in; a user's own landmarks join them if the data folder holds
corpus_callosa.npz (an array (n, k, 2)) or the same name as .npy, .csv, .parquet or .tps.
"""

from __future__ import annotations

import itertools
import math
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms import get
from dpmanifold.noise import GradientLaw, RiemannianLaplace
from dpmanifold.noise.source import SimulationSource
from dpmanifold.plots import canvas
from dpmanifold.plots.landmark_shapes import aligned
from dpmanifold.privacy import PureDP
from dpmanifold_papers import simulation as sim
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Task, data_file, group
from dpmanifold_papers.soto2022 import landmarks as lm
from dpmanifold_papers.soto2022.chain import shape_gradient_density, walk

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILE = "planar_landmarks.npz"
SOURCE = "data sets apes and mice of the R package shapes, as arrays apes and mice_outlines (n, k, 2)"
SETS = {"apes": ("apes", 1.0), "mice": ("mice_outlines", 20.0), lm.OWN: (None, 1.0)}
"""Array in the file, and epsilon."""
METHODS = {
    "kng": "KNG, published bound", "landmarks": "landmark by landmark", "landmarks, not turned": "the same, not turned",
    "landmarks at once": "all landmarks at once", "kng, ours": "KNG, our bound", "ours": "Riemannian Laplace, ours",
}  # fmt: skip
COLORS = {"kng": canvas.BLUE, "landmarks": canvas.VERMILLION, "landmarks, not turned": canvas.ORANGE,
          "ours": canvas.GREEN}  # fmt: skip
OUTLINE = 20
"""From this many landmarks on they are an outline, and smoothed."""
SHOWN = 6


class Shapes(Experiment):
    """Their Figures 2 and 3."""

    name = "soto2022/shapes"
    title = "Private mean shapes: K-norm gradient, Laplace, and noise landmark by landmark"
    needs = (FILE,)

    def tasks(self, quick: bool) -> list[Task]:
        """One task for each data set; the user's own gives no rows if there is no file."""
        count, steps, chains = (20, 40, 20) if quick else (2000, 8000, 100)
        return [Task({"set": name, "count": count, "steps": steps, "chains": chains}, 5.0 if name == "mice" else 1.0)
                for name in SETS]  # fmt: skip

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Release the mean shape many times in every way."""
        name = task.settings["set"]
        key, epsilon = SETS[name]
        file = lm.own_file(data) if key is None else data_file(data, FILE, SOURCE)
        if file is None:
            return []
        rng = task.generator(self.name)
        found = lm.read_shapes(file, key)
        space, (n, k) = found.space, found.inside.shape
        released, exact = self._releases(found, epsilon, task, rng)
        about = {"set": name, "n": n, "k": k, "epsilon": epsilon, "exact": float(exact), "clipped": found.clipped}
        spread = sim.summary(space.dist(found.mean, found.inside))
        rows: list[Row] = [{**about, "kind": "specimens", "method": "", **spread}]
        rows += _drawn(about, "", "mean", space.to_landmarks(found.mean)[None])
        if k >= OUTLINE:
            bias = float(space.dist(found.mean, space.project(lm.smoothed(found.mean[None])))[0])
            rows.append({**about, "kind": "smoothed", "method": "", "mean": bias, "error": 0.0})
        for method, shapes in released.items():
            # States of one chain go together.
            together = task.settings["chains"] if method.startswith("kng") and not exact else len(shapes)
            rows.append({**about, "kind": "error", "method": method, **_away(found, shapes, together)})
            rows += _drawn(about, method, "draw", aligned(space, found.mean, shapes[:SHOWN]))
            if k >= OUTLINE:
                smooth = space.project(lm.smoothed(shapes))
                rows.append({**about, "kind": "smoothed", "method": method, **_away(found, smooth, together)})
                rows += _drawn(about, method, "smooth draw", aligned(space, found.mean, smooth[:SHOWN]))
        return rows

    def _releases(
        self, found: lm.ShapeData, epsilon: float, task: Task, rng: np.random.Generator
    ) -> tuple[dict[str, Array], bool]:
        """Return releases by method, and whether KNG was drawn exactly."""
        ball, n, source = found.ball, len(found.inside), SimulationSource(rng)
        count, promise = task.settings["count"], PureDP(epsilon)
        released, exact = {}, True
        for method, bound in (("kng", "published"), ("kng, ours", "sharp")):
            scale = 2 * sensitivity.of_gradient(ball, n, bound=bound).value / epsilon
            try:
                released[method] = GradientLaw(ball, found.inside, scale).sample(count, source)
            except InvalidArgumentError:  # no public bound on the work: a chain, as in the paper
                exact = False
                released[method] = chain_draws(found, scale, task.settings["steps"], task.settings["chains"], rng)
        scale = get("riemannian-laplace").calibrate(ball, n, promise).scale
        law = RiemannianLaplace(ball.space, found.mean, scale)
        released["ours"] = ball.pull_in(law.sample(count, source))
        return {**released, **lm.landmark_releases(found, epsilon, count, source)}, exact

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Distance of releases from the mean shape, one table for each data set."""
        tables = []
        for (name,), mine in group(rows, "set").items():
            first = sim.one(mine, kind="specimens")
            by = {(row["kind"], row["method"]): row for row in mine if "mean" in row}
            lines = []
            for method, title in METHODS.items():
                row, smooth = by["error", method], by.get(("smoothed", method))
                lines.append([
                    title, str(sim.estimate(row["mean"], row["error"])),
                    "" if smooth is None else str(sim.estimate(smooth["mean"], smooth["error"])),
                    str(sim.quotient(row, by["error", "kng"])),
                ])  # fmt: skip
            drawn = "" if first["exact"] else ", KNG by a chain"
            caption = (
                f"{name}: distance of the released shape from the mean; n = {first['n']}, {first['k']} landmarks, "
                f"epsilon = {first['epsilon']:g}{drawn}. A specimen is {first['mean']:.3f} from the mean on average; "
                f"{100 * first['clipped']:.0f} % were clipped"
            )
            if ("smoothed", "") in by:
                caption += f". Smoothing alone moves the mean by {by['smoothed', '']['mean']:.3f}"
            tables.append(ResultTable(["release", "distance", "smoothed", "over KNG as published"], lines, caption))
        return tables

    def figure(self, rows: list[Row]) -> Figure:
        """The mean, and six releases of each kind, for every data set."""
        sets = {name: found for (name,), found in group(rows, "set").items()}
        heights = [_room(found) for found in sets.values()]
        figure = sim.sheet(
            "Private mean shapes", "black: the mean; then six releases of each kind",
            ["Apes: epsilon = 1. Mice: epsilon = 20, less leaves nothing of 66 outlines. All turned to fit the mean."],
            1.4 + sum(heights),
        )  # fmt: skip
        panels = figure.subplots(len(sets), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
        for axes, (name, found) in zip(panels, sets.items(), strict=True):
            _draw_set(axes, found)
            canvas.caption(axes, name.replace("_", " "))
            axes.set_aspect("equal")
            axes.axis("off")
        return figure


def chain_draws(found: lm.ShapeData, scale: float, steps: int, chains: int, rng: np.random.Generator) -> Array:
    """Return states of KNG chains, the last half of them and spaced out.

    Normal steps of twice the scale, about the best for a density exp(-|v|/scale) in many dimensions; a chain that
    starts at the mean is stuck there, since every step is far longer than the scale. They start at exact draws of the
    Riemannian Laplace with the same scale.
    """
    density = shape_gradient_density(found.ball, found.inside, scale)
    start = RiemannianLaplace(found.space, found.mean, scale).sample(chains, rng)
    states = walk(found.space, density, found.ball.pull_in(start), 2 * scale, rng)
    every = 4 * found.space.dim
    kept = [points.copy() for number, (points, _) in enumerate(itertools.islice(states, steps), 1)
            if (number > steps // 2 and number % every == 0) or number == steps]  # fmt: skip
    return np.concatenate(kept[::-1])


def splitting_cost(k: int) -> float:
    """Return how much longer noise becomes if epsilon is split over k landmarks.

    Root mean square over mean: k landmarks with Gamma(2) lengths at k times the scale, against one vector with a
    Gamma(2k) length.

    Examples
    --------
    >>> round(splitting_cost(8), 2), round(splitting_cost(60), 2)
    (3.46, 9.49)
    """
    return k * math.sqrt(6 * k) / (2 * k)


def _away(found: lm.ShapeData, shapes: Array, together: int) -> Row:
    """Return the mean distance from the mean shape; its error is that of `together` averages."""
    return sim.summary(found.space.dist(found.mean, shapes).reshape(-1, together).mean(axis=0))


def _draw_set(axes: Axes, rows: list[Row]) -> None:
    """Draw a line of outlines for each kind of release."""
    by, lines = _lines(rows)
    mean = _points(by["mean", ""])
    wide, tall = 1.25 * np.ptp(mean, axis=0)
    for number, (kind, method) in enumerate(lines):
        color = COLORS[method]
        label = METHODS[method] + (", smoothed" if kind == "smooth draw" else "")
        axes.text(-0.6 * wide, -number * tall, label.replace(", ", ",\n"), fontsize=6, ha="right", va="center")
        for place, points in enumerate([mean, *map(_points, group(by[kind, method], "draw").values())]):
            moved = points + np.array([place * wide, -number * tall])
            shade = canvas.BLACK if place == 0 else color
            axes.plot(*np.concatenate([moved, moved[:1]]).T, color=shade, linewidth=0.7)
            if len(points) < OUTLINE:
                axes.plot(*moved.T, "o", color=shade, markersize=1.2)


def _lines(rows: list[Row]) -> tuple[dict[tuple[str, ...], list[Row]], list[tuple[str, str]]]:
    """Return the points of outlines by kind and method, and the kinds of release that are drawn, in order."""
    by = group((row for row in rows if row["kind"] in ("mean", "draw", "smooth draw")), "kind", "method")
    lines = [(kind, method) for kind in ("draw", "smooth draw") for method in COLORS if (kind, method) in by]
    return by, [line for line in lines if line != ("smooth draw", "landmarks, not turned")]


def _room(rows: list[Row]) -> float:
    """Return the height, in inches, at which a set's outlines fill the width of the page."""
    by, lines = _lines(rows)
    wide, tall = np.ptp(_points(by["mean", ""]), axis=0)
    return float(np.clip((canvas.WIDTH - 0.4) * len(lines) * tall / ((SHOWN + 3) * wide), 1.5, 6.0)) + 0.3


def _drawn(about: Row, method: str, kind: str, shapes: Array) -> list[Row]:
    """Return the points of some outlines, a row each."""
    return [
        {"set": about["set"], "kind": kind, "method": method, "draw": number, "landmark": place, "x": float(x),
         "y": float(y)}
        for number, shape in enumerate(shapes) for place, (x, y) in enumerate(shape)
    ]  # fmt: skip


def _points(rows: list[Row]) -> Array:
    return np.array([[row["x"], row["y"]] for row in rows])
