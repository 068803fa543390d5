"""Diffusion tensors in images, a voxel each: in NIfTI files, one or many as a source, and in Camino's without a header.

NIfTI needs nibabel (the extra "nifti"), which reads the header. The numbers are read here, so that memory is bounded
whatever the image: a file holds one volume after the other, and a voxel is made of all of them. What is compressed can
only be read from front to back: if it is large every volume gets a reader of its own, and none of them ever goes back.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import os
import pathlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, cast

import numpy as np

from dpmanifold._check import Array, FloatArray, optional_module, shown
from dpmanifold.data._files import (
    DataFile,
    PathLike,
    Stamp,
    bad_file,
    checked_file,
    in_words,
    named_twice,
    plausible_size,
    unknown_format,
)
from dpmanifold.data.image_source import NONZERO, NONZERO_NEEDS_UNITS, Image, ImageSource
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.manifolds import SPD
from dpmanifold.manifolds.triangles import ORDERS, from_triangles

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


def load_tensors(path: PathLike, mask: PathLike | None = None, order: str | None = None) -> FloatArray:
    """Return the tensors (n, 3, 3) of an image's voxels, and n is how many voxels there are.

    The image has four axes with 6 volumes (x, y, z, 6), or 8 as Camino writes them, or five: (x, y, z, 1, 6), as the
    NIfTI standard wants symmetric matrices, or (x, y, z, 3, 3). Voxels come in the order of the file's axes, the last
    one fastest. Numbers are scaled as the header says.

    An image is one person: give all its voxels that person's id as `units=`, and read several people's images
    (:func:`from_nifti`, :func:`from_bids`). With EACH_RECORD a single voxel is protected, which protects nobody. A mask
    drawn from the person's own image says something about the person that no noise covers (how many voxels there are);
    one in a common space does not.

    Parameters
    ----------
    path : .nii or .nii.gz
    mask : an image (x, y, z) of the same grid, or four axes with one volume: voxels above 0 are taken. Without it all
        are, and those without tissue, which tools write as 0, are no tensors: a statistic refuses them, or counts them
        as its ball's centre (`invalid="center"`)
    order : "fsl", "dipy", "mrtrix", "camino" or "row", see :func:`as_records`. If left out: "dipy" where the header
        says that the image holds symmetric matrices, as the standard orders them; otherwise "row", refused where most
        tensors would be positive definite in another order only

    Raises
    ------
    MissingPackageError : nibabel is not installed
    InvalidDataError : the image is damaged, holds no tensors or has another grid than the mask
    """
    return NiftiFile(pathlib.Path(path)).array(mask=mask, order=order)


class NiftiFile(DataFile):
    """An image of tensors, a voxel each."""

    suffixes = SUFFIXES
    options = ("mask", "order")

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        self._voxels = Voxels(path)

    def array(self, *, mask: PathLike | None = None, order: str | None = None, **options: Any) -> FloatArray:
        """Return the tensors (n, 3, 3) of the voxels, see :func:`load_tensors`."""
        image = TensorImage(self._voxels, mask, order)
        taken = np.zeros(len(self._voxels), dtype=bool)
        places = self._voxels.in_file_order()
        parts = []
        for first, inside, values in image.taken():
            taken[places[first : first + len(inside)][inside]] = True
            parts.append(values)
        # From the order of the file to that of the axes.
        rank = np.cumsum(taken) - 1
        values = np.empty((int(taken.sum()), image.width))
        values[rank[places[taken[places]]]] = np.concatenate(parts) if parts else np.empty((0, image.width))
        return image.tensors(values)


class TensorImage:
    """How the voxels of one image become tensors: which are taken, and what their numbers are.

    Parameters
    ----------
    voxels : the image, opened
    mask, order : as in :func:`load_tensors`
    nonzero : take those voxels alone of whose tensor some number is not 0

    Attributes
    ----------
    width : how many numbers a tensor has in the file, 6 or 9
    order : which they are; None where neither the header nor anybody says so
    """

    def __init__(
        self, voxels: Voxels, mask: PathLike | None = None, order: str | None = None, nonzero: bool = False
    ) -> None:
        self._voxels, self._nonzero = voxels, nonzero
        self._skipped, self.width, self.order = _form(voxels, order)
        self._mask = None if mask is None else Mask(mask, voxels.grid)

    def taken(self) -> Iterator[tuple[int, Any, FloatArray]]:
        """Yield, block by block, where it starts, which voxels are taken (m,), and their numbers (taken, 6 or 9)."""
        first, found = 0, 0
        masks = None if self._mask is None else self._mask.blocks()
        for block in self._voxels.blocks():
            values = block[:, self._skipped :]
            inside = np.ones(len(values), dtype=bool) if masks is None else next(masks)
            if self._nonzero:
                inside &= (values != 0).any(axis=1)
            found += int(inside.sum())
            yield first, inside, values if inside.all() else values[inside]
            first += len(block)
        if masks is not None:
            next(masks, None)  # the end of the mask, where it is refused if it is empty
        if self._nonzero and not found:
            raise bad_file(self._voxels.path, "all of its tensors are 0. Fit them again, or leave the image out.")

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the tensors (m, 3, 3) of the voxels that are taken, in the order of the file, some at a time."""
        for _, _, values in self.taken():
            yield self.tensors(values)

    def tensors(self, values: FloatArray) -> FloatArray:
        """Return matrices (n, 3, 3) from the numbers of voxels."""
        if self.width == 9:  # the fourth axis is the fastest one in the file, and that of the rows
            return values.reshape(-1, 3, 3).transpose(0, 2, 1)
        return from_triangles(values, SPD(3), self.order)


