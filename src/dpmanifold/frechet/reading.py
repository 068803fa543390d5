"""Records of a source, piece by piece: what is done with a piece where it is read. Not private.

Tasks depend on their piece alone and can be pickled. The first pass checks everything and refuses what it must, naming
the piece; later ones find the same records, or the source has changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dpmanifold._check import Array
from dpmanifold._merged_ids import MergedIds, Spelt
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public, SourceChangedError
from dpmanifold.frechet.map_reduce import Pass, Sample, sampling
from dpmanifold.frechet.record_blocks import Records, add_clipped, first_sum, flat_sum, move_clipped, room_for
from dpmanifold.frechet.solver import MOST_TRIED
from dpmanifold.frechet.tolerances import reach
from dpmanifold.linalg.exact_sums import ExactSum, IntArray
from dpmanifold.sources import Piece

_SAMPLING = sampling(MOST_TRIED + 1)
Take = Callable[..., Records]
"""Takes the records of a block and, as `first`, the index of the first; returns them with the way to check them."""

Numbers = Callable[..., Array]
"""Takes the labels of a block and, as `first`, the index of the first; returns the number of each one's class, or
refuses it. -1 is none of the classes, and counts as the first."""


class Taken(NamedTuple):
    """A block of records with who owns them and the numbers of their classes."""

    records: Records
    units: Array | None
    label: IntArray | None
    first: int
    unlabelled: int = 0


@dataclass(frozen=True)
class Reading:
    """How a piece is read: as records of a ball's space, with the check and the classes that were asked for.

    Attributes
    ----------
    ball : the ball
    take : makes records of a block
    numbers : makes class numbers of labels; None where there are no classes
    classes : how many there are
    """

    ball: Ball
    take: Take
    numbers: Numbers | None = None
    classes: int = 1

    def blocks(self, piece: Piece) -> Iterator[Taken]:
        """Yield a piece's blocks."""
        first = piece.first
        for block in piece.blocks():
            if len(block.records) == 0:
                continue
            label, unlabelled = None, 0
            if self.numbers is not None:
                label = np.asarray(self.numbers(np.asarray(block.labels), first=first), dtype=np.int64)
                if label.shape != (len(block.records),):
                    raise InvalidDataError(
                        "it has {n_records} records in a block, and {size} labels.",
                        n_records=Public(len(block.records)),
                        size=Public(label.size),
                    )
                unlabelled, label = int(np.count_nonzero(label < 0)), np.maximum(label, 0)
            yield Taken(self.take(block.records, first=first), block.units, label, first, unlabelled)
            first += len(block.records)

    def points(self, piece: Piece) -> Iterator[tuple[Array, Taken]]:
        """Yield a piece's points in the frame once more, packed, with the blocks they are from.

        What goes wrong with records that were read before shows that the source has changed.
        """
        with _named(piece, again=True):
            for taken in self.blocks(piece):
                with np.errstate(all="ignore"):
                    stored = self.moved(taken.records)[0]
                yield stored, taken

    def moved(self, records: Records, first: ExactSum | None = None) -> tuple[Array, int, int]:
        """Return a block's points, packed, and how many were clipped and replaced."""
        if self.ball.space.is_flat:
            found = [(self.ball.moved(block), bad) for _, block, bad in records.blocks()]
            points = np.concatenate([moved for (moved, _), _ in found])
            return points, sum(edge for (_, edge), _ in found), sum(bad for _, bad in found) + records.replaced
        stored = room_for(self.ball, len(records))
        clipped, replaced = move_clipped(records, self.ball, stored, first)
        return stored, clipped, replaced + records.replaced


@contextlib.contextmanager
def _named(piece: Piece, again: bool = False) -> Iterator[None]:
    """Say in which piece something is wrong with the data; or that it has changed, where it was read before."""
    try:
        yield
    except SourceChangedError:
        raise
    except (InvalidDataError, InvalidArgumentError, OSError) as problem:
        if again:
            raise SourceChangedError("{name} can no longer be read as it was before.", name=piece.name) from None
        if isinstance(problem, InvalidDataError) and piece.name not in str(problem):
            raise InvalidDataError("{name}: {problem}", name=piece.name, problem=problem) from None
        raise


