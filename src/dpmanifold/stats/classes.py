"""A private discriminant: which class a record is of, from one draw, with private labels or public ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpmanifold._check import positive_int
from dpmanifold._labels import checked_names
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public
from dpmanifold.frechet import LabelledPoints
from dpmanifold.inference import Discriminant
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.accounts import Account
from dpmanifold.progress import bar
from dpmanifold.release import Release
from dpmanifold.statistic import NEIGHBOURS_BY_CLASS, NEIGHBOURS_WITH_LABELS, Header
from dpmanifold.stats.asking import Terms
from dpmanifold.stats.by_class import labelled_points
from dpmanifold.stats.class_moments import CLASS_MOMENTS, MOST_CLASSES, ClassMomentsAboutCenter
from dpmanifold.stats.content import content_of
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import fresh_bits
from dpmanifold.stats.featured import FeaturePlan
from dpmanifold.stats.inputs import checked_flag, checked_question
from dpmanifold.stats.records import as_batch
from dpmanifold.stats.registered import Registered
from dpmanifold.stats.registering import (
    PRIVATE,
    facts_of,
    opened_labelled,
    refuse_elsewhere,
    refuse_other_classes,
    registered_counts,
)
from dpmanifold.stats.rehearsal import Rehearsal, public_classes
from dpmanifold.stats.requests import Question
from dpmanifold.stats.settling import Request


@bar("clipping and solving")
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
    checked_question(ball, privacy, "X, labels")
    checked_flag(labels_public, "labels_public")
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    terms.check(ball)
    names = checked_names(classes)
    points: LabelledPoints | None = None
    if isinstance(X, Registered):
        refuse_elsewhere(X, ball, units, invalid, budget)
        n, unit, counts = X.n, X.unit, _registered_counts(X, labels, names, labels_public)
    else:
        X = as_batch(X, ball, labels=labels, units=units)
        points = labelled_points(X, labels, ball, units, invalid, names, terms.told)
        n, unit = len(points), points.unit
        counts = _public_counts(points.counts(len(names)), names) if labels_public else None
    neighbours = NEIGHBOURS_BY_CLASS if labels_public else NEIGHBOURS_WITH_LABELS
    header = Header(ball, n, privacy, unit, neighbours, arithmetic)
    asked = {"classes": names, "labels_public": labels_public, "refine": refine}
    question = Question(ClassPlan.label, ClassPlan, asked)
    plan = question(header)
    bits = fresh_bits(rng, ball, arithmetic)

    def request(account: Account) -> Request:
        if points is None:
            return question.request(header, [X.id]), ()  # type: ignore[attr-defined]
        data = account.marked(content_of(X, ball, units, labels, names), facts_of(ball, points))
        return question.request(header, [data.id]), (data,)

    def draw() -> list[Release]:
        opened = opened_labelled(X, ball, names, terms.told) if isinstance(X, Registered) else points
        return [plan.release(opened, bits)]  # type: ignore[arg-type]

    rehearsal = Rehearsal(
        question, header, bits.exact, plan.steps,
        lambda bits: [plan.release(public_classes(ball, n, unit, len(names)), bits)],
    )  # fmt: skip
    return Discriminant(terms.settle(privacy, plan.label, request, draw, rehearsal)[0], tuple(names), counts)


def _registered_counts(X: Registered, labels: object, names: list[Any], public: bool) -> tuple[float, ...] | None:
    """Return what is registered about classes, None for private labels; or refuse data registered otherwise."""
    refuse_other_classes(X, labels, names)
    if public:
        known = registered_counts(X, labels, names)
        if known.touched > 1:
            raise InvalidArgumentError(
                "`X` has units in several classes, and for what part each counts there is seen after the spend. "
                "Give the records themselves, or register them with private labels. Nothing was spent."
            )
        return _public_counts([float(count) for count in known.counts], names)
    if X.facts.get("labels") != PRIVATE:
        raise InvalidArgumentError(
            "`X` is registered with public labels, {id}: how many units a class has is known. Say "
            "labels_public=True, or register the records with labels_public=False. Nothing was spent.",
            id=Public(X.id),
        )
    return None


def _public_counts(counts: list[float], names: list[Any]) -> tuple[float, ...]:
    """Return how many units each class has, or refuse one without any: for public labels alone."""
    for name, count in zip(names, counts, strict=True):
        if count == 0:
            raise InvalidDataError("class {name!r} has no records. Leave it out of classes.", name=name)
    return tuple(counts)


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
