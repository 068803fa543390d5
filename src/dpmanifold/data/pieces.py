"""Rows of records that lie in memory for a moment, and pieces that read them.

They are cut into blocks of bounded size, with ids and classes from columns or from beside them.
"""

from __future__ import annotations

import hashlib
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifold._cells import REAL
from dpmanifold._check import Array
from dpmanifold.data.table_files import Column, Entries
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Public, SourceChangedError
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import Block, Piece, ids_in_rows
from dpmanifold.stats.inputs import is_each_record

if TYPE_CHECKING:
    from dpmanifold.data.readers import Reading

# Numbers in the records of a block (2 MiB of them), and the fewest records.
_BLOCK, _FEWEST = 262_144, 64
# Blocks that make a piece of what lies in memory, or is read at any place.
_BLOCKS_OF_PIECE = 16
_WORDS = np.uint64


class Rows(ABC):
    """Some rows of records."""

    columns: Sequence[Column] = ()
    """All columns in their order; none where the rows are an array's."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many rows there are."""

    @abstractmethod
    def cut(self, start: int, stop: int) -> Rows:
        """Return some of the rows."""

    @abstractmethod
    def numbers(self, places: Sequence[int], kind: str = REAL) -> Array:
        """Return the columns at these places, (m, numbers in them), read cell by cell; of an array all there is.

        Whatever is not a number of that kind, "f" real or "c" complex, is NaN.
        """

    def entries(self, place: int) -> Entries:
        """Return one column (m,) of ids or labels, where there are columns."""
        raise InvalidArgumentError("an array has no columns of ids. Give one id per record in an array.")

    def missing(self, place: int) -> int | None:
        """Return the first row that has nothing in a column of ids or labels, or None."""
        return None


class ArrayRows(Rows):
    """Rows of an array; ids and classes stand beside it."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def cut(self, start: int, stop: int) -> ArrayRows:
        """Return a view."""
        return ArrayRows(self.array[start:stop])

    def numbers(self, places: Sequence[int], kind: str = REAL) -> Array:
        """Return the array."""
        return self.array


@dataclass(frozen=True)
class Places:
    """Where the columns are that make a block of rows.

    Parameters
    ----------
    reading : how their numbers become records
    numbers : of the columns that are numbers of a record, in their order; none where rows are an array's
    units, labels : of the columns of ids and classes, where they are columns
    kind : of the numbers, "f" real or "c" complex
    """

    reading: Reading
    numbers: tuple[int, ...] = ()
    units: int | None = None
    labels: int | None = None
    kind: str = REAL

    def narrowed(self) -> tuple[list[int], Places]:
        """Return the places of the columns that are needed, and where they are in a table of these alone.

        Examples
        --------
        >>> from dpmanifold.data.readers import Reading
        >>> from dpmanifold.manifolds import Euclidean
        >>> needed, narrow = Places(Reading(Euclidean(2)), (4, 2), units=0).narrowed()
        >>> needed, narrow.numbers, narrow.units
        ([0, 2, 4], (2, 1), 0)
        """
        apart = [place for place in (self.units, self.labels) if place is not None]
        needed = sorted({*self.numbers, *apart})
        where = {place: i for i, place in enumerate(needed)}
        units, labels = (None if place is None else where[place] for place in (self.units, self.labels))
        return needed, Places(self.reading, tuple(where[place] for place in self.numbers), units, labels, self.kind)

    def block(self, rows: Rows, look: bool = False, units: Array | None = None, labels: Array | None = None) -> Block:
        """Return rows as a block; `units` and `labels` are those that stand beside them."""
        return Block(
            self.reading.records(rows.numbers(self.numbers, self.kind), look),
            units if self.units is None else rows.entries(self.units),
            labels if self.labels is None else rows.entries(self.labels),
        )


def rows_of_block(space: Manifold) -> int:
    """Return how many records make a block.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> rows_of_block(SPD(3)), rows_of_block(SPD(500))
    (29127, 64)
    """
    return max(_FEWEST, _BLOCK // math.prod(space.shape))


def spans(rows: int, space: Manifold, whole: int = 1) -> list[tuple[int, int]]:
    """Return where pieces begin and end: whole chunks of so many rows, and one that is empty where there are no rows.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> spans(700_000, SPD(3), 300_000), spans(0, SPD(3))
    ([(0, 300000), (300000, 600000), (600000, 700000)], [(0, 0)])
    """
    step = whole * max(1, _BLOCKS_OF_PIECE * rows_of_block(space) // whole)
    return [(start, min(start + step, rows)) for start in range(0, max(1, rows), step)]


def asked_for(given: object, rows: int | None, name: str) -> tuple[str | None, Any]:
    """Return what was given as units or labels: the name of a column, or ids that are cut by rows, or neither."""
    if given is None or is_each_record(given):
        return None, None
    if isinstance(given, str):
        return given, None
    return None, ids_in_rows(given, rows, name)


@dataclass(frozen=True)
class Beside:
    """Ids and classes that are no columns, cut by slices of rows: one per record of a source, or of a piece."""

    units: Any = None
    labels: Any = None

    def cut(self, start: int, stop: int) -> Beside:
        """Return those of some records."""
        return Beside(*(None if ids is None else ids[start:stop] for ids in (self.units, self.labels)))

    def refuse_other_length(self, rows: int, more: bool = False) -> None:
        """Refuse ids that are more or fewer than the records; `more` says that there may be more records than these."""
        for name, ids in (("units", self.units), ("labels", self.labels)):
            if ids is not None and tuple(ids.shape) != (rows,):
                wanted = f"more than {ids.shape[0]} records" if more else f"{rows} records"
                raise InvalidArgumentError(
                    "{name} must have one id per record: there are {wanted}, got {shape}.",
                    name=Argument(name),
                    wanted=Public(wanted),
                    shape=Public(ids.shape),
                )


def named_or_beside(units: object, labels: object, rows: int | None) -> tuple[tuple[str | None, str | None], Beside]:
    """Return the columns that were named as units and as labels, and what was given of them beside the records."""
    (unit, ids), (label, classes) = asked_for(units, rows, "units"), asked_for(labels, rows, "labels")
    return (unit, label), Beside(ids, classes)


@dataclass(eq=False, repr=False)
class RowsPiece(Piece):
    """A piece that reads rows, some at a time as they come, and cuts them into blocks.

    Parameters
    ----------
    name : where it is, for the curator
    places : how rows become blocks
    beside : ids and classes of its records, where they are no columns
    start : which record of the source is its first; None where that is not known
    rows : how many it has, where that is known
    read : returns its rows, some at a time; not asked by those that find them in another way
    """

    name: str
    places: Places
    beside: Beside
    start: int | None = 0
    rows: int | None = None
    read: Callable[[], Iterable[Rows]] = tuple

    def __post_init__(self) -> None:
        self.first = self.start or 0

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of bounded size of what is read."""
        return self.cut(self.read())

    def cut(self, parts: Iterable[Rows], beside: Beside | None = None) -> Iterator[Block]:
        """Yield blocks of bounded size of what is read; `beside` are ids and classes that were read with it."""
        ids = self.beside if beside is None else beside
        done, step = 0, rows_of_block(self.places.reading.space)
        for part in parts:
            for start in range(0, len(part), step):
                rows = part.cut(start, min(start + step, len(part)))
                here = ids.cut(done, done + len(rows))
                here.refuse_other_length(len(rows), more=True)
                self._refuse_missing(rows, done)
                yield self.places.block(rows, self.start == 0 and done == 0, here.units, here.labels)
                done += len(rows)
        if self.rows is not None and done != self.rows:
            raise SourceChangedError(
                "{name} has another number of records than was said. Open it again.", name=self.name
            )
        ids.refuse_other_length(done)

    def _refuse_missing(self, rows: Rows, done: int) -> None:
        """Refuse a missing id. Whether a class may be missing, or a covariate, is for those who know them."""
        place = self.places.units
        row = None if place is None else rows.missing(place)
        if place is not None and row is not None:
            where = "" if self.start is None else f"row {self.start + done + row} (the first is 0) of "
            raise InvalidDataError(
                "{where}{name} has nothing in column {name2!r}, and a record belongs to somebody. Fill it in, or "
                "drop the record.",
                where=where,
                name=self.name,
                name2=rows.columns[place].name,
            )


