"""What is a point of a space and what is not: checks with a reason and a remedy, and the forms that arrays may have.

And what people and files see of a space: its names, words and figures. That part has a default everywhere, so that a
new space gets JSON, the command line, figures and reports from its class alone; nothing in it is mathematics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from dpmanifold._cells import from_polars, numbers_of, refuse_text
from dpmanifold._check import Array, FloatArray, batch_of, index_text, numeric_array
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.linalg.cards import CardArray, fetched, on_card
from dpmanifold.manifolds.coordinate_systems import Coordinates
from dpmanifold.manifolds.layouts import Layout, plain_layouts, records_from, several_a_unit

if TYPE_CHECKING:
    from dpmanifold.manifolds.base import Manifold

# How far a stored point may be from its space before it is refused rather than moved onto it. Wide
# enough for data that went through float32 (6e-8 per entry), far too narrow for unnormalised data.
POINT_TOLERANCE = 1e-6


def not_real(array: Array) -> Message:
    """Return the message about complex numbers where real ones belong."""
    return Message("expected real numbers, got dtype {dtype}. Take the real part if that is meant.", dtype=array.dtype)


def other_shape(shape: tuple[int, ...], array: Array, hint: str) -> Message:
    """Return the message about an array whose records have another shape than this."""
    return Message(
        "expected shape (..., {shape}), got {got}. {hint}",
        shape=Public(", ".join(map(str, shape))),
        got=Public(array.shape),
        hint=Public(hint),
    )


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


class PointSet(ForPeople):
    """The part of a space that is about its points as arrays; :class:`Manifold` inherits it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._arguments()})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @abstractmethod
    def _arguments(self) -> str:
        """Return the constructor's arguments as text; they decide equality."""

    def check(self, p: object, first: int = 0) -> Message | None:
        """Return why `p`, one point or a batch, is not on the space (with the index, counted from `first`), or None."""
        array, reason = self._entries_reason(p, first)
        if array is None or reason is not None:
            return reason
        for bad, fault in self._faults(array):
            if bad.any():
                return fault.saying(where=index_text(bad, first))
        return None

    def valid(self, p: object) -> Array:
        """Return which records of a batch (..., *shape) are points of the space, a boolean each.

        Raises InvalidDataError where not even the shape is right. What it returns is data: not private.
        """
        array, reason = self._entries_reason(p)
        if array is None:
            raise InvalidDataError("not a batch of records on {value!r}: {reason}", value=Public(self), reason=reason)
        axes = tuple(range(array.ndim - len(self.shape), array.ndim))
        finite = np.asarray(np.isfinite(array).all(axis=axes))
        usable = np.where(finite.reshape(*finite.shape, *(1,) * len(self.shape)), array, self.origin)
        good = finite
        for bad, _ in self._faults(usable):
            good = good & ~bad
        return good

    @abstractmethod
    def _faults(self, array: Array) -> list[tuple[Array, Message]]:
        """Return masks of what is wrong with finite records, each with a message in which {where} is the index."""

    @abstractmethod
    def project(self, p: object) -> Array:
        """Move nearly valid points onto the space."""

    def as_points(self, p: object, name: str = "p", batch: bool | None = None, first: int = 0) -> Array:
        """Return `p` as valid points, or raise InvalidDataError naming the argument, index and remedy.

        Parameters
        ----------
        p : array-like, shape (..., *space.shape)
        name : what to call the argument in the message
        batch : True asks for exactly one batch axis, False for a single point, None takes either
        first : the index of the first point, in messages
        """
        p = fetched(p, name)
        reason = self.check(p, first)
        if reason is not None:
            raise InvalidDataError(
                "{name} is not valid on {value!r}: {reason}", name=Argument(name), value=Public(self), reason=reason
            )
        points = self.project(p)
        axes = points.ndim - len(self.shape)
        if batch is not None and axes != int(batch):
            shape = ", ".join(str(s) for s in self.shape)
            wanted = f"a batch of points, shape (n, {shape})" if batch else f"one point, shape ({shape})"
            remedy = "X[None] makes a batch of one point." if batch else "Pick one point of the batch."
            if batch and axes > 1:
                remedy = several_a_unit(repr(self), points.shape, axes)
            raise InvalidDataError(
                "{name} must be {wanted}, got shape {shape}. {remedy}",
                name=Argument(name),
                wanted=Public(wanted),
                shape=Public(np.shape(points)),
                remedy=Public(remedy),
            )
        return points

    def gathered(self, p: object) -> object:
        """Return what a user calls points as one batch, where it may come in several arrays; as it is, on most."""
        return p

    def batch(self, X: object) -> object:
        """Return a user's records as one batch, where they may come in several arrays; as they are, on most spaces."""
        return self.from_card(X)

    def as_numbers(self, X: object, name: str = "X") -> object:
        """Return an array of records as an array of numbers, or as a list of records where it holds objects.

        The shape of the records says which kind of numbers is meant, never the type that the array has: one cell of one
        record may have given it that type. What is no array is returned as it is.

        Parameters
        ----------
        X : (n, ...), an array of any type, also a masked one
        name : what to call it in messages

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> Euclidean(2).as_numbers(np.array([[1, 2j], [0.5, 2 + 0j]]))
        array([[1. , nan],
               [0.5, 2. ]])
        """
        if type(X) is np.ndarray and X.dtype.kind in "iuf":
            return X
        X = from_polars(X, name)
        if not hasattr(X, "__array__") or on_card(X):
            return X
        array = X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
        refuse_text(array, name)
        if array.dtype.kind == "O":
            return list(array)  # its shape is not that of each record: a ragged one takes an axis from all
        kind = next((kind for kind, shape in self.record_shapes.items() if array.shape[1:] == shape), None)
        if kind is not None and (array.dtype.kind not in "iuf" or np.ma.isMaskedArray(array)):
            return numbers_of(array, kind)
        return array  # what has another shape is refused for it

    @property
    def has_card_passes(self) -> bool:
        """Whether there are kernels for records on a CUDA card: on few spaces."""
        return False

    def from_card(self, X: object, name: str = "X") -> object:
        """Return records that lie on a CUDA card as an array here, where the space has no passes there; others as is.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> Euclidean(1).from_card([[1.0]])
        [[1.0]]
        """
        if isinstance(X, np.ndarray):
            return X
        if self.has_card_passes and on_card(X):
            return CardArray.of(X, name)
        return fetched(X, name)

    def pack(self, points: Array) -> Array:
        """Return points (n, *shape) as passes over many of them keep them: as they are, on most spaces."""
        return points

    def unpack(self, stored: Array) -> Array:
        """Undo :meth:`pack`."""
        return stored

    def degenerate(self, p: Array) -> Array:
        """Return which records stand for no point at all, as a boolean per record (none, on most spaces)."""
        return np.zeros(batch_of(p, self.shape), dtype=bool)

    def _array(self, p: object, name: str = "p") -> Array:
        """Return `p` with this space's type, looking at nothing but its shape."""
        array = np.ascontiguousarray(np.asarray(p).astype(self.dtype, copy=False))
        array = array.reshape(np.asarray(p).shape)
        if array.shape[max(0, array.ndim - len(self.shape)) :] != self.shape:
            raise InvalidArgumentError(
                "{name} must have shape (..., {shape}) on {value!r}, got {shape2}.",
                name=Argument(name),
                shape=Public(", ".join(map(str, self.shape))),
                value=Public(self),
                shape2=Public(array.shape),
            )
        return array

    def _coordinates(self, c: object, name: str = "c") -> FloatArray:
        """Return tangent coordinates as float64, looking at nothing but their shape."""
        # In C order: sums over the last axis are rounded otherwise in another one.
        array = np.asarray(c, dtype=np.float64, order="C")
        if array.ndim == 0 or array.shape[-1] != self.dim:
            raise InvalidArgumentError(
                "{name} must have shape (..., {dim}) on {value!r}, got {shape}.",
                name=Argument(name),
                dim=Public(self.dim),
                value=Public(self),
                shape=Public(array.shape),
            )
        return array

    def _entries_reason(self, p: object, first: int = 0) -> tuple[Array | None, Message | None]:
        """Return `p` as an array of numbers of the right trailing shape without NaN, or the reason why not."""
        try:
            array = numeric_array(p, "it")
        except InvalidDataError as problem:
            return None, problem.message
        if array.dtype.kind == "c" and self.dtype.kind != "c":
            return None, not_real(array)
        if array.shape[max(0, array.ndim - len(self.shape)) :] != self.shape:
            return None, other_shape(
                self.shape,
                array,
                self._form_hint(array, "Put the batch in front and check the dimension of the space."),
            )
        return array, self._finite_reason(array, first)

    def _finite_reason(self, array: Array, first: int) -> Message | None:
        finite = np.isfinite(array)
        if finite.all():
            return None
        axes = tuple(range(array.ndim - len(self.shape), array.ndim))
        bad = np.asarray(~finite.all(axis=axes))
        return Message(
            "entries that are NaN, infinite or not numbers{where}. Remove or repair these records.",
            where=Public(index_text(bad, first)),
        )

    def random_point(
        self, size: int | tuple[int, ...] | None = None, rng: int | np.random.Generator | None = None
    ) -> Array:
        """Draw points for simulations and tests (not private noise): shape (*size, *space.shape).

        Uniform on spheres and shape spaces; elsewhere the exponential of a standard normal vector at the origin.
        """
        batch = () if size is None else (size,) if isinstance(size, int) else tuple(size)
        return self._random(batch, np.random.default_rng(rng))

    @abstractmethod
    def _random(self, batch: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw a batch of points."""
