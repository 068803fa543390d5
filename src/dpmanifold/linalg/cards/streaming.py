"""Blocks on their way to a card and back: while one is worked on, the next is sent and the last one fetched."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from dpmanifold._check import Array
from dpmanifold.linalg.cards.arrays import host_room
from dpmanifold.linalg.cards.presence import cupy_module

# Bytes of a block: large enough for the bus's full speed, small enough that the first and the last hardly count.
BLOCK_BYTES = 2**26

# Blocks on their way at a time: one is sent, one worked on, one fetched.
IN_FLIGHT = 3

# A single thread copies at a fraction of the memory's speed; pieces smaller than this are not worth another one.
_COPIERS, _PIECE_BYTES = 4, 2**22

# CUDA's number for host memory that cannot be moved: the card reads it without help.
_PINNED = 1


class Slot:
    """What one block in flight needs: a stream, and memory on both sides that is used again.

    Parameters
    ----------
    copiers : threads that copy on the host
    home : the stream whose memory on the card is taken; CuPy keeps it for the next call, and that of no new stream
    """

    def __init__(self, copiers: ThreadPoolExecutor, home: Any) -> None:
        self._copiers, self._home = copiers, home
        self.stream = cupy_module().cuda.Stream(non_blocking=True)
        self._here: dict[str, Array] = {}
        self._there: dict[str, Any] = {}
        self._reached: dict[str, bool] = {}
        self._later: list[Callable[[], None]] = []

    def there(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
        """Return room on the card; the same for every block."""
        size = int(np.prod(shape, dtype=np.int64))
        if name not in self._there or self._there[name].size < size:
            with self._home:
                self._there[name] = cupy_module().empty(size, dtype=dtype)
            # Another thread may have given it back to the home stream with work on it still to do.
            self.stream.wait_event(self._home.record())
        return self._there[name][:size].reshape(shape)

    def here(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
        """Return pinned room on the host; the same for every block."""
        size = int(np.prod(shape, dtype=np.int64))
        if name not in self._here or self._here[name].size < size:
            self._here[name] = host_room((size,), dtype)
        return self._here[name][:size].reshape(shape)

    def sent(self, name: str, block: Array, pinned: bool) -> Any:
        """Return a block of the host on the card, once it arrives there; copied first where it is not pinned."""
        if not pinned:
            held = self.here(name, block.shape, block.dtype)
            _copied(block, held, self._copiers)
            block = held
        room = self.there(name, block.shape, block.dtype)
        room.set(block, stream=self.stream)
        return room

    def bring(self, name: str, there: Any, out: Array, places: slice | Array) -> None:
        """Fetch what is on the card into some places of an array here, once it is made: one array for each name."""
        if name not in self._reached:  # the same array for every block
            self._reached[name] = isinstance(places, slice) and is_pinned(out)
        if self._reached[name]:
            there.get(stream=self.stream, out=out[places], blocking=False)
            return
        held = self.here(name, there.shape, there.dtype)
        there.get(stream=self.stream, out=held, blocking=False)

        def put() -> None:
            if isinstance(places, slice):
                _copied(held, out[places], self._copiers)
            else:
                out[places] = held

        self._later.append(put)

    def done(self) -> None:
        """Wait until the block is done, and do what was left for then."""
        self.stream.synchronize()
        later, self._later = self._later, []
        for step in later:
            step()


def in_flight(n: int, step: int, after: Any, work: Callable[[Slot, slice], None]) -> None:
    """Let `work` start every block of rows under the stream of its slot; all of them are done at the end.

    Parameters
    ----------
    n : how many rows there are
    step : how many go together
    after : a stream: what it was asked for comes first
    work : starts one block
    """
    ready = after.record()
    with ThreadPoolExecutor(_COPIERS) as copiers:  # no thread is started before one is needed, and none is left
        slots = [Slot(copiers, after) for _ in range(min(IN_FLIGHT, -(-n // step)))]
        try:
            for slot in slots:
                slot.stream.wait_event(ready)
            for number, start in enumerate(range(0, n, step)):
                slot = slots[number % len(slots)]
                slot.done()
                with slot.stream:
                    work(slot, slice(start, min(start + step, n)))
            for slot in slots:
                slot.done()
        finally:
            for slot in slots:  # whatever happened: nothing may go on writing to memory that others are given
                slot.stream.synchronize()


def is_pinned(array: object) -> bool:
    """Return whether a card can read an array of the host without help, from its first byte to its last."""
    if not isinstance(array, np.ndarray) or array.size == 0:
        return False
    runtime = cupy_module().cuda.runtime
    first = int(array.__array_interface__["data"][0])
    try:
        return all(
            int(runtime.pointerGetAttributes(place).type) == _PINNED for place in (first, first + array.nbytes - 1)
        )
    except Exception:  # old drivers refuse memory that they do not know
        return False


def _copied(block: Array, held: Array, copiers: ThreadPoolExecutor) -> None:
    """Copy a block by several threads, where it is large."""
    pieces = min(_COPIERS, block.nbytes // _PIECE_BYTES, len(block))
    if pieces < 2:
        np.copyto(held, block)
        return
    step = -(-len(block) // pieces)
    parts = [slice(start, start + step) for start in range(0, len(block), step)]
    list(copiers.map(lambda rows: np.copyto(held[rows], block[rows]), parts))


__all__ = ["BLOCK_BYTES", "IN_FLIGHT", "Slot", "in_flight", "is_pinned"]
