"""How a file of records is read for a space: which columns are meant where none are named, and in which coordinates.

A space names its reader (:attr:`Manifold.table_reader`); "numbers" takes columns as they are. Another distribution adds
one by an entry point `dpmanifold.readers`.

Every record is read by itself. Whether columns look like another order, or a latitude like a longitude, shows in many
rows together: that is looked at in a source's first block alone, so that what else is in a block never matters.
"""

from __future__ import annotations

import math
import pathlib
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dpmanifold._cells import COMPLEX, REAL
from dpmanifold._check import Array, FloatArray
from dpmanifold.data._files import DataFile, listed
from dpmanifold.data.coordinates import coordinate_columns, from_coordinates
from dpmanifold.data.formats import read_array, refuse_option
from dpmanifold.data.landmarks import is_long, landmarks_of
from dpmanifold.data.pieces import Places
from dpmanifold.data.table_files import Column, Lists, Table, select_columns
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Names, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.layouts import records_from
from dpmanifold.registry import Registry

# From a table, the columns that were named, if any, and what other options its format takes, to rows.
Reader = Callable[..., Array]
READERS: Registry[Reader] = Registry("reader", "dpmanifold.readers")


def read_for(
    kind: type[Manifold],
    file: DataFile,
    columns: Sequence[str] | None = None,
    coordinates: str | None = None,
    **options: Any,
) -> Array:
    r"""Return the rows of a file, (n, ...), as a space of this kind wants them; not yet in its shape.

    Parameters
    ----------
    kind : the class of the space
    file : the file, opened
    columns : names or patterns of columns of a table
    coordinates : a system of coordinates of the space; where columns of a table have the names of one, it is that
    options : what else the format takes; None for those that were not given

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dpmanifold.data.formats import open_file
    >>> from dpmanifold.manifolds import Sphere
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "sites.csv")
    ...     _ = path.write_text("site,lon,lat\nA,0,0\nB,90,0\n")
    ...     read_for(Sphere, open_file(path)).round(12) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    array, coordinates = rows_for(kind, file, columns, coordinates, **options)
    return array if coordinates is None else from_coordinates(array, coordinates)


def rows_for(
    kind: type[Manifold],
    file: DataFile,
    columns: Sequence[str] | None = None,
    coordinates: str | None = None,
    **options: Any,
) -> tuple[Array, str | None]:
    """Return the rows of a file as they stand there, and the coordinates they are in; arguments of :func:`read_for`."""
    if isinstance(file, Table):
        if coordinates is None and kind.coordinates:
            columns, coordinates = coordinate_columns(file, columns, kind.coordinates)
        given = {name: value for name, value in options.items() if value is not None}
        for name in given:
            refuse_option(file, name)
        return READERS.get(kind.table_reader)(file, columns, **given), coordinates
    return read_array(file, columns=columns, **options), coordinates


@dataclass(frozen=True)
class Reading:
    """How rows become records: the words of :func:`load_array`, None where they were left out.

    Parameters
    ----------
    space : which the records are of
    columns : names or patterns of the columns that are numbers of a record, of tables
    order, coordinates : how they are written
    units, labels : the columns of ids and of classes, where they are columns

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import SPD
    >>> Reading(SPD(2)).records(np.array([[2.0, 0.5, 1.0]])).tolist()
    [[[2.0, 0.5], [0.5, 1.0]]]
    """

    space: Manifold
    columns: str | Sequence[str] | None = None
    order: str | None = None
    coordinates: str | None = None
    units: str | None = None
    labels: str | None = None

    def records(self, rows: Table | Lists | Array, look: bool = False) -> Array:
        """Return records (m, *shape of one) of a table or an array that holds a block of them.

        `look` asks whether most of them seem to be written in another way than was said, and refuses them.
        """
        if isinstance(rows, Lists):
            return self._of_lists(rows)
        values, coordinates = rows, self.coordinates
        if isinstance(rows, Table):
            columns = [self.columns] if isinstance(self.columns, str) else self.columns
            values, coordinates = rows_for(type(self.space), rows, columns, coordinates)
        if coordinates is not None:
            values = from_coordinates(values, coordinates, look=look)
        return records_from(self.space, values, self.order, look)

    def _of_lists(self, rows: Lists) -> Array:
        """Return records of lists, each read in the form that its own length is; NaN where it is none."""
        if self.coordinates is not None:
            raise InvalidArgumentError("`coordinates`: lists must be of a type that says how long they are.")
        forms = [one for one in self.space.layouts() if one.kind == REAL and len(one.shape) == 1]
        widths = [one.shape[0] for one in forms if one.orders or self.order is None]
        records = np.full((len(rows), *self.space.record_shapes[REAL]), np.nan)
        for width in dict.fromkeys(widths):
            places, values = rows.of_width(width)
            records[places] = self.records(values)
        return records

    def try_out(self, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> None:
        """Refuse rows of that shape and type that are no records of the space, before any are read."""
        self.records(np.empty((0, *shape), dtype=dtype))


@dataclass(frozen=True)
class Wanted:
    """Which columns are the records, and how they are written: the words of :func:`load_array`, None if left out."""

    columns: str | Sequence[str] | None = None
    order: str | None = None
    coordinates: str | None = None

    def reading(self, space: Manifold, units: str | None = None, labels: str | None = None) -> Reading:
        """Return how rows become records of a space."""
        return Reading(space, self.columns, self.order, self.coordinates, units, labels)


AS_FOUND = Wanted()  # where nobody chooses: the columns' own names tell


# xx, Dxx, t_xy; 11, D12, c_1_12, m[3,4]
_LETTERS = re.compile(r"(?P<word>.*?)[_. -]?(?P<row>[xyz])[_. -]?(?P<column>[xyz])", re.IGNORECASE)
_NUMBERS = re.compile(
    r"(?P<word>.*?)[_. \[(-]?(?:(?P<row>\d)(?P<column>\d)|(?P<row2>\d{1,4})[_. ,-](?P<column2>\d{1,4}))[\])]?"
)

Entry = tuple[int, int]


def read_matrices(table: Table, columns: str | Sequence[str] | None = None) -> FloatArray:
    """Return columns of a table, those named like all entries of a matrix as whole matrices row by row, (n, k * k).

    Parameters
    ----------
    table : the table
    columns : names or patterns; without them, the columns that are named so, or else all
    """
    names = list(table.names) if columns is None else select_columns(table.names, columns, table.path)
    found = matrix_columns(names, among_others=columns is None)
    return table.array(columns=columns) if found is None else table.numbers(found)


def matrix_columns(names: Sequence[str], among_others: bool = False) -> list[str] | None:
    """Return the names of the k * k entries of a matrix row by row, or None where names say nothing of that kind.

    An entry that has no column of its own is that on the other side of the diagonal.

    Parameters
    ----------
    names : of columns
    among_others : whether other columns may stand beside them, which are then left out

    Examples
    --------
    >>> matrix_columns(["Dyy", "Dxy", "Dxx"])
    ['Dxx', 'Dxy', 'Dxy', 'Dyy']
    >>> matrix_columns(["m_1_1", "m_2_1", "m_2_2"]), matrix_columns(["x1", "x2", "x3"])
    (['m_1_1', 'm_2_1', 'm_2_1', 'm_2_2'], None)
    >>> matrix_columns(["xx", "xy", "zz"])
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: columns are named like entries of a matrix, and not all of them are there:
    'xx', 'xy', 'zz'. Name the columns of the records with columns=, or rename them.
    """
    by_letters = _by_word(names, _LETTERS)
    complete = [entries for found in (by_letters, _by_word(names, _NUMBERS)) for entries in found if _whole(entries)]
    fitting = [entries for entries in complete if among_others or len(entries) == len(names)]
    if len(fitting) > 1:
        raise InvalidArgumentError(
            "`columns` is needed: several matrices are named among the columns, {fitting}. Name those of one.",
            fitting=" and ".join(listed(entries.values()) for entries in fitting),
        )
    if fitting:
        entries = fitting[0]
        first, last = min(entries)[0], max(map(max, entries))
        side = range(first, last + 1)
        return [entries.get((i, j)) or entries[j, i] for i in side for j in side]
    # Numbers may count columns; letters do not, and other columns do not take the place of those that are missing.
    partial = next((entries for entries in by_letters if len(entries) > 1 and not _whole(entries)), None)
    if partial is not None:
        raise InvalidArgumentError(
            "`columns` are named like entries of a matrix, and not all of them are there: {values}. Name the "
            "columns of the records with `columns=`, or rename them.",
            values=Names(partial.values()),
        )
    return None


def _by_word(names: Sequence[str], pattern: re.Pattern[str]) -> list[dict[Entry, str]]:
    """Return the entries that names mean, apart by the word before them; none of a word that names one twice."""
    found: dict[str, dict[Entry, str]] = defaultdict(dict)
    twice = set()
    for name in names:
        match = pattern.fullmatch(name.strip())
        if match is None:
            continue
        groups = match.groupdict()
        pair = [groups[axis] or groups.get(f"{axis}2") or "" for axis in ("row", "column")]
        row, column = ("xyz".index(text.lower()) if text.lower() in ("x", "y", "z") else int(text) for text in pair)
        word = groups["word"].casefold()
        twice |= {word} if (row, column) in found[word] else set()
        found[word][row, column] = name
    return [entries for word, entries in found.items() if word not in twice]


def _whole(entries: dict[Entry, str]) -> bool:
    """Return whether entries are those of a symmetric matrix: all, or one of each pair that mirror one another."""
    numbers = sorted({number for entry in entries for number in entry})
    if len(numbers) < 2 or numbers != list(range(numbers[0], numbers[-1] + 1)) or numbers[0] > 1:
        return False
    whole = {(i, j) for i in numbers for j in numbers}
    upper = {(i, j) for i, j in whole if i <= j}
    return entries.keys() == whole or (
        len(entries) == len(upper) and {(min(entry), max(entry)) for entry in entries} == upper
    )


READERS.register("numbers", lambda table, columns, **options: table.array(columns=columns, **options))
READERS.register("landmarks", lambda table, columns: landmarks_of(table, columns)[0])
READERS.register("matrices", read_matrices)


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
        column = columns[place]
        if place in apart.values():
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
