r"""Who owns which record: from what a user gives as `units` to a number for each unit. A leaf.

A unit that is split in two is protected half, and nothing in a release shows it. So ids are grouped by equality alone,
and whatever leaves doubt about who is who is refused: missing ids, ids of several kinds, text that differs only in what
nobody sees. The verdict is the same for lists, arrays, pandas and pyarrow, but for one thing: numpy's arrays of text
(dtypes U and S) drop NUL characters at the end of an entry, so np.array(["a\0", "a"]) holds one id twice, and what it
was made of cannot be seen here. Messages give an index and never an id.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifold._check import Array, index_text, shown
from dpmanifold.errors import Argument, InvalidArgumentError, Public

# What stands for "nothing here" in text, in small letters, without blanks around it.
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none"})
_LONGEST_WORD = max(map(len, MISSING_WORDS))  # small letters are never fewer than the letters they are of

# What becomes of 7 in a column that was once read as floats. 1.10 is left alone: it may be the tenth person of site 1.
_WHOLE_WITH_POINT = re.compile(r"([+-]?[0-9]+)\.0*")

LOOK_ALIKE = (
    "only in blanks, in characters that are not seen, in how characters such as accents are stored, or as 7 and 7.0 "
    "do. Write the ids of one unit in one way, and those of two so that they differ in more; "
    '" ".join(id.split()) removes needless blanks.'
)
_FILL_IN = "Give every record the id of its unit, or leave the record out."
KINDS = "Ids are whole numbers or text, all of one kind: str(id) makes text of anything."


@dataclass(frozen=True)
class UnitIds:
    """Units by number. NOT PRIVATE.

    Attributes
    ----------
    group : (n,), the number of each record's unit, from 0
    found : the ids by that number, sorted: all whole numbers, or all str without blanks around them
    """

    group: Array
    found: Array | list[str] | list[int]

    def __len__(self) -> int:
        """Return how many units there are."""
        return len(self.found)

    @property
    def names(self) -> Sequence[int] | Sequence[str]:
        """The ids by their number: all int, or all str."""
        return self.found if isinstance(self.found, list) else self.found.tolist()

    def shares_a_unit(self, other: UnitIds) -> bool:
        """Return whether somebody is among both. Where one has numbers and the other text, text that is a number is it.

        What was 007 in one file is 7 in another that a spreadsheet has touched, or 7.0. Text is compared with text as
        within one column: what differs only in what nobody sees, or as 7 and 7.0 do, is one person.

        >>> from dpmanifold._merged_ids import unit_ids
        >>> unit_ids([7], 1).shares_a_unit(unit_ids(["007"], 1)), unit_ids(["7"], 1).shares_a_unit(unit_ids(["007"], 1))
        (True, False)
        >>> unit_ids(["ann  b"], 1).shares_a_unit(unit_ids(["ann b"], 1))
        True
        """
        ours, theirs = (
            [key_of(name) if isinstance(name, str) else name for name in ids.names] for ids in (self, other)
        )
        if len({type(name) for name in (*ours[:1], *theirs[:1])}) < 2:
            return not set(ours).isdisjoint(theirs)
        return not set(map(as_number, ours)).isdisjoint(map(as_number, theirs))


def as_sequence(units: object, name: str) -> list[Any] | Array:
    """Return ids as an array of numbers, or as a list of what they are: numpy would make text of numbers next to it."""
    ordered = isinstance(units, Collection) and not isinstance(units, (str, bytes, Set, Mapping))
    if not ordered and not hasattr(units, "__array__"):
        raise InvalidArgumentError(
            "{name} must be one id per record, in a list or an array, got {got}. EACH_RECORD says that nobody "
            "owns two records.",
            name=Argument(name),
            got=shown(units),
        )
    if np.ma.isMaskedArray(units):
        _refuse_missing(np.ma.getmaskarray(units), name)
    try:
        if not hasattr(units, "__array__"):
            return list(units)  # type: ignore[call-overload, no-any-return]
        array = entries_of(units)
    except (MemoryError, TimeoutError):
        raise
    except Exception:
        # Whatever a foreign container raises; its message may quote data.
        raise InvalidArgumentError(
            "{name} cannot be read, got {got}. Give a list.", name=Argument(name), got=shown(units)
        ) from None
    if array.dtype.kind in "iufOUST" or array.ndim != 1:
        return array
    raise InvalidArgumentError(
        "{name} must be whole numbers or text, got dtype {dtype}. {kinds}",
        name=Argument(name),
        dtype=array.dtype,
        kinds=Public(KINDS),
    )


def are_encoded(units: object) -> bool:
    """Return whether ids come as distinct ones and places among them, none missing, as readers of files have them."""
    encoded = hasattr(units, "dictionary") and hasattr(units, "indices")
    return encoded and units.null_count == 0 and units.dictionary.null_count == 0  # type: ignore[attr-defined]


def entries_of(units: Any) -> Array:
    """Return ids, one per record, as numpy's array: a word that many have is one object, whatever its length."""
    return np.asarray(units.dictionary)[np.asarray(units.indices)] if are_encoded(units) else np.asarray(units)


