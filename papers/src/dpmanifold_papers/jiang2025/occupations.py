"""Fig. 5 of Jiang, Chang and Hu (2025): regions for mean judgements of occupations, 48 people, four criteria."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.data import load_array, load_column
from dpmanifold.errors import InvalidDataError
from dpmanifold.inference.hotelling import squared_length
from dpmanifold.manifolds import Sphere
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import not_private
from dpmanifold.privacy import GDP, split
from dpmanifold.stats import EACH_RECORD, private_region
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Sample, Task, data_file, group
from dpmanifold_papers.jiang2025.published import Published, PublishedRegion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE, SOURCE = "occupational_judgments.csv", "Fisher, Lewis and Embleton 1987, data set B20"
CRITERIA = ("earnings", "social_status", "reward", "social_usefulness")
PAIR = ("social_status", "reward")
MU = (1.0, 2.0)
THEIR_RADIUS = math.pi / 8
# Ours: a fifth of mu^2 for the centre, the rest for the region. The radius would have to be public. This one was chosen
# after seeing the coverage of all of RADII on these very data, so the coverage table shows all of them.
OUR_RADIUS, SHARES = 0.7, (0.2, 0.8)
RADII = (THEIR_RADIUS, 0.5, 0.6, OUR_RADIUS)
NONE = "non-DP"
PLAIN, CUT, THEIRS, OURS = "not private", "not private, truncated", "their formula", "ours"
DIRECTION, CONE = "not private, mean direction", "not private, mean direction, circular cone"
_SPACE = Sphere(2)
_COLORS = {PLAIN: canvas.VERMILLION, THEIRS: canvas.PURPLE, OURS: canvas.BLUE}
_LABELS = {PLAIN: "not private", THEIRS: "their formula (not private: centred on the data)", OURS: "ours"}
_WINDOW = 27.0  # degrees, half the side of a panel
_GRID, _REACH = 121, 0.6  # points along a side of the square on which areas are counted, and half that side


@dataclass(frozen=True)
class Found:
    """A region on the sphere: its estimate, effective radius and which points it holds."""

    mean: Array
    radius: float
    contains: Callable[[Array], Array]


def load_criteria(path: pathlib.Path) -> dict[str, Array]:
    """Return the unit vectors (n, 3) of each criterion."""
    vectors = np.asarray(load_array(path, columns=["x", "y", "z"]))
    names = load_column(path, "criterion_assumed")
    found = {name: _SPACE.project(vectors[names == name]) for name in CRITERIA}
    if any(len(X) == 0 for X in found.values()):
        raise InvalidDataError(f"{path.name}: column criterion_assumed must hold {', '.join(CRITERIA)}.")
    return found


def plain_region(X: Array) -> Found:
    """Return the region without privacy, of all data."""
    mean = frechet.mean(X, _SPACE).value
    region = Published(_SPACE, X, mean, math.nan, math.nan).region(math.inf, 0)
    return Found(mean, region.effective_radius, region.contains)


def direction_region(X: Array, circular: bool = False) -> Found:
    """Return a large-sample 95 % region of the mean *direction*, the arithmetic mean's, as for the source of the data.

    About u = m/R, m the arithmetic mean and R its length, the components across u have covariance S/(n R^2), S the mean
    of their outer products: an ellipse in those components, or a cone of the average spread.

    Parameters
    ----------
    X : unit vectors (n, 3)
    circular : take the average of both directions
    """
    mean = X.mean(axis=0)
    length = float(np.linalg.norm(mean))
    direction = mean / length
    across = np.linalg.svd(direction[None])[2][1:]
    v = X @ across.T
    spread = v.T @ v / (len(X) * length) ** 2
    if circular:
        spread = np.trace(spread) / 2 * np.eye(2)
    bound = -2 * math.log(0.05)  # of chi-square with two degrees of freedom

    def contains(q: Array) -> Array:
        return np.asarray((squared_length(spread, q @ across.T) <= bound) & (q @ direction > 0))

    return Found(direction, math.sqrt(np.trace(spread)), contains)


def their_sample(X: Array) -> tuple[Ball, Published]:
    """Truncate as the paper does, about the sample mean: no promise is kept, whatever is added afterwards."""
    ball = Ball(_SPACE, frechet.mean(X, _SPACE).value, THEIR_RADIUS, "about the sample mean", simulated=True)
    return ball, Published.of(X, ball)


def their_region(ball: Ball, sample: Published, mu: float, rng: np.random.Generator) -> Found:
    """Return their region; an infinite mu for the truncated data without noise."""
    region: PublishedRegion = sample.region(mu, rng)
    mean = ball.from_frame(region.mean[None])[0]
    return Found(mean, region.effective_radius, lambda q: region.contains(_SPACE.to_origin(ball.center, q)))


def our_region(X: Array, mu: float, rng: np.random.Generator, radius: float = OUR_RADIUS) -> Found:
    """Return ours: a centre from the noisy mean vector, of sensitivity 2/n, then a region in the ball about it."""
    first, second = split(GDP(mu), SHARES)
    assert isinstance(first, GDP)
    vector = X.mean(axis=0) + 2 / len(X) / first.mu * rng.standard_normal(3)
    ball = Ball(_SPACE, vector / np.linalg.norm(vector), radius, f"centre released under {first}", simulated=True)
    region = private_region(X, ball, second, units=EACH_RECORD, confirm=True, rng=rng)
    return Found(region.center, region.effective_radius, region.contains)


def overlap(first: Found, second: Found, grid: Array) -> tuple[float, float, float]:
    """Return the share of the smaller region that both hold, and whether each mean is outside the other region."""
    a, b = first.contains(grid), second.contains(grid)
    smaller = min(int(a.sum()), int(b.sum()))
    share = float((a & b).sum() / smaller) if smaller else 0.0
    return share, float(not second.contains(first.mean)), float(not first.contains(second.mean))


def comparison_grid(samples: dict[str, Array]) -> Array:
    """Return points of the sphere, equally spaced in the tangent plane between the two criteria."""
    means = np.array([frechet.mean(samples[name], _SPACE).value for name in PAIR])
    middle = _SPACE.project(means.sum(axis=0))
    side = np.linspace(-_REACH, _REACH, _GRID)
    return _SPACE.exp_coords(middle, np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2))


class Occupations(Experiment):
    """Private regions of four mean directions, how two of them overlap, and whether they hold what they should."""

    name = "jiang2025/occupations"
    title = "Fig. 5: regions for mean judgements of occupations, S^2"
    needs = (FILE,)

    def tasks(self, quick: bool) -> list[Task]:
        """Return draws on the data, and samples drawn from the 48 people as a population."""
        draws, samples = (2, 2) if quick else (40, 100)
        half = draws // 2
        tasks = [Task({"kind": "draws", "first": i, "count": half}, weight=half) for i in (0, half)]
        chunk = max(1, samples // 4)
        return tasks + [
            Task({"kind": "samples", "first": i, "count": chunk}, weight=chunk) for i in range(0, samples, chunk)
        ]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Draw regions."""
        rng = task.generator(self.name)
        samples = load_criteria(data_file(data, FILE, SOURCE))
        numbers = range(task.settings["first"], task.settings["first"] + task.settings["count"])
        if task.settings["kind"] == "draws":
            return [row for number in numbers for row in _draws(samples, number, rng)]
        return [row for number in numbers for row in _samples(samples, number, rng)]

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return the overlap, the radii and the coverage."""
        return [_overlaps(rows), _radii(rows), _coverage(rows)]

    def figure(self, rows: list[Row]) -> Figure:
        """Draw the first draw: each criterion and the pair, a row for each mu."""
        figure = canvas.new_figure(
            "Judgements of occupations",
            "95 % regions of mean directions, 48 people; degrees; one draw of the noise",
            not_private("seeded simulation"),
            [f"{SOURCE}.", "mu is for one criterion; everybody is in all four, which together cost 2 mu."],
            4.4,
        )
        panels = figure.subplots(2, 5, sharex="col", sharey=True)
        edges = group([row for row in rows if row["kind"] == "edge"], "mu", "who", "criterion")
        for line, mu in zip(panels, MU, strict=True):
            for axes, names in zip(line, [*[(name,) for name in CRITERIA], PAIR], strict=True):
                for (at, who, criterion), edge in edges.items():
                    if criterion in names and at in (NONE, mu):
                        style = "--" if len(names) > 1 and criterion == PAIR[1] else "-"
                        curve = np.array([(row["x"], row["y"]) for row in edge])
                        axes.plot(*curve.T, style, color=_COLORS[who], linewidth=1.2, label=_LABELS[who])
                title = names[0].replace("_", " ") if len(names) == 1 else "reward dashed"
                canvas.caption(axes, title if mu == MU[0] else "")
                middle = np.mean([row["x"] for name in names for row in edges[NONE, PLAIN, name]])
                axes.set_xlim(middle - _WINDOW, middle + _WINDOW)
                axes.set_ylim(-_WINDOW, _WINDOW)
                axes.set_aspect("equal")
                canvas.tidy(axes, "longitude", f"mu = {mu:g}, latitude", grid="both")
                axes.label_outer()
        return canvas.keyed(figure, *panels.ravel())


def _draws(samples: dict[str, Array], number: int, rng: np.random.Generator) -> list[Row]:
    """Regions on the data themselves, for one draw of the noise."""
    rows: list[Row] = []
    grid = comparison_grid(samples)
    plain = {name: plain_region(X) for name, X in samples.items()}
    cut = {name: their_sample(X) for name, X in samples.items()}
    for mu in MU if number else (NONE, *MU):
        if isinstance(mu, str):
            methods = {
                PLAIN: plain,
                CUT: {name: their_region(*cut[name], math.inf, rng) for name in CRITERIA},
                DIRECTION: {name: direction_region(X) for name, X in samples.items()},
                CONE: {name: direction_region(X, circular=True) for name, X in samples.items()},
            }
        else:
            methods = {
                THEIRS: {name: their_region(*cut[name], mu, rng) for name in CRITERIA},
                OURS: {name: our_region(samples[name], mu, rng) for name in CRITERIA},
            }
        for who, regions in methods.items():
            said = {"draw": number, "mu": mu, "who": who}
            for name, region in regions.items():
                away = float(_SPACE.dist(plain[name].mean, region.mean))
                rows.append({"kind": "radius", **said, "criterion": name, "radius": region.radius, "distance": away})
                if number == 0 and who in _COLORS:
                    rows += _edge({**said, "criterion": name}, region)
            share, *apart = overlap(regions[PAIR[0]], regions[PAIR[1]], grid)
            rows.append({"kind": "overlap", **said, "share": share, "apart": float(all(apart))})
    return rows


def _samples(samples: dict[str, Array], number: int, rng: np.random.Generator) -> list[Row]:
    """Draw 48 people with replacement, and see whether regions hold the mean of all 48."""
    rows: list[Row] = []
    for name, population in samples.items():
        truth = frechet.mean(population, _SPACE).value
        X = population[rng.integers(0, len(population), len(population))]
        ball, sample = their_sample(X)
        found: list[tuple[float | str, str, Found]] = [
            (NONE, PLAIN, plain_region(X)), (NONE, CUT, their_region(ball, sample, math.inf, rng)),
        ]  # fmt: skip
        for mu in MU:
            found.append((mu, THEIRS, their_region(ball, sample, mu, rng)))
            found += [(mu, f"{OURS}, radius {radius:.2f}", our_region(X, mu, rng, radius)) for radius in RADII]
        for level, who, region in found:
            covered = float(region.contains(truth))
            said = {"kind": "covered", "draw": number, "mu": level, "who": who, "criterion": name}
            rows.append({**said, "covered": covered})
    return rows


def _edge(said: Row, region: Found) -> list[Row]:
    """Return points of a region's boundary, found by halving along rays from its mean."""
    turn = np.linspace(0.0, 2 * np.pi, 73)
    rays = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    low, high = np.zeros(len(turn)), np.full(len(turn), 1.5)
    for _ in range(20):
        middle = (low + high) / 2
        inside = region.contains(_SPACE.exp_coords(region.mean, middle[:, None] * rays))
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    edge = _SPACE.exp_coords(region.mean, low[:, None] * rays)
    return [{"kind": "edge", **said, "x": float(x), "y": float(y)} for x, y in _degrees(edge)]


