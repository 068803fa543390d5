"""Tables in files, CSV, TSV and Parquet: which columns there are, numbers of some of them, and one column of ids.

Not a data frame library: columns are read as float64, or as ids, and nothing is computed. CSV is read line by line, so
that memory is what the result needs.
"""

from __future__ import annotations

import array
import csv
import fnmatch
import gzip
import itertools
import pathlib
import re
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold._extras import optional_module
from dpmanifold._ids import MISSING_WORDS
from dpmanifold.data._files import bad_file, listed
from dpmanifold.data.opened import DataFile, chosen_name
from dpmanifold.errors import InvalidArgumentError

_DELIMITERS = (",", ";", "\t")
# Whole numbers that have one spelling: 007 and +7 are text, or two ids would become one. 18 digits fit in 64 bits.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_RANGE_END = re.compile(r"(?P<before>.*?)(?P<number>\d{1,9})(?P<after>\D*)")


class Table(DataFile):
    """A table in a file: `names` are its columns."""

    options = ("columns",)
    names: list[str]

    @abstractmethod
    def numbers(self, names: Sequence[str] | None) -> FloatArray:
        """Return columns (n, number of them) as float64, missing entries as NaN; None for all columns."""

    @abstractmethod
    def entries(self, name: str, text: bool = False, labels: bool = False) -> Array:
        """Return one column (n,) as whole numbers or text, none missing.

        `text` keeps numbers as text; `labels` takes words such as NA for what they are and refuses empty entries alone.
        """

    def array(self, *, columns: str | Sequence[str] | None = None, **options: Any) -> FloatArray:
        """Return the numbers of the columns that names or patterns mean, all of them if left out."""
        return self.numbers(None if columns is None else select_columns(self.names, columns, self.path))

    def column(self, name: str | None = None, text: bool = False, labels: bool = False) -> Array:
        """Return one column of ids or labels, none missing."""
        return self.entries(chosen_name(self.names, name, self.path), text, labels)

    def _missing(self, where: str, name: str) -> Exception:
        """Return the error about an entry that is empty or says that there is none."""
        return bad_file(
            self.path,
            f"{where} has nothing, or a word such as NA or None, in column {name!r}, and a record belongs to somebody. "
            "Fill it in, or drop the record.",
        )

    def _positions(self, names: Sequence[str] | None) -> list[int]:
        """Return where the columns stand, after refusing names that mean two columns."""
        if names is None:
            return list(range(len(self.names)))
        for name in names:
            if self.names.count(name) > 1:
                raise bad_file(self.path, f"two columns are called {name!r}. Rename one of them.")
        return [self.names.index(name) for name in names]


class CsvTable(Table):
    """A CSV file with a line of names; commas, semicolons or tabs between entries (tabs in TSV), UTF-8."""

    suffixes = (".csv", ".tsv", ".csv.gz", ".tsv.gz")

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        name = path.name.lower()
        self._open = gzip.open if name.endswith(".gz") else open
        self._delimiters = ("\t",) if name.removesuffix(".gz").endswith(".tsv") else _DELIMITERS
        # The file stays open behind its first line: what is asked for first is read in the same pass.
        self._below: Iterator[tuple[int, list[str]]] | None = self._lines()
        self.names = next(self._below, (0, []))[1]
        self._kept: dict[str, list[str] | None] = {}
        if not self.names:
            raise bad_file(path, "it is empty. Give a line with the names of the columns, and the records below.")
        if _looks_like_data(self.names):
            # Names are shown in messages and data must not be; and the first record would be lost.
            raise bad_file(path, "line 1 holds numbers, not the names of the columns. Add a first line with names.")

    def keep(self, name: str) -> None:
        """Read this column, if there is one, in the pass that reads the numbers."""
        if self.names.count(name) == 1:
            self._kept.setdefault(name, None)

    def numbers(self, names: Sequence[str] | None) -> FloatArray:
        """Read the columns in one pass, and those to be kept along with them."""
        places = self._positions(names)
        along: dict[int, list[str]] = {self.names.index(name): [] for name, got in self._kept.items() if got is None}
        values = array.array("d")
        for line, cells in self._records():
            try:
                row = [float(cells[place]) for place in places]
            except ValueError:
                row = [self._number(cells[place], line, place) for place in places]
            values.extend(row)
            for place, entries in along.items():
                entries.append(cells[place].strip())
        self._kept.update({self.names[place]: entries for place, entries in along.items()})
        return np.frombuffer(values, dtype=np.float64).reshape(-1, len(places))

    def entries(self, name: str, text: bool = False, labels: bool = False) -> Array:
        """Read the column as text, and take it for whole numbers if every entry is one."""
        place = self._positions([name])[0]
        entries = self._kept.get(name)
        if entries is None:
            entries = [cells[place].strip() for _, cells in self._records()]
        missing = next((record for record, entry in enumerate(entries) if _is_missing(entry, labels)), None)
        if missing is not None:
            line = next(itertools.islice(self._records(), missing, None), (0, []))[0]
            raise self._missing(f"line {line}", name)
        whole = not text and all(_WHOLE.fullmatch(entry) for entry in entries)
        return np.array([int(entry) for entry in entries], dtype=np.int64) if whole else np.array(entries, dtype=str)

    def _number(self, cell: str, line: int, place: int) -> float:
        """Return the number in a cell, NaN if it is missing."""
        if cell.strip().casefold() in MISSING_WORDS:
            return np.nan
        try:
            return float(cell)
        except ValueError:
            # Without the cause: its message has the entry in it.
            raise bad_file(
                self.path,
                f"line {line} has no number in column {self.names[place]!r}. Choose numeric columns with columns=, "
                "write a decimal point, and leave missing entries empty.",
            ) from None

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the lines below the names; only at the end may lines be blank, or records would change places."""
        lines, self._below = self._below, None
        if lines is None:
            lines = self._lines()
            next(lines, None)
        width, blank = len(self.names), 0
        for line, cells in lines:
            if not cells:
                blank = blank or line
                continue
            if blank:
                raise bad_file(self.path, f"line {blank} is blank. Remove it, or write the record that belongs there.")
            if len(cells) != width:
                raise bad_file(
                    self.path,
                    f"line {line} has {len(cells)} entries, the first line {width}. Repair it; entries with "
                    "separators in them belong in quotes.",
                )
            yield line, cells

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield line numbers and entries, the names first."""
        line = 0
        try:
            with self._open(self.path, "rt", newline="", encoding="utf-8-sig") as stream:
                delimiter = max(self._delimiters, key=stream.readline().count)
                stream.seek(0)
                reader = csv.reader(stream, delimiter=delimiter, strict=True)
                for cells in reader:
                    line = reader.line_num
                    yield line, [cell.strip() for cell in cells] if line == 1 else cells
        except UnicodeDecodeError:
            raise bad_file(self.path, f"after line {line} it is not UTF-8. Save it as CSV UTF-8.") from None
        except csv.Error:
            raise bad_file(self.path, f"after line {line} it is not CSV. Look for quotes that do not close.") from None
        except (OSError, EOFError, zlib.error):
            raise bad_file(self.path, f"after line {line} it cannot be read. Copy or compress it again.") from None


