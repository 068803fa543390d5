"""Arrays and data frames of Dask as records: each partition is a piece, computed where it is read.

Without a cluster a piece computes its partition by itself, in the thread that reads it. With one, the engine puts the
partitions' own tasks and the work on them into one graph (:meth:`DaskPiece.delayed`), so that no partition comes to the
driver. Only a ledger's fingerprint, which goes through all records in their order, has them one after the other.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from dpmanifold._check import optional_module
from dpmanifold.data.frames import PandasRows, TableSource
from dpmanifold.data.pieces import ArrayRows, Beside, Places, Rows, SteadyPiece, asked_for
from dpmanifold.data.readers import Reading, places_of
from dpmanifold.data.tables import Column, alike
from dpmanifold.engines import current_engine
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import ADAPTERS, Block, Piece, Source, is_a
from dpmanifold.stats.inputs import is_each_record

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
