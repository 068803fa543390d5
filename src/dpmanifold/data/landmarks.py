"""Landmarks in the plane from tables, TPS and numpy files: (n, k, 2) arrays for :class:`KendallShapes`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray, index_text, numeric_array, positive_int, shown
from dpmanifold.data._files import DataFile, PathLike, bad_file, checked_file, chosen_name, no_option
from dpmanifold.data.formats import open_file, read_array, refuse_option
from dpmanifold.data.table_files import Table, select_columns
from dpmanifold.errors import InvalidArgumentError, Names, Public

# x1, x_1, X.1; 1x, lm1_x, landmark1.x, p1x
_COORDINATE = re.compile(
    r"(?P<axis>[xyz])[_. -]?(?P<number>\d{1,9})"
    r"|(?:lm|landmark|p|point)?[_. -]?(?P<number2>\d{1,9})[_. -]?(?P<axis2>[xyz])",
    re.IGNORECASE,
)
_ID_NAMES = ("id", "specimen", "individual")
_MARK_NAMES = ("landmark", "lm", "point")


def load_landmarks(
    path: PathLike,
    landmarks: int | None = None,
    columns: str | Sequence[str] | None = None,
    key: str | None = None,
    id_column: str | None = None,
) -> tuple[FloatArray, Array]:
    r"""Return landmarks (n, k, 2) and the ids (n,) of the specimens; missing coordinates are NaN.

    - Tables (.csv, .tsv, .csv.gz, .tsv.gz, .parquet), wide: a row per specimen. Columns named like x1, y1, x2, y2 (or
      x_1, lm1_x, 1_x ...) are found and put in the order of their numbers, and so are those that patterns match;
      columns listed by name are taken as listed, in the order x, y, x, y, ...
    - Tables, long: a row per landmark, with columns `id`, `landmark`, `x`, `y`. Every specimen has every landmark once;
      specimens stand in the order of their first rows, landmarks in the order of their numbers or names.
      :func:`specimen_column` gives another column of such a table, a value per specimen.
    - .tps: "LM=8" and eight lines "x y" per specimen, then ID=, IMAGE= or SCALE= if wanted; coordinates times SCALE.
    - .npy and .npz: (n, k, 2), or (n, 2k) with x1, y1, x2, y2, ...

    Ids come from the column `id` (or `specimen`, `individual`), from ID= or IMAGE=, or are 0, 1, 2, ... They are what
    `units=` wants if they name people.

    Parameters
    ----------
    path : the file
    landmarks : the number of landmarks there must be. Give it if you know it: it is public, and belongs to the space
    columns : names or patterns (see `load_array`) of the coordinates in a wide table
    key : name of the array in an .npz file; not needed if there is one
    id_column : name of the column of ids in a table, if not one of the above

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "skulls.csv")
    ...     _ = path.write_text("id,x1,y1,x2,y2,x3,y3\nA,0,0,1,0,0,1\nB,0,0,2,0,0,2\n")
    ...     points, ids = load_landmarks(path, landmarks=3)
    >>> points.shape, ids.tolist()
    ((2, 3, 2), ['A', 'B'])
    """
    file = open_file(path)
    wanted = None if landmarks is None else positive_int(landmarks, "landmarks")
    if id_column is not None and not isinstance(file, Table):
        no_option(id_column, "id_column", file.path, "It is for tables.")
    points, ids = landmarks_of(file, columns, key, id_column)
    if wanted is not None and points.shape[1] != wanted:
        raise bad_file(
            file.path,
            "it has {shape} landmarks per specimen, and landmarks={wanted} was asked for. Give that number, "
            "or choose columns.",
            shape=Public(points.shape[1]),
            wanted=Public(wanted),
        )
    return points, np.arange(len(points)) if ids is None else ids


def landmarks_of(
    file: DataFile,
    columns: str | Sequence[str] | None = None,
    key: str | None = None,
    id_column: str | None = None,
) -> tuple[FloatArray, Array | None]:
    """Return landmarks (n, k, 2) of a file that was opened, and the ids of the specimens where it says them."""
    if isinstance(file, Table):
        if key is not None:
            refuse_option(file, "key")
        points, ids = _from_table(file, columns, id_column)
    else:
        points = numeric_array(read_array(file, columns=columns, key=key), f"the array in {file.path.name}")
        ids = file.ids()
    if points.ndim == 2 and points.shape[1] % 2 == 0 and points.dtype.kind == "f":
        points = points.reshape(len(points), points.shape[1] // 2, 2)
    if points.ndim != 3 or points.shape[2] != 2 or points.dtype.kind != "f":
        raise bad_file(
            file.path,
            "`landmarks` are real (n, k, 2) or (n, 2k), this is {dtype} {shape}. Save x and y as the last axis.",
            dtype=points.dtype,
            shape=Public(points.shape),
        )
    return points, ids


def _from_table(
    table: Table, columns: str | Sequence[str] | None, id_column: str | None
) -> tuple[FloatArray, Array | None]:
    """Return landmarks, flat or not, and ids from a wide or a long table."""
    if id_column is not None and id_column not in table.names:
        raise InvalidArgumentError(
            "id_column {id_column!r} is not in {name!r}, which has the columns {names}.",
            id_column=id_column,
            name=table.path.name,
            names=Names(table.names),
        )
    owner = id_column or _named(table.names, _ID_NAMES)
    mark, x, y = (_named(table.names, names) for names in (_MARK_NAMES, ("x",), ("y",)))
    if columns is None:
        _refuse_third(table)
    if columns is None and mark and x and y:
        if owner is None:
            raise InvalidArgumentError(
                "`id_column` is needed: the columns of {name!r} are {names}.",
                name=table.path.name,
                names=Names(table.names),
            )
        return _from_long(table, owner, mark, [x, y])
    if columns is None:
        chosen = _in_pairs([name for name in table.names if _place(name) is not None])
        if not chosen:
            raise InvalidArgumentError(
                "`columns` is needed: which columns of {name!r} are x1, y1, x2, y2, ...? It has {names}.",
                name=table.path.name,
                names=Names(table.names),
            )
    else:
        chosen = _chosen(table, columns)
    if owner is not None:
        table.keep(owner)
    return table.numbers(chosen), None if owner is None else table.entries(owner)


def _refuse_third(table: Table) -> None:
    """Refuse landmarks in space where nobody said which two of their coordinates are meant."""
    if is_long(table.names):
        third, remedy = _named(table.names, ("z",)), "Leave one of the three coordinates out of the table."
    else:
        third = next((name for name in table.names if (_place(name) or (0, ""))[1] == "z"), None)
        remedy = "Choose two of the three coordinates with columns=, such as x*,y*."
    if third is not None:
        raise InvalidArgumentError(
            "`columns`: {name!r} has landmarks in space, with the column {third!r}, and shapes are of "
            "landmarks in the plane. {remedy}",
            name=table.path.name,
            third=third,
            remedy=Public(remedy),
        )


def _chosen(table: Table, columns: str | Sequence[str]) -> list[str]:
    """Return the columns that were asked for: as listed, or paired by their names where patterns say which."""
    given = select_columns(table.names, columns, table.path)
    if len(given) % 2:
        raise InvalidArgumentError(
            "`columns` means {n_given} columns; landmarks have an x and a y each, so their number is even.",
            n_given=Public(len(given)),
        )
    if any(entry not in table.names for entry in ([columns] if isinstance(columns, str) else columns)):
        return _in_pairs(given) or given
    for x, y in zip(given[::2], given[1::2], strict=True):
        places = [_place(name) for name in (x, y)]
        if all(places) and len({place[0] for place in places if place}) == 2:
            raise InvalidArgumentError(
                "`columns` lists {x!r} and {y!r} as the x and the y of one landmark. List x1, y1, x2, y2, ..., or "
                "give patterns such as x*,y*, which are paired by their names.",
                x=x,
                y=y,
            )
    return given


def _named(names: Sequence[str], known: Sequence[str]) -> str | None:
    """Return the first column with one of the known names, in capitals or not."""
    return next((name for word in known for name in names if name.casefold() == word), None)


def _place(name: str) -> tuple[int, str] | None:
    """Return the landmark's number and the axis that a column's name tells; None where it tells neither."""
    match = _COORDINATE.fullmatch(name)
    if match is None:
        return None
    return int(match["number"] or match["number2"]), (match["axis"] or match["axis2"]).lower()


def _in_pairs(names: Sequence[str]) -> list[str] | None:
    """Return names such as x1, x2, y1, y2 in the order x1, y1, x2, y2; None if they are not all pairs of that kind."""
    found = {_place(name): name for name in names}
    if len(found) < len(names) or None in found:
        return None
    order = sorted(place for place in found if place is not None)
    numbers = [[number for number, other in order if other == axis] for axis in sorted({axis for _, axis in order})]
    return [found[place] for place in order] if len(numbers) == 2 and numbers[0] == numbers[1] else None


def specimen_column(path: PathLike, column: str, labels: bool = False) -> Array | None:
    r"""Return a column of a long table of landmarks, one value per specimen in the order of `load_landmarks`.

    That column says who owns a specimen, or its class, and has one value for all landmarks of a specimen. None where
    the file is not a long table, in which every row is a specimen.

    Parameters
    ----------
    path : a table with a row per landmark
    column : the name of the column
    labels : as in :func:`load_column`

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "long.csv")
    ...     _ = path.write_text("id,person,landmark,x,y\nB,7,1,0,0\nB,7,2,1,0\nA,3,1,0,0\nA,3,2,2,0\n")
    ...     specimen_column(path, "person")
    array([7, 3])
    """
    file = open_file(path)
    if not isinstance(file, Table):
        raise InvalidArgumentError(
            "`path`: {name!r} is no table. Give one with a row per landmark.", name=file.path.name
        )
    return column_of_specimens(file, column, labels)


def column_of_specimens(table: Table, column: str, labels: bool = False) -> Array | None:
    """Do what :func:`specimen_column` does with a table that was opened."""
    owner = _named(table.names, _ID_NAMES)
    if owner is None or not is_long(table.names):
        return None
    values = table.entries(chosen_name(table.names, column, table.path), labels=labels)
    _, first_row, owner_of_row = np.unique(table.entries(owner), return_index=True, return_inverse=True)
    several = values != values[first_row][owner_of_row]
    if several.any():
        row = int(first_row[owner_of_row[several]].min())
        raise bad_file(
            table.path,
            "the specimen that begins at record {row} (the first record is 0) has several values in column "
            "{column!r}. A specimen belongs to one of them: repair it.",
            row=Public(row),
            column=column,
        )
    return np.asarray(values[np.sort(first_row)])


def is_long(names: Sequence[str]) -> bool:
    """Return whether a table has a row per landmark: all of it is read before the first specimen is known."""
    return all(_named(names, known) for known in (_MARK_NAMES, ("x",), ("y",)))


def _from_long(table: Table, owner: str, mark: str, axes: list[str]) -> tuple[FloatArray, Array]:
    """Return landmarks and ids from a table with a row per landmark."""
    for name in (owner, mark):
        table.keep(name)
    points = table.numbers(axes)
    ids, marks = table.entries(owner), table.entries(mark)
    names, mark_of_row = np.unique(marks, return_inverse=True)
    # By number where there is one (lm2 before lm10), and never by which record comes first.
    ranks = np.empty(len(names), dtype=np.intp)
    ranks[sorted(range(len(names)), key=lambda i: _natural(str(names[i])))] = np.arange(len(names))
    if marks.dtype.kind == "i":
        ranks = np.arange(len(names))
    owners, first_row, owner_of_row = np.unique(ids, return_index=True, return_inverse=True)
    counts = np.bincount(owner_of_row, minlength=len(owners))
    if (counts != len(names)).any():
        _refuse_specimen(table, first_row[counts != len(names)], len(names))
    place = owner_of_row * len(names) + ranks[mark_of_row]
    twice = np.bincount(place, minlength=len(place)) != 1
    if twice.any():
        _refuse_specimen(table, first_row[twice.reshape(len(owners), -1).any(axis=1)], len(names))
    result = np.empty((len(points), 2))
    result[place] = points
    order = np.argsort(first_row)
    return result.reshape(len(owners), len(names), 2)[order], owners[order]


def _refuse_specimen(table: Table, first_rows: Array, count: int) -> None:
    raise bad_file(
        table.path,
        "the specimen that begins at record {value} (the first record is 0) does not have each of the "
        "{count} landmarks named in the file once. Complete or remove it.",
        value=Public(int(first_rows.min())),
        count=Public(count),
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers inside names by value: without leading zeros the longer one is larger."""
    parts = re.split(r"(\d+)", name)
    digits = [part.lstrip("0") for part in parts]
    return [(len(digits[i]), digits[i]) if i % 2 else (0, part) for i, part in enumerate(parts)]


