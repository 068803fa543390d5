"""Tensors of many images as one source: a piece for each image, and one id or class for all of its voxels.

An image may be a fit of dipy's tensor model: what `TensorModel(...).fit(data)` returns, without a detour by files. A
fit is known by what its class is called: dipy is never imported here.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray, Reticent, shown
from dpmanifold._merged_ids import unit_ids
from dpmanifold.data._files import listed
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.layouts import records_from
from dpmanifold.sources import ADAPTERS, Block, Piece, Source


class Image(Reticent, ABC):
    """The way to the tensors of one image; it can be pickled.

    Attributes
    ----------
    name : where it is, for messages to the curator
    """

    name: str

    @abstractmethod
    def blocks(self) -> Iterator[FloatArray]:
        """Yield the tensors (m, 3, 3), some at a time; the same ones each time it is called."""


class ImagePiece(Piece):
    """The voxels of one image, all of one unit and of one class."""

    def __init__(self, image: Image, unit: Any = None, label: Any = None) -> None:
        self.name, self._image, self._unit, self._label = image.name, image, unit, label

    def blocks(self) -> Iterator[Block]:
        """Yield the voxels that are taken."""
        for tensors in self._image.blocks():
            if len(tensors):
                # One text, many times: nobody compares its letters again.
                kind = object if isinstance(self._unit, str) else None
                yield Block(tensors, _repeated(self._unit, len(tensors), kind), _repeated(self._label, len(tensors)))


class ImageSource(Source):
    """Tensors of many images, of one person or more. What `units=` and `labels=` name has one value for each image.

    Parameters
    ----------
    images : the ways to them
    columns : values by name, one per image each; asked for when a name is given
    each_record : why a voxel cannot be a unit of its own; None where it can

    Attributes
    ----------
    rows : None: how many voxels a mask takes shows when it is read
    """

    def __init__(
        self,
        images: Sequence[Image],
        columns: Mapping[str, Sequence[Any]] | None = None,
        each_record: str | None = None,
    ) -> None:
        if not images:
            raise InvalidArgumentError("`paths`: there are no images. Give one at least.")
        self._images, self._columns, self._each_record = list(images), columns or {}, each_record

    @property
    def names(self) -> list[str]:
        """What `units=` and `labels=` can name."""
        return list(self._columns)

    def __len__(self) -> int:
        """Return how many images there are."""
        return len(self._images)

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return a piece for each image.

        Parameters
        ----------
        space : SPD(3), in any metric
        units : the name of a column, or one id for each image
        labels : likewise, the classes
        """
        records_from(space, np.empty((0, 3, 3)))  # refuses spaces of which a tensor is no point
        count = len(self._images)
        owners: list[Any] = [None] * count
        if units is not None:
            found = unit_ids(self._values(units, "units"), count)
            owners = [found.names[number] for number in found.group.tolist()]
            _refuse_other_images(owners, [image.name for image in self._images])
        elif self._each_record is not None:
            raise InvalidArgumentError("`units`: {each_record}", each_record=Public(self._each_record))
        classes = [None] * count if labels is None else self._values(labels, "labels")
        return [ImagePiece(*each) for each in zip(self._images, owners, classes, strict=True)]

    def _values(self, given: object, name: str) -> list[Any]:
        """Return one value per image: those of a column, or those that were given."""
        if not isinstance(given, str):
            return _one_each(given, len(self._images), name)
        if given not in self._columns:
            there = f"There are {listed(self._columns)}" if self._columns else "There are none"
            raise InvalidArgumentError(
                "{name} {got} is no column of these images. {there}; or give one value per image.",
                name=Argument(name),
                got=shown(given),
                there=there,
            )
        return _one_each(self._columns[given], len(self._images), f"per_image[{given!r}]")


