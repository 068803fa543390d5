"""A released ball inside the public one it was looked for in, as distances."""

from __future__ import annotations

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.plots import canvas
from dpmanifold.plots.spread import circle
from dpmanifold.release import Release


def balls(result: Release) -> canvas.Figure:
    """Draw a released ball and the public one around it: radii and the distance of the centres are true.

    Parameters
    ----------
    result : what `private_ball` returned

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> outer = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 100.0)
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> figure = balls(dpm.private_ball(X, outer, dpm.GDP(1.0), units=dpm.EACH_RECORD))
    >>> figure.texts[0].get_text()
    'A smaller ball, released'
    """
    if not isinstance(result, Release) or not isinstance(result.value, Ball):
        raise InvalidArgumentError(
            f"balls draws the Release of a ball, got {shown(result)}. Make one with private_ball."
        )
    outer, inner = result.ball, result.value
    apart = float(outer.space.dist(outer.center, inner.center))
    words = (
        f"radius {inner.radius:.4g} instead of {outer.radius:.4g}, its centre {apart:.4g} from that of the public one"
    )
    figure = canvas.released("A smaller ball, released", words, [result], 4.4)
    axes = figure.subplots()
    axes.plot(*(outer.radius * circle(361)).T, color=canvas.BALL, linewidth=1.6, label="public ball")
    axes.plot(0, 0, "+", color=canvas.BALL, markersize=8)
    edge = inner.radius * circle(361) + [apart, 0.0]
    axes.fill(*edge.T, color=canvas.ESTIMATE, alpha=0.2, linewidth=0)
    axes.plot(*edge.T, color=canvas.ESTIMATE, linewidth=1.6, label="released ball")
    axes.plot(apart, 0, "o", color=canvas.BLACK, markersize=4, label="its centre")
    axes.set_aspect("equal")
    axes.margins(0.06)
    canvas.tidy(axes, "distance", "distance", grid="both")
    return canvas.keyed(figure, axes)
