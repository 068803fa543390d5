"""Noise on the entries of the mean itself: what it costs, and how often the result is no covariance matrix."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import get
from dpmanifold.plots import canvas
from dpmanifold.privacy import ApproxDP, gaussian_promise, gaussian_scale, to_approx
from dpmanifold_papers.framework import ResultTable, Row
from dpmanifold_papers.utpala2023.drawing import LINES, curve, log_panel, panels, sheet
from dpmanifold_papers.utpala2023.settings import (
    ANALYTIC,
    DELTA,
    EPSILONS,
    OURS,
    SIZES,
    UNITS,
    simulated_ball,
)
from dpmanifold_papers.utpala2023.synthetic import CENTER, _Simulated, ratio, samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = "extrinsic, as published"
PROVEN = "extrinsic, proven sensitivity"


def published_sensitivity(radius: float, n: int) -> float:
    """Return 2(e^r - 1)/n, what the paper takes for the change of the mean's entries. It is too small.

    Examples
    --------
    >>> published_sensitivity(1.0, 500) < attained_change(1.0, 500)
    True
    """
    return 2 * math.expm1(radius) / n


def simulated_sensitivity(k: int, n: int) -> float:
    """Return a bound on the change of the mean's entries for the simulated matrices, whose |ln lambda| is at most 1/4.

    Their logarithms are in the ball of radius sqrt(k)/4, but Expm stretches by at most e^(1/4) there.

    Examples
    --------
    >>> [simulated_sensitivity(k, 500) <= published_sensitivity(k**0.5 / 4, 500) for k in (2, 5, 30)]
    [False, True, True]
    """
    return 2 * simulated_ball(k).radius * math.exp(0.25) / n


def attained_change(radius: float, n: int) -> float:
    """Return a Frobenius change of the log-Euclidean mean that one record of n can make in a ball about I.

    All records but one are Expm(r uu'), u a unit vector; the last one moves from there to Expm(-r uu'). The largest
    eigenvalue of the mean falls from e^r to e^(r - 2r/n).
    """
    return -math.exp(radius) * math.expm1(-2 * radius / n)


def kept_epsilon(k: int, epsilon: float) -> float:
    """Return the epsilon that the published extrinsic noise keeps at delta = 1e-6 against that one change, at best."""
    radius = simulated_ball(k).radius
    scale = gaussian_scale(published_sensitivity(radius, UNITS), ApproxDP(epsilon, DELTA))
    return to_approx(gaussian_promise(attained_change(radius, UNITS), scale), DELTA).epsilon


class SyntheticExtrinsic(_Simulated):
    """Their Figure 1, last row."""

    name = "utpala2023/synthetic-extrinsic"
    title = "Noise on the entries of the mean, and on its logarithm"

    def measure(self, ball: Ball, mean: Array, epsilon: float, draws: int, rng: np.random.Generator) -> list[Row]:
        """Return the mean Frobenius error of every mechanism, and how many of its releases are not SPD."""
        truth = ball.from_frame(mean[None])[0]
        mechanism, promise = get("extrinsic-gaussian"), ApproxDP(epsilon, DELTA)
        proven = mechanism.calibrate(ball, UNITS, promise)
        published = replace(proven, scale=gaussian_scale(published_sensitivity(ball.radius, UNITS), promise))
        drawn: dict[str, FloatArray] = {
            label: mechanism.law(ball, calibration, mean, UnitPoints.of(mean[None], ball)).sample(draws, rng=rng)
            for label, calibration in ((PUBLISHED, published), (PROVEN, proven))
        }
        for case in (ANALYTIC, OURS):
            drawn[case.label] = ball.from_frame(case.draws(ball, mean, UNITS, epsilon, DELTA, draws, rng))
        drawn[CENTER] = ball.center[None]
        rows: list[Row] = []
        for label, matrices in drawn.items():
            error = np.linalg.norm(matrices - truth, axis=(1, 2))
            broken = int((np.linalg.eigvalsh(matrices)[:, 0] <= 0).sum())
            rows.append(
                {
                    "epsilon": epsilon, "delta": DELTA, "mechanism": label, "draws": len(matrices),
                    "error": float(error.mean()), "not_spd": broken,
                }
            )  # fmt: skip
        return rows

    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return errors, counts of what is no SPD matrix, and the sensitivity."""
        return [_error_table(rows), _count_table(rows), _sensitivity_table(rows)]

    def figure(self, rows: list[Row]) -> Figure:
        """Return Frobenius error against size, and the share of releases that are not SPD."""
        footer = "500 simulated matrices, delta = 1e-6. Bands: 2 standard errors."
        figure = sheet("Noise on the entries of the mean", "", footer, 6.4)
        axes = panels(figure, 2, 3, sharex=True)
        lines = {PUBLISHED: (canvas.VERMILLION, "-"), PROVEN: (canvas.ORANGE, "--")}
        lines |= {case.label: LINES[case.label] for case in (ANALYTIC, OURS)}
        for panel, epsilon in zip(axes, EPSILONS, strict=False):
            mine = [row for row in rows if row["epsilon"] == epsilon]
            for label, (color, style) in lines.items():
                curve(panel, [row for row in mine if row["mechanism"] == label], "k", "error", label, color, style)
            log_panel(panel, f"epsilon = {epsilon:g}", "size k", "Frobenius error", SIZES[::2])
        shares = [row | {"share": row["not_spd"] / row["draws"]} for row in rows]
        for panel, label in zip(axes[4:], (PUBLISHED, PROVEN), strict=True):
            for epsilon, style in zip(EPSILONS, ("-", "--", "-.", ":"), strict=True):
                some = [row for row in shares if row["mechanism"] == label and row["epsilon"] == epsilon]
                curve(panel, some, "k", "share", f"epsilon = {epsilon:g}", canvas.INK, style)
            canvas.tidy(panel, "size k", "share not SPD", grid="y")
            canvas.caption(panel, label.replace(" sensitivity", ""))
        return canvas.keyed(figure, axes[0], axes[4])


