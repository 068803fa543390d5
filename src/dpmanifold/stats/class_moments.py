"""Sums and counts by class and one second moment about the ball's centre, in one draw (theory: classes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifold import features
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.features import COUNT_WEIGHT, WEIGHT, ClassMoments
from dpmanifold.frechet import LabelledPoints, UnitPoints
from dpmanifold.inference.discriminant import NUMBER_OF_CLASSES
from dpmanifold.mechanisms import Calibration, Forecast
from dpmanifold.noise.tails import Tail
from dpmanifold.privacy import Promise
from dpmanifold.release import Release
from dpmanifold.statistic import NEIGHBOURS_BY_CLASS, NEIGHBOURS_WITH_LABELS, STATISTICS, Header, Prepared
from dpmanifold.stats.additive import additive_forecast
from dpmanifold.stats.featured import FeatureStatistic
from dpmanifold.stats.ranges import Limits
from dpmanifold.stats.recipes import Recipe

# More classes than anybody lists: beyond, a number of them in a file is taken for a wrong one.
MOST_CLASSES = 1000
# As much as products count: more than is free, as a discriminant suffers most from noise on them (theory: classes). On
# a line they are cheaper. With these weights of the count, a class costs nothing.
_WEIGHT, _COUNT = 1.0, 0.25
_ON_A_LINE = (2.0, 0.5)


class ClassMomentsAboutCenter(FeatureStatistic):
    """For every class the sum of the coordinates and the count, and the second moment of all units, each over n.

    Its value has, for every class, the sum of its units' coordinates at the ball's centre and, with private labels,
    their number, both divided by the number of all units; then vecd of the average of v v' over all units.

    Parameters
    ----------
    classes : how many there are
    weight : how much products count against coordinates (theory: classes)
    count : how much a one for the class counts; 0 where labels are public
    """

    name, words = "class moments", "sums and counts by class and a second moment of all, in one draw"
    error_of = "means of classes of one size"
    proof = "docs/theory/classes.md"
    details = frozenset({NUMBER_OF_CLASSES, WEIGHT, COUNT_WEIGHT, "refine skipped"})
    features: ClassMoments

    def __init__(self, classes: int = 2, weight: float = _WEIGHT, count: float = _COUNT) -> None:
        super().__init__(ClassMoments(classes, weight, count))

    @staticmethod
    def asked(ball: Ball, classes: int, labels_public: bool) -> ClassMomentsAboutCenter:
        """Return what is released in a ball."""
        weight, count = _ON_A_LINE if ball.frame.dim == 1 else (_WEIGHT, _COUNT)
        return ClassMomentsAboutCenter(classes, weight, 0.0 if labels_public else count)

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Prepared:
        """Refuse: records alone have no classes."""
        raise InvalidArgumentError(
            "class moments need the class of every record: ask for them with private_classes, and plan them as "
            'statistic="classes".'
        )

    # ---------------------------------------------------------------- the average

    def per_unit(self, block: Array, ball: Ball) -> FloatArray:
        """Return the features of units of the first class."""
        return self.of_class(block, ball, 0)

    def of_class(self, block: Array, ball: Ball, number: int) -> FloatArray:
        """Return the features of units of a class, each by itself. Never raises."""
        v = features.coordinates(block, ball)
        return self.features.of(np.hstack([v, np.full((len(v), 1), float(number))]))

    def average(self, points: UnitPoints) -> FloatArray:
        """Return their average over units with classes; units without any have none."""
        ball = points.ball
        if not isinstance(points, LabelledPoints):
            return self.middle(ball)
        return points.mean_by_class(
            lambda block, number: self.of_class(block, ball, number), self.size(ball), self.bound(ball)
        )

    # ---------------------------------------------------------------- what releases state

    def stating(self) -> dict[str, float]:
        """Return the number of classes and the weights."""
        own = self.features
        return {NUMBER_OF_CLASSES: float(own.classes), WEIGHT: own.weight, COUNT_WEIGHT: own.count}

    def as_stated(self, release: Release) -> ClassMomentsAboutCenter:
        """Return it with the options that a release states."""
        return self._of(release.details)

    @staticmethod
    def _of(details: Mapping[str, float]) -> ClassMomentsAboutCenter:
        count = details.get(NUMBER_OF_CLASSES, 0.0)
        if not (2 <= count <= MOST_CLASSES and count == int(count)):
            raise InvalidDataError(
                f"{NUMBER_OF_CLASSES} must be a whole number from 2 to {MOST_CLASSES}, got {count:g}"
            )
        return ClassMomentsAboutCenter(int(count), details.get(WEIGHT, _WEIGHT), details.get(COUNT_WEIGHT, _COUNT))

    def shape_stated(self, ball: Ball, details: Mapping[str, float]) -> tuple[int, ...]:
        """Return the shape of a value for as many classes as are stated."""
        return self._of(details).shape(ball)

    def recipes(self) -> Sequence[Recipe]:
        """Return: by itself, or in a smaller ball; for neighbours that have their labels with them, or public ones."""
        return [_for_neighbours(recipe) for recipe in super().recipes()]

    def details_faults(self, release: Release, recipe: Recipe, shares: list[Promise]) -> list[str]:
        """Return whether weights are others than the library takes, or do not go with the neighbours."""
        public = release.neighbours == NEIGHBOURS_BY_CLASS
        asked = self.asked(release.ball, int(release.details[NUMBER_OF_CLASSES]), public).stating()
        return [
            f"{name}: stated {release.details[name]:g}, recomputed {value:g}"
            for name, value in asked.items()
            if release.details[name] != value
        ]

    def counts_faults(self, release: Release, counts: FloatArray) -> list[str]:
        """Return why classes with these public numbers of units could not have such sums and such a second moment."""
        stated, ball = self.as_stated(release), release.ball
        numbers, dim, shares = stated.numbers(release.value, ball), ball.frame.dim, counts / release.n
        limits = Limits(*stated.features.limits(dim), lambda near: stated.features.cuts_beside(shares, near, dim))
        return limits.faults("counts", numbers, Tail(release.mechanism, release.scale, len(numbers), release.grid))

    # ---------------------------------------------------------------- for people

    def error(self, ball: Ball, calibration: Calibration) -> Forecast:
        """Return the law of the error of a class's mean by noise, where all classes have as many units."""
        scale = calibration.scale * ball.radius * self.features.classes
        return additive_forecast(replace(calibration, scale=scale), ball.frame.dim)

    def notes(self, release: Release) -> list[str]:
        """Say what scale and error are about, besides what is said of every average."""
        about = (
            "scale and sensitivity are of coordinates over the ball's radius; the error is that of a class's mean, "
            "where all classes have as many units"
        )
        swamped = "the noise on the means is as large as the ball: this says nothing"
        return [about, *release.notes_on_the_ball(), *([swamped] if release.is_swamped else [])]


def _for_neighbours(recipe: Recipe) -> Recipe:
    """Return a recipe for neighbours with their labels, or in the same classes; steps are for the same ones."""
    step = None if recipe.step is None else _for_neighbours(recipe.step)
    return replace(recipe, step=step, neighbours=(NEIGHBOURS_WITH_LABELS, NEIGHBOURS_BY_CLASS))


CLASS_MOMENTS = ClassMomentsAboutCenter()
STATISTICS.register(CLASS_MOMENTS.name, CLASS_MOMENTS)
