"""From what a user gives as records to points, where one bad record may neither stop a release nor change another.

With `invalid="center"` nothing that stands in a record stops a release by itself: not a gap, not text, not a record of
another shape. What is no point of the space counts as the ball's centre, each record judged by itself. (More than half
of them are refused all the same, unless that was confirmed: stats/curator.py.)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

from dpmanifold._check import Array, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.frechet.records import Records, is_stream
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.layouts import several_a_unit
from dpmanifold.sources import as_source


def checked_records(X: object, ball: Ball, invalid: str, first: int = 0) -> tuple[Array, int]:
    """Return the records as points; with `invalid="center"`, bad ones replaced by the centre, and how many.

    `first` is the index of the first record, in messages.
    """
    # A warning of numpy would tell about a single record, and where warnings are errors it would stop the release.
    with np.errstate(all="ignore"):
        if invalid == "raise":
            return ball.space.as_points(X, "X", batch=True, first=first), 0
        return _with_centers(X, ball)


def records_of(X: object, ball: Ball, invalid: str, first: int = 0) -> Records:
    """Return records to be checked a block at a time where X is an array; what else it may be is checked at once.

    `first` is the index of the first record, in messages.
    """
    checked_invalid(invalid)
    X = ball.space.from_card(X)
    if is_stream(X, ball.space):
        return Records(X, ball.space, lambda block, index: checked_records(block, ball, invalid, index), first=first)
    records, replaced = checked_records(X, ball, invalid, first)
    return Records.valid(records, ball.space, replaced)


def as_batch(X: object, ball: object) -> object:
    """Return records as one batch where they come as one array for every factor of a product of spaces."""
    return ball.space.batch(X) if isinstance(ball, Ball) else X


def checked_invalid(invalid: object) -> None:
    """Refuse what is neither "raise" nor "center"."""
    if invalid not in ("raise", "center"):
        raise InvalidArgumentError(f'invalid must be "raise" or "center", got {shown(invalid)}.')


def known_number_of_records(X: object) -> int | None:
    """Return how many records there are, where that is known before they are read: of sources it need not be."""
    source = as_source(X)
    return number_of_records(X) if source is None else source.rows


def number_of_records(X: object, name: str = "X") -> int:
    """Return how many records there are, whatever they are; refuse what is no batch of records.

    >>> number_of_records([[1.0], None, "text"])
    3
    """
    try:
        if isinstance(X, (str, bytes, Mapping, Set)):
            raise TypeError
        return len(X)  # type: ignore[arg-type]
    except TypeError:
        remedy = " Files are data.Dataset(path)." if isinstance(X, (str, os.PathLike)) else ""
        remedy = " A function that makes blocks is data.from_blocks(function)." if callable(X) else remedy
        raise InvalidDataError(
            f"{name} must be a batch of records, an array or a list, got {shown(X)}.{remedy}"
        ) from None


def _with_centers(X: object, ball: Ball) -> tuple[Array, int]:
    """Return a point for each record, the centre for those that are none, and how many those are."""
    space = ball.space
    records = np.broadcast_to(ball.center, (number_of_records(X), *space.shape)).copy()
    replaced = np.ones(len(records), dtype=bool)
    for places, batch in _batches(X, space):
        good = space.valid(batch)
        if good.ndim != 1:
            got = np.shape(batch)
            remedy = several_a_unit(repr(space), got, good.ndim) if good.ndim else "One record is X[None]."
            raise InvalidDataError(f"X must be a batch of records, one axis in front, got shape {got}. {remedy}")
        records[places[good]] = space.project(batch[good])
        replaced[places[good]] = False
    # Projecting rounds: what is no longer valid afterwards counts as the centre as well, and nothing shows.
    lost = ~space.valid(records)
    records[lost] = ball.center
    return records, int((replaced | lost).sum())


def _batches(X: object, space: Manifold) -> Iterator[tuple[Array, Array]]:
    """Yield arrays of records of one kind and shape, and where they stand in X; leave out what is no such record.

    An array of numbers has one kind and shape for all, which no single record decides. A list is taken record by
    record: as one array it would have the kind and shape of its worst.
    """
    if hasattr(X, "__array__") and not np.ma.isMaskedArray(X):
        X = np.asarray(X)
        if X.dtype.kind in "iuf" or X.dtype.kind == space.dtype.kind:
            yield np.arange(len(X)), X
            return
    found: dict[str, tuple[list[int], list[Array]]] = {}
    for index, record in enumerate(X):  # type: ignore[arg-type, var-annotated]
        array = numbers_of_record(record, space)
        if array is not None:
            places, arrays = found.setdefault(array.dtype.kind, ([], []))
            places.append(index)
            arrays.append(array)
    for places, arrays in found.values():
        yield np.array(places), np.stack(arrays)


def numbers_of_record(record: object, space: Manifold) -> Array | None:
    """Return one record as an array of numbers of a shape that the space takes, or None."""
    try:
        if np.ma.isMaskedArray(record) and np.ma.getmaskarray(record).any():
            return None
        array = np.asarray(record)
        if array.dtype.kind in "OUSb":
            array = _from_entries(array)
        if array.dtype.kind == "c" and "c" not in space.record_shapes and not array.imag.any():
            array = array.real  # as it would be had no other record of its array been complex
        if array.dtype.kind not in "iufc":
            return None
        array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    except Exception:
        # Numbers too large, ragged lists, and whatever foreign objects raise: none of it may show.
        return None
    return array if array.shape == space.record_shapes.get(array.dtype.kind) else None


def _from_entries(array: Array) -> Array:
    """Return an array of Python numbers, truth values or numbers written as text as floats; or raise.

    One text among the records makes text of all of them when they become one array, and one number makes numbers of
    truth values: a record must be read the same either way.
    """
    entries: list[Any] = array.ravel().tolist()
    if not all(isinstance(entry, (int, float, str, bytes)) for entry in entries):
        return array
    return np.array([float(entry) for entry in entries]).reshape(array.shape)
