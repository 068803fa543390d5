"""From PATH on the command line to records: tables and arrays are streamed, from any number of files; the rest is read.

Ids and labels that stand in the same files are named, and read along with the records; others come from their own file.
A service's worker reads what a steward sends in the same way.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifold import data
from dpmanifold._check import Array
from dpmanifold._ids import entries_of
from dpmanifold.cli.arguments import EACH, ball_of, class_words, classes_of, kind_of, space_of
from dpmanifold.data._files import in_file, listed
from dpmanifold.data.archives import NpyFile, NpzFile
from dpmanifold.data.formats import files_in, loader_of
from dpmanifold.data.image_source import ImageSource
from dpmanifold.data.landmarks import column_of_specimens, is_long
from dpmanifold.data.nifti import NiftiFile
from dpmanifold.data.parquet_table import ParquetTable
from dpmanifold.data.readers import read_for
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Names, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import Projected, Source
from dpmanifold.stats import EACH_RECORD
from dpmanifold.stats.registered_data import Registered

if TYPE_CHECKING:
    from dpmanifold.service.registering import Read

# The unit of one image each, where several are named.
IMAGE = "image"


@dataclass(frozen=True)
class How:
    """How files become records: the options that say so, None where they were not given."""

    columns: str | None = None
    key: str | None = None
    order: str | None = None
    coordinates: str | None = None
    mask: str | None = None
    normalize: bool = False

    @property
    def names(self) -> list[str] | None:
        """The columns that were named, or patterns of them."""
        return None if self.columns is None else [part.strip() for part in self.columns.split(",")]


@dataclass(frozen=True)
class Given:
    """Records, the space they are of, and what else their files hold.

    Attributes
    ----------
    records : in the shape of the space, or a source of them; or data that are opened later
    space : which they are of
    names : columns or keys that can be asked for
    file : the file that was read, or the files that are to be
    """

    records: Array | Source | Registered
    space: Manifold
    names: Sequence[str] = ()
    file: data.DataFile | data.Dataset | None = None

    @property
    def rows(self) -> int | None:
        """How many records there are, where that is known."""
        if isinstance(self.records, Registered):
            return None
        return self.records.rows if isinstance(self.records, Source) else len(self.records)

    def units(self, text: str) -> Any:
        """Return who owns each record: everybody one, a column or key of the data, or a file (FILE or FILE:COLUMN)."""
        return EACH_RECORD if text == EACH else self.column(text, "--units")

    def column(self, text: str, option: str) -> Any:
        """Return one value per record, or the name of a column that is read along with the records."""
        if isinstance(self.file, data.DataFile):
            return _column(text, self.file, self.rows, option)
        return text if text in self.names else column_elsewhere(text, self.names, self.rows, option)


def read(
    paths: Sequence[str],
    name: str,
    size: str | None,
    how: How,
    along: Sequence[str | None] = (),
    tell: Callable[[str], object] | None = None,
) -> Given:
    """Return the records of files, folders and patterns, as a space of that name and size takes them.

    Landmarks of a table are paired by the names of their columns, and directions in degrees are known by theirs. With
    `normalize` nearly valid records are moved onto the space, each by itself. `along` are names that may be columns;
    `tell` is told what the curator should know.
    """
    kind = kind_of(name)
    if how.coordinates is not None and how.coordinates not in kind.coordinates:
        raise InvalidArgumentError(
            "`coordinates` {coordinates} means nothing for `space` {name}. Leave it out.",
            coordinates=how.coordinates,
            name=name,
        )
    if len(paths) == 1 and data.is_bids(paths[0]):
        return _brains(paths[0], name, size, how, tell)
    images = images_in(paths)
    if images:
        if tell is not None:
            tell(f"read are {len(images):,} images of tensors: {listed(path.name for path in images)}.")
        # Each is somebody's, or its person stands in another file.
        names = {IMAGE: [os.fspath(path) for path in images]}
        source = data.from_nifti(images, order=how.order, mask=how.mask, per_image=names)
        return _of_images(source, paths[0], name, size, how)
    file = opened_whole(paths, kind, how, along)
    if file is None:
        return _streamed(paths, name, size, how, along, tell)
    return _at_once(file, name, size, how, along)


def images_in(paths: Sequence[str]) -> list[pathlib.Path]:
    """Return the images of tensors that several paths, a folder or a pattern mean; nothing where they mean others."""
    if len(paths) == 1 and not (os.path.isdir(paths[0]) or is_pattern(paths[0])):
        return []
    files = files_in(list(paths))
    return files if all(loader_of(path) is NiftiFile for path in files) else []


def is_pattern(text: str) -> bool:
    """Return whether a path is a pattern such as parts/*.parquet, and not the name of a file that is there."""
    return any(mark in text for mark in "*?[") and not os.path.lexists(text)


def gathered(given: Given, units: Any = EACH_RECORD) -> tuple[Array, Any]:
    """Return all records at once, and their units: of data that may be shown."""
    if not isinstance(given.records, Source):
        return np.asarray(given.records), units
    named = isinstance(units, str)
    blocks = [block for piece in given.records.bound(given.space, units if named else None) for block in piece.blocks()]
    records = np.concatenate([np.empty((0, *given.space.shape)), *(block.records for block in blocks)])
    return records, [entry for block in blocks for entry in entries_of(block.units).tolist()] if named else units


def opened_whole(
    paths: Sequence[str], kind: type[Manifold], how: How, along: Sequence[str | None]
) -> data.DataFile | None:
    """Return the one file that was named, opened, where its records cannot be streamed."""
    if len(paths) != 1 or os.path.isdir(paths[0]) or is_pattern(paths[0]):
        return None
    format_ = loader_of(paths[0])
    if format_ is None or how.mask is not None or not issubclass(format_, (data.Table, NpyFile, NpzFile)):
        return data.open_file(paths[0])
    if not issubclass(format_, data.Table):
        return None
    table = data.open_file(paths[0])
    assert isinstance(table, data.Table)
    if how.columns is None and kind.table_reader == "landmarks" and is_long(table.names):
        return table
    # How many lines a table of text has is not known before it is read, and ids of another file are one per line.
    elsewhere = any(name is not None and name not in (EACH, *table.names) for name in along)
    return table if elsewhere and not isinstance(table, ParquetTable) else None


def _streamed(
    paths: Sequence[str],
    name: str,
    size: str | None,
    how: How,
    along: Sequence[str | None],
    tell: Callable[[str], object] | None,
) -> Given:
    """Return records that are read a block at a time, by whoever takes them; of folders and patterns, tell which."""
    if how.mask is not None:
        raise InvalidArgumentError("`mask` goes with images, .nii or .nii.gz. Leave it out.")
    source = data.Dataset(paths, columns=how.names, key=how.key, order=how.order, coordinates=how.coordinates)
    columns = [column if column in source.names else None for column in along]
    shape = source.record_shape(kind_of(name), *columns) if size is None and "(" not in name else ()
    space = space_of(name, size, *shape)
    read_as = source.read_as(space, *columns)  # refuses records of another shape
    if tell is not None and any(os.path.isdir(path) or is_pattern(path) for path in paths):
        tell(f"read are {read_as}.")
    return Given(Projected(source) if how.normalize else source, space, source.names, source)


def _brains(folder: str, name: str, size: str | None, how: How, tell: Callable[[str], object] | None) -> Given:
    """Return the tensors of a folder in the form of BIDS, whose people are those of its participants.tsv."""
    source = data.from_bids(folder, order=how.order, mask=True if how.mask is None else how.mask, curator=tell)
    if tell is not None:
        tell(f"read are {len(source):,} images of tensors of {folder}; there are the columns {listed(source.names)}.")
    return _of_images(source, folder, name, size, how)


def _of_images(source: ImageSource, path: str, name: str, size: str | None, how: How) -> Given:
    """Return the tensors of images."""
    for option, given in (("--columns", how.columns), ("--array", how.key), ("--coordinates", how.coordinates)):
        if given is not None:
            raise InvalidArgumentError(
                "{option} means nothing for {path}, images of tensors. Leave it out.", option=option, path=path
            )
    space = space_of(name, size, (3, 3))
    return Given(Projected(source) if how.normalize else source, space, source.names)


def _at_once(file: data.DataFile, name: str, size: str | None, how: How, along: Sequence[str | None]) -> Given:
    """Return the records of a file that is read whole; those of a memory map stay on the disk."""
    for column in along:
        if column is not None:
            file.keep(column)
    # Where the format itself knows orders (images of tensors), it applies them.
    own: dict[str, Any] = {"order": how.order} if "order" in file.options else {}
    try:
        array = read_for(kind_of(name), file, how.names, how.coordinates, key=how.key, mask=how.mask, **own)
        if array.ndim < 2:
            raise InvalidDataError(
                "it must hold one record per row, got an array with {ndim} axes.", ndim=Public(array.ndim)
            )
        space = space_of(name, size, array.shape[1:], array.dtype.kind)
        records = data.as_records(array, space, None if own else how.order)
    except InvalidDataError as problem:
        raise in_file(str(file.path), problem) from None
    return Given(np.asarray(space.project(records)) if how.normalize else records, space, file.names, file)


def _column(text: str, opened: data.DataFile, n: int | None, option: str) -> Array:
    """Return one value per record: a column or key of the file that was read, or of another one.

    Of a table with a row per landmark, one value per specimen.
    """
    labels = option == "--labels"
    if not opened.names:
        return column_elsewhere(text, (), n, option)
    try:
        found = opened.column(text, labels=labels)
    except InvalidArgumentError:
        # No such column: then it must be a file, or the message says which columns there are.
        if not any(pathlib.Path(name).is_file() for name in (text, text.rpartition(":")[0]) if name):
            raise
        return column_elsewhere(text, opened.names, n, option)
    if len(found) != n and isinstance(opened, data.Table):
        by_specimen = column_of_specimens(opened, text, labels)
        found = found if by_specimen is None else by_specimen
    return _one_each(found, text, n, option)


def column_elsewhere(text: str, names: Sequence[str], n: int | None, option: str) -> Array:
    """Return one value per record from a file (FILE or FILE:COLUMN); `names` are the columns of the data."""
    file, _, column = text.rpartition(":")
    labels = option == "--labels"
    if file and pathlib.Path(file).is_file():
        return _one_each(data.open_file(file).column(column, labels=labels), text, n, option)
    if pathlib.Path(text).is_file():
        return _one_each(data.load_column(text, labels=labels), text, n, option)
    has = (
        Message("the data have the columns {names}", names=Names(names))
        if names
        else Message("the data have no columns")
    )
    one, else_ = {"--labels": ("class", "or a column"), "--covariate": ("number", "or a column")}.get(
        option, ("id", f"or {EACH} for units of one record each")
    )
    raise InvalidArgumentError(
        "{option} {text}: there is no such file, and {has}. Give a file with one {one} per record, {else_}.",
        option=Argument(option.removeprefix("--")),
        text=text,
        has=has,
        one=Public(one),
        else_=Public(else_),
    )


def _one_each(found: Array, text: str, n: int | None, option: str) -> Array:
    if n is not None and found.shape != (n,):
        raise InvalidDataError(
            "{option} {text} holds {shape} values for {n} records. Give one per record.",
            option=Argument(option.removeprefix("--")),
            text=text,
            shape=Public(found.shape[0]),
            n=Public(n),
        )
    # The words of a file are what was written there, and not numbers that numpy has made text of.
    return found.astype(object) if option == "--covariate" and found.dtype.kind == "U" else found


def one_apart(labels: str | None, covariate: str | None) -> str | None:
    """Return the column besides the ids that is no part of the records, though no columns were chosen for these."""
    return covariate if labels is None else labels


# -------------------------------------------------------------------- what a steward sends to a service


def read_request(request: Mapping[str, Any], path: pathlib.Path) -> Read:
    """Return ball, records and all that is beside them.

    Parameters
    ----------
    request : as `Desk.register` takes it; files that it names can be read
    path : of the records
    """
    from dpmanifold.service.kept import Columns
    from dpmanifold.service.registering import Read

    words = {name: _text(request, name) for name in _WORDS}
    beside = (words["units"], one_apart(words["labels"], words["covariate"]))
    normalize = request.get("normalize") is True
    how = How(words["columns"], words["array"], words["order"], words["coordinates"], None, normalize)
    given = read([str(path)], words["space"] or "", words["size"], how, beside)
    ball = ball_of(given.space, _radius(request), words["center"], words["source"] or "", None)
    units = given.units(words["units"] or "")
    labels, covariate = (_beside(given, words[name], name) for name in ("labels", "covariate"))
    return Read(ball, Columns(given.records, units, labels, covariate), _classes(request))


_WORDS = (
    "space", "size", "units", "labels", "covariate", "columns", "array", "order", "coordinates", "center", "source",
)  # fmt: skip


def _text(request: Mapping[str, Any], name: str) -> str | None:
    value = request.get(name)
    if name in ("size", "columns") and isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    if name == "size" and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is not None and not isinstance(value, str):
        raise InvalidArgumentError("{name} must be text.", name=Argument(name))
    return value or None


def _radius(request: Mapping[str, Any]) -> float:
    try:
        return float(request.get("radius"))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidArgumentError("`radius` must be a number: how far records may lie from the centre.") from None


def _beside(given: Given, text: str | None, name: str) -> Any:
    return None if text is None else given.column(text, f"--{name}")


def _classes(request: Mapping[str, Any]) -> list[Any] | None:
    given = request.get("classes")
    if given is None or given in ("", []):
        return None
    if isinstance(given, str):
        return classes_of(class_words(given))
    if not isinstance(given, (list, tuple)) or not all(isinstance(name, (str, int)) for name in given):
        raise InvalidArgumentError("`classes` must be a list of names.")
    return classes_of([str(name) for name in given])
