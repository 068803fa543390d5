"""Table 5 of Jiang, Chang and Hu (2025): regions for mean 5 x 5 descriptors of medical images, class by class."""

from __future__ import annotations

import math
import pathlib
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.data import descriptors_in_blocks, load_images, load_labels
from dpmanifold.data.archives import archive_keys
from dpmanifold.data.descriptors import rounded_up, smallest_ball
from dpmanifold.manifolds import SPD
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import not_private
from dpmanifold.privacy import GDP, PromiseError
from dpmanifold.stats import EACH_RECORD, private_ball, private_region
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Sample, Task, data_file, group
from dpmanifold_papers.jiang2025 import printed
from dpmanifold_papers.jiang2025.published import Published

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WANTED, STAND_IN = "octmnist.npz", "pneumoniamnist.npz"
SOURCE = "MedMNIST v2, medmnist.com"
ETA, SIZE = 1e-6, 5
MU = (0.1, 1.0, 2.0)
PLAIN = "non-DP"
# I, |Ix|, |Iy|, |Ixx|, |Iyy| among the nine features: the covariance of some features is a part of the covariance.
FEATURES = slice(2, 7)
# Each of the five lies in an interval of length 1, so its variance is at most a quarter.
TRACE = SIZE / 4
# Fixed in advance: a fifth of mu^2 for a ball, the rest for the region.
SHARES = (0.2, 0.8)
# The solver of affine-invariant means on SPD(5) guarantees nothing far beyond this radius in double precision.
LARGEST = 8.0
_METHODS = {"theirs": "their formula, published ball", "same ball": "their formula, our ball", "ours": "ours"}


def image_file(data: pathlib.Path | None) -> pathlib.Path:
    """Return OCTMNIST if the data folder holds it, and its stand-in otherwise."""
    if data is not None and (data / WANTED).is_file():
        return data / WANTED
    return data_file(data, STAND_IN, f"{SOURCE}; {WANTED} from there is used instead where it is present")


@lru_cache(maxsize=1)
def load_classes(path: pathlib.Path) -> dict[int, FloatArray]:
    """Return the descriptors (n, 5, 5) of each class of a MedMNIST file, all its splits together."""
    splits = [name for name in ("train", "val", "test") if f"{name}_images" in archive_keys(path)]
    descriptors, labels = [], []
    for part in splits:
        images = load_images(path, split=part)
        descriptors.append(descriptors_in_blocks(images, eta=ETA)[:, FEATURES, FEATURES])
        labels.append(load_labels(path, split=part))
    found, label = np.concatenate(descriptors), np.concatenate(labels)
    return {int(k): found[label == k] for k in np.unique(label)}


def published_radius() -> float:
    """Return sqrt(k) |ln eta|, the radius of a ball about I as Utpala, Vepakomma and Miolane (2023) choose it."""
    return math.sqrt(SIZE) * abs(math.log(ETA))


def public_ball() -> Ball:
    """Return a ball on log-Euclidean SPD(5) that holds every such descriptor (theory section 9).

    Examples
    --------
    >>> round(public_ball().radius, 2), round(published_radius(), 2)
    (14.72, 30.89)
    """
    center, radius = smallest_ball(SIZE, ETA, TRACE)
    return Ball(SPD(SIZE), center * np.eye(SIZE), rounded_up(radius), "every image with values in [0, 1]")


def found_ball(X: Array, mu: float, rng: np.random.Generator) -> tuple[Ball, float]:
    """Release a ball in the flat metric, take it as one of the affine-invariant metric; return it and the mu left.

    A mean over the whole public ball is beyond double precision in the affine-invariant metric. A ball is only a place
    to clip to: which metric found it does not matter to the promise, nor that a released radius is cut at a fixed one.
    Where units and promise do not allow for a search nothing is spent, and the public ball is cut at that radius.
    """
    first, second = (mu * math.sqrt(share) for share in SHARES)
    try:
        found = private_ball(X, public_ball(), GDP(first), units=EACH_RECORD, confirm=True, rng=rng).value
    except PromiseError:
        # By public numbers alone, hence for whatever images.
        found, second = public_ball(), mu
    riemann = SPD(SIZE, metric="riemann")
    return Ball(riemann, found.center, min(found.radius, LARGEST), found.source, simulated=True), second


