"""The one reader of cells: from an entry of a record, whatever it is, to a number, or from a label to a class. A leaf.

Containers take a type from all of their entries: a single `None` makes objects of an array of numbers, a single complex
number makes all of them complex, a single word makes a column text. So the type of a container says nothing about a
record. A cell is read from what stands in it alone, and has the same bits in a container of its own type and in one
that another unit's cell has changed. Whatever is not a number is NaN, which is no point of any space.

Labels may be private as well. A label is looked up by how it is written, in a form that does not change with the type
it is stored in: 1, 1.0, True and "1" are the same.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeGuard

import numpy as np

from dpmanifold._check import Array, numeric_array, shown
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Public

REAL, COMPLEX = "f", "c"
_DTYPES = {REAL: np.dtype(np.float64), COMPLEX: np.dtype(np.complex128)}


_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def refuse_fault(cell: object, problem: Exception) -> None:
    """Raise again what reading a cell of a plain type cannot raise: a lack of memory or a time-out is no cell's fault.

    Examples
    --------
    >>> refuse_fault("x", ValueError("no number"))
    >>> refuse_fault("x", TimeoutError("too late"))
    Traceback (most recent call last):
    ...
    TimeoutError: too late
    """
    if isinstance(cell, _PLAIN) and not isinstance(problem, (ValueError, OverflowError)):
        raise problem


def real_cell(cell: Any) -> float:
    """Return the real number in a cell, NaN where there is none.

    Numbers of Python and numpy count as what they are, truth values as 0 and 1, text and bytes as the number that they
    spell in Python; a complex number counts where its imaginary part is 0.

    Examples
    --------
    >>> [real_cell(cell) for cell in (1, np.float32(0.5), True, "007", b"-2", 3 + 0j)]
    [1.0, 0.5, 1.0, 7.0, -2.0, 3.0]
    >>> [real_cell(cell) for cell in (None, "abc", 3 + 1j, 10**400, [1.0], np.ma.masked, np.timedelta64(3, "s"))]
    [nan, nan, nan, nan, nan, nan, nan]
    """
    if type(cell) is float:
        return cell
    number = complex_cell(cell)
    return number.real if number.imag == 0 else np.nan


def complex_cell(cell: Any) -> complex:
    """Return the number in a cell, NaN where there is none; see :func:`real_cell`.

    Examples
    --------
    >>> [complex_cell(cell) for cell in (1.5, np.complex64(1j), "2+1j", None)]
    [(1.5+0j), 1j, (2+1j), (nan+0j)]
    """
    try:
        if isinstance(cell, np.ndarray):
            cell = cell[()] if cell.ndim == 0 and cell is not np.ma.masked else None
        if isinstance(cell, bytes):
            cell = cell.decode("ascii")
        if isinstance(cell, str):
            return _spelled(str.__str__(cell))
        if isinstance(cell, np.timedelta64):  # counts itself among numpy's integers
            return complex(np.nan)
        if isinstance(cell, (numbers.Real, Decimal, np.bool_)):
            return complex(float(cell))
        return complex(cell) if isinstance(cell, numbers.Complex) else complex(np.nan)
    except Exception as problem:  # numbers too large, words, and whatever foreign objects raise: none of it may show
        refuse_fault(cell, problem)
        return complex(np.nan)


TRUTH = {"true": 1, "false": 0}
"""What containers write for truth values among text, in small letters."""


def _spelled(text: str) -> complex:
    try:
        return complex(float(text))
    except ValueError:
        text = text.strip()
        return complex(TRUTH.get(text.lower(), text))


def single(cell: Any) -> Any:
    """Return the one entry of a list or an array of one: a column (n, 1) loses an axis where one cell is ragged.

    Examples
    --------
    >>> single([1.5]), single(2), single([1, 2])
    (1.5, 2, [1, 2])
    """
    return cell[0] if isinstance(cell, (list, tuple, np.ndarray)) and np.shape(cell) == (1,) else cell


_READERS: dict[str, Callable[[Any], complex]] = {REAL: real_cell, COMPLEX: complex_cell}


def numbers_of(entries: object, kind: str = REAL) -> Array:
    """Return the numbers in an array of any type, in its shape; NaN where there is none.

    Parameters
    ----------
    entries : an array, also a masked one
    kind : "f" for float64, "c" for complex128

    Examples
    --------
    >>> numbers_of(np.array([1, 2])), numbers_of(np.array([np.float32(0.5), None, "x"], dtype=object))
    (array([1., 2.]), array([0.5, nan, nan]))
    >>> numbers_of(np.ma.array([1, 2], mask=[True, False])), numbers_of(np.array([1 + 0j, 1j]))
    (array([nan,  2.]), array([ 1., nan]))
    """
    array = np.ma.getdata(entries) if np.ma.isMaskedArray(entries) else np.asarray(entries)
    with np.errstate(all="ignore"):
        if array.dtype.kind in "fiub" or array.dtype.kind == kind:
            values = array.astype(_DTYPES[kind], copy=False)
        elif array.dtype.kind == "c":
            plain = array.astype(np.complex128)
            values = np.where(plain.imag == 0, plain.real, np.nan)
        else:
            # Durations and dates have no number; their own `tolist` would make whole numbers of them.
            cells = array.ravel().tolist() if array.dtype.kind in "OUST" else [None] * array.size
            read = _READERS[kind]
            values = np.array([read(cell) for cell in cells], dtype=_DTYPES[kind]).reshape(array.shape)
    if np.ma.isMaskedArray(entries) and np.ma.getmaskarray(entries).any():
        values = np.where(np.ma.getmaskarray(entries), np.nan, values)
    return values


def refuse_text(array: Array, name: str) -> None:
    """Refuse an array of text or dates where records belong: what its entries were before cannot be known.

    Examples
    --------
    >>> refuse_text(np.array([1.5, "x"]), "X")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidDataError: X must be an array of numbers, got one of text or dates (dtype <U32): numpy
    gives all entries the type of one, and may drop digits. Give a list, or an array made with dtype=object; entries
    that are not numbers are then found one by one.
    """
    if array.dtype.kind in "USTmM":
        raise InvalidDataError(
            "{name} must be an array of numbers, got one of text or dates (dtype {dtype}): numpy gives all "
            "entries the type of one, and may drop digits. Give a list, or an array made with dtype=object; "
            "entries that are not numbers are then found one by one.",
            name=Argument(name),
            dtype=array.dtype,
        )


def from_polars(container: Any, name: str) -> Any:
    """Return a Series or a DataFrame of polars as an array that has each cell as it is; what else it is, as it is.

    polars gives all cells of a column the type of one: text, or integers that numpy does not have. Of structs and lists
    nobody can tell what the others were, and they are refused.
    """
    kind = type(container)
    if kind.__module__.partition(".")[0] != "polars" or kind.__name__ not in ("Series", "DataFrame"):
        return container
    columns = [container] if kind.__name__ == "Series" else container.get_columns()
    for column in columns:
        if column.dtype.is_nested() and column.dtype.base_type().__name__ != "Array":
            raise InvalidArgumentError(
                "{name} is of a type that is not numbers or text: {dtype} of polars.",
                name=Argument(name),
                dtype=column.dtype,
            )
    if all(str(column.dtype) in _POLARS_NUMBERS for column in columns):
        return container.to_numpy()
    cells = [objects(column.to_list()) for column in columns]
    return cells[0] if kind.__name__ == "Series" else np.stack(cells, axis=1)


_POLARS_NUMBERS = {
    "Float32", "Float64", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Boolean",
}  # fmt: skip


def objects(cells: Sequence[Any]) -> Array:
    """Return cells as an array (n,) of objects, each as it is: numpy would look into those that are sequences.

    Examples
    --------
    >>> objects([[1, 2], [3, 4]]).shape
    (2,)
    """
    return np.fromiter(cells, dtype=object, count=len(cells))


def as_cells(records: object, name: str) -> Array:
    """Return an array as it is, and a list as an array of numbers; where it is not of numbers alone, (n,) of objects.

    Examples
    --------
    >>> as_cells([[1, 2.5]], "X").shape, as_cells([[1, None], [2]], "X").shape
    ((1, 2), (2,))
    """
    records = from_polars(records, name)
    if isinstance(records, np.ndarray) or not isinstance(records, Sequence) or isinstance(records, (str, bytes)):
        return records if isinstance(records, np.ndarray) else numeric_array(records, name)
    try:
        array = np.asarray(records)
    except ValueError:  # ragged
        return objects(records)
    return array if array.dtype.kind in "fiuc" else objects(records)


def record_cells(record: object, shapes: Mapping[str, tuple[int, ...]]) -> Array | None:
    """Return one record as numbers, by its own shape and cells; None where it has none of the shapes.

    Parameters
    ----------
    record : an array, or sequences within sequences
    shapes : of one record, by the kind of its numbers: the shape says which kind is meant

    Examples
    --------
    >>> record_cells([1, None], {"f": (2,)}), record_cells([[1, 2], [3]], {"f": (2, 2)})
    (array([ 1., nan]), None)
    """
    return cells_in(record, {shape: kind for kind, shape in shapes.items()})


def cells_in(record: object, kinds: Mapping[tuple[int, ...], str]) -> Array | None:
    """Return one record as numbers of the kind that its own shape has among some; None where it has none of them."""
    try:
        if isinstance(record, np.ndarray) and record.dtype.kind == "O":
            record = record.tolist()  # its cells may be lists, where another record is ragged
        entries = record if isinstance(record, np.ndarray) else _nested(record, max(map(len, kinds)))
        kind = kinds.get(entries.shape)
        return None if kind is None else numbers_of(entries, kind)
    except Exception as problem:  # whatever foreign containers raise: none of it may show
        if type(record) in (list, tuple, np.ndarray) and isinstance(problem, (MemoryError, TimeoutError)):
            raise
        return None


def _nested(record: Any, depth: int) -> Array:
    """Return sequences within sequences as an array of objects; ragged ones have fewer axes, and fit no shape.

    numpy would give them one type, by which one cell of the record changes how the others are spelled.
    """
    if not isinstance(record, Sequence) or isinstance(record, (str, bytes)):
        return np.asarray(record)  # a foreign array; whatever else it is has no axes
    parts = list(record)
    if depth > 1 and parts and all(_is_sequence(part) for part in parts):
        rows = [_nested(part, depth - 1) for part in parts]
        if len({row.shape for row in rows}) == 1:
            return np.stack([row.astype(object) for row in rows])
    return objects(parts)


def _is_sequence(part: object) -> bool:
    if isinstance(part, Sequence):
        return not isinstance(part, (str, bytes))
    return hasattr(part, "__array__") and getattr(part, "ndim", 0) > 0


# What Python and numpy write for a number: 007 and +7 are text.
_NUMERAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?")

# Labels that are looked up only once.
_MOST_REMEMBERED = 10_000


def plain_labels(labels: object) -> list[Any]:
    """Return labels as plain values, each as it was given; a masked one is None.

    Examples
    --------
    >>> plain_labels([1, "x", np.float64(0.5)]), plain_labels(np.array(["a", "b"]))
    ([1, 'x', 0.5], ['a', 'b'])
    """
    labels = from_polars(labels, "labels")
    if isinstance(labels, np.ma.MaskedArray):
        given: Any = labels.tolist()
    elif hasattr(labels, "__array__"):  # it has a type of its own
        array = np.asarray(labels)
        if array.dtype.kind in "mM":  # numpy gives all labels the type of one
            raise InvalidArgumentError(
                "`labels` must be text or numbers, got an array of dates (dtype {dtype}).", dtype=array.dtype
            )
        given = array.tolist() if array.ndim else None
    else:
        given = labels
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise InvalidArgumentError("`labels` must be one class per record, got {got}.", got=shown(labels))
    return [label.item() if _is_scalar(label) and label.dtype.kind not in "mM" else single(label) for label in given]


def _is_scalar(label: object) -> TypeGuard[np.generic]:
    """Return whether a label is of a type of numpy's, as it is or in an array without axes."""
    return isinstance(label, np.generic) or (type(label) is np.ndarray and label.ndim == 0)