class SteadyPiece(RowsPiece):
    """A piece that remembers what it read first: how many records, and their numbers added up.

    Later passes must give the same ones, or the statistic is none of any data. The sum is of the numbers' bits, modulo
    2^64; it tells by all odds where records were changed, and is no proof. The order may be another one, unless ids or
    classes stand in an array beside the records: then records in another order are other people's.

    Attributes
    ----------
    seen : that count and sum; an engine brings it back from a worker that read a copy of the piece
    """

    seen: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def cut(self, parts: Iterable[Rows], beside: Beside | None = None) -> Iterator[Block]:
        """Yield blocks, and refuse to end where they were others before."""
        count, total = 0, 0
        in_order = self.beside.units is not None or self.beside.labels is not None
        for block in super().cut(parts, beside):
            total = (total + _sum_of_bits(block.records, count if in_order else None)) % 2**64
            count += len(block.records)
            yield block
        with self._lock:
            before, self.seen = self.seen, (count, total)
        if before not in (None, (count, total)):
            raise SourceChangedError(
                "{name} gave other records than when it was read before. Take a copy of what it reads, or make it "
                "give the same ones each time: no sampling, no live tables; and in the same order, where ids "
                "stand beside them.",
                name=self.name,
            )


def _sum_of_bits(records: Array, first: int | None) -> int:
    """Return the sum of the records' words, modulo 2^64; times odd numbers by their places, where `first` is one."""
    if records.dtype.kind == "O":  # records of several shapes
        digests = [hashlib.sha256(b"" if record is None else record.tobytes()).digest()[:8] for record in records]
        records = np.frombuffer(b"".join(digests), dtype=_WORDS)
    words = np.ascontiguousarray(records).view(_WORDS)
    if first is None:
        return int(words.sum(dtype=_WORDS))
    sums = words.reshape(len(records), -1).sum(axis=1, dtype=_WORDS)
    return int((sums * (2 * np.arange(first, first + len(records), dtype=_WORDS) + _WORDS(1))).sum(dtype=_WORDS))
