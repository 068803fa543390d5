"""Records from a function that makes an iterator of blocks: generators, and queries of databases as Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dpmanifold._check import Array, positive_int, shown
from dpmanifold.data.frames import rows_of_table
from dpmanifold.data.pieces import ArrayRows, Beside, Places, Rows, SteadyPiece, named_or_beside
from dpmanifold.data.readers import Reading, Wanted, places_of
from dpmanifold.data.tables import Column, alike
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import ADAPTERS, Block, Piece, Source, ids_in_rows

Make = Callable[[], Iterable[Any]]

_WHERE = "what make() gives"
_ONCE = (
    "can be read only once, and records are read several times. Give a function without arguments that makes a new one "
    "each time it is called: data.from_blocks(lambda: ...)."
)
# What the parts of a block are called that is a pair or a triple.
_BESIDE = ("units", "labels")


def from_blocks(
    make: Make | Sequence[Make],
    rows: int | None = None,
    *,
    columns: str | Sequence[str] | None = None,
    order: str | None = None,
    coordinates: str | None = None,
) -> Source:
    """Return records that a function gives block by block, for every call that takes X: generators, and SQL.

    Blocks are one of

    - arrays (m, ...) of records;
    - pairs (records, ids) of them and one id per record, or triples (records, ids, labels): then give `units="units"`
      and `labels="labels"` to the statistic;
    - pyarrow RecordBatches or Tables, or data frames: then `units=` and `labels=` name columns, and `columns` and the
      other words choose the records as for :func:`from_frame`.

    Memory is bounded by the largest block. Records are read once for each pass over the data, and must be the same each
    time: passes that see others are refused by their number and a sum of them. A query whose rows come in another order
    is fine, as long as the ids are its columns.

    Parameters
    ----------
    make : a function without arguments that returns a new iterator of blocks each time it is called. A sequence of them
        is read by several workers, each function by one
    rows : how many records there are, if that is known
    columns, order, coordinates : which columns are the records and how they are written, as in :func:`from_frame`

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> def blocks():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(10):
    ...         yield rng.normal(size=(1000, 3)), rng.integers(0, 500, 1000)
    >>> source = from_blocks(blocks)
    >>> [piece] = source.bound(dpm.Euclidean(3), units="units")
    >>> sum(len(block.records) for block in piece.blocks())
    10000
    """
    makes = [make] if callable(make) else make
    if not isinstance(makes, (list, tuple)) or not makes or not all(callable(one) for one in makes):
        got = f"{shown(make)}, which {_ONCE}" if isinstance(make, Iterator) else f"{shown(make)}: lambda: iter(blocks)."
        raise InvalidArgumentError("make must be a function that makes an iterator of blocks, got {got}", got=got)
    known = None if rows is None else positive_int(rows, "rows", 0)
    return BlocksSource(tuple(makes), known, Wanted(columns, order, coordinates))


class BlocksSource(Source):
    """Blocks of functions, one piece each."""

    def __init__(self, makes: tuple[Make, ...], rows: int | None, wanted: Wanted) -> None:
        self._makes, self.rows, self._wanted = makes, rows, wanted

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return a piece per function."""
        (unit, label), beside = named_or_beside(units, labels, self.rows)
        if len(self._makes) > 1 and (beside.units is not None or beside.labels is not None):
            raise InvalidArgumentError(
                "units and labels must come with the blocks of several functions, as columns or in pairs "
                '(records, ids): give `units="units"`.'
            )
        reading, rows = self._wanted.reading(space, unit, label), self.rows if len(self._makes) == 1 else None
        return [BlocksPiece(make, reading, beside, None if i else 0, rows) for i, make in enumerate(self._makes)]


