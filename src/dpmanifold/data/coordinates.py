"""Points given in other coordinates: degrees on the globe and in palaeomagnetism, and the Poincaré ball.

Directions are unit vectors (x, y, z), and points of hyperbolic space lie on the hyperboloid (first coordinate largest):
this is how the spaces take them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpmanifold._check import FloatArray, numeric_array, shown
from dpmanifold.data._files import listed
from dpmanifold.data.tables import Table, select_columns
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.manifolds import SPACES
from dpmanifold.manifolds.coordinates import Coordinates


def from_coordinates(array: object, coordinates: str, *, look: bool = True) -> FloatArray:
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
    look : whether to refuse rows most of which look like other coordinates (latitude first); False for blocks of a
        larger whole, where every row is judged by itself

    Examples
    --------
    >>> from_coordinates([[0.0, 0.0], [90.0, 0.0], [12.0, 90.0]], "lonlat").round(12) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    >>> from_coordinates([[0.5, 0.0]], "poincare")
    array([[1.66666667, 1.33333333, 0.        ]])
    """
    systems = _systems()
    if coordinates not in systems:
        raise InvalidArgumentError(f"coordinates must be one of {', '.join(systems)}, got {shown(coordinates)}.")
    values = numeric_array(array, "array")
    if values.ndim != 2 or values.shape[1] == 0 or values.dtype.kind == "c":
        raise InvalidDataError(f"array must hold one row of real coordinates per record, got shape {values.shape}.")
    system = systems[coordinates]
    with np.errstate(all="ignore"):
        doubt = system.doubt(values) if look and system.doubt is not None else None
        if doubt is not None:
            raise InvalidDataError(doubt)
        return system.read(values)


def _systems() -> dict[str, Coordinates]:
    """Return the systems of coordinates of all spaces, by name."""
    return {name: system for kind in SPACES for name, system in kind.coordinates.items()}


def named_coordinates(names: Sequence[str], systems: Mapping[str, Coordinates]) -> str | None:
    """Return the coordinates that columns hold by their names, or None.

    >>> from dpmanifold.manifolds import Sphere
    >>> named_coordinates(["Longitude", "Latitude"], Sphere.coordinates)
    'lonlat'
    """
    found = tuple(name.strip().casefold() for name in names)
    return next((name for name, system in systems.items() if found in system.columns), None)


def coordinate_columns(
    table: Table, columns: Sequence[str] | None, systems: Mapping[str, Coordinates]
) -> tuple[Sequence[str] | None, str | None]:
    """Return the columns of a table to read, and the coordinates they are by their names, if they are any.

    Without `columns`, the one set named like those of a system (lon and lat, dec and inc), whatever other columns there
    are.
    """
    if columns is not None:
        return columns, named_coordinates(select_columns(table.names, columns, table.path), systems)
    folded = {name.strip().casefold(): name for name in table.names}
    known = [names for system in systems.values() for names in system.columns]
    found = [[folded[name] for name in names] for names in known if all(name in folded for name in names)]
    if len(found) > 1:
        several = listed(name for names in found for name in names)
        raise InvalidArgumentError(f"columns is needed: {table.path.name!r} has several of {several}. Name one pair.")
    return (found[0], named_coordinates(found[0], systems)) if found else (None, None)


__all__ = ["from_coordinates"]
