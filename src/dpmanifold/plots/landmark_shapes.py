"""Planar shapes: landmarks with their outline, and how far each of them may be off."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray
from dpmanifold.data.landmarks import landmark_links
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.manifolds import KendallShapes
from dpmanifold.plots import canvas
from dpmanifold.plots.spread import Spread, circle, ellipse, parent_release, spread_of
from dpmanifold.release import Release

_STEP = 1e-5  # of central differences
_OUTLINES = 24  # shapes drawn on the edge of the region
_NUMBERED = 24  # more landmarks than this are not numbered


def shape(result: Release | ConfidenceRegion, *, closed: bool = True, links: object = None) -> canvas.Figure:
    """Draw a mean shape: its landmarks and outline or links, an ellipse about each landmark, and shapes at the edge.

    An ellipse is the shadow of the whole region on its landmark: together they hold every shape of the region, turned
    to fit the mean (to first order in the region's size). Without a region they hold the noise with 95 %, and without a
    ball there are none: no error can be stated.

    Parameters
    ----------
    result : release of a mean, or a region, on KendallShapes(k)
    closed : whether the outline returns to the first landmark
    links : which landmarks to join instead of drawing an outline, counted from 1: "1-2, 2-3, 3-1", a file or pairs, see
        :func:`dpmanifold.data.landmark_links`. They must be public: the anatomy's, not found in the data

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> space = dpm.KendallShapes(6)
    >>> ball = dpm.Ball(space, space.origin, 0.3)
    >>> X = space.exp_coords(space.origin, 0.05 * np.random.default_rng(0).standard_normal((400, space.dim)))
    >>> figure = shape(dpm.private_region(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD))
    >>> figure.texts[0].get_text()
    'Mean shape with its confidence region'
    >>> figure = shape(dpm.private_mean(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD), links="1-3-5-1, 2-4-6-2")
    """
    spread = spread_of(result, "shape")
    where = spread.release.ball.space
    if where.picture != "shape":
        raise InvalidArgumentError(f"shape draws KendallShapes(k), got {where!r}. Use show(result).")
    space = cast(KendallShapes, where)
    joined = outline(space.landmarks, closed) if links is None else landmark_links(links, space.landmarks) - 1
    mean = space.to_landmarks(spread.center)
    span = np.ptp(mean, axis=0)
    height = float(np.clip(1.95 + 5.4 * (span[1] + 0.25 * span[0]) / (1.35 * span[0]), 3.4, 6.5))
    figure = canvas.released(spread.titled("shape"), spread.sentence, [parent_release(result)], height)
    axes = figure.subplots()
    _draw(axes, spread, space, mean, joined)
    axes.set_aspect("equal")
    axes.margins(0.1)
    canvas.tidy(axes, "x (shape scaled to unit size)", "y", grid="both")
    return canvas.keyed(figure, axes)


def outline(count: int, closed: bool = True) -> npt.NDArray[np.int64]:
    """Return the pairs of landmarks that follow one another, counted from 0.

    Examples
    --------
    >>> outline(3).tolist()
    [[0, 1], [1, 2], [2, 0]]
    """
    pairs = np.stack([np.arange(count), (np.arange(count) + 1) % count], axis=1)
    return pairs if closed else pairs[:-1]


def strokes(landmarks: FloatArray, joined: npt.NDArray[np.int64]) -> FloatArray:
    """Return what draws links in one stroke, (3 links, 2): the pen is lifted at NaN, after each of them.

    Examples
    --------
    >>> strokes(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[0, 1]]))
    array([[ 0.,  1.],
           [ 2.,  3.],
           [nan, nan]])
    """
    return np.pad(landmarks[joined], ((0, 0), (0, 1), (0, 0)), constant_values=np.nan).reshape(-1, 2)


def _draw(
    axes: canvas.Axes, spread: Spread, space: KendallShapes, mean: FloatArray, joined: npt.NDArray[np.int64]
) -> None:
    style: dict[str, Any] = {"solid_capstyle": "round"}
    axes.plot(
        *strokes(mean, joined).T,
        color=canvas.ESTIMATE,
        linewidth=1.5,
        label=f"released {spread.what}",
        zorder=3,
        **style,
    )
    axes.plot(*mean.T, "o", color=canvas.BLACK, markersize=3, zorder=4)
    # Noise alone is the same in all directions: no few shapes would stand for it.
    edge = spread.move(_longest(spread, _OUTLINES if spread.noise is not None else 0))
    for number, landmarks in enumerate(aligned(space, spread.center, edge)):
        label = "shapes at the region's edge" if number == 0 else None
        axes.plot(
            *strokes(landmarks, joined).T, color=canvas.GREY, linewidth=0.5, alpha=0.5, zorder=1, label=label, **style
        )
    for number, matrix in enumerate(landmark_ellipses(spread, space)):
        if spread.is_stated:
            curve = ellipse(matrix) + mean[number]
            label = f"{spread.label}, each landmark" if number == 0 else None
            axes.fill(*curve.T, facecolor=canvas.SKY, alpha=0.4, linewidth=0, zorder=2, label=label)
            axes.plot(*curve.T, color=canvas.ESTIMATE, linewidth=0.7, zorder=2)
        if len(mean) <= _NUMBERED:
            # Outwards, past the ellipse.
            away = mean[number] / max(float(np.linalg.norm(mean[number])), 1e-12)
            gap = np.sqrt(np.linalg.eigvalsh(matrix)[-1]) + 0.035 * np.ptp(mean, axis=0).max()
            x, y = mean[number] + gap * away
            axes.text(x, y, str(number + 1), fontsize=7.5, ha="center", va="center", color=canvas.INK)


def _longest(spread: Spread, count: int) -> FloatArray:
    """Offsets on the edge of the ellipsoid, in the plane of its two longest axes."""
    values, vectors = np.linalg.eigh(spread.shape)
    return np.asarray((circle(count, closed=False) * np.sqrt(values[::-1][:2])) @ vectors[:, ::-1][:, :2].T)


def aligned(space: KendallShapes, mean: Array, shapes: Array) -> FloatArray:
    """Return landmarks (n, k, 2) of shapes turned to fit the mean, in the position that the mean is drawn in.

    Examples
    --------
    >>> space = KendallShapes(5)
    >>> turned = np.exp(1j) * space.origin[None]
    >>> bool(np.allclose(aligned(space, space.origin, turned)[0], space.to_landmarks(space.origin)))
    True
    """
    landmarks = space.to_landmarks(mean)
    level = landmarks[..., 0] + 1j * landmarks[..., 1]
    overlap = (np.conj(level) * shapes).sum(axis=-1, keepdims=True)
    turned = shapes * np.conj(overlap) / np.abs(overlap)
    return np.stack([turned.real, turned.imag], axis=-1)


def landmark_ellipses(spread: Spread, space: KendallShapes) -> FloatArray:
    """Return a (2, 2) matrix per landmark: the shadow of the ellipsoid of shapes on it, (k, 2, 2).

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> space = KendallShapes(5)
    >>> ball = dpm.Ball(space, space.origin, 0.3)
    >>> release = dpm.private_mean([space.origin] * 50, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> landmark_ellipses(spread_of(release, "shape"), space).shape
    (5, 2, 2)
    """
    steps = _STEP * np.eye(len(spread.shape))
    ahead = aligned(space, spread.center, spread.move(steps))
    behind = aligned(space, spread.center, spread.move(-steps))
    derivative = (ahead - behind) / (2 * _STEP)  # (d, k, 2)
    return np.asarray(np.einsum("iky,ij,jkz->kyz", derivative, spread.shape, derivative))
