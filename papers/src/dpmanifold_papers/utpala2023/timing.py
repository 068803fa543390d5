"""What a chain costs beside one exact draw, and what it has drawn by then."""

from __future__ import annotations

import functools
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import integrate, special

from dpmanifold._check import Array, FloatArray
from dpmanifold.frechet import UnitPoints
from dpmanifold.linalg import symmetrize, to_vecd
from dpmanifold.mechanisms import get
from dpmanifold.noise import RiemannianLaplace
from dpmanifold.plots import canvas
from dpmanifold.privacy import ApproxDP, Promise, PureDP
from dpmanifold_papers.chains import flat_laplace_chain, metropolis
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Sample, Task, group
from dpmanifold_papers.utpala2023.drawing import log_panel, panels, sheet
from dpmanifold_papers.utpala2023.settings import ANALYTIC, DELTA, LAPLACE, SIZES, UNITS, dimension, simulated_ball

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BURN_INS = (10_000, 30_000, 50_000)
PAPER_SECONDS = {10_000: 14.0, 30_000: 36.0, 50_000: 73.0}
PAPER_FACTORS = {10_000: 9979, 30_000: 24265, 50_000: 49521}
RANDOM, FOOTPOINT = "a random point", "the mean"


def random_start(k: int, chains: int, rng: np.random.Generator) -> FloatArray:
    """Return where chains start, in coordinates at I, (chains, d): (A + A')/2, entries of A uniform in [-1, 1].

    The paper says only that the start is random; this is the random SPD matrix of geomstats, which it used.
    """
    return to_vecd(symmetrize(rng.uniform(-1, 1, (chains, k, k))))


