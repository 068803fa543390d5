"""Going through data that are larger than memory, a block at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sized

import numpy as np

from dpmanifold._check import Array, FloatArray, positive_int, shown
from dpmanifold.data import descriptors
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public

# Bytes of images in memory at once; large enough that the steps between blocks cost nothing.
_BLOCK_BYTES = 2**24


def iter_blocks(array: Sized, size: int) -> Iterator[slice]:
    """Yield slices that cut `array` into blocks of `size` records, the last one shorter.

    Slices rather than parts, so that images, labels and a result can be cut alike.

    Examples
    --------
    >>> for part in iter_blocks(range(5), 2):
    ...     print(part.start, part.stop)
    0 2
    2 4
    4 5
    """
    size = positive_int(size, "size")
    total = len(array)
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def descriptors_in_blocks(
    images: Array,
    eta: float = 1e-6,
    progress: Callable[[int], object] | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """Return what `covariance_descriptors(images, eta)` returns, to the last bit, without having all images in memory.

    Parameters
    ----------
    images : (n, h, w) or (n, h, w, 3): an array, a memory map such as `load_images` returns, or anything with a shape
        whose slices are arrays
    eta : as for `covariance_descriptors`
    progress : called after every block with the number of images done so far
    out : float64 array (n, 9, 9) or (n, 11, 11) to fill instead of a new one; descriptors of small images are as large
        as the images, so this may be a memory map too (`np.lib.format.open_memmap`)

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)
    >>> R = descriptors_in_blocks(images, eta=1e-3, progress=print)
    40
    >>> bool((R == descriptors.covariance_descriptors(images, eta=1e-3)).all())
    True
    """
    shape = tuple(getattr(images, "shape", ()))
    if not shape:
        raise InvalidArgumentError("images must be an array or a memory map, got {got}.", got=shown(images))
    if progress is not None and not callable(progress):
        raise InvalidArgumentError(
            "progress must be a function of the number of images done, got {got}.", got=shown(progress)
        )
    # An empty block is refused for its dtype, its shape and eta like a full one.
    empty = descriptors.covariance_descriptors(images[:0], eta)
    result = _checked_out(out, (shape[0], *empty.shape[1:]))
    for part in iter_blocks(images, _block_size(shape, empty.shape[1])):
        try:
            result[part] = descriptors.covariance_descriptors(images[part], eta)
        except InvalidDataError as problem:
            raise InvalidDataError(
                "among the images from index {start} on, counted from 0 there: {problem}",
                start=Public(part.start),
                problem=problem,
            ) from None
        if progress is not None:
            progress(part.stop)
    return result


def _block_size(shape: tuple[int, ...], size: int) -> int:
    """Return how many images make a block: about 16 MB, and whole chunks of `covariance_descriptors`.

    Its rounding may depend on which images share a chunk; with whole chunks they are the same as without blocks.
    """
    chunk = max(1, descriptors.CHUNK_VALUES // (size * shape[1] * shape[2]))
    image = 8 * math.prod(shape[1:])
    return chunk * max(1, _BLOCK_BYTES // (image * chunk))


def _checked_out(out: FloatArray | None, shape: tuple[int, ...]) -> FloatArray:
    """Return the array to fill."""
    if out is None:
        return np.empty(shape)
    if not (isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == shape and out.flags.writeable):
        raise InvalidArgumentError(
            "out must be a writable float64 array of shape {shape}, got {got}.", shape=Public(shape), got=shown(out)
        )
    return out


__all__ = ["descriptors_in_blocks", "iter_blocks"]
