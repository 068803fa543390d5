"""From a user's records to one point per unit in a ball's frame: each record is checked once, a block at a time.

What is held is a block of records, and what has to be kept: sums of a flat ball's units, points of a curved one's. A
memory-mapped file never has to fit into memory, and rows may come in any order. Every record is mapped by itself and
sums are exact, so that neither blocks nor order show in a bit of the result. Not private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._ids import UnitIds
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidDataError
from dpmanifold.frechet.points import UnitPoints
from dpmanifold.frechet.solver import lowest_tol, solve_groups
from dpmanifold.linalg.exact_sums import MOST_RECORDS, ExactSum
from dpmanifold.manifolds import Manifold

# Numbers in the records that are looked at together (1 MiB of them), and the fewest records.
_BLOCK, _FEWEST = 131_072, 64
# The same where whole units are gathered from all over the data: larger, as every block is solved on its own.
_GATHERED = 1_048_576

Check = Callable[[Array, int], tuple[Array, int]]
"""Takes raw records and the index of the first; returns valid ones, and how many it replaced, or refuses them."""


class Records:
    """Records as a user gave them, or valid ones, and how to check a block of them.

    Parameters
    ----------
    raw : (n, ...), read and never written to
    space : where they live
    check : refuses or replaces what is no point of the space
    replaced : how many were replaced before
    """

    def __init__(self, raw: Array, space: Manifold, check: Check, replaced: int = 0) -> None:
        self.raw, self.space, self._check, self.replaced = raw, space, check, replaced
        # After a pass that looked at every record: those that only `check` can make a point of.
        self._odd: Array | None = None

    @staticmethod
    def of(X: object, space: Manifold) -> Records:
        """Take what a user calls X, to be refused where it is not valid."""
        if is_stream(X, space):
            return Records(X, space, lambda block, first: (space.as_points(block, "X", batch=True, first=first), 0))
        return Records.valid(space.as_points(X, "X", batch=True), space)

    @staticmethod
    def valid(points: Array, space: Manifold, replaced: int = 0) -> Records:
        """Take points that need no check, some of which stand for records that were none."""
        return Records(points, space, lambda block, first: (block, 0), replaced)

    def __len__(self) -> int:
        return len(self.raw)

    def blocks(self) -> Iterator[tuple[slice, Array, int]]:
        """Yield slices, the valid records there, and how many of them were replaced."""
        if self._odd is not None:
            yield from self._again(self._odd)
            return
        total = 0
        for rows in self._slices():
            records, replaced = self._check(self.raw[rows], rows.start)
            total += replaced
            yield rows, records, replaced
        if total == 0 and self.raw.dtype.kind in "fiuc":
            self._odd = np.zeros(len(self), dtype=bool)

    def _again(self, odd: Array) -> Iterator[tuple[slice, Array, int]]:
        """Yield what was checked before: looked at again only where it was no point as it stands."""
        for rows in self._slices():
            with np.errstate(all="ignore"):  # a warning would tell about a single record
                records, replaced = self.space.project(self.raw[rows]), 0
            places = np.flatnonzero(odd[rows])
            if places.size:
                records = np.array(records)
                records[places], replaced = self.rows(rows.start + places)
            yield rows, records, replaced

    def array(self) -> Array:
        """Return all of them, valid, at once."""
        return np.concatenate([block for _, block, _ in self.blocks()])

    def rows(self, places: Array, odd: Array | None = None) -> tuple[Array, int]:
        """Return the valid records at some places, and how many of them were replaced.

        `odd` says which of them need a look, a boolean each, where a pass before has told.
        """
        if odd is not None and not odd.all():
            records, replaced = np.array(self.space.project(self.raw[places])), 0
            if odd.any():
                records[odd], replaced = self.rows(places[odd])
            return records, replaced
        try:
            return self._check(self.raw[places], 0)
        except InvalidDataError:
            # The message gives an index: that of the record, and of the first one where several are wrong.
            for rows in self._slices():
                self._check(self.raw[rows], rows.start)
            raise

    def remember(self, odd: Array) -> None:
        """Say which records, a boolean each, are more than the space's own passes can take."""
        self._odd = odd

    def _slices(self) -> Iterator[slice]:
        step = max(_FEWEST, _BLOCK // max(1, math.prod(self.raw.shape[1:])))
        return (slice(start, min(start + step, len(self))) for start in range(0, len(self), step))


def is_stream(X: object, space: Manifold) -> TypeGuard[Array]:
    """Return whether records can be taken a block at a time: an array with an axis in front."""
    return isinstance(X, np.ndarray) and X.ndim > len(space.shape)


@dataclass(frozen=True)
class Made:
    """Points and what became of the records: how many lie outside the ball or on its edge, and how many were replaced.

    All of it is data.
    """

    points: UnitPoints
    clipped: int
    replaced: int


def made_from(records: Records, ball: Ball, ids: UnitIds | None = None) -> Made:
    """Return one point per unit in the ball's frame; without ids, every record is a unit."""
    if len(records) > MOST_RECORDS:
        raise InvalidDataError(f"X holds {len(records)} records, and at most {MOST_RECORDS} can be added exactly.")
    with np.errstate(all="ignore"):  # a warning would tell about a single record
        made = _made(records, ball, ids)
    return replace(made, replaced=made.replaced + records.replaced)


def _made(records: Records, ball: Ball, ids: UnitIds | None) -> Made:
    if ids is not None:
        require_ball(ball)
        maker = _flat_units if ball.space.is_flat else _curved_units
        averages, clipped, replaced = maker(records, ball, ids)
        # An average of points of the ball is in it, but for rounding.
        return Made(UnitPoints.of(ball.in_frame.pull_in(averages), ball, "unit"), clipped, replaced)
    return (_flat_records if ball.space.is_flat else _curved_records)(records, ball)


def made_by_class(records: Records, ball: Ball, label: Array, classes: int) -> tuple[list[UnitPoints], int, int]:
    """Return the points of each class, given the number of each record's; every record is a unit.

    With them the numbers of clipped and replaced records.
    """
    if not ball.space.is_flat:
        made = made_from(records, ball)
        return [made.points.where(label == number) for number in range(classes)], made.clipped, made.replaced
    with np.errstate(all="ignore"):
        total, clipped, replaced = _summed(records, ball, label, classes)
    everybody = UnitPoints(ball, "record", len(records), lambda: _again(records, ball))
    parts = [everybody.where(label == number, total[number]) for number in range(classes)]
    return parts, clipped, replaced + records.replaced


# -------------------------------------------------------------------- flat: sums are all that is kept


def _flat_records(records: Records, ball: Ball) -> Made:
    total, clipped, replaced = _summed(records, ball, None, 1)
    points = UnitPoints(ball, "record", len(records), lambda: _again(records, ball), total[0] / len(records))
    return Made(points, clipped, replaced)


def _again(records: Records, ball: Ball) -> Iterator[Array]:
    return (ball.into_frame(block) for _, block, _ in records.blocks())


def _flat_units(records: Records, ball: Ball, ids: UnitIds) -> tuple[FloatArray, int, int]:
    total, clipped, replaced = _summed(records, ball, ids.group, len(ids))
    return total / np.bincount(ids.group, minlength=len(ids))[:, None], clipped, replaced


def _summed(records: Records, ball: Ball, group: Array | None, groups: int) -> tuple[FloatArray, int, int]:
    """Return the sums of clipped records in coordinates, (groups, dim), and how many were clipped and replaced."""
    found = ball.space.clipped_sums(records.raw, ball.center, ball.radius, group, groups)
    sums = ExactSum(ball.frame.dim, ball.radius, groups)
    if found is None:
        clipped = replaced = 0
        for rows, block, bad in records.blocks():
            moved, edge = ball.moved(block)
            sums.add(moved, None if group is None else group[rows])
            clipped, replaced = clipped + edge, replaced + bad
        return sums.total(), clipped, replaced
    records.remember(found.odd)
    odd = np.flatnonzero(found.odd)
    if not odd.size:
        return found.totals, found.clipped, 0
    block, replaced = records.rows(odd)
    moved, edge = ball.moved(block)
    sums.add(moved, None if group is None else group[odd])
    return found.totals + sums.total(), found.clipped + edge, replaced


# -------------------------------------------------------------------- curved: points are kept, or units solved


def _curved_records(records: Records, ball: Ball) -> Made:
    stored = _room(ball, len(records))
    found = ball.space.moved_records(records.raw, ball.center, ball.radius, stored)
    clipped = replaced = 0
    if found is None:
        for rows, block, bad in records.blocks():
            moved, edge = ball.moved(block)
            stored[rows] = ball.frame.pack(moved)
            clipped, replaced = clipped + edge, replaced + bad
        return Made(UnitPoints.packed(stored, ball, "record"), clipped, replaced)
    sums = ExactSum(ball.frame.dim, ball.effective_radius)
    for places in _pieces(np.flatnonzero(found.outside | found.odd), ball):
        block, bad = records.rows(places, found.odd[places])
        moved, edge = ball.moved(block)
        stored[places] = ball.frame.pack(moved)
        sums.add(ball.frame.log_coords(ball.frame.origin, moved))
        clipped, replaced = clipped + edge, replaced + bad
    first = found.first + sums.total()[0]
    return Made(UnitPoints.packed(stored, ball, "record", first), clipped, replaced)


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
    stored = _room(ball, len(places))
    clipped = replaced = start = 0
    for few in _pieces(places, ball):
        part = stored[start : start + len(few)]
        start += len(few)
        found = ball.space.moved_records(records.raw[few], ball.center, ball.radius, part)
        left = np.arange(len(few)) if found is None else np.flatnonzero(found.outside | found.odd)
        if left.size:
            block, bad = records.rows(few[left], None if found is None else found.odd[left])
            moved, edge = ball.moved(block)
            part[left] = ball.frame.pack(moved)
            clipped, replaced = clipped + edge, replaced + bad
    return stored, clipped, replaced


def _pieces(places: Array, ball: Ball) -> Iterator[Array]:
    step = max(_FEWEST, _BLOCK // math.prod(ball.space.shape))
    return (places[start : start + step] for start in range(0, len(places), step))


def _room(ball: Ball, n: int) -> Array:
    """Return room for n points of the frame, packed."""
    one = ball.frame.pack(ball.frame.origin[None])
    return np.empty((n, *one.shape[1:]), dtype=one.dtype)


def averaged(frame: Manifold, ball: Ball, stored: Array, group: Array, count: int) -> Array:
    """Return the mean of each group of points, (count, *frame.shape), solved to a tolerance of the ball alone.

    A unit's average is a per-unit map: how exactly it is solved plays no part in any sensitivity. Its tolerance must
    not depend on other units (not even on how many records they have), and failure must not show.
    """
    tol = max(1e-10 * ball.radius, lowest_tol(ball, 1))
    # Never one group, which is solved with other first steps: a unit may be alone in a block because of the others. A
    # group without points is at the origin from the start.
    groups = max(2, count)
    return solve_groups(frame, ball.in_frame, stored, None, group, groups, tol, 200, strict=False).points[:count]
