"""From a user's data to one point per unit, with every check before anything is spent or drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard, final

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, shown
from dpmanifold._ids import unit_ids
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.frechet import UnitPoints
from dpmanifold.linalg import weighted_sum
from dpmanifold.privacy import ApproxDP, Budget, Promise, gdp_sufficient_for, split
from dpmanifold.stats.curator import Curator, Tally, checked_curator
from dpmanifold.stats.records import checked_records as checked_records
from dpmanifold.stats.records import number_of_records as number_of_records

# Numbers in the records that are checked, clipped and moved at a time (1 MiB of them), and the fewest records.
_BLOCK = 131_072
_FEWEST = 64


@final
class EachRecord:
    """The type of :data:`EACH_RECORD`."""

    def __repr__(self) -> str:
        return "EACH_RECORD"


EACH_RECORD: Final = EachRecord()
"""Give this as `units=` to say that every record is a unit of its own: nobody owns two. "each-record" says the same."""


def is_each_record(units: object) -> bool:
    """Return whether `units` says that nobody owns two records."""
    return isinstance(units, EachRecord) or (isinstance(units, str) and units == "each-record")


def checked_question(ball: object, privacy: object) -> None:
    """Refuse what is no ball or no promise."""
    if not isinstance(ball, Ball):
        raise InvalidArgumentError(f"ball must be a Ball, got {shown(ball)}. The arguments are (X, ball, privacy).")
    if not isinstance(privacy, Promise):
        raise InvalidArgumentError(
            f"privacy must be a promise such as PureDP(1.0) or ApproxDP(0.5, 1e-6), got {shown(privacy)}."
        )


@dataclass(frozen=True)
class Told:
    """Whom to tell about records that do not count as they are, and whether to go on if most do not."""

    curator: Curator | None = None
    confirm: bool = False

    def __post_init__(self) -> None:
        checked_curator(self.curator, self.confirm)


def prepare(
    X: object, ball: Ball, privacy: Promise, units: object, invalid: str, told: Told, group: str = ""
) -> UnitPoints:
    """Return one point per unit in the ball's frame, or refuse: the one place where records are looked at."""
    checked_question(ball, privacy)
    if number_of_records(X) == 0:
        raise InvalidDataError("X is empty: a private statistic needs at least 2 units.")
    tally = Tally()
    if _comes_in_blocks(X, ball, units):
        points = _each_record(X, ball, invalid, tally)
    else:
        records, replaced = checked_records(X, ball, invalid)
        ids = checked_units(units, len(records))
        moved = frechet.record_points(records, ball)
        tally.add(ball, moved, replaced)
        points = UnitPoints.of(moved, ball) if ids is None else frechet.unit_averages(moved, ball, ids)
    checked_number(len(points))
    tally.tell(told.curator, told.confirm, group)
    return points


def checked_number(n: int) -> int:
    """Return a number of units, or refuse one or none."""
    if n < 2:
        raise InvalidDataError(f"a private statistic needs at least 2 units, got {n}.")
    return n


def _comes_in_blocks(X: object, ball: Ball, units: object) -> TypeGuard[Array]:
    """Return whether records can be taken a block at a time: an array of which every record is a unit."""
    return is_each_record(units) and isinstance(X, np.ndarray) and len(X.shape) > len(ball.space.shape)


def _each_record(X: Array, ball: Ball, invalid: str, tally: Tally) -> UnitPoints:
    """Check, clip and move records. Points of a flat ball are not stored: their mean is, and blocks are made anew.

    Added pairwise in blocks and over blocks, so within the rounding that every mean allows for.
    """
    if ball.space.is_flat:
        parts = (moved for _, moved in _blocks(X, ball, invalid, tally))
        sums = [weighted_sum(moved, np.full(len(moved), 1 / len(X))) for moved in parts]
        mean = weighted_sum(np.array(sums), np.ones(len(sums)))
        return UnitPoints(
            ball, "record", len(X), lambda: (moved for _, moved in _blocks(X, ball, invalid, Tally())), mean
        )
    points = np.empty((len(X), *ball.frame.shape), dtype=ball.frame.dtype)
    for block, moved in _blocks(X, ball, invalid, tally):
        points[block] = moved
    return UnitPoints.of(points, ball)


def _blocks(X: Array, ball: Ball, invalid: str, tally: Tally) -> Iterator[tuple[slice, Array]]:
    """Yield records checked, clipped and moved, a block at a time: a memory-mapped file never has to fit into memory.

    Every record is mapped by itself, so the blocks do not show in the result.
    """
    step = max(_FEWEST, _BLOCK // math.prod(ball.space.shape))
    for start in range(0, max(1, len(X)), step):
        block = slice(start, min(start + step, len(X)))
        records, replaced = checked_records(X[block], ball, invalid, start)
        moved = ball.into_frame(records)
        tally.add(ball, moved, replaced)
        yield block, moved


def checked_units(units: object, n: int) -> Array | None:
    """Return the number of each record's unit, or None for EACH_RECORD; refuse a missing or wrong argument."""
    if is_each_record(units):
        return None
    if units is None:
        raise InvalidArgumentError(
            "units must say who owns each record: one id per record, or EACH_RECORD if nobody owns two. "
            "Protecting a single record of a person with many protects nobody."
        )
    return unit_ids(units, n).group


def divide(privacy: Promise, parts: int | Sequence[float]) -> list[Promise]:
    """Return shares that together keep the promise. An approximate one goes by way of a Gaussian one, once (section 8).

    Splitting epsilon and delta themselves would add up linearly; the Gaussian promise that implies them adds up in
    squares, and every Gaussian mechanism keeps it.
    """
    working: Promise = gdp_sufficient_for(privacy) if isinstance(privacy, ApproxDP) else privacy
    return list(split(working, parts))


def checked_flag(value: object, name: str) -> bool:
    """Return True or False, or refuse anything else."""
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{name} must be True or False, got {shown(value)}.")
    return value


def spend(budget: Budget | None, privacy: Promise, label: str) -> None:
    """Spend from a budget if there is one; call it after every check and before anything is drawn."""
    if budget is None:
        return
    if not isinstance(budget, Budget):
        raise InvalidArgumentError(f"budget must be a Budget, got {shown(budget)}.")
    budget.spend(privacy, label)
