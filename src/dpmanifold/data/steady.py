"""What is computed anew each time it is read, a query or a function's blocks, must give the same records again."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dpmanifold._check import Array
from dpmanifold.data.pieces import Beside, RowsPiece
from dpmanifold.data.rows import Places, Rows
from dpmanifold.errors import SourceChangedError
from dpmanifold.sources import Block

_WORDS = np.uint64


class SteadyPiece(RowsPiece):
    """A piece that remembers what it read first: how many records, and their numbers added up.

    Later passes must give the same ones, or the statistic is none of any data. The sum is of the numbers' bits, modulo
    2^64; it tells by all odds where records were changed, and is no proof. The order may be another one, unless ids or
    classes stand in an array beside the records: then records in another order are other people's.

    Attributes
    ----------
    seen : that count and sum; an engine brings it back from a worker that read a copy of the piece
    """

    def __init__(
        self, name: str, places: Places, beside: Beside, start: int | None = 0, rows: int | None = None
    ) -> None:
        super().__init__(name, places, beside, start, rows)
        self.seen: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def cut(self, parts: Iterable[Rows], beside: Beside | None = None) -> Iterator[Block]:
        """Yield blocks, and refuse to end where they were others before."""
        count, total = 0, 0
        in_order = self.beside.units is not None or self.beside.labels is not None
        for block in super().cut(parts, beside):
            total = (total + _sum_of_bits(block.records, count if in_order else None)) % 2**64
            count += len(block.records)
            yield block
        with self._lock:
            before, self.seen = self.seen, (count, total)
        if before not in (None, (count, total)):
            raise SourceChangedError(
                "{name} gave other records than when it was read before. Take a copy of what it reads, or make it "
                "give the same ones each time: no sampling, no live tables; and in the same order, where ids "
                "stand beside them.",
                name=self.name,
            )


def _sum_of_bits(records: Array, first: int | None) -> int:
    """Return the sum of the records' words, modulo 2^64; times odd numbers by their places, where `first` is one."""
    if records.dtype.kind == "O":  # records of several shapes
        digests = [hashlib.sha256(b"" if record is None else record.tobytes()).digest()[:8] for record in records]
        records = np.frombuffer(b"".join(digests), dtype=_WORDS)
    words = np.ascontiguousarray(records).view(_WORDS)
    if first is None:
        return int(words.sum(dtype=_WORDS))
    sums = words.reshape(len(records), -1).sum(axis=1, dtype=_WORDS)
    return int((sums * (2 * np.arange(first, first + len(records), dtype=_WORDS) + _WORDS(1))).sum(dtype=_WORDS))


__all__ = ["SteadyPiece"]
