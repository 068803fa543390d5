"""What people and files see of a space: its names, words and pictures, and the forms in which its records come.

Everything here has a default, so that a new space gets JSON, the command line, pictures and reports from its class
alone; a space says more where it can be kinder. Nothing here is mathematics.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from dpmanifold._check import Array
from dpmanifold.errors import InvalidDataError, Public
from dpmanifold.manifolds.coordinates import Coordinates
from dpmanifold.manifolds.layouts import Layout, plain_layouts, records_from

if TYPE_CHECKING:
    from dpmanifold.manifolds.base import Manifold


class ForPeople(ABC):
    """The part of a space that is for people; :class:`Manifold` inherits it."""

    dim: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    origin: Array

    # ---------------------------------------------------------------- for people: names

    example: ClassVar[tuple[Any, ...]] = (3,)
    """The constructor's first arguments for a small space of this kind, which lists and tests show."""

    @classmethod
    def spellings(cls) -> dict[str, dict[str, Any]]:
        """Names on the command line, and the keywords of the constructor that each of them stands for."""
        return {cls.__name__.lower(): {}}

    @classmethod
    def sizes_of(cls, shape: tuple[int, ...], kind: str = "f") -> tuple[int, ...] | None:
        """Return the constructor's first arguments for which records have this shape, or None if it does not tell.

        `kind` is that of their numbers, "f" real or "c" complex.

        The best guess where no size fits: the message about the records is then about a space close to what was meant.
        """
        return (shape[:1] or None) if cls.example else ()

    def describe(self) -> str:
        """Say in words what its points are."""
        return f"points of {self!r}"

    # ---------------------------------------------------------------- for people: points

    factor_of: str | None = None
    """What has its logarithm within r at a distance of r, such as "eigenvalue": then exp(error) is a factor."""
    coordinates: ClassVar[Mapping[str, Coordinates]] = {}
    """Other coordinates in which records may come, by name."""
    table_reader: ClassVar[str] = "numbers"
    """How columns of a table are found where none are named: a reader of `data.READERS`. "numbers" takes all."""

    @property
    def picture(self) -> str:
        """Name of the picture of a mean, in `plots.PICTURES`; "tangent" draws any space."""
        return "tangent"

    @property
    def natural_center(self) -> Array | None:
        """The point that everybody takes for the middle, or None where there is none and a centre must be said."""
        return self.origin

    @cached_property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        """What one record may look like: its shape, by the kind of its numbers ("f" real, "c" complex)."""
        return {self.dtype.kind: self.shape}

    def layouts(self) -> list[Layout]:
        """Return the forms in which records may come, the first that fits being taken."""
        return plain_layouts(self.record_shapes)

    def _form_hint(self, array: Array, otherwise: str) -> str:
        """Return what to do about an array of another shape: what makes records of it, where something does.

        Examples
        --------
        >>> from dpmanifold.manifolds import SPD
        >>> SPD(3)._form_hint(np.zeros((40, 6)), "Check it.")
        'data.as_records(array, space) makes records of it: 6 for the upper triangle.'
        """
        forms = [one for one in self.layouts() if array.shape[1:] == one.shape and array.dtype.kind == one.kind]
        if forms:
            return f"data.as_records(array, space) makes records of it: {forms[0].words}."
        space = cast("Manifold", self)
        systems = [name for name, one in self.coordinates.items() if one.dim in (None, space.dim)]
        if array.ndim == 2 and array.shape[1] == space.dim and systems:
            return f"data.from_coordinates(array, name) makes points of coordinates: {', '.join(systems)}."
        return self.shape_hint(array.shape) or otherwise

    def shape_hint(self, shape: tuple[int, ...]) -> str | None:
        """Return what to do about an array of a shape that records do not have, where the shape tells; else None.

        Examples
        --------
        >>> from dpmanifold.manifolds import SPD
        >>> SPD(3).shape_hint((3, 3, 40))
        'If the records stand along the last axis, give np.moveaxis(array, -1, 0).'
        """
        if shape[:-1] in self.record_shapes.values():
            return "If the records stand along the last axis, give np.moveaxis(array, -1, 0)."
        return None

    def read_point(self, numbers: Array) -> Array:
        """Return one point from numbers as a person writes them, in any form in which a record may come.

        Raises InvalidDataError where they are no single point.

        Examples
        --------
        >>> from dpmanifold.manifolds import SPD
        >>> SPD(2).read_point(np.array([3.0]))
        array([[3., 0.],
               [0., 3.]])
        """
        one = any(numbers.shape == layout.shape for layout in self.layouts()) or numbers.ndim == 1
        space = cast("Manifold", self)
        records = records_from(space, numbers[None] if one else numbers)
        if len(records) != 1:
            raise InvalidDataError("it holds {n_records} points. Give one.", n_records=Public(len(records)))
        return np.asarray(space.project(records[0]))
