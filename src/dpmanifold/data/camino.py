"""Diffusion tensors as Camino's dtfit and modelfit write them without a header: .Bdouble, eight numbers per voxel.

Exit code, logarithm of S0, then xx, xy, xz, yy, yz, zz, as big-endian doubles, one voxel after the other, the first
axis of the image fastest. Written with a header (-outputfile dt.nii.gz) they are 8 volumes of a NIfTI image.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from dpmanifold._check import FloatArray, shown
from dpmanifold.data._files import PathLike, bad_file
from dpmanifold.data.opened import DataFile
from dpmanifold.data.voxels import Mask
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import SPD
from dpmanifold.manifolds.triangles import from_triangles

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
