"""Many files of records as one source: folders and patterns of Parquet, CSV, .npy and .npz, read in bounded memory."""

from __future__ import annotations

import copy
import os
import pathlib
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from dpmanifold._cells import COMPLEX
from dpmanifold._check import shown
from dpmanifold.data._files import ARRAY, bad_file, in_words, listed
from dpmanifold.data.archives import ArrayHeader, NpyFile, NpzFile, array_header, chosen_key
from dpmanifold.data.csv_table import CsvTable
from dpmanifold.data.file_pieces import Binding, FilePiece, Part, column_of, opened_part, pieces_of
from dpmanifold.data.formats import files_in, loader_of, open_file
from dpmanifold.data.parquet_table import ParquetTable
from dpmanifold.data.pieces import named_or_beside
from dpmanifold.data.readers import Reading, places_of, shape_for
from dpmanifold.errors import Argument, Either, InvalidArgumentError, InvalidDataError, Message, Names, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import Source


class Dataset(Source):
    r"""Files of records: what is given to a private statistic as X where data do not fit into memory.

    Opening it reads names of columns, shapes and sizes, and no record. Records are read when a statistic asks for them,
    a block at a time, as often as it needs them; a file that is changed meanwhile is refused
    (:class:`~dpmanifold.errors.SourceChangedError`). A file that is damaged or holds other columns than the first
    is refused with its name and the line or row group, before anything is spent.

    - Parquet (.parquet): columns, or one column of lists that are a record each. Ids are whole numbers or
      text.
    - CSV (.csv, .tsv, .csv.gz, .tsv.gz), as :func:`load_array` takes it. Ids and classes are text, whatever they look
      like: `classes=["0", "1"]`.
    - Arrays (.npy, .npz): ids and classes are other arrays of the archive, or are given in an array. An array that is
      compressed is unpacked a block at a time, unless it is in Fortran's order.

    The same id in two files is the same person. A file counts once: named twice, also through a link, it is refused.

    Parameters
    ----------
    paths : a file, a folder, a pattern such as `"study/*.parquet"`, or a list of these. Of folders and patterns, names
        that begin with a dot or an underscore and formats that are not known are passed over, and mixtures are refused:
        files of several formats, or beside folders that hold other files of records. Folders within a folder are
        reached by a pattern with `**`
    columns : names or patterns of the columns that are numbers of a record, as in :func:`load_array`. If left out,
        those that the space knows by their names, or all columns but those of ids and classes
    key : name of the array in .npz files; not needed if there is one
    order : of the columns of a triangle, as in :func:`as_records`
    coordinates : the system the numbers are in, as in :func:`from_coordinates`; columns named like one are known

    Attributes
    ----------
    files : the files, in the order in which they are read
    names : what `units` and `labels` may name: the columns of the files, or the arrays of archives
    rows : how many records there are; None for CSV, where nobody knows before reading it

    Examples
    --------
    >>> import tempfile
    >>> import dpmanifold as dpm
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("a.csv", "b.csv"):
    ...     _ = (folder / name).write_text("person,x1,x2\nann,0.1,0.2\nbob,0.3,0.4\n")
    >>> study = dpm.data.Dataset(folder, columns="x*")
    >>> study
    Dataset(2 files: 'a.csv', 'b.csv'; columns 'person', 'x1', 'x2')
    >>> print(study.read_as(dpm.Euclidean(2), units="person"))
    2 files ('a.csv', 'b.csv'): records of Euclidean(2) from 'x1', 'x2'; units from 'person'
    >>> block = next(study.bound(dpm.Euclidean(2), units="person")[0].blocks())
    >>> block.records.tolist(), block.units.to_pylist()
    ([[0.1, 0.2], [0.3, 0.4]], ['ann', 'bob'])
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        columns: str | Sequence[str] | None = None,
        key: str | None = None,
        order: str | None = None,
        coordinates: str | None = None,
    ) -> None:
        self._columns, self._key, self._order, self._coordinates = columns, key, order, coordinates
        found = files_in(paths)
        self._refuse_formats(found)
        self._parts = [opened_part(path, key) for path in found]
        self.files = tuple(found)
        counts = [part.rows for part in self._parts]
        self.rows = None if None in counts else sum(cast(list[int], counts))
        first = self._parts[0]
        if first.header is not None and columns is not None:
            raise InvalidArgumentError("`columns` means nothing for {name!r}. It is for tables.", name=first.path.name)
        if first.header is None and key is not None:
            raise InvalidArgumentError(
                "{key} means nothing for {name!r}. It is for .npz files.", key=ARRAY, name=first.path.name
            )
        for part in self._parts[1:]:
            self._refuse_other(first, part)
        self.names: tuple[str, ...] = tuple(column.name for column in first.columns) or first.keys

    def __repr__(self) -> str:
        what = "columns" if self._parts[0].header is None else "arrays"
        names = f"; {what} {listed(self.names)}" if self.names else ""
        return f"Dataset({self._count}: {self._files}{names})"

    @property
    def _count(self) -> str:
        return f"{len(self.files):,} file{'s' if len(self.files) > 1 else ''}"

    @property
    def _files(self) -> str:
        return listed(path.name for path in self.files)

    def read_as(self, space: Manifold, units: object = None, labels: object = None) -> str:
        """Say which files are read, and what of them becomes records of a space, units and labels. Not private.

        Parameters
        ----------
        space, units, labels : as in :meth:`bound`
        """
        binding = self.bound(space, units, labels)[0].binding
        told = f"records of {space!r} from {listed(binding.names) or 'whole arrays'}"
        for what, name in (("units", binding.reading.units), ("labels", binding.reading.labels)):
            told += "" if name is None else f"; {what} from {name!r}"
        return f"{self._count} ({self._files}): {told}"

    def whole(self, name: str) -> bool:
        """Return whether a column, or an array of the archives, comes as whole numbers in all files.

        Examples
        --------
        >>> import tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> np.savez(folder / "a.npz", x=np.zeros((3, 2)), who=np.array([1, 1, 2]))
        >>> Dataset(folder, key="x").whole("who")
        True
        """
        self._refuse_name(name, "name")
        if self._parts[0].header is not None:
            return all(array_header(part.path, name).dtype.kind in "iu" for part in self._parts)
        return all(
            part.groups is not None and column_of(part, name).kind == "whole" for part in self._parts
        )  # CSV has no groups

    def record_shape(
        self, kind: type[Manifold], units: object = None, labels: object = None
    ) -> tuple[tuple[int, ...], str]:
        """Return the shape of one record as it stands in the files and the kind of its numbers, "f" or "c".

        Parameters
        ----------
        kind : the class of the space, whose columns may be known by their names
        units, labels : the columns of ids and classes, which are no numbers of a record

        Examples
        --------
        >>> import tempfile
        >>> from dpmanifold.manifolds import SPD
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> np.save(folder / "a.npy", np.zeros((5, 3, 3)))
        >>> Dataset(folder).record_shape(SPD)
        ((3, 3), 'f')
        """
        first = self._parts[0]
        if first.header is not None:
            return first.header.shape[1:], "c" if first.header.dtype.kind == "c" else "f"
        apart = {name for name in (units, labels) if isinstance(name, str)}
        columns = [column for column in first.columns if column.name not in apart]
        return shape_for(kind, columns, self._columns, self._coordinates, first.path.name), "f"

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> list[FilePiece]:
        """Return pieces of the files, to be read as records of a space, along with who owns them and their classes.

        Parameters
        ----------
        space : which decides how columns become records
        units : a column of the files (another array of the archives), or one id per record in an array; None where
            every record is a unit of its own
        labels : likewise, the classes
        """
        rows = self.rows
        (owners, classes), beside = named_or_beside(units, labels, rows)
        for what, name, array in (("units", owners, beside.units), ("labels", classes, beside.labels)):
            if name is not None:
                self._refuse_name(name, what)
            elif array is not None and rows is None:
                raise InvalidArgumentError(
                    "{what} must be the name of a column: how many records CSV files have is not known before they "
                    "are read. {there}",
                    what=Argument(what),
                    there=self._there(),
                )
        binding = self._binding(Reading(space, self._columns, self._order, self._coordinates, owners, classes))
        pieces: list[FilePiece] = []
        done = 0
        for part in self._parts:
            pieces += pieces_of(part, binding, beside, done)
            done += part.rows or 0
        # Where all are looked at together, it is the first records that are.
        place = next((place for place, piece in enumerate(pieces) if piece.rows != 0), 0)
        pieces[place] = replace(pieces[place], look=True)
        return pieces

    def numbers(self, name: str) -> Dataset | None:
        r"""Return a column of numbers as records of the line, in the same order; None where labels must do.

        That is of arrays, and where no columns were chosen for the records: labels are then none of them.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from dpmanifold.manifolds import Euclidean
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
        >>> _ = path.write_text("x,age\n1,7.5\n2,8\n")
        >>> [piece] = Dataset(path, columns=["x"]).numbers("age").bound(Euclidean(1))
        >>> [block.records.tolist() for block in piece.blocks()]
        [[[7.5], [8.0]]]
        """
        if self._parts[0].header is not None or self._columns is None:
            return None
        self._refuse_name(name, "covariate")
        found = copy.copy(self)
        found._columns, found._order, found._coordinates = [name], None, None
        return found

    def _binding(self, reading: Reading) -> Binding:
        """Return what is read of every file, after trying it out on none of its rows."""
        first = self._parts[0]
        if first.header is not None:
            self._refuse_lengths(reading)
            self._try_out(reading)
            key = None if first.path.suffix.lower() == ".npy" else chosen_key(first.path, self._key)
            return Binding(reading, () if key is None else (key,))
        places = places_of(reading, first.columns, first.path.name)
        if places.kind == COMPLEX:
            raise InvalidArgumentError(
                "`paths`: {name!r} has as many columns as a record has complex numbers, and tables are read as "
                "real ones. Write real and imaginary parts as x1, y1, x2, y2, ..., or save complex numbers as "
                ".npy.",
                name=first.path.name,
            )
        names = [first.columns[place].name for place in places.numbers]
        for part in self._parts[1:]:
            if part.columns != first.columns:
                others = places_of(reading, part.columns, part.path.name)
                if {part.columns[place].name for place in others.numbers} != set(names):
                    raise bad_file(
                        part.path, "its columns for records are not those of {name!r}.", name=first.path.name
                    )
        text = reading.units is not None and self._is_text(reading.units)
        numbers = reading.units is not None and any(
            part.groups is not None and column_of(part, reading.units).kind == "whole" for part in self._parts
        )
        return Binding(places.reading, tuple(names), text, text and numbers)

    def _try_out(self, reading: Reading) -> None:
        """Refuse arrays that are no records of the space by their shapes and the kind of their numbers."""
        kinds = {layout.kind for layout in reading.space.layouts()}
        for part in self._parts:
            header = cast(ArrayHeader, part.header)
            if header.dtype.kind == "c" and "c" not in kinds:
                raise bad_file(
                    part.path,
                    "its numbers are complex, those of {space!r} real. Save real ones.",
                    space=Public(reading.space),
                )
            try:
                reading.try_out(header.shape[1:], np.complex128 if header.dtype.kind == "c" else np.float64)
            except InvalidDataError as problem:
                hint = reading.space.shape_hint(header.shape)
                raise InvalidDataError(
                    "{name}: {problem}{detail}",
                    name=part.path.name,
                    problem=problem,
                    detail=Message(" {hint}", hint=Public(hint)) if hint else Message(""),
                ) from None

    def _is_text(self, name: str) -> bool:
        """Return whether ids must be text: CSV has no other, and files must agree."""
        first = self._parts[0]
        tables = [part for part in self._parts if part.groups is not None]
        for part in tables:
            if column_of(part, name).kind not in ("whole", "text"):
                raise bad_file(
                    part.path, "column {name!r} is not whole numbers or text. Convert it to one of them.", name=name
                )
        if len(tables) < len(self._parts):
            return True
        other = next((part for part in tables if column_of(part, name).kind != column_of(first, name).kind), None)
        if other is not None:
            kinds = {"whole": "whole numbers", "text": "text"}
            ours, theirs = (kinds[column_of(part, name).kind] for part in (first, other))
            raise bad_file(
                other.path,
                'column {name!r} is {theirs} here, and {ours} in {name2!r}. Write ids in one way: 7 and "07" may '
                "be one person or two.",
                name=name,
                theirs=theirs,
                ours=ours,
                name2=first.path.name,
            )
        return False

    def _refuse_lengths(self, reading: Reading) -> None:
        """Refuse archives whose arrays of ids or classes are not one per record."""
        for name in (reading.units, reading.labels):
            for part in self._parts if name is not None else []:
                shape = array_header(part.path, name).shape
                rows = cast(ArrayHeader, part.header).shape[0]
                if shape not in ((rows,), (rows, 1)):
                    raise bad_file(
                        part.path,
                        "array {name!r} has shape {shape}, and there are {rows} records. Give one per record.",
                        name=name,
                        shape=Public(shape),
                        rows=Public(rows),
                    )

    def _refuse_name(self, name: object, what: str) -> None:
        if name not in self.names:
            raise InvalidArgumentError(
                "{what}: there is no {got} in {name!r}. {there}",
                what=Argument(what),
                got=shown(name),
                name=self._parts[0].path.name,
                there=self._there(),
            )

    def _there(self) -> Message:
        if not self.names:
            return Message("Arrays in .npy files have no columns: give one id per record in an array.")
        return Message("There are {names}.", names=Names(self.names))

    def _refuse_other(self, first: Part, part: Part) -> None:
        """Refuse a file whose columns, or whose records, are not those of the first."""
        if first.header is not None and part.header is not None:
            ours, theirs = (one.shape[1:] for one in (first.header, part.header))
            if ours != theirs:
                raise bad_file(
                    part.path,
                    "its records have shape {theirs}, those of {name!r} {ours}. Leave one out.",
                    theirs=theirs,
                    name=first.path.name,
                    ours=ours,
                )
            return
        names, others = ([column.name for column in one.columns] for one in (first, part))
        if self._columns is None and sorted(names) != sorted(others):
            more, less = (sorted({*a} - {*b}) for a, b in ((others, names), (names, others)))
            fault = Message("some are there twice")
            if more and less:
                fault = Message("it has {more} more and it lacks {less}", more=Names(more), less=Names(less))
            elif more:
                fault = Message("it has {more} more", more=Names(more))
            elif less:
                fault = Message("it lacks {less}", less=Names(less))
            raise bad_file(
                part.path,
                "its columns are not those of {name!r}: {fault}. Choose the columns that all files have with "
                "`columns=`, or leave it out.",
                name=first.path.name,
                fault=fault,
            )

    def _refuse_formats(self, files: Sequence[pathlib.Path]) -> None:
        """Refuse formats that are not read in blocks, and tables together with arrays."""
        sorts: dict[str, pathlib.Path] = {}
        for path in files:
            kind = loader_of(path)
            if kind is None:
                open_file(path)  # says which are known
            elif kind in (NpyFile, NpzFile):
                sorts.setdefault("arrays", path)
            elif issubclass(kind, (CsvTable, ParquetTable)):
                sorts.setdefault("tables", path)
            else:
                raise InvalidArgumentError(
                    "`paths`: {name!r} is of a format that is not read in blocks. Those are {in_words}; {remedy}.",
                    name=path.name,
                    remedy=Either(
                        Message(
                            "images of tensors go through data.from_nifti or data.from_bids, other files through "
                            "data.load_array"
                        ),
                        Message("images of tensors go together, and other files alone"),
                    ),
                    in_words=Public(in_words((*ParquetTable.suffixes, *CsvTable.suffixes, ".npy", ".npz"))),
                )
        if len(sorts) > 1:
            arrays, tables = sorts["arrays"], sorts["tables"]
            raise InvalidArgumentError(
                "`paths`: {name!r} is an array and {name2!r} a table. Give files of one kind.",
                name=arrays.name,
                name2=tables.name,
            )
