"""One trusted point per unit: what every statistic of private data starts from. Not private.

Units that have classes have besides their points in the classes that they have records in.

An array of records gives points in one pass over it. What is held is a block of records, and what has to be kept: sums
of a flat ball's units, points of a curved one's. A memory-mapped file never has to fit into memory, and rows may come
in any order. Every record is mapped by itself and sums are exact, so that neither blocks nor order show in a bit.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._ids import UnitIds
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidDataError, Public
from dpmanifold.frechet.map_reduce import (
    OverPoints,
    Part,
    Sample,
    merged,
    over,
    sample_of,
    solving,
    sum_of,
    unpacked,
    within,
)
from dpmanifold.frechet.record_blocks import (
    Records,
    add_clipped,
    bytes_of_a_point,
    first_sum,
    flat_sum,
    move_clipped,
    pieces_of,
    room_for,
)
from dpmanifold.frechet.solver import MOST_TRIED, Solved, Spread, Summands, solve_groups
from dpmanifold.frechet.tolerances import default_tol, lowest_tol, reach
from dpmanifold.linalg.cards.arrays import CardArray, picked
from dpmanifold.linalg.exact_sums import MOST_RECORDS, ExactSum
from dpmanifold.linalg.native.library import card_in_use
from dpmanifold.manifolds import Manifold

# Numbers in the records of whole units that are gathered from all over the data, to be solved together, and the fewest
# records.
_GATHERED, _FEWEST = 1_048_576, 64


class UnitPoints:
    """One point per unit in a ball's frame: validated, clipped, averaged within units. Data: not private.

    Made once, where records come in; nothing here looks at a point again, or raises for what a point is. Points lie in
    an array, in files that are read again, or on the workers of an engine: sums over them are the same to the last bit.

    Parameters
    ----------
    ball : the ball in whose frame the points are
    unit : "record" or "unit"
    n : how many there are
    parts : where they are: what opens as arrays of points, packed by the frame
    first : the sum of their logarithms at the frame's origin, where it is known: as `frame.log_words` adds them, on a
        flat space as `space.clipped_sums` does
    sample : some of them, by their own bits, where they were chosen already

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> points = UnitPoints.of(np.array([[1.0], [3.0]]), Ball(Euclidean(1), [0.0], 5.0))
    >>> len(points), points.mean(), points.each(lambda block: block[:, 0] ** 2)
    (2, array([2.]), array([1., 9.]))
    """

    def __init__(
        self,
        ball: Ball,
        unit: str,
        n: int,
        parts: Sequence[Part],
        first: ExactSum | None = None,
        sample: Sample | None = None,
    ) -> None:
        self.ball, self.unit = ball, unit
        self.n, self._parts, self._first, self._sample = n, tuple(parts), first, sample
        self._mean: Array | None = None

    @staticmethod
    def of(points: Array, ball: Ball, unit: str = "record") -> UnitPoints:
        """Take points (n, *frame.shape) that are in the ball's frame and were clipped there."""
        one_point = points.strides[0] == 0  # broadcast: packed as it is needed
        part = Part([points], partial(_packing, ball)) if one_point else Part([ball.frame.pack(points)], _alone)
        return UnitPoints(ball, unit, len(points), [part])

    @staticmethod
    def repeated(points: Array, ball: Ball, n: int, unit: str = "record") -> UnitPoints:
        """Take few such points again and again, n in all: each is kept once.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> UnitPoints.repeated(np.array([[1.0], [3.0]]), Ball(Euclidean(1), [0.0], 5.0), 3).array().ravel()
        array([1., 3., 1.])
        """
        stored = ball.frame.pack(points)
        whole, rest = divmod(n, len(points))
        return UnitPoints(ball, unit, n, [Part([*[stored] * whole, stored[:rest]], _alone)])

    @staticmethod
    def packed(stored: Array, ball: Ball, unit: str, first: ExactSum | None = None) -> UnitPoints:
        """Take such points as `ball.frame.pack` keeps them."""
        return UnitPoints(ball, unit, len(stored), [Part([stored], _alone)], first)

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"UnitPoints({self.n} of {self.ball!r})"

    # ---------------------------------------------------------------- all of them, in memory

    def blocks(self) -> Iterator[Array]:
        """Yield every unit's point once, in blocks (b, *frame.shape); in any order where they are in several places."""
        frame = self.ball.frame
        for part in self._parts:
            for held in part.results(list, "reading"):
                for stored in held:
                    yield from unpacked(frame, stored)

    def array(self) -> Array:
        """Return all points at once, (n, *frame.shape); in any order where they are in several places."""
        return np.concatenate([np.empty((0, *self.ball.frame.shape), self.ball.frame.dtype), *self.blocks()])

    def each(self, f: Callable[[Array], FloatArray]) -> FloatArray:
        """Return one number per unit, (n,): what `f` makes of a block, (b,). In the order of :meth:`blocks`."""
        return np.concatenate([np.empty(0), *(f(block) for block in self.blocks())])

    # ---------------------------------------------------------------- sums over them

    def mean_of(self, f: Callable[[Array], FloatArray], bound: float) -> FloatArray:
        """Return the mean over units of what `f` makes of a block, (b, m), shape (m,).

        Summed as integers, so that neither the order of the units nor the blocks show in a bit of it.

        Parameters
        ----------
        f : a map of each point by itself
        bound : a public number that no entry of `f` exceeds in size
        """
        sums = self.sum_of(f, bound)
        return np.empty(0) if sums is None else sums.total()[0] / self.n

    def sum_of(self, f: Callable[[Array], FloatArray], bound: float) -> ExactSum | None:
        """Return the sum over units as integers, so that sums of groups add up exactly; None where there are no units.

        Parameters
        ----------
        f, bound : as in :meth:`mean_of`

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> points = UnitPoints.of(np.array([[1.0], [3.0]]), Ball(Euclidean(1), [0.0], 5.0))
        >>> points.sum_of(lambda block: block, 5.0).total()
        array([[4.]])
        """
        return over(OverPoints(partial(sum_of, self.ball.frame, f, bound), merged), self._parts, self.n)

    def within(self, center: Array, distances: FloatArray) -> FloatArray:
        """Return how many units lie within each of some public distances of a point of the frame.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> points = UnitPoints.of(np.array([[1.0], [3.0]]), Ball(Euclidean(1), [0.0], 5.0))
        >>> points.within(np.zeros(1), np.array([4.0, 1.0, 0.5]))
        array([2., 1., 0.])
        """
        count = OverPoints(partial(within, self.ball.frame, center, distances), operator.add)
        counts = over(count, self._parts, self.n)
        return np.zeros(len(distances)) if counts is None else counts.astype(np.float64)

    def mean(self) -> Array:
        """Return the Fréchet mean in the frame, to the public tolerance `default_tol`; solved once and remembered."""
        if self._mean is None:
            flat = self.ball.frame.is_flat
            self._mean = self._average() if flat else self.solved(default_tol(self.ball, self.n)).points[0]
        return self._mean

    def _average(self) -> Array:
        if self._first is None:
            return self.mean_of(np.asarray, self.ball.radius)
        return np.asarray(self.ball.space.from_addends(self._first.total())[0] / self.n)

    def solved(self, tol: float) -> Solved:
        """Return the mean, as a batch of one, to a tolerance that the ball allows, and how it was found."""
        ball, frame = self.ball, self.ball.frame
        if frame.is_flat:
            return Solved(self._average()[None], np.zeros(1), 0)
        first = None if self._first is None else frame.from_log_words(frame.origin[None], self._first)
        points = Spread(ball, self._parts, self.n, self._sample)
        with solving(self._parts):
            return solve_groups(frame, ball.in_frame, points, None, None, 1, tol, 200, first=first)

    def rehearse(self) -> UnitPoints:
        """Add up points that lie on a CUDA card, and return these: what a card lacks shows before anything is spent.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> len(UnitPoints.of(np.array([[1.0], [3.0]]), Ball(Euclidean(1), [0.0], 5.0)).rehearse())
        2
        """
        frame, sends = self.ball.frame, card_in_use()
        for part in self._parts:
            for item in part.items:
                if not (isinstance(item, CardArray) or (sends and isinstance(item, np.ndarray) and len(item))):
                    continue
                # Of what will be sent to the card one point is enough to have the kernel compiled.
                stored, bound = cast("Array", item if isinstance(item, CardArray) else item[:1]), reach(self.ball)
                if math.isfinite(bound) and stored.shape[1:] != frame.shape:
                    frame.log_words(frame.at(frame.origin[None]), stored, bound)
                sample_of(MOST_TRIED + 1, stored)
        return self

    # ---------------------------------------------------------------- other units, other balls

    def in_ball(self, inner: Ball) -> UnitPoints:
        """Return the points in the frame of another ball of the same space, clipped to it."""
        if inner is self.ball:
            return self
        return self.through(partial(inner.take_over, self.ball), inner)

    def through(self, f: Callable[[Array], Array], ball: Ball) -> UnitPoints:
        """Return the points that a map of each by itself makes of them, (b, *frame.shape), in another ball's frame.

        Parameters
        ----------
        f : the map; what it returns lies in the other ball
        ball : that ball, of any space

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> points = UnitPoints.of(np.array([[1.0], [3.0]]), Ball(Euclidean(1), [0.0], 5.0))
        >>> points.through(lambda block: block / 2, Ball(Euclidean(1), [0.0], 2.5)).mean()
        array([1.])
        """
        share = self.n * bytes_of_a_point(ball)
        parts = [_kept(part.then(partial(_mapped, self.ball, f, ball)), share) for part in self._parts]
        return UnitPoints(ball, self.unit, self.n, parts)

    def at_center(self, ball: Ball) -> UnitPoints:
        """Return as many units at the centre of a ball: what stands in for points that could not be computed.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> ball = Ball(Euclidean(1), [2.0], 5.0)
        >>> UnitPoints.of(np.array([[1.0], [3.0]]), ball).at_center(ball).array()
        array([[0.],
               [0.]])
        """
        return UnitPoints.of(np.broadcast_to(ball.frame.origin, (self.n, *ball.frame.shape)), ball, self.unit)

    def where(self, chosen: Array, first: ExactSum | None = None) -> UnitPoints:
        """Return the points of some units, given a boolean for each; with the sum that is known already, if it is.

        For points that lie in one place, in the order of :meth:`blocks`.
        """
        parts = [_some_of(part, chosen) for part in self._parts]
        return UnitPoints(self.ball, self.unit, int(np.count_nonzero(chosen)), parts, first)

    def joined(self, other: UnitPoints) -> UnitPoints:
        """Return the units of two groups in one ball together."""
        first = None
        if self._first is not None and other._first is not None:
            first = self._first.cut(1)
            first.merge(other._first)
        n = len(self) + len(other)
        return UnitPoints(self.ball, self.unit, n, [*self._parts, *other._parts], first)


