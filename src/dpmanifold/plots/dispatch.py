"""The right picture for any result: what the command line and reports call.

Pictures of a mean have the names that spaces know them by (:attr:`Manifold.picture`). Another distribution adds one by
an entry point `dpmanifold.pictures`, or a script by `PICTURES.register`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.ledger.history import History
from dpmanifold.plots import canvas
from dpmanifold.plots.budget_use import history
from dpmanifold.plots.globe import sphere
from dpmanifold.plots.glyphs import matrix, product, tensors
from dpmanifold.plots.landmark_shapes import shape
from dpmanifold.plots.numbers import balls, interval, outlook, table, vector
from dpmanifold.plots.plan_plots import plan
from dpmanifold.plots.planes import tangent
from dpmanifold.registry import Registry
from dpmanifold.release import Release
from dpmanifold.statistic import Kind
from dpmanifold.stats.mean_plan import Plan
from dpmanifold.stats.outlook import Outlook
from dpmanifold.stats.query import QUERIES


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


_BY_KIND: dict[Kind, Callable[[Release], canvas.Figure]] = {
    Kind.NUMBER: interval, Kind.VECTOR: vector, Kind.MATRIX: table, Kind.BALL: balls,
}  # fmt: skip

_BY_TYPE: dict[type[Any], Callable[..., canvas.Figure]] = {Plan: plan, Outlook: outlook, History: history}


def show(result: object, *, links: object = None) -> canvas.Figure:
    """Draw any result: what a private call returned, that of `private_class_means` included, a plan or a history.

    Parameters
    ----------
    result : what a function of the library returned
    links : of planar shapes, which landmarks to join by lines: see :func:`shape`

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), 2.0)
    >>> show(dpm.plan_mean(500, ball, dpm.GDP(1.0))).texts[0].get_text()
    'Which mechanism adds least noise'
    >>> show("mean.json")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: there is no picture of 'mean.json'. Give what a private
    call or a plan returned; a file is read with dpmanifold.load.
    """
    match result:
        case Release():
            return _release(result, links)
        case Mapping() if result and all(isinstance(value, Release) for value in result.values()):
            draw: Callable[..., canvas.Figure] | None = tensors
        case _:
            draw = _BY_TYPE.get(type(result)) or _figure_of(type(result))
    if draw is None:
        raise InvalidArgumentError(
            f"there is no picture of {shown(result)}. Give what a private call or a plan returned; a file is read with "
            "dpmanifold.load."
        )
    if links is None:
        return draw(result)
    if "links" not in inspect.signature(draw).parameters:
        raise InvalidArgumentError(
            "links are drawn between the landmarks of a mean shape: alone, with its region or with its components."
        )
    return draw(result, links=links)


def _figure_of(kind: type[Any]) -> Callable[..., canvas.Figure] | None:
    """Return what draws results of a class, as the query that returns them says."""
    own = next((query.figure for query in QUERIES.own() if query.result is kind), "")
    name = own or next((query.figure for query in QUERIES if query.result is kind), "")
    module, _, function = name.partition(":")
    return getattr(import_module(module), function) if name else None


def _release(release: Release, links: object) -> canvas.Figure:
    """Draw what the statistic draws itself, what it is released for, or what values of its kind look like."""
    statistic = release.definition
    own = statistic.picture(release)
    if own is not None:
        return own
    concluded = statistic.conclusion(release)
    if concluded is not None:
        return show(concluded, links=links)
    if statistic.kind is Kind.POINT:
        return picture_of_mean(release, release, links=links)
    if links is not None:
        raise InvalidArgumentError(
            f"links are drawn between the landmarks of a mean shape, not of a {release.statistic}."
        )
    return _BY_KIND[statistic.kind](release)
