"""Checks shared by every room, of arguments and of packages. A leaf: it knows numpy and the errors, nothing else."""

from __future__ import annotations

import importlib
import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, MissingPackageError, Public

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]


def shown(value: object) -> str:
    """Describe a wrong argument without spilling its contents: numbers and words as they are, the rest by type.

    >>> shown(-3), shown(np.zeros((2, 2)))
    ('-3', 'ndarray of shape (2, 2)')
    """
    if value is None or isinstance(value, (str, bool, Real)):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"{type(value).__name__} of shape {value.shape}"
    return type(value).__name__


class Reticent:
    """What task lists, dashboards and logs may show: its repr tells nothing about where or what it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def positive_int(value: object, name: str, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < minimum:
        raise InvalidArgumentError(
            "{name} must be a whole number of at least {minimum}, got {got}.",
            name=Argument(name),
            minimum=Public(minimum),
            got=shown(value),
        )
    return int(value)


def positive_float(value: object, name: str) -> float:
    """Return `value` as a finite float above zero, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidArgumentError("{name} must be a number above 0, got {got}.", name=Argument(name), got=shown(value))
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise InvalidArgumentError(
            "{name} must be finite and above 0, got {number!r}.", name=Argument(name), number=Public(number)
        )
    return number


def fraction(value: object, name: str) -> float:
    """Return `value` as a float in (0, 1], or say what is wrong with it."""
    number = positive_float(value, name)
    if number > 1:
        raise InvalidArgumentError(
            "{name} must be above 0 and at most 1, got {number!r}.", name=Argument(name), number=Public(number)
        )
    return number


def open_fraction(value: object, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1, or say what is wrong with it."""
    number = positive_float(value, name)
    if number >= 1:
        raise InvalidArgumentError(
            "{name} must be above 0 and below 1, such as 0.95, got {number!r}.",
            name=Argument(name),
            number=Public(number),
        )
    return number


def numeric_array(value: object, name: str) -> Array:
    """Return `value` as a float64 or complex128 array; refuse text, objects and ragged lists."""
    if np.ma.isMaskedArray(value):
        raise InvalidDataError(
            "{name} is a masked array, whose mask would be ignored. Select the records: X[~mask].", name=Argument(name)
        )
    array = np.asarray(value) if isinstance(value, np.ndarray) else _foreign(value, name)
    if array.dtype.kind == "c":
        return array.astype(np.complex128, copy=False)
    if array.dtype.kind not in "fiu":
        raise InvalidDataError(
            "{name} must be an array of numbers, got dtype {dtype}. Make it one float64 array (np.stack joins "
            "a list of arrays).",
            name=Argument(name),
            dtype=array.dtype,
        )
    return array.astype(np.float64, copy=False)


def _foreign(value: object, name: str) -> Array:
    """Return what is not an array as one. What the machine lacks says nothing about the value, and is let through."""
    try:
        return np.asarray(value)
    except (MemoryError, TimeoutError):
        raise
    except ValueError as problem:
        raise InvalidDataError(
            "{name} must be an array of numbers of one shape, got a ragged sequence. Stack records of equal shape.",
            name=Argument(name),
        ) from problem
    except Exception:
        # Whatever a foreign object raises; its message may quote data.
        raise InvalidDataError(
            "{name} cannot be read as an array of numbers. Make it one with np.array.", name=Argument(name)
        ) from None


def index_text(mask: Array, first: int = 0) -> Message:
    """Say where the first True of `mask` stands: `at index 17`, or nothing for a single point.

    `first` is the index of the mask's first entry, for the blocks of a longer array.

    >>> index_text(np.array([False, True])), index_text(np.array([False, True]), first=100)
    (' at index 1', ' at index 101')
    """
    if mask.ndim == 0:
        return Message("")
    found = np.argwhere(mask)
    where = (int(found[0][0]) + first, *(int(i) for i in found[0][1:]))
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Message(" at index {index}{more}", index=Public(where[0] if len(where) == 1 else where), more=Public(more))


def batch_of(array: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch part of `array`'s shape, given the shape of one item.

    >>> batch_of(np.zeros((5, 4, 3)), (3,))
    (5, 4)
    """
    return array.shape[: array.ndim - len(shape)]


def optional_module(name: str, extra: str, purpose: str) -> Any:
    """Import a module, or say which extra of dpmanifold brings it.

    Examples
    --------
    >>> optional_module("no_such_module", "plots", "this picture")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.MissingPackageError: this picture needs a package that is not installed.
    Run: pip install "dpmanifold[plots]".
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingPackageError(
            '{purpose} needs a package that is not installed. Run: pip install "dpmanifold[{extra}]".',
            purpose=purpose,  # which may name a file
            extra=Public(extra),
        ) from None
