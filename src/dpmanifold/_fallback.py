"""Numerical maps that have a value for everything: where arithmetic fails, a public value takes its place.

Behind the payment an exception is an output (theory section 8). A decomposition that does not converge and a number
that is not finite are properties of the records, so each such map names the public value that stands in for its own, at
the line where it may fail. Nothing else is caught: a time-out, a lack of memory or a fault of a program is no property
of a number, and a release made in spite of it would be an answer about nothing at all. Those are losses
(`stats/payment.py`).
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from dpmanifold.errors import ConvergenceError

T = TypeVar("T")

NUMERICAL = (np.linalg.LinAlgError, FloatingPointError, OverflowError, ZeroDivisionError, ConvergenceError)
"""What a numerical map may raise: a decomposition or a solver did not converge, or arithmetic has no result."""

_watching: contextvars.ContextVar[list[Exception] | None] = contextvars.ContextVar("_watching", default=None)


def with_fallback(compute: Callable[[], T], fallback: Callable[[], T], *refusals: type[Exception]) -> T:
    """Return what `compute` gives; what `fallback` gives if that fails numerically or is not finite.

    Parameters
    ----------
    compute : a numerical map of records or of released numbers. It draws no random bits: what was drawn would be drawn
        once more
    fallback : gives a value of the same kind, from public or released numbers alone
    refusals : what else it may raise, where it decides by *released* numbers whether something can be made of them

    Examples
    --------
    >>> with_fallback(lambda: 1 / 0, lambda: 0.0)
    0.0
    >>> with_fallback(lambda: np.array([np.nan]), lambda: np.zeros(1))
    array([0.])
    >>> with_fallback(lambda: [][1], lambda: 0.0)
    Traceback (most recent call last):
    ...
    IndexError: list index out of range
    """
    expected: tuple[type[Exception], ...] = (*NUMERICAL, *refusals)
    with np.errstate(all="ignore"):  # warnings of numpy tell, too
        try:
            result = compute()
            if is_finite(result):
                return result
            _taken(FloatingPointError("a number is not finite"))
        except expected as problem:
            _taken(problem)
        return fallback()


def is_finite(result: object) -> bool:
    """Return whether all numbers in an array, a number or a tuple of them are finite.

    Examples
    --------
    >>> is_finite((1.0, np.zeros(2))), is_finite((1.0, np.array([np.inf])))
    (True, False)
    """
    if isinstance(result, tuple):
        return all(is_finite(part) for part in result)
    if isinstance(result, (float, complex, np.ndarray, np.number)):
        return bool(np.isfinite(result).all())
    return True


@contextlib.contextmanager
def watched() -> Iterator[list[Exception]]:
    """Collect why fallbacks are taken in the block: for rehearsals on public points, and for tests. Data otherwise.

    Examples
    --------
    >>> with watched() as taken:
    ...     found = with_fallback(lambda: 1 / 0, lambda: 0.0)
    >>> taken
    [ZeroDivisionError('division by zero')]
    """
    taken: list[Exception] = []
    token = _watching.set(taken)
    try:
        yield taken
    finally:
        _watching.reset(token)


def _taken(problem: Exception) -> None:
    """Note that a fallback is taken, where somebody watches."""
    taken = _watching.get()
    if taken is not None:
        taken.append(problem)
