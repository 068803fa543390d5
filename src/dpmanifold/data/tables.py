"""Tables in files, CSV, TSV and Parquet: which columns there are, numbers of some of them, and columns of ids.

Not a data frame library: columns are read as float64, or as ids, and nothing is computed. Rows come a block at a time,
so that memory is what the result needs.
"""

from __future__ import annotations

import fnmatch
import pathlib
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.data._files import DataFile, bad_file, chosen_name
from dpmanifold.data.entries import Entries, first_missing, joined
from dpmanifold.errors import InvalidArgumentError, Names, Public

_RANGE_END = re.compile(r"(?P<before>.*?)(?P<number>\d{1,9})(?P<after>\D*)")
# More columns than any table of records has: their names alone would take minutes and gigabytes to go through.
MOST_COLUMNS = 100_000


class Lists(NamedTuple):
    """A column of lists whose length its type does not say, which each row has for itself. Data: not private.

    Attributes
    ----------
    values : the numbers of all rows one after the other, NaN where there is none
    lengths : (m,), how many of them each row has
    whole : (m,), which rows hold a list, whose own lists are of one length where it holds lists
    """

    values: FloatArray
    lengths: Array
    whole: Array

    def __len__(self) -> int:
        return len(self.lengths)

    def of_width(self, width: int) -> tuple[Array, FloatArray]:
        """Return which rows hold so many numbers, and these, (rows, width)."""
        places = np.flatnonzero(self.whole & (self.lengths == width))
        starts = np.cumsum(self.lengths) - self.lengths
        return places, self.values[starts[places][:, None] + np.arange(width)]


class TableRows(NamedTuple):
    """Some rows of a table, in its order. Data: not private.

    Attributes
    ----------
    numbers : (m, number of columns), NaN where there is no number; or one column of lists
    entries : for each column of ids that was asked for, (m,): whole numbers, or text without blanks around it
    """

    numbers: FloatArray | Lists
    entries: list[Entries]


class Table(DataFile):
    """A table in a file: `names` are its columns."""

    options = ("columns",)
    names: list[str]

    @abstractmethod
    def numbers(self, names: Sequence[str] | None) -> FloatArray:
        """Return columns (n, number of them) as float64, missing entries as NaN; None for all columns."""

    @abstractmethod
    def entries(self, name: str, text: bool = False, labels: bool = False) -> Array:
        """Return one column (n,) as whole numbers or text.

        `text` keeps numbers as text. Missing ids are refused; of `labels` they are left, for whoever knows the classes.
        """

    def array(self, *, columns: str | Sequence[str] | None = None, **options: Any) -> FloatArray:
        """Return the numbers of the columns that names or patterns mean, all of them if left out."""
        return self.numbers(None if columns is None else select_columns(self.names, columns, self.path))

    def column(self, name: str | None = None, text: bool = False, labels: bool = False) -> Array:
        """Return one column of ids, none missing, or of labels."""
        return self.entries(chosen_name(self.names, name, self.path), text, labels)

    def _positions(self, names: Sequence[str] | None) -> list[int]:
        """Return where the columns stand, after refusing names that mean two columns."""
        if names is None:
            return list(range(len(self.names)))
        places: dict[str, int] = {}
        for place, name in enumerate(self.names):
            places[name] = place if name not in places else -1
        for name in names:
            if places[name] < 0:
                raise bad_file(self.path, "two columns are called {name!r}. Rename one of them.", name=name)
        return [places[name] for name in names]


