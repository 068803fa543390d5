"""Units that have classes: each unit's point, and its points in the classes that it has records in. Not private."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet.points import UnitPoints
from dpmanifold.linalg.exact_sums import ExactSum


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
