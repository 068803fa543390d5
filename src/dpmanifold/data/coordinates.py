"""Points given in other coordinates, and written in them: angles on spheres, and the models of hyperbolic space.

Directions are unit vectors (x, y, z), and points of hyperbolic space lie on the hyperboloid (first coordinate largest):
this is how the spaces take them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpmanifold._cells import REAL, as_cells, numbers_of, record_cells, refuse_text
from dpmanifold._check import Array, FloatArray, index_text, numeric_array, shown
from dpmanifold.data._files import listed
from dpmanifold.data.table_files import Table, select_columns
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public
from dpmanifold.manifolds import SPACES, Manifold
from dpmanifold.manifolds.coordinate_systems import Coordinates


def from_coordinates(array: object, coordinates: str, *, invalid: str = "nan", look: bool = True) -> FloatArray:
    """Return points as their spaces take them, from other coordinates; each row by itself.

    On :class:`Sphere` (2), two columns of degrees; `-radians` after a name (but for "strikedip") takes radians:

    - "lonlat": longitude (east of the prime meridian) and latitude (north of the equator), as geographers count them.
      x points to longitude 0 on the equator, y to 90 degrees east, z to the north pole.
    - "colatlon": colatitude, the angle from the north pole, and longitude: the physicists' theta and phi.
    - "decinc": declination (clockwise from north, seen from above) and inclination (down from the horizontal), as
      palaeomagnetists count them. x points north, y east, z *down*: (cos I cos D, cos I sin D, sin I).
    - "strikedip": planes by strike (by the right-hand rule: the plane dips to the right of it) and dip, from 0 to 180
      degrees, above 90 if overturned; as their poles, the normals that point down, or up if overturned. x north,
      y east, z down.

    On :class:`Hyperbolic` (d), of curvature -1, d columns:

    - "poincare": points of the unit ball, in which angles are true.
    - "klein": points of the unit ball, in which geodesics are straight (Beltrami and Klein).
    - "halfspace": (x, y) with y above 0, the last column. (0, 1) is the origin. "halfplane" is the same for d = 2.
    - "polar": for d = 2, the distance from the origin and an angle in radians.

    A row beyond these limits (a latitude above 90 degrees, a point outside the ball) is no point.

    Parameters
    ----------
    array : one row per record
    coordinates : the name of the system
    invalid : "nan" makes rows that are no points NaN, which is then the statistic's business (its own `invalid=`);
        "raise" refuses them and says where the first is
    look : whether to refuse rows that are latitude first by the look of most of them. False judges row by row, as
        reading a block at a time must

    Examples
    --------
    >>> from_coordinates([[0.0, 0.0], [90.0, 0.0], [12.0, 90.0]], "lonlat").round(12) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    >>> from_coordinates([[0.5, 0.0]], "poincare")
    array([[1.66666667, 1.33333333, 0.        ]])
    >>> from_coordinates([[0.1, 0.2], [3.0, 0.0]], "poincare", invalid="raise")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidDataError: array: the row at index 1 is outside the unit ball, or not finite. Correct it,
    or leave it out.
    """
    systems = {name: system for kind in SPACES for name, system in kind.coordinates.items()}
    if coordinates not in systems:
        raise InvalidArgumentError(
            "`coordinates` must be one of {systems}, got {got}.",
            systems=Public(", ".join(systems)),
            got=shown(coordinates),
        )
    if invalid not in ("nan", "raise"):
        raise InvalidArgumentError('`invalid` must be "nan" or "raise", got {got}.', got=shown(invalid))
    given = as_cells(array, "array")
    refuse_text(given, "array")
    values = _rows(given, len(systems[coordinates].axes)) if given.dtype.kind == "O" else numbers_of(given)
    if values.ndim != 2 or values.shape[1] == 0:
        raise InvalidDataError(
            "array must hold one row of real coordinates per record, got shape {shape}.", shape=Public(values.shape)
        )
    system = systems[coordinates]
    doubt = system.doubt(values) if look and system.doubt is not None else None
    if doubt is not None:
        raise InvalidDataError("{doubt}", doubt=doubt)
    with np.errstate(all="ignore"):
        points = system.read(values)
    bad = np.asarray(~np.isfinite(points).all(axis=1))
    if invalid == "raise" and bad.any():
        raise InvalidDataError(
            "array: the row{index_text} is {limits}. Correct it, or leave it out.",
            index_text=Public(index_text(bad)),
            limits=Public(system.limits),
        )
    return points


def _rows(rows: Array, width: int) -> FloatArray:
    """Return rows of objects as numbers, each by itself: NaN where one is none, or has another length."""
    width = width or (rows.shape[1] if rows.ndim > 1 else 0)
    if not width:
        raise InvalidDataError("array must have as many numbers in every row. Give an array (n, d) of numbers.")
    found = [record_cells(row, {REAL: (width,)}) for row in rows]
    return np.array([np.full(width, np.nan) if row is None else row for row in found]).reshape(-1, width)


def to_coordinates(points: object, space: Manifold, coordinates: str) -> FloatArray:
    """Return points of a space in other coordinates, the way back of :func:`from_coordinates`: a row per point.

    Longitudes are in (-180, 180], declinations and strikes in [0, 360); at a pole, where any would do, they are 0.

    Of a released point this is post-processing: it costs nothing.

    Parameters
    ----------
    points : (..., *space.shape), such as `release.value`
    space : the space, of curvature 1 or -1
    coordinates : one of its systems, see :func:`from_coordinates`

    Returns
    -------
    array (..., columns) : for one point a row, (columns,)

    Examples
    --------
    >>> from dpmanifold import Sphere
    >>> to_coordinates([0.0, 1.0, 0.0], Sphere(2), "lonlat")
    array([90.,  0.])
    >>> paris = from_coordinates([[2.35, 48.85]], "lonlat")
    >>> to_coordinates(paris, Sphere(2), "lonlat").round(6)
    array([[ 2.35, 48.85]])
    """
    if not isinstance(space, Manifold):
        raise InvalidArgumentError(
            "`space` must be a space such as Sphere(2) or Hyperbolic(2), got {got}.", got=shown(space)
        )
    system = system_of(space, coordinates)
    array = numeric_array(points, "points")
    reason = space.check(array)
    if reason is not None:
        raise InvalidDataError("points: {reason}", reason=reason)
    with np.errstate(all="ignore"):
        rows = system.write(array.reshape(-1, *space.shape))  # type: ignore[misc]
    return rows.reshape(*array.shape[: array.ndim - len(space.shape)], rows.shape[1])


def system_of(space: Manifold, coordinates: object) -> Coordinates:
    """Return a system in which points of a space can be written, or say which there are."""
    usable = {name: system for name, system in space.coordinates.items() if system.dim in (None, space.dim)}
    if coordinates not in usable:
        known = f"must be one of {', '.join(usable)} on {space!r}" if usable else f"has no meaning on {space!r}"
        raise InvalidArgumentError("coordinates {known}, got {got}.", known=Public(known), got=shown(coordinates))
    system = usable[str(coordinates)]
    if system.write is None:
        raise InvalidArgumentError(
            "coordinates {coordinates!r} can only be read: points are not written in them.", coordinates=coordinates
        )
    if not np.isclose(np.linalg.norm(space.origin), 1.0):
        raise InvalidArgumentError(
            "coordinates belong to curvature 1 or -1, and {space!r} has another. Rescale.", space=Public(space)
        )
    return system


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
        raise InvalidArgumentError(
            "`columns` is needed: {name!r} has several of {several}. Name one pair.",
            name=table.path.name,
            several=several,
        )
    return (found[0], named_coordinates(found[0], systems)) if found else (None, None)
