"""Registration: records are read, checked and counted, and what is public about them is written down.

It happens before anything is spent. Its errors describe data and are for whoever holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpmanifold._check import shown
from dpmanifold._labels import checked_names
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import Either, InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.frechet import LabelledPoints, UnitPoints, lowest_tol
from dpmanifold.inference.design import Range, checked_range
from dpmanifold.privacy.accounts import Account
from dpmanifold.stats.by_class import labelled_points, points_by_class
from dpmanifold.stats.content import Content
from dpmanifold.stats.covariates import content_beside, set_apart
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.inputs import Told, checked_ball, checked_flag, is_each_record, prepare_records
from dpmanifold.stats.marks import MarkedPoints, marked_points
from dpmanifold.stats.records import as_batch
from dpmanifold.stats.registered import Covariate, Registered
from dpmanifold.stats.requests import written

PRIVATE = "private"
"""What is registered of labels that nobody may know."""


@dataclass(frozen=True)
class Survey:
    """What registration found.

    Attributes
    ----------
    n, unit : how many units, and what a unit is
    facts : all that is public about the data, in the words of canonical JSON: "space", "n" and "unit"; where there are
        classes also "classes", "units by class" and "touched", in how many classes a unit has records at most; or,
        where labels are private, "classes" and "labels"
    content : gives the bytes for a fingerprint. NOT PRIVATE
    covariate : what is public about the covariate, where there is one. It is not among the facts, by which data are
        known: these stay what they are for the same records given as an array
    """

    n: int
    unit: str
    facts: dict[str, Any]
    content: Content
    covariate: Covariate | None = None


def survey(
    X: object,
    ball: Ball,
    *,
    units: object,
    labels: object = None,
    classes: Sequence[Any] | None = None,
    labels_public: bool = True,
    covariate: object = None,
    covariate_range: Range | None = None,
    covariate_public: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
) -> Survey:
    """Read, check and count records, as a private call would, and return what is public about them.

    Parameters
    ----------
    X, units, invalid, curator, confirm : as in :func:`private_mean`
    ball : with which it is checked how many records would be clipped
    labels, classes : as in :func:`private_means`; both or none
    labels_public : False to say that nobody may know who is in which class: then it is not public how many units a
        class has, and :func:`private_classes` alone takes the data by class
    covariate, covariate_range, covariate_public : as in :func:`private_regression`; the first two or none

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> found = survey(np.zeros((6, 1)), Ball(Euclidean(1), [0.0], 1.0), units=["a", "a", "b", "b", "c", "c"])
    >>> found.facts
    {'space': 'Euclidean(1)', 'n': 3, 'unit': 'unit'}
    """
    checked_ball(ball)
    X = set_apart(as_batch(X, ball, units=units, labels=labels, covariate=covariate), labels, covariate)
    told = Told(curator, confirm)
    if (labels is None) != (classes is None):
        raise InvalidArgumentError("labels and classes go together: one class per record, and the public list of them.")
    beside = _beside(covariate, covariate_range, covariate_public)
    if beside is not None:
        # All that a regression would refuse, and what most covariates do; what follows is told and confirmed by that.
        marked_points(X, covariate, ball, units, invalid, told, beside.range)
        told = Told(None, True)
    if classes is None:
        points = prepare_records(X, ball, units, invalid, told)[0]
        content = content_beside(X, ball, units, None, None, covariate)
        return Survey(len(points), points.unit, facts_of(ball, points), content, beside)
    names = checked_names(classes, least=1)
    content = content_beside(X, ball, units, labels, names, covariate)
    if not checked_flag(labels_public, "labels_public"):
        points = labelled_points(X, labels, ball, units, invalid, names, told)
        facts = {**facts_of(ball, points), "classes": written(names, "classes"), "labels": PRIVATE}
        return Survey(len(points), points.unit, facts, content, beside)
    groups, touched, n = points_by_class(X, labels, ball, units, invalid, names, told)
    counts = ClassCounts([len(points) for points in groups], touched, n, groups[0].unit)
    return Survey(n, counts.unit, counts.facts(ball, names), content, beside)


def _beside(covariate: object, covariate_range: object, covariate_public: object) -> Covariate | None:
    """Return what is public about a covariate, None where there is none; or refuse half of it."""
    public = checked_flag(covariate_public, "covariate_public")
    if covariate is None and covariate_range is None and not public:
        return None
    if covariate is None or covariate_range is None:
        raise InvalidArgumentError(
            "`covariate` and `covariate_range` go together: one number per record, and the public range of them."
        )
    return Covariate(checked_range(covariate_range), public)


def facts_of(ball: Ball, points: UnitPoints) -> dict[str, Any]:
    """Return what is public about records without classes."""
    return {"space": repr(ball.space), "n": len(points), "unit": points.unit}


@dataclass(frozen=True)
class ClassCounts:
    """What is public about records with classes.

    Attributes
    ----------
    counts : how many units each class has
    touched : in how many classes a unit has records, at most
    n, unit : how many units there are, each counted once, and what a unit is
    """

    counts: list[int]
    touched: int
    n: int
    unit: str

    def facts(self, ball: Ball, names: list[Any]) -> dict[str, Any]:
        """Return it in the words of canonical JSON."""
        return {
            "space": repr(ball.space),
            "n": self.n,
            "unit": self.unit,
            "classes": written(names, "classes"),
            "units by class": self.counts,
            "touched": self.touched,
        }


# -------------------------------------------------------------------- registered data in private calls


def refuse_elsewhere(X: Registered, ball: Ball, units: object, invalid: object, budget: object) -> None:
    """Refuse registered data without their population's account, on another space, or as other than registered."""
    if not isinstance(budget, Account) or (budget.ledger, budget.name) != (X.ledger, X.population):
        raise InvalidArgumentError(
            "`X` is registered with the population {population!r} of a ledger, and only its account may pay "
            "for it: give budget=ledger.population({population!r}).",
            population=Public(X.population),
        )
    if ball.space != X.ball.space:
        raise InvalidArgumentError(
            "`ball` must be on {space!r}, as X is registered, got one on {space2!r}.",
            space=Public(X.ball.space),
            space2=Public(ball.space),
        )
    if X.unit != "record":
        require_ball(ball)  # as for any units with several records,
        if not ball.space.is_flat:
            lowest_tol(ball, 1)  # which are averaged to this tolerance
    if not (units is None or (is_each_record(units) and X.unit == "record")):
        raise InvalidArgumentError("`units` are registered with X: give None in their place.")
    if invalid not in ("raise", X.invalid):  # the first may be said without a word
        raise InvalidArgumentError(
            "`invalid` is registered with X, as {invalid!r}: leave it out, got {got}.",
            invalid=Public(X.invalid),
            got=shown(invalid),
        )
    X.check()


