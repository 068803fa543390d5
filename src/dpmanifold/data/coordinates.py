"""Points given in other coordinates: degrees on the globe and in palaeomagnetism, and the Poincaré ball.

Directions are unit vectors (x, y, z), and points of hyperbolic space lie on the hyperboloid (first coordinate largest):
this is how the spaces take them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpmanifold._check import Array, FloatArray, numeric_array, shown
from dpmanifold.data._files import PathLike, checked_file, listed
from dpmanifold.data.tables import open_table, select_columns
from dpmanifold.errors import InvalidArgumentError, InvalidDataError

_NAMES = {
    ("lon", "lat"): "lonlat",
    ("long", "lat"): "lonlat",
    ("longitude", "latitude"): "lonlat",
    ("dec", "inc"): "decinc",
    ("declination", "inclination"): "decinc",
}
_STEEPEST = 90.0


def from_coordinates(array: object, coordinates: str) -> FloatArray:
    """Return points as their spaces take them, from other coordinates; a row that is none becomes NaN.

    - "lonlat": (n, 2) degrees of longitude (east of the prime meridian) and latitude (north of the equator), as
      geographers count them. x points to longitude 0 on the equator, y to 90 degrees east, z to the north pole.
    - "decinc": (n, 2) degrees of declination (clockwise from north, seen from above) and inclination (down from the
      horizontal), as palaeomagnetists count them. x points north, y east, z *down*.
    - "poincare": (n, d) points of the unit ball, of curvature -1, become points (n, d + 1) of :class:`Hyperbolic`.

    A latitude or inclination beyond 90 degrees, and a point outside the unit ball, is no point and becomes NaN.

    Parameters
    ----------
    array : one row per record
    coordinates : "lonlat", "decinc" or "poincare"

    Examples
    --------
    >>> from_coordinates([[0.0, 0.0], [90.0, 0.0], [12.0, 90.0]], "lonlat").round(12) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    >>> from_coordinates([[0.5, 0.0]], "poincare")
    array([[1.66666667, 1.33333333, 0.        ]])
    """
    if coordinates not in COORDINATES:
        raise InvalidArgumentError(f"coordinates must be one of {', '.join(COORDINATES)}, got {shown(coordinates)}.")
    values = numeric_array(array, "array")
    if values.ndim != 2 or values.shape[1] == 0 or values.dtype.kind == "c":
        raise InvalidDataError(f"array must hold one row of real coordinates per record, got shape {values.shape}.")
    with np.errstate(all="ignore"):
        return COORDINATES[coordinates](values)


def named_coordinates(names: Sequence[str]) -> str | None:
    """Return the coordinates that two columns hold by their names, or None.

    >>> named_coordinates(["Longitude", "Latitude"]), named_coordinates(["x1", "x2"])
    ('lonlat', None)
    """
    pair = [name.strip().casefold() for name in names]
    return next((kind for known, kind in _NAMES.items() if list(known) == pair), None)


def angle_columns(path: PathLike, columns: list[str] | None) -> tuple[list[str] | None, str | None]:
    """Return the columns of a table of directions, and the coordinates they are by their names, if they are degrees.

    Without `columns`, the one pair named like lon and lat, or dec and inc, whatever other columns there are.
    """
    file = checked_file(path)
    names = open_table(file).names
    if columns is not None:
        return columns, named_coordinates(select_columns(names, columns, file))
    folded = {name.strip().casefold(): name for name in names}
    found = [[folded[first], folded[second]] for first, second in _NAMES if first in folded and second in folded]
    if len(found) > 1:
        raise InvalidArgumentError(
            f"columns is needed: {file.name!r} has several of {listed(name for pair in found for name in pair)}. "
            "Name one pair."
        )
    return (found[0], named_coordinates(found[0])) if found else (None, None)


def _from_degrees(values: Array) -> FloatArray:
    if values.shape[1] != 2:
        raise InvalidDataError(
            f"array must have 2 columns of degrees, got {values.shape[1]}. Choose them with columns=."
        )
    steep = np.abs(values[:, 1]) > _STEEPEST
    if 2 * int(steep.sum()) > len(values):
        raise InvalidDataError(
            "most rows have more than 90 degrees in the second column, which is the latitude or inclination. Give the "
            "longitude or declination first."
        )
    around, up = np.radians(values[:, 0]), np.radians(values[:, 1])
    points = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=1)
    points[steep | ~np.isfinite(values).all(axis=1)] = np.nan
    return points


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


COORDINATES: dict[str, Callable[[Array], FloatArray]] = {
    "lonlat": _from_degrees,
    "decinc": _from_degrees,
    "poincare": _from_poincare,
}

__all__ = ["from_coordinates"]
