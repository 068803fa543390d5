"""Units of a curved ball whose points are held in this process: whole units are gathered and solved, by all threads.

A unit's average depends on its own records alone, to the last bit, so it does not matter which units are solved
together. Not private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array
from dpmanifold.frechet.passes import Part, solving
from dpmanifold.frechet.reading import Found, Kept, Reading
from dpmanifold.frechet.records import room_for
from dpmanifold.frechet.streams import averaged
from dpmanifold.linalg.exact_sums import IntArray
from dpmanifold.progress import quietly

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


__all__ = ["solved_here"]