def written(label: Any) -> str | None:
    """Return how a label is written, the same whichever type it was stored in; None where it can be no name.

    Fractions are written as single precision has them, whole numbers without a point.

    Examples
    --------
    >>> [written(label) for label in (1, 1.0, True, "1", "1.0", " b ", b"b", np.float32(0.1), 0.1, "007", None)]
    ['1', '1', '1', '1', '1', 'b', 'b', '0.1', '0.1', '007', None]
    """
    try:
        if isinstance(label, bytes):
            label = label.decode("utf-8")
        if isinstance(label, str):
            text = str.__str__(label).strip()
            text = str(TRUTH.get(text.lower(), text))
            return _numeral(float(text)) if _NUMERAL.fullmatch(text) else text
        number = isinstance(label, (numbers.Number, Decimal, np.bool_)) and not isinstance(label, np.timedelta64)
        return _numeral(real_cell(label)) if number else None
    except Exception as problem:  # whatever foreign objects raise: none of it may show
        refuse_fault(label, problem)
        return None


def _numeral(value: float) -> str | None:
    if not math.isfinite(value):
        return None
    if value.is_integer():
        return str(int(value))
    with np.errstate(all="ignore"):
        single = float(np.float32(value))
    return np.format_float_positional(np.float32(value), trim="-") if single and math.isfinite(single) else repr(value)