def _error_table(rows: list[Row]) -> ResultTable:
    seen = samples(rows)
    body = []
    for k in sorted({row["k"] for row in rows}):
        for epsilon in EPSILONS:
            error = {label: seen[k, epsilon, DELTA, label]
                     for label in (PUBLISHED, PROVEN, ANALYTIC.label, OURS.label, CENTER)}  # fmt: skip
            against = ratio(error[PUBLISHED], error[ANALYTIC.label])
            body.append([str(k), f"{epsilon:g}", "above 1", against, *map(str, error.values())])
    headings = ["k", "epsilon", "extrinsic/tangent, paper", "seen", PUBLISHED, PROVEN, "tangent Gaussian, analytic",
                "ours", CENTER]  # fmt: skip
    return ResultTable(headings, body, "Mean Frobenius error")


def _count_table(rows: list[Row]) -> ResultTable:
    body = []
    for k in sorted({row["k"] for row in rows}):
        cells = [str(k)]
        for label in (PUBLISHED, PROVEN, ANALYTIC.label):
            for epsilon in EPSILONS:
                mine = [r for r in rows if (r["k"], r["epsilon"], r["mechanism"]) == (k, epsilon, label)]
                cells.append(f"{sum(r['not_spd'] for r in mine)} of {sum(r['draws'] for r in mine)}")
        body.append(cells)
    words = {PUBLISHED: "published", PROVEN: "proven", ANALYTIC.label: "tangent"}
    headings = ["k", *(f"{word}, epsilon {epsilon:g}" for word in words.values() for epsilon in EPSILONS)]
    return ResultTable(headings, body, "Releases that are not positive definite (the paper prints no counts)")


def _sensitivity_table(rows: list[Row]) -> ResultTable:
    body = []
    for k in sorted({row["k"] for row in rows}):
        radius = simulated_ball(k).radius
        published, attained = published_sensitivity(radius, UNITS), attained_change(radius, UNITS)
        proven = math.exp(radius) * 2 * radius / UNITS
        body.append(
            [str(k), f"{radius:.3f}", f"{published:.3g}", f"{attained:.3g}", f"{attained / published:.2f}",
             f"{proven:.3g}", f"{kept_epsilon(k, 0.1):.3f}", f"{kept_epsilon(k, 0.4):.3f}"]
        )  # fmt: skip
    headings = ["k", "radius r", "published 2(e^r - 1)/n", "attained by two data sets", "attained/published",
                "proven 2r e^r/n", "epsilon kept, promised 0.1", "epsilon kept, promised 0.4"]  # fmt: skip
    return ResultTable(headings, body, "Frobenius sensitivity of the mean in the ball of radius r about I, n = 500")
