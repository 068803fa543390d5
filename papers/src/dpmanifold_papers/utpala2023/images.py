"""Private class means of image descriptors: the published ball, our public ball, and a smaller ball found first."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.data import descriptor_ball
from dpmanifold.plots import canvas
from dpmanifold.privacy import ApproxDP
from dpmanifold.statistic import Header
from dpmanifold.stats.curator import Told
from dpmanifold.stats.draws import Hidden, fresh_bits
from dpmanifold.stats.inputs import EACH_RECORD, prepare_records
from dpmanifold.stats.mean import MEAN
from dpmanifold.stats.program import run
from dpmanifold_papers.framework import Experiment, ResultTable, Row, Sample, Task, group
from dpmanifold_papers.utpala2023.drawing import curve, log_panel, panels, sheet
from dpmanifold_papers.utpala2023.settings import ANALYTIC, LAPLACE, OURS_SHRUNK
from dpmanifold_papers.utpala2023.sources import (
    EXPECTED,
    SETS,
    absent_note,
    class_descriptors,
    missing_row,
    split_missing,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.1, 0.3, 0.5, 0.7, 0.9)
DELTAS = (1e-5, 1e-7, 1e-9)
THEIR_LAPLACE = "Laplace, published ball"
THEIRS = "tangent Gaussian, published ball"
PUBLIC = "ours, public ball"
REFINED = "ours, refined"
LINES = {
    THEIR_LAPLACE: (canvas.VERMILLION, "-"),
    THEIRS: (canvas.SKY, "-"),
    PUBLIC: (canvas.GREEN, "--"),
    REFINED: (canvas.BLUE, "-"),
}
# Draws that share a row, for the mechanisms that are drawn in batches; a refined release is a row of its own.
_BATCH = 25


class Images(Experiment):
    """Their Figures 2 and 3."""

    name = "utpala2023/images"
    title = "Private class means of image descriptors"
    needs = tuple(SETS[name].asked_for for name in EXPECTED)

    def tasks(self, quick: bool) -> list[Task]:
        """Return one task per class; if quick, one class of the three sets, some images and promises of it."""
        quickly: dict[str, Any] = {"most": 1500, "epsilons": [0.1, 0.5, 0.9], "deltas": [1e-5], "repetitions": 4}
        fully: dict[str, Any] = {"most": None, "epsilons": list(EPSILONS), "deltas": list(DELTAS), "repetitions": 20}
        return [
            Task({"dataset": one.name, "class": label, **(quickly if quick else fully)}, 1.0 + (one.name in EXPECTED))
            for one in SETS.values()
            for label in range(1 if quick else one.classes)
        ]

    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Release the mean of one class, again and again."""
        settings = task.settings
        X = class_descriptors(settings["dataset"], settings["class"], settings["most"], data)
        if X is None:
            return [missing_row(settings["dataset"])]
        rng = task.generator(self.name)
        bench = _Bench(X, settings["repetitions"], rng)
        common = {"dataset": settings["dataset"], "class": settings["class"], "n": len(X)}
        rows: list[Row] = []
        for epsilon in settings["epsilons"]:
            rows += bench.published_laplace(epsilon)
            for delta in settings["deltas"]:
                rows += bench.gaussians(epsilon, delta)
                rows += bench.refined(epsilon, delta)
        return [common | row for row in rows]

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return the errors at every promise, averaged over classes, and class by class at one promise."""
        found, absent = split_missing(rows)
        return [_promise_table(found, absent), _class_table(found)]

    def figure(self, rows: list[Row]) -> Figure:
        """Return error against epsilon, a panel for each class, at the middle delta."""
        found, _ = split_missing(rows)
        deltas = sorted({row["delta"] for row in found} - {0.0})
        delta = deltas[len(deltas) // 2]
        cells = group(found, "dataset", "class")
        names = list(dict.fromkeys(name for name, _ in cells))
        columns = max(sum(name == one for one, _ in cells) for name in names)
        footer = f"delta = {delta:g}; the Laplace promise is pure. Bands: 2 standard errors. Public data."
        figure = sheet("Error of private class means of image descriptors", "", footer, 1.5 + 1.75 * len(names))
        axes = panels(figure, len(names), columns, sharex=True, sharey=True)
        for panel in axes:
            panel.set_visible(False)
        for (name, label), mine in cells.items():
            panel = axes[names.index(name) * columns + [c for n, c in cells if n == name].index(label)]
            panel.set_visible(True)
            for mechanism, (color, style) in LINES.items():
                some = [r for r in mine if r["mechanism"] == mechanism and r["delta"] in (0.0, delta)]
                curve(panel, some, "epsilon", "error", mechanism, color, style)
            first = label == min(c for n, c in cells if n == name)
            heading = f"{name} {label}, N = {mine[0]['n']}"
            log_panel(panel, heading, "epsilon", "log-Euclidean error" if first else "", (0.1, 0.5, 0.9))
            panel.set_title(heading, fontsize=6.5, loc="left")
        return canvas.keyed(figure, *axes)


class _Bench:
    """One class: its mean, and releases of it in three balls."""

    def __init__(self, X: FloatArray, repetitions: int, rng: np.random.Generator) -> None:
        kind = X.shape[-1]
        self.n, self.repetitions, self.rng = len(X), repetitions, rng
        self.published = descriptor_ball(kind, bound="published")
        self.public = descriptor_ball(kind)
        # Every descriptor is in either ball: nothing is clipped, and the truth is the same.
        self.points = prepare_records(X, self.public, EACH_RECORD, "raise", Told(confirm=True))[0]
        self.mean = self.points.mean()
        self.truth = self.public.from_frame(self.mean[None])[0]

    def published_laplace(self, epsilon: float) -> list[Row]:
        """Rows of the Laplace mechanism in the published ball."""
        mean = self.public.space.log_coords(self.published.center, self.truth)
        expected = LAPLACE.expected(self.published, self.n, epsilon, 0.0)
        drawn = LAPLACE.draws(self.published, mean, self.n, epsilon, 0.0, _BATCH * self.repetitions, self.rng)
        return self._batches(THEIR_LAPLACE, epsilon, 0.0, self.published, drawn, mean, expected)

    def gaussians(self, epsilon: float, delta: float) -> list[Row]:
        """Rows of the tangent Gaussian in the published ball as published, and in ours, as private_mean releases it."""
        rows: list[Row] = []
        for label, case, ball in ((THEIRS, ANALYTIC, self.published), (PUBLIC, OURS_SHRUNK, self.public)):
            mean = self.public.space.log_coords(ball.center, self.truth)
            expected = case.expected(ball, self.n, epsilon, delta)
            drawn = case.draws(ball, mean, self.n, epsilon, delta, _BATCH * self.repetitions, self.rng)
            rows += self._batches(label, epsilon, delta, ball, drawn, mean, expected)
        return rows

    def refined(self, epsilon: float, delta: float) -> list[Row]:
        """Rows of whole releases with refine=True; clipping to the ball found, if one is, is part of their error."""
        promise = ApproxDP(epsilon, delta)
        # What "auto" takes here; by name, because looking at all the others for every released ball takes time.
        plan = MEAN.prepared(Header(self.public, self.n, promise), mechanism="wrapped-gaussian", refine=True)
        bits = fresh_bits(self.rng, self.public)
        releases = [run(plan, Hidden(lambda: self.points), bits)[0] for _ in range(self.repetitions)]
        away = self.public.space.dist(self.truth, np.stack([release.value for release in releases]))
        return [
            _row(REFINED, epsilon, delta, number, 1, release.ball.radius, float(error), float("nan"))
            for number, (release, error) in enumerate(zip(releases, away, strict=True))
        ]

    def _batches(
        self, label: str, epsilon: float, delta: float, ball: Ball, drawn: FloatArray, mean: Array, expected: float
    ) -> list[Row]:
        errors = np.linalg.norm(drawn - mean, axis=1).reshape(self.repetitions, _BATCH).mean(axis=1)
        return [
            _row(label, epsilon, delta, number, _BATCH, ball.radius, float(error), expected)
            for number, error in enumerate(errors)
        ]


def _row(
    label: str, epsilon: float, delta: float, number: int, draws: int, radius: float, error: float, expected: float
) -> Row:
    row: Row = {"mechanism": label, "epsilon": epsilon, "delta": delta, "repetition": number, "draws": draws}
    return row | {"radius": radius, "error": error, "expected": None if np.isnan(expected) else expected}


def _errors(rows: list[Row], mechanism: str) -> Sample:
    """Return the errors of a mechanism, repetition by repetition, averaged over the classes."""
    mine = group([row for row in rows if row["mechanism"] == mechanism], "repetition")
    return Sample([float(np.mean([row["error"] for row in some])) for some in mine.values()])


def _promise_table(rows: list[Row], absent: list[str]) -> ResultTable:
    body = []
    for (name,), mine in group(rows, "dataset").items():
        for (epsilon,), some in group(mine, "epsilon").items():
            for delta in sorted({row["delta"] for row in some} - {0.0}, reverse=True):
                these = [row for row in some if row["delta"] in (0.0, delta)]
                expected = float(np.mean([row["expected"] for row in these if row["mechanism"] == THEIRS]))
                laplace, theirs, public, refined = (_errors(these, label) for label in LINES)
                body.append(
                    [name, f"{epsilon:g}", f"{delta:g}", "figure only", f"{expected:.4g}", str(laplace), str(theirs),
                     str(public), f"{public.mean / theirs.mean:.3f}", str(refined),
                     f"{refined.mean / theirs.mean:.3f}"]
                )  # fmt: skip
    headings = ["images", "epsilon", "delta", "paper", "their formula", "their Laplace", "their tangent Gaussian",
                PUBLIC, "over theirs", REFINED, "over theirs"]  # fmt: skip
    caption = "Mean log-Euclidean error, averaged over the classes; theirs in the published ball" + absent_note(absent)
    return ResultTable(headings, body, caption)


def _class_table(rows: list[Row]) -> ResultTable:
    deltas = {row["delta"] for row in rows} - {0.0}
    delta, epsilon = max(deltas), 0.5
    body = []
    for (name, label), mine in group(rows, "dataset", "class").items():
        some = [row for row in mine if row["epsilon"] == epsilon and row["delta"] in (0.0, delta)]
        radius = Sample([row["radius"] for row in some if row["mechanism"] == REFINED])
        theirs = _errors(some, THEIRS)
        cells = [name, str(label), str(mine[0]["n"])]
        for mechanism in LINES:
            error = _errors(some, mechanism)
            cells += [str(error)] + ([f"{error.mean / theirs.mean:.3f}"] if mechanism in (PUBLIC, REFINED) else [])
        body.append([*cells, str(radius)])
    headings = ["images", "class", "N", *list(LINES)[:2], PUBLIC, "over theirs", REFINED, "over theirs", "its radius"]
    return ResultTable(headings, body, f"The same class by class, epsilon = {epsilon:g}, delta = {delta:g}")
