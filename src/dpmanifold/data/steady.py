"""Records that are read or computed anew for each pass, and must be the same: functions, zarr stores, Dask collections.

A function makes an iterator of blocks: generators, and queries of databases as Arrow batches. Arrays in zarr stores are
read in whole chunks, with ids from another array of the same store. Of arrays and data frames of Dask each partition is
a piece, computed where it is read. Without a cluster a piece computes its partition by itself, in the thread that reads
it. With one, the engine puts the partitions' own tasks and the work on them into one graph (:meth:`DaskPiece.delayed`),
so that no partition comes to the driver. Only a ledger's fingerprint, which goes through all records in their order,
has them one after the other.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from dpmanifold._check import Array, optional_module, positive_int, shown
from dpmanifold.data.frames import PandasRows, TableSource, rows_of_table
from dpmanifold.data.pieces import (
    ArrayRows,
    Beside,
    Places,
    Rows,
    SteadyPiece,
    asked_for,
    named_or_beside,
    rows_of_block,
    spans,
)
from dpmanifold.data.readers import AS_FOUND, Reading, Wanted, places_of
from dpmanifold.data.table_files import Column, alike
from dpmanifold.engines import current_engine
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Names, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import ADAPTERS, Block, Piece, Source, ids_in_rows, is_a
from dpmanifold.stats.inputs import is_each_record

Make = Callable[[], Iterable[Any]]

_WHERE, _TABLE = "what make() gives", "the table"
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


class BlocksSource(TableSource):
    """Blocks of functions, one piece each; `name` says where they come from, for messages."""

    def __init__(self, makes: tuple[Make, ...], rows: int | None, wanted: Wanted, name: str = _WHERE) -> None:
        self._makes, self.rows, self._wanted, self._name = makes, rows, wanted, name

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return a piece per function."""
        (unit, label), beside = named_or_beside(units, labels, self.rows)
        if len(self._makes) > 1 and (beside.units is not None or beside.labels is not None):
            raise InvalidArgumentError(
                "units and labels must come with the blocks of several functions, as columns or in pairs "
                '(records, ids): give `units="units"`.'
            )
        reading, rows = self._wanted.reading(space, unit, label), self.rows if len(self._makes) == 1 else None
        return [
            BlocksPiece(make, self._name, reading, beside, None if i else 0, rows) for i, make in enumerate(self._makes)
        ]


def _batches_of(table: Any) -> Iterator[Any]:
    """Yield the batches of a table; whatever its library raises becomes one error that quotes nothing."""
    try:
        yield from pa.RecordBatchReader.from_stream(table)
    except (MemoryError, TimeoutError):
        raise
    except Exception:
        raise InvalidDataError(
            "{table} cannot be computed, or {once}", table=Public(_TABLE), once=Public(_ONCE)
        ) from None


def stream_source(X: object) -> BlocksSource | None:
    """Return a table of Arrow's protocol of streams as a source; None of everything else, also of a single column.

    Its library is asked for the batches anew for each pass over the records.
    """
    column = hasattr(X, "dtype") or isinstance(X, pa.ChunkedArray)
    if column or not hasattr(X, "__arrow_c_stream__"):
        return None
    return BlocksSource((partial(_batches_of, X),), None, AS_FOUND, _TABLE)


class BlocksPiece(SteadyPiece):
    """Blocks of one function."""

    def __init__(
        self, make: Make, name: str, reading: Reading, beside: Beside, start: int | None, rows: int | None
    ) -> None:
        super().__init__(name, Places(reading), beside, start, rows)
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
                self.places = _places(self._reading, rows, self.name)
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


def _places(reading: Reading, rows: Rows, where: str) -> Places:
    """Decide from the first block."""
    if not isinstance(rows, _Tuple):
        return places_of(reading, rows.columns, where)
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
ADAPTERS.register("stream", stream_source)