def _form(voxels: Voxels, order: str | None) -> tuple[int, int, str | None]:
    """Return how many volumes come before the tensor, how many numbers it has, and their order."""
    shape, name = voxels.shape, voxels.path.name
    if order is not None and order not in ORDERS:
        raise InvalidArgumentError(
            "`order` must be one of {orders}, got {got}.", orders=Public(", ".join(ORDERS)), got=shown(order)
        )
    if len(shape) == 4 and shape[3] == 8:
        if order != "camino":
            raise InvalidArgumentError(
                '`order` must be "camino" for {name!r}, got {got}: it has 8 volumes, as Camino writes them (exit '
                "code, logarithm of S0, and the tensor).",
                name=name,
                got=shown(order),
            )
        return 2, 6, order
    if len(shape) == 5 and shape[3:] == (3, 3):
        if order is not None:
            raise InvalidArgumentError("`order` means nothing for whole matrices (x, y, z, 3, 3). Leave it out.")
        return 0, 9, None
    if not (len(shape) == 4 and shape[3] == 6) and not (len(shape) == 5 and shape[3:] in ((1, 6), (6, 1))):
        raise bad_file(
            voxels.path,
            "tensors are (x, y, z, 6), (x, y, z, 1, 6), (x, y, z, 3, 3) or Camino's (x, y, z, 8), this image "
            "is {shape}. Fit them first.",
            shape=Public(shape),
        )
    if order == "camino":
        raise InvalidArgumentError(
            'order "camino" is for 8 volumes, and {name!r} has 6: those that Camino\'s dt2nii writes are in '
            'the order of the NIfTI standard. Give `order="dipy"`.',
            name=name,
        )
    return 0, 6, "dipy" if order is None and voxels.symmetric else order