def _kept(part: Part, size: int) -> Part:
    """Return points as they are once opened, where there is room for them: then no further pass opens them again."""
    if part.engine is None:
        return Part([list(part.opened(item)) for item in part.items], iter)
    # Half the room: what they are made from may be held as well.
    if 2 * size > part.engine.room:
        return part
    opened = part.opened
    return Part(part.engine.keep(lambda value: list(opened(value)), part.items, "moving"), iter, part.engine)


def _alone(stored: Array) -> Iterable[Array]:
    return (stored,)


def _packing(ball: Ball, points: Array) -> Iterable[Array]:
    """Open an array of points."""
    return (ball.frame.pack(points),)


def _mapped(outer: Ball, f: Callable[[Array], Array], inner: Ball, arrays: Iterable[Array]) -> Iterator[Array]:
    """Map packed points of one ball's frame to another's."""
    for stored in arrays:
        for points in unpacked(outer.frame, stored):
            yield inner.frame.pack(f(points))


def _some_of(part: Part, chosen: Array) -> Part:
    """Return some of the points; on a card they are taken out now: later there might be no room for so many."""
    if part.opened is _alone and all(isinstance(item, CardArray) for item in part.items):
        return Part(list(_some(chosen, part.items)), _alone)
    return part.then(partial(_some, chosen))


