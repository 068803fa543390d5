"""From a source of records to one point per unit in a ball's frame, piece by piece, wherever pieces are read.

Memory is for a block of records per worker, and for what has to be kept: sums of units; the points of a curved ball
where the engine has room for them, else every pass reads them again. The bits are those of the same records in one
array. Not private.

Units of a curved ball whose points are held in this process are gathered whole and solved by all threads. A unit's
average depends on its own records alone, to the last bit, so it does not matter which units are solved together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._ids import UnitIds
from dpmanifold._merged_ids import MergedIds
from dpmanifold.ball import Ball, require_ball
from dpmanifold.engines import Engine, Held
from dpmanifold.errors import SourceChangedError
from dpmanifold.frechet.map_reduce import Part, run, solving
from dpmanifold.frechet.points_per_unit import UnitPoints, averaged, of_averages, refuse_too_many
from dpmanifold.frechet.reading import FirstPass, Found, Kept, Reading, UnitWords, WhatWasFound
from dpmanifold.frechet.record_blocks import bytes_of_a_point, room_for
from dpmanifold.frechet.solver import Summands
from dpmanifold.linalg.exact_sums import IntArray
from dpmanifold.progress import quietly
from dpmanifold.sources import Piece

# Numbers in the points of whole units that are solved together, and the fewest points.
_GATHERED, _FEWEST = 524_288, 64

# Units are put into at most so many lots, so that a lot's number takes two bytes and is sorted by.
_MOST_LOTS = 2**15


def solved_here(found: Found, reading: Reading, part: Part) -> Array:
    """Return the averages of all groups in the order of their numbers, (groups, *shape).

    Parameters
    ----------
    found : what the first pass found
    reading : how pieces were read
    part : what is held of them, by threads of this process; its blocks are put into another order
    """
    ball, engine = reading.ball, part.engine
    assert found.ids is not None
    assert engine is not None
    lots = _Lots.of(found.counts, max(_FEWEST, _GATHERED // math.prod(ball.frame.shape)))
    averages = np.empty((len(found.counts), *ball.frame.shape), dtype=ball.frame.dtype)
    ids = found.ids

    def sorted_out(kept: Kept) -> list[_Block]:
        place = ids.find(kept.distinct)
        return [
            _sorted_block(kept, i, place, reading.classes, lots)  # each takes the place of the one that it is made of
            for i in range(len(kept.stored))
        ]

    def solve(lot: int) -> None:
        first, last = lots.starts[lot], lots.starts[lot + 1]
        pairs = [block.of(lot) for block in blocks]
        stored = np.concatenate([room_for(ball, 0), *(points for points, _ in pairs)])
        group = np.concatenate([np.empty(0, dtype=np.int64), *(groups for _, groups in pairs)])
        with np.errstate(all="ignore"):  # threads have their own
            averages[first:last] = averaged(ball.frame, ball, stored, group - first, last - first)

    with solving([part]), quietly():
        blocks = [block for some in engine.map(sorted_out, part.items) for block in some]
        for _ in engine.map(solve, range(len(lots.starts) - 1)):
            pass
    return averages


@dataclass(frozen=True)
class _Lots:
    """Groups that follow one another, with about as many records in each lot.

    Attributes
    ----------
    starts : (lots + 1,), the first group of each, and the end
    of_group : (groups,), the lot of each
    """

    starts: list[int]
    of_group: Array

    @staticmethod
    def of(counts: IntArray, records: int) -> _Lots:
        """Cut groups with so many records each into lots of about that many."""
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        step = max(records, -(-total // _MOST_LOTS))
        lot = (np.maximum(ends - 1, 0) // step).astype(np.uint16)
        starts = np.flatnonzero(np.r_[True, lot[1:] != lot[:-1]]) if len(lot) else np.empty(0, np.int64)
        rank = np.zeros(len(lot), dtype=np.uint16)
        rank[starts[1:]] = 1
        return _Lots([*map(int, starts), len(lot)], np.cumsum(rank, dtype=np.uint16))


@dataclass(frozen=True)
class _Block:
    """Points with the numbers of their groups, sorted by lots."""

    stored: Array
    group: Array
    ends: Array

    def of(self, lot: int) -> tuple[Array, Array]:
        """Return the points of a lot and their groups."""
        part = slice(int(self.ends[lot]), int(self.ends[lot + 1]))
        return self.stored[part], self.group[part]


def _sorted_block(kept: Kept, i: int, place: IntArray, classes: int, lots: _Lots) -> _Block:
    group = place[kept.unit[i]]
    if kept.label:
        group = group * classes + kept.label[i]
    lot = lots.of_group[group]
    order = np.argsort(lot, kind="stable")
    kept.stored[i], kept.unit[i] = kept.stored[i].take(order, axis=0), kept.unit[i][:0]
    ends = np.zeros(len(lots.starts), dtype=np.int32)
    ends[1:] = np.cumsum(np.bincount(lot, minlength=len(lots.starts) - 1))
    return _Block(kept.stored[i], group[order].astype(np.int32), ends)


# Beside a point: the number of its unit, and that of its class.
_BESIDE = 12

# Records that a thread goes through at a time: of held points, and of whole units that are solved together.
_TOGETHER = 131_072


@dataclass(frozen=True)
class MadeOf:
    """What a source gave. All of it is data.

    Attributes
    ----------
    groups : the points of each class; of all units, where there are no classes
    records, clipped, replaced : how many records there are, lie outside the ball or on its edge, and were no points
    ids : the units, sorted; None where every record is one
    counts : how many records each unit has in each class, (units, classes), in the order of the sorted ids
    unlabelled : how many records have a label that is none of the classes
    """

    groups: list[UnitPoints]
    records: int
    clipped: int
    replaced: int
    ids: UnitIds | None
    counts: Array
    unlabelled: int = 0


def made_of(
    pieces: Sequence[Piece], reading: Reading, by_id: bool, engine: Engine, enough: Callable[[Array], None]
) -> MadeOf:
    """Read all pieces, refuse what is wrong with them, and return one point per unit.

    Parameters
    ----------
    pieces : of a source that was bound to the ball's space
    reading : how they are read
    by_id : whether blocks say who owns their records; else every record is a unit
    engine : who does the work
    enough : refuses too few units, given how many records each has in each class, (units, classes)
    """
    ball = reading.ball
    if by_id:
        require_ball(ball)
    first = FirstPass(reading, by_id)
    holds = not ball.space.is_flat and _there_is_room(pieces, ball, engine)
    if holds and engine.elsewhere:
        part = Part(engine.keep(partial(first.kept, True), pieces, "reading"), _itself, engine)
        found = run(WhatWasFound(reading, by_id), [part])
    elif holds:
        found, kept = _taken_out(first, engine.keep(partial(first.kept, False), pieces, "reading"))
        part = Part(kept, _itself, engine)
    else:
        part = Part(pieces, _itself, engine)
        found = run(first, [part])
    if found is None:
        found = Found(None, np.zeros(0 if by_id else reading.classes, dtype=np.int64), ids=MergedIds())
    found.sums = found.trimmed()
    refuse_too_many(found.n)
    ids = None if found.ids is None or not by_id else found.ids.sorted()
    counts = found.counts.reshape(-1, reading.classes)
    if ids is not None:
        counts = counts[np.argsort(ids.group)]
    enough(counts)
    groups = _of_records(found, reading, part) if ids is None else _of_units(found, ids, reading, part)
    return MadeOf(groups, found.n, found.clipped, found.replaced, ids, counts, found.unlabelled)


def _there_is_room(pieces: Sequence[Piece], ball: Ball, engine: Engine) -> bool:
    """Return whether the engine has room for all points: not where nobody knows how many they are."""
    rows = [piece.about if piece.rows is None else piece.rows for piece in pieces]
    known = [number for number in rows if number is not None]
    return len(known) == len(rows) and sum(known) * (bytes_of_a_point(ball) + _BESIDE) <= engine.room


def _taken_out(first: FirstPass, held: Sequence[Held]) -> tuple[Found | None, list[Held]]:
    """Return what was found in all pieces, and their points in parts that threads can share."""
    found: Found | None = None
    parts: list[Held] = []
    for one in held:
        kept: Kept = one.value
        assert kept.found is not None
        found = kept.found if found is None else first.merge(found, kept.found)
        kept.found = None  # as large as its units
        parts += [Held(part) for part in kept.cut(_TOGETHER)]
    return found, parts


def _itself(item: object) -> object:
    return item


# -------------------------------------------------------------------- every record is a unit


def _of_records(found: Found, reading: Reading, part: Part) -> list[UnitPoints]:
    groups = []
    for number in range(reading.classes):
        n, several = int(found.counts[number]), reading.classes > 1
        where = Part(part.items, partial(_opened, reading, number if several else None), part.engine)
        first = None if found.sums is None else found.sums.cut(1, number)
        groups.append(UnitPoints(reading.ball, "record", n, [where], first, None if several else found.sample))
    return groups


def _opened(reading: Reading, number: int | None, item: Piece | Kept) -> Iterator[Array]:
    """Open a piece, or what is held of it, as the points of one class; of all of them, if none is named."""
    if isinstance(item, Kept):
        labels = item.label if item.label else [None] * len(item.stored)
        blocks: Iterable[tuple[Array, Array | None]] = zip(item.stored, labels, strict=True)
    else:
        blocks = ((stored, taken.label) for stored, taken in reading.points(item))
    for stored, label in blocks:
        yield stored if number is None or label is None else stored[label == number]


# -------------------------------------------------------------------- units by id


def _of_units(found: Found, ids: UnitIds, reading: Reading, part: Part) -> list[UnitPoints]:
    ball, classes = reading.ball, reading.classes
    with np.errstate(all="ignore"):
        if ball.space.is_flat:
            assert found.sums is not None
            total = ball.space.from_addends(found.sums.total())
            averages: Array = total / np.maximum(found.counts, 1)[:, None]
        elif part.engine is not None and not part.engine.elsewhere and all(isinstance(one, Held) for one in part.items):
            averages = solved_here(found, reading, part)
        else:
            averages = _solved(found, reading, part)
    order = np.argsort(ids.group)
    averages = averages.reshape(-1, classes, *ball.frame.shape)[order]
    there = found.counts.reshape(-1, classes)[order] > 0
    return [of_averages(averages[there[:, number], number], ball) for number in range(classes)]


def _solved(found: Found, reading: Reading, part: Part) -> Array:
    """Return the averages of units of a curved ball, in the order of their numbers."""
    ball, count = reading.ball, len(found.counts)
    frame = ball.frame
    units = _Units(found, reading, part)
    first = None
    if found.sums is not None:
        first = np.zeros((len(units.counts), frame.dim))
        first[:count] = frame.from_log_words(np.broadcast_to(frame.origin, (count, *frame.shape)), found.sums)
        found.sums = None  # as large as all units
    with solving([part]):
        return averaged(frame, ball, units, None, count, first)


class _Units(Summands):
    """Units whose records are in many pieces: a base point for each goes out, and integers come back."""

    def __init__(self, found: Found, reading: Reading, part: Part) -> None:
        assert found.ids is not None
        self._reading, self._part, self._ids, self.n = reading, part, found.ids, found.n
        # As many groups as the solver has, which is never one.
        self.counts = np.zeros(max(2, len(found.counts)), dtype=np.int64)
        self.counts[: len(found.counts)] = found.counts

    def sums(self, x: Array, active: Array | None, at: object) -> FloatArray:
        """Merge what the pieces give for the groups that are not done."""
        frame = self._reading.ball.frame
        wanted = np.flatnonzero(self.counts > 0 if active is None else active & (self.counts > 0))
        totals = np.zeros((len(x), frame.dim))
        if not wanted.size:
            return totals
        place = np.full(len(x), -1, dtype=np.int64)
        place[wanted] = np.arange(len(wanted))
        work = UnitWords(self._reading, self._ids, place, frame.at(x[wanted]))
        with quietly():  # how many passes there are is data
            words, seen = run(work, [self._part]) or (None, 0)
        if seen != self.n or words is None:
            raise SourceChangedError("the records changed while they were read: a later pass found another number.")
        totals[wanted] = frame.from_log_words(x[wanted], words)
        return totals


__all__ = ["solved_here"]
