"""How the numbers of a table or an array become records of a space: the forms a space says it takes, in one place.

A space lists its layouts (:meth:`Manifold.layouts`); reading goes by shape alone, a record at a time. Whether records
are points of the space is checked by whatever takes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold._cells import REAL, as_cells, cells_in, numbers_of, objects, refuse_text
from dpmanifold._check import Array
from dpmanifold.errors import Either, InvalidArgumentError, InvalidDataError, Message, Public

if TYPE_CHECKING:
    from dpmanifold.manifolds.base import Manifold


@dataclass(frozen=True)
class Layout:
    """One form in which a record may come.

    Parameters
    ----------
    shape : of one record as it comes, such as (6,) for six columns
    words : the same for people, as it stands in a list of the forms: "6 columns for the upper triangle"
    becomes : shape of one record as the space takes it
    kind : of its numbers, "f" real or "c" complex
    read : from (n, *shape) and the name of an order, or None, to (n, *becomes), each record by itself; reshaped if left
        out
    orders : names of the orders that its columns may have, for `order=`; the first is what is meant if none is given

    Examples
    --------
    >>> Layout((9,), "9 columns", (3, 3)).shape
    (9,)
    """

    shape: tuple[int, ...]
    words: str
    becomes: tuple[int, ...]
    kind: str = "f"
    read: Callable[[Array, str | None], Array] | None = None
    orders: tuple[str, ...] = ()


def plain_layouts(shapes: dict[str, tuple[int, ...]]) -> list[Layout]:
    """Return the forms that need no words of the space: records as they are, and with their numbers in one row.

    Parameters
    ----------
    shapes : of one record, by the kind of its numbers (:attr:`Manifold.record_shapes`)

    Examples
    --------
    >>> [layout.words for layout in plain_layouts({"f": (2, 3)})]
    ['(n, 2, 3)', '6 columns']
    """
    found = []
    for kind, shape in shapes.items():
        named = "" if len(shapes) == 1 else {"f": "real ", "c": "complex "}[kind]
        found.append(Layout(shape, f"{named}(n, {', '.join(map(str, shape))})", shape, kind))
        if len(shape) > 1:
            width = math.prod(shape)
            found.append(Layout((width,), f"{width} columns", shape, kind))
    return found


def records_from(space: Manifold, array: object, order: str | None = None, look: bool = True) -> Array:
    """Return records in the shape that `space` wants, (n, *shape), from any form that it takes.

    Theory: none; each record is read by itself. :func:`dpmanifold.data.as_records` is this function for users. With
    `look`, columns that were given no order are refused where most of them make sense in another one only; without it,
    for blocks of a larger whole, nothing depends on several records.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> records_from(SPD(2), [[2.0, 0.5, 1.0]]).shape
    (1, 2, 2)
    """
    values = as_cells(array, "array")
    refuse_text(values, "array")
    if values.dtype.kind == "O":
        return _from_objects(space, values, order)
    layouts = space.layouts()
    # The shape says which kind of numbers is meant; real ones are complex only where the space has no others.
    real = values.dtype.kind in "iuf" and any(layout.kind == REAL for layout in layouts)
    found = next(
        (
            one
            for one in layouts
            if values.shape[1:] == one.shape and values.ndim > 1 and (one.kind == REAL or not real)
        ),
        None,
    )
    kind = REAL if real or found is None else found.kind
    if found is not None:
        values = numbers_of(values, kind)
    if order is not None and (found is None or not found.orders):
        ordered = [one.words for one in layouts if one.orders]
        raise InvalidArgumentError(
            "`order` means nothing for {space!r} and an array of shape {shape}: it is for {detail}. Leave it out.",
            space=Public(space),
            shape=Public(values.shape),
            detail=" and ".join(ordered) if ordered else Message("the columns of a triangle of SPD matrices"),
        )
    if found is None:
        one_record = any(layout.kind == kind and values.shape == layout.becomes for layout in layouts)
        raise InvalidDataError(
            "array must hold records of {space!r}: {listed}; got shape {shape}. {remedy}",
            space=Public(space),
            listed=Public(_listed([layout.words for layout in layouts])),
            shape=Public(_shape_of(values)),
            remedy=Public(_remedy(space, values.shape, kind, one_record)),
        )
    if found.read is not None:
        return found.read(values, order if look or not found.orders else order or found.orders[0])
    return values if found.shape == found.becomes else values.reshape(len(values), *found.becomes)


def _shape_of(values: Array) -> str:
    """Return the shape of an array for a message; of one without rows, which is only tried out, that of any rows."""
    return str(values.shape) if len(values) else str(values.shape).replace("(0,", "(n,", 1)


def _from_objects(space: Manifold, array: Array, order: str | None) -> Array:
    """Return records of an array of objects, each read by its own shape and cells: NaN where it is none.

    Where records may be of two shapes, as landmarks and pre-shapes are, they come in an array (n,) of arrays.
    """
    layouts = [one for one in space.layouts() if one.orders or order is None]
    kinds = {one.shape: one.kind for one in reversed(layouts)}
    found: list[Array | None] = []
    for record in array:
        cells = cells_in(record, kinds)
        found.append(None if cells is None else records_from(space, cells[None], order, look=False)[0])
    if len(space.record_shapes) > 1:
        return objects(found)
    missing = np.full(space.shape, np.nan, dtype=space.dtype)
    empty = np.empty((0, *space.shape), dtype=space.dtype)
    return np.stack([missing if record is None else record for record in found]) if found else empty


def several_a_unit(space: str, shape: tuple[int, ...], axes: int) -> Message:
    """Return the remedy for points with several axes in front, (n, count, *shape): one that protects people.

    Examples
    --------
    >>> print(several_a_unit("SPD(3)", (40, 30, 3, 3), 2))
    If each person has 30 points, take Product([SPD(3)] * 30); or reshape(-1, 3, 3) and repeat each person's id 30
    times in units (EACH_RECORD would protect a single point, and no person).
    """
    count = math.prod(shape[1:axes])
    own = ", ".join(map(str, shape[axes:]))
    first = f", after reshape(-1, {count}, {own})" if axes > 2 else ""
    product = f"Product([{space}] * {count})"
    return Message(
        "If each person has {count} points, take {product}{first}; or reshape(-1, {own}) and repeat each person's id "
        "{count} times in units (EACH_RECORD would protect a single point, and no person).",
        count=Public(count),
        product=Either(Public(product), Message("`space` {product}", product=Public(f'"{product}"'))),
        first=Public(first),
        own=Public(own),
    )


def _remedy(space: Manifold, shape: tuple[int, ...], kind: str, one_record: bool) -> Message:
    """Return what to do about an array of a shape that is no layout of the space."""
    if one_record:
        return Message("One record is array[None].")
    own = space.record_shapes.get(kind, space.shape)
    axes = len(shape) - len(own)
    if axes > 1 and shape[axes:] == own:
        return several_a_unit(repr(space), shape, axes)
    return Message("{hint}", hint=Public(space.shape_hint(shape) or Message("Choose the columns with `columns=`.")))


def _listed(words: list[str]) -> str:
    """Return forms for a message: "a", "a or b", "a, b, or c"."""
    if len(words) < 3:
        return " or ".join(words)
    return f"{', '.join(words[:-1])}, or {words[-1]}"