_CHAIN = re.compile(r"\s*\d{1,9}(\s*-\s*\d{1,9})+\s*")
_NUMBER = re.compile(r"\d{1,9}")


def landmark_links(links: object, landmarks: int | None = None) -> npt.NDArray[np.int64]:
    r"""Return links between landmarks as pairs (m, 2), counted from 1.

    Parameters
    ----------
    links : a text such as "1-2, 2-3, 3-1", in which "1-2-3-1" is the same; a file with a pair of numbers on each line,
        with blanks, tabs, commas or semicolons between them, after a line of names if there is one; or pairs (m, 2)
    landmarks : how many landmarks there are, if known: larger numbers are refused

    Raises
    ------
    InvalidArgumentError : no such file, no pairs of different landmarks, or landmarks that there are not
    InvalidDataError : a line of the file is no pair

    Examples
    --------
    >>> landmark_links("1-2-3-1, 4-5").tolist()
    [[1, 2], [2, 3], [3, 1], [4, 5]]
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "links.csv")
    ...     _ = path.write_text("from,to\n1,2\n2,3\n")
    ...     landmark_links(path).tolist()
    [[1, 2], [2, 3]]
    >>> landmark_links("1-9", landmarks=8)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: links: the pair at index 0 names landmark 9, and there are 8, counted from
    1. Correct it.
    """
    if isinstance(links, str) and all(_CHAIN.fullmatch(part) for part in links.split(",")):
        pairs = _from_text(links)
    elif isinstance(links, (str, os.PathLike)):
        pairs = _from_file(links)
    else:
        pairs = _from_pairs(links)
    count = None if landmarks is None else positive_int(landmarks, "landmarks")
    _refuse_impossible(pairs, count)
    return pairs


