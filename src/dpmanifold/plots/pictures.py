"""Pictures of a mean by the names that spaces know them by (:attr:`Manifold.picture`).

Another distribution adds one by an entry point `dpmanifold.pictures`, or a script by `PICTURES.register`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.plots import canvas
from dpmanifold.plots.globe import sphere
from dpmanifold.plots.glyphs import tensors
from dpmanifold.plots.landmarks import shape
from dpmanifold.plots.matrices import matrix
from dpmanifold.plots.planes import tangent
from dpmanifold.plots.products import product
from dpmanifold.registry import Registry
from dpmanifold.release import Release


@dataclass(frozen=True)
class Picture:
    """A picture of a mean on some spaces.

    Parameters
    ----------
    draw : from the release of a mean, or a region, to a figure
    regions : whether it shows a region; where it does not, regions are drawn by "tangent"
    options : what else `draw` takes by keyword, of what :func:`dpmanifold.plots.show` can be told
    """

    draw: Callable[..., canvas.Figure]
    regions: bool = True
    options: tuple[str, ...] = ()


PICTURES: Registry[Picture] = Registry("picture", "dpmanifold.pictures")
PICTURES.register("tangent", Picture(tangent))
PICTURES.register("tensors", Picture(tensors))
PICTURES.register("matrix", Picture(matrix, regions=False))
PICTURES.register("sphere", Picture(sphere))
PICTURES.register("product", Picture(product, regions=False))
PICTURES.register("shape", Picture(shape, options=("links",)))


def picture_of_region(region: ConfidenceRegion, links: object = None) -> canvas.Figure:
    """Draw a mean with its region, as its space wants it drawn."""
    return picture_of_mean(region, region.mean.release, links=links)


def picture_of_mean(result: Release | ConfidenceRegion, mean: Release, **options: Any) -> canvas.Figure:
    """Draw a mean, alone or with its region, as its space wants it drawn. Options that are None were not given.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0)
    >>> release = dpm.private_mean([[0.1, 0.2]] * 50, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> picture_of_mean(release, release).texts[0].get_text()
    'Mean and its noise'
    """
    picture = PICTURES.get(mean.ball.space.picture)
    if isinstance(result, ConfidenceRegion) and not picture.regions:
        picture = PICTURES.get("tangent")
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in picture.options:
            raise InvalidArgumentError(f"{name} means nothing in a picture on {mean.ball.space!r}. Leave it out.")
    return picture.draw(result, **given)
