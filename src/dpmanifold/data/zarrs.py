"""Arrays in zarr stores as records: read in whole chunks, with ids from another array of the same store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpmanifold._check import Array, optional_module, shown
from dpmanifold.data.pieces import ArrayRows, Beside, Places, Rows, SteadyPiece, asked_for, rows_of_block, spans
from dpmanifold.data.readers import AS_FOUND, Wanted
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Names, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import ADAPTERS, Piece, Source, is_a
from dpmanifold.stats.inputs import is_each_record


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
