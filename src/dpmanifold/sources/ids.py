"""One id or label per record in an array, beside records that are read piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dpmanifold._check import Array
from dpmanifold._ids import as_sequence
from dpmanifold.errors import Argument, InvalidArgumentError, Public


class InRows(Protocol):
    """One entry per record, cut by slices of rows: an array, or what reads itself (a zarr array)."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,)."""

    def __getitem__(self, rows: slice, /) -> Array:
        """Return the entries of some rows."""


def ids_in_rows(ids: object, rows: int | None, name: str = "units") -> Array:
    """Return ids as an array (n,) that is cut alongside the records, or refuse what is not one per record.

    What the ids themselves are is looked at by whoever groups them, block by block.

    Parameters
    ----------
    ids : in a list, tuple, array, pandas Series, Index or Categorical, polars Series or pyarrow array
    rows : how many records there are, where that is known
    name : what to call the argument in messages

    Examples
    --------
    >>> ids_in_rows([3, 3, 1], 3), ids_in_rows(["a", "b"], None)
    (array([3, 3, 1]), array(['a', 'b'], dtype=object))
    >>> ids_in_rows(["a"], 2)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: units must have shape (2,), one id per record, got (1,).
    """
    found = as_sequence(ids, name)
    array = _in_array(found) if isinstance(found, list) else found
    if array.ndim != 1 or (rows is not None and len(array) != rows):
        wanted = "(n,)" if rows is None else f"({rows},)"
        raise InvalidArgumentError(
            "{name} must have shape {wanted}, one id per record, got {shape}.",
            name=Argument(name),
            wanted=Public(wanted),
            shape=Public(array.shape),
        )
    return array


def _in_array(ids: Sequence[Any]) -> Array:
    """Return a list as whole numbers, or as the objects it holds: numpy would make text of numbers next to text."""
    if ids and set(map(type, ids)) == {int} and min(ids) >= -(2**63) and max(ids) < 2**63:
        return np.array(ids, dtype=np.int64)
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array


__all__ = ["InRows", "ids_in_rows"]
