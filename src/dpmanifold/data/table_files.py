"""Tables in files, CSV, TSV and Parquet: which columns there are, numbers of some of them, and columns of ids.

Not a data frame library: columns are read as float64, or as ids, and nothing is computed. Rows come a block at a time,
so that memory is what the result needs. Text stays in Arrow's arrays: a code for each row, and the distinct words of
the block. Whoever groups them looks at the words alone.
"""

from __future__ import annotations

import fnmatch
import pathlib
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmanifold._cells import REAL, numbers_of, objects
from dpmanifold._check import Array, FloatArray, shown
from dpmanifold._ids import MISSING_WORDS, as_number
from dpmanifold.data._files import DataFile, bad_file, chosen_name
from dpmanifold.errors import InvalidArgumentError, Names, Public

Entries = Any
"""(m,): an array of whole numbers, or a `pyarrow.DictionaryArray` of text; null where nothing stands."""

# Types of pyarrow by their names: old versions do not have all of them.
_TEXT = ("string", "large_string", "string_view")
_KINDS = {"bool": "truth"} | dict.fromkeys(_TEXT, "text")
_KINDS |= dict.fromkeys(("null", "binary", "large_binary", "binary_view"), "object")

# Whole numbers that have one spelling: 007 and +7 are text, or two ids would become one. 18 digits fit in 64 bits.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_LONGEST_WORD = max(map(len, MISSING_WORDS))
# Characters of a word in numpy's own arrays of text; longer ones are objects, or one of them would fill the memory.
_LONGEST_PLAIN = 64


class Column(NamedTuple):
    """What is known of a column before it is read.

    Attributes
    ----------
    name : for messages and choices
    kind : "whole", "number", "complex", "truth", "text", "object" (anything, entry by entry) or "something else"
    width : how many numbers each entry has, in columns of lists of one length; 0 where the type does not say it
    """

    name: str
    kind: str
    width: int = 1


def alike(one: Sequence[Column], two: Sequence[Column]) -> bool:
    """Return whether columns are the same but for what they hold: one cell may make text of a column of numbers."""
    return [(column.name, column.width) for column in one] == [(column.name, column.width) for column in two]


def text_entries(values: Any) -> Entries:
    """Return text by a dictionary, without blanks around it; null stays null.

    Parameters
    ----------
    values : a pyarrow array of text, by a dictionary or not

    Examples
    --------
    >>> text_entries(pa.array(["ann", " bob ", "ann"])).to_pylist()
    ['ann', 'bob', 'ann']
    """
    found = words_of(values)
    words = found.dictionary.cast(pa.string())
    plain = pc.utf8_trim_whitespace(words)
    if plain.equals(words):
        return pa.DictionaryArray.from_arrays(found.indices.cast(pa.int32()), words)
    # Two words may have become one.
    again = plain.dictionary_encode()
    return pa.DictionaryArray.from_arrays(again.indices.take(found.indices), again.dictionary)


def arrow_numbers(column: Any, width: int = 1, kind: str = REAL) -> Array:
    """Return a column (m, width) of pyarrow, each cell read by itself, NaN where there is no number.

    Examples
    --------
    >>> arrow_numbers(pa.array([1, None])).tolist(), arrow_numbers(pa.array(["7", "x"])).tolist()
    ([[1.0], [nan]], [[7.0], [nan]])
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if width > 1:
        return _fixed_lists(whole, width)
    if pa.types.is_integer(whole.type) or pa.types.is_floating(whole.type):
        plain = whole.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers_of(plain, kind)[:, None]
    if str(whole.type) in _TEXT:
        whole = whole.cast(pa.string())
        try:
            return arrow_numbers(whole.cast(pa.float64()), width, kind)
        except pa.ArrowInvalid:  # not all of it is numbers
            whole = whole.dictionary_encode()
    return _by_words(whole, lambda words: numbers_of(words, kind))[:, None]


def cells_of(column: Any) -> Array:
    """Return the cells of a column (m,) as objects; a word that occurs often is one object, whatever its length.

    Examples
    --------
    >>> cells_of(pa.array(["ann", None, "ann"]).dictionary_encode()).tolist()
    ['ann', None, 'ann']
    """
    return _by_words(column, lambda words: words)


def _by_words(column: Any, read: Callable[[Array], Array]) -> Array:
    """Return what is read of the cells of a column, of each word of a dictionary once: a word may be long."""
    if not pa.types.is_dictionary(column.type):
        return read(objects(column.to_pylist()))
    found = words_of(column)
    words = read(objects([*found.dictionary.to_pylist(), None]))
    codes = found.indices.cast(pa.int64()).fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
    return np.asarray(words[codes])


def _fixed_lists(lists: Any, width: int) -> Array:
    """Return lists of one length (m, width)."""
    # Lists that are missing have a place among the values, whatever stands there.
    numbers = lists.cast(pa.list_(pa.float64(), width), safe=False).values
    values = np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    values = values.reshape(-1, width)[lists.offset : lists.offset + len(lists)]
    if lists.null_count:
        values[lists.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return values


def words_of(column: Any) -> Any:
    """Return text as a `pyarrow.DictionaryArray` whose words all occur: a category that nobody has is nobody's id.

    Parameters
    ----------
    column : a pyarrow array of text, chunked or not, by a dictionary or not

    Examples
    --------
    >>> words_of(pa.array(["b", "a", "b"])[:1]).dictionary.to_pylist()
    ['b']
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if not pa.types.is_dictionary(column.type):
        return column.dictionary_encode()
    codes, words = column.indices, column.dictionary
    occurs = np.bincount(codes.drop_null().to_numpy(zero_copy_only=False), minlength=len(words)) > 0
    if occurs.all():
        return column
    rank = pa.array(np.cumsum(occurs, dtype=np.int32) - 1)
    return pa.DictionaryArray.from_arrays(rank.take(codes), words.filter(pa.array(occurs)))