def _some(chosen: Array, arrays: Iterable[Array]) -> Iterator[Array]:
    """Take some of the points that come, in their order."""
    start = 0
    for stored in arrays:
        yield picked(stored, chosen[start : start + len(stored)])
        start += len(stored)


class InClass(NamedTuple):
    """Points of units that have records in a class.

    Attributes
    ----------
    number : of the class
    several : in how many classes these units have records: in each a unit counts for that part of one
    points : the average of a unit's records in the class
    """

    number: int
    several: int
    points: UnitPoints


class LabelledPoints(UnitPoints):
    """One point per unit, and besides one per unit and class that it has records in. Data: not private.

    Parameters
    ----------
    units : one point per unit
    parts : the same units by class; any class may be empty

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> points = UnitPoints.of(np.array([[1.0], [3.0]]), Ball(Euclidean(1), [0.0], 5.0))
    >>> labelled = LabelledPoints(points, [InClass(0, 1, points)])
    >>> labelled.counts(2)
    [2.0, 0.0]
    """

    def __init__(self, units: UnitPoints, parts: Sequence[InClass]) -> None:
        super().__init__(units.ball, units.unit, len(units), units._parts, units._first, units._sample)
        self.parts = tuple(parts)

    def counts(self, classes: int) -> list[float]:
        """Return how many units each class has; a unit in several counts for its part in each."""
        found = [0.0] * classes
        for part in self.parts:
            found[part.number] += len(part.points) / part.several
        return found

    def in_ball(self, inner: Ball) -> LabelledPoints:
        """Return the points in the frame of another ball of the same space, clipped to it."""
        parts = [part._replace(points=part.points.in_ball(inner)) for part in self.parts]
        return LabelledPoints(super().in_ball(inner), parts)

    def at_center(self, ball: Ball) -> LabelledPoints:
        """Return as many units at the centre of a ball, each in the classes that it has."""
        parts = [part._replace(points=part.points.at_center(ball)) for part in self.parts]
        return LabelledPoints(super().at_center(ball), parts)

    def mean_by_class(self, f: Callable[[Array, int], FloatArray], size: int, bound: float) -> FloatArray:
        """Return the mean over units of what `f` makes of a block and the number of its class, (size,).

        A unit in several classes counts with the average over them. Added as integers: what each unit counts for is
        rounded by itself, and neither classes nor blocks show in how.

        Parameters
        ----------
        f : a map of each point by itself, (b, size)
        size : how many numbers it makes
        bound : a public number that no entry of `f` exceeds in size
        """
        total = ExactSum(size, bound)
        for number, several, points in self.parts:
            found = points.sum_of(partial(_shared, f, number, several), bound)
            if found is not None:
                total.merge(found)
        return np.asarray(total.total()[0] / len(self))


