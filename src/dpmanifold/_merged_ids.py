"""Who owns which record where records come in pieces: ids are numbered as they come, and pieces agree on who is who.

What :mod:`dpmanifold._ids` refuses within one array is refused across pieces as well: ids of two kinds, and text that
differs only in what nobody sees. Messages name a piece and an index in it, and never an id. Memory is for the distinct
ids alone. Whole numbers and text have stores of their own, which know nothing of pieces.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, Reticent
from dpmanifold._ids import (
    KINDS,
    LOOK_ALIKE,
    UnitIds,
    are_encoded,
    are_text,
    as_sequence,
    decoded,
    key_of,
    numbers_of,
    plain_of,
    refuse_faults,
    says_missing,
    whole_array,
)
from dpmanifold.errors import Argument, InvalidArgumentError, Message, Public, SourceChangedError

T = TypeVar("T")

# Ids of an array that are looked at together: these, or one of so many parts of it. So the work takes memory for the
# distinct ids and little for each record, and no part of it is done again and again.
_BLOCK, _BLOCKS = 65_536, 8
# A range of whole numbers for which a table is always made quickly enough.
_SHORT_TABLE = 1_048_576


class MergedIds(Reticent):
    """Distinct ids with a number each; those that come together are numbered in their order. NOT PRIVATE.

    Examples
    --------
    >>> ids = MergedIds()
    >>> ids.add(np.array([7, 5, 7]), "a.npy").tolist(), ids.add(np.array([9, 5]), "b.npy").tolist()
    ([1, 0, 1], [2, 0])
    >>> ids.sorted().names
    [5, 7, 9]
    """

    def __init__(self, name: str = "units") -> None:
        self.name = name
        self._where = ""  # the piece that decided of which kind they are
        self._store: NumberIds | TextIds | None = None

    def __len__(self) -> int:
        return 0 if self._store is None else len(self._store)

    def add(self, units: object, where: str = "", first: int = 0) -> IntArray:
        """Return the number of each record's id, (m,); new ids get the next numbers.

        Parameters
        ----------
        units : ids of records that come together
        where : the piece they are in, for messages
        first : the index there of the first one
        """
        ids, text, codes = self._read(units, where, first)
        if isinstance(ids, np.ndarray) and ids.size == 0:
            return np.empty(0, dtype=np.int64)
        store = self._of_kind(text, where)
        try:
            return np.asarray(store.numbers(ids)[codes])  # type: ignore[arg-type]
        except AlikeError:
            texts = ids if isinstance(ids, list) else list(map(str, ids.tolist()))
            _located(lambda: refuse_faults(texts, self._of(where)), first)  # says where, if it is in these alone
            raise InvalidArgumentError(
                "{of} has an id that differs from one in another part of the records {look_alike}",
                of=self._of(where),
                look_alike=Public(LOOK_ALIKE),
            ) from None

    def find(self, units: object, where: str = "", first: int = 0) -> IntArray:
        """Return the number of each record's id, all of which are known: else the source has changed."""
        (ids, text, codes), known = self._read(units, where, first), len(self)
        try:
            found = self._of_kind(text, where).numbers(ids)[codes] if len(ids) else np.empty(0, np.int64)  # type: ignore[arg-type]
        except (InvalidArgumentError, AlikeError):
            found = np.array([known])
        if found.size and int(found.max()) >= known:
            raise SourceChangedError("{where} holds ids that it did not hold when it was read first.", where=where)
        return found

    def merge(self, other: MergedIds) -> IntArray:
        """Take over another's ids; returns the number here of each of its numbers."""
        theirs = other._store
        if theirs is None:
            return np.empty(0, dtype=np.int64)
        if self._store is None:
            self._store, self._where = theirs.copy(), other._where
            return np.arange(len(theirs), dtype=np.int64)
        store = self._of_kind(isinstance(theirs, TextIds), other._where)
        try:
            theirs_by_number = theirs.distinct
            whole = theirs_by_number.numbers if isinstance(theirs_by_number, Spelt) else theirs_by_number
            return store.numbers(whole)  # type: ignore[arg-type]
        except AlikeError:
            raise InvalidArgumentError(
                "{of} has an id that differs from one in another part of the records {look_alike}",
                of=self._of(other._where),
                look_alike=Public(LOOK_ALIKE),
            ) from None

    @property
    def distinct(self) -> Array | list[str] | Spelt:
        """The ids by number, as short as they can be said: numbers, or text; what :meth:`find` takes."""
        return np.empty(0, dtype=np.int64) if self._store is None else self._store.distinct

    def sorted(self) -> UnitIds:
        """Return the distinct ids in their order: `group` is the place of each number."""
        if self._store is None:
            return UnitIds(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        return self._store.sorted()

    def _of(self, where: str) -> str:
        return f"{self.name} of {where}" if where else self.name

    def _of_kind(self, text: bool, where: str) -> NumberIds | TextIds:
        if self._store is None:
            self._store, self._where = TextIds() if text else NumberIds(), where
        if text != isinstance(self._store, TextIds):
            one, two = ("numbers", "text") if text else ("text", "numbers")
            raise InvalidArgumentError(
                '{name} must be ids of one kind: {one} in {value}, {two} in {value2}, and 7 and "07" may be one '
                "person or two. {kinds}",
                name=self.name,
                one=Public(one),
                value=self._where or "one part",
                two=Public(two),
                value2=where or "another",
                kinds=Public(KINDS),
            )
        return self._store

    def _read(self, units: object, where: str, first: int) -> tuple[list[str] | Array, bool, Any]:
        """Return distinct ids or all of them, whether they are text, and which of them each record has."""
        units, codes = _used(units) if are_encoded(units) else (units, slice(None))
        whole = _whole_words(units)
        ids = self._plain(units, where, first) if whole is None else whole
        return ids, whole is not None or isinstance(ids, list), codes

    def _plain(self, units: object, where: str, first: int) -> list[str] | Array:
        """Return ids as text in a list, or whole numbers in an array, or say what is wrong with them."""
        name = self._of(where)

        def read() -> list[str] | Array:
            ids = as_sequence(units, name)
            if isinstance(ids, np.ndarray):
                if ids.ndim != 1:
                    raise InvalidArgumentError(
                        "{name} must be one id per record, got shape {shape}.",
                        name=Argument(name),
                        shape=Public(ids.shape),
                    )
                if ids.dtype.kind in "iu":
                    return ids
                if ids.dtype.kind == "f":
                    return whole_array(ids, name)
                ids = ids.tolist()
            if not ids:
                return np.empty(0, dtype=np.int64)
            if set(map(type, ids)) == {str}:
                return ids
            if are_text(ids, name):
                return [decoded(entry, i, name) for i, entry in enumerate(ids)]
            whole = numbers_of(ids, name)
            if min(whole) >= -(2**63) and max(whole) < 2**63:
                return np.array(whole, dtype=np.int64)
            return np.array(whole, dtype=object)

        return _located(read, first)


def unit_ids(units: object, n: int, name: str = "units") -> UnitIds:
    """Return the unit of each of n records, or say what is wrong with the ids.

    Whole numbers (Python's, numpy's; floats such as 3.0, which pandas makes of a column that once had gaps) or text
    (bytes are read as UTF-8), in a list, tuple, array, pandas Series, Index or Categorical, or pyarrow array.

    Letter case and leading zeros tell people apart: "Bob" and "bob" are two, "7" and "07" too. Two spellings are
    refused where they are the same once blanks are collapsed, characters that are not seen are dropped (zero width,
    soft hyphen, byte order mark, control characters) and characters are in their compatibility form (NFKC: accents,
    full width, ligatures, raised digits); and so are "7" and "7.0", which may be one person or two.

    Parameters
    ----------
    units : n ids
    n : the number of records
    name : what to call the argument in messages

    Examples
    --------
    >>> found = unit_ids(["bob", "ann", "bob"], 3)
    >>> found.names, found.group
    (['ann', 'bob'], array([1, 0, 1], dtype=int32))
    >>> unit_ids(["bob", None, "bob"], 3)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: units has a missing id at index 1. Give every record the id of its unit, or
    leave the record out.
    """
    ids = as_sequence(units, name)
    shape = np.shape(ids) if isinstance(ids, np.ndarray) else (len(ids),)
    if shape != (n,):
        raise InvalidArgumentError(
            "{name} must have shape ({n},), one id per record, got {shape}.",
            name=Argument(name),
            n=Public(n),
            shape=Public(shape),
        )
    group = np.empty(n, np.int32 if n < 2**31 else np.int64)
    parts = [slice(start, start + _BLOCK) for start in range(0, n, _BLOCK)]
    if n and isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
        low, high = int(ids.min()), int(ids.max())
        if high - low < max(_SHORT_TABLE, 2 * n):
            return _by_table(ids, low, high, group, parts)
    merged = MergedIds(name)
    size = max(_BLOCK, math.ceil(n / _BLOCKS))
    try:
        for start in range(0, n, size):
            group[start : start + size] = merged.add(ids[start : start + size], first=start)
    except InvalidArgumentError as problem:
        raise (_fault_of_all(ids, name) or problem) from None
    found = merged.sorted()
    for part in parts:
        group[part] = found.group[group[part]]
    return UnitIds(group, found.found)


def _fault_of_all(ids: list[Any] | Array, name: str) -> InvalidArgumentError | None:
    """Return what is wrong with ids by their places among all of them; None where nothing is but in a part."""
    try:
        if isinstance(ids, np.ndarray) and ids.dtype.kind == "f":
            whole_array(ids, name)
        elif not isinstance(ids, np.ndarray) or ids.dtype.kind in "OUST":
            refuse_faults(list(ids) if isinstance(ids, list) else ids.tolist(), name)
    except InvalidArgumentError as problem:
        return problem
    return None


def _by_table(ids: Array, low: int, high: int, group: Array, parts: Sequence[slice]) -> UnitIds:
    """Group whole numbers by a table of all numbers between the smallest and the largest, part by part."""
    seen = np.zeros(high - low + 1, dtype=bool)
    for part in parts:
        seen[_above(ids[part], low)] = True
    rank = np.cumsum(seen, dtype=group.dtype) - 1
    found = np.empty(int(rank[-1]) + 1, ids.dtype)
    for part in parts:
        group[part] = rank[_above(ids[part], low)]
        found[group[part]] = ids[part]
    return UnitIds(group, found)


def _above(ids: Array, low: int) -> IntArray:
    """Return ids less their smallest, which fits 64 bits although the ids themselves may not."""
    if ids.dtype.kind == "u":
        return np.asarray(ids - ids.dtype.type(low)).astype(np.int64)
    return np.asarray(ids.astype(np.int64) - low)


def _used(units: Any) -> tuple[Any, IntArray]:
    """Return the words that occur, and each record's place among them: a category that nobody has is nobody's id."""
    words, codes = units.dictionary, units.indices.to_numpy()
    occurs = np.bincount(codes, minlength=len(words)) > 0
    if occurs.all():
        return words, codes
    return words.take(np.flatnonzero(occurs)), (np.cumsum(occurs) - 1)[codes]


def _whole_words(units: Any) -> IntArray | None:
    """Return Arrow's text as numbers where every word is a whole number in the one way to write it; None where not."""
    if isinstance(units, Spelt):
        return units.numbers
    if str(getattr(units, "type", "")) not in ("string", "large_string") or not hasattr(units, "cast"):
        return None
    if units.null_count:  # a missing one is no number, and is refused by who looks at each
        return None
    try:
        numbers = units.cast("int64")
    except ValueError:  # what pyarrow raises for text that is no number
        return None
    return np.asarray(numbers) if numbers.cast(units.type).equals(units) else None


def _located(read: Callable[[], T], first: int) -> T:
    """Return what a function that knows nothing of what came before reads; indices in its errors count that too."""
    try:
        return read()
    except InvalidArgumentError as problem:
        moved = _moved(problem.message, first)
        raise InvalidArgumentError(moved.template, **moved.values) from None


def _moved(message: Message, first: int) -> Message:
    """Return a message whose indices are as much higher."""
    values = dict(message.values)
    for name, value in values.items():
        inner = value.value if isinstance(value, Public) else value
        if isinstance(inner, Message):
            values[name] = _moved(inner, first)
        elif name in ("start", "index") and isinstance(inner, int):
            values[name] = Public(inner + first)
    return Message(message.template, **values)


# A range of whole numbers for which a table is small enough: this one, or so many times the ids there are.
_SMALL_RANGE, _ROOMY = 4_194_304, 16

IntArray = npt.NDArray[np.int64]


class Spelt(NamedTuple):
    """Text that is whole numbers in the one way to write them."""

    numbers: IntArray


class AlikeError(Exception):
    """Two ids are spelt differently and look the same, or one says that there is none."""


class TextIds:
    """Text: by a table as long as every word is a whole number, else by a dictionary of the distinct spellings."""

    def __init__(self) -> None:
        # Whole numbers are looked up in a table, many times faster. Spellings are made when another word comes.
        self._whole, self._spelt = NumberIds(), False
        self._of_whole = np.empty(0, dtype=np.int64)  # the number of each of the table's, once there are spellings
        self._number: defaultdict[str, int] = defaultdict(count().__next__)  # a new one gets the next number
        self._keys: dict[str, int] = {}  # what two spellings of one id have in common
        # The table grows also where known ids are looked up, and threads of a later pass do so together.
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _texts_again, (list(self._number) if self._spelt else self._whole.distinct,)

    def copy(self) -> TextIds:
        """Return the same ids with the same numbers, to which more can be added."""
        other = TextIds()
        other._whole, other._spelt, other._of_whole = self._whole.copy(), self._spelt, self._of_whole
        other._number = defaultdict(count(len(self._number)).__next__, self._number)
        other._keys = dict(self._keys)
        return other

    def __len__(self) -> int:
        return len(self._number) if self._spelt else len(self._whole)

    @property
    def distinct(self) -> list[str] | Spelt:
        """The spellings, by number."""
        return list(self._number) if self._spelt else Spelt(self._whole.distinct)

    def numbers(self, ids: list[str] | IntArray) -> IntArray:
        """Return the number of each, after a look at those that are new; an array is of numbers that words spell."""
        if isinstance(ids, np.ndarray):
            with self._lock:
                found, known = self._whole.numbers(ids), len(self._of_whole)
                if not self._spelt:
                    return found
                if len(self._whole) > known:
                    fresh = self.numbers(list(map(str, self._whole.distinct[known:].tolist())))
                    self._of_whole = np.concatenate([self._of_whole, fresh])
                return np.asarray(self._of_whole[found])
        self._spell()
        before = len(self._number)
        found = np.fromiter(map(self._number.__getitem__, ids), dtype=np.int64, count=len(ids))
        if len(self._number) > before:
            for number, entry in enumerate(list(self._number)[before:] if before else self._number, start=before):
                key = key_of(entry)
                if says_missing(key) or self._keys.setdefault(key, number) != number:
                    raise AlikeError
        return found

    def _spell(self) -> None:
        """Go over to spellings; whole numbers keep their numbers. None of them is alike, or a word for none."""
        with self._lock:
            if self._spelt:
                return
            words = list(map(str, self._whole.distinct.tolist()))
            self._of_whole = np.arange(len(words), dtype=np.int64)
            self._keys = {word: number for number, word in enumerate(words)}
            for word in words:
                self._number[word]
            self._spelt = True

    def sorted(self) -> UnitIds:
        """Return the plain spellings in their order."""
        if not self._spelt:
            whole = self._whole.distinct
            order = np.argsort(whole.astype("S20"), kind="stable")  # no number of 64 bits is longer
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            return UnitIds(place, list(map(str, whole[order].tolist())))
        plain = [plain_of(entry) for entry in self._number]
        names = sorted(plain)
        place_of = {entry: i for i, entry in enumerate(names)}
        return UnitIds(np.fromiter(map(place_of.__getitem__, plain), dtype=np.int64, count=len(plain)), names)


def _texts_again(distinct: list[str] | IntArray) -> TextIds:
    store = TextIds()
    if isinstance(distinct, np.ndarray):
        store._whole = _numbers_again(distinct)
    else:
        store.numbers(distinct)
    return store


class NumberIds:
    """Whole numbers: by a table where their range is small, else by their place among the sorted ones."""

    def __init__(self) -> None:
        self._known = np.empty(0, dtype=np.int64)  # by number
        self._low = 0
        self._table: IntArray | None = np.empty(0, dtype=np.int64)  # the number of each from the lowest on, or -1
        self._order = np.empty(0, dtype=np.int64)  # without a table: numbers in the order of the ids

    def __reduce__(self) -> tuple[Any, ...]:
        return _numbers_again, (self._known,)  # a table may be many times as large

    def copy(self) -> NumberIds:
        """Return the same ids with the same numbers, to which more can be added."""
        return _numbers_again(self._known)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def distinct(self) -> Array:
        """The ids, by number."""
        return self._known

    def numbers(self, ids: Array) -> IntArray:
        """Return the number of each."""
        large = ids.dtype.kind == "O" or (ids.dtype == np.uint64 and int(ids.max()) >= 2**63)
        if large and self._known.dtype != object:  # whole numbers of Python's are of any size
            self._known, self._table = self._known.astype(object), None
            self._order = np.argsort(self._known, kind="stable")
        elif not large:
            ids = ids.astype(np.int64, copy=False)
        if self._table is not None and self._fits(ids):
            found = self._table[ids - self._low]
            if found.min() >= 0:
                return np.asarray(found)
            fresh = np.unique(ids[found < 0])
            self._table[fresh - self._low] = np.arange(len(self._known), len(self._known) + len(fresh))
            self._known = np.concatenate([self._known, fresh])
            return np.asarray(self._table[ids - self._low])
        if self._table is not None:
            self._order, self._table = np.argsort(self._known, kind="stable"), None
        found, group = np.unique(ids, return_inverse=True)
        found = found.astype(self._known.dtype, copy=False)
        place = np.searchsorted(self._known, found, sorter=self._order)
        inside = place < len(self._known)
        known = np.zeros(len(found), dtype=bool)
        known[inside] = self._known[self._order[place[inside]]] == found[inside]
        number = np.empty(len(found), dtype=np.int64)
        number[known] = self._order[place[known]]
        fresh = found[~known]
        number[~known] = np.arange(len(self._known), len(self._known) + len(fresh))
        if fresh.size:
            self._known = np.concatenate([self._known, fresh])
            self._order = np.insert(self._order, place[~known], number[~known])
        return np.asarray(number[group])

    def _fits(self, ids: Array) -> bool:
        """Return whether a table holds these, after making it larger if it is worth that."""
        assert self._table is not None
        low, high = int(ids.min()), int(ids.max())
        bottom, top = self._low, self._low + len(self._table) - 1
        if len(self._table) and bottom <= low and high <= top:
            return True
        if len(self._table):
            low, high = min(low, bottom), max(high, top)
        if high - low >= max(_SMALL_RANGE, _ROOMY * (len(self._known) + len(ids))):
            return False
        # Half as much again at the end that grew, so that growing costs little on the whole.
        more = (high - low + 1) // 2 if len(self._table) else 0
        grown_down, grown_up = len(self._table) and low < bottom, len(self._table) and high > top
        start = max(low - (more if grown_down else 0), -(2**63))
        end = min(high + (more if grown_up else 0), 2**63 - 1)
        table = np.full(end - start + 1, -1, dtype=np.int64)
        table[bottom - start : bottom - start + len(self._table)] = self._table
        self._low, self._table = start, table
        return True

    def sorted(self) -> UnitIds:
        """Return the ids in their order."""
        order = np.argsort(self._known, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        found = self._known[order]
        return UnitIds(place, found.tolist() if found.dtype == object else found)


def _numbers_again(known: Array) -> NumberIds:
    """Return ids with the numbers they had: their places."""
    store = NumberIds()
    if len(known) and not (known.dtype == np.int64 and store._fits(known)):
        store._known, store._table = known, None
        store._order = np.argsort(known, kind="stable")
    elif len(known):
        assert store._table is not None
        store._known = known
        store._table[known - store._low] = np.arange(len(known))
    return store
