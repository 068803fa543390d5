"""Who owns which record where records come in pieces: ids are numbered as they come, and pieces agree on who is who.

What :mod:`dpmanifold._ids` refuses within one array is refused across pieces as well: ids of two kinds, and text that
differs only in what nobody sees. Messages name a piece and an index in it, and never an id. Memory is for the distinct
ids alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from dpmanifold._check import Array
from dpmanifold._id_stores import AlikeError, IntArray, NumberIds, Spelt, TextIds
from dpmanifold._ids import (
    KINDS,
    LOOK_ALIKE,
    UnitIds,
    are_text,
    as_sequence,
    decoded,
    numbers_of,
    unit_ids,
    whole_array,
)
from dpmanifold.errors import Argument, InvalidArgumentError, Message, Public, SourceChangedError

T = TypeVar("T")


class MergedIds:
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

    def __repr__(self) -> str:
        return "MergedIds()"

    def add(self, units: object, where: str = "", first: int = 0) -> IntArray:
        """Return the number of each record's id, (m,); new ids get the next numbers.

        Parameters
        ----------
        units : ids of records that come together
        where : the piece they are in, for messages
        first : the index there of the first one
        """
        if _is_encoded(units):
            words, codes = _used(units)
            return self.add(words, where, first)[codes]
        whole = _whole_words(units)
        ids = self._read(units, where, first) if whole is None else whole
        if isinstance(ids, np.ndarray) and ids.size == 0:
            return np.empty(0, dtype=np.int64)
        store = self._of_kind(whole is not None or isinstance(ids, list), where)
        try:
            return store.numbers(ids)  # type: ignore[arg-type]
        except AlikeError:
            ids = ids if whole is None else list(map(str, whole.tolist()))
            _located(lambda: unit_ids(ids, len(ids), self._of(where)), first)  # says where, if it is in these alone
            raise InvalidArgumentError(
                "{of} has an id that differs from one in another part of the records {look_alike}",
                of=self._of(where),
                look_alike=Public(LOOK_ALIKE),
            ) from None

    def find(self, units: object, where: str = "", first: int = 0) -> IntArray:
        """Return the number of each record's id, all of which are known: else the source has changed."""
        if _is_encoded(units):
            words, codes = _used(units)
            return self.find(words, where, first)[codes]
        whole = _whole_words(units)
        ids = self._read(units, where, first) if whole is None else whole
        known, text = len(self), whole is not None or isinstance(ids, list)
        try:
            found = self._of_kind(text, where).numbers(ids) if len(ids) else np.empty(0, np.int64)  # type: ignore[arg-type]
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
            return UnitIds(np.empty(0, dtype=np.int64), [])
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

    def _read(self, units: object, where: str, first: int) -> list[str] | Array:
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


def _is_encoded(units: object) -> bool:
    """Return whether ids come as distinct ones and places among them, none missing, as readers of files have them."""
    encoded = hasattr(units, "dictionary") and hasattr(units, "indices")
    return encoded and units.null_count == 0 and units.dictionary.null_count == 0  # type: ignore[attr-defined]


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


__all__ = ["MergedIds"]