class BlocksPiece(SteadyPiece):
    """Blocks of one function."""

    def __init__(self, make: Make, reading: Reading, beside: Beside, start: int | None, rows: int | None) -> None:
        super().__init__(_WHERE, Places(reading), beside, start, rows)
        self._make, self._reading, self._tried = make, reading, False

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of bounded size of those that come."""
        return self.cut(self._parts())

    def _parts(self) -> Iterator[Rows]:
        """Yield the blocks; the columns of the first say which are the records, and those of the others are the same.

        Once they were read for the first time, one block is asked for again: before anything is spent it must be known
        that they can be.
        """
        columns: Sequence[Column] | None = None
        for item in self._items():
            rows = _rows_of(item)
            if columns is None:
                columns = rows.columns
                self.places = _places(self._reading, rows)
            elif not alike(rows.columns, columns):
                raise InvalidDataError("blocks of one function must have the same columns, of the same types.")
            yield rows
        if columns is not None and not self._tried:
            if next(iter(self._items()), None) is None:
                raise InvalidArgumentError(
                    "make() gave blocks the first time and none the second: it {once}", once=Public(_ONCE)
                )
            self._tried = True

    def _items(self) -> Iterator[Any]:
        items = self._make()
        if not isinstance(items, Iterable):
            raise InvalidArgumentError("make() must return an iterator of blocks, got {got}.", got=shown(items))
        return iter(items)


class _Tuple(ArrayRows):
    """A block of records and what stands beside them."""

    def __init__(self, array: Array, beside: Sequence[Array]) -> None:
        super().__init__(array)
        self._beside = beside
        self.columns = [Column(name, "object") for name, _ in zip(_BESIDE, beside, strict=False)]

    def cut(self, start: int, stop: int) -> _Tuple:
        """Return views."""
        return _Tuple(self.array[start:stop], [entries[start:stop] for entries in self._beside])

    def entries(self, place: int) -> Array:
        """Return ids, or labels."""
        return self._beside[place]


def _rows_of(item: object) -> Rows:
    """Return a block as rows."""
    table = rows_of_table(item)
    if table is not None:
        return table
    records, *beside = item if isinstance(item, tuple) else (item,)
    if not isinstance(records, np.ndarray) or records.ndim == 0 or len(beside) > len(_BESIDE):
        raise InvalidDataError(
            "a block must be an array (m, ...), a pair (records, ids), a triple (records, ids, labels), a "
            "RecordBatch or a data frame, got {kind}{detail}.",
            kind=Public(type(item).__name__),
            detail=Message(" of {n_beside}", n_beside=Public(len(beside) + 1)) if beside else Message(""),
        )
    named = zip(_BESIDE, beside, strict=False)
    return _Tuple(records, [ids_in_rows(ids, len(records), f"{name} of a block") for name, ids in named])


def _places(reading: Reading, rows: Rows) -> Places:
    """Decide from the first block."""
    if not isinstance(rows, _Tuple):
        return places_of(reading, rows.columns, _WHERE)
    if reading.columns is not None:
        raise InvalidArgumentError("`columns` means nothing for blocks that are arrays. Leave it out.")
    found = []
    for what, given in (("units", reading.units), ("labels", reading.labels)):
        names = [column.name for column in rows.columns]
        if given is not None and given not in names:
            raise InvalidArgumentError(
                "{what}: there is no {given!r} in blocks that are arrays. Give triples (records, ids, labels) and "
                '`units="units"`, labels="labels"; or one id per record in an array.',
                what=Argument(what),
                given=given,
            )
        found.append(None if given is None else names.index(given))
    return Places(reading, (), found[0], found[1])


def _refuse_iterators(X: object) -> None:
    """Refuse what can be read only once."""
    if type(X).__module__.split(".")[0] == "mne":
        raise InvalidArgumentError(
            "`X` is an object of MNE ({got}). Give covariances: data.from_epochs(epochs), or of files "
            "data.from_epochs_files(files).",
            got=shown(X),
        )
    if isinstance(X, Iterator):
        raise InvalidArgumentError(
            "`X` is an iterator ({got}), which can be read only once, and records are read several times. "
            "Give a function that makes one: data.from_blocks(lambda: ...).",
            got=shown(X),
        )


ADAPTERS.register("iterator", _refuse_iterators)
