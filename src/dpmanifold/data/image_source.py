"""Tensors of many images as one source: a piece for each image, and one id or class for all of its voxels."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold._merged_ids import unit_ids
from dpmanifold.data._files import listed
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.layouts import records_from
from dpmanifold.sources import Block, Piece, Source


class Image(ABC):
    """The way to the tensors of one image; it can be pickled.

    Attributes
    ----------
    name : where it is, for messages to the curator
    """

    name: str

    @abstractmethod
    def blocks(self) -> Iterator[FloatArray]:
        """Yield the tensors (m, 3, 3), some at a time; the same ones each time it is called."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # names of files are names of people


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