class StreamedTable(Table):
    """A table in a file whose rows come a block at a time; everything else is made of them."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        self._kept: dict[str, list[Entries] | None] = {}

    @abstractmethod
    def rows(self, names: Sequence[str] | None, beside: Sequence[str] = ()) -> Iterator[TableRows]:
        """Yield all rows, a block of bounded size at a time: these columns as numbers, those beside them as ids.

        Ids may be missing: that is for who asks to find out (:meth:`refuse_missing`).
        """

    @abstractmethod
    def place(self, row: int) -> str:
        """Say where a row stands, counted from 0, in the words of the format: "line 7"."""

    def keep(self, name: str) -> None:
        """Read this column, if there is one, in the pass that reads the numbers."""
        if self.names.count(name) == 1:
            self._kept.setdefault(name, None)

    def numbers(self, names: Sequence[str] | None) -> FloatArray:
        """Read the columns in one pass, and those to be kept along with them."""
        along = {name: list[Entries]() for name, got in self._kept.items() if got is None}
        values = _Growing(len(self.names if names is None else names))
        for numbers, beside in self.rows(names, list(along)):
            values.append(self._of_one_length(numbers) if isinstance(numbers, Lists) else numbers)
            for column, entries in zip(along.values(), beside, strict=True):
                column.append(entries)
        self._kept.update(along)
        return values.whole()

    def entries(self, name: str, text: bool = False, labels: bool = False) -> Array:
        """Take what was kept, or read the column; whole numbers if every entry is one."""
        parts = self._kept.get(name)
        if parts is None:
            parts = [beside[0] for _, beside in self.rows([], [name])]
        done = 0
        for part in parts if not labels else ():
            if isinstance(part, np.ndarray) and part.dtype.kind == "O":
                raise bad_file(
                    self.path, "column {name!r} is not whole numbers or text. Convert it to one of them.", name=name
                )
            self.refuse_missing(part, name, done)
            done += len(part)
        return joined(parts, text)

    def refuse_missing(self, entries: Entries, name: str, first: int = 0) -> None:
        """Refuse ids of which one is missing, and say where; `first` is the number of rows before them."""
        missing = first_missing(entries)
        if missing is not None:
            raise bad_file(
                self.path,
                "{place} has nothing, or a word such as NA or None, in column {name!r}, and a record belongs to "
                "somebody. Fill it in, or drop the record.",
                place=Public(self.place(first + missing)),
                name=name,
            )

    def _of_one_length(self, lists: Lists) -> FloatArray:
        """Return lists as rows of numbers, or refuse them where one is not as long as the first; gaps as NaN."""
        lengths = np.unique(lists.lengths[lists.whole])
        if len(lengths) > 1 or (~lists.whole & (lists.lengths > 0)).any():
            raise bad_file(
                self.path,
                "the lists in a column are not of one length. A record has as many numbers as every other: repair it, "
                "or leave it empty. data.Dataset finds such records one by one.",
            )
        width = int(lengths[0]) if len(lengths) else 1
        values = np.full((len(lists), width), np.nan)
        places, found = lists.of_width(width)
        values[places] = found
        return values

    def refuse_width(self) -> None:
        """Refuse more columns than a table of records has."""
        if len(self.names) > MOST_COLUMNS:
            raise bad_file(
                self.path,
                "it has {n_names} columns, more than {most_columns}. Save the numbers as .npy, one record per row.",
                n_names=Public(len(self.names)),
                most_columns=Public(MOST_COLUMNS),
            )


class _Growing:
    """Rows that are put below one another, in one array that grows where it stands."""

    def __init__(self, width: int) -> None:
        self._values, self._filled = np.empty((0, width)), 0

    def append(self, rows: FloatArray) -> None:
        if self._filled == 0:
            self._values = np.empty((0, rows.shape[1]))  # a column of lists is as wide as they are
        needed = self._filled + len(rows)
        if needed > len(self._values):
            self._values.resize((max(needed, len(self._values) * 5 // 4), self._values.shape[1]), refcheck=False)
        self._values[self._filled : needed] = rows
        self._filled = needed

    def whole(self) -> FloatArray:
        self._values.resize((self._filled, self._values.shape[1]), refcheck=False)
        return self._values


def select_columns(names: Sequence[str], columns: object, path: pathlib.Path) -> list[str]:
    """Return the names that `columns` means: a name, a pattern, or a sequence of both.

    "x1..x9" counts from x1 to x9, whatever their order in the file; "x1..y9", whose ends differ in more than a
    number, is what stands in the file from x1 to y9; "lm_*" is what matches, in the file's order.

    Examples
    --------
    >>> names = ["id", "x2", "x1", "y1", "y2"]
    >>> file = pathlib.Path("a.csv")
    >>> select_columns(names, "x1..x2", file), select_columns(names, ["y*", "id"], file)
    (['x1', 'x2'], ['y1', 'y2', 'id'])
    """
    entries = [columns] if isinstance(columns, str) else columns
    if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, str) for entry in entries) or not entries:
        raise InvalidArgumentError(
            "`columns` must be names or patterns such as 'x1..x9' or 'lm_*', or a list of them, got {got}.",
            got=shown(columns),
        )
    chosen = [name for entry in entries for name in _matching(names, entry, path)]
    there, meant = Counter(names), Counter(chosen)
    twice = [name for name, times in meant.items() if times > 1 and there[name] == 1]
    if twice:
        raise InvalidArgumentError("`columns`: {twice} is meant twice. Name every column once.", twice=Names(twice))
    return list(dict.fromkeys(chosen))


def _matching(names: Sequence[str], entry: str, path: pathlib.Path) -> list[str]:
    """Return the names that one name or pattern means, at least one."""
    found = [entry] if entry in names else []
    if not found and ".." in entry:
        found = _range(names, *entry.split("..", 1))
    elif not found and any(mark in entry for mark in "*?["):
        found = [name for name in names if fnmatch.fnmatchcase(name, entry)]
    absent = [name for name in found if name not in names]
    if absent or not found:
        raise InvalidArgumentError(
            "`columns`: there is no {names} in {name!r}, which has the columns {names2}.",
            names=Names(absent or [entry]),
            name=path.name,
            names2=Names(names),
        )
    return found


def _range(names: Sequence[str], first: str, last: str) -> list[str]:
    """Return the names from first to last: by their number if they differ in nothing else, by their place if not."""
    start, stop = _RANGE_END.fullmatch(first), _RANGE_END.fullmatch(last)
    if start and stop and start["before"] == stop["before"] and start["after"] == stop["after"]:
        width = len(start["number"]) if start["number"].startswith("0") else 1  # lm01..lm12
        counted = range(int(start["number"]), int(stop["number"]) + 1)
        # A slip such as x1..x999999999 must not make a list of that length.
        return [f"{start['before']}{number:0{width}d}{start['after']}" for number in counted[: len(names) + 1]]
    if first in names and last in names:
        return list(names[names.index(first) : names.index(last) + 1])
    return [name for name in (first, last) if name not in names]
