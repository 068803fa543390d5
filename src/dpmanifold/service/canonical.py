"""Registered records as the worker keeps them: plain arrays in a folder of the vault, whole or not at all.

Whatever format records came in, releases read these: `records.npy`, and beside it `units.npy`, `labels.npy` and
`covariate.npy` where there are any. None holds Python objects, all are mapped when they are opened, and nobody but
their owner can read them.
"""

from __future__ import annotations

import math
import os
import pathlib
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO, Any, final

import numpy as np

from dpmanifold._check import Array
from dpmanifold._ids import KINDS
from dpmanifold.data.archives import read_npy
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, LedgerError, Public
from dpmanifold.files import sync_file, sync_folder
from dpmanifold.manifolds import Euclidean, Manifold
from dpmanifold.sources import Source
from dpmanifold.stats import EACH_RECORD
from dpmanifold.stats.inputs import is_each_record
from dpmanifold.stats.registered_data import Opened

RECORDS, UNITS, LABELS, COVARIATE = "records", "units", "labels", "covariate"
_FOLDER, _FILE = 0o700, 0o600
_UNFINISHED = ".unfinished-"
_MOST_BYTES = 2**33  # of ids or labels in text, of which the longest decides how wide all are


def write(vault: pathlib.Path, columns: Opened, space: Manifold) -> str:
    """Write records to a new folder of the vault and return its name; if anything fails, nothing is left of it.

    Parameters
    ----------
    vault : a folder
    columns : records, an array or a source; units, one id per record, the name of a column or EACH_RECORD; labels and
        covariate likewise, or None
    space : of the records

    Raises
    ------
    InvalidDataError : records are no numbers of one shape, or ids and labels are neither whole numbers nor text
    """
    name = secrets.token_hex(16)
    unfinished = vault / f"{_UNFINISHED}{name}"
    unfinished.mkdir(mode=_FOLDER)
    try:
        _write(unfinished, columns, space)
        sync_folder(unfinished)
        unfinished.rename(vault / name)
        sync_folder(vault)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return name


def open_folder(folder: pathlib.Path) -> Opened:
    """Open what :func:`write` wrote; records are mapped, and units are EACH_RECORD where there are no ids."""
    if not has_records(folder):
        raise LedgerError("the canonical records are not in the vault any more. Register the data again.")
    found = {
        name: read_npy(path) if (path := folder / f"{name}.npy").is_file() else None
        for name in (UNITS, LABELS, COVARIATE)
    }
    units = EACH_RECORD if found[UNITS] is None else found[UNITS]
    return Opened(read_npy(folder / f"{RECORDS}.npy"), units, found[LABELS], found[COVARIATE])


def has_records(folder: pathlib.Path) -> bool:
    """Return whether there are records, as :func:`write` leaves them."""
    return (folder / f"{RECORDS}.npy").is_file()


def remove(vault: pathlib.Path, name: str) -> None:
    """Remove a folder that nothing was registered from."""
    shutil.rmtree(vault / name, ignore_errors=True)


def remove_unfinished(vault: pathlib.Path) -> None:
    """Remove what a process that was killed has left."""
    for folder in vault.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: pathlib.Path, columns: Opened, space: Manifold) -> None:
    """Write all columns, in the order of the records."""
    columns = replace(columns, units=None if is_each_record(columns.units) else columns.units)
    with _Rows(folder / f"{RECORDS}.npy") as rows:
        if isinstance(columns.records, Source):
            columns = _read_along(columns.records, columns, space, rows)
        else:
            rows.add(columns.records)
    n = rows.count
    for name in (UNITS, LABELS, COVARIATE):
        values = getattr(columns, name)
        if values is not None:
            _save(folder / f"{name}.npy", _numbers(values, n) if name == COVARIATE else _plain(values, n, name))


def _read_along(source: Source, columns: Opened, space: Manifold, rows: _Rows) -> Opened:
    """Add the records of a source, and return the columns with what was read along with them."""
    units, labels, covariate = columns.units, columns.labels, columns.covariate
    line = source.numbers(covariate) if isinstance(covariate, str) else None
    # Of columns that nobody told from those of the records, the one that is read as labels is none of them.
    beside = covariate if labels is None and isinstance(covariate, str) and line is None else labels
    ids: list[Any] = []
    classes: list[Any] = []
    for block in _blocks(source, space, units, beside):
        rows.add(block.records)
        ids += _listed(block.units)
        classes += _listed(block.labels)
    if isinstance(covariate, str):
        if line is not None:
            numbers = [value for block in _blocks(line, Euclidean(1)) for value in _listed(block.records[:, 0])]
        elif labels is None:
            numbers = classes
        else:
            numbers = [value for block in _blocks(source, space, units, covariate) for value in _listed(block.labels)]
        covariate = numbers
    return Opened(source, None if units is None else ids, None if labels is None else classes, covariate)