def _from_text(text: str) -> npt.NDArray[np.int64]:
    chains = [[int(number) for number in part.split("-")] for part in text.split(",")]
    return np.array([pair for chain in chains for pair in pairwise(chain)], dtype=np.int64)


def _from_file(path: object) -> npt.NDArray[np.int64]:
    try:
        file = checked_file(path)
    except InvalidArgumentError:
        raise InvalidArgumentError(
            "links: {got} is neither a file nor links such as '1-2, 2-3, 3-1'. Check the name.", got=shown(path)
        ) from None
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise bad_file(file, "it cannot be read as text. Write a pair of numbers on each line.") from None
    pairs = []
    for number, line in enumerate(lines, start=1):
        words = [word.strip('"') for word in re.split(r"[\s,;]+", line.strip())]
        is_pair = len(words) == 2 and all(_NUMBER.fullmatch(word) for word in words)
        if is_pair:
            pairs.append([int(word) for word in words])
        elif words != [""] and (pairs or any(_NUMBER.fullmatch(word) for word in words)):
            raise bad_file(
                file, "line {number} is not a pair of landmarks, such as 1 2. Repair that line.", number=Public(number)
            )
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _from_pairs(links: object) -> npt.NDArray[np.int64]:
    try:
        array = np.asarray(links if isinstance(links, (np.ndarray, Sequence)) else list(links))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        array = np.empty(0)
    whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and bool((array == np.floor(array)).all()))
    if array.ndim != 2 or array.shape[1] != 2 or not whole:
        raise InvalidArgumentError(
            "links must be pairs of whole numbers (m, 2), a text such as '1-2, 2-3' or a file, got {got}.",
            got=shown(links),
        )
    return array.astype(np.int64)


def _refuse_impossible(pairs: npt.NDArray[np.int64], landmarks: int | None) -> None:
    if len(pairs) == 0:
        raise InvalidArgumentError("links has no pair of landmarks. Leave it out, or give some, such as '1-2, 2-3'.")
    low = np.asarray((pairs < 1).any(axis=1))
    if low.any():
        raise InvalidArgumentError(
            "links: landmarks are counted from 1, and the pair{index_text} has less.",
            index_text=Public(index_text(low)),
        )
    same = np.asarray(pairs[:, 0] == pairs[:, 1])
    if same.any():
        raise InvalidArgumentError(
            "links: the pair{index_text} joins a landmark with itself. Remove it.", index_text=Public(index_text(same))
        )
    high = np.asarray((pairs > landmarks).any(axis=1)) if landmarks is not None else np.zeros(0, dtype=bool)
    if high.any():
        raise InvalidArgumentError(
            "links: the pair{index_text} names landmark {value}, and there are {landmarks}, counted from 1. "
            "Correct it.",
            index_text=Public(index_text(high)),
            value=pairs.max(),
            landmarks=Public(landmarks),
        )
