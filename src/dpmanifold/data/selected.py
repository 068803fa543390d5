"""From the paths of a selection to records: tables and arrays are streamed, from any number of files; the rest is read.

Ids and labels that stand in the same files are named, and read along with the records; others come from their own file.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifold._check import Array
from dpmanifold._ids import entries_of
from dpmanifold.data._files import DataFile, in_file, listed
from dpmanifold.data.archives import NpyFile, NpzFile
from dpmanifold.data.bids import from_bids, is_bids
from dpmanifold.data.dataset import Dataset
from dpmanifold.data.formats import as_records, files_in, loader_of, open_file
from dpmanifold.data.image_source import ImageSource
from dpmanifold.data.landmarks import column_of_specimens, is_long
from dpmanifold.data.nifti import NiftiFile, from_nifti
from dpmanifold.data.parquet_table import ParquetTable
from dpmanifold.data.readers import read_for
from dpmanifold.data.specifications import EACH, kind_of, space_of
from dpmanifold.data.table_files import Table
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Names, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import Projected, Source
from dpmanifold.stats import EACH_RECORD
from dpmanifold.stats.registered_data import Opened

if TYPE_CHECKING:
    from dpmanifold.data.selection import Selection

Tell = Callable[[str], object]
"""A function that is told what the curator should know."""

# The unit of one image each, where several are named.
IMAGE = "image"


@dataclass(frozen=True, kw_only=True)
class Selected(Opened):
    """Records of a selection, as private calls take them: a source, or an array where they were read. NOT PRIVATE.

    Attributes
    ----------
    space : which they are of
    names : columns or keys that can be asked for
    file : the file that was read, or the files that are to be
    """

    units: Any = None
    space: Manifold
    names: Sequence[str] = ()
    file: DataFile | Dataset | None = None

    @property
    def rows(self) -> int | None:
        """How many records there are, where that is known."""
        return self.records.rows if isinstance(self.records, Source) else len(np.asarray(self.records))

    @property
    def kind(self) -> str:
        """What sort of files they are of: "tables", "images", or how their names end."""
        if self.file is None:
            return "images"
        return kind_of_file(self.file.files[0] if isinstance(self.file, Dataset) else self.file.path)

    def beside(self, units: str | None, labels: str | None, covariate: str | None = None) -> Selected:
        """Return the same records with ids, classes and a covariate, as a selection says where they stand."""
        return replace(
            self,
            labels=None if labels is None else self._column(labels, "labels"),
            covariate=None if covariate is None else self._column(covariate, "covariate"),
            units=EACH_RECORD if units == EACH else None if units is None else self._column(units, "units"),
        )

    def gathered(self) -> Selected:
        """Return all records at once, with their units and classes: of data that may be shown."""
        if not isinstance(self.records, Source):
            return replace(self, records=np.asarray(self.records))
        named = {name: getattr(self, name) for name in ("units", "labels") if isinstance(getattr(self, name), str)}
        blocks = [block for piece in self.records.bound(self.space, **named) for block in piece.blocks()]
        along: dict[str, Any] = {
            name: [one for block in blocks for one in entries_of(getattr(block, name)).tolist()] for name in named
        }
        records = np.concatenate([np.empty((0, *self.space.shape)), *(block.records for block in blocks)])
        return replace(self, records=records, **along)

    def _column(self, text: str, option: str) -> Any:
        """Return one value per record, or the name of a column that is read along with the records."""
        if isinstance(self.file, DataFile):
            return _column(text, self.file, self.rows, option)
        return text if text in self.names else column_elsewhere(text, self.names, self.rows, option)


def read(chosen: Selection, tell: Tell) -> Selected:
    """Return the records of files, folders and patterns, as the selection's space takes them.

    Landmarks of a table are paired by the names of their columns, and directions in degrees are known by theirs. With
    `normalize` nearly valid records are moved onto the space, each by itself.
    """
    paths = chosen.paths
    if len(paths) == 1 and is_bids(paths[0]):
        return _brains(chosen, tell)
    images = images_in(paths)
    if images:
        tell(f"read are {len(images):,} images of tensors: {listed(path.name for path in images)}.")
        # Each is somebody's, or its person stands in another file.
        names = {IMAGE: [os.fspath(path) for path in images]}
        return _of_images(from_nifti(images, order=chosen.order, mask=chosen.mask, per_image=names), chosen)
    file = opened_whole(chosen, kind_of(chosen.space_text))
    return _streamed(chosen, tell) if file is None else _at_once(file, chosen)


def images_in(paths: Sequence[str]) -> list[pathlib.Path]:
    """Return the images of tensors that several paths, a folder or a pattern mean; nothing where they mean others."""
    if len(paths) == 1 and not (os.path.isdir(paths[0]) or is_pattern(paths[0])):
        return []
    files = files_in(list(paths))
    return files if all(loader_of(path) is NiftiFile for path in files) else []


def is_pattern(text: str) -> bool:
    """Return whether a path is a pattern such as parts/*.parquet, and not the name of a file that is there."""
    return any(mark in text for mark in "*?[") and not os.path.lexists(text)


def kind_of_file(path: str | os.PathLike[str]) -> str:
    """Return what sort of file it is, by its name: "tables", "images", or how names of its format end."""
    format_ = loader_of(path)
    is_table = format_ is not None and issubclass(format_, Table)
    return "tables" if is_table else "images" if format_ is NiftiFile else pathlib.Path(path).suffix.lower()


def opened_whole(chosen: Selection, kind: type[Manifold]) -> DataFile | None:
    """Return the one file that was named, opened, where its records cannot be streamed."""
    paths = chosen.paths
    if len(paths) != 1 or os.path.isdir(paths[0]) or is_pattern(paths[0]):
        return None
    format_ = loader_of(paths[0])
    if format_ is None or chosen.mask is not None or not issubclass(format_, (Table, NpyFile, NpzFile)):
        return open_file(paths[0])
    if not issubclass(format_, Table):
        return None
    table = open_file(paths[0])
    if chosen.columns is None and kind.table_reader == "landmarks" and is_long(table.names):
        return table
    # How many lines a table of text has is not known before it is read, and ids of another file are one per line.
    elsewhere = any(name not in (None, EACH, *table.names) for name in (chosen.units, chosen.apart))
    return table if elsewhere and not isinstance(table, ParquetTable) else None


def _streamed(chosen: Selection, tell: Tell) -> Selected:
    """Return records that are read a block at a time, by whoever takes them; of folders and patterns, tell which."""
    if chosen.mask is not None:
        raise InvalidArgumentError("`mask` goes with images, .nii or .nii.gz. Leave it out.")
    name, size, source = chosen.space_text, chosen.size, chosen.dataset()
    columns = [column if column in source.names else None for column in (chosen.units, chosen.apart)]
    shape = source.record_shape(kind_of(name), *columns) if size is None and "(" not in name else ()
    space = space_of(name, size, *shape)
    read_as = source.read_as(space, *columns)  # refuses records of another shape
    if any(os.path.isdir(path) or is_pattern(path) for path in chosen.paths):
        tell(f"read are {read_as}.")
    records = Projected(source) if chosen.normalize else source
    return Selected(records=records, space=space, names=source.names, file=source)


def _brains(chosen: Selection, tell: Tell) -> Selected:
    """Return the tensors of a folder in the form of BIDS, whose people are those of its participants.tsv."""
    folder = chosen.paths[0]
    source = from_bids(folder, order=chosen.order, mask=True if chosen.mask is None else chosen.mask, curator=tell)
    tell(f"read are {len(source):,} images of tensors of {folder}; there are the columns {listed(source.names)}.")
    return _of_images(source, chosen)


def _of_images(source: ImageSource, chosen: Selection) -> Selected:
    """Return the tensors of images."""
    for option in ("columns", "array", "coordinates"):
        if getattr(chosen, option) is not None:
            raise InvalidArgumentError(
                "{option} means nothing for {path}, images of tensors. Leave it out.",
                option=Argument(option),
                path=chosen.paths[0],
            )
    space = space_of(chosen.space_text, chosen.size, (3, 3))
    return Selected(records=Projected(source) if chosen.normalize else source, space=space, names=source.names)


def _at_once(file: DataFile, chosen: Selection) -> Selected:
    """Return the records of a file that is read whole; those of a memory map stay on the disk."""
    for column in (chosen.units, chosen.apart):
        file.keep(column or "")
    name, order, key, mask = chosen.space_text, chosen.order, chosen.array, chosen.mask
    # Where the format itself knows orders (images of tensors), it applies them.
    own: dict[str, Any] = {"order": order} if "order" in file.options else {}
    try:
        array = read_for(kind_of(name), file, chosen.columns, chosen.coordinates, key=key, mask=mask, **own)
        if array.ndim < 2:
            raise InvalidDataError(
                "it must hold one record per row, got an array with {ndim} axes.", ndim=Public(array.ndim)
            )
        space = space_of(name, chosen.size, array.shape[1:], array.dtype.kind)
        records = as_records(array, space, None if own else order)
    except InvalidDataError as problem:
        raise in_file(str(file.path), problem) from None
    records = np.asarray(space.project(records)) if chosen.normalize else records
    return Selected(records=records, space=space, names=file.names, file=file)


def _column(text: str, opened: DataFile, n: int | None, option: str) -> Array:
    """Return one value per record: a column or key of the file that was read, or of another one.

    Of a table with a row per landmark, one value per specimen.
    """
    labels = option == "labels"
    if not opened.names:
        return column_elsewhere(text, (), n, option)
    try:
        found = opened.column(text, labels=labels)
    except InvalidArgumentError:
        # No such column: then it must be a file, or the message says which columns there are.
        if not any(pathlib.Path(name).is_file() for name in (text, text.rpartition(":")[0]) if name):
            raise
        return column_elsewhere(text, opened.names, n, option)
    if len(found) != n and isinstance(opened, Table):
        by_specimen = column_of_specimens(opened, text, labels)
        found = found if by_specimen is None else by_specimen
    return _one_each(found, text, n, option)


def column_elsewhere(text: str, names: Sequence[str], n: int | None, option: str) -> Array:
    """Return one value per record from a file (FILE or FILE:COLUMN); `names` are the columns of the data."""
    file, _, column = text.rpartition(":")
    for path, its in ((file, column), (text, None)):
        if path and pathlib.Path(path).is_file():
            return _one_each(open_file(path).column(its, labels=option == "labels"), text, n, option)
    has = (
        Message("the data have the columns {names}", names=Names(names))
        if names
        else Message("the data have no columns")
    )
    one, else_ = {"labels": ("class", "or a column"), "covariate": ("number", "or a column")}.get(
        option, ("id", f"or {EACH} for units of one record each")
    )
    raise InvalidArgumentError(
        "{option} {text}: there is no such file, and {has}. Give a file with one {one} per record, {else_}.",
        option=Argument(option),
        text=text,
        has=has,
        one=Public(one),
        else_=Public(else_),
    )


def _one_each(found: Array, text: str, n: int | None, option: str) -> Array:
    if n is not None and found.shape != (n,):
        raise InvalidDataError(
            "{option} {text} holds {shape} values for {n} records. Give one per record.",
            option=Argument(option),
            text=text,
            shape=Public(found.shape[0]),
            n=Public(n),
        )
    # The words of a file are what was written there, and not numbers that numpy has made text of.
    return found.astype(object) if option == "covariate" and found.dtype.kind == "U" else found