def _shared(f: Callable[[Array, int], FloatArray], number: int, several: int, block: Array) -> FloatArray:
    """Return what units of a class count for, each in its part."""
    return f(block, number) * (1.0 / several)


# -------------------------------------------------------------------- from an array of records


@dataclass(frozen=True)
class Made:
    """Points and what became of the records: how many lie outside the ball or on its edge, and how many were replaced.

    With it the number of records, and the ids of the units where there are some. All of it is data.
    """

    points: UnitPoints
    clipped: int
    replaced: int
    records: int
    ids: UnitIds | None


def made_from(records: Records, ball: Ball, ids: UnitIds | None = None) -> Made:
    """Return one point per unit in the ball's frame; without ids, every record is a unit."""
    refuse_too_many(len(records))
    with np.errstate(all="ignore"):  # a warning would tell about a single record
        if ids is None:
            points, clipped, replaced = (_flat_records if ball.space.is_flat else _curved_records)(records, ball)
        else:
            require_ball(ball)
            averages, clipped, replaced = (_flat_units if ball.space.is_flat else _curved_units)(records, ball, ids)
            points = of_averages(averages, ball)
    return Made(points, clipped, replaced + records.replaced, len(records), ids)


def refuse_too_many(n: int) -> None:
    """Refuse more records than can be added exactly."""
    if n > MOST_RECORDS:
        raise InvalidDataError(
            "`X` holds {n} records, and at most {most_records} can be added exactly.",
            n=Public(n),
            most_records=Public(MOST_RECORDS),
        )


def of_averages(averages: Array, ball: Ball) -> UnitPoints:
    """Return units' averages as points: an average of points of the ball is in it, but for rounding."""
    return UnitPoints.of(ball.in_frame.pull_in(averages), ball, "unit")


