"""How a result is shown besides its own words: a mean in the coordinates that people use, and shapes with links."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass
from typing import Any

from dpmanifold._check import Array
from dpmanifold.data import landmark_links
from dpmanifold.data.coordinates import system_of, to_coordinates
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.manifolds import Manifold
from dpmanifold.release import Release
from dpmanifold.result import Result
from dpmanifold.statistic import Kind


@dataclass(frozen=True)
class Views:
    """What was said about showing a result.

    Parameters
    ----------
    coordinates : the system of coordinates in which a mean is told as well
    links : which landmarks a picture joins
    """

    coordinates: str | None = None
    links: str | None = None

    def check(self, space: Manifold, picture: pathlib.Path | None) -> None:
        """Refuse links that cannot be drawn, before anything is spent."""
        if self.links is None:
            return
        if picture is None:
            raise InvalidArgumentError("--links says which landmarks --picture joins. Give both.")
        from dpmanifold.plots import PICTURES

        if "links" not in PICTURES.get(space.picture).options:
            raise InvalidArgumentError(f"--links means nothing in a picture on {space!r}. Leave it out.")
        landmark_links(self.links, space.shape[0])

    def for_result(self, result: Result, picture: pathlib.Path | None) -> Views:
        """Refuse what a result that is there cannot be shown in."""
        mean = _mean_of(result)
        if mean is None and (self.coordinates is not None or self.links is not None):
            raise InvalidArgumentError("--coordinates and --links are about a released mean, which this is not.")
        if mean is not None:
            self.check(mean[1], picture)
            if self.coordinates is not None:
                system_of(mean[1], self.coordinates)
        return self

    def told(self, result: Result) -> list[str]:
        """Return a line with the mean in the coordinates that were named, where it is a mean and can be."""
        mean = _mean_of(result)
        if self.coordinates is None or mean is None or mean[1].check(mean[0]) is not None:
            return []  # a baseline's mean need not be a point
        value, space = mean
        try:
            words = system_of(space, self.coordinates).told(to_coordinates(value, space, self.coordinates))
        except InvalidArgumentError:  # systems of other distributions may be read and not written
            return []
        return [f"  {self.coordinates:<12} {words}"]

    @property
    def of_picture(self) -> dict[str, Any]:
        """What :func:`dpmanifold.plots.show` is told."""
        return {} if self.links is None else {"links": self.links}


PLAIN = Views()


def _mean_of(result: Result) -> tuple[Array, Manifold] | None:
    """Return a released mean and its space; None for other results."""
    match result:
        case ConfidenceRegion():
            return result.center, result.space
        case Release() if result.definition.kind is Kind.POINT:
            return result.value, result.ball.space
    return None