def _blocks(source: Source, space: Manifold, units: object = None, labels: object = None) -> Iterator[Any]:
    for piece in source.bound(space, units, labels):
        yield from piece.blocks()


def _listed(values: object) -> list[Any]:
    """Return values as plain ones; none of nothing."""
    return [] if values is None else np.asarray(values).tolist()


def _numbers(values: object, n: int) -> Array:
    """Return a covariate as doubles, NaN for what is no number: each by itself, so that none decides about others."""
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)  # type: ignore[call-overload]
    if len(listed) != n:
        raise InvalidArgumentError(
            "{covariate} must be one number per record: got {n_listed} for {n} records.",
            covariate=Public(COVARIATE),
            n_listed=Public(len(listed)),
            n=Public(n),
        )
    return np.array([_number(value) for value in listed], dtype=np.float64)


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _plain(values: object, n: int, name: str) -> Array:
    """Return ids or labels as whole numbers or as text: what is written alike is the same to whoever reads them."""
    array = np.asarray(values) if hasattr(values, "__array__") else None
    listed = list(values) if array is None else array.tolist()  # type: ignore[call-overload]
    if len(listed) != n:
        raise InvalidArgumentError(
            "{name} must be one per record: got {n_listed} for {n} records.",
            name=Argument(name),
            n_listed=Public(len(listed)),
            n=Public(n),
        )
    kinds = set(map(type, listed))
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in listed):
        return np.array(listed, dtype=np.int64)
    if kinds <= {int, float}:
        return np.array(listed, dtype=np.float64)  # whole ones are ids, as everywhere; others are refused there
    if name == LABELS:
        listed = [_said(value) for value in listed]
    elif kinds != {str}:
        raise InvalidDataError("{name} are not all of one kind. {kinds}", name=Argument(name), kinds=Public(KINDS))
    if any("\0" in value for value in listed):
        raise InvalidDataError("{name} must have no NUL characters.", name=Argument(name))
    if 4 * n * max(map(len, listed), default=0) > _MOST_BYTES:
        raise InvalidDataError("{name} are too long to be kept. Give shorter ones.", name=Argument(name))
    return np.array(listed, dtype=np.str_)


def _said(value: object) -> str:
    """Return how a label is written, as class names are compared with it: 1.0 is written 1 where that is meant."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _save(path: pathlib.Path, array: Array) -> None:
    with _opened(path) as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
        file.flush()
        sync_file(file.fileno())


def _opened(path: pathlib.Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE), "wb")


@final
class _Rows:
    """A file of records that are added block by block, all of one shape and kind."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self.count = 0
        self._shape: tuple[int, ...] | None = None
        self._kind = ""

    def __enter__(self) -> _Rows:
        self._file = _opened(self._path)
        return self

    def add(self, block: object) -> None:
        """Add records (m, ...)."""
        array = np.asarray(block)
        if array.dtype.kind not in "iufc" or array.ndim < 2:
            raise InvalidDataError(
                "records must be numbers of one shape, one record per row; got an array of dtype {dtype} with "
                "{ndim} axes.",
                dtype=array.dtype,
                ndim=Public(array.ndim),
            )
        kind = "<c16" if array.dtype.kind == "c" else "<f8"
        if self._shape is None:
            self._shape, self._kind = array.shape[1:], kind
            self._start = self._head()
        if (array.shape[1:], kind) != (self._shape, self._kind):
            raise InvalidDataError("records must all have one shape and be of one kind, and later ones differ.")
        for part in _parts(array):
            self._file.write(np.ascontiguousarray(part, dtype=kind).data)
        self.count += len(array)

    def _head(self) -> int:
        """Write what the file holds; numpy leaves room, so that a larger count takes no more space."""
        assert self._shape is not None
        header = {"descr": self._kind, "fortran_order": False, "shape": (self.count, *self._shape)}
        np.lib.format.write_array_header_1_0(self._file, header)
        return self._file.tell()

    def __exit__(self, kind: object, *problem: object) -> None:
        with self._file:
            if kind is not None:
                return
            if self._shape is None or self.count == 0:
                raise InvalidDataError("there are no records.")
            self._file.seek(0)
            if self._head() != self._start:
                raise InvalidDataError("the canonical file could not be written: its header has moved.")
            self._file.flush()
            sync_file(self._file.fileno())


def _parts(array: Array) -> Iterable[Array]:
    """Yield an array some rows at a time, as one that is mapped may be larger than memory."""
    rows = max(1, 2**20 // max(1, int(np.prod(array.shape[1:]))))
    return (array[start : start + rows] for start in range(0, len(array), rows))