def _degrees(points: Array) -> FloatArray:
    longitude = np.degrees(np.arctan2(points[:, 1], points[:, 0]))
    return np.stack([longitude, np.degrees(np.arcsin(np.clip(points[:, 2], -1, 1)))], axis=-1)


def _overlaps(rows: list[Row]) -> ResultTable:
    lines = []
    for (mu, who), mine in group([row for row in rows if row["kind"] == "overlap"], "mu", "who").items():
        apart = _shown(mine, "apart")
        lines.append([_mu(mu), who, _shown(mine, "share"), apart])
    headings = ["mu", "method", "share of the smaller region in both", "both means outside the other region"]
    return ResultTable(headings, lines, f"Social status and reward, {_count(rows, 'overlap')} draws of the noise")


def _radii(rows: list[Row]) -> ResultTable:
    mine = [row for row in rows if row["kind"] == "radius"]
    lines = []
    for (mu, who), part in group(mine, "mu", "who").items():
        cells = [f"{_shown(of, 'radius')}; {_shown(of, 'distance')}" for of in group(part, "criterion").values()]
        lines.append([_mu(mu), who, *cells])
    return ResultTable(
        ["mu", "method", *(name.replace("_", " ") for name in CRITERIA)], lines,
        "Effective radius; distance of the estimate from the mean of all data",
    )  # fmt: skip


def _coverage(rows: list[Row]) -> ResultTable:
    lines = []
    for (mu, who), part in group([row for row in rows if row["kind"] == "covered"], "mu", "who").items():
        cells = [_shown(of, "covered") for of in group(part, "criterion").values()]
        lines.append([_mu(mu), who, *cells])
    return ResultTable(
        ["mu", "method", *(name.replace("_", " ") for name in CRITERIA)], lines,
        f"Coverage of the mean of the 48 people, when 48 are drawn from them with replacement, "
        f"{_count(rows, 'covered')} times: 0.95 is meant",
    )  # fmt: skip


def _mu(mu: float | str) -> str:
    return mu if isinstance(mu, str) else f"{mu:g}"


def _shown(rows: list[Row], name: str) -> str:
    return str(Sample([row[name] for row in rows]))


def _count(rows: list[Row], kind: str) -> int:
    return 1 + max(int(row["draw"]) for row in rows if row["kind"] == kind)
