"""The bytes that a ledger makes the fingerprint of records from, the same whichever way the records come.

An array, a list, files, a data frame, blocks of any size, numbers of any width: a record is its numbers as doubles, as
they were given and before any arithmetic, for arithmetic may differ in the last bit on another machine. With them go
the ids of their units and the numbers of their classes, in the order of the records.

The digests made here are of plain records: whoever knew all records but one could test the last one against them. They
are handed to the account in memory, which keeps no more than an HMAC of them under a secret key, and nowhere else.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpmanifold._cells import numbers_of_labels, record_cells
from dpmanifold._check import Array, FloatArray
from dpmanifold._ids import as_sequence
from dpmanifold._merged_ids import unit_ids
from dpmanifold.ball import Ball
from dpmanifold.linalg.cards.arrays import is_card_array
from dpmanifold.manifolds import Manifold
from dpmanifold.privacy.budget_accounts import canonical_json
from dpmanifold.sources import as_source
from dpmanifold.stats.by_class import class_numbers
from dpmanifold.stats.inputs import as_batch, column_or_ids, number_of_records

Content = Callable[[], Iterator[bytes]]
"""Gives what a fingerprint is made of, reading the records once more: first of the records alone, then of the rest."""

# Ids that are looked at together, numbers in records, and bytes of ids that are written one after the other.
_TOGETHER, _NUMBERS = 65_536, 1_048_576
_BYTES = 16_777_216
_NO_NUMBERS = "none"


def content_of(
    X: object,
    ball: Ball,
    units: object,
    labels: object = None,
    classes: list[Any] | None = None,
    covariates: Callable[[], FloatArray] | None = None,
) -> Content:
    """Return what gives the bytes for a fingerprint of these records. NOT PRIVATE.

    Parameters
    ----------
    X, units, labels, classes : as a private call has checked them
    ball : on whose space they are
    covariates : returns one number per record; None for records without any

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> ball = Ball(Euclidean(1), [0.0], 1.0)
    >>> one, other = (b"".join(content_of(X, ball, ["a", "b"])()) for X in ([[1], [2]], np.array([[1.0], [2.0]])))
    >>> one == other
    True
    """

    def content() -> Iterator[bytes]:
        records, ids, numbers = _Records(ball.space), hashlib.sha256(), hashlib.sha256()
        for block, owners, label in _blocks(X, ball, units, labels, classes):
            records.add(block)
            if owners is not None:
                _add_ids(ids, owners)
            if label is not None:
                numbers.update(np.ascontiguousarray(label, dtype="<i8").data)
        yield canonical_json([repr(ball.space), records.layout, records.digest.hexdigest()]).encode("ascii")
        beside = canonical_json([ids.hexdigest(), numbers.hexdigest()])
        yield (beside if covariates is None else beside + _written(covariates())).encode("ascii")

    return content


def _written(covariates: FloatArray) -> str:
    plain = np.array(covariates, dtype="<f8")
    plain[np.isnan(plain)] = np.nan  # of which there are many
    return f"covariate {hashlib.sha256(plain.tobytes()).hexdigest()}"


class _Records:
    """The numbers of records one after the other, and of which kind and shape how many of them are in a row."""

    def __init__(self, space: Manifold) -> None:
        self._space = space
        self.digest = hashlib.sha256()
        self.layout: list[list[Any]] = []

    def add(self, block: object) -> None:
        """Add records, all at once where they are an array of numbers; else one by one."""
        found = self._space.as_numbers(block)
        if isinstance(found, np.ndarray) or is_card_array(found):  # a card's is fetched a part at a time
            rows = max(1, _NUMBERS // max(1, math.prod(found.shape[1:])))
            for start in range(0, len(found), rows):
                self._add_numbers(found[start : start + rows])
            return
        for record in found:  # type: ignore[attr-defined]
            cells = record_cells(record, self._space.record_shapes)
            if cells is None:
                self._count(_NO_NUMBERS, (), 1)
            else:
                self._add_numbers(cells[None])

    def _add_numbers(self, records: Array) -> None:
        kind = "<c16" if records.dtype.kind == "c" else "<f8"
        numbers = np.array(records, dtype=kind, order="C")
        numbers[np.isnan(numbers)] = np.nan  # of which there are many
        self._count(kind, records.shape[1:], len(records))
        self.digest.update(numbers.data)

    def _count(self, kind: str, shape: tuple[int, ...], many: int) -> None:
        """Note what comes next, joined with what came before if that is alike: blocks leave no trace."""
        described = [kind, list(shape)]
        if self.layout and self.layout[-1][:2] == described:
            self.layout[-1][2] += many
        elif many:
            self.layout.append([*described, many])


def _blocks(
    X: object, ball: Ball, units: object, labels: object, classes: list[Any] | None
) -> Iterator[tuple[object, object, Array | None]]:
    """Yield records, their ids (None where each is a unit) and the numbers of their classes (None without classes)."""
    named = column_or_ids(units)
    X = as_batch(X, ball)
    source = as_source(X)
    if source is None:
        yield X, named, None if classes is None else class_numbers(labels, classes, number_of_records(X), "center")
        return
    for piece in source.bound(ball.space, named, labels):
        for block in piece.blocks():
            number = None if classes is None else numbers_of_labels(block.labels, classes, "center")
            yield block.records, block.units, number


def _add_ids(digest: Any, owners: object) -> None:
    """Add the id of each record: its kind, its length and its text."""
    every = as_sequence(owners, "units")
    for start in range(0, len(every), _TOGETHER):
        part = every[start : start + _TOGETHER]
        found = unit_ids(part, len(part))
        encoded = [_encoded(name) for name in found.names]
        step = max(1, _BYTES // max(map(len, encoded)))  # one long id does not fill the memory
        for place in range(0, len(part), step):
            digest.update(b"".join([encoded[number] for number in found.group[place : place + step].tolist()]))


def _encoded(name: int | str) -> bytes:
    text = str(name).encode("utf-8", "surrogatepass")
    return (b"t" if isinstance(name, str) else b"n") + len(text).to_bytes(8, "little") + text
