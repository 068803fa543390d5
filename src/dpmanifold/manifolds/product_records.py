"""The forms in which records of a product of spaces come."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dpmanifold._check import Array
from dpmanifold.manifolds.layouts import Layout, plain_layouts
from dpmanifold.manifolds.parts import Run, from_row


def read_parts(runs: Sequence[Run], raw: Array) -> list[Array]:
    """Return records as stacked points of the runs, landmarks as pre-shapes; raw records of the right shape.

    What is not finite stays so.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean, KendallShapes
    >>> from dpmanifold.manifolds.parts import runs_of
    >>> raw = np.arange(14.0).reshape(2, 7) ** 2
    >>> [part.shape for part in read_parts(runs_of([Euclidean(1), KendallShapes(3)]), raw)]
    [(2, 1, 1), (2, 1, 3)]
    """
    if len(runs) == 1:
        return [_read(runs[0], raw)]
    found = []
    for run in runs:
        # A row holds complex numbers as pairs, which are real landmarks.
        shape = run.space.record_shapes.get("f", run.space.shape)
        paired = run.space.dtype.kind == "c" and "f" in run.space.record_shapes
        dtype = np.dtype(np.float64) if paired else run.space.dtype
        found.append(_read(run, from_row(raw[..., run.entries], (run.count, *shape), dtype)))
    return found


def _read(run: Run, raw: Array) -> Array:
    array, reason = run.space._entries_reason(raw)
    assert array is not None, reason  # the shape was looked at before
    return array


def layouts_of(runs: Sequence[Run]) -> list[Layout]:
    """Return the forms: of equal factors each of theirs, stacked or in one row; of others one row of entries.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> from dpmanifold.manifolds.parts import runs_of
    >>> [layout.shape for layout in layouts_of(runs_of([SPD(2)] * 5))]
    [(5, 2, 2), (20,), (5, 4), (5, 3), (15,)]
    """
    if len(runs) > 1:
        return plain_layouts({"f": (runs[-1].entries.stop,)})
    count = runs[0].count
    found: dict[tuple[str, tuple[int, ...]], Layout] = {}
    for one in runs[0].space.layouts():
        for shape in ((count, *one.shape), (count * math.prod(one.shape),)):
            words = f"(n, {', '.join(map(str, shape))})" if len(shape) > 1 else f"{shape[0]} columns"
            if one.orders:
                words += f": {one.words} of each factor"
            layout = replace(one, shape=shape, words=words, becomes=(count, *one.becomes), read=_each(one, count))
            found.setdefault((layout.kind, shape), layout)
    return list(found.values())


def _each(layout: Layout, count: int) -> Callable[[Array, str | None], Array]:
    """Return a reader that reads every factor by itself."""

    def read(values: Array, order: str | None) -> Array:
        n = len(values)
        single = values.reshape(n * count, *layout.shape)
        records = single.reshape(n * count, *layout.becomes) if layout.read is None else layout.read(single, order)
        return np.asarray(records.reshape(n, count, *layout.becomes))

    return read
