"""One released tensor: its outline, and the band in which the outline may lie."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.plots import canvas
from dpmanifold.plots.projection import Camera
from dpmanifold.plots.spread import Spread, circle, ellipse, parent_release, spread_of
from dpmanifold.release import Release

_VIEW = np.array([0.5, -1.0, 0.45])
_STEP = 1e-4  # of central differences of a smooth function of order 1
# A band wider than this factor between its edges would leave nothing but the band on the paper.
_WIDEST = math.log(10.0)
_NAMES = "xyz"
_CIRCLE = circle(361)


def draw_mean(result: Release | ConfidenceRegion) -> canvas.Figure:
    """Draw the mean on SPD(2) as an ellipse, on SPD(3) as an ellipsoid with its three shadows.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), 2.0)
    >>> release = dpm.private_mean([np.eye(2)] * 50, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> len(draw_mean(release).axes)
    1
    """
    spread = spread_of(result, "tensors")
    k = len(spread.center)
    figure = canvas.released(spread.titled("tensor"), spread.sentence, [parent_release(result)], 4.4 if k == 2 else 5.8)
    if k == 2:
        axes = figure.subplots()
        _outline(axes, spread, (0, 1))
        return canvas.keyed(figure, axes)
    panels = figure.subplots(2, 2)
    _solid(panels[0, 0], spread.center, spread.what)
    shadows = panels.ravel()[1:]
    for axes, plane in zip(shadows, ((0, 1), (0, 2), (1, 2)), strict=True):
        _outline(axes, spread, plane)
        canvas.caption(axes, f"shadow in {_NAMES[plane[0]]} and {_NAMES[plane[1]]}")
    limit = max(axes.get_xlim()[1] for axes in shadows)
    for axes in shadows:  # one scale, or the smallest shadow would look as large as the others
        canvas.square(axes, limit)
    return canvas.keyed(figure, panels[0, 1])


def _solid(axes: canvas.Axes, matrix: FloatArray, what: str) -> None:
    from matplotlib.colors import to_rgb

    camera = Camera.towards(_VIEW)
    width = 1.2 * math.sqrt(float(np.linalg.eigvalsh(matrix)[-1]))
    color = np.array(to_rgb(canvas.SKY))
    axes.imshow(camera.shaded(matrix, color, width, 600), extent=(-width, width, -width, width), origin="lower")
    seen = np.linalg.inv(camera.on_paper(camera.on_paper(matrix).T))

    def shadow(x: float, y: float) -> float:
        """Below 1 in front of the ellipsoid."""
        return float(np.array([x, y]) @ seen @ np.array([x, y]))

    # Axes start at the surface, so that they show where it is.
    for name, axis in zip(_NAMES, np.eye(3), strict=True):
        start = axis / math.sqrt(float(axis @ np.linalg.solve(matrix, axis)))
        if camera.in_front(axis) < 0:
            start = -start  # the end that faces the eye
            axis, name = -axis, f"−{name}"
        ends = camera.on_paper(np.stack([start, start + 0.2 * width * axis]))
        x, y = camera.on_paper(start + 0.32 * width * axis)
        ink = "white" if shadow(x, y) < 1 else canvas.INK
        axes.plot(*ends.T, color=ink, linewidth=0.9)
        axes.text(x, y, name, fontsize=8, ha="center", va="center", color=ink)
    axes.set_aspect("equal")
    axes.axis("off")
    canvas.caption(axes, f"the released {what}")


def _outline(axes: canvas.Axes, spread: Spread, plane: tuple[int, int]) -> None:
    """Draw the shadow of the tensor on a coordinate plane, and its band."""
    middle = radii(spread.center, plane)
    directions = _CIRCLE.T
    low, high = band(spread, plane)
    drawn = bool(np.log(high / low).max() <= _WIDEST)
    if drawn:
        edge = np.concatenate([(high * directions).T, (low * directions).T[::-1]])
        axes.fill(*edge.T, color=canvas.ESTIMATE, alpha=0.25, linewidth=0, label=spread.label)
    else:
        axes.plot([], [], color="none", label=f"{spread.label}: too wide to draw")
    outline = ellipse(spread.center[np.ix_(plane, plane)])
    axes.plot(*outline.T, color=canvas.ESTIMATE, linewidth=1.5, label=f"released {spread.what}")
    axes.plot(0, 0, "+", color=canvas.GREY, markersize=6, markeredgewidth=0.8)
    limit = 1.15 * float((high if drawn else middle).max())
    canvas.square(axes, limit)
    canvas.tidy(axes, f"{_NAMES[plane[0]]} (root of eigenvalue)", f"{_NAMES[plane[1]]}", grid="both")


def radii(matrices: Array, plane: tuple[int, int]) -> FloatArray:
    """Return how far the shadow {x : x' M^-1 x <= 1} of matrices (..., k, k) reaches at each angle, (..., 361).

    M is the block of the matrix in that plane.

    Examples
    --------
    >>> radii(np.diag([4.0, 1.0]), (0, 1))[[0, 90]].round(6)
    array([2., 1.])
    """
    block = np.linalg.inv(matrices[..., plane, :][..., :, plane])[..., None, :, :]
    u = _CIRCLE
    return np.asarray(1 / np.sqrt(np.einsum("ai,...aij,aj->...a", u, np.broadcast_to(
        block, (*block.shape[:-3], len(u), 2, 2)), u)))  # fmt: skip


def band(spread: Spread, plane: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest radius at each angle over the tensors of the ellipsoid.

    The farthest tensor at an angle is looked for where the gradient of the log radius points: exact to second order
    in the size of the ellipsoid, and every tensor found is one of it.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), 2.0)
    >>> release = dpm.private_mean([np.eye(2)] * 50, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> low, high = band(spread_of(release, "tensors"), (0, 1))
    >>> bool((low < radii(release.value, (0, 1))).all() and (radii(release.value, (0, 1)) < high).all())
    True
    """
    d = len(spread.shape)
    steps = _STEP * np.eye(d)
    ahead, behind = (np.log(radii(spread.move(sign * steps), plane)) for sign in (1.0, -1.0))
    gradient = (ahead - behind).T / (2 * _STEP)  # (angles, d)
    moved = gradient @ spread.shape
    farthest = moved / np.sqrt(np.maximum((gradient * moved).sum(axis=-1, keepdims=True), 1e-300))
    count = np.arange(len(_CIRCLE))
    low = radii(spread.move(-farthest), plane)[count, count]
    high = radii(spread.move(farthest), plane)[count, count]
    return low, high
