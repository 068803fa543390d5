"""One pass of the CUDA kernels over a batch of symmetric matrices: on a card, or sent there in blocks.

What a pass does, takes and returns is said in :mod:`dpmanifold.linalg.native.passes`. A matrix gets the same bits alone
and in any batch or block, and sums are of integers: neither the blocks nor where the matrices came from leave a trace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg.cards.arrays import CardArray, host_room, is_card_array, on_host
from dpmanifold.linalg.cards.modules import kernel
from dpmanifold.linalg.cards.presence import cupy_module, failures_told
from dpmanifold.linalg.cards.streaming import BLOCK_BYTES, Slot, in_flight, is_pinned
from dpmanifold.linalg.exact_sums import ExactSum, IntArray
from dpmanifold.linalg.native.library import PassArguments
from dpmanifold.linalg.native.passes import FAULTS, NOTHING, ZERO, Outcome

# Bits of DPM_WHAT: what a kernel is compiled for. Nothing else is looked at.
FACTOR, LOWER, CENTER, MATRICES, COORDINATES, NORMS, WORDS, CODES = (1 << bit for bit in range(8))
TRIANGLES, INSPECT, POWERS, MOVED, RADIUS = (1 << bit for bit in range(8, 13))


@dataclass(frozen=True)
class Asked:
    """What is asked of a pass; as in :func:`dpmanifold.linalg.native.passes.run`."""

    x: FloatArray | CardArray
    n: int
    k: int
    function: int
    condition: float
    factor: FloatArray | None
    lower: bool
    power: int
    powers: IntArray | None
    center: FloatArray | None
    radius: float
    tolerance: float | None
    rows: IntArray | None
    group: IntArray | None
    sums: ExactSum | None
    moved: FloatArray | CardArray | None
    places: IntArray | None
    matrices: bool
    coordinates: bool
    norms: bool

    @property
    def size(self) -> int:
        """Entries of a packed triangle."""
        return self.k * (self.k + 1) // 2

    @property
    def what(self) -> int:
        """The kernel's bits."""
        bits = {
            FACTOR: self.factor is not None,
            LOWER: self.factor is not None and self.lower,
            CENTER: self.center is not None,
            MATRICES: self.matrices,
            COORDINATES: self.coordinates,
            NORMS: self.norms,
            WORDS: self.sums is not None,
            CODES: self.group is not None,
            TRIANGLES: self.x.ndim == 2,
            INSPECT: self.tolerance is not None,
            POWERS: self.powers is not None,
            MOVED: self.moved is not None,
            RADIUS: math.isfinite(self.radius),
        }
        return sum(bit for bit, there in bits.items() if there)


def run(asked: Asked) -> Outcome:
    """Run a pass where the matrices lie, or send them to the card that is in use."""
    with failures_told(), _card_of(asked):
        return _Pass(asked).run()


def longest_norm(asked: Asked) -> tuple[float, npt.NDArray[np.intp]]:
    """Return the longest of all norms, which are not fetched, and the marked matrices, which are left out of it."""
    with failures_told(), _card_of(asked):
        return _Pass(asked, longest=True).longest()


def _card_of(asked: Asked) -> Any:
    """Return the card to work on: where the matrices are, or the triangles that are made of them."""
    for array in (asked.x, asked.moved):
        if is_card_array(array):
            return array.array.device
    return cupy_module().cuda.Device()


