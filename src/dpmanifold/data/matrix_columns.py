"""Columns named like entries of a matrix: xx, xy, ..., zz, perhaps behind a word (Dxx), or by row and column."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from dpmanifold._check import FloatArray
from dpmanifold.data._files import listed
from dpmanifold.data.tables import Table, select_columns
from dpmanifold.errors import InvalidArgumentError, Names

# xx, Dxx, t_xy; 11, D12, c_1_12, m[3,4]
_LETTERS = re.compile(r"(?P<word>.*?)[_. -]?(?P<row>[xyz])[_. -]?(?P<column>[xyz])", re.IGNORECASE)
_NUMBERS = re.compile(
    r"(?P<word>.*?)[_. \[(-]?(?:(?P<row>\d)(?P<column>\d)|(?P<row2>\d{1,4})[_. ,-](?P<column2>\d{1,4}))[\])]?"
)

Entry = tuple[int, int]


def read_matrices(table: Table, columns: str | Sequence[str] | None = None) -> FloatArray:
    """Return columns of a table, those named like all entries of a matrix as whole matrices row by row, (n, k * k).

    Parameters
    ----------
    table : the table
    columns : names or patterns; without them, the columns that are named so, or else all
    """
    names = list(table.names) if columns is None else select_columns(table.names, columns, table.path)
    found = matrix_columns(names, among_others=columns is None)
    return table.array(columns=columns) if found is None else table.numbers(found)


def matrix_columns(names: Sequence[str], among_others: bool = False) -> list[str] | None:
    """Return the names of the k * k entries of a matrix row by row, or None where names say nothing of that kind.

    An entry that has no column of its own is that on the other side of the diagonal.

    Parameters
    ----------
    names : of columns
    among_others : whether other columns may stand beside them, which are then left out

    Examples
    --------
    >>> matrix_columns(["Dyy", "Dxy", "Dxx"])
    ['Dxx', 'Dxy', 'Dxy', 'Dyy']
    >>> matrix_columns(["m_1_1", "m_2_1", "m_2_2"]), matrix_columns(["x1", "x2", "x3"])
    (['m_1_1', 'm_2_1', 'm_2_1', 'm_2_2'], None)
    >>> matrix_columns(["xx", "xy", "zz"])
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: columns are named like entries of a matrix, and not all of them are there:
    'xx', 'xy', 'zz'. Name the columns of the records with columns=, or rename them.
    """
    by_letters = _by_word(names, _LETTERS)
    complete = [entries for found in (by_letters, _by_word(names, _NUMBERS)) for entries in found if _whole(entries)]
    fitting = [entries for entries in complete if among_others or len(entries) == len(names)]
    if len(fitting) > 1:
        raise InvalidArgumentError(
            "`columns` is needed: several matrices are named among the columns, {fitting}. Name those of one.",
            fitting=" and ".join(listed(entries.values()) for entries in fitting),
        )
    if fitting:
        entries = fitting[0]
        first, last = min(entries)[0], max(map(max, entries))
        side = range(first, last + 1)
        return [entries.get((i, j)) or entries[j, i] for i in side for j in side]
    # Numbers may count columns; letters do not, and other columns do not take the place of those that are missing.
    partial = next((entries for entries in by_letters if len(entries) > 1 and not _whole(entries)), None)
    if partial is not None:
        raise InvalidArgumentError(
            "`columns` are named like entries of a matrix, and not all of them are there: {values}. Name the "
            "columns of the records with `columns=`, or rename them.",
            values=Names(partial.values()),
        )
    return None


def _by_word(names: Sequence[str], pattern: re.Pattern[str]) -> list[dict[Entry, str]]:
    """Return the entries that names mean, apart by the word before them; none of a word that names one twice."""
    found: dict[str, dict[Entry, str]] = defaultdict(dict)
    twice = set()
    for name in names:
        match = pattern.fullmatch(name.strip())
        if match is None:
            continue
        groups = match.groupdict()
        pair = [groups[axis] or groups.get(f"{axis}2") or "" for axis in ("row", "column")]
        row, column = ("xyz".index(text.lower()) if text.lower() in ("x", "y", "z") else int(text) for text in pair)
        word = groups["word"].casefold()
        twice |= {word} if (row, column) in found[word] else set()
        found[word][row, column] = name
    return [entries for word, entries in found.items() if word not in twice]


def _whole(entries: dict[Entry, str]) -> bool:
    """Return whether entries are those of a symmetric matrix: all, or one of each pair that mirror one another."""
    numbers = sorted({number for entry in entries for number in entry})
    if len(numbers) < 2 or numbers != list(range(numbers[0], numbers[-1] + 1)) or numbers[0] > 1:
        return False
    whole = {(i, j) for i in numbers for j in numbers}
    upper = {(i, j) for i, j in whole if i <= j}
    return entries.keys() == whole or (
        len(entries) == len(upper) and {(min(entry), max(entry)) for entry in entries} == upper
    )


__all__ = ["matrix_columns", "read_matrices"]