# -------------------------------------------------------------------- the first pass


@dataclass
class Found:
    """What a first pass over some pieces found. Data.

    Attributes
    ----------
    sums : exact sums, one for each group: unit by unit, and class by class within units; None where none are needed
    counts : (groups,), how many records each group has
    clipped, replaced : how many records lie outside the ball or on its edge, and were no points
    unlabelled : how many have a label that is none of the classes
    ids : the ids, by the numbers of the units; None where every record is a unit
    sample : some of the points of a curved ball's frame, by their own bits
    """

    sums: ExactSum | None
    counts: IntArray
    clipped: int = 0
    replaced: int = 0
    unlabelled: int = 0
    ids: MergedIds | None = None
    sample: Sample | None = None

    @property
    def n(self) -> int:
        """How many records there are."""
        return int(self.counts.sum())

    def __getstate__(self) -> dict[str, object]:
        """Return what is sent: sums without the room that was left for more groups."""
        return {**self.__dict__, "sums": self.trimmed()}

    def make_room(self, groups: int) -> None:
        """Make room for more groups, which have nothing: for twice as many sums, as units come a few at a time."""
        if groups > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(groups - len(self.counts), dtype=np.int64)])
        if self.sums is not None and groups > self.sums.groups:
            self.sums = self.sums.grown(max(groups, 2 * self.sums.groups))

    def trimmed(self) -> ExactSum | None:
        """Return the sums of the groups there are."""
        groups = len(self.counts)
        return self.sums.cut(groups) if self.sums is not None and self.sums.groups > groups else self.sums


@dataclass
class Kept:
    """What a worker holds of a piece: points, who owns them and their classes.

    Attributes
    ----------
    stored : blocks of packed points
    unit : the number of each one's id among those of the piece
    label : the number of each one's class
    distinct : the ids of the piece, by number
    found : what the first pass found, until it is asked for
    """

    stored: list[Array] = field(default_factory=list)
    unit: list[Array] = field(default_factory=list)
    label: list[IntArray] = field(default_factory=list)
    distinct: Array | list[str] | Spelt | None = None
    found: Found | None = None

    def cut(self, records: int) -> Iterator[Kept]:
        """Yield it in parts of about so many records, for several workers of one process; they share the ids."""
        start = count = 0
        for i, block in enumerate(self.stored):
            count += len(block)
            if count >= records or i == len(self.stored) - 1:
                part = slice(start, i + 1)
                yield Kept(self.stored[part], self.unit[part], self.label[part], self.distinct)
                start, count = i + 1, 0

    def order(self) -> None:
        """Put the records of every unit side by side: a pass by units then finds what belongs to one where it was."""
        if len(self.unit) == 0:
            return
        unit = np.concatenate(self.unit)
        order = _order_of(unit)
        self.unit = [unit.take(order)]
        self.stored = [_all_of(self.stored).take(order, axis=0)]
        self.label = [np.concatenate(self.label).take(order)] if self.label else []


def _order_of(numbers: Array) -> IntArray:
    """Return the order of numbers from 0 to 2^31, half by half: numpy sorts 16 bits by counting, which is faster.

    >>> _order_of(np.array([70_000, 3, 70_000, 65_536], dtype=np.int32)).tolist()
    [1, 3, 0, 2]
    """
    order = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")
    upper = (numbers >> 16).astype(np.uint16)
    return np.asarray(order[np.argsort(upper[order], kind="stable")])


def _all_of(blocks: list[Array]) -> Array:
    """Return blocks as one array; they are let go."""
    whole = np.concatenate(blocks)
    blocks.clear()
    return whole