def are_text(ids: list[Any], name: str) -> bool:
    """Return whether all ids are text (True) or all numbers (False); refuse everything else."""
    kinds = set(map(type, ids))
    sorts = {kind: _sort(kind) for kind in kinds}
    if "neither" in sorts.values():
        _refuse_missing(np.array([_is_missing(entry) for entry in ids], dtype=bool), name)
        where = next(i for i, entry in enumerate(ids) if sorts[type(entry)] == "neither")
        raise InvalidArgumentError(
            "{name} holds {a} at index {index}. {kinds}",
            name=Argument(name),
            a=Public(_a(type(ids[where]))),
            index=Public(where),
            kinds=Public(KINDS),
        )
    if len(set(sorts.values())) > 1:
        # A missing entry among text is a float in pandas: that is the better message.
        _refuse_missing(np.array([_is_missing(entry) for entry in ids], dtype=bool), name)
        first = sorts[type(ids[0])]
        where = next(i for i, entry in enumerate(ids) if sorts[type(entry)] != first)
        raise InvalidArgumentError(
            '{name} must be ids of one kind: {first} at index {start}, {sorts} at index {index}, and 7 and "07" may '
            "be one person or two. {kinds}",
            name=Argument(name),
            first=Public(first),
            sorts=Public(sorts[type(ids[where])]),
            start=Public(0),
            index=Public(where),
            kinds=Public(KINDS),
        )
    return "number" not in sorts.values()


def _sort(kind: type) -> str:
    """Return "text", "bytes", "number" or "neither"."""
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, bytes):
        return "bytes"
    number = issubclass(kind, (int, np.integer, float, np.floating)) and not issubclass(kind, bool)
    # Durations count themselves among numpy's integers.
    return "number" if number and not issubclass(kind, np.timedelta64) else "neither"


def _is_missing(entry: object) -> bool:
    """Return whether an entry says that there is none: None, NaN, NaT, pd.NA, which is not equal to itself."""
    if entry is None:
        return True
    try:
        return bool(entry != entry)
    except Exception:  # pd.NA has no truth value; so have arrays, which are refused for what they are
        return type(entry).__name__ == "NAType"


def refuse_faults(ids: list[Any], name: str) -> None:
    """Say what is wrong with ids, and where, if anything is: they are of several kinds, missing, or look alike."""
    if not are_text(ids, name):
        numbers_of(ids, name)
        return
    ids = [decoded(entry, i, name) for i, entry in enumerate(ids)]
    keyed = {entry: key_of(entry) for entry in set(ids)}
    missing = {entry for entry, key in keyed.items() if says_missing(key)}
    _refuse_missing(np.array([entry in missing for entry in ids], dtype=bool), name)
    earlier = dict[str, str]()
    where = next((i for i, entry in enumerate(ids) if earlier.setdefault(keyed[entry], entry) != entry), None)
    if where is not None:
        raise InvalidArgumentError(
            "{name} has an id at index {index} that differs from an earlier one {look_alike}",
            name=Argument(name),
            index=Public(where),
            look_alike=Public(LOOK_ALIKE),
        )


