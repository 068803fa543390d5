"""From an array of records to one point per unit in a ball's frame, in one pass over it.

What is held is a block of records, and what has to be kept: sums of a flat ball's units, points of a curved one's. A
memory-mapped file never has to fit into memory, and rows may come in any order. Every record is mapped by itself and
sums are exact, so that neither blocks nor order show in a bit of the result. Not private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._ids import UnitIds
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidDataError, Public
from dpmanifold.frechet.passes import Part
from dpmanifold.frechet.points import UnitPoints
from dpmanifold.frechet.records import Records, add_clipped, first_sum, flat_sum, move_clipped, pieces_of, room_for
from dpmanifold.frechet.solver import Summands, solve_groups
from dpmanifold.frechet.tolerances import lowest_tol
from dpmanifold.linalg.exact_sums import MOST_RECORDS
from dpmanifold.manifolds import Manifold

# Numbers in the records of whole units that are gathered from all over the data, to be solved together, and the fewest
# records.
_GATHERED, _FEWEST = 1_048_576, 64


@dataclass(frozen=True)
class Made:
    """Points and what became of the records: how many lie outside the ball or on its edge, and how many were replaced.

    With it the number of records, and the ids of the units where there are some. All of it is data.
    """

    points: UnitPoints
    clipped: int
    replaced: int
    records: int
    ids: UnitIds | None


def made_from(records: Records, ball: Ball, ids: UnitIds | None = None) -> Made:
    """Return one point per unit in the ball's frame; without ids, every record is a unit."""
    refuse_too_many(len(records))
    with np.errstate(all="ignore"):  # a warning would tell about a single record
        if ids is None:
            points, clipped, replaced = (_flat_records if ball.space.is_flat else _curved_records)(records, ball)
        else:
            require_ball(ball)
            averages, clipped, replaced = (_flat_units if ball.space.is_flat else _curved_units)(records, ball, ids)
            points = of_averages(averages, ball)
    return Made(points, clipped, replaced + records.replaced, len(records), ids)


def refuse_too_many(n: int) -> None:
    """Refuse more records than can be added exactly."""
    if n > MOST_RECORDS:
        raise InvalidDataError(
            "`X` holds {n} records, and at most {most_records} can be added exactly.",
            n=Public(n),
            most_records=Public(MOST_RECORDS),
        )


def of_averages(averages: Array, ball: Ball) -> UnitPoints:
    """Return units' averages as points: an average of points of the ball is in it, but for rounding."""
    return UnitPoints.of(ball.in_frame.pull_in(averages), ball, "unit")


def made_by_class(records: Records, ball: Ball, label: Array, classes: int) -> tuple[list[UnitPoints], int, int]:
    """Return the points of each class, given the number of each record's; every record is a unit.

    With them the numbers of clipped and replaced records.
    """
    if not ball.space.is_flat:
        made = made_from(records, ball)
        made.points.rehearse()
        return [made.points.where(label == number) for number in range(classes)], made.clipped, made.replaced
    with np.errstate(all="ignore"):
        sums = flat_sum(ball, classes)
        clipped, replaced = add_clipped(records, ball, sums, label)
    everybody = UnitPoints(ball, "record", len(records), [here(records, ball)])
    parts = [everybody.where(label == number, sums.cut(1, number)) for number in range(classes)]
    return parts, clipped, replaced + records.replaced


# -------------------------------------------------------------------- flat: sums are all that is kept


def _flat_records(records: Records, ball: Ball) -> tuple[UnitPoints, int, int]:
    sums = flat_sum(ball)
    clipped, replaced = add_clipped(records, ball, sums)
    return UnitPoints(ball, "record", len(records), [here(records, ball)], sums), clipped, replaced


def here(records: Records, ball: Ball) -> Part:
    """Return the part that reads an array again: points of a flat ball."""
    return Part([records], lambda again: (ball.into_frame(block) for _, block, _ in again.blocks()))


def _flat_units(records: Records, ball: Ball, ids: UnitIds) -> tuple[FloatArray, int, int]:
    count = len(ids)
    sums = flat_sum(ball, count)
    clipped, replaced = add_clipped(records, ball, sums, ids.group)
    total = ball.space.from_addends(sums.total())
    return total / np.bincount(ids.group, minlength=count)[:, None], clipped, replaced


# -------------------------------------------------------------------- curved: points are kept, or units solved


def _curved_records(records: Records, ball: Ball) -> tuple[UnitPoints, int, int]:
    stored = room_for(ball, len(records), beside=records.raw)
    first = first_sum(ball)
    clipped, replaced = move_clipped(records, ball, stored, first)
    return UnitPoints.packed(stored, ball, "record", first), clipped, replaced


def _curved_units(records: Records, ball: Ball, ids: UnitIds) -> tuple[Array, int, int]:
    """Average whole units, gathered a block at a time from wherever their rows are."""
    frame, count = ball.frame, len(ids)
    order = np.argsort(ids.group, kind="stable").astype(ids.group.dtype)
    ends = np.cumsum(np.bincount(ids.group, minlength=count))
    averages = np.empty((count, *frame.shape), dtype=frame.dtype)
    clipped = replaced = start = first = 0
    step = max(_FEWEST, _GATHERED // math.prod(frame.shape))
    while first < count:
        last = max(first + 1, int(np.searchsorted(ends, start + step, "right")))
        places = order[start : ends[last - 1]]
        stored, edge, bad = _gathered(records, ball, places)
        averages[first:last] = averaged(frame, ball, stored, ids.group[places] - first, last - first)
        clipped, replaced = clipped + edge, replaced + bad
        start, first = int(ends[last - 1]), last
    return averages, clipped, replaced


def _gathered(records: Records, ball: Ball, places: Array) -> tuple[Array, int, int]:
    """Return the points of records from anywhere, packed, and how many were clipped and replaced."""
    stored = room_for(ball, len(places))
    clipped = replaced = start = 0
    for few in pieces_of(places, ball):
        edge, bad = move_clipped(records.some(few), ball, stored[start : start + len(few)])
        clipped, replaced, start = clipped + edge, replaced + bad, start + len(few)
    return stored, clipped, replaced


def averaged(
    frame: Manifold,
    ball: Ball,
    stored: Array | Summands,
    group: Array | None,
    count: int,
    first: FloatArray | None = None,
) -> Array:
    """Return the mean of each group of points, (count, *frame.shape), solved to a tolerance of the ball alone.

    A unit's average is a per-unit map: how exactly it is solved plays no part in any sensitivity. Its tolerance must
    not depend on other units (not even on how many records they have), and failure must not show.
    """
    tol = max(1e-10 * ball.radius, lowest_tol(ball, 1))
    # Never one group, which is solved with other first steps: a unit may be alone in a block because of the others. A
    # group without points is at the origin from the start.
    groups = max(2, count)
    solved = solve_groups(frame, ball.in_frame, stored, None, group, groups, tol, 200, strict=False, first=first)
    return solved.points[:count]
