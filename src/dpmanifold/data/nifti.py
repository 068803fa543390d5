"""Diffusion tensors in NIfTI images, a voxel each. Needs nibabel: the extra "nifti"."""

from __future__ import annotations

import pathlib
import zlib
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._extras import optional_module
from dpmanifold.data._files import PathLike, bad_file, checked_file, in_words, unknown_format
from dpmanifold.data.opened import DataFile
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import SPD
from dpmanifold.manifolds.triangles import from_triangles

_SYMMETRIC = 1005  # NIFTI_INTENT_SYMMATRIX: the lower triangle, row by row


def load_tensors(path: PathLike, mask: PathLike | None = None, order: str | None = None) -> FloatArray:
    """Return the tensors (n, 3, 3) of an image's voxels, and n is how many voxels there are.

    The image has four axes with 6 volumes (x, y, z, 6), or five: (x, y, z, 1, 6), as the NIfTI standard wants symmetric
    matrices, or (x, y, z, 3, 3). Voxels come in the order of the file's axes, the last one fastest.

    An image is one person: give all its voxels that person's id as `units=`, and read several people's images. With
    EACH_RECORD a single voxel is protected, which protects nobody. A mask drawn from the person's own image says
    something about the person that no noise covers (how many voxels there are); one in a common space does not.

    Parameters
    ----------
    path : .nii or .nii.gz
    mask : an image (x, y, z) of the same grid, or four axes with one volume: voxels above 0 are taken. Without it all
        are, and those without tissue are no tensors
    order : "fsl", "dipy", "mrtrix" or "row", see :func:`as_records`. If left out: "dipy" where the header says that
        the image holds symmetric matrices, as the standard orders them; otherwise "row", refused where most tensors
        would be positive definite in another order only

    Raises
    ------
    MissingPackageError : nibabel is not installed
    InvalidDataError : the image is damaged, holds no tensors or has another grid than the mask
    """
    return NiftiFile(checked_file(path)).array(mask=mask, order=order)


class NiftiFile(DataFile):
    """An image of tensors, a voxel each."""

    suffixes = (".nii", ".nii.gz")
    options = ("mask", "order")

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        self._image = _image(path)

    def array(self, *, mask: PathLike | None = None, order: str | None = None, **options: Any) -> FloatArray:
        """Return the tensors (n, 3, 3) of the voxels, see :func:`load_tensors`."""
        grid, values = _six_or_nine(self._image, self.path)
        if mask is not None:
            values = values[_inside(mask, grid)]
        if values.shape[1] == 9:
            if order is not None:
                raise InvalidArgumentError("order means nothing for whole matrices (x, y, z, 3, 3). Leave it out.")
            return values.reshape(-1, 3, 3)
        if order is None and int(self._image.header["intent_code"]) == _SYMMETRIC:
            order = "dipy"
        return from_triangles(values, SPD(3), order)


def _inside(mask: PathLike, grid: tuple[int, ...]) -> Array:
    """Return which voxels of a grid a mask takes, (voxels,), at least one."""
    volume = _volume(mask)
    if volume.shape != grid:
        raise bad_file(
            checked_file(mask), f"the mask has the grid {volume.shape}, the tensors {grid}. Resample one of them."
        )
    inside = np.asarray(volume.reshape(-1) > 0)
    if not inside.any():
        raise bad_file(checked_file(mask), "the mask is empty: no voxel is above 0. Give another one.")
    return inside


def _six_or_nine(image: Any, path: pathlib.Path) -> tuple[tuple[int, ...], FloatArray]:
    """Return the grid of an image of tensors, and their numbers (voxels, 6 or 9)."""
    shape = tuple(image.shape)
    if len(shape) == 4 and shape[3] == 6:
        width = 6
    elif len(shape) == 5 and shape[3:] in ((1, 6), (6, 1), (3, 3)):
        width = shape[3] * shape[4]
    else:
        raise bad_file(
            path,
            f"tensors are (x, y, z, 6), (x, y, z, 1, 6) or (x, y, z, 3, 3), this image is {shape}. Fit them first.",
        )
    return shape[:3], _numbers(image, path).reshape(-1, width)


def _volume(path: PathLike) -> Array:
    """Return an image of one number per voxel."""
    found = checked_file(path)
    values = _numbers(_image(path), found)
    return values[..., 0] if values.ndim == 4 and values.shape[3] == 1 else values


def _image(path: PathLike) -> Any:
    file = checked_file(path)
    if not file.name.lower().endswith(NiftiFile.suffixes):
        raise unknown_format(file, in_words(NiftiFile.suffixes))
    nibabel = optional_module("nibabel", "nifti", f"Reading {file.name!r}")
    try:
        return nibabel.load(file)
    except (nibabel.filebasedimages.ImageFileError, OSError, EOFError, ValueError, zlib.error):
        raise bad_file(file, "it is damaged, incomplete or not NIfTI. Copy or write it again.") from None


def _numbers(image: Any, path: pathlib.Path) -> FloatArray:
    """Return an image's numbers, scaled as its header says."""
    try:
        return np.asarray(image.get_fdata(dtype=np.float64, caching="unchanged"))
    except (OSError, EOFError, ValueError, TypeError, zlib.error):
        raise bad_file(path, "its numbers cannot be read. Copy or write it again.") from None


__all__ = ["load_tensors"]