def numbers_of_labels(labels: object, names: list[Any], invalid: str = "raise", first: int = 0) -> Array:
    """Return the numbers of classes by their names; a label outside the public classes is refused by its place.

    With `invalid="center"` it is -1. `first` is the index of the first label, in messages.

    Examples
    --------
    >>> numbers_of_labels([1, "2", 1.0], [1, 2]), numbers_of_labels([1, None], [1, 2], "center")
    (array([0, 1, 0]), array([ 0, -1]))
    """
    number = {written(name): i for i, name in enumerate(names)}
    known: dict[Any, int] = {}
    found = np.array([_found(label, number, known) for label in plain_labels(labels)], dtype=np.intp)
    outside = np.flatnonzero(found < 0)
    if outside.size and invalid == "raise":
        raise InvalidDataError(
            "`labels`: that at index {first} is outside the public classes. Add it to classes, or drop its records.",
            first=Public(first + outside[0]),
        )
    return found


def _found(label: Any, number: dict[str | None, int], known: dict[Any, int]) -> int:
    """Return the number of a label's class; what plain labels are written as is remembered, for they are few."""
    kind = type(label)
    plain = kind is int or kind is str or kind is bool or kind is float
    if plain and (kind, label) in known:
        return known[kind, label]
    key = written(label)
    place = -1 if key is None else number.get(key, -1)
    if plain and len(known) < _MOST_REMEMBERED:
        known[kind, label] = place
    return place


