"""The numbers of an image's voxels, read from a NIfTI file some voxels at a time. Needs nibabel: the extra "nifti".

nibabel reads the header. The numbers are read here, so that memory is bounded whatever the image: a file holds one
volume after the other, and a voxel is made of all of them. What is compressed can only be read from front to back: if
it is large every volume gets a reader of its own, and none of them ever goes back.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import pathlib
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._extras import optional_module
from dpmanifold.data._files import PathLike, bad_file, checked_file, in_words, plausible_size, unknown_format
from dpmanifold.errors import Public

SUFFIXES = (".nii", ".nii.gz")
SYMMETRIC = 1005  # NIFTI_INTENT_SYMMATRIX: the lower triangle, row by row

# Voxels that are read together: about 5 MB as matrices.
_VOXELS = 65_536
# A compressed image of at most so many bytes is unpacked once, into memory.
_UNPACKED = 64 * 2**20
_BITE = 2**20
_DAMAGED = "it is damaged, incomplete or not NIfTI. Copy or write it again."


class Voxels:
    """An image whose header was read: a grid of voxels, and the same count of numbers in each. It can be pickled.

    Attributes
    ----------
    path : where it lies
    shape : of the image, all axes
    grid : the first three of them, of the voxels
    volumes : how many numbers a voxel has
    symmetric : whether the header says that they are symmetric matrices
    """

    def __init__(self, path: PathLike) -> None:
        self.path = checked_file(path)
        image = _opened(self.path)
        self.shape: tuple[int, ...] = tuple(map(int, image.shape))
        self.grid = self.shape[:3]
        self.volumes = math.prod(self.shape[3:])
        self.symmetric = int(image.header["intent_code"]) == SYMMETRIC
        stored = image.dataobj
        self._dtype = np.dtype(stored.dtype)
        self._start, self._slope, self._shift = int(stored.offset), float(stored.slope), float(stored.inter)
        self._packed = self.path.name.lower().endswith(".gz")
        self._check()

    def __len__(self) -> int:
        """Return how many voxels there are."""
        return math.prod(self.grid)

    def blocks(self, size: int = _VOXELS) -> Iterator[FloatArray]:
        """Yield the numbers (m, volumes) of at most `size` voxels at a time, scaled as the header says.

        Voxels come in the order of the file: the first axis fastest.
        """
        with contextlib.ExitStack() as opened:
            readers = self._readers(opened)
            for first in range(0, len(self), size):
                count = min(size, len(self) - first)
                values = np.empty((count, self.volumes))
                for volume, reader in enumerate(readers):
                    values[:, volume] = self._read(reader, volume * len(self) + first, count)
                if (self._slope, self._shift) != (1.0, 0.0):
                    values *= self._slope
                    values += self._shift
                yield values
            if self._packed and readers:
                self._finish(readers[-1])

    def in_file_order(self) -> Array:
        """Return where each voxel of :meth:`blocks` stands if the last axis is the fastest, (voxels,)."""
        return np.arange(len(self)).reshape(self.grid).ravel(order="F")

    def _check(self) -> None:
        if min(self.shape, default=0) < 1:
            raise bad_file(self.path, _DAMAGED)
        if self._dtype.kind not in "iuf":
            raise bad_file(
                self.path,
                "its numbers are {kind}, and real ones are needed. Convert them.",
                kind=Public({"c": "complex", "V": "colours"}.get(self._dtype.kind, str(self._dtype))),
            )
        needed, there = self._start + self.volumes * len(self) * self._dtype.itemsize, self.path.stat().st_size
        if needed > there and not (self._packed and plausible_size(needed, there)):
            raise bad_file(self.path, _DAMAGED)

    def _readers(self, opened: contextlib.ExitStack) -> list[BinaryIO]:
        """Return what each volume is read from: the file, its content in memory, or the packed file once for each."""
        try:
            if not self._packed:
                return [opened.enter_context(open(self.path, "rb"))] * self.volumes
            if self._start + self.volumes * len(self) * self._dtype.itemsize <= _UNPACKED:
                with gzip.open(self.path) as packed:
                    content = packed.read(_UNPACKED)
                    self._finish(cast("BinaryIO", packed))
                return [io.BytesIO(content)] * self.volumes
            return [cast("BinaryIO", opened.enter_context(gzip.open(self.path))) for _ in range(self.volumes)]
        except (OSError, EOFError, zlib.error):
            raise bad_file(self.path, _DAMAGED) from None

    def _read(self, reader: BinaryIO, place: int, count: int) -> Array:
        try:
            reader.seek(self._start + place * self._dtype.itemsize)
            content = reader.read(count * self._dtype.itemsize)
        except (OSError, EOFError, zlib.error):
            content = b""
        if len(content) != count * self._dtype.itemsize:
            raise bad_file(self.path, _DAMAGED)
        return np.frombuffer(content, dtype=self._dtype)

    def _finish(self, reader: BinaryIO) -> None:
        """Read what follows the numbers: only at its end does a packed file show whether it is whole."""
        try:
            while reader.read(_BITE):
                pass
        except (OSError, EOFError, zlib.error):
            raise bad_file(self.path, _DAMAGED) from None


class Mask:
    """An image (x, y, z) that says which voxels are taken: those above 0."""

    def __init__(self, path: PathLike, grid: tuple[int, ...]) -> None:
        self._voxels = Voxels(path)
        axes = self._voxels.shape[:-1] if self._voxels.shape[3:] == (1,) else self._voxels.shape
        # What knows no grid, only how many voxels there are, comes as one axis.
        if axes != grid and not (len(grid) == 1 and len(axes) == 3 and len(self._voxels) == grid[0]):
            raise bad_file(
                self.path,
                "the mask has the grid {axes}, the tensors {grid}. Resample one of them.",
                axes=Public(axes),
                grid=grid,
            )

    @property
    def path(self) -> pathlib.Path:
        """Where it lies."""
        return self._voxels.path

    def blocks(self) -> Iterator[Array]:
        """Yield which voxels are taken, (m,), beside the blocks of :class:`Voxels`: at least one of all."""
        taken = False
        for values in self._voxels.blocks():
            inside = values[:, 0] > 0
            taken = taken or bool(inside.any())
            yield inside
        if not taken:
            raise bad_file(self.path, "the mask is empty: no voxel is above 0. Give another one.")


def _opened(path: pathlib.Path) -> Any:
    """Return nibabel's image, of which the header was read."""
    if not path.name.lower().endswith(SUFFIXES):
        raise unknown_format(path, in_words(SUFFIXES))
    nibabel = optional_module("nibabel", "nifti", f"Reading {path.name!r}")
    broken = (
        nibabel.filebasedimages.ImageFileError,
        nibabel.spatialimages.HeaderDataError,
        nibabel.spatialimages.HeaderTypeError,
    )
    try:
        image = nibabel.load(path)
    except (*broken, OSError, EOFError, ValueError, TypeError, OverflowError, zlib.error):
        raise bad_file(path, _DAMAGED) from None
    if not isinstance(image, nibabel.Nifti1Image):  # NIfTI-2 is one of them, CIFTI is not
        raise bad_file(path, "it holds no voxels. Give an image (x, y, z, ...).")
    return image
