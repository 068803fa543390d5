"""Which columns of a table are records, ids and classes: from their names and the space alone, before any row is read.

What a column holds says nothing here: a single word in it makes text of a column of numbers, and then one person would
choose the columns of everybody's records.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpmanifold._cells import COMPLEX, REAL
from dpmanifold._check import Array, FloatArray
from dpmanifold.data.entries import Column
from dpmanifold.data.landmarks import is_long
from dpmanifold.data.pieces import Places
from dpmanifold.data.readers import Reading, read_for, rows_for
from dpmanifold.data.tables import Table, select_columns
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Names, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.layouts import records_from


def places_of(reading: Reading, columns: Sequence[Column], where: str) -> Places:
    """Decide which columns make a block, or refuse.

    Without a choice, the records are the columns that the space knows by their names (degrees, landmarks, entries of a
    matrix), or else all columns but those of ids and classes, where they are as many as a record has numbers.

    Parameters
    ----------
    reading : what was asked for
    columns : what the table has
    where : what to call the table in messages
    """
    names = [column.name for column in columns]
    given = {"units": reading.units, "labels": reading.labels}
    apart = {what: _place(names, name, what, where) for what, name in given.items() if name is not None}
    for what, place in apart.items():
        others = ("something else",) if what == "labels" else ("something else", "complex", "truth")
        if columns[place].kind in others:
            raise InvalidDataError(
                "column {names!r} of {where} is not whole numbers or text. Convert it to one of them.",
                names=names[place],
                where=where,
            )
    numbers, reading, kind = _chosen(reading, columns, where, set(apart.values()))
    _try_out(reading, [columns[place] for place in numbers], kind, where)
    for place in numbers:
        _refuse(columns[place], where, place in apart.values())
    return Places(reading, numbers, apart.get("units"), apart.get("labels"), kind)


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
    asked = _Asked(where, [column.name for column in columns])
    lists = [column for column in columns if column.width != 1]
    shape = (sum(column.width for column in columns),)
    if chosen is not None or not lists:
        shape = read_for(kind, asked, [chosen] if isinstance(chosen, str) else chosen, coordinates).shape[1:]
        lists = [column for column in lists if column.name in (asked.chosen or asked.names)]
        shape = (lists[0].width,) if lists else shape
    if any(column.width == 0 for column in lists):
        raise InvalidArgumentError(
            "`size` is needed: column {name!r} of {where} holds lists, and its type does not say how long.",
            name=lists[0].name,
            where=where,
        )
    return shape


def _chosen(
    reading: Reading, columns: Sequence[Column], where: str, apart: set[int]
) -> tuple[tuple[int, ...], Reading, str]:
    """Return the places of the columns that are numbers of a record, how they are read, and the kind of the numbers."""
    free = [place for place in range(len(columns)) if place not in apart]
    considered = free if reading.columns is None else list(range(len(columns)))
    if not considered:
        raise InvalidDataError("{where} has no columns for records beside those of ids and labels.", where=where)
    asked = _Asked(where, [columns[place].name for place in considered])
    given = [reading.columns] if isinstance(reading.columns, str) else reading.columns
    if given is None and type(reading.space).table_reader == "landmarks" and is_long(asked.names):
        raise InvalidArgumentError(
            "{where} has a row per landmark, and a specimen's rows may stand anywhere in it. Give a row per "
            "specimen (x1, y1, x2, y2, ...), or read a file whole with data.load_landmarks.",
            where=where,
        )
    if given is None:
        meant = considered
    else:
        meant = [considered[asked.names.index(name)] for name in select_columns(asked.names, given, asked.path)]
    if _are_complex(reading.space, [columns[place] for place in meant]):
        return tuple(meant), reading, COMPLEX
    if given is None and any(columns[place].width != 1 for place in meant):
        return tuple(meant), reading, REAL
    _, coordinates = rows_for(type(reading.space), asked, given, reading.coordinates)
    reading = replace(reading, coordinates=coordinates)
    if asked.chosen is None:
        return tuple(considered), reading, REAL
    places = tuple(considered[asked.names.index(name)] for name in asked.chosen)
    if reading.order is not None and len(set(places)) < len(places):
        reading = _ordered_by_name(reading, meant, places)
    return places, reading, REAL


def _ordered_by_name(reading: Reading, meant: Sequence[int], places: Sequence[int]) -> Reading:
    """Return how columns are read whose names say which entries they hold; an order that says otherwise is refused."""
    said = records_from(reading.space, np.array([meant], dtype=np.float64), reading.order, look=False)
    if said.ravel().tolist() != list(places):
        raise InvalidArgumentError(
            "order {order!r} contradicts the names of the columns, which say which entries they hold. Leave "
            "order out, or rename the columns.",
            order=reading.order,
        )
    return replace(reading, order=None)


def _are_complex(space: Manifold, columns: Sequence[Column]) -> bool:
    """Return whether columns are as many as a record has complex numbers, and not as many as it has real ones."""
    widths = {kind: {math.prod(one.shape) for one in space.layouts() if one.kind == kind} for kind in (REAL, COMPLEX)}
    return len(columns) in widths[COMPLEX] - widths[REAL]


def _refuse(column: Column, where: str, apart: bool) -> None:
    """Refuse a column that was chosen for records and can have none."""
    if apart:
        raise InvalidArgumentError(
            "`columns`: {name!r} has the ids or labels, and no numbers of records.", name=column.name
        )
    if column.kind == "something else":
        raise InvalidDataError(
            "column {name!r} of {where} is of a type that is not numbers. Choose the columns of the records "
            "with `columns=`.",
            name=column.name,
            where=where,
        )


def _place(names: Sequence[str], name: str, what: str, where: str) -> int:
    """Return where the one column of that name stands."""
    if name not in names:
        raise InvalidArgumentError(
            "{what}: there is no column {name!r} in {where}, which has the columns {names}.",
            what=Argument(what),
            name=name,
            where=where,
            names=Names(names),
        )
    if names.count(name) > 1:
        raise InvalidDataError(
            "two columns of {where} are called {name!r}. Rename one of them.", where=where, name=name
        )
    return names.index(name)


def _try_out(reading: Reading, chosen: Sequence[Column], kind: str, where: str) -> None:
    """Refuse columns that are not records of the space, before any are read, and list them."""
    lists = [column.name for column in chosen if column.width == 0]
    if lists and len(chosen) > 1:
        raise InvalidDataError(
            "column {lists!r} of {where} holds lists, a record each. Choose it alone with `columns=`, or others.",
            lists=lists[0],
            where=where,
        )
    if lists:
        return  # each has a length of its own
    try:
        reading.try_out((sum(column.width for column in chosen),), np.complex128 if kind == COMPLEX else np.float64)
    except InvalidDataError as problem:
        names = Names(column.name for column in chosen)
        if reading.columns is None:
            known = ", ".join(reading.space.coordinates) if reading.coordinates is None else ""
            systems = Message("")
            if known:
                systems = Message(
                    " Other coordinates are read by `coordinates=`, which is one of {known}.", known=Public(known)
                )
            raise InvalidArgumentError(
                "`columns` is needed: {where} has the columns {names} beside those of ids and labels, and which "
                "of them are the records never follows from what they hold. ({problem}){systems}",
                where=where,
                names=names,
                problem=problem,
                systems=systems,
            ) from None
        raise InvalidDataError(
            "{problem} Taken from {where} were the columns {names}.", problem=problem, where=where, names=names
        ) from None


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