def made_by_class(records: Records, ball: Ball, label: Array, classes: int) -> tuple[list[UnitPoints], int, int]:
    """Return the points of each class, given the number of each record's; every record is a unit.

    With them the numbers of clipped and replaced records.
    """
    if not ball.space.is_flat:
        made = made_from(records, ball)
        made.points.rehearse()
        return [made.points.where(label == number) for number in range(classes)], made.clipped, made.replaced
    with np.errstate(all="ignore"):
        sums = flat_sum(ball, classes)
        clipped, replaced = add_clipped(records, ball, sums, label)
    everybody = UnitPoints(ball, "record", len(records), [here(records, ball)])
    parts = [everybody.where(label == number, sums.cut(1, number)) for number in range(classes)]
    return parts, clipped, replaced + records.replaced


# -------------------------------------------------------------------- flat: sums are all that is kept


def _flat_records(records: Records, ball: Ball) -> tuple[UnitPoints, int, int]:
    sums = flat_sum(ball)
    clipped, replaced = add_clipped(records, ball, sums)
    return UnitPoints(ball, "record", len(records), [here(records, ball)], sums), clipped, replaced


def here(records: Records, ball: Ball) -> Part:
    """Return the part that reads an array again: points of a flat ball."""
    return Part([records], lambda again: (ball.into_frame(block) for _, block, _ in again.blocks()))


def _flat_units(records: Records, ball: Ball, ids: UnitIds) -> tuple[FloatArray, int, int]:
    count = len(ids.found)
    sums = flat_sum(ball, count)
    clipped, replaced = add_clipped(records, ball, sums, ids.group)
    total = ball.space.from_addends(sums.total())
    return total / np.bincount(ids.group, minlength=count)[:, None], clipped, replaced


# -------------------------------------------------------------------- curved: points are kept, or units solved


def _curved_records(records: Records, ball: Ball) -> tuple[UnitPoints, int, int]:
    stored = room_for(ball, len(records), beside=records.raw)
    first = first_sum(ball)
    clipped, replaced = move_clipped(records, ball, stored, first)
    return UnitPoints.packed(stored, ball, "record", first), clipped, replaced


def _curved_units(records: Records, ball: Ball, ids: UnitIds) -> tuple[Array, int, int]:
    """Average whole units, gathered a block at a time from wherever their rows are."""
    frame, count = ball.frame, len(ids)
    order = np.argsort(ids.group, kind="stable").astype(ids.group.dtype)
    ends = np.cumsum(np.bincount(ids.group, minlength=count))
    averages = np.empty((count, *frame.shape), dtype=frame.dtype)
    clipped = replaced = start = first = 0
    step = max(_FEWEST, _GATHERED // math.prod(frame.shape))
    while first < count:
        last = max(first + 1, int(np.searchsorted(ends, start + step, "right")))
        places = order[start : ends[last - 1]]
        stored, edge, bad = _gathered(records, ball, places)
        averages[first:last] = averaged(frame, ball, stored, ids.group[places] - first, last - first)
        clipped, replaced = clipped + edge, replaced + bad
        start, first = int(ends[last - 1]), last
    return averages, clipped, replaced


def _gathered(records: Records, ball: Ball, places: Array) -> tuple[Array, int, int]:
    """Return the points of records from anywhere, packed, and how many were clipped and replaced."""
    stored = room_for(ball, len(places))
    clipped = replaced = start = 0
    for few in pieces_of(places, ball):
        edge, bad = move_clipped(records.some(few), ball, stored[start : start + len(few)])
        clipped, replaced, start = clipped + edge, replaced + bad, start + len(few)
    return stored, clipped, replaced


def averaged(
    frame: Manifold,
    ball: Ball,
    stored: Array | Summands,
    group: Array | None,
    count: int,
    first: FloatArray | None = None,
) -> Array:
    """Return the mean of each group of points, (count, *frame.shape), solved to a tolerance of the ball alone.

    A unit's average is a per-unit map: how exactly it is solved plays no part in any sensitivity. Its tolerance must
    not depend on other units (not even on how many records they have), and failure must not show.
    """
    tol = max(1e-10 * ball.radius, lowest_tol(ball, 1))
    # Never one group, which is solved with other first steps: a unit may be alone in a block because of the others. A
    # group without points is at the origin from the start.
    groups = max(2, count)
    solved = solve_groups(frame, ball.in_frame, stored, None, group, groups, tol, 200, strict=False, first=first)
    return solved.points[:count]
