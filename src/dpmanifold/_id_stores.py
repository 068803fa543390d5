"""Distinct ids with a number each, in two kinds: whole numbers, and text. What :class:`MergedIds` keeps.

They know nothing of pieces and refuse nothing but text that looks like other text.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array
from dpmanifold._ids import UnitIds, key_of, plain_of, says_missing

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
        other._number.update(self._number)
        other._number.default_factory = count(len(self._number)).__next__
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
        if ids.dtype == np.uint64 and int(ids.max()) >= 2**63:
            ids = ids.astype(object)  # whole numbers of Python's are of any size
        elif ids.dtype.kind != "O":
            ids = ids.astype(np.int64, copy=False)
        if ids.dtype != self._known.dtype:
            ids, self._known, self._table = ids.astype(object), self._known.astype(object), None
            self._order = np.argsort(self._known, kind="stable")
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


__all__ = ["AlikeError", "IntArray", "NumberIds", "Spelt", "TextIds"]
