"""Images and labels in the idx format of MNIST, plain or gzipped."""

from __future__ import annotations

import gzip
import math
import pathlib
import struct
import zlib

import numpy as np

from dpmanifold._check import Array
from dpmanifold.data._files import Stream, bad_file, plausible_size, read_exactly
from dpmanifold.errors import Public

_UNSIGNED_BYTES = 8
_OTHER_TYPES = {9: "int8", 11: "int16", 12: "int32", 13: "float32", 14: "float64"}
_PICKLE = 0x80
_MOST_AXES = 4
_SIZE_FAULT = "its length does not agree with the sizes in its header: it is cut off or damaged. Download it again."


def read_idx(path: pathlib.Path) -> Array:
    """Return the bytes of an idx file with the shape its header states; a memory map unless it is gzipped.

    Everything the header says is held against the length of the file before memory is asked for.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train-labels-idx1-ubyte")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    ...     print(read_idx(path))
    [7 2 1]
    """
    try:
        if path.suffix.lower() != ".gz":
            with path.open("rb") as stream:
                shape = _read_shape(stream, path)
                start = stream.tell()
            size = math.prod(shape)
            if start + size != path.stat().st_size:
                raise bad_file(path, _SIZE_FAULT)
            return np.memmap(path, np.uint8, mode="r", offset=start, shape=shape) if size else np.empty(shape, np.uint8)
        with gzip.open(path, "rb") as packed:
            shape = _read_shape(packed, path)
            size = math.prod(shape)
            values = read_exactly(packed, size) if plausible_size(size, path.stat().st_size) else None
    except (OSError, EOFError, zlib.error):
        raise bad_file(path, "it cannot be unpacked: it is cut off or damaged. Download it again.") from None
    if values is None:
        raise bad_file(path, _SIZE_FAULT)
    return values.reshape(shape)


def _read_shape(stream: Stream, path: pathlib.Path) -> tuple[int, ...]:
    """Read the header: two zeros, a type, the number of axes, and their lengths."""
    magic = stream.read(4)
    if magic[:1] == bytes([_PICKLE]):
        raise bad_file(
            path,
            "it is a Python pickle, which is never opened because that could run any program. "
            "CIFAR-10 also comes as a binary version (.bin).",
        )
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in (_UNSIGNED_BYTES, *_OTHER_TYPES):
        raise bad_file(
            path,
            "it does not begin like an idx file (0, 0, type, axes). Images are read from idx, .npy, .npz, CIFAR-10's "
            ".bin and folders of PNG or JPEG files.",
        )
    if magic[2] in _OTHER_TYPES:
        raise bad_file(
            path,
            "it holds {other_types}, and only unsigned bytes are read. Convert it to .npy.",
            other_types=Public(_OTHER_TYPES[magic[2]]),
        )
    axes = magic[3]
    if not 1 <= axes <= _MOST_AXES:
        raise bad_file(path, "it has {axes} axes; images have 3 or 4, labels 1. Convert it to .npy.", axes=Public(axes))
    lengths = stream.read(4 * axes)
    if len(lengths) < 4 * axes:
        raise bad_file(path, _SIZE_FAULT)
    return struct.unpack(f">{axes}I", lengths)
