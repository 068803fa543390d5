"""Symmetric matrices from the columns of one triangle, in the orders that tools write them.

Six numbers in the wrong order still look like a tensor. Most of them are then not positive definite, and in the right
order they are: that gives the mistake away, and the message says which order would do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Message, Public

if TYPE_CHECKING:
    from dpmanifold.manifolds.spd import SPD

_Places = tuple[Array, Array]


def _diagonal_first(size: int) -> _Places:
    rows, columns = np.triu_indices(size, 1)
    diagonal = np.arange(size)
    return np.concatenate([diagonal, rows]), np.concatenate([diagonal, columns])


ORDERS: dict[str, Callable[[int], _Places]] = {
    "row": np.triu_indices,
    "fsl": np.triu_indices,
    "dipy": np.tril_indices,
    "mrtrix": _diagonal_first,
    "camino": np.triu_indices,
}

# Enough to tell which order most matrices have.
_LOOKED_AT = 10_000


def from_triangles(values: FloatArray, space: SPD, order: str | None) -> FloatArray:
    """Return matrices (n, k, k) from k(k+1)/2 columns in an order; None is "row", if no other one is far more likely.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> from_triangles(np.array([[1.0, 2.0, 3.0, 0.1, 0.2, 0.3]]), SPD(3), "dipy")[0]
    array([[1. , 2. , 0.1],
           [2. , 3. , 0.2],
           [0.1, 0.2, 0.3]])
    """
    if order is not None and order not in ORDERS:
        raise InvalidArgumentError(
            "`order` must be one of {orders}, got {got}.", orders=Public(", ".join(ORDERS)), got=shown(order)
        )
    if order is None:
        _refuse_wrong_order(values[:: max(1, len(values) // _LOOKED_AT)], space)
    return _filled(values, space.size, order or "row")


def _filled(values: FloatArray, size: int, order: str) -> FloatArray:
    rows, columns = ORDERS[order](size)
    place = np.empty((size, size), dtype=np.intp)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return np.asarray(np.take(values, place, axis=1), dtype=np.float64)


def _refuse_wrong_order(values: FloatArray, space: SPD) -> None:
    """Refuse columns whose rows, those with gaps aside, are mostly positive definite in another order only."""
    values = values[np.isfinite(values).all(axis=1)]
    if not _mostly_points(values, space, "row"):
        likely = [order for order in ("dipy", "mrtrix") if _mostly_points(values, space, order)]
        if likely:
            template = " or ".join(f'`order="{order}"` ({_entries(space.size, order)})' for order in likely)
            raise InvalidDataError(
                "most of the matrices are not positive definite if their columns are {entries} (as FSL writes "
                'them), and would be in another order: give {orders}. Or `order="row"`, if they are what they '
                "seem to be.",
                entries=Public(_entries(space.size, "row")),
                orders=Message(template),
            )


def _mostly_points(values: FloatArray, space: SPD, order: str) -> bool:
    with np.errstate(all="ignore"):
        return 2 * int(space.valid(_filled(values, space.size, order)).sum()) >= len(values)


def _entries(size: int, order: str) -> str:
    """Return the entries in their order, such as xx, xy, yy."""
    names = "xyz" if size <= 3 else [f"{i + 1}." for i in range(size)]
    rows, columns = ORDERS[order](size)
    pairs = [f"{names[min(i, j)]}{names[max(i, j)]}".rstrip(".") for i, j in zip(rows, columns, strict=True)]
    return ", ".join(pairs[:10]) + (", ..." if len(pairs) > 10 else "")