def _refuse_other_images(ids: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse ids in another order than the images where every image is named after one of them."""
    words = [set(re.split(r"[/\\_. ]|sub-", name)) | set(re.split(r"[/\\_. ]", name)) for name in names]
    known = {str(own) for own in ids}
    meant = [known & of_name for of_name in words]
    if all(len(one) == 1 for one in meant) and set().union(*meant) == known:
        for own, of_name in zip(ids, meant, strict=True):
            if str(own) not in of_name:
                raise InvalidDataError(
                    "`units` are in another order than the images: each image is named after one of the ids, and some "
                    "after another one than stands in its place. Put ids, and whatever comes with them, in the order "
                    "of the images."
                )


def _one_each(values: object, count: int, name: str) -> list[Any]:
    """Return values as a list of one per image."""
    found: list[Any] | None = None
    if hasattr(values, "tolist"):
        found = values.tolist()
    elif isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        found = list(values)
    if not isinstance(found, list) or len(found) != count:
        got = f"{len(found)} of them" if isinstance(found, list) else shown(values)
        raise InvalidArgumentError(
            "{name} must have one value for each of the {count:,} images, got {got}.",
            name=Argument(name),
            count=Public(count),
            got=got,
        )
    return found


def _repeated(value: Any, count: int, dtype: type | None = None) -> Array | None:
    return None if value is None else np.full(count, value, dtype)


NONZERO = "nonzero"
NONZERO_NEEDS_UNITS = Message(
    'how many voxels `mask="nonzero"` takes says something about the images, and with each voxel a unit nothing would '
    "cover it. Give the id of each image's person."
)
# Voxels whose tensors are computed together.
_VOXELS = 65_536


def from_tensorfit(fits: Any, mask: Any = None, *, per_image: Mapping[str, Sequence[Any]] | None = None) -> ImageSource:
    """Return the tensors of one or more fits of dipy as a source: `fit.quadratic_form`, some voxels at a time.

    A fit is one person's: give an id for each fit as `units=`. Fits of models that hold a tensor (kurtosis, free water)
    are taken as well. A fit given as X is taken by this function; so is a list of fits.

    Parameters
    ----------
    fits : a `dipy.reconst.dti.TensorFit`, or a list of them
    mask : an array of the fit's grid, voxels above 0 are taken; a list of one per fit; or "nonzero": voxels that were
        fitted, as dipy leaves 0 outside of the mask that `fit` was given. Without it all voxels are taken, and those
        that were not fitted are no tensors
    per_image : what is known of each fit, one value each by name, see :func:`from_nifti`

    Raises
    ------
    InvalidArgumentError : these are no fits, or not as many masks
    InvalidDataError : a mask has another grid, or is empty

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> from dipy.core.gradients import gradient_table
    >>> from dipy.reconst.dti import TensorModel
    >>> directions = np.vstack([np.zeros(3), np.eye(3), (1 - np.eye(3)) / np.sqrt(2)])
    >>> table = gradient_table(np.array([0.0] + 6 * [1000.0]), bvecs=directions)
    >>> signal = 100 * np.exp(-1000 * np.einsum("ni,ij,nj->n", directions, np.diag([1.6e-3, 4e-4, 4e-4]), directions))
    >>> fit = TensorModel(table).fit(np.broadcast_to(signal, (2, 2, 2, 7)))
    >>> (piece,) = from_tensorfit(fit).bound(dpm.SPD(3), units=["ann"])
    >>> (block,) = piece.blocks()
    >>> block.records.shape, np.round(1000 * np.diag(block.records[0]), 6).tolist()
    ((8, 3, 3), [1.6, 0.4, 0.4])
    """
    every = list(fits) if isinstance(fits, (list, tuple)) else [fits]
    for fit in every:
        if not is_tensorfit(fit):
            raise InvalidArgumentError("fits must be fits of dipy's tensor model, got {got}.", got=shown(fit))
    masks = list(mask) if isinstance(mask, (list, tuple)) else [mask] * len(every)
    if len(masks) != len(every):
        raise InvalidArgumentError(
            "`mask` must be one array, or one for each of {n_every:,}, got {n_masks:,}.",
            n_every=Public(len(every)),
            n_masks=Public(len(masks)),
        )
    images = [FittedImage(fit, one, f"fit {i}") for i, (fit, one) in enumerate(zip(every, masks, strict=True))]
    chosen = any(isinstance(one, str) for one in masks)
    return ImageSource(images, per_image, NONZERO_NEEDS_UNITS if chosen else None)


class FittedImage(Image):
    """The voxels of one fit."""

    def __init__(self, fit: Any, mask: Any, name: str) -> None:
        self.name, self._fit = name, fit
        self._nonzero = isinstance(mask, str)
        self._mask = None if mask is None or self._nonzero else _inside(mask, tuple(fit.shape), name)
        if self._nonzero and mask != NONZERO:
            raise InvalidArgumentError(
                '`mask` must be an array or "{nonzero}", got {got}.', nonzero=Public(NONZERO), got=shown(mask)
            )

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the tensors of the voxels that are taken, in the order of the axes."""
        grid, taken = tuple(self._fit.shape), 0
        step = max(1, _VOXELS // max(1, math.prod(grid[1:])))
        for first in range(0, grid[0], step) if grid else (None,):
            part = slice(first, first + step) if first is not None else ()
            tensors = _tensors(self._fit[part]).reshape(-1, 3, 3)
            if self._mask is not None:
                tensors = tensors[self._mask[part].reshape(-1)]
            elif self._nonzero:
                tensors = tensors[(tensors != 0).any(axis=(1, 2))]
            taken += len(tensors)
            yield tensors
        if self._nonzero and not taken:
            raise InvalidDataError("{name}: all of its tensors are 0. Fit it again, or leave it out.", name=self.name)


def is_tensorfit(fit: object) -> bool:
    """Return whether an object is a fit of dipy's tensor model or of one that extends it, for one voxel or many."""
    kinds = [base.__name__ for base in type(fit).__mro__ if base.__module__.startswith("dipy.")]
    if "MultiVoxelFit" not in kinds:
        return "TensorFit" in kinds
    return is_tensorfit(next((one for one in fit.fit_array.flat if one is not None), None))  # type: ignore[attr-defined]


def _tensors(fit: Any) -> FloatArray:
    """Return the tensors of a fit, (..., 3, 3); 0 where nothing was fitted."""
    if type(fit).__name__ != "MultiVoxelFit":
        return np.asarray(fit.quadratic_form, dtype=np.float64)
    # A fit for each voxel: some models of dipy are fitted one by one, and have none outside of the mask.
    tensors = np.zeros((*fit.fit_array.shape, 3, 3))
    for place in np.ndindex(fit.fit_array.shape):
        if fit.fit_array[place] is not None:
            tensors[place] = fit.fit_array[place].quadratic_form
    return tensors


def _inside(mask: object, grid: tuple[int, ...], name: str) -> Array:
    values = np.asarray(mask)
    if values.dtype.kind not in "biuf":
        raise InvalidArgumentError("`mask` must be an array of numbers, got {got}.", got=shown(mask))
    if values.shape != grid:
        raise InvalidDataError(
            "{name}: the mask has the grid {shape}, the fit {grid}. Resample one of them.",
            name=Argument(name),
            shape=Public(values.shape),
            grid=grid,
        )
    inside = values > 0
    if not inside.any():
        raise InvalidDataError("{name}: the mask is empty: no voxel is above 0. Give another one.", name=Argument(name))
    return np.asarray(inside)


def tensorfit_source(X: object) -> ImageSource | None:
    """Return a fit, or a list of fits, as a source, and None of everything else."""
    several = isinstance(X, (list, tuple)) and bool(X) and is_tensorfit(X[0])
    return from_tensorfit(X) if several or is_tensorfit(X) else None


ADAPTERS.register("tensorfit", tensorfit_source)
