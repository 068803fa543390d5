"""Labels of records, and the public names of classes: each label is read by itself.

Labels may be private. An array made of a list has one type, so that a single label would decide what all others are
taken for: `[1, 1, "x"]` are three texts, `[1, 0.5]` two fractions. So a label is looked up by how it is written, in a
form that does not change with the type it is stored in: 1, 1.0, True and "1" are the same.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Hashable
from decimal import Decimal
from typing import Any, TypeGuard

import numpy as np

from dpmanifold._cells import TRUTH, from_polars, real_cell, refuse_fault, single
from dpmanifold._check import Array, shown
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public

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