def side_by_side(
    start: FloatArray, scale: float, marks: Sequence[int], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Run chains for the Laplace law about 0 on R^d with normal steps of the law's own scale, as the paper does.

    Parameters
    ----------
    start : (chains, d)
    scale : of the law and, in every direction, of a step
    marks : numbers of steps at which to look, increasing

    Returns
    -------
    lengths : of the states at the marks, over `scale`, (len(marks), chains)
    accepted : share of steps that every chain took, (chains,)
    """
    x = start / scale
    chains, dim = x.shape
    length = np.linalg.norm(x, axis=1)
    taken = np.zeros(chains)
    seen = np.empty((len(marks), chains))
    done, block = 0, max(1, 400_000 // (chains * dim))
    for number, mark in enumerate(marks):
        while done < mark:
            count = min(block, mark - done)
            moves = rng.standard_normal((count, chains, dim))
            thresholds = rng.standard_exponential((count, chains))
            for move, threshold in zip(moves, thresholds, strict=True):
                new = x + move
                new_length = np.sqrt(np.einsum("cd,cd->c", new, new))
                accept = new_length - length <= threshold
                x[accept], length[accept] = new[accept], new_length[accept]
                taken += accept
            done += count
        seen[number] = length
    return seen, taken / marks[-1]


def leaving_probability(dim: int) -> float:
    """Return how likely a step from the mean itself is accepted: E exp(-|z|), z standard normal on R^dim.

    Examples
    --------
    >>> round(leaving_probability(1), 4)  # 2 exp(1/2) Phi(-1)
    0.5232
    """

    def density(r: float) -> float:
        return float(
            np.exp((dim - 1) * np.log(r) - r * r / 2 - r - (dim / 2 - 1) * np.log(2) - special.gammaln(dim / 2))
        )

    middle = dim**0.5
    value, _ = integrate.quad(density, max(1e-12, middle - 12), middle + 12, limit=200)
    return float(value)


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the processor time of a call, the least of several: what else the machine does counts little."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


class Timing(Experiment):
    """Their Figure 4 (a, b). Times depend on the machine and what else it does; everything else repeats."""

    name = "utpala2023/timing"
    title = "A chain against one exact draw"

    def tasks(self, quick: bool) -> list[Task]:
        """Return tasks that measure times, and tasks that look at what chains draw."""
        sizes: Sequence[int] = (2, 10, 30) if quick else SIZES
        marks = [b // 50 for b in BURN_INS] if quick else list(BURN_INS)
        chains = 8 if quick else 20
        # Whether a chain leaves the mean is a coin: where it is neither sure nor hopeless, more of them.
        doubtful = 8 if quick else 60
        tasks = [
            Task(
                {"part": "time", "k": k, "steps": 40 if quick else 600, "marks": marks, "repeats": 5 if quick else 40},
                3 + k / 4,
            )
            for k in sizes
        ]
        starts = [(RANDOM, 0.1), (RANDOM, 0.4), (FOOTPOINT, 0.1)]
        return tasks + [
            Task(
                {
                    "part": "law",
                    "k": k,
                    "start": start,
                    "epsilon": epsilon,
                    "marks": marks,
                    "chains": doubtful if start == FOOTPOINT and 10 <= k <= 20 else chains,
                },
                2 + dimension(k) / 12,
            )
            for k in sizes
            for start, epsilon in starts
        ]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Measure, or run chains."""
        if task.settings["part"] == "time":
            return _measure(task)
        return _chains(task, task.generator(self.name))

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return times, and what chains have drawn."""
        return [_time_table(rows), _law_table(rows)]

    def figure(self, rows: list[Row]) -> Figure:
        """Return times against size, and error over its expectation."""
        footer = "epsilon = 0.1 (left) and the largest number of steps (right). Bars: 2 standard errors over chains."
        figure = sheet("A chain against one exact draw", "", footer, 4.8)
        left, right = panels(figure, 1, 2)
        times = [row for row in rows if row["part"] == "time"]
        sizes = [row["k"] for row in times]
        marks = times[0]["marks"]
        for steps, style in zip(marks, (":", "--", "-"), strict=True):
            values = [row["matrix_step"] * steps for row in times]
            left.plot(
                sizes, values, color=canvas.VERMILLION, linestyle=style, label=f"published chain, {steps:,} steps"
            )
        lines = (
            ("coordinate_chain", canvas.ORANGE, "same chain on coordinates, longest"),
            ("laplace_draw", canvas.BLUE, "exact Laplace draw"),
            ("gaussian_draw", canvas.GREEN, "tangent Gaussian draw"),
        )
        for name, color, label in lines:
            values = [row[name][-1] if isinstance(row[name], list) else row[name] for row in times]
            left.plot(sizes, values, color=color, marker="o", markersize=3, label=label)
        log_panel(left, "time of one draw", "size k of the matrices", "seconds", SIZES[::2])
        styles = {
            (RANDOM, 0.1): (canvas.VERMILLION, "o"),
            (RANDOM, 0.4): (canvas.PURPLE, "s"),
            (FOOTPOINT, 0.1): (canvas.BLACK, "v"),
        }
        for (start, epsilon), mine in group([r for r in rows if r["part"] == "law"], "start", "epsilon").items():
            color, marker = styles[start, epsilon]
            last = [row for row in mine if row["steps"] == marks[-1]]
            ks = list(dict.fromkeys(row["k"] for row in last))
            found = [Sample([r["length"] / dimension(k) for r in last if r["k"] == k]) for k in ks]
            right.errorbar(
                ks, [s.mean for s in found], [2 * s.error for s in found], color=color, marker=marker, markersize=3.5,
                linewidth=1, label=f"chain from {start}, epsilon = {epsilon:g}",
            )  # fmt: skip
        right.axhline(1.0, color=canvas.BLUE, linewidth=1)
        right.set_xticks(list(SIZES[::2]))
        canvas.tidy(right, "size k of the matrices", "error / error of the law", grid="y")
        canvas.caption(right, "is it the law that was promised?")
        return canvas.keyed(figure, left, right)


def _measure(task: Task) -> list[Row]:
    """Time chains and draws at one size; one draw each, as a matrix."""
    settings = task.settings
    k, steps, repeats = settings["k"], settings["steps"], settings["repeats"]
    ball, dim = simulated_ball(k), dimension(k)
    scale = LAPLACE.scale(ball, UNITS, 0.1, DELTA)
    law = RiemannianLaplace(ball.space, ball.center, scale)
    origin = ball.frame.origin

    def whole(name: str, promise: Promise) -> Array:
        """Calibrate, draw once, and return the matrix."""
        mechanism = get(name)
        calibration = mechanism.calibrate(ball, UNITS, promise)
        return ball.from_frame(mechanism.law(ball, calibration, origin, UnitPoints.of(origin[None], ball)).sample(1))

    laplace = functools.partial(whole, LAPLACE.mechanism, PureDP(0.1))
    gaussian = functools.partial(whole, ANALYTIC.mechanism, ApproxDP(0.1, DELTA))
    for warm in (laplace, gaussian):
        warm()
    marks = settings["marks"]
    return [
        {
            "part": "time", "k": k, "marks": marks, "steps_measured": steps,
            "matrix_step": seconds(lambda: metropolis(law, steps, scale, 0), 3) / steps,
            "coordinate_chain": [
                seconds(functools.partial(flat_laplace_chain, dim, scale, mark, scale, 0), 1) for mark in marks
            ],
            "laplace_draw": seconds(laplace, repeats), "gaussian_draw": seconds(gaussian, repeats),
        }
    ]  # fmt: skip


def _chains(task: Task, rng: np.random.Generator) -> list[Row]:
    """Run chains side by side; a row for every chain and mark."""
    settings = task.settings
    k, chains, marks = settings["k"], settings["chains"], settings["marks"]
    scale = LAPLACE.scale(simulated_ball(k), UNITS, settings["epsilon"], DELTA)
    start = random_start(k, chains, rng) if settings["start"] == RANDOM else np.zeros((chains, dimension(k)))
    seen, accepted = side_by_side(start, scale, marks, rng)
    common = {"part": "law", "k": k, "start": settings["start"], "epsilon": settings["epsilon"]}
    return [
        common
        | {"steps": mark, "chain": number, "length": float(seen[row, number]), "accepted": float(accepted[number])}
        for row, mark in enumerate(marks)
        for number in range(chains)
    ]


def _time_table(rows: list[Row]) -> ResultTable:
    body = []
    for row in rows:
        if row["part"] != "time":
            continue
        for steps, whole in zip(row["marks"], row["coordinate_chain"], strict=True):
            known = row["k"] == 30 and steps in PAPER_SECONDS
            chain = row["matrix_step"] * steps
            body.append(
                [
                    str(row["k"]), f"{steps:,}",
                    f"{PAPER_SECONDS[steps]:g} s, {PAPER_FACTORS[steps]:,}x" if known else "-",
                    f"{1e3 * PAPER_SECONDS[steps] / PAPER_FACTORS[steps]:.2f} ms" if known else "-",
                    f"{chain:.3g} s", f"{whole:.3g} s", f"{1e3 * row['gaussian_draw']:.3g} ms",
                    f"{1e3 * row['laplace_draw']:.3g} ms", f"{chain / row['laplace_draw']:,.0f}x",
                    f"{whole / row['laplace_draw']:,.0f}x",
                ]
            )  # fmt: skip
    measured = next(row["steps_measured"] for row in rows if row["part"] == "time")
    headings = ["k", "steps", "paper: chain, factor", "paper: draw that implies", "chain on matrices",
                "chain on coordinates", "tangent Gaussian draw", "exact Laplace draw",
                "chain on matrices/exact draw", "chain on coordinates/exact draw"]  # fmt: skip
    caption = (
        f"Processor time of one private mean's noise. Chains on matrices: time per step over {measured} steps, times "
        "the number of steps; chains on coordinates: run in full; draws: calibrated, drawn and made a matrix"
    )
    return ResultTable(headings, body, caption)


def _law_table(rows: list[Row]) -> ResultTable:
    body = []
    laws = group([row for row in rows if row["part"] == "law"], "k", "start", "epsilon")
    for (k, start, epsilon), mine in laws.items():
        dim = dimension(k)
        by_mark = group(mine, "steps")
        shares = [str(Sample([row["length"] / dim for row in some])) for some in by_mark.values()]
        last = list(by_mark.values())[-1]
        steps = last[0]["steps"]
        stuck = sum(row["length"] == 0 for row in last)
        expected = f"{len(last) * (1 - leaving_probability(dim)) ** steps:.1f}" if start == FOOTPOINT else "0"
        accepted = Sample([row["accepted"] for row in last])
        body.append([str(k), start, f"{epsilon:g}", *shares, str(accepted), f"{stuck} of {len(last)}", expected])
    marks = next(row["marks"] for row in rows if row["part"] == "time")
    headings = ["k", "chain starts at", "epsilon", *(f"after {mark:,} steps" for mark in marks), "accepted",
                "never moved", "expected to"]  # fmt: skip
    return ResultTable(
        headings, body, "Length of the noise over that of the law, Gamma(d); accepted in the paper: 50 to 65 %"
    )
