"""Exact sums of logarithms of many points of spheres, hyperbolic spaces and planar shapes, by the compiled kernels.

Points are trusted. A logarithm depends on its point and base point alone, and sums are exact: order, blocks and threads
leave no trace. Nothing here is private.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.linalg.native import passes
from dpmanifold.linalg.native.library import GradientArguments, current

# Numbers of the C enumeration Kind.
SPHERE, HYPERBOLIC, SHAPE = range(3)

# Beyond it the kernels' factor would overflow: bounds so small are left to numpy.
_LARGEST_SHIFT = 1000

# Numbers of points that are added in numpy at a time.
_BLOCK = 32_768


def tangent_sums(
    kind: int,
    base: FloatArray,
    points: FloatArray,
    bound: float,
    *,
    scale: float = 1.0,
    group: Array | None = None,
    rows: Array | None = None,
    sums: ExactSum | None = None,
) -> tuple[ExactSum, Array] | None:
    """Add logarithms of points at their group's base point; None without the kernels.

    Returns the sums and the indices of points that were left out, because the kernels' formula would lose their digits
    (near the cut locus). On spheres and shapes (real and imaginary parts in turn) the vectors are those of the space
    around; on hyperbolic space, coordinates in the boosted frame.

    Parameters
    ----------
    kind : SPHERE, HYPERBOLIC or SHAPE
    base : (groups, size), base points of curvature 1 or -1, or pre-shapes
    points : (n, size)
    bound : what no logarithm exceeds, at that curvature; longer ones are shortened
    scale : what points are multiplied by, to that curvature
    group : (n,), each point's base point; the only one by default
    rows : which points to add; all by default
    sums : where to add; new sums, one for each base point, if none are given

    Examples
    --------
    >>> found = tangent_sums(SPHERE, np.array([[1.0, 0.0]]), np.array([[0.6, 0.8]]), 2.0)
    >>> found is None or found[0].total().round(6).tolist() == [[0.0, 0.927295]]
    True
    """
    available = current()
    if available is None:
        return None
    handle, level = available
    size = points.shape[-1]
    x, at = passes.plain(points), passes.plain(base)
    codes = None if group is None else np.ascontiguousarray(group, dtype=np.int64)
    chosen = None if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
    n = len(x) if chosen is None else len(chosen)
    # The kernels read as much memory as these shapes promise: a wrong one must stop here.
    passes.require(x, (len(x), size), "the points")
    passes.require(at, (1 if codes is None else len(at), size), "the base points")
    passes.require_numbers(codes, len(x), len(at), "the groups")
    passes.require_numbers(chosen, n, len(x), "the rows")
    sums = ExactSum(size - 1 if kind == HYPERBOLIC else size, bound, len(at)) if sums is None else sums
    if sums.shift > _LARGEST_SHIFT:
        return None
    sums.count(n)
    status = np.zeros(n, dtype=np.uint8)
    arguments = GradientArguments(
        n=n, size=size, kind=kind, scale=scale, bound=bound, fixed=math.ldexp(1.0, sums.shift)
    )
    passes.point_at(arguments, x=x, base=at, rows=chosen, codes=codes, words=sums.words, status=status)
    count = passes.checked(handle.dpm_gradient(level, ctypes.byref(arguments), passes.threads(handle, 20.0 * n * size)))
    left = np.flatnonzero(status) if count else np.empty(0, dtype=np.intp)
    return sums, left if chosen is None else chosen[left]


def completed_sums(
    kind: int,
    size: float,
    base: Array,
    points: Array,
    bound: float,
    logarithms: Callable[[Array, Array], Array],
    *,
    numbers: Callable[[Array], FloatArray] = np.asarray,
    group: Array | None = None,
    rows: Array | None = None,
    sums: ExactSum | None = None,
) -> ExactSum:
    """Return :func:`tangent_sums` with the points that were left out added in numpy: all of them, without the kernels.

    Shapes as there, in the space's own scale; the sums are at curvature 1 or -1, and so is their bound.

    Parameters
    ----------
    size : the space's radius of curvature
    logarithms : of points (m, ...) at base points (m, ...): what the kernels add, by the space's own formula
    numbers : how base points, points and logarithms are read as doubles
    sums : where to add, from an earlier call; with it, one base point may stand for all groups

    Examples
    --------
    >>> foot, point = np.array([[1.0, 0.0]]), np.array([[0.6, 0.8]])
    >>> log = lambda p, q: np.array([[0.0, 0.9272952180016122]])
    >>> completed_sums(SPHERE, 1.0, foot, point, 2.0, log).total().round(6)
    array([[0.      , 0.927295]])
    """
    groups = len(base) if sums is None else sums.groups
    if len(base) < groups:
        base = np.broadcast_to(base, (groups, *base.shape[1:]))  # one base point for all groups
    at, scale = numbers(base) / size, 1 / size
    width = at.shape[-1] - 1 if kind == HYPERBOLIC else at.shape[-1]
    sums = ExactSum(width, bound / size, groups) if sums is None else sums
    found = tangent_sums(kind, at, numbers(points), bound / size, scale=scale, group=group, rows=rows, sums=sums)
    left = (np.arange(len(points)) if rows is None else rows) if found is None else found[1]
    step = max(1, _BLOCK // at.shape[-1])
    for few in (left[start : start + step] for start in range(0, len(left), step)):
        of_few = None if group is None else group[few]
        feet = base[np.zeros(len(few), int) if of_few is None else of_few]
        # Those that the kernels left out were counted with the others.
        sums.add(numbers(logarithms(feet, points[few])) / size, of_few, counted=found is not None)
    return sums
