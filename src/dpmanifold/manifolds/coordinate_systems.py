"""Other coordinates in which points are written: angles on spheres, and the models of hyperbolic space.

Each space lists its own (`Sphere.coordinates`); :func:`dpmanifold.data.from_coordinates` reads any of them by name, and
:func:`dpmanifold.data.to_coordinates` writes them. All belong to curvature 1 or -1. A row that is no point becomes NaN,
and no row depends on another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidDataError, Message, Public

DEGREES, RADIANS = "degrees", "radians"
_IN_RADIANS = {DEGREES: np.pi / 180, RADIANS: 1.0}


@dataclass(frozen=True)
class Coordinates:
    """A system of coordinates of a space.

    Parameters
    ----------
    read : from rows (n, columns) to points (n, *shape), a row that is none becoming NaN
    columns : names of columns, in small letters and in their order, by which a table of such coordinates is known
    write : from points (n, *shape) to rows; None for a system that is only read
    axes : names of what a row holds, for people; none for systems of any dimension
    unit : of the numbers, for people
    dim : the dimension of the spaces it belongs to; None for any
    limits : what a row that is no point is, for a message
    doubt : from rows to what is probably wrong with them all, such as latitudes before longitudes; or None

    Examples
    --------
    >>> lonlat = ON_SPHERES["lonlat"]
    >>> lonlat.columns[0], lonlat.axes, lonlat.unit
    (('lon', 'lat'), ('longitude', 'latitude'), 'degrees')
    """

    read: Callable[[Array], FloatArray]
    columns: tuple[tuple[str, ...], ...] = ()
    write: Callable[[FloatArray], FloatArray] | None = None
    axes: tuple[str, ...] = ()
    unit: str = ""
    dim: int | None = None
    limits: str = "not finite"
    doubt: Callable[[Array], Message | None] | None = None

    def told(self, row: Array) -> str:
        """Return one row in words.

        >>> ON_SPHERES["lonlat"].told(np.array([12.25, -3.5]))
        'longitude 12.25, latitude -3.5 degrees'
        """
        digits = 8 if self.unit == RADIANS else 6
        numbers = [f"{round(float(number), digits) + 0.0:.10g}" for number in row]
        named = [f"{axis} {number}" for axis, number in zip(self.axes, numbers, strict=True)] if self.axes else numbers
        return ", ".join(named) + (f" {self.unit}" if self.unit else "")


# ---------------------------------------------------------------- angles


def _two_columns(values: Array) -> tuple[Array, Array]:
    if values.shape[1] != 2:
        raise InvalidDataError(
            "array must have 2 columns, got {shape}. Choose them with `columns=`.", shape=Public(values.shape[1])
        )
    return values[:, 0], values[:, 1]


def _directions(level: Array, around: Array, up: Array) -> FloatArray:
    """Return (x, y, z) of a length in the plane, the angle around, and z."""
    return np.stack([level * np.cos(around), level * np.sin(around), up], axis=1)


def _kept(points: FloatArray, good: Array) -> FloatArray:
    """Return the points, NaN where the row was none."""
    points[~good] = np.nan
    return points


def _around(x: Array, y: Array, unit: str, from_zero: bool = False) -> FloatArray:
    """Return the angle of (x, y) from x towards y: half a turn to either side, or up to a turn from 0.

    It is 0 where there is none, at the poles.
    """
    turn = 2 * np.pi / _IN_RADIANS[unit]
    angle = np.where((x == 0) & (y == 0), 0.0, np.arctan2(y, x) / _IN_RADIANS[unit])
    if from_zero:
        angle = np.mod(angle, turn)
        return np.where(angle >= turn, 0.0, angle)  # a rounded -0
    return np.where(angle <= -turn / 2, turn / 2, angle)  # the date line has one name


def _level(points: FloatArray) -> FloatArray:
    return np.asarray(np.hypot(points[:, 0], points[:, 1]))


def _geographic(
    unit: str, names: tuple[str, str], columns: tuple[tuple[str, ...], ...], from_zero: bool = False
) -> Coordinates:
    """Longitude and latitude, by whatever names: the second is at most a right angle."""
    scale = _IN_RADIANS[unit]
    steepest = np.pi / 2 / scale

    def read(values: Array) -> FloatArray:
        around, up = _two_columns(values)
        points = _directions(np.cos(up * scale), around * scale, np.sin(up * scale))
        return _kept(points, np.isfinite(around) & (np.abs(up) <= steepest))

    def write(points: FloatArray) -> FloatArray:
        up = np.arctan2(points[:, 2], _level(points)) / scale
        return np.stack([_around(points[:, 0], points[:, 1], unit, from_zero), up], axis=1)

    def doubt(values: Array) -> Message | None:
        if values.shape[1] == 2 and 2 * int((np.abs(values[:, 1]) > steepest).sum()) > len(values):
            return Message(
                "most rows have more than {steepest:.6g} {unit} in the second column, which is the latitude or "
                "inclination. Give the longitude or declination first.",
                steepest=Public(steepest),
                unit=Public(unit),
            )
        return None

    limits = f"a {names[1]} of more than {steepest:.6g} {unit}, or not finite"
    return Coordinates(read, columns, write, names, unit, 2, limits, doubt)


def _colatitude(unit: str, columns: tuple[tuple[str, ...], ...]) -> Coordinates:
    """The angle from the north pole, and longitude."""
    scale = _IN_RADIANS[unit]

    def read(values: Array) -> FloatArray:
        down, around = _two_columns(values)
        points = _directions(np.sin(down * scale), around * scale, np.cos(down * scale))
        return _kept(points, np.isfinite(around) & (down >= 0) & (down <= np.pi / scale))

    def write(points: FloatArray) -> FloatArray:
        down = np.arctan2(_level(points), points[:, 2]) / scale
        return np.stack([down, _around(points[:, 0], points[:, 1], unit)], axis=1)

    limits = f"a colatitude that is not from 0 to {np.pi / scale:.6g} {unit}, or not finite"
    return Coordinates(read, columns, write, ("colatitude", "longitude"), unit, 2, limits)


def _strike_dip() -> Coordinates:
    """Planes by strike (right-hand rule) and dip, as their poles: x north, y east, z down, and up beyond 90 degrees."""
    scale = _IN_RADIANS[DEGREES]

    def read(values: Array) -> FloatArray:
        strike, dip = _two_columns(values)
        points = _directions(np.sin(dip * scale), (strike - 90) * scale, np.cos(dip * scale))
        return _kept(points, np.isfinite(strike) & (dip >= 0) & (dip <= 180))

    def write(points: FloatArray) -> FloatArray:
        dip = np.arctan2(_level(points), points[:, 2]) / scale
        # The pole lies along (sin, -cos) of the strike.
        return np.stack([_around(-points[:, 1], points[:, 0], DEGREES, from_zero=True), dip], axis=1)

    limits = "a dip that is not from 0 to 180 degrees, or not finite"
    return Coordinates(read, (("strike", "dip"),), write, ("strike", "dip"), DEGREES, 2, limits)


_LONLAT, _DECINC = ("longitude", "latitude"), ("declination", "inclination")
ON_SPHERES = {
    "lonlat": _geographic(DEGREES, _LONLAT, (("lon", "lat"), ("long", "lat"), _LONLAT)),
    "decinc": _geographic(DEGREES, _DECINC, (("dec", "inc"), _DECINC), from_zero=True),
    "colatlon": _colatitude(DEGREES, (("colat", "lon"), ("colatitude", "longitude"))),
    "strikedip": _strike_dip(),
    "lonlat-radians": _geographic(RADIANS, _LONLAT, ()),
    "decinc-radians": _geographic(RADIANS, _DECINC, (), from_zero=True),
    "colatlon-radians": _colatitude(RADIANS, ()),
}


# ---------------------------------------------------------------- hyperbolic space


def _on_hyperboloid(rest: FloatArray, good: Array) -> FloatArray:
    """Return points on the hyperboloid to the last digit: the first coordinate from the others."""
    time = np.hypot(1.0, np.sqrt((rest * rest).sum(axis=1, keepdims=True)))
    return _kept(np.concatenate([time, rest], axis=1), good & np.isfinite(rest).all(axis=1))


def _room(values: Array) -> tuple[FloatArray, FloatArray]:
    """Return lengths, and 1 - length^2 as a product, which keeps its digits close to the edge; (n, 1) both."""
    length = np.sqrt((values * values).sum(axis=1, keepdims=True))
    return length, (1 - length) * (1 + length)


def _from_poincare(values: Array) -> FloatArray:
    """Return (1 + |p|^2, 2p)/(1 - |p|^2), the stereographic projection from (-1, 0)."""
    length, room = _room(values)
    return _on_hyperboloid(2 * values / room, length[:, 0] < 1)


def _to_poincare(points: FloatArray) -> FloatArray:
    return points[:, 1:] / (1 + points[:, :1])


def _from_klein(values: Array) -> FloatArray:
    """Return (1, p)/sqrt(1 - |p|^2), the projection from 0."""
    length, room = _room(values)
    return _on_hyperboloid(values / np.sqrt(room), length[:, 0] < 1)


def _to_klein(points: FloatArray) -> FloatArray:
    return points[:, 1:] / points[:, :1]


def _from_half_space(values: Array) -> FloatArray:
    """Return (t, u, w) with u = x/y and t - w = 1/y of (x, y), y above 0: (0, 1) is the origin, w points up."""
    across, height = values[:, :-1], values[:, -1:]
    last = ((height - 1) * (height + 1) + (across * across).sum(axis=1, keepdims=True)) / (2 * height)
    return _on_hyperboloid(np.concatenate([across / height, last], axis=1), height[:, 0] > 0)


def _to_half_space(points: FloatArray) -> FloatArray:
    time, across, last = points[:, :1], points[:, 1:-1], points[:, -1:]
    # t - w without cancellation: (t - w)(t + w) = 1 + |u|^2.
    rest = 1 + (across * across).sum(axis=1, keepdims=True)
    height = np.where(last > 0, (time + last) / rest, 1 / (time - last))
    return np.concatenate([across * height, height], axis=1)


def _from_half_plane(values: Array) -> FloatArray:
    _two_columns(values)
    return _from_half_space(values)


def _from_polar(values: Array) -> FloatArray:
    """Return the point at a distance from the origin, in the direction of an angle in radians."""
    distance, angle = _two_columns(values)
    rest = np.sinh(distance)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return _on_hyperboloid(rest, distance >= 0)


def _to_polar(points: FloatArray) -> FloatArray:
    return np.stack([np.arcsinh(_level(points[:, 1:])), _around(points[:, 1], points[:, 2], RADIANS)], axis=1)


_OUTSIDE = "outside the unit ball, or not finite"
_BELOW = "not above 0 in the last column, or not finite"
ON_HYPERBOLOIDS = {
    "poincare": Coordinates(_from_poincare, write=_to_poincare, limits=_OUTSIDE),
    "klein": Coordinates(_from_klein, write=_to_klein, limits=_OUTSIDE),
    "halfspace": Coordinates(_from_half_space, write=_to_half_space, limits=_BELOW),
    "halfplane": Coordinates(_from_half_plane, write=_to_half_space, axes=("x", "y"), dim=2, limits=_BELOW),
    "polar": Coordinates(
        _from_polar, write=_to_polar, axes=("distance", "angle"), unit=RADIANS, dim=2,
        limits="a distance below 0, or not finite",
    ),
}  # fmt: skip