def from_zarr(
    store: object, key: str | None = None, *, order: str | None = None, coordinates: str | None = None
) -> Source:
    """Return an array of a zarr store as records, for every call that takes X; memory is bounded by a row of chunks.

    A zarr array may also be given as it is. Ids and labels are one per record: in another zarr array, in any other
    array, or by the name of an array of the same group (`units="person"`). As zarr has it, a chunk that is not stored
    reads as the array's fill value.

    Parameters
    ----------
    store : a zarr group or array (version 2 or 3), or the path of one
    key : the array's name in a group
    order : of a tensor's six numbers, as in :func:`as_records`
    coordinates : "lonlat", "decinc" or another system of :func:`from_coordinates`

    Examples
    --------
    >>> import zarr
    >>> import dpmanifold as dpm
    >>> group = zarr.group()
    >>> tensors = group.create_array("tensors", shape=(100, 3, 3), chunks=(40, 3, 3), dtype="f8")
    >>> tensors[:] = np.broadcast_to(np.eye(3), (100, 3, 3))
    >>> person = group.create_array("person", shape=(100,), dtype="i8")
    >>> source = from_zarr(group, "tensors")
    >>> [piece] = source.bound(dpm.SPD(3), units="person")
    >>> [block.records.shape for block in piece.blocks()]
    [(100, 3, 3)]
    """
    opened = store
    if isinstance(store, (str, os.PathLike)):
        zarr = optional_module("zarr", "zarr", "Reading a zarr store")
        try:
            opened = zarr.open(store, mode="r")
        except Exception:
            # Whatever a store raises: versions and stores have errors of their own.
            raise InvalidArgumentError(
                "store: there is no zarr array or group at {fspath!r}.", fspath=os.fspath(store)
            ) from None
    group = opened if is_a(opened, "zarr", "Group") else None
    if group is not None:
        opened = _of_group(group, key, "key")
    elif key is not None:
        raise InvalidArgumentError("`key` means nothing for a zarr array, got {got}. Leave it out.", got=shown(key))
    if not is_a(opened, "zarr", "Array"):
        raise InvalidArgumentError(
            "store must be a zarr group or array, or the path of one, got {got}.", got=shown(store)
        )
    return ZarrSource(opened, group, Wanted(None, order, coordinates))


