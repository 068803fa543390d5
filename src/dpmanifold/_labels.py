"""Labels of records, and the public names of classes: each label is read by itself.

Labels may be private. An array made of a list has one type, so that a single label would decide what all others are
taken for: `[1, 1, "x"]` are three texts. So a label is looked up as it was given, and, where it is none of the names,
by how it is written; whoever turned 1 into "1" on the way has changed nothing then.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from dpmanifold._check import Array, shown
from dpmanifold.errors import InvalidArgumentError, InvalidDataError


def plain_labels(labels: object) -> list[Any]:
    """Return labels as plain values, each as it was given; a masked one is None.

    Examples
    --------
    >>> plain_labels([1, "x", np.float64(0.5)]), plain_labels(np.array(["a", "b"]))
    ([1, 'x', 0.5], ['a', 'b'])
    """
    if isinstance(labels, np.ma.MaskedArray):
        given: Any = labels.tolist()
    elif hasattr(labels, "__array__"):  # it has a type of its own
        array = np.asarray(labels)
        given = array.tolist() if array.ndim else None
    else:
        given = labels
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InvalidArgumentError(f"labels must be one class per record, got {shown(labels)}.")
    return [label.item() if isinstance(label, np.generic) else label for label in given]


def numbers_of_labels(labels: object, names: list[Any]) -> Array:
    """Return the numbers of classes by their names; a label outside the public classes is refused.

    Examples
    --------
    >>> numbers_of_labels([1, "2", 1.0], [1, 2])
    array([0, 1, 0])
    """
    number: dict[Any, int] = {name: i for i, name in enumerate(names)}
    written = {str(name): i for i, name in enumerate(names)}

    def found(label: Any) -> int:
        try:
            return number[label] if label in number else written[str(label)]
        except (KeyError, TypeError):
            raise InvalidDataError(
                f"a label is outside the public classes: {shown(label)}. Add it to classes, or drop its records."
            ) from None

    return np.array([found(label) for label in plain_labels(labels)], dtype=np.intp)


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
        raise InvalidArgumentError(f"classes must be a list of names, got {shown(classes)}.")
    names = [name.item() if isinstance(name, np.generic) else name for name in classes]
    if len(names) < least:
        wanted, got = (
            {1: "one", 2: "two"}.get(least, str(least)),
            "1 name" if len(names) == 1 else f"{len(names)} names",
        )
        raise InvalidArgumentError(f"classes must be a list of {wanted} or more distinct names, got {got}.")
    for name in names:
        endless = isinstance(name, float) and not math.isfinite(name)
        if endless or not isinstance(name, kinds) or not isinstance(name, Hashable):
            raise InvalidArgumentError(f"classes must be text or numbers that are finite, and one is {shown(name)}.")
    _refuse_alike(names)
    return names


def _refuse_alike(names: list[Any]) -> None:
    """Refuse names of which two are equal, or are written alike."""
    places: dict[Any, int] = {}
    for place, name in enumerate(names):
        for key in {name, str(name)}:
            first = names[places.setdefault(key, place)]
            if places[key] == place:
                continue
            same = type(first) is type(name) and first == name
            wrong = f"{name!r} is there twice" if same else f"{first!r} and {name!r} are written alike or equal"
            raise InvalidArgumentError(f"classes must be distinct names, and {wrong}.")
