"""Any space: a mean and its confidence region, in the plane of the two longest axes of its region."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.plots import canvas
from dpmanifold.plots.spread import Spread, circle, draw_parts, ellipse, parent_release, spread_of
from dpmanifold.release import Release

_MARGIN, _DOT = 1.25, 0.05
_HALVINGS = 50
_DOTTED: Any = (0, (1, 1.2))
# Steps between ticks, at most: labels such as -0.002 must not touch.
_TICKS = 6


def tangent(result: ConfidenceRegion | Release, axes: tuple[int, int] = (0, 1)) -> canvas.Figure:
    """Draw a region in the plane of two of its axes, in coordinates at the released mean, on any space.

    Distances from the middle are true. The whole region is solid; what the noise alone would make is dashed, and what
    is due to sampling for sure is dotted. Of a mean without a region, what the noise stays in with 95 % is drawn;
    without a ball no error can be stated, and the mean is drawn alone.

    Parameters
    ----------
    result : a region, or the release of a mean
    axes : which two axes of the region, 0 the longest

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Hyperbolic(3), dpm.Hyperbolic(3).origin, 2.0)
    >>> X = ball.space.exp_coords(ball.center, 0.3 * np.random.default_rng(0).standard_normal((500, 3)))
    >>> figure = tangent(dpm.private_region(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD))
    >>> for text in figure.legends[0].get_texts():
    ...     print(text.get_text().split(", ")[0])
    95 % confidence region
    the rest: allowance for the noisy spread
    noise and sampling together
    its noise alone
    its sampling alone
    released mean
    """
    spread = spread_of(result, "tangent")
    d = len(spread.shape)
    first, second = axes
    if d > 1 and not (0 <= first < d and 0 <= second < d and first != second):
        raise InvalidArgumentError(f"axes must be two different axes from 0 to {d - 1}, got {axes!r}.")
    name = spread.what.capitalize()
    bare = f"{name} and its noise" if spread.is_stated else name
    title = "Mean with its confidence region" if isinstance(result, ConfidenceRegion) else bare
    figure = canvas.released(title, spread.sentence, [parent_release(result)], 2.7 if d == 1 else 4.6)
    panel = figure.subplots()
    if d == 1:
        _line(panel, spread)
        return canvas.keyed(figure, panel)
    basis = np.linalg.eigh(spread.shape)[1][:, ::-1][:, [first, second]]
    limit = _plane(panel, spread, basis)
    x, y = "distance along the longest axis", "along the second longest"  # which must fit beside the panel
    if axes != (0, 1):
        x, y = (f"distance along axis {number + 1}" for number in axes)
    if np.ptp(np.linalg.eigvalsh(spread.shape)) <= 1e-9 * spread.reach**2:  # it is round
        x = y = "distance"
    canvas.square(panel, limit)
    panel.locator_params(nbins=_TICKS)
    canvas.tidy(panel, x, y, grid="both")
    return canvas.keyed(figure, panel)


def _plane(panel: canvas.Axes, spread: Spread, basis: FloatArray) -> float:
    """Draw the ellipses in the plane of `basis` (d, 2); return how far the picture goes."""

    def shadow(shape: FloatArray) -> FloatArray:
        return ellipse(basis.T @ shape @ basis)

    if not spread.is_stated:
        panel.plot(0, 0, "o", color=canvas.BLACK, markersize=4, label=f"released {spread.what}")
        return spread.release.ball.radius
    edge = draw_parts(panel, spread, shadow, (1.6, 1.3), spread.label)
    limit = _MARGIN * float(np.abs(edge).max())
    if spread.sampling is not None:
        # Where noise swamps the second moment, no part of the region is due to sampling for sure.
        dotted = {"color": canvas.SAMPLING, "linewidth": 1.6, "linestyle": _DOTTED, "label": spread.legend[1]}
        panel.plot(*shadow(spread.sampling).T, **dotted)
    rim = rim_in_plane(spread, basis)
    # Noise is the same in all directions: what there is to see is its size against the ball, unless it is a dot in it.
    if spread.noise is None and spread.reach > _DOT * spread.release.ball.radius:
        limit = max(limit, 1.08 * float(np.abs(rim).max()))
    if (np.abs(rim).max(axis=-1) <= limit).any():
        panel.plot(*rim.T, color=canvas.BALL, linewidth=1.3, label=canvas.ball_name(spread.release.ball))
    panel.plot(0, 0, "o", color=canvas.BLACK, markersize=4, label=f"released {spread.what}")
    return limit


def _line(panel: canvas.Axes, spread: Spread) -> None:
    """In one dimension a region is an interval: its parts one under the other."""
    noise, sampling, together, rest = spread.legend
    parts = [(spread.label, spread.shape, canvas.ESTIMATE, "solid")] if spread.is_stated else []
    if spread.noise is not None:
        parts.append((noise, spread.noise, canvas.NOISE, "--"))
    if spread.sampling is not None:
        parts.append((sampling, spread.sampling, canvas.SAMPLING, _DOTTED))
    for number, (label, shape, color, style) in enumerate(parts):
        half = float(np.sqrt(shape[0, 0]))
        panel.plot([-half, half], [-number, -number], color=color, linestyle=style, linewidth=3, label=label)
    if spread.together is not None:
        # Two bands over the region's line: what the darker one leaves of the lighter one is the allowance.
        for shape, label, alpha in ((spread.together, together, 0.45), (spread.shape, rest, 0.15)):
            half = float(np.sqrt(shape[0, 0]))
            panel.plot([-half, half], [0, 0], color=canvas.ESTIMATE, linewidth=9, alpha=alpha, solid_capstyle="butt",
                       label=label, zorder=1)  # fmt: skip
    panel.axvline(0.0, color=canvas.BLACK, linewidth=0.8, label=f"released {spread.what}")
    if not parts:
        panel.set_xlim(-spread.release.ball.radius, spread.release.ball.radius)
    panel.set_ylim(-max(len(parts), 1) + 0.4, 0.6)
    canvas.bare(panel, f"distance from the released {spread.what}")


def rim_in_plane(spread: Spread, basis: FloatArray, count: int = 241) -> FloatArray:
    """Return where rays from the mean in a plane of directions leave the public ball, (count, 2).

    The ball is convex and holds the mean, so each ray leaves it once: found by halving.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0)
    >>> release = dpm.private_mean(np.zeros((10**6, 2)), ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> float(np.linalg.norm(rim_in_plane(spread_of(release, "tangent"), np.eye(2)), axis=1).round(2).min())
    3.0
    """
    ball: Ball = spread.release.ball
    rays = circle(count)
    low, high = np.zeros(count), np.full(count, 2 * ball.radius)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        points = spread.move((middle[:, None] * rays) @ basis.T)
        inside = ball.space.dist(ball.center, points) <= ball.radius
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray(low[:, None] * rays)