def opened_points(X: Registered, ball: Ball, told: Told, group: str = "") -> tuple[UnitPoints, Any]:
    """Open registered records and return the units' points, and who they are. Whatever it raises, the release is lost.

    That most records are clipped was refused when they were registered, or confirmed; by now it is too late to refuse.
    """
    opened = X.open()
    records = as_batch(opened.records, ball)
    points, ids = prepare_records(records, ball, opened.units, X.invalid, Told(told.curator, True), group)
    if len(points) != X.n or points.unit != X.unit:
        raise InvalidDataError("the records are not those that were registered: other units.")
    return points, ids


def registered_counts(X: Registered, labels: object, names: list[Any]) -> ClassCounts:
    """Return what is registered about classes, or refuse other ones than these."""
    refuse_other_classes(X, labels, names)
    if X.facts.get("labels") == PRIVATE:
        raise InvalidArgumentError(
            "`X` is registered with private labels, {id}: how many units a class has is not public. "
            "private_classes takes it; for anything else by class register the records with public labels.",
            id=Public(X.id),
        )
    return ClassCounts(list(X.facts["units by class"]), X.facts["touched"], X.n, X.unit)


def refuse_other_classes(X: Registered, labels: object, names: list[Any]) -> None:
    """Refuse labels, which are registered, and other classes than those."""
    if labels is not None:
        raise InvalidArgumentError("`labels` are registered with X: give None in their place.")
    if X.facts.get("classes") != written(names, "classes"):
        raise InvalidArgumentError(
            "`classes` must be those that X is registered with, in their order, got {got}. Register the "
            "records with `labels=...` and `classes=...` to ask by class.",
            got=shown(names),
        )


def opened_labelled(X: Registered, ball: Ball, names: list[Any], told: Told) -> LabelledPoints:
    """Open registered records and return the units with their classes. Whatever it raises, the release is lost."""
    opened = X.open()
    records, quietly = as_batch(opened.records, ball), Told(told.curator, True)
    points = labelled_points(records, opened.labels, ball, opened.units, X.invalid, names, quietly)
    if len(points) != X.n or points.unit != X.unit:
        raise InvalidDataError("the records are not those that were registered: other units.")
    return points


def opened_by_class(X: Registered, ball: Ball, names: list[Any], told: Told) -> list[UnitPoints]:
    """Open registered records and return the points of each class. Whatever it raises, the release is lost."""
    opened = X.open()
    records, quietly = as_batch(opened.records, ball), Told(told.curator, True)
    groups, touched, n = points_by_class(records, opened.labels, ball, opened.units, X.invalid, names, quietly)
    found = ClassCounts([len(points) for points in groups], touched, n, groups[0].unit)
    if found.facts(ball, names) != dict(X.facts):
        raise InvalidDataError("the records are not those that were registered: other classes.")
    return groups


def registered_range(X: Registered, covariate: object, covariate_range: object, public: bool) -> Range:
    """Return the range that a regression on registered data is asked with, or refuse: from public facts."""
    known = X.covariate
    if known is None:
        raise InvalidArgumentError(
            "`covariate` is missing: X is registered without one, {id}. Register the records with "
            "`covariate=...` and `covariate_range=...`, or give the records themselves. Nothing was spent.",
            id=Public(X.id),
        )
    if covariate is not None:
        raise InvalidArgumentError("`covariate` is registered with X: give None in its place.")
    if checked_flag(public, "covariate_public") != known.public:
        word, other = ("public", "private") if known.public else ("private", "public")
        flag = Message("`covariate_public` is missing" if known.public else "`covariate_public` must be left out")
        raise InvalidArgumentError(
            "{wrong}: X is registered with a {word} covariate, {id}. Or register the records with a {other} one. "
            "Nothing was spent.",
            wrong=Either(Message("`covariate_public` must be {public}", public=Public(known.public)), flag),
            word=Public(word),
            id=Public(X.id),
            other=Public(other),
        )
    return known.range if covariate_range is None else checked_range(covariate_range)


def opened_marked(X: Registered, ball: Ball, covariate_range: Range, told: Told) -> MarkedPoints:
    """Open registered records and return them with their covariates. Whatever it raises, the release is lost."""
    opened = X.open()
    quietly = Told(told.curator, True)
    read = marked_points(opened.records, opened.covariate, ball, opened.units, X.invalid, quietly, covariate_range)
    if len(read.points) != X.n or read.points.unit != X.unit:
        raise InvalidDataError("the records are not those that were registered: other units.")
    return read.points