class FirstPass(Pass[Found]):
    """Reads and checks everything, and adds up what can be added before anything is known.

    Flat: clipped records. Curved: their logarithms at the frame's origin.

    Parameters
    ----------
    reading : how pieces are read
    by_id : whether blocks say who owns their records
    """

    def __init__(self, reading: Reading, by_id: bool) -> None:
        self._reading, self._by_id = reading, by_id

    def extend(self, total: Found | None, item: Piece) -> Found:
        """Read one more piece: its units join those that are known."""
        found = self._nothing() if total is None else total
        with _named(item):
            self._read(item, found, None)
        return found

    def kept(self, apart: bool, piece: Piece) -> Kept:
        """Read a piece and keep its points as they come; `apart`, where units are solved by passes, in their order."""
        kept, found = Kept(), self._nothing()
        first = found.sums
        if self._by_id:
            found.sums = None  # it comes when they are in order, or unit by unit
        with _named(piece):
            self._read(piece, found, kept)
        if self._by_id and apart:
            kept.order()
            if first is not None:
                found.sums = self._at_the_origin(kept, first, len(found.counts))
        kept.distinct = None if found.ids is None else found.ids.distinct
        found.sums = found.trimmed()
        kept.found = found
        return kept

    def _at_the_origin(self, kept: Kept, sums: ExactSum, groups: int) -> ExactSum:
        """Return the sums of units' logarithms at the origin."""
        ball, classes = self._reading.ball, self._reading.classes
        sums = sums.grown(groups)
        for i, stored in enumerate(kept.stored):
            unit = kept.unit[i].astype(np.int64)
            group = unit * classes + kept.label[i] if kept.label else unit
            with np.errstate(all="ignore"):
                ball.frame.log_words(ball.frame.origin[None], stored, reach(ball), group=group, sums=sums)
        return sums

    def _nothing(self) -> Found:
        """Return what is found of no piece."""
        groups = 0 if self._by_id else self._reading.classes
        ids = MergedIds() if self._by_id else None
        return Found(self._empty(max(1, groups)), np.zeros(groups, dtype=np.int64), ids=ids)

    def _read(self, piece: Piece, found: Found, kept: Kept | None) -> None:
        reading, ids = self._reading, found.ids
        for taken in reading.blocks(piece):
            group, number = taken.label, None
            if ids is not None:
                number = ids.add(taken.units, piece.name, taken.first)
                if len(number) != len(taken.records):
                    raise InvalidDataError(
                        "it has {n_records} records in a block, and {n_number} ids.",
                        n_records=Public(len(taken.records)),
                        n_number=Public(len(number)),
                    )
                group = number if group is None else number * reading.classes + group
            groups = reading.classes * (1 if ids is None else len(ids))
            found.make_room(groups)
            found.counts += len(taken.records) if group is None else np.bincount(group, minlength=len(found.counts))
            with np.errstate(all="ignore"):  # a warning would tell about a single record
                clipped, replaced, stored = self._added(taken.records, found.sums, group)
            found.clipped, found.replaced = found.clipped + clipped, found.replaced + replaced
            found.unlabelled += taken.unlabelled
            if stored is None:
                continue
            if ids is None:
                found.sample, _ = _SAMPLING.extend((found.sample, 0), [stored])
            if kept is not None:
                kept.stored.append(stored)
                kept.unit += [] if number is None else [number.astype(np.int32)]
                kept.label += [] if taken.label is None else [taken.label]

    def _empty(self, groups: int) -> ExactSum | None:
        ball = self._reading.ball
        if ball.space.is_flat:
            return flat_sum(ball, groups)
        # Of classes, sums at the origin are made when they are asked for: no pass over raw records tells them apart.
        return first_sum(ball) if self._by_id or self._reading.classes == 1 else None

    def _added(self, records: Records, sums: ExactSum | None, group: Array | None) -> tuple[int, int, Array | None]:
        """Add a block; returns how many were clipped and replaced, and the points where these are needed."""
        reading, ball = self._reading, self._reading.ball
        if ball.space.is_flat:
            assert sums is not None
            clipped, replaced = add_clipped(records, ball, sums, group)
            return clipped, replaced + records.replaced, None
        stored, clipped, replaced = reading.moved(records, None if self._by_id else sums)
        if self._by_id and sums is not None:
            # At the origin, as the solver adds them: what a pass over raw records adds is rounded differently.
            ball.frame.log_words(ball.frame.origin[None], stored, reach(ball), group=group, sums=sums)
        return clipped, replaced, stored

    def merge(self, a: Found, b: Found) -> Found:
        """Add integers, those of units by their ids."""
        places = None
        if a.ids is not None and b.ids is not None:
            classes = self._reading.classes
            unit = a.ids.merge(b.ids)
            places = (unit[:, None] * classes + np.arange(classes)).ravel()
            a.make_room(len(a.ids) * classes)
            a.counts[places] += b.counts
        else:
            a.counts += b.counts
        if a.sums is not None and b.sums is not None:
            a.sums.merge(b.trimmed() or b.sums, places)
        a.clipped, a.replaced = a.clipped + b.clipped, a.replaced + b.replaced
        a.unlabelled += b.unlabelled
        a.sample, _ = _SAMPLING.merge((a.sample, 0), (b.sample, 0))
        return a