class Images(Experiment):
    """Regions for the mean descriptor of each class."""

    name = "jiang2025/oct"
    title = "Table 5: regions for mean image descriptors, SPD(5)"
    needs = (STAND_IN,)

    def tasks(self, quick: bool) -> list[Task]:
        """Return chunks of draws; classes and images are the data's."""
        count, chunk = (2, 1) if quick else (10, 5)
        mus = [1.0] if quick else list(MU)
        return [Task({"first": i, "draws": chunk, "mu": mus}, weight=chunk) for i in range(0, count, chunk)]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """For each class and mu: their region in the published ball, theirs and ours in the one found."""
        rng = task.generator(self.name)
        path = image_file(data)
        space = SPD(SIZE, metric="riemann")
        rows: list[Row] = []
        for number, X in load_classes(path).items():
            n, mean = len(X), frechet.mean(X, space).value
            r = published_radius()
            sample = Published(space, X, mean, r, 2 * r / n)
            said = {"file": path.name, "class": number, "n": n}
            if task.settings["first"] == 0:
                plain = sample.region(math.inf, rng)
                rows.append({**said, "draw": 0, "mu": PLAIN, "who": PLAIN, "radius of ball": None, "distance": 0.0,
                             **_spectrum(plain.at_mean)})  # fmt: skip
            for draw in range(task.settings["first"], task.settings["first"] + task.settings["draws"]):
                for mu in task.settings["mu"]:
                    for who, ball, at, covariance in _three(X, sample, mu, rng):
                        rows.append({**said, "draw": draw, "mu": mu, "who": who, "radius of ball": ball,
                                     "distance": float(space.dist(mean, at)), **_spectrum(covariance)})  # fmt: skip
        return rows

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return the quantities of their Table 5, theirs printed first."""
        tables = [_printed()]
        for (file, number, n), mine in group(rows, "file", "class", "n").items():
            lines = []
            for (mu, who), part in sorted(group(mine, "mu", "who").items(), key=_order):
                line = [mu if mu == PLAIN else f"{mu:g}", _METHODS.get(who, "no privacy")]
                radii = [row["radius of ball"] for row in part if row["radius of ball"] is not None]
                lines.append([*line, f"{np.mean(radii):.3g}" if radii else "", *_numbers(part, mu == PLAIN)])
            draws = 1 + max(row["draw"] for row in mine)
            headings = ["mu", "method", "ball", *_QUANTITIES]
            caption = f"{file}, class {number}, {n:,} images; {draws} draws, ± Monte Carlo error"
            tables.append(ResultTable(headings, lines, caption))
        return tables

    def figure(self, rows: list[Row]) -> Figure:
        """Draw the eigenvalues of Gamma, a panel for each class and private method."""
        classes = group(rows, "class")
        figure = canvas.new_figure(
            "How sure a mean descriptor is", "eigenvalues of Gamma, the covariance of the error; medians of the draws",
            not_private("seeded simulation"), [f"{rows[0]['file']}, 5 x 5 covariance descriptors, SPD(5)."],
            0.8 + 2.3 * len(classes),
        )  # fmt: skip
        panels = figure.subplots(len(classes), 2, sharex=True, sharey=True, squeeze=False)
        for line, ((number,), mine) in zip(panels, classes.items(), strict=True):
            for axes, who in zip(line, ("theirs", "ours"), strict=True):
                for color, ((mu, _), part) in zip(
                    (canvas.BLACK, canvas.VERMILLION, canvas.ORANGE, canvas.BLUE),
                    group([row for row in mine if row["who"] in (PLAIN, who)], "mu", "who").items(),
                    strict=False,
                ):
                    values = np.median([_eigenvalues(row) for row in part], axis=0)
                    label = "no privacy" if mu == PLAIN else f"mu = {mu:g}"
                    axes.plot(np.arange(1, len(values) + 1), values, ".-", color=color, linewidth=1, label=label)
                axes.set_yscale("log")
                canvas.caption(axes, f"class {number}, {_METHODS[who]}")
                canvas.tidy(axes, "axis", "eigenvalue", grid="both")
                axes.label_outer()
        return canvas.keyed(figure, *panels.ravel())


_QUANTITIES = ("lambda 1", "lambda 2", "lambda 3", "share", "radius", "volume", "distance")


def _three(
    X: Array, sample: Published, mu: float, rng: np.random.Generator
) -> list[tuple[str, float, Array, FloatArray]]:
    """Return method, radius of its ball, released mean and covariance in the frame there."""
    theirs = sample.region(mu, rng)
    ball, left = found_ball(X, mu, rng)
    same = Published.of(X, ball).region(left, rng)
    ours = private_region(X, ball, GDP(left), units=EACH_RECORD, confirm=True, rng=rng)
    return [
        ("theirs", sample.radius, theirs.mean, theirs.at_mean),
        ("same ball", ball.radius, ball.from_frame(same.mean[None])[0], same.at_mean),
        ("ours", ball.radius, ours.center, ours.covariance),
    ]


def _spectrum(covariance: FloatArray) -> Row:
    values = np.linalg.eigvalsh(covariance)[::-1]
    return {f"e{i + 1}": float(value) for i, value in enumerate(values)}


def _eigenvalues(row: Row) -> FloatArray:
    return np.array([row[f"e{i + 1}"] for i in range(SIZE * (SIZE + 1) // 2)])


def _numbers(rows: list[Row], plain: bool) -> list[str]:
    spectra = np.array([_eigenvalues(row) for row in rows])
    total = spectra.sum(axis=1)
    volumes = np.exp(np.log(spectra).sum(axis=1) / 2)
    columns = [*spectra[:, :3].T, spectra[:, :3].sum(axis=1) / total, np.sqrt(total)]
    distance = "" if plain else str(Sample([row["distance"] for row in rows]))
    return [*(str(Sample(list(column))) for column in columns), f"{np.median(volumes):.2g}", distance]


def _order(item: tuple[tuple[float | str, str], list[Row]]) -> tuple[float, int]:
    (mu, who), _ = item
    return (mu if isinstance(mu, float) else math.inf), list(_METHODS).index(who) if who in _METHODS else 9


def _printed() -> ResultTable:
    lines = []
    for mu, numbers in printed.OCT.items():
        lines.append([PLAIN if mu is None else f"{mu:g}", *("" if x is None else f"{x:g}" for x in numbers)])
    return ResultTable(["mu", *_QUANTITIES], lines, "Paper, OCTMNIST class 0")