class ParquetTable(Table):
    """A Parquet file, read by pyarrow in batches of rows."""

    suffixes = (".parquet",)

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        self._arrow = optional_module("pyarrow", "parquet", f"Reading {path.name!r}")
        self._parquet = optional_module("pyarrow.parquet", "parquet", f"Reading {path.name!r}")
        try:
            with self._parquet.ParquetFile(path) as file:
                self._schema = file.schema_arrow
        except (self._arrow.ArrowException, OSError, ValueError):
            raise bad_file(path, "it is damaged, incomplete or not Parquet. Write it again.") from None
        self.names = list(self._schema.names)

    def numbers(self, names: Sequence[str] | None) -> FloatArray:
        """Fill one array, batch by batch."""
        chosen = [self.names[place] for place in self._positions(names)]
        for name in chosen:
            kind = self._kind(name)
            if kind not in ("whole", "number"):
                raise bad_file(self.path, f"column {name!r} is not numbers. Choose numeric columns with columns=.")
        parts = [np.empty((0, len(chosen)))]
        for batch in self._batches(chosen):
            columns = [batch.column(name).cast(self._arrow.float64(), safe=False) for name in chosen]
            parts.append(np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1))
        return np.concatenate(parts)

    def entries(self, name: str, text: bool = False, labels: bool = False) -> Array:
        """Read the column as it is; missing entries are refused."""
        kind = self._kind(self.names[self._positions([name])[0]])
        if kind not in ("whole", "text"):
            raise bad_file(self.path, f"column {name!r} is not whole numbers or text. Convert it to one of them.")
        values: list[Any] = []
        for batch in self._batches([name]):
            for value in batch.column(name).to_pylist():
                if value is None or (kind == "text" and _is_missing(value.strip(), labels)):
                    raise self._missing(f"row {len(values)} (the first is 0)", name)
                values.append(value)
        if kind == "whole" and not text:
            return np.array(values, dtype=np.int64)
        return np.array([str(value).strip() for value in values], dtype=str)

    def _kind(self, name: str) -> str:
        """Return in a word what a column holds."""
        types, found = self._arrow.types, self._schema.field(name).type
        if types.is_dictionary(found):
            found = found.value_type
        if types.is_integer(found):
            # Unsigned 64-bit numbers may not fit; as ids they would have to be text.
            return "number" if types.is_uint64(found) else "whole"
        if types.is_floating(found) or types.is_boolean(found) or types.is_decimal(found):
            return "number"
        return "text" if types.is_string(found) or types.is_large_string(found) else "something else"

    def _batches(self, names: list[str]) -> Iterator[Any]:
        try:
            with self._parquet.ParquetFile(self.path) as file:
                yield from file.iter_batches(columns=names)
        except (self._arrow.ArrowException, OSError, ValueError):
            raise bad_file(self.path, f"its columns {listed(names)} cannot be read. Write it again.") from None


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
            f"columns must be names or patterns such as 'x1..x9' or 'lm_*', or a list of them, got {shown(columns)}."
        )
    chosen = [name for entry in entries for name in _matching(names, entry, path)]
    twice = [name for name in dict.fromkeys(chosen) if chosen.count(name) > 1 and names.count(name) == 1]
    if twice:
        raise InvalidArgumentError(f"columns: {listed(twice)} is meant twice. Name every column once.")
    return list(dict.fromkeys(chosen))


def is_pattern(entry: str, names: Sequence[str]) -> bool:
    """Return whether an entry of `columns` is a pattern, and not the name of a column."""
    return entry not in names


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
            f"columns: there is no {listed(absent or [entry])} in {path.name!r}, which has the columns {listed(names)}."
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


def _is_missing(entry: str, labels: bool) -> bool:
    """Return whether an entry without blanks around it is no id; among labels, "none" may be the name of a class."""
    return not entry if labels else entry.casefold() in MISSING_WORDS


def _looks_like_data(names: list[str]) -> bool:
    """Return whether a first line holds numbers that are not column numbers such as 0, 1, 2."""
    numbers = []
    for name in names:
        try:
            numbers.append(float(name))
        except ValueError:
            continue
    return any(number != numbers[0] + step for step, number in enumerate(numbers)) or (
        bool(numbers) and not (numbers[0] >= 0 and numbers[0].is_integer())
    )
