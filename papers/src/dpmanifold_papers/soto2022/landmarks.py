"""Releases of a mean shape landmark by landmark, as the paper's baselines have them, and smoothing of outlines."""

from __future__ import annotations

import math
import pathlib
from dataclasses import dataclass

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.data import load_landmarks
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import KendallShapes
from dpmanifold.noise.source import RandomSource
from dpmanifold_papers import simulation as sim
from dpmanifold_papers.diameters import cap_diameter

RADIUS = 0.2
PILOT = 8
"""Every eighth specimen is taken to be public; its mean shape is the centre of the ball."""
OWN = "corpus_callosa"
OWN_SUFFIXES = (".npz", ".npy", ".csv", ".parquet", ".tps")


@dataclass(frozen=True, eq=False)
class ShapeData:
    """Shapes to average: the ball, the pre-shapes in it (n, k), as digitised (n, k), the share that was clipped."""

    ball: Ball
    inside: Array
    digitised: Array
    clipped: float
    mean: Array

    @property
    def space(self) -> KendallShapes:
        """The space of shapes."""
        assert isinstance(self.ball.space, KendallShapes)
        return self.ball.space


def own_file(data: pathlib.Path | None) -> pathlib.Path | None:
    """Return the user's own landmarks, corpus_callosa with any suffix that `load_landmarks` reads, if there are any."""
    candidates = [] if data is None else [data / f"{OWN}{suffix}" for suffix in OWN_SUFFIXES]
    return next((file for file in candidates if file.is_file()), None)


def read_shapes(file: pathlib.Path, key: str | None = None) -> ShapeData:
    """Read landmarks (n, k, 2) and build the ball from every eighth specimen.

    Parameters
    ----------
    file : see :func:`dpmanifold.data.load_landmarks`
    key : of the array in an .npz file with several
    """
    landmarks, _ = load_landmarks(file, key=key)
    if len(landmarks) < 2 * PILOT or landmarks.shape[1] < 4:
        raise InvalidArgumentError(
            f"{file.name} holds {len(landmarks)} specimens of {landmarks.shape[1]} landmarks; this experiment needs at "
            f"least {2 * PILOT} of 4."
        )
    space = KendallShapes(landmarks.shape[1])
    shapes = space.as_points(landmarks, file.name, batch=True)
    public = np.arange(len(shapes)) % PILOT == 0
    center = frechet.mean(shapes[public], space).value
    ball = Ball(space, center, RADIUS, "about the mean of every eighth specimen, taken to be public")
    rest = shapes[~public]
    inside = ball.clip(rest)
    clipped = float((~ball.contains(rest)).mean())
    return ShapeData(ball, inside, rest, clipped, frechet.mean(rest, ball).value)


def aligned_mean(found: ShapeData) -> Array:
    """Return the average of configurations that were turned to fit the ball's centre."""
    overlap = found.inside @ np.conj(found.ball.center)
    return np.asarray((found.inside * (np.conj(overlap) / np.abs(overlap))[:, None]).mean(axis=0))


def landmark_scales(n: int, k: int, epsilon: float) -> dict[str, float]:
    """Return the scale of planar Laplace noise for each landmark, or for all of them at once.

    Turned to fit the centre, shapes within r of it are a cap of a sphere: two of them differ by at most 2 sin r in all
    landmarks together, which is attained, and so by no more in each. Not turned, a landmark of a centred configuration
    of size 1 is anywhere within sqrt((k-1)/k) of 0. Each landmark gets epsilon/k.

    Examples
    --------
    >>> {name: round(scale, 5) for name, scale in landmark_scales(100, 8, 1.0).items()}
    {'landmarks': 0.03179, 'landmarks, not turned': 0.14967, 'landmarks at once': 0.00397}
    """
    apart = cap_diameter(RADIUS)
    return {
        "landmarks": apart / n * k / epsilon,
        "landmarks, not turned": 2 * math.sqrt((k - 1) / k) / n * k / epsilon,
        "landmarks at once": apart / n / epsilon,
    }


def landmark_releases(found: ShapeData, epsilon: float, count: int, source: RandomSource) -> dict[str, Array]:
    """Return `count` shapes released in each of the three ways, as pre-shapes (count, k)."""
    n, k = found.inside.shape
    released: dict[str, Array] = {}
    for name, scale in landmark_scales(n, k, epsilon).items():
        if name == "landmarks at once":
            noise = sim.flat_noise(2 * k, scale, count, source).reshape(count, k, 2)
        else:
            noise = sim.flat_noise(2, scale, count * k, source).reshape(count, k, 2)
        mean = found.digitised.mean(axis=0) if name.endswith("turned") else aligned_mean(found)
        released[name] = found.space.project(mean + noise[..., 0] + 1j * noise[..., 1])
    return released


def smoothed(shapes: Array, window: int = 2) -> Array:
    """Smooth closed outlines by local linear regression in the landmark's number, with tricube weights.

    On equal steps around a closed curve the fitted slope plays no part in the middle of its window: the fit is the
    weighted average of 2 `window` + 1 landmarks.

    Examples
    --------
    >>> circle = np.exp(2j * np.pi * np.arange(60) / 60)
    >>> bool(np.allclose(smoothed(circle[None]), circle[None] * smoothed(circle[None])[0, 0]))
    True
    """
    k = shapes.shape[-1]
    offsets = np.arange(-window, window + 1)
    weights = (1 - np.abs(offsets / (window + 1)) ** 3) ** 3
    design = np.stack([np.ones_like(weights), offsets.astype(float)], axis=1)
    # First row of (D'WD)^-1 D'W: the fitted value at offset 0.
    fit: FloatArray = np.linalg.solve(design.T @ (weights[:, None] * design), design.T * weights)[0]
    neighbours = (np.arange(k)[:, None] + offsets) % k
    return np.asarray(shapes[..., neighbours] @ fit)
