"""Many NIfTI images of tensors as one source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmanifold._check import FloatArray, shown
from dpmanifold.data._files import PathLike, bad_file, checked_file, named_twice
from dpmanifold.data.image_source import Image, ImageSource
from dpmanifold.data.nifti import TensorImage
from dpmanifold.data.stamps import Stamp
from dpmanifold.data.voxels import Voxels
from dpmanifold.errors import InvalidArgumentError, Message, Public

NONZERO = "nonzero"
NONZERO_NEEDS_UNITS = Message(
    'how many voxels `mask="nonzero"` takes says something about the images, and with each voxel a unit nothing would '
    "cover it. Give the id of each image's person."
)


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


__all__ = ["from_nifti"]