def from_nifti(
    paths: PathLike | Sequence[PathLike],
    *,
    mask: PathLike | Sequence[PathLike] | None = None,
    order: str | None = None,
    per_image: Mapping[str, Sequence[Any]] | None = None,
) -> ImageSource:
    """Return the tensors of many images as a source: given as X, they are read a part of an image at a time.

    Memory is bounded, whatever the size of the images (6 volumes of a compressed image are unpacked into memory up to
    64 MB; larger ones are read from the file). Opening reads the headers. Images may have different grids.

    Parameters
    ----------
    paths : .nii or .nii.gz, see :func:`load_tensors`; none of them twice
    mask : one image for all, or one for each, see :func:`load_tensors`; or "nonzero": voxels whose tensor is not 0
        throughout, as tools write what is outside of the brain, which needs `units=`. Without it all voxels are taken,
        and one without a tensor is refused by a statistic, or counts as its ball's centre (`invalid="center"`)
    order : "fsl", "dipy", "mrtrix", "camino" or "row", for all images. Needed where a header does not say that an image
        holds symmetric matrices
    per_image : what is known of each image, one value each by name: whose it is, which class the person is of. A
        private call's `units=` and `labels=` take such a name, or one value for each image. One person may have several
        images

    Raises
    ------
    InvalidArgumentError : there is no such file, or the order is needed
    InvalidDataError : an image is damaged, is there twice, holds no tensors or has another grid than its mask

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import nibabel, numpy as np
    >>> import dpmanifold as dpm
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> paths = [folder / f"{person}_tensor.nii.gz" for person in ("ann", "bob")]
    >>> for path in paths:
    ...     values = np.broadcast_to([1.6, 0.0, 0.0, 0.4, 0.0, 0.4], (2, 2, 2, 6))        # as FSL writes them
    ...     nibabel.Nifti1Image(values, np.eye(4)).to_filename(path)
    >>> source = from_nifti(paths, order="fsl", per_image={"person": ["ann", "bob"]})
    >>> [block.records.shape for piece in source.bound(dpm.SPD(3), units="person") for block in piece.blocks()]
    [(8, 3, 3), (8, 3, 3)]
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    if not isinstance(paths, Sequence):
        raise InvalidArgumentError("`paths` must be a list of names of files, got {got}.", got=shown(paths))
    if mask is None or isinstance(mask, (str, os.PathLike)):
        masks: Sequence[PathLike | None] = [mask] * len(paths)
    elif len(mask) == len(paths):
        masks = mask
    else:
        raise InvalidArgumentError(
            "`mask` must be one image, or one for each of {n_paths:,}, got {n_mask:,}.",
            n_paths=Public(len(paths)),
            n_mask=Public(len(mask)),
        )
    refuse_twice(paths)
    images = [StoredImage(path, one, order) for path, one in zip(paths, masks, strict=True)]
    return ImageSource(images, per_image, NONZERO_NEEDS_UNITS if mask == NONZERO else None)


class StoredImage(Image):
    """One image in a file. Opening it reads its header and that of its mask."""

    def __init__(self, path: PathLike, mask: PathLike | None, order: str | None) -> None:
        self.name = os.path.basename(path)
        nonzero = mask == NONZERO
        image = os.path.abspath(checked_file(path))
        inside = None if mask is None or nonzero else os.path.abspath(checked_file(mask))
        self._stamps = [Stamp.of(file) for file in (image, inside) if file is not None]
        self._image = TensorImage(Voxels(image), inside, order, nonzero)
        if self._image.width == 6 and self._image.order is None:
            # Whether most tensors look wrong is a question about all of them, and a source is read in parts.
            raise InvalidArgumentError(
                '`order` is needed: the header of {name!r} does not say it. Give "fsl", "dipy", "mrtrix" or "row".',
                name=self.name,
            )

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the tensors of the voxels that are taken, in the order of the file."""
        self._unchanged()
        yield from self._image.blocks()
        self._unchanged()

    def _unchanged(self) -> None:
        for stamp in self._stamps:
            stamp.check()


def refuse_twice(paths: Sequence[PathLike]) -> None:
    """Refuse images of which two are one file, by name or by a link: somebody's voxels would count twice."""
    twice = named_twice(map(checked_file, paths))
    if twice is not None:
        one, other = twice
        raise bad_file(other, "it is the same file as {one!r}, and would count twice. Name it once.", one=str(one))


_NUMBERS = 8
# Exit codes are small whole numbers, from -100 (no fit) on; other kinds of Camino's files have other numbers there.
_LOWEST_CODE, _HIGHEST_CODE = -100, 1000


class CaminoFile(DataFile):
    """A file of tensors without a header, a voxel each."""

    suffixes = (".bdouble",)
    options = ("mask", "order")

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        size = path.stat().st_size
        if size == 0 or size % (8 * _NUMBERS):
            raise bad_file(
                path,
                "Camino's tensors are 8 numbers of 8 bytes per voxel, and its size is another one. Is it complete, "
                "and of dtfit or modelfit with one tensor?",
            )

    def array(self, *, mask: PathLike | None = None, order: str | None = None, **options: Any) -> FloatArray:
        """Return the tensors (n, 3, 3) in the order of the file.

        Parameters
        ----------
        mask : an image of as many voxels: those above 0 are taken
        order : "camino", or nothing
        """
        if order not in (None, "camino"):
            raise InvalidArgumentError(
                '`order` must be "camino" for {name!r}, got {got}.', name=self.path.name, got=shown(order)
            )
        stored = np.fromfile(self.path, dtype=">f8").reshape(-1, _NUMBERS)  # a map whose file is cut ends the process
        codes = stored[:, 0]
        if not ((codes == np.round(codes)) & (codes >= _LOWEST_CODE) & (codes <= _HIGHEST_CODE)).all():
            raise bad_file(self.path, "voxels do not begin with an exit code, as Camino's tensors do. Is it of dtfit?")
        values = stored[:, 2:]
        if mask is not None:
            values = values[np.concatenate(list(Mask(mask, (len(values),)).blocks()))]
        return from_triangles(np.asarray(values, dtype=np.float64), SPD(3), "camino")
