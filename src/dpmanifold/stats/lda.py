"""A private linear discriminant: which class a record is of, from sums, counts and one second moment in one draw.

Labels are private, or public (theory: lda).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifold import features
from dpmanifold._cells import checked_names
from dpmanifold._check import Array, FloatArray, positive_int
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public
from dpmanifold.features import COUNT_WEIGHT, WEIGHT, ClassMoments
from dpmanifold.frechet import LabelledPoints, UnitPoints
from dpmanifold.inference import LinearDiscriminant
from dpmanifold.inference.linear_discriminant import NUMBER_OF_CLASSES
from dpmanifold.mechanisms import Calibration, Forecast
from dpmanifold.noise.source import Rng
from dpmanifold.noise.tails import Tail
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.release import Release
from dpmanifold.statistic import STATISTICS, Header
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import additive_forecast
from dpmanifold.stats.featured import FeatureProgram, FeatureStatistic
from dpmanifold.stats.inputs import checked_flag
from dpmanifold.stats.program import Program
from dpmanifold.stats.query import REFINE, Query
from dpmanifold.stats.ranges import Limits
from dpmanifold.stats.samples import Labelled

# More classes than anybody lists: beyond, a number of them in a file is taken for a wrong one.
MOST_CLASSES = 1000
# As much as products count: more than is free, as a discriminant suffers most from noise on them (theory: lda). On
# a line they are cheaper. With these weights of the count, a class costs nothing.
_WEIGHT, _COUNT = 1.0, 0.25
_ON_A_LINE = (2.0, 0.5)


def private_lda(
    X: object,
    labels: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    classes: Sequence[Any],
    labels_public: bool = False,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> LinearDiscriminant:
    """Release a linear discriminant of classes: sums and counts by class and one second moment (theory: lda).

    One draw in coordinates at the ball's centre. Labels are private unless you say otherwise, and cost nothing: what is
    promised to a unit holds for its records and their classes together. Nothing shows how many units a class has but
    a noisy count, not even that there are none. A unit with records in several classes counts for its part in each.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`;
        ApproxDP, ZCDP or GDP
    labels : one class per record; or the name of a column, where X has columns; None where X is registered with them
    classes : the public list of classes, at least two; a label outside it is an error
    labels_public : True to say that anybody may know who is in which class: then class counts are shown as they are
        and a class without units is an error, and all else is the same
    refine : spend a fifth of the promise on a smaller ball first, as in :func:`private_mean`

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Sphere
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> rng = np.random.default_rng(0)
    >>> labels = np.array(["east", "west"])[rng.integers(2, size=2000)]
    >>> sides = np.where(labels == "east", 0.3, -0.3)[:, None] * [1.0, 0.0]
    >>> ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.7)
    >>> X = Sphere(2).exp_coords(ball.center, sides + 0.1 * rng.standard_normal((2000, 2)))
    >>> found = private_lda(X, labels, ball, GDP(1.0), units=EACH_RECORD, classes=["east", "west"])
    >>> found.score(X, labels) > 0.95  # of records that may be shown: a score is not private
    True
    """
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    sample = Labelled(X, labels, classes, labels_public)
    drawn = ask(LDA.asked(refine=refine), sample, ball, privacy, terms)
    return LinearDiscriminant(drawn.release, tuple(sample.names), drawn.counts)


class ClassMomentsAboutCenter(FeatureStatistic):
    """For every class the sum of the coordinates and the count, and the second moment of all units, each over n.

    Its value has, for every class, the sum of its units' coordinates at the ball's centre and, with private labels,
    their number, both divided by the number of all units; then vecd of the average of v v' over all units.

    Parameters
    ----------
    classes : how many there are
    weight : how much products count against coordinates (theory: lda)
    count : how much a one for the class counts; 0 where labels are public
    """

    name, words = "class moments", "sums and counts by class and a second moment of all, in one draw"
    error_of = "means of classes of one size"
    proof = "lda"
    details = frozenset({NUMBER_OF_CLASSES, WEIGHT, COUNT_WEIGHT, "refinement_skipped"})
    features: ClassMoments

    def __init__(self, classes: int = 2, weight: float = _WEIGHT, count: float = _COUNT) -> None:
        super().__init__(ClassMoments(classes, weight, count))

    @staticmethod
    def asked(ball: Ball, classes: int, labels_public: bool) -> ClassMomentsAboutCenter:
        """Return what is released in a ball."""
        weight, count = _ON_A_LINE if ball.frame.dim == 1 else (_WEIGHT, _COUNT)
        return ClassMomentsAboutCenter(classes, weight, 0.0 if labels_public else count)

    def prepared(self, header: Header, *, refine: bool = False, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Refuse: records alone have no classes."""
        raise InvalidArgumentError(
            "class moments need the class of every record: ask for them with private_lda, and plan them as "
            'statistic="{name}".',
            name=Public(LDA.name),
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
                "{name} must be a whole number from 2 to {most}, got {count:g}",
                name=Public(NUMBER_OF_CLASSES),
                most=Public(MOST_CLASSES),
                count=Public(count),
            )
        return ClassMomentsAboutCenter(int(count), details.get(WEIGHT, _WEIGHT), details.get(COUNT_WEIGHT, _COUNT))

    def shape_stated(self, ball: Ball, details: Mapping[str, float]) -> tuple[int, ...]:
        """Return the shape of a value for as many classes as are stated."""
        return self._of(details).shape(ball)

    def counts_faults(self, release: Release, counts: FloatArray) -> list[str]:
        """Return why classes with these public numbers of units could not have such sums and such a second moment."""
        stated, ball = self.as_stated(release), release.ball
        numbers, dim, shares = stated.numbers(release.value, ball), ball.frame.dim, counts / release.n
        limits = Limits(*stated.features.limits(dim), lambda near: stated.features.cuts_beside(shares, near, dim))
        tail = Tail(release.mechanism, release.scale, len(numbers), release.draws[0].grid)
        return limits.faults("counts", numbers, tail)

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


CLASS_MOMENTS = ClassMomentsAboutCenter()
STATISTICS.register(CLASS_MOMENTS.name, CLASS_MOMENTS)


class ClassProgram(FeatureProgram):
    """A smaller ball if one was asked for, and one draw of class moments in it.

    Parameters
    ----------
    header : what is known before any data are seen
    classes : their names, or how many there are
    labels_public, refine : as in :func:`private_lda`
    mechanism : "auto" or "gaussian"
    """

    def __init__(
        self,
        header: Header,
        *,
        classes: Sequence[Any] | int | None = None,
        labels_public: bool = False,
        refine: bool = False,
        mechanism: Any = "auto",
    ) -> None:
        public = checked_flag(labels_public, "labels_public")
        if classes is None:
            raise InvalidArgumentError("`classes` must be given: the public list of them, or how many there are.")
        many = positive_int(classes, "classes", minimum=2) if isinstance(classes, int) else len(checked_names(classes))
        if many > MOST_CLASSES:
            raise InvalidArgumentError(
                "`classes` must be at most {most_classes:,}, got {many:,}.",
                most_classes=Public(MOST_CLASSES),
                many=Public(many),
            )
        statistic = ClassMomentsAboutCenter.asked(header.ball, many, public)
        super().__init__(statistic, header, refine, mechanism)


LDA = Query(
    name="lda",
    title="Linear discriminant of classes",
    call=private_lda,
    sample=Labelled,
    plan=ClassProgram,
    result=LinearDiscriminant,
    options=(REFINE,),
    releases=(CLASS_MOMENTS.name,),
    figure="dpmanifold.plots.lda_plot:classes",
    views=("picture",),
)