class ZarrSource(Source):
    """Records in an array (n, ...).

    Parameters
    ----------
    array : zarr.Array
    group : where it is, if ids are to be found there
    wanted : how records are written
    """

    def __init__(self, array: Any, group: Any = None, wanted: Wanted = AS_FOUND) -> None:
        if array.ndim == 0:
            raise InvalidDataError("`X` must be a batch of records, got a zarr array of shape ().")
        self._array, self._group, self._wanted, self.rows = array, group, wanted, int(array.shape[0])

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return pieces of whole rows of chunks, or of shards where chunks are in some."""
        array = self._array
        beside = Beside(self._ids(units, "units"), self._ids(labels, "labels"))
        places = Places(self._wanted.reading(space))
        # Text is of numpy's own type for it, or, where numpy has none yet, of objects.
        places.reading.try_out(array.shape[1:], "U1" if array.dtype == object else array.dtype)
        whole = int((getattr(array, "shards", None) or array.chunks)[0])
        step = whole * max(1, rows_of_block(space) // whole)
        return [
            SteadyPiece(
                "the zarr array", places, Beside(_part(beside.units, span), _part(beside.labels, span)),
                span[0], span[1] - span[0], partial(_parts, array, span, step),
            )
            for span in spans(int(array.shape[0]), space, whole)
        ]  # fmt: skip

    def _ids(self, given: Any, what: str) -> Any:
        """Return ids: in an array, or in a zarr array that is read along with the records."""
        if isinstance(given, str) and self._group is not None and not is_each_record(given):
            given = _of_group(self._group, given, what)
        if not is_a(given, "zarr", "Array"):
            name, ids = asked_for(given, self.rows, what)
            if name is not None:
                raise InvalidArgumentError(
                    "{what}: there is no array {name!r} beside the records. Give one id per record in an array, or a "
                    "group: data.from_zarr(group, key).",
                    what=Argument(what),
                    name=name,
                )
            return ids
        if tuple(given.shape) != (self.rows,):
            raise InvalidArgumentError(
                "{what} must have shape ({rows},), one id per record, got {shape}.",
                what=Argument(what),
                rows=Public(self.rows),
                shape=Public(given.shape),
            )
        return given


def _parts(array: Any, span: tuple[int, int], step: int) -> Iterator[Rows]:
    """Yield whole rows of chunks, so that each chunk is decompressed once."""
    for start in range(*span, step):
        yield ArrayRows(_read(array, start, min(start + step, span[1])))


class _Part:
    """Some rows of a zarr array, read when they are asked for."""

    def __init__(self, array: Any, start: int, stop: int) -> None:
        self._array, self._start, self.shape = array, start, (stop - start,)

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(self.shape[0])
        return _read(self._array, self._start + start, self._start + stop)


def _part(ids: Any, span: tuple[int, int]) -> Any:
    if ids is None or isinstance(ids, np.ndarray):
        return None if ids is None else ids[slice(*span)]
    return _Part(ids, *span)


def _read(array: Any, start: int, stop: int) -> Array:
    """Return rows; whatever a store or a codec raises becomes one error that quotes nothing."""
    try:
        return np.asarray(array[start:stop])
    except Exception:
        raise InvalidDataError(
            "the zarr array cannot be read from row {start} to row {stop} (the first is 0): a chunk there is "
            "damaged, or its store is out of reach. Write it again.",
            start=Public(start),
            stop=Public(stop),
        ) from None


def _of_group(group: Any, key: str | None, what: str) -> Any:
    """Return an array of a group; without a key, the only one there is."""
    keys = list(group.array_keys())
    if key is None and len(keys) == 1:
        return group[keys[0]]
    if key is None or key not in keys:
        got = "is needed" if key is None else f"{shown(key)} is not in the zarr group"
        raise InvalidArgumentError(
            "{what} {got}: it has the arrays {keys}.", what=Argument(what), got=got, keys=Names(keys)
        )
    return group[key]


def zarr_source(X: object) -> ZarrSource | None:
    """Return a zarr array as a source, and None of everything else."""
    if is_a(X, "zarr", "Group"):
        raise InvalidArgumentError("`X` is a zarr group. Name the array of records: data.from_zarr(group, key).")
    return ZarrSource(X) if is_a(X, "zarr", "Array") else None


ADAPTERS.register("zarr", zarr_source)


_ARRAY, _FRAME = "the dask array", "the dask DataFrame"


class DaskPiece(SteadyPiece):
    """One partition.

    Parameters
    ----------
    name : of the collection
    delayed : the partition, and those of ids and labels that are collections too, or None; as Dask's Delayed
    places : how rows become blocks
    beside : ids of its records, where they are in memory
    start, rows : where it stands and how many records it has, where that is known
    columns : of a data frame, as it says they are
    """

    def __init__(
        self,
        name: str,
        delayed: tuple[Any, Any, Any],
        places: Places,
        beside: Beside,
        start: int | None,
        rows: int | None,
        columns: Sequence[Column] | None = None,
    ) -> None:
        super().__init__(name, places, beside, start, rows)
        self._columns, self._alone = columns, delayed[1] is delayed[2] is None
        self._delayed = delayed[0] if self._alone else _together(delayed)

    def delayed(self) -> Any:
        """Return the partition as Dask's Delayed; with ids or labels from other collections, a tuple of three."""
        return self._delayed

    def without_graph(self) -> DaskPiece:
        """Return a copy that has only what :meth:`blocks_of` needs, to be sent along with a partition."""
        found = copy.copy(self)
        found._delayed = None
        return found

    def blocks(self) -> Iterator[Block]:
        """Compute the partition, in this thread or on the cluster that is in use, and yield its blocks here."""
        # What was persisted is on the workers alone.
        where = {} if current_engine().elsewhere else {"scheduler": "synchronous"}
        return self.blocks_of(self._delayed.compute(**where))

    def blocks_of(self, value: Any) -> Iterator[Block]:
        """Yield blocks of a partition that was computed."""
        part, units, labels = (value, None, None) if self._alone else value
        beside = Beside(*(old if new is None else np.asarray(new) for old, new in
                          ((self.beside.units, units), (self.beside.labels, labels))))  # fmt: skip
        return self.cut([self._rows(part)], beside)

    def _rows(self, part: Any) -> Rows:
        if self._columns is None:
            return ArrayRows(np.asarray(part))
        rows = PandasRows(part)
        if not alike(rows.columns, self._columns):
            raise InvalidDataError(
                "a partition of {name} has other columns than the collection says. Give `meta` where it was made.",
                name=self.name,
            )
        return rows


class DaskArraySource(Source):
    """Records in a dask array, (n, ...); n need not be known."""

    def __init__(self, array: Any) -> None:
        if array.ndim == 0 or any(math.isnan(size) for size in array.shape[1:]):
            raise InvalidDataError(
                "`X` must be a batch of records whose shape is known, got a dask array of shape {shape}. "
                "array.compute_chunk_sizes() finds it out.",
                shape=Public(array.shape),
            )
        self._array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
        self.rows = None if math.isnan(array.shape[0]) else int(array.shape[0])

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return a piece per chunk of the first axis."""
        array = self._array
        places = Places(Reading(space))
        places.reading.try_out(array.shape[1:], array.dtype)
        sizes = array.chunks[0]
        given = [_ids(ids, sizes, what, _ARRAY) for ids, what in ((units, "units"), (labels, "labels"))]
        return _pieces(_ARRAY, _partitions(array), sizes, places, given)


class DaskTable(TableSource):
    """Records in the rows of a dask data frame."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return a piece per partition."""
        names = [given if isinstance(given, str) and not is_each_record(given) else None for given in (units, labels)]
        sizes = (math.nan,) * self._frame.npartitions
        given = [
            (None, None) if name is not None else _ids(ids, sizes, what, _FRAME)
            for name, ids, what in zip(names, (units, labels), ("units", "labels"), strict=True)
        ]
        columns = PandasRows.described(self._frame)
        places, frame = places_of(self._wanted.reading(space, *names), columns, _FRAME), self._frame
        if len({column.name for column in columns}) == len(columns):
            # What is not asked for is not read.
            needed, places = places.narrowed()
            frame, columns = frame[[frame.columns[place] for place in needed]], [columns[place] for place in needed]
        return _pieces(_FRAME, _partitions(frame), sizes, places, given, columns)


