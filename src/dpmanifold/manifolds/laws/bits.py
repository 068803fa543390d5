"""What is computed of a record is a function of that record alone, bit for bit: sensitivities rest on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from dpmanifold._check import Array
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.laws.samples import points, require

# Records in all, those that are looked at one by one, and the sizes of batches that cut loops and products differently.
_RECORDS, _ALONE, _SIZES = 128, 37, (2, 3, 7, 8, 16, 33, 37)
# What records that went through single precision, or were written with few digits, are off by.
_PERTURBED = 1e-8


def bits_do_not_depend_on_the_batch(space: Manifold, rng: np.random.Generator) -> None:
    """Map records alone, in batches of several sizes, in other orders and layouts of memory."""
    p, q = points(space, rng, 1)[0], points(space, rng, _RECORDS)
    c = np.asarray(space.log_coords(p, q))
    off = q * (1 + _PERTURBED * rng.standard_normal(q.shape))
    maps: dict[str, tuple[Callable[[Array], Array], Array]] = {
        "to_origin": (lambda x: space.to_origin(p, x), q),
        "from_origin": (lambda x: space.from_origin(p, x), q),
        "log_coords": (lambda x: space.log_coords(p, x), q),
        "dist": (lambda x: space.dist(p, x), q),
        "exp_coords": (lambda x: space.exp_coords(p, x), c),
        "project": (space.project, q),
        "project of records that are a little off": (space.project, off),
        "valid": (space.valid, off),
        "out_of_frame": (lambda x: space.out_of_frame(p, x), q),
        **dict(_readers(space, rng)),
    }
    for name, (call, records) in maps.items():
        _same_alone(name, call, records)
    good = off[space.valid(off)]
    if len(good) > _ALONE:
        _same_alone("as_points", space.as_points, good)


def _readers(space: Manifold, rng: np.random.Generator) -> Iterator[tuple[str, tuple[Callable[[Array], Array], Array]]]:
    """Yield the readers of layouts in every order, with numbers to read, of unit length as some ask for."""
    for layout in space.layouts():
        read = layout.read
        if read is None:
            continue
        numbers = rng.standard_normal((_RECORDS, *layout.shape))
        numbers /= np.sqrt((numbers**2).reshape(_RECORDS, -1).sum(axis=1)).reshape(-1, *(1,) * len(layout.shape))
        records = numbers.astype(np.complex128 if layout.kind == "c" else np.float64)
        for order in layout.orders or (None,):
            yield f"the layout {layout.words!r} in the order {order!r}", (partial(_read, read, order), records)


def _read(read: Callable[[Array, str | None], Array], order: str | None, values: Array) -> Array:
    return read(values, order)


def _same_alone(name: str, call: Callable[[Array], Array], records: Array) -> None:
    whole = [one.tobytes() for one in np.asarray(call(records))]
    n = len(records)
    parts = [slice(i, i + 1) for i in range(min(n, _ALONE))]
    parts += [slice(start, start + size) for size in _SIZES for start in range(0, n - size + 1, size)]
    parts += [slice(n - size, n) for size in _SIZES]
    for part in parts:
        _compare(name, call(records[part]), whole[part], f"in a batch of {part.stop - part.start}")
    _compare(name, call(np.asfortranarray(records)), whole, "in Fortran order")
    _compare(name, call(records[::-1]), whole[::-1], "in a batch that is reversed")
    _compare(name, call(records[1::3]), whole[1::3], "in a batch with strides")


def _compare(name: str, found: Array, wanted: list[bytes], where: str) -> None:
    same = [one.tobytes() for one in np.asarray(found)] == wanted
    require(same, f"{name}: a record has other bits {where}, so that one record changes what others count as")