class WhatWasFound(FirstPass):
    """The same, of pieces whose points are held."""

    def extend(self, total: Found | None, item: Kept) -> Found:  # type: ignore[override]
        """Add what was found when it was read, which stays as it is: it may be asked for again."""
        assert item.found is not None
        return self.merge(self._nothing() if total is None else total, item.found)


# -------------------------------------------------------------------- passes over units of a curved ball


class UnitWords(Pass["tuple[ExactSum, int]"]):
    """Exact sums of logarithms for each of the active units, at a base point of its own; and how many records it saw.

    Parameters
    ----------
    reading : how pieces are read
    ids : all ids
    active : (groups,), the place of each group among the active ones, or -1
    at : what the frame makes of their base points
    """

    def __init__(self, reading: Reading, ids: MergedIds, active: IntArray, at: object) -> None:
        self._reading, self._ids, self._active, self._at = reading, ids, active, at

    def extend(self, total: tuple[ExactSum, int] | None, item: Piece | Kept) -> tuple[ExactSum, int]:
        """Go through one more piece, or what is held of it."""
        ball, classes = self._reading.ball, self._reading.classes
        sums, n = (None, 0) if total is None else total
        for stored, number, label in self._blocks(item):
            n += len(stored)
            group = self._active[number if label is None else number * classes + label]
            rows = np.flatnonzero(group >= 0)
            if len(rows) < len(group):
                stored, group = stored[rows], group[rows]
            sums = ball.frame.log_words(self._at, stored, reach(ball), group=group, sums=sums)
        if sums is None:
            nothing = np.empty(0, dtype=np.int64)
            sums = ball.frame.log_words(self._at, room_for(ball, 0), reach(ball), group=nothing)
        return sums, n

    def _blocks(self, item: Piece | Kept) -> Iterator[tuple[Array, IntArray, IntArray | None]]:
        if isinstance(item, Kept):
            place = self._ids.find(item.distinct)
            for i, stored in enumerate(item.stored):
                yield stored, place[item.unit[i]], item.label[i] if item.label else None
            return
        for stored, taken in self._reading.points(item):
            number = self._ids.find(taken.units, item.name, taken.first)
            if len(number) != len(stored):
                raise SourceChangedError("{name} does not hold as many ids as records any more.", name=item.name)
            yield stored, number, taken.label

    def merge(self, a: tuple[ExactSum, int], b: tuple[ExactSum, int]) -> tuple[ExactSum, int]:
        """Merge integers."""
        a[0].merge(b[0])
        return a[0], a[1] + b[1]