class _Pass:
    """What all blocks of a pass share: on the card, sums and counts; on the host, room for what is fetched."""

    def __init__(self, asked: Asked, longest: bool = False) -> None:
        cupy = self._cupy = cupy_module()
        self.asked = asked
        self._factor, self._center, self._powers = (
            None if a is None else cupy.asarray(a) for a in (asked.factor, asked.center, asked.powers)
        )
        self.home = asked.moved is not None and not is_card_array(asked.moved)
        fetches = asked.matrices or asked.coordinates or (asked.norms and not longest) or self.home
        self._blocked = fetches or not (is_card_array(asked.x) and asked.x.is_plain)
        # In blocks, rows are gathered on the way; triangles that stay on the host are put in their places there. The
        # kernel is the same: one that was compiled for something else might round differently.
        settings = {"DPM_K": asked.k, "DPM_FUNCTION": asked.function, "DPM_WHAT": asked.what}
        self._kernel = kernel("card.cu", "dpm_card_pass", settings)
        # Without groups all is added to the first.
        groups = 0 if asked.sums is None else 1 if asked.group is None else asked.sums.groups
        self._shape = (self._kernel.copies, groups, 2, asked.size)
        # How many are marked and clipped, and the sums: all that is added up, fetched at once.
        self._added = cupy.zeros(2 + math.prod(self._shape), dtype=np.int64)
        self._status = cupy.empty(asked.n, dtype=np.uint8)

    def run(self) -> Outcome:
        """Start all blocks and fetch what they found."""
        asked, n, k = self.asked, self.asked.n, self.asked.k
        wanted = (
            ("matrices", (n, k, k), asked.matrices),
            ("coordinates", (n, asked.size), asked.coordinates),
            ("norms", (n,), asked.norms),
        )
        rooms = {name: host_room(shape) for name, shape, is_wanted in wanted if is_wanted}
        if self._blocked:
            _Blocks(self, rooms).run()
        else:
            self._all_at_once()
        return Outcome(rooms.get("matrices"), rooms.get("coordinates"), rooms.get("norms"), *self._finished())

    def longest(self) -> tuple[float, npt.NDArray[np.intp]]:
        """Start one block of all matrices, and look for the longest norm on the card."""
        norms = self._all_at_once()
        norms[self._status != 0] = 0.0
        return float(norms.max()), self._finished()[0]

    def _all_at_once(self) -> Any:
        asked, cupy = self.asked, self._cupy
        assert is_card_array(asked.x)
        codes, rows, places = (None if a is None else cupy.asarray(a) for a in (asked.group, asked.rows, asked.places))
        norms = cupy.empty(asked.n) if asked.norms else None
        moved = asked.moved.array if is_card_array(asked.moved) else None
        self.start(
            asked.x.array,
            slice(0, asked.n),
            codes=codes,
            rows=rows,
            moved=moved,
            places=places,
            norms=norms,
        )
        # Not before the kernel is done may anybody have the memory that was made for it.
        cupy.cuda.get_current_stream().synchronize()
        return norms

    def start(self, x: Any, rows_done: slice, **arrays: Any) -> None:
        """Start the kernel for some rows, whose matrices are `x`; `arrays` are fields of the pass, by name."""
        asked = self.asked
        n = rows_done.stop - rows_done.start
        named = {name: array.data.ptr for name, array in arrays.items() if array is not None}
        arguments = PassArguments(
            x=x.data.ptr,
            n=n,
            k=asked.k,
            function=asked.function,
            factor_is_lower=asked.lower,
            factor=_address(self._factor),
            center=_address(self._center),
            power=asked.power,
            radius=asked.radius,
            status=self._status.data.ptr + rows_done.start,
            inspect=asked.tolerance is not None,
            triangles=asked.x.ndim == 2,
            tolerance=0.0 if asked.tolerance is None else asked.tolerance,
            powers=_address(self._powers),
            words=None if asked.sums is None else _address(self._added[2:]),
            fixed=0.0 if asked.sums is None else math.ldexp(1.0, asked.sums.shift),
            counts=self._added.data.ptr,
            **named,
        )
        self._kernel.start(n, arguments, np.float64(asked.condition))

    def _finished(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.uint8] | CardArray, int | None]:
        """Add the sums on the host; returns which matrices are marked, the status, and how many are clipped.

        The status stays on the card where no matrix is marked: how many are clipped is often all that is asked.
        """
        added = self._added.get()
        marked, clips = added[:2].tolist()
        if self.asked.sums is not None:
            words = added[2:].reshape(self._shape).sum(axis=0)
            self.asked.sums.words[: len(words)] += words
        if marked:
            status = on_host(self._status)
            return np.flatnonzero(status & FAULTS), status, None
        # A single zero, however many: memory that has to be cleared first would take longer than some passes.
        return NOTHING, CardArray(self._status) if clips else np.broadcast_to(ZERO, (self.asked.n,)), clips


def _address(array: Any) -> int | None:
    return None if array is None else int(array.data.ptr)


class _Blocks:
    """A pass in blocks: over matrices that are sent to the card, made plain there, or whose results are fetched."""

    def __init__(self, whole: _Pass, rooms: dict[str, Array]) -> None:
        self._whole, self._asked, self._rooms = whole, whole.asked, rooms
        asked = self._asked
        self._pinned = asked.rows is None and is_pinned(asked.x)

    def run(self) -> None:
        """Start all blocks, and wait for them."""
        asked = self._asked
        fetched = asked.k**2 * asked.matrices + asked.size * (asked.coordinates + self._whole.home) + asked.norms
        # What lies on the card needs no room; smaller blocks are then fetched sooner.
        there = is_card_array(asked.x) and asked.x.is_plain and asked.rows is None
        step = max(1, BLOCK_BYTES // (16 * fetched) if there else BLOCK_BYTES // (8 * (asked.k**2 + fetched)))
        in_flight(asked.n, step, cupy_module().cuda.get_current_stream(), self._start)

    def _start(self, slot: Slot, rows: slice) -> None:
        asked, n = self._asked, rows.stop - rows.start
        outputs = {name: slot.there(name, (n, *out.shape[1:])) for name, out in self._rooms.items()}
        arrays = dict(outputs)
        if asked.group is not None:
            arrays["codes"] = slot.sent("codes", asked.group[rows if asked.rows is None else asked.rows[rows]], False)
        if is_card_array(asked.moved):
            if asked.places is None:
                arrays["moved"] = asked.moved.array[rows]
            else:
                arrays["moved"] = asked.moved.array
                arrays["places"] = slot.sent("places", asked.places[rows], False)
        elif self._whole.home:
            arrays["moved"] = slot.there("moved", (n, asked.size))
        self._whole.start(self._matrices(slot, rows), rows, **arrays)
        for name, there in outputs.items():
            slot.bring(name, there, self._rooms[name], rows)
        if self._whole.home:
            assert isinstance(asked.moved, np.ndarray)
            slot.bring("moved", arrays["moved"], asked.moved, rows if asked.places is None else asked.places[rows])

    def _matrices(self, slot: Slot, rows: slice) -> Any:
        """Return the matrices of some rows as the kernel reads them, on the card."""
        asked, cupy = self._asked, cupy_module()
        if not is_card_array(asked.x):
            return slot.sent("x", asked.x[rows if asked.rows is None else asked.rows[rows]], self._pinned)
        chosen = rows if asked.rows is None else slot.sent("rows", asked.rows[rows], False)
        return cupy.ascontiguousarray(asked.x.array[chosen], dtype=np.float64)


__all__ = ["Asked", "longest_norm", "run"]
