"""Which columns of a table are records, ids and classes: from their names and kinds alone, before any row is read."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.data._files import listed
from dpmanifold.data.readers import read_for, rows_for
from dpmanifold.data.reading import Reading
from dpmanifold.data.rows import NUMBERS, Column, Places
from dpmanifold.data.tables import Table
from dpmanifold.errors import DPManifoldError, InvalidArgumentError, InvalidDataError
from dpmanifold.manifolds import Manifold

_AS_NUMBERS = "pandas.to_numeric(column, errors='coerce') makes numbers of text, with gaps where there are none"


def places_of(reading: Reading, columns: Sequence[Column], where: str) -> Places:
    """Decide which columns make a block, or refuse.

    Without a choice the records are all columns of numbers that are neither ids nor classes; a space that knows its
    columns by their names (degrees, landmarks) chooses among these.

    Parameters
    ----------
    reading : what was asked for
    columns : what the table has
    where : what to call the table in messages
    """
    names = [column.name for column in columns]
    given = {"units": reading.units, "labels": reading.labels}
    apart = {what: _place(names, name, what, where) for what, name in given.items() if name is not None}
    for place in apart.values():
        if columns[place].kind not in ("whole", "number", "text", "object"):
            raise InvalidDataError(
                f"column {names[place]!r} of {where} is not whole numbers or text. Convert it to one of them."
            )
    numbers, coordinates = _chosen(reading, columns, where, set(apart.values()))
    reading = replace(reading, coordinates=coordinates)
    _try_out(reading, [columns[place] for place in numbers], columns, where)
    return Places(reading, numbers, apart.get("units"), apart.get("labels"))


def shape_for(
    kind: type[Manifold],
    columns: Sequence[Column],
    chosen: str | Sequence[str] | None,
    coordinates: str | None,
    where: str,
) -> tuple[int, ...]:
    """Return the shape of one record of a kind of space as columns give it, before any row is read.

    Parameters
    ----------
    kind : the class of the space
    columns : of the table, without those of ids and classes
    chosen : which were asked for, by names or patterns
    coordinates : the system they are in
    where : what to call the table in messages
    """
    usable = [column for column in columns if chosen is not None or column.kind in NUMBERS]
    asked = _Asked(where, [column.name for column in usable])
    shape = (sum(column.width for column in usable),)
    if chosen is not None or all(column.width == 1 for column in usable):
        shape = read_for(kind, asked, [chosen] if isinstance(chosen, str) else chosen, coordinates).shape[1:]
        lists = [column for column in usable if column.width > 1 and column.name in (asked.chosen or asked.names)]
        shape = (lists[0].width,) if lists else shape
    return shape


def _chosen(
    reading: Reading, columns: Sequence[Column], where: str, apart: set[int]
) -> tuple[tuple[int, ...], str | None]:
    """Return the places of the columns that are numbers of a record, and the coordinates they are in."""
    free = [place for place in range(len(columns)) if place not in apart]
    usable = [place for place in free if columns[place].kind in NUMBERS]
    if reading.columns is None:
        if not usable:
            usable = [place for place in free if columns[place].kind == "complex"]
        usable = _with_objects(reading, columns, usable, free)
        if not usable:
            raise InvalidDataError(
                f"{where} has no columns of numbers for records; it has the columns "
                f"{listed(column.name for column in columns)}. Choose columns of numbers; {_AS_NUMBERS}."
            )
        if any(columns[place].kind == "complex" or columns[place].width > 1 for place in usable):
            return tuple(usable), reading.coordinates
    considered = usable if reading.columns is None else list(range(len(columns)))
    asked = _Asked(where, [columns[place].name for place in considered])
    given = [reading.columns] if isinstance(reading.columns, str) else reading.columns
    _, coordinates = rows_for(type(reading.space), asked, given, reading.coordinates)
    if asked.chosen is None:
        return tuple(considered), coordinates
    places = tuple(considered[asked.names.index(name)] for name in asked.chosen)
    for place in places:
        _refuse(columns[place], where, place in apart)
    return places, coordinates


def _with_objects(reading: Reading, columns: Sequence[Column], usable: list[int], free: list[int]) -> list[int]:
    """Return columns of numbers, and of objects where it takes these for records: one text makes objects of a column.

    A record that is none must not keep all others from being read.
    """
    every = [place for place in free if columns[place].kind in (*NUMBERS, "object")]
    if len(every) == len(usable) or _fits(reading, columns, usable) or not _fits(reading, columns, every):
        return usable
    return every


def _fits(reading: Reading, columns: Sequence[Column], places: list[int]) -> bool:
    try:
        reading.try_out((sum(columns[place].width for place in places),))
    except DPManifoldError:
        return False
    return True


def _refuse(column: Column, where: str, apart: bool) -> None:
    """Refuse a column that was chosen for records and has none."""
    if apart:
        raise InvalidArgumentError(f"columns: {column.name!r} has the ids or labels, and no numbers of records.")
    if column.kind not in (*NUMBERS, "truth", "complex", "object"):
        raise InvalidDataError(
            f"column {column.name!r} of {where} is not numbers. Choose columns of numbers with columns=; {_AS_NUMBERS}."
        )


def _place(names: Sequence[str], name: str, what: str, where: str) -> int:
    """Return where the one column of that name stands."""
    if name not in names:
        raise InvalidArgumentError(
            f"{what}: there is no column {name!r} in {where}, which has the columns {listed(names)}."
        )
    if names.count(name) > 1:
        raise InvalidDataError(f"two columns of {where} are called {name!r}. Rename one of them.")
    return names.index(name)


def _try_out(reading: Reading, chosen: Sequence[Column], columns: Sequence[Column], where: str) -> None:
    """Refuse columns that are no records of the space, before any are read, and say which were not numbers."""
    kind = np.complex128 if all(column.kind == "complex" for column in chosen) else np.float64
    try:
        reading.try_out((sum(column.width for column in chosen),), kind)
    except InvalidDataError as problem:
        left = [column.name for column in columns if column.kind not in (*NUMBERS, "complex")]
        which = f" Taken from {where} were the columns {listed(column.name for column in chosen)}"
        aside = f"; no numbers are in {listed(left)}. If there should be: {_AS_NUMBERS}." if left else "."
        raise InvalidDataError(f"{problem}{which}{aside}") from None


class _Asked(Table):
    """A table without rows, which remembers the numbers of which columns it is asked for."""

    def __init__(self, where: str, names: Sequence[str]) -> None:
        super().__init__(pathlib.Path(where))
        self.names = list(names)
        self.chosen: list[str] | None = None

    def numbers(self, names: Sequence[str] | None) -> FloatArray:
        """Remember the columns; None for all."""
        self.chosen = None if names is None else [self.names[place] for place in self._positions(names)]
        return np.empty((0, len(self.names if names is None else names)))

    def entries(self, name: str, text: bool = False, labels: bool = False) -> Array:
        """Return nothing."""
        return np.empty(0, dtype=np.int64)


__all__ = ["places_of", "shape_for"]
