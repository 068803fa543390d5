"""Other coordinates in which points are written: degrees on the globe and in palaeomagnetism, and the Poincaré ball.

Each space lists its own (`Sphere.coordinates`); :func:`dpmanifold.data.from_coordinates` reads any of them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidDataError

_STEEPEST = 90.0


@dataclass(frozen=True)
class Coordinates:
    """A system of coordinates of a space.

    Parameters
    ----------
    read : from rows (n, columns) to points (n, *shape), a row that is none becoming NaN
    columns : names of columns, in small letters and in their order, by which a table of such coordinates is known
    doubt : says what is wrong with rows that look like other coordinates, or nothing; asked once and not of every
        block, as it looks at many rows together

    Examples
    --------
    >>> LONLAT.columns[0]
    ('lon', 'lat')
    """

    read: Callable[[Array], FloatArray]
    columns: tuple[tuple[str, ...], ...] = ()
    doubt: Callable[[Array], str | None] | None = None


def _from_degrees(values: Array) -> FloatArray:
    if values.shape[1] != 2:
        raise InvalidDataError(
            f"array must have 2 columns of degrees, got {values.shape[1]}. Choose them with columns=."
        )
    steep = np.abs(values[:, 1]) > _STEEPEST
    around, up = np.radians(values[:, 0]), np.radians(values[:, 1])
    points = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=1)
    points[steep | ~np.isfinite(values).all(axis=1)] = np.nan
    return points


def _latitude_first(values: Array) -> str | None:
    if values.shape[1] != 2 or 2 * int((np.abs(values[:, 1]) > _STEEPEST).sum()) <= len(values):
        return None
    return (
        "most rows have more than 90 degrees in the second column, which is the latitude or inclination. Give the "
        "longitude or declination first."
    )


def _from_poincare(values: Array) -> FloatArray:
    """Return (1 + |p|^2, 2p)/(1 - |p|^2), the stereographic projection from (-1, 0)."""
    length = np.sqrt((values * values).sum(axis=1, keepdims=True))
    # As a product, which keeps its digits close to the edge.
    room = (1 - length) * (1 + length)
    points = np.concatenate([1 + length * length, 2 * values], axis=1) / room
    points[~(length[:, 0] < 1)] = np.nan
    # On the hyperboloid to the last digit: the first coordinate from the others.
    rest = points[:, 1:]
    points[:, 0] = np.hypot(1.0, np.sqrt((rest * rest).sum(axis=1)))
    return np.asarray(points)


LONLAT = Coordinates(_from_degrees, (("lon", "lat"), ("long", "lat"), ("longitude", "latitude")), _latitude_first)
DECINC = Coordinates(_from_degrees, (("dec", "inc"), ("declination", "inclination")), _latitude_first)
POINCARE = Coordinates(_from_poincare)
