"""From a source of records to one point per unit: every record read and checked before anything is spent or drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.engines import current_engine
from dpmanifold.errors import InvalidDataError
from dpmanifold.frechet import MadeOf, Reading, made_of
from dpmanifold.frechet.records import Records
from dpmanifold.sources import Source
from dpmanifold.stats.records import checked_invalid, records_of


def read_source(
    source: Source,
    ball: Ball,
    units: object,
    invalid: str,
    enough: Callable[[Array], None],
    labels: object = None,
    numbers: Callable[[Array], Array] | None = None,
    classes: int = 1,
) -> MadeOf:
    """Read all records of a source with the engine in use, and return one point per unit, or refuse.

    Parameters
    ----------
    source : the records
    ball : the ball
    units : None where every record is a unit; else the name of a column, or one id per record
    invalid : as in :func:`private_mean`
    enough : refuses too few units, given how many records each has in each class, (units, classes)
    labels : the name of a column, or one class per record, where there are classes
    numbers : makes class numbers of labels, or refuses them
    classes : how many there are
    """
    checked_invalid(invalid)
    pieces = source.bound(ball.space, units, labels)
    take = _Taking(ball, invalid)
    made = made_of(pieces, Reading(ball, take, numbers, classes), units is not None, current_engine(), enough)
    if made.records == 0:
        raise InvalidDataError("`X` is empty: a private statistic needs at least 2 units.")
    return made


class _Taking:
    """Takes a block's records as an array's are taken."""

    def __init__(self, ball: Ball, invalid: str) -> None:
        self._ball, self._invalid = ball, invalid

    def __call__(self, block: Array, first: int) -> Records:
        return records_of(block, self._ball, self._invalid, first)


def units_in(counts: Array, by_id: bool) -> Array:
    """Return how many units each class has, given how many records each unit has in it, (units, classes)."""
    return np.asarray(np.count_nonzero(counts, axis=0) if by_id else counts.sum(axis=0))