def arrow_column(name: str, kind: Any) -> Column:
    """Return what is known of a column of a type of pyarrow."""
    if pa.types.is_fixed_size_list(kind) and arrow_kind(kind.value_type) in ("whole", "number"):
        return Column(name, "number", kind.list_size)
    if pa.types.is_dictionary(kind):
        return Column(name, "text" if arrow_kind(kind.value_type) == "text" else "object")
    return Column(name, arrow_kind(kind))


def arrow_kind(kind: Any) -> str:
    """Return in a word what a column of a type of pyarrow holds: that of a :class:`Column`."""
    if pa.types.is_integer(kind):
        return "whole"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return _KINDS.get(str(kind), "something else")


def first_missing(entries: Entries) -> int | None:
    """Return where the first id stands that is missing, or a word for that.

    Examples
    --------
    >>> first_missing(text_entries(pa.array(["ann", "N/A"]))), first_missing(np.array([7, 8]))
    (1, None)
    """
    if isinstance(entries, np.ndarray):
        return None
    missing = pc.is_null(entries)
    if pa.types.is_dictionary(entries.type):
        words = entries.dictionary
        shortest = pc.min(pc.binary_length(words)).as_py() if len(words) else 0
        if entries.null_count == 0 and shortest > _LONGEST_WORD:
            return None
        none = pc.is_in(pc.utf8_lower(words), value_set=pa.array(sorted(MISSING_WORDS)))
        missing = pc.or_(missing, pc.fill_null(none.take(entries.indices), True))
    found = missing.index(True).as_py()
    return None if found < 0 else int(found)


def first_respelt(entries: Entries) -> int | None:
    """Return where the first word stands that is a whole number, and not as a column of numbers would be written.

    Examples
    --------
    >>> first_respelt(text_entries(pa.array(["7", "ann", "007"]))), first_respelt(np.array([7, 8]))
    (2, None)
    """
    if isinstance(entries, np.ndarray):
        return None
    numbers = [(word, as_number(word)) for word in entries.dictionary.to_pylist()]
    other = np.array([isinstance(number, int) and str(number) != word for word, number in numbers], dtype=bool)
    found = other[entries.indices.to_numpy()] if other.any() else other[:0]
    return int(np.argmax(found)) if found.any() else None


def joined(parts: Sequence[Entries], text: bool = False) -> Array:
    """Return blocks of a column as one array (n,): int64 where all are whole numbers, else text; objects with gaps.

    Examples
    --------
    >>> joined([text_entries(pa.array(["7", "8"])), text_entries(pa.array(["7"]))]), joined([], text=True)
    (array([7, 8, 7]), array([], dtype='<U1'))
    """
    if any(not isinstance(part, np.ndarray) and part.null_count for part in parts):
        return np.concatenate([cells_of(pa.array(as_text(part) if text else part)) for part in parts])
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        numbers = np.concatenate(parts)
        return numbers.astype(str) if text else numbers
    kind = pa.dictionary(pa.int32(), pa.string())
    whole = pa.chunked_array(list(parts), type=kind).unify_dictionaries()
    words = whole.chunk(0).dictionary.to_pylist() if whole.num_chunks else []
    codes = np.concatenate([np.empty(0, np.int32), *(chunk.indices.to_numpy() for chunk in whole.chunks)])
    if not text and all(map(_WHOLE.fullmatch, words)):
        return np.asarray(np.array(list(map(int, words)), dtype=np.int64)[codes])
    # numpy drops NUL characters at the end of text, and gives every row the length of the longest word.
    plain = not any(word.endswith("\0") or len(word) > _LONGEST_PLAIN for word in words)
    spelled = np.array(words, dtype=str) if plain else objects(words)
    return np.asarray(spelled[codes])


def as_array(entries: Entries) -> Array:
    """Return the entries of one block as numpy's array, text as text, and objects where some are missing.

    Examples
    --------
    >>> as_array(text_entries(pa.array(["7", "b"])))
    array(['7', 'b'], dtype='<U1')
    """
    if isinstance(entries, np.ndarray):
        return entries
    return joined([entries], text=True)


def as_text(entries: Entries) -> Entries:
    """Return the entries of one block as text by a dictionary, whole numbers as they are written.

    Examples
    --------
    >>> as_text(np.array([7, 8])).to_pylist()
    ['7', '8']
    """
    return pa.array(entries).cast(pa.string()).dictionary_encode() if isinstance(entries, np.ndarray) else entries


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

    def filled(self, width: int) -> FloatArray:
        """Return the rows of so many numbers, (m, width), and NaN for all others."""
        rows = np.full((len(self), width), np.nan)
        places, found = self.of_width(width)
        rows[places] = found
        return rows


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
        parts: list[Any] = []
        for numbers, beside in self.rows(names, list(along)):
            parts.append(numbers)
            for column, entries in zip(along.values(), beside, strict=True):
                column.append(entries)
        self._kept.update(along)
        if parts and isinstance(parts[0], Lists):
            return self._of_one_length(Lists(*map(np.concatenate, zip(*parts, strict=True))))
        return np.concatenate(parts) if parts else np.empty((0, len(self.names if names is None else names)))

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
        return lists.filled(int(lengths[0]) if len(lengths) else 1)

    def refuse_width(self) -> None:
        """Refuse more columns than a table of records has."""
        if len(self.names) > MOST_COLUMNS:
            raise bad_file(
                self.path,
                "it has {n_names} columns, more than {most_columns}. Save the numbers as .npy, one record per row.",
                n_names=Public(len(self.names)),
                most_columns=Public(MOST_COLUMNS),
            )


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
