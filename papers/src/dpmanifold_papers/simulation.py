"""What experiments on simulated records share: records in a ball, their means, noise about them, curves of errors.

Seeded throughout: nothing here is private. Balls are about the origin of their space, so that the frame in which means
are computed and noise is drawn is the space itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet.solver import solve_groups
from dpmanifold.manifolds import SPD, Euclidean, Sphere
from dpmanifold.noise import RiemannianLaplace
from dpmanifold.noise.distance import DistanceLaw
from dpmanifold.noise.source import RandomSource
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import not_private
from dpmanifold_papers.framework import Row, Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAP = Ball(Sphere(2), Sphere(2).origin, math.pi / 8)
"""The ball of both papers on S^2."""
MATRICES = Ball(SPD(2, metric="riemann"), np.eye(2), 1.5)
"""The ball of both papers on SPD(2): about the identity, which is the mean of the Wishart law."""

_AT_ONCE = 200_000  # records whose means are solved together


def polar_records(repetitions: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw points of the cap, both polar coordinates uniform; (repetitions, n, 3).

    Examples
    --------
    >>> X = polar_records(2, 5, np.random.default_rng(0))
    >>> X.shape, bool(CAP.contains(X).all())
    ((2, 5, 3), True)
    """
    away = CAP.radius * rng.random((repetitions, n))
    turn = 2 * np.pi * rng.random((repetitions, n))
    c = away[..., None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    return np.asarray(CAP.space.exp_coords(CAP.center, c * (1 - 1e-12)))


def wishart_records(repetitions: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw matrices of the Wishart law with 2 degrees of freedom and mean I, given that they are in the ball.

    Examples
    --------
    >>> X = wishart_records(2, 5, np.random.default_rng(0))
    >>> X.shape, bool(MATRICES.contains(X).all())
    ((2, 5, 2, 2), True)
    """
    wanted, found, kept = repetitions * n, 0, []
    while found < wanted:
        factor = rng.standard_normal((4 * (wanted - found) + 50, 2, 2)) / math.sqrt(2)
        # Eigenvalues from trace and determinant: nearly singular draws are outside anyway.
        half = (factor**2).sum(axis=(1, 2)) / 2
        root = np.linalg.det(factor) ** 2
        high = half + np.sqrt(np.maximum(half**2 - root, 0.0))
        away = np.hypot(np.log(high), np.log(np.maximum(root, 1e-300) / high))
        chosen = factor[away <= MATRICES.radius * (1 - 1e-12)]
        kept.append(chosen @ chosen.transpose(0, 2, 1))
        found += len(chosen)
    return np.asarray(np.concatenate(kept)[:wanted].reshape(repetitions, n, 2, 2))


def means_of(ball: Ball, X: Array) -> Array:
    """Return the Fréchet means of many data sets at once, (repetitions, n, *shape) -> (repetitions, *shape).

    Examples
    --------
    >>> float(CAP.space.dist(CAP.center, means_of(CAP, polar_records(1, 4000, np.random.default_rng(0)))[0])) < 0.02
    True
    """
    repetitions, n = X.shape[:2]
    tol = frechet.default_tol(ball, n)
    step = max(1, _AT_ONCE // n)
    found = []
    for start in range(0, repetitions, step):
        block = X[start : start + step]
        group = np.repeat(np.arange(len(block)), n)
        weights = np.full(len(group), 1 / n)
        points = block.reshape(-1, *ball.space.shape)
        found.append(solve_groups(ball.space, ball, points, weights, group, len(block), tol, 200).points)
    return np.concatenate(found)


def noisy(law: DistanceLaw, means: Array, source: RandomSource) -> Array:
    """Draw once about each of many means: the law's coordinates do not depend on the footpoint.

    Examples
    --------
    >>> from dpmanifold.noise.source import SimulationSource
    >>> law = RiemannianLaplace(CAP.space, CAP.center, 0.1)
    >>> noisy(law, CAP.center[None].repeat(4, axis=0), SimulationSource(0)).shape
    (4, 3)
    """
    c, _ = law.sample_coords(len(means), source)
    return law.space.exp_coords(means, c)


def flat_noise(dim: int, scale: float, n: int, source: RandomSource) -> FloatArray:
    """Draw Euclidean Laplace noise: density exp(-|v|/scale) on R^dim; (n, dim).

    Examples
    --------
    >>> from dpmanifold.noise.source import SimulationSource
    >>> flat_noise(3, 0.1, 4, SimulationSource(0)).shape
    (4, 3)
    """
    return RiemannianLaplace(Euclidean(dim), np.zeros(dim), scale).sample_coords(n, source)[0]


def vech(matrices: FloatArray) -> FloatArray:
    """Return the upper triangle of 2 x 2 matrices, unweighted: (..., 2, 2) -> (..., 3).

    Examples
    --------
    >>> vech(np.array([[1.0, 2.0], [2.0, 3.0]]))
    array([1., 2., 3.])
    """
    return np.stack([matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]], axis=-1)


def summary(values: FloatArray) -> Row:
    """Return mean, standard error and count of repetitions.

    Examples
    --------
    >>> summary(np.array([1.0, 3.0]))
    {'mean': 2.0, 'error': 1.0, 'count': 2}
    """
    return {
        "mean": float(values.mean()),
        "error": float(values.std(ddof=1) / math.sqrt(len(values))),
        "count": len(values),
    }


def estimate(mean: float, error: float) -> Sample:
    """Return a sample with this mean and this standard error, to be shown like any other.

    Examples
    --------
    >>> print(estimate(2.0, 0.1))
    2 ± 0.1
    """
    return Sample((mean - error, mean + error))


def quotient(a: Row, b: Row) -> Sample:
    """Return the ratio of two independent means, its error by the delta method.

    Examples
    --------
    >>> print(quotient({"mean": 1.0, "error": 0.01}, {"mean": 2.0, "error": 0.0}))
    0.5 ± 0.005
    """
    ratio = a["mean"] / b["mean"]
    return estimate(ratio, ratio * math.hypot(a["error"] / a["mean"], b["error"] / b["mean"]))


def average(samples: Sequence[Sample]) -> Sample:
    """Return the plain average of independent estimates.

    Examples
    --------
    >>> print(average([estimate(1.0, 0.3), estimate(2.0, 0.4)]))
    1.5 ± 0.25
    """
    errors = [sample.error for sample in samples]
    return estimate(sum(sample.mean for sample in samples) / len(samples), math.hypot(*errors) / len(samples))


def largest_difference(radius: float) -> float:
    """Return N(r) of theory section 3 on the unit sphere: the largest |log_x p - log_x q| over a cap, numerically.

    x, p and q are on the cap's edge, p and q mirror images: one angle is left, searched on a grid.

    Examples
    --------
    >>> round(largest_difference(math.pi / 8), 4)
    0.8062
    """
    space = Sphere(2)
    turn = np.linspace(0.0, np.pi, 20_001)[1:]
    edge = space.exp_coords(space.origin, radius * np.stack([np.cos(turn), np.sin(turn)], axis=-1))
    x = space.exp_coords(space.origin, np.array([radius, 0.0]))
    mirrored = space.exp_coords(space.origin, radius * np.stack([np.cos(turn), -np.sin(turn)], axis=-1))
    return float(np.linalg.norm(space.log_coords(x, edge) - space.log_coords(x, mirrored), axis=-1).max())


# -------------------------------------------------------------------- figures


def sheet(title: str, subtitle: str, footer: Sequence[str], height: float = 4.0) -> Figure:
    """Return an empty figure with the mark of a simulation.

    Examples
    --------
    >>> sheet("A title", "", []).texts[1].get_text()
    'NOT PRIVATE: seeded'
    """
    return canvas.new_figure(title, subtitle, not_private("seeded"), footer, height)


def band(axes: Axes, rows: Iterable[Row], color: str, label: str, style: str = "-") -> None:
    """Draw means against n, shaded to twice the standard error on both sides.

    Examples
    --------
    >>> axes = sheet("A title", "", []).subplots()
    >>> band(axes, [{"n": 20, "mean": 1.0, "error": 0.1}], "#000000", "a curve")
    >>> axes.get_lines()[0].get_label()
    'a curve'
    """
    ordered = sorted(rows, key=lambda row: float(row["n"]))
    n, mean, error = (np.array([row[name] for row in ordered], dtype=float) for name in ("n", "mean", "error"))
    axes.plot(n, mean, style, color=color, linewidth=1.3, label=label)
    axes.fill_between(n, mean - 2 * error, mean + 2 * error, color=color, alpha=0.25, linewidth=0)


def times_n(rows: Iterable[Row]) -> list[Row]:
    """Return means and errors times n.

    Examples
    --------
    >>> times_n([{"n": 20, "mean": 0.1, "error": 0.01}])
    [{'n': 20, 'mean': 2.0, 'error': 0.2}]
    """
    return [{"n": row["n"], "mean": row["n"] * row["mean"], "error": row["n"] * row["error"]} for row in rows]


def one(rows: Iterable[Row], **wanted: object) -> Row:
    """Return the only row with these values.

    Examples
    --------
    >>> one([{"n": 20, "x": 1}, {"n": 30, "x": 2}], n=30)
    {'n': 30, 'x': 2}
    """
    (found,) = (row for row in rows if all(row.get(name) == value for name, value in wanted.items()))
    return found
