"""Covariance descriptors of images on a card, or of images that are sent there in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg.cards.arrays import CardArray, host_room, is_card_array
from dpmanifold.linalg.cards.modules import Kernel, kernel, largest_shared
from dpmanifold.linalg.cards.presence import cupy_module, failures_told
from dpmanifold.linalg.cards.streaming import BLOCK_BYTES, Slot, in_flight, is_pinned
from dpmanifold.linalg.native.library import ImageArguments

# Types of pixels, by the kernel's numbers.
KINDS = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))

# Pixels beyond the border on both sides of an image, and bytes that a kernel may share for its own ends.
_BORDER, _OWN = 4, 8192


def fits(images: Array | CardArray) -> bool:
    """Return whether the gray image behind a descriptor fits the shared memory of a block of the card in use."""
    with failures_told(), _card_of(images):
        return _shared(images.shape) + _OWN <= largest_shared()


def describe(images: Array | CardArray, eta: float, columns: FloatArray, rows: FloatArray) -> FloatArray:
    """Return covariance descriptors of images that were checked and that :func:`fits` lets through."""
    with failures_told(), _card_of(images):
        return _Describing(images, eta, columns, rows).run()


def outside(images: CardArray) -> Array:
    """Return which images on a card have numbers outside [0, 1], or none; a boolean each, on the host."""
    with failures_told(), images.array.device:
        axes = tuple(range(1, images.ndim))
        # NaN passes through min and max, and fails both comparisons.
        least, most = images.array.min(axis=axes), images.array.max(axis=axes)
        return np.asarray((~((least >= 0) & (most <= 1))).get())


def _shared(shape: tuple[int, ...]) -> int:
    return 8 * (shape[1] + _BORDER) * (shape[2] + _BORDER)


def _card_of(images: Array | CardArray) -> Any:
    return images.array.device if is_card_array(images) else cupy_module().cuda.Device()


class _Describing:
    """What all blocks of images share."""

    def __init__(self, images: Array | CardArray, eta: float, columns: FloatArray, rows: FloatArray) -> None:
        cupy = cupy_module()
        self._images, self._eta = images, eta
        self._columns, self._rows = cupy.asarray(columns), cupy.asarray(rows)
        self._channels = 1 if images.ndim == 3 else 3
        self._kind = KINDS.index(images.dtype)
        settings = {"DPM_CHANNELS": self._channels, "DPM_KIND": self._kind}
        self._kernel: Kernel = kernel("card_images.cu", "dpm_card_describe", settings, _shared(images.shape))
        self._pinned = is_pinned(images)
        size = 9 if self._channels == 1 else 11
        self._out = host_room((len(images), size, size))

    def run(self) -> FloatArray:
        """Start all blocks and fetch the descriptors."""
        images = self._images
        if len(images):
            each = images.dtype.itemsize * int(np.prod(images.shape[1:])) + 8 * self._out[0].size
            in_flight(
                len(images), max(1, BLOCK_BYTES // each), cupy_module().cuda.get_current_stream(), self._start
            )  # fmt: skip
        return self._out

    def _start(self, slot: Slot, rows: slice) -> None:
        images, n = self._images, rows.stop - rows.start
        if is_card_array(images):
            pixels = cupy_module().ascontiguousarray(images.array[rows])
        else:
            pixels = slot.sent("pixels", images[rows], self._pinned)
        there = slot.there("out", (n, *self._out.shape[1:]))
        arguments = ImageArguments(
            pixels=pixels.data.ptr,
            n=n,
            height=images.shape[1],
            width=images.shape[2],
            channels=self._channels,
            kind=self._kind,
            eta=self._eta,
            columns=self._columns.data.ptr,
            rows=self._rows.data.ptr,
            out=there.data.ptr,
        )
        self._kernel.start(n, arguments)
        slot.bring("out", there, self._out, rows)


__all__ = ["KINDS", "describe", "fits", "outside"]
