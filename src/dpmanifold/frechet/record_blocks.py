"""Records as a user gave them: each is checked once, a block at a time, and added up or moved into a ball's frame.

What a record gives depends on that record alone: on its valid form, whichever way and in whichever block it came. Not
private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeGuard

import numpy as np

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidDataError
from dpmanifold.frechet.tolerances import reach
from dpmanifold.linalg.cards.arrays import CardArray, fetched, is_card_array, room_on_card
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.linalg.native.library import card_in_use
from dpmanifold.manifolds import Manifold

# Numbers in the records that are looked at together (1 MiB of them), and the fewest records.
_BLOCK, _FEWEST = 131_072, 64

# Numbers that are fetched from a card together.
_FETCHED = 4_194_304

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
    first : the index of the first of them, in messages
    """

    def __init__(self, raw: Array, space: Manifold, check: Check, replaced: int = 0, first: int = 0) -> None:
        self.raw, self.space, self._check, self.replaced, self._first = raw, space, check, replaced, first
        # After a pass that looked at every record: those that only `check` can make a point of.
        self._odd: Array | None = None

    @staticmethod
    def of(X: object, space: Manifold, first: int = 0) -> Records:
        """Take what a user calls X, to be refused where it is not valid."""
        X = space.from_card(X)
        if is_stream(X, space):
            return Records(
                X, space, lambda block, index: (space.as_points(block, "X", batch=True, first=index), 0), first=first
            )
        return Records.valid(space.as_points(X, "X", batch=True, first=first), space)

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
            records, replaced = self._check(fetched(self.raw[rows]), self._first + rows.start)
            total += replaced
            yield rows, records, replaced
        if total == 0 and self.raw.dtype.kind in "fiuc":
            self._odd = np.zeros(len(self), dtype=bool)

    def _again(self, odd: Array) -> Iterator[tuple[slice, Array, int]]:
        """Yield what was checked before: looked at again only where it was no point as it stands."""
        for rows in self._slices():
            with np.errstate(all="ignore"):  # a warning would tell about a single record
                records, replaced = self.space.project(fetched(self.raw[rows])), 0
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
                self._check(fetched(self.raw[rows]), self._first + rows.start)
            raise

    def some(self, places: Array) -> Records:
        """Return the records at some places."""
        return _Some(self, places)

    def remember(self, odd: Array) -> None:
        """Say which records, a boolean each, are more than the space's own passes can take."""
        self._odd = odd

    def _slices(self) -> Iterator[slice]:
        block = _FETCHED if is_card_array(self.raw) else _BLOCK
        step = max(_FEWEST, block // max(1, math.prod(self.raw.shape[1:])))
        return (slice(start, min(start + step, len(self))) for start in range(0, len(self), step))


class _Some(Records):
    """Records at some places, which are checked where all of them are: messages give the index there."""

    def __init__(self, every: Records, places: Array) -> None:
        # The check refers to those two alone: a reference to itself would keep the block until it is looked for.
        super().__init__(
            every.raw[places], every.space, lambda block, first: every.rows(places[first : first + len(block)])
        )
        self._every, self._places = every, places

    def rows(self, places: Array, odd: Array | None = None) -> tuple[Array, int]:
        """Return the valid records at some places of these."""
        return self._every.rows(self._places[places], odd)


def is_stream(X: object, space: Manifold) -> TypeGuard[Array]:
    """Return whether records can be taken a block at a time: an array with an axis in front, here or on a card."""
    return isinstance(X, (np.ndarray, CardArray)) and X.ndim > len(space.shape)


# -------------------------------------------------------------------- flat: sums


def flat_sum(ball: Ball, groups: int = 1) -> ExactSum:
    """Return where clipped records of a flat ball are added."""
    return ExactSum(ball.frame.dim, ball.radius, groups)


def add_clipped(records: Records, ball: Ball, sums: ExactSum, group: Array | None = None) -> tuple[int, int]:
    """Add clipped records to the sums of their groups; returns how many were clipped, and how many replaced."""
    found = ball.space.clipped_sums(records.raw, ball.center, ball.radius, sums, group)
    if found is None:
        clipped = replaced = 0
        for rows, block, bad in records.blocks():
            clipped += _add_valid(block, ball, sums, None if group is None else group[rows])
            replaced += bad
        return clipped, replaced
    records.remember(found.odd)
    clipped, replaced = found.clipped, 0
    for places in () if found.clean else pieces_of(np.flatnonzero(found.odd), ball):
        block, bad = records.rows(places)
        sums.records -= len(places)  # the pass above counted them
        clipped += _add_valid(block, ball, sums, None if group is None else group[places])
        replaced += bad
    return clipped, replaced


def _add_valid(block: Array, ball: Ball, sums: ExactSum, group: Array | None) -> int:
    """Add valid records, by the space's own pass as far as it takes them; returns how many were clipped."""
    found = ball.space.clipped_sums(block, ball.center, ball.radius, sums, group)
    if found is not None:
        if not found.odd.any():
            return found.clipped
        sums.records -= int(np.count_nonzero(found.odd))
        block, group = block[found.odd], None if group is None else group[found.odd]
    moved, edge = ball.moved(block)
    sums.add(ball.space.addends(moved), group)
    return edge + (0 if found is None else found.clipped)


# -------------------------------------------------------------------- curved: points


def first_sum(ball: Ball) -> ExactSum | None:
    """Return where logarithms at the origin of a curved ball's frame are added; None where no mean is solved."""
    frame = ball.frame
    if ball.is_whole or not math.isfinite(reach(ball)):
        return None
    return frame.log_words(frame.origin[None], room_for(ball, 0), reach(ball))


def room_for(ball: Ball, n: int, beside: Array | None = None) -> Array:
    """Return room for n points of the frame, packed; on a card, where passes over the records `beside` run on one."""
    one = ball.frame.pack(ball.frame.origin[None])
    shape = (n, *one.shape[1:])
    if beside is not None and ball.space.has_card_passes and card_in_use(is_card_array(beside)):
        there: Array = room_on_card(shape, beside)
        return there
    return np.empty(shape, dtype=one.dtype)


def bytes_of_a_point(ball: Ball) -> int:
    """Return what a packed point of the frame takes."""
    return room_for(ball, 1).nbytes


def move_clipped(records: Records, ball: Ball, stored: Array, first: ExactSum | None = None) -> tuple[int, int]:
    """Write clipped records to `stored`, as packed points of a curved ball's frame.

    Returns how many were clipped, and how many replaced. With `first`, their logarithms at the origin are added to it.
    """
    clipped = replaced = 0
    found = ball.space.moved_records(records.raw, ball.center, ball.radius, stored, first)
    if found is None:
        for rows, block, bad in records.blocks():
            clipped += _move_valid(block, ball, stored, np.arange(len(records))[rows], first)
            replaced += bad
        return clipped, replaced
    if first is not None:
        first.records -= len(found.odd) + len(found.outside)  # the pass above counted them
    for places in pieces_of(found.odd, ball):
        block, bad = records.rows(places)
        clipped += _move_valid(block, ball, stored, places, first)
        replaced += bad
    for places in pieces_of(found.outside, ball):
        block = np.array(ball.space.project(records.raw[places]))
        clipped += _move_by_itself(block, ball, stored, places, first)
    return clipped, replaced


def _move_valid(block: Array, ball: Ball, stored: Array, places: Array, first: ExactSum | None) -> int:
    """Write valid records, by the space's own pass as far as it takes them; returns how many were clipped."""
    part = room_for(ball, len(block))
    found = ball.space.moved_records(block, ball.center, ball.radius, part, first)
    if found is None:
        return _move_by_itself(block, ball, stored, places, first)
    stored[places] = part
    left = np.sort(np.concatenate([found.outside, found.odd]))
    if first is not None:
        first.records -= len(left)
    return _move_by_itself(block[left], ball, stored, places[left], first) if left.size else 0


def _move_by_itself(block: Array, ball: Ball, stored: Array, places: Array, first: ExactSum | None) -> int:
    moved, edge = ball.moved(block)
    part = ball.frame.pack(moved)
    stored[places] = part
    if first is not None:
        first.merge(ball.frame.log_words(ball.frame.origin[None], np.ascontiguousarray(part), reach(ball)))
    return edge


def pieces_of(places: Array, ball: Ball) -> Iterator[Array]:
    """Cut places of records into pieces of bounded size."""
    step = max(_FEWEST, _BLOCK // math.prod(ball.space.shape))
    return (places[start : start + step] for start in range(0, len(places), step))
