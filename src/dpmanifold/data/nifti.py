"""Diffusion tensors in NIfTI images, a voxel each. Needs nibabel: the extra "nifti"."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpmanifold._check import FloatArray, shown
from dpmanifold.data._files import PathLike, bad_file
from dpmanifold.data.opened import DataFile
from dpmanifold.data.voxels import SUFFIXES, Mask, Voxels
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.manifolds import SPD
from dpmanifold.manifolds.triangles import ORDERS, from_triangles


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


__all__ = ["load_tensors"]
