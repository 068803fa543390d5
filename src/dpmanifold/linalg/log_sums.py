"""Exact sums of logarithms of many SPD matrices in one pass: over raw records, and over points that were whitened once.

Sums are :class:`~dpmanifold.linalg.exact_sums.ExactSum` of lower triangles, packed by rows: their bits depend neither
on the order of records nor on blocks, threads or partitions. What is added for a record depends on that record alone,
whichever way it was computed. Nothing here is private.

Matrices that lie on a CUDA card are kept there in the frame of their log-Euclidean mean: two passes, and none is
fetched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg.cards.arrays import CardArray, is_card_array, on_card, picked, places_of, room_on_card
from dpmanifold.linalg.exact_sums import ExactSum, IntArray
from dpmanifold.linalg.fused import (
    LARGEST_LOGARITHM,
    affine_factor,
    inspect,
    log_coordinates,
    log_norm,
    shortened,
    whitened,
    whitened_scaled,
)
from dpmanifold.linalg.native import passes
from dpmanifold.linalg.native.library import card_in_use
from dpmanifold.linalg.symmetric import (
    expm,
    from_vecd,
    log_of_eigenvalues,
    logm,
    pack_triangles,
    symmetrize,
    unpack_triangles,
    vecd_of_triangles,
)

# Records that are copied at a time where the kernels cannot read them in place; more where they are sent to a card.
_BLOCK, _SENT = 4096, 2**18

# The table that is tried first where no bound is known; a matrix beyond it takes the largest one.
_USUAL_CONDITION = 1e4

# What counts as on the edge of a ball, as a share of its radius: clipping leaves records there. As in the kernels.
_EDGE = 1 - 1e-9

_EPS = float(np.finfo(np.float64).eps)

_NOWHERE: Array = np.empty(0, dtype=np.intp)


@dataclass
class LogSums:
    """What a pass over raw records found.

    Attributes
    ----------
    sums : the sums of lower triangles, packed by rows, one per group; faulty records add nothing
    n : how many records there are
    held : the status of each, here or on a card
    clips : how many records were clipped, where it is known that none is faulty
    """

    sums: ExactSum
    n: int
    held: Array | CardArray = field(default_factory=lambda: np.empty(0, dtype=np.uint8))
    clips: int | None = 0

    def put(self, rows: slice, held: Array | CardArray, clips: int | None = None) -> None:
        """Note the status of some rows, of all of them as it came, and how many were clipped, where none is faulty."""
        self.clips = None if self.clips is None or clips is None else self.clips + clips
        if rows == slice(0, self.n):
            self.held = held
            return
        if not len(self.held):
            self.held = np.empty(self.n, dtype=np.uint8)
        self.held[rows] = np.asarray(held)

    @property
    def status(self) -> Array:
        """(n,), a bit each for `not finite` (2), `not symmetric` (4), `not positive definite` (1) and `clipped` (8).

        The last one, on the edge of the ball or beyond it, where nothing is wrong.
        """
        return np.asarray(self.held)

    @property
    def faulty(self) -> Array:
        """Which records are no SPD matrices, a boolean each."""
        if self.clips is not None:
            return np.broadcast_to(np.False_, (len(self.held),))
        return np.asarray((self.status & passes.FAULTS) != 0)

    @property
    def faulty_places(self) -> Array:
        """The indices of records that are no SPD matrices."""
        return _NOWHERE if self.clips is not None else np.flatnonzero(self.status & passes.FAULTS)

    @property
    def clipped(self) -> int:
        """How many records lie on the edge of the ball or beyond it."""
        return int(np.count_nonzero(self.status & passes.CLIPPED)) if self.clips is None else self.clips

    @property
    def clipped_places(self) -> Array:
        """The indices of records on the edge of the ball or beyond it."""
        if self.clips is None:
            return np.flatnonzero(self.status & passes.CLIPPED)
        return places_of(self.held) if self.clips else _NOWHERE

    def totals(self) -> FloatArray:
        """Return the sums as coordinates (vecd), (groups, k(k+1)/2)."""
        return vecd_of_triangles(self.sums.total())


def clipped_log_sums(
    x: Array,
    center: FloatArray | None = None,
    radius: float = math.inf,
    *,
    tolerance: float,
    sums: ExactSum | None = None,
    group: Array | None = None,
) -> LogSums:
    """Check records, take logarithms of their symmetric parts, subtract a centre, clip and add: one pass, no copy.

    Arrays of doubles in C order, memory-mapped ones too, are read where they are; others in small blocks. A record is
    faulty if it is not finite, not symmetric to `tolerance`, or not positive definite to working precision (smallest
    eigenvalue at most k eps times the largest); it adds nothing.

    Parameters
    ----------
    x : (n, k, k), records as a user gave them
    center : (k, k), a logarithm; 0 by default
    radius : differences longer than this are shortened to it. Centre and radius, which are public, decide the number
        of poles; a record that needs more gets them by itself
    tolerance : by what share of the largest entry mirrored entries may differ
    sums : where to add; a new sum, if none is given. Its bound must be `radius` at least
    group : (n,), the number of each record's group in `sums`

    Examples
    --------
    >>> records = np.stack([np.eye(2), np.diag([1.0, np.exp(4.0)]), -np.eye(2)])
    >>> found = clipped_log_sums(records, radius=1.0, tolerance=1e-6)
    >>> found.totals().round(12), found.clipped, found.faulty.tolist()
    (array([[0., 1., 0.]]), 1, [False, False, True])
    """
    x = passes.entered(x)
    k = x.shape[-1]
    size = k * (k + 1) // 2
    if sums is None:
        bound = radius if radius < math.inf else LARGEST_LOGARITHM
        sums = ExactSum(size, bound, 1 if group is None else int(np.max(group, initial=-1)) + 1)
    codes = None if group is None else np.ascontiguousarray(group, dtype=np.int64)
    shift = np.zeros((k, k)) if center is None else passes.plain(center)
    condition = _USUAL_CONDITION if radius == math.inf else _condition(shift, radius)
    status = LogSums(sums, len(x))
    for rows in _readable(x):
        part = passes.plain(x[rows])
        of_part = None if codes is None else codes[rows]
        if not passes.usable(part):
            sums.count(len(part))
            status.put(rows, _log_sums_by_lapack(part, shift, radius, tolerance, sums, of_part))
            continue
        found = passes.run(
            part,
            passes.LOG,
            center=None if center is None else shift,
            radius=radius,
            condition=condition,
            tolerance=tolerance,
            sums=sums,
            group=of_part,
        )
        for few in _pieces(found.marked):
            found.status[few] = _log_sums_by_lapack(
                part[few], shift, radius, tolerance, sums, None if of_part is None else of_part[few]
            )
        status.put(rows, found.held, found.clips)
    return status


def whitened_triangles(
    x: Array,
    inverse: FloatArray,
    power: int,
    radius: float,
    *,
    tolerance: float,
    spread: float = 0.0,
    out: FloatArray | None = None,
    places: Array | None = None,
    sums: ExactSum | None = None,
) -> tuple[FloatArray, LogSums]:
    """Check records and whiten them, 2^-power a x a' with lower triangular `a`; no copy.

    Returns packed lower triangles, one row per record, and the sum of the logarithms of those that lie within `radius`
    of the identity. Records that do not (status `clipped`) and faulty ones add nothing, and their rows mean
    nothing: the caller decides what they count as. Which ones are faulty, as in :func:`clipped_log_sums`, is a fact of
    the record, whatever it is whitened by.

    Parameters
    ----------
    x : (n, k, k), records as a user gave them
    inverse, power : from :func:`~dpmanifold.linalg.affine_factor` of the centre
    radius, tolerance : as in :func:`clipped_log_sums`
    spread : how far points of the ball may be from each other beyond the radius, for the number of poles
    out : (rows, k(k+1)/2), where to write; a new array, if none is given
    places : (n,), the row of `out` for each record; its own by default
    sums : where to add the logarithms; a new sum, if none is given. Its bound must be `radius` at least

    Examples
    --------
    >>> stored, found = whitened_triangles(4 * np.eye(2)[None], np.eye(2) / 2, 0, 1.0, tolerance=1e-6)
    >>> stored, found.totals()
    (array([[1., 0., 1.]]), array([[0., 0., 0.]]))
    """
    x = passes.entered(x)
    k = x.shape[-1]
    size = k * (k + 1) // 2
    stored = np.empty((len(x), size)) if out is None else out
    where = None if places is None else np.ascontiguousarray(places, dtype=np.int64)
    sums = ExactSum(size, radius) if sums is None else sums
    condition = condition_within(radius + spread)
    status = LogSums(sums, len(x))
    factor = passes.plain(inverse)
    scales = bool((factor == factor[0, 0] * np.eye(k)).all())  # such a factor changes no condition number
    for rows in _readable(x):
        part = passes.plain(x[rows])
        to = None if where is None else np.ascontiguousarray(where[rows])
        if not passes.usable(part):
            sums.count(len(part))
            moved, of_part = _whitened_by_lapack(part, factor, power, radius, tolerance, sums)
            status.put(rows, of_part)
            stored[rows if to is None else to] = moved
            continue
        whiten = partial(
            passes.run,
            function=passes.LOG,
            factor=factor,
            power=power,
            radius=radius,
            condition=condition,
            tolerance=tolerance,
        )
        found = whiten(part, sums=sums, moved=stored[rows] if to is None else stored, places=to)
        # The pass looked at whitened records, and a factor may make a good matrix of a singular one, or the reverse.
        doubtful = _NOWHERE if scales else passes.run(part, passes.CHECK, radius=tolerance).marked
        for few in _pieces(np.setdiff1d(doubtful, found.marked)):
            taken = ExactSum(size, sums.bound)
            whiten(passes.plain(picked(part, few)), sums=taken, moved=np.empty((len(few), size)))
            sums.words[0] -= taken.words[0]
        odd = np.union1d(found.marked, doubtful)
        if odd.size == 0:
            status.put(rows, found.held, found.clips)
            continue
        of_part = np.array(found.status)
        for few in _pieces(odd):
            at = rows.start + few if to is None else to[few]
            stored[at], of_part[few] = _whitened_by_lapack(part[few], factor, power, radius, tolerance, sums)
        status.put(rows, of_part)
    return stored, status


def gradient_sums(
    triangles: FloatArray,
    inverse: FloatArray,
    power: IntArray | int,
    bound: float,
    *,
    group: Array | None = None,
    rows: Array | None = None,
    sums: ExactSum | None = None,
) -> ExactSum:
    """Return exact sums of log(2^-power a x a'), one per group: of lower triangles, packed by rows.

    Minus n times the gradient of half the mean squared affine-invariant distance. Points are trusted.

    Parameters
    ----------
    triangles : (m, k(k+1)/2), points as :func:`whitened_triangles` returns them
    inverse, power : of one base point, (k, k) and a number; or of one for each group, (groups, k, k) and (groups,)
    sums : where to add; new sums, one for each base point, if none are given
    bound : no point is farther from its base point than this: a public number. Logarithms are shortened to it, and it
        decides the number of poles
    group : (m,), the group of each point, where there are several
    rows : which points to add; all by default

    Examples
    --------
    >>> gradient_sums(np.array([[1.0, 0.0, np.e]]), np.eye(2), 0, 2.0).total().round(12) + 0.0
    array([[0., 0., 1.]])
    """
    triangles = CardArray.of(triangles, "triangles") if on_card(triangles) else triangles  # type: ignore[assignment]
    size = triangles.shape[-1]
    k = passes.size_of(size)
    several = inverse.ndim == 3
    sums = ExactSum(size, bound, len(inverse) if several else 1) if sums is None else sums
    condition = condition_within(bound)
    codes = None if group is None else np.ascontiguousarray(group, dtype=np.int64)
    chosen = None if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
    if not passes.usable_size(k, card_in_use(is_card_array(triangles))):
        sums.count(len(triangles) if chosen is None else len(chosen))
        _gradient_by_lapack(triangles, inverse, power, bound, codes, chosen, sums)
        return sums
    found = passes.run(
        passes.plain(triangles),
        passes.LOG,
        factor=passes.plain(inverse),
        power=0 if several else int(power),
        powers=np.ascontiguousarray(power, dtype=np.int64) if several else None,
        radius=bound,
        condition=condition,
        rows=chosen,
        group=codes,
        sums=sums,
    )
    if found.marked.size:
        left = found.marked if chosen is None else chosen[found.marked]
        _gradient_by_lapack(triangles, inverse, power, bound, codes, left, sums)
    return sums


def longest_triangle(triangles: FloatArray) -> float:
    """Return the largest norm of logarithms of packed triangles that lie on a card: their spread about the identity."""
    assert is_card_array(triangles)
    longest, left = passes.longest_norm(triangles)
    if left.size:
        longest = max(longest, float(log_norm(unpack_triangles(triangles[left])).max()))
    return longest


def condition_within(distance: float) -> float:
    """Return how ill-conditioned a matrix within a distance of the identity can be; 1 % more, for rounding.

    Logarithms of two eigenvalues differ by at most sqrt(2) times the norm of all of them.

    >>> round(condition_within(0.0), 4)
    1.0101
    """
    return math.exp(min(math.sqrt(2) * distance + 0.01, 700.0))


def _condition(center: FloatArray, radius: float) -> float:
    values = np.linalg.eigvalsh(center)
    return math.exp(min(float(values[-1] - values[0]) + math.log(condition_within(radius)), 700.0))


def _readable(x: Array) -> Iterator[slice]:
    """Yield all of x where the kernels can read it in place, else small blocks."""
    if isinstance(x, CardArray):
        step = max(1, len(x)) if card_in_use(lies_there=True) and passes.usable(x) else _BLOCK
    else:
        in_place = x.dtype == np.float64 and x.flags.c_contiguous and x.flags.aligned and x.dtype.isnative
        step = max(1, len(x)) if in_place and passes.usable(x) else _SENT if card_in_use() else _BLOCK
    for start in range(0, len(x), step):
        yield slice(start, min(start + step, len(x)))


def _pieces(marked: Array) -> Iterator[Array]:
    for start in range(0, len(marked), _BLOCK):
        yield marked[start : start + _BLOCK]


def _checked(x: FloatArray, tolerance: float) -> tuple[FloatArray, Array]:
    """Return symmetric parts, the identity in place of faulty records, and the status of each."""
    k = x.shape[-1]
    status = np.zeros(len(x), dtype=np.uint8)
    with np.errstate(all="ignore"):
        finite = np.asarray(np.isfinite(x).all(axis=(1, 2)))
        usable = np.where(finite[:, None, None], x, np.eye(k))
        uneven = inspect(usable, tolerance)[0]
        part = symmetrize(usable)
        largest = np.abs(part).max(axis=(1, 2), initial=0.0)
        values = np.linalg.eigvalsh(part / np.where(largest > 0, largest, 1.0)[:, None, None])
    indefinite = ~(values[:, 0] > k * _EPS * values[:, -1])
    status[~finite] = passes.NOT_FINITE
    status[uneven] |= passes.NOT_SYMMETRIC
    status[indefinite] |= passes.UNUSABLE
    part[status != 0] = np.eye(k)
    return part, status


def _log_sums_by_lapack(
    x: FloatArray, center: FloatArray, radius: float, tolerance: float, sums: ExactSum, group: IntArray | None
) -> Array:
    """Add records one by one and return the status of each."""
    part, status = _checked(x, tolerance)
    difference = (log_of_eigenvalues(part) if passes.usable(x) else logm(part)) - center
    good = status == 0
    clipped, lengths = shortened(difference, radius)
    status[good & (lengths > radius * _EDGE)] = passes.CLIPPED
    sums.add(pack_triangles(clipped[good]), None if group is None else group[good], counted=True)
    return status


def _whitened_by_lapack(
    x: FloatArray, inverse: FloatArray, power: int, radius: float, tolerance: float, sums: ExactSum
) -> tuple[FloatArray, Array]:
    part, status = _checked(x, tolerance)
    moved = whitened(inverse, part, power)
    logs = from_vecd(log_coordinates(part, inverse, power))
    far = np.linalg.norm(logs, axis=(-1, -2)) > radius * _EDGE
    good = (status == 0) & ~far
    status[(status == 0) & far] = passes.CLIPPED
    sums.add(pack_triangles(logs[good]), counted=True)
    return pack_triangles(moved), status


def _gradient_by_lapack(
    triangles: FloatArray,
    inverse: FloatArray,
    power: IntArray | int,
    bound: float,
    group: IntArray | None,
    rows: IntArray | None,
    sums: ExactSum,
) -> None:
    chosen = np.arange(len(triangles)) if rows is None else rows
    for few in _pieces(chosen):
        matrices = unpack_triangles(triangles[few])
        several = inverse.ndim == 3
        of = None if group is None else group[few]
        white, taken = whitened_scaled(inverse[of] if several else inverse, matrices)
        logs = log_of_eigenvalues(white)
        diagonal = np.arange(matrices.shape[-1])
        shift = np.asarray(power)[of] if several else power
        logs[:, diagonal, diagonal] += ((taken - shift) * math.log(2))[:, None]
        sums.add(pack_triangles(shortened(logs, bound)[0]), of, counted=True)


@dataclass(frozen=True)
class Anchored:
    """What was found of matrices on a card.

    Attributes
    ----------
    odd : the indices of those that are no SPD matrices; nothing else means anything if there are any
    anchor : (k, k), the log-Euclidean mean
    stored : (n, k(k+1)/2), the matrices whitened by it, packed lower triangles on the card
    sums : the sum of their logarithms
    """

    odd: Array
    anchor: FloatArray
    stored: Array
    sums: ExactSum


def anchored_there(x: Array, tolerance: float) -> Anchored | None:
    """Check matrices (n, k, k) and whiten them by their log-Euclidean mean, where a card does it; None elsewhere.

    `tolerance` says by what share of the largest entry mirrored entries may differ.

    Examples
    --------
    >>> anchored_there(np.eye(2)[None], 1e-6) is None
    True
    """
    if not (card_in_use(is_card_array(x)) and passes.usable(x)):
        return None
    k = x.shape[-1]
    size = k * (k + 1) // 2
    logs = clipped_log_sums(x, tolerance=tolerance)
    anchor = expm(unpack_triangles(logs.sums.total()[0]) / len(x))
    sums, odd = ExactSum(size, LARGEST_LOGARITHM), logs.faulty_places
    if odd.size:
        return Anchored(odd, anchor, np.empty((0, size)), sums)
    inverse, power = affine_factor(anchor)
    out = room_on_card((len(x), size), beside=x)
    stored, found = whitened_triangles(x, inverse, power, math.inf, tolerance=tolerance, out=out, sums=sums)
    return Anchored(found.faulty_places, anchor, stored, sums)