def checked_names(classes: object, *, least: int = 2, kinds: Any = (str, int, float)) -> list[Any]:
    """Return the public names of classes as plain values, or say what is wrong with them.

    Parameters
    ----------
    classes : a list of them, an array, or a mapping by them
    least : how many there must be
    kinds : what they may be: text and numbers can be written to files

    Examples
    --------
    >>> checked_names(np.array(["a", "b"]))
    ['a', 'b']
    >>> checked_names(["case", "control", "control"])
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: classes must be distinct names, and 'control' is there twice.
    """
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__iter__"):
        raise InvalidArgumentError("`classes` must be a list of names, got {got}.", got=shown(classes))
    names = [name.item() if isinstance(name, np.generic) else name for name in classes]
    if len(names) < least:
        wanted, got = (
            {1: "one", 2: "two"}.get(least, str(least)),
            "1 name" if len(names) == 1 else f"{len(names)} names",
        )
        raise InvalidArgumentError(
            "`classes` must be a list of {wanted} or more distinct names, got {got}.", wanted=Public(wanted), got=got
        )
    for name in names:
        endless = isinstance(name, float) and not math.isfinite(name)
        if endless or not isinstance(name, kinds) or not isinstance(name, Hashable):
            raise InvalidArgumentError(
                "`classes` must be text or numbers that are finite, and one is {got}.", got=shown(name)
            )
    _refuse_alike(names)
    return names


def _refuse_alike(names: list[Any]) -> None:
    """Refuse names of which two are equal, or are written alike."""
    places: dict[Any, int] = {}
    for place, name in enumerate(names):
        before = places.setdefault(written(name) or name, place)
        if before != place:
            first = names[before]
            same = type(first) is type(name) and first == name
            wrong = f"{name!r} is there twice" if same else f"{first!r} and {name!r} are written alike or equal"
            raise InvalidArgumentError("`classes` must be distinct names, and {wrong}.", wrong=wrong)
