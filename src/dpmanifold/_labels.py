"""Labels of records, and the public names of classes: each label is read by itself.

Labels may be private. An array made of a list has one type, so that a single label would decide what all others are
taken for: `[1, 1, "x"]` are three texts. So a label is looked up as it was given, and, where it is none of the names,
by how it is written; whoever turned 1 into "1" on the way has changed nothing then.
"""

from __future__ import annotations

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


def refuse_names(names: list[Any]) -> None:
    """Refuse what is no list of distinct names, or has two that are written alike.

    Examples
    --------
    >>> refuse_names([1, "1"])
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: classes must be a list of distinct names, ...
    """
    if not names or len(set(names)) != len(names) or len(set(map(str, names))) != len(names):
        raise InvalidArgumentError(f"classes must be a list of distinct names, got {shown(names)}.")