def _pieces(
    name: str,
    parts: Sequence[Any],
    sizes: Sequence[float],
    places: Places,
    given: Sequence[tuple[Any, Sequence[Any] | None]],
    columns: Sequence[Column] | None = None,
) -> list[Piece]:
    """Return a piece per partition; `given` are units and labels, each in memory or in partitions of their own."""
    starts = list(accumulate(sizes, initial=0))
    found: list[Piece] = []
    for i, (part, size, start) in enumerate(zip(parts, sizes, starts[:-1], strict=True)):
        known = None if math.isnan(start + size) else (int(start), int(start + size))
        beside = Beside(*(ids[slice(*known)] if ids is not None and known is not None else None for ids, _ in given))
        delayed = (part, *(None if others is None else others[i] for _, others in given))
        rows = None if math.isnan(size) else int(size)
        found.append(DaskPiece(name, delayed, places, beside, None if math.isnan(start) else int(start), rows, columns))
    return found


def _ids(given: Any, sizes: Sequence[float], what: str, where: str) -> tuple[Any, Sequence[Any] | None]:
    """Return ids in memory, or in the partitions of a collection; or neither."""
    if is_a(given, "dask", "Array", "Series"):
        if given.ndim != 1:
            raise InvalidArgumentError(
                "{what} must have shape (n,), one id per record, got {shape}.",
                what=Argument(what),
                shape=Public(given.shape),
            )
        if is_a(given, "dask", "Array") and not any(map(math.isnan, (*sizes, *given.chunks[0]))):
            if sum(sizes) != given.shape[0]:
                raise InvalidArgumentError(
                    "{what} must have shape ({sum},), got {shape}.",
                    what=Argument(what),
                    sum=Public(int(sum(sizes))),
                    shape=Public(given.shape),
                )
            given = given.rechunk((tuple(sizes),))
        if given.npartitions != len(sizes):
            raise InvalidArgumentError(
                "{what} must have the partitions of {where}, {n_sizes} of them, got {npartitions}. Take both from "
                "one collection.",
                what=Argument(what),
                where=where,
                n_sizes=Public(len(sizes)),
                npartitions=Public(given.npartitions),
            )
        return None, _partitions(given)
    rows = sum(sizes)
    name, ids = asked_for(given, None if math.isnan(rows) else int(rows), what)
    if name is not None:
        raise InvalidArgumentError(
            "{what}: {where} has no columns, got {name!r}. Give one id per record, in an array of numpy or dask.",
            what=Argument(what),
            where=where,
            name=name,
        )
    if ids is not None and math.isnan(rows):
        raise InvalidArgumentError(
            "{what} must be {detail}a dask array or Series with the same partitions: how many records each "
            "partition of {where} has is not known.",
            what=Argument(what),
            detail=Message("the name of a column, or ") if where == _FRAME else Message(""),
            where=where,
        )
    return ids, None


def _partitions(collection: Any) -> list[Any]:
    """Return the partitions as Delayed, in their order, each with what it needs of the graph alone.

    With the graph of all of them, each would be looked through for every one that is computed.
    """
    graphs, later = (optional_module(f"dask.{name}", "dask", _ARRAY) for name in ("optimization", "delayed"))
    parts = np.ravel(np.asarray(collection.to_delayed(), dtype=object)).tolist()
    graph = dict(parts[0].__dask_graph__()) if parts else {}
    # What was persisted has no graph: the scheduler knows it by its name.
    return [later.Delayed(part.key, graphs.cull(graph, [part.key])[0]) if part.key in graph else part for part in parts]


def _together(delayed: tuple[Any, Any, Any]) -> Any:
    """Return one Delayed of several."""
    later = optional_module("dask.delayed", "dask", _ARRAY)
    return later.delayed(list, pure=True)(list(delayed))


def dask_source(X: object) -> DaskArraySource | DaskTable | None:
    """Return an array or a data frame of dask as a source, and None of everything else."""
    if is_a(X, "dask", "Array"):
        return DaskArraySource(X)
    return DaskTable(X) if is_a(X, "dask", "DataFrame") else None


ADAPTERS.register("dask", dask_source)
