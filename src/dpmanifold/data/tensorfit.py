"""Fits of dipy's tensor model as a source: what `TensorModel(...).fit(data)` returns, without a detour by files.

A fit is known by what its class is called: dipy is never imported here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.data.image_source import Image, ImageSource
from dpmanifold.data.nifti import NONZERO, NONZERO_NEEDS_UNITS
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Public

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


__all__ = ["from_tensorfit", "tensorfit_source"]