def key_of(entry: str) -> str:
    r"""Return what two spellings of one id have in common.

    >>> key_of("\ufeffann \t b\u00ad"), key_of("7.0"), key_of("07"), key_of("1.10")
    ('ann b', '7', '07', '1.10')
    """
    if not (entry.isascii() and entry.isprintable() and "  " not in entry):
        if not entry.isprintable():
            # Before characters are composed: one that is not seen may stand between a letter and its accent.
            entry = "".join(mark for mark in entry if mark.isspace() or unicodedata.category(mark) not in ("Cf", "Cc"))
        entry = " ".join(unicodedata.normalize("NFKC", entry).split())
    entry = entry.strip()
    whole = _WHOLE_WITH_POINT.fullmatch(entry) if "." in entry else None
    return whole[1] if whole else entry


def says_missing(key: str) -> bool:
    """Return whether an id, as :func:`key_of` gives it, is a word for there being none."""
    return len(key) <= _LONGEST_WORD and key.casefold() in MISSING_WORDS


def plain_of(entry: str) -> str:
    """Return text without blanks around it and composed."""
    text = str.__str__(entry).strip()
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def decoded(entry: str | bytes, index: int, name: str) -> str:
    """Return text, of bytes as well."""
    if isinstance(entry, str):
        return str.__str__(entry)
    try:
        return bytes.decode(entry, "utf-8")
    except UnicodeDecodeError:
        raise InvalidArgumentError(
            "{name} holds bytes at index {index} that are not UTF-8. Decode them: id.decode(encoding).",
            name=Argument(name),
            index=Public(index),
        ) from None


def numbers_of(ids: list[Any], name: str) -> list[int]:
    """Return whole numbers, of any size."""
    kinds = set(map(type, ids))
    if any(issubclass(kind, (float, np.floating)) for kind in kinds):
        floats = [i for i, entry in enumerate(ids) if isinstance(entry, (float, np.floating))]
        # Of all entries, so that an index in a message is that of the record.
        values = np.zeros(len(ids), dtype=np.longdouble)
        values[floats] = [ids[i] for i in floats]
        whole_array(values, name, min(map(_exact_below, kinds)))
    return ids if kinds == {int} else [_whole(entry) for entry in ids]


def _whole(entry: Any) -> int:
    """Return a number as Python's own, whatever a subclass makes of itself."""
    if isinstance(entry, int):
        return int.__index__(entry)
    return int(float.__float__(entry)) if isinstance(entry, float) else int(entry)


def as_number(name: int | str) -> int | str:
    """Return the whole number that an id spells, or the id."""
    for read in (int, float):
        try:
            if (number := read(name)) == int(number):
                return int(number)
        except (ValueError, OverflowError):
            continue
    return name


def _exact_below(kind: type) -> float:
    """Return the number up to which every whole number has a float of its own."""
    digits = int(np.finfo(kind).nmant) if issubclass(kind, np.floating) else 52
    return 2.0 ** (min(digits, 52) + 1)


def whole_array(ids: Array, name: str, limit: float | None = None) -> Array:
    """Return floats as whole numbers, or refuse NaN, fractions, and numbers so large that two may have become one."""
    _refuse_missing(np.isnan(ids), name)
    limit = _exact_below(ids.dtype.type) if limit is None else limit
    wrong = ~(np.abs(ids) < limit) | (ids != np.trunc(ids))
    if wrong.any():
        raise InvalidArgumentError(
            "{name} holds a number at index {index} that is not whole, or too large to be exact as a float. "
            "Give ids as integers or text.",
            name=Argument(name),
            index=Public(int(np.argmax(wrong))),
        )
    return ids.astype(np.int64)


def _refuse_missing(missing: Array, name: str) -> None:
    if missing.any():
        raise InvalidArgumentError(
            "{name} has a missing id{index_text}. {fill_in}",
            name=Argument(name),
            index_text=Public(index_text(missing)),
            fill_in=Public(_FILL_IN),
        )


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'aeiou' else 'a'} {kind.__name__}"
