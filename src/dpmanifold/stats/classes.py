"""A private discriminant: which class a record is of, from one draw, with private labels or public ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpmanifold._check import positive_int
from dpmanifold._labels import checked_names
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.inference import Discriminant
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.accounts import Account
from dpmanifold.statistic import NEIGHBOURS_BY_CLASS, NEIGHBOURS_WITH_LABELS, Header
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.class_moments import CLASS_MOMENTS, MOST_CLASSES, ClassMomentsAboutCenter
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.featured import FeaturePlan
from dpmanifold.stats.inputs import checked_flag
from dpmanifold.stats.requests import Question
from dpmanifold.stats.samples import Labelled


def private_classes(
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
) -> Discriminant:
    """Release a linear discriminant of classes: sums and counts by class and one second moment (theory: classes).

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
    >>> found = private_classes(X, labels, ball, GDP(1.0), units=EACH_RECORD, classes=["east", "west"])
    >>> found.score(X, labels) > 0.95  # of records that may be shown: a score is not private
    True
    """
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    sample = Labelled(X, labels, checked_names(classes), checked_flag(labels_public, "labels_public"))
    drawn = ask(Question(ClassPlan.label, ClassPlan, {"refine": refine}), sample, ball, privacy, terms)
    return Discriminant(drawn.release, tuple(sample.names), drawn.known.counts)


class ClassPlan(FeaturePlan):
    """A smaller ball if one was asked for, and one draw of class moments in it.

    Parameters
    ----------
    header : what is known before any data are seen
    classes : their names, or how many there are
    labels_public, refine : as in :func:`private_classes`
    mechanism : "auto" or "gaussian"
    """

    label = "classes"

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
        header = replace(header, neighbours=NEIGHBOURS_BY_CLASS if public else NEIGHBOURS_WITH_LABELS)
        statistic = ClassMomentsAboutCenter.asked(header.ball, many, public)
        super().__init__(CLASS_MOMENTS, statistic, header, refine, mechanism)
        self.label = ClassPlan.label
