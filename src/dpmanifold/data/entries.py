"""Columns of ids and classes as they come from tables: whole numbers, or text by a dictionary, a block at a time.

Text stays in Arrow's arrays: a code for each row, and the distinct words of the block. Whoever groups them looks at
the words alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmanifold._cells import REAL, numbers_of, objects
from dpmanifold._check import Array
from dpmanifold._ids import MISSING_WORDS, as_number

Entries = Any
"""(m,): an array of whole numbers, or a `pyarrow.DictionaryArray` of text; null where nothing stands."""

# Types of pyarrow by their names: old versions do not have all of them.
_TEXT = ("string", "large_string", "string_view")
_KINDS = {"bool": "truth"} | dict.fromkeys(_TEXT, "text")
_KINDS |= dict.fromkeys(("null", "binary", "large_binary", "binary_view"), "object")

# Whole numbers that have one spelling: 007 and +7 are text, or two ids would become one. 18 digits fit in 64 bits.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_LONGEST_WORD = max(map(len, MISSING_WORDS))


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


def numbers_in_text(values: Any, kind: str = REAL) -> Array:
    """Return the numbers that text spells, NaN where it spells none; each word is read once.

    Parameters
    ----------
    values : a pyarrow array of text, chunked or not, by a dictionary or not
    kind : "f" for real numbers, "c" for complex ones

    Examples
    --------
    >>> numbers_in_text(pa.array(["1.5", None, "abc", "1.5"]))
    array([1.5, nan, nan, 1.5])
    """
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    whole = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    words = numbers_of(objects([*whole.dictionary.to_pylist(), None]), kind)
    codes = whole.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
    return np.asarray(words[codes])


def arrow_numbers(column: Any, width: int = 1, kind: str = REAL) -> Array:
    """Return a column (m, width) of pyarrow, each cell read by itself, NaN where there is no number.

    Examples
    --------
    >>> arrow_numbers(pa.array([1, None])).tolist(), arrow_numbers(pa.array(["7", "x"])).tolist()
    ([[1.0], [nan]], [[7.0], [nan]])
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole  # of old versions
    if width > 1:
        return _fixed_lists(whole, width)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    if pa.types.is_integer(whole.type) or pa.types.is_floating(whole.type):
        plain = whole.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers_of(plain, kind)[:, None]
    if str(whole.type) in _TEXT:
        return numbers_in_text(whole.cast(pa.string()), kind)[:, None]
    return numbers_of(objects(whole.to_pylist()), kind)[:, None]


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
    if column.null_count:
        return column.dictionary_decode().dictionary_encode()
    codes, words = column.indices.to_numpy(zero_copy_only=False), column.dictionary
    occurs = np.bincount(codes, minlength=len(words)) > 0
    if occurs.all():
        return column
    rank = np.cumsum(occurs, dtype=np.int32) - 1
    return pa.DictionaryArray.from_arrays(rank[codes], words.filter(pa.array(occurs)))


def arrow_columns(schema: Any) -> list[Column]:
    """Return what is known of the columns of a schema of pyarrow."""
    return [_arrow_column(field.name, field.type) for field in schema]


def _arrow_column(name: str, kind: Any) -> Column:
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
    if not pa.types.is_dictionary(entries.type):
        return int(pc.index(missing, True).as_py()) if entries.null_count else None
    words = entries.dictionary
    shortest = pc.min(pc.binary_length(words)).as_py() if len(words) else 0
    if entries.null_count == 0 and shortest > _LONGEST_WORD:
        return None
    none = pc.is_in(pc.utf8_lower(words), value_set=pa.array(sorted(MISSING_WORDS)))
    if entries.null_count == 0 and not pc.any(none).as_py():
        return None
    found = pc.or_(missing, pc.fill_null(none.take(entries.indices), True)).index(True).as_py()
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
        return objects([cell for part in parts for cell in (as_text(part) if text else part).tolist()])
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        numbers = np.concatenate(parts)
        return numbers.astype(str) if text else numbers
    kind = pa.dictionary(pa.int32(), pa.string())
    whole = pa.chunked_array(list(parts), type=kind).unify_dictionaries()
    words = whole.chunk(0).dictionary.to_pylist() if whole.num_chunks else []
    codes = np.concatenate([np.empty(0, np.int32), *(chunk.indices.to_numpy() for chunk in whole.chunks)])
    if not text and all(map(_WHOLE.fullmatch, words)):
        return np.asarray(np.array(list(map(int, words)), dtype=np.int64)[codes])
    # numpy drops NUL characters at the end of text.
    spelled = objects(words) if any(word.endswith("\0") for word in words) else np.array(words, dtype=str)
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
