"""Samples: records as the questions take them, from arrays, sources and registered data alike.

A sample states what is public about its records before anything is paid, and gives their points. Arrays and sources are
read before the payment. Registered data, whose public facts are known, are opened behind it: whatever fails from then
on makes the release lost.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from dpmanifold._cells import checked_names
from dpmanifold._check import shown
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import Either, InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.frechet import LabelledPoints, UnitPoints, lowest_tol
from dpmanifold.inference.design import Range, checked_range
from dpmanifold.privacy.budget_accounts import Account, Mark
from dpmanifold.sources import as_source
from dpmanifold.statistic import (
    REPLACE_ONE_UNIT,
    REPLACE_ONE_UNIT_AND_LABELS,
    REPLACE_ONE_UNIT_SAME_CLASSES,
    REPLACE_ONE_UNIT_SAME_COVARIATES,
)
from dpmanifold.stats.by_class import labelled_points, points_by_class
from dpmanifold.stats.content import Content, content_of
from dpmanifold.stats.curator import Told
from dpmanifold.stats.inputs import (
    as_batch,
    checked_flag,
    is_each_record,
    number_of_records,
    prepare_records,
)
from dpmanifold.stats.marks import MarkedPoints, marked_points
from dpmanifold.stats.registered_data import Registered, facts_by_class, facts_of
from dpmanifold.stats.rehearsal import public_classes, public_groups, public_marks, public_units
from dpmanifold.stats.requests import written

if TYPE_CHECKING:
    from dpmanifold.stats.asking import Terms

S = TypeVar("S")

Data = Callable[[Account], Sequence[Mark | Registered]]
"""Returns what an account knows the data sets by."""


@dataclass(frozen=True)
class Known(Generic[S]):
    """What is known about a sample when a call is planned, and how the call comes by its points.

    Attributes
    ----------
    n, unit : how many units there are, and what a unit is
    data : returns what an account knows the data sets by
    points : returns the points; of registered data it opens the records
    public : returns as many units at public points, for rehearsals
    options : what the plan is told about the sample
    counts : how many units each class has, where that is public
    """

    n: int
    unit: str
    data: Data
    points: Callable[[], S]
    public: Callable[[], S]
    options: Mapping[str, Any] = field(default_factory=dict)
    counts: tuple[float, ...] | None = None


class Sample(ABC, Generic[S]):
    """Records with all that a question takes beside them."""

    arguments: ClassVar[str] = "X"
    """What comes before the ball, in messages."""
    groups: ClassVar[float] = 1
    """How many groups a plan is told the units of; infinity for any number of them, from two on."""
    brings: ClassVar[str] = ""
    """What registered data must have beside records: "classes" or "covariate"."""

    @abstractmethod
    def known(self, ball: Ball, terms: Terms, foresee: Callable[[int], None]) -> Known[S]:
        """Return what is known before the payment, or refuse.

        Parameters
        ----------
        ball : the public ball
        terms : who the units are, and who is told about their records
        foresee : plans for a number of units that is known before records are read, so that what public numbers refuse
            is refused by then
        """

    @staticmethod
    def fits(X: Registered) -> bool:
        """Return whether registered data are such a sample, from public facts: all have units."""
        return True

    @staticmethod
    def planned(X: Registered) -> tuple[Any, dict[str, Any]]:
        """Return what a plan of registered data is told: the number of units, and options."""
        return X.n, {}

    @staticmethod
    def given(X: Registered) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return how a private call is given registered data: what comes before the ball, and by keyword."""
        return (X,), {}

    @staticmethod
    def adjacency(options: Mapping[str, Any]) -> str:
        """Return which data sets are adjacent, given what a plan is told about the sample."""
        return REPLACE_ONE_UNIT

    @staticmethod
    def are_counts(found: Sequence[int], facts: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether releases of so many units can be of data sets with these facts."""
        return all(n == fact["n"] for n in found for fact in facts)


@dataclass(frozen=True, eq=False)
class Units(Sample[UnitPoints]):
    """Records, each of one unit.

    Attributes
    ----------
    X : as in :func:`private_mean`
    group : what messages call them, where there are several
    """

    X: object
    group: str = ""

    def known(self, ball: Ball, terms: Terms, foresee: Callable[[int], None]) -> Known[UnitPoints]:
        """Read records, or look up what is registered."""
        X, told = self.X, terms.told
        if isinstance(X, Registered):
            refuse_elsewhere(X, ball, terms)
            public = partial(public_units, ball, X.n, X.unit)
            return Known(X.n, X.unit, _known_by(X), partial(_opened_units, X, ball, told, self.group), public)
        X = as_batch(X, ball, units=terms.units)
        if is_each_record(terms.units):
            source = as_source(X)  # of which the number of records need not be known before they are read
            n = number_of_records(X) if source is None else source.rows
            if n is not None and n > 1:
                foresee(n)
        points = prepare_records(X, ball, terms.units, terms.invalid, told, self.group)[0]
        return Known(
            points.n,
            points.unit,
            lambda account: (account.marked(content_of(X, ball, terms.units), facts_of(ball, points)),),
            lambda: points,
            partial(public_units, ball, points.n, points.unit),
        )


@dataclass(frozen=True, eq=False)
class _Classed(Sample[S]):
    """Records with labels.

    Attributes
    ----------
    X, labels : as in :func:`private_lda`
    names : the public list of classes
    """

    arguments: ClassVar[str] = "X, labels"
    brings: ClassVar[str] = "classes"

    X: object
    labels: object
    names: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", checked_names(self.names))


@dataclass(frozen=True, eq=False)
class Labelled(_Classed[LabelledPoints]):
    """Records with a class each, which is private unless it is said to be public.

    Attributes
    ----------
    public : whether anybody may know who is in which class
    """

    public: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_flag(self.public, "labels_public")

    def known(self, ball: Ball, terms: Terms, foresee: Callable[[int], None]) -> Known[LabelledPoints]:
        """Read records and labels, or look up what is registered."""
        X, names, told = self.X, self.names, terms.told
        if isinstance(X, Registered):
            refuse_elsewhere(X, ball, terms)
            counts = self._counts_registered(X)
            return self._known(ball, X.n, X.unit, counts, _known_by(X), partial(self._opened, X, ball, told))
        X = as_batch(X, ball, labels=self.labels, units=terms.units)
        points = labelled_points(X, self.labels, ball, terms.units, terms.invalid, names, told)
        counts = _public_counts(points.counts(len(names)), names) if self.public else None
        data = _marked(content_of(X, ball, terms.units, self.labels, names), facts_of(ball, points))
        return self._known(ball, len(points), points.unit, counts, data, lambda: points)

    def _known(
        self, ball: Ball, n: int, unit: str, counts: tuple[float, ...] | None, data: Data,
        points: Callable[[], LabelledPoints],
    ) -> Known[LabelledPoints]:  # fmt: skip
        options = {"classes": self.names, "labels_public": self.public}
        public = partial(public_classes, ball, n, unit, len(self.names))
        return Known(n, unit, data, points, public, options, counts)

    @staticmethod
    def adjacency(options: Mapping[str, Any]) -> str:
        """Return that classes are replaced with a unit, unless they are public."""
        return REPLACE_ONE_UNIT_SAME_CLASSES if options.get("labels_public", False) else REPLACE_ONE_UNIT_AND_LABELS

    def _counts_registered(self, X: Registered) -> tuple[float, ...] | None:
        """Return what is registered about classes, None for private labels; or refuse data registered otherwise."""
        _refuse_other_classes(X, self.labels, self.names)
        if self.public:
            known = _registered_counts(X, self.labels, self.names)
            if known["touched"] > 1:
                raise InvalidArgumentError(
                    "`X` has units in several classes, and for what part each counts there is seen after the spend. "
                    "Give the records themselves, or register them with private labels. Nothing was spent."
                )
            return _public_counts([float(count) for count in known["units_by_class"]], self.names)
        if X.labels_public:
            raise InvalidArgumentError(
                "`X` is registered with public labels, {id}: how many units a class has is known. Say "
                "labels_public=True, or register the records with labels_public=False. Nothing was spent.",
                id=Public(X.id),
            )
        return None

    def _opened(self, X: Registered, ball: Ball, told: Told) -> LabelledPoints:
        opened = X.open()
        records = as_batch(opened.records, ball)
        points = labelled_points(records, opened.labels, ball, opened.units, X.invalid, self.names, _quietly(told))
        return _as_registered(points, X)

    @staticmethod
    def fits(X: Registered) -> bool:
        """Return whether there are classes."""
        return X.classes is not None

    @staticmethod
    def planned(X: Registered) -> tuple[Any, dict[str, Any]]:
        """Return the number of units, and how many classes there are."""
        public = {"labels_public": True} if X.labels_public else {}
        return X.n, {"classes": len(X.classes or ()), **public}

    @staticmethod
    def given(X: Registered) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the data with their classes."""
        return (X, None), {"classes": X.classes, "labels_public": X.labels_public}


@dataclass(frozen=True, eq=False)
class Groups(_Classed[Sequence[UnitPoints]]):
    """Records of several groups with public labels, every unit in one group."""

    groups: ClassVar[float] = math.inf

    def known(self, ball: Ball, terms: Terms, foresee: Callable[[int], None]) -> Known[Sequence[UnitPoints]]:
        """Read records and labels, or look up what is registered."""
        X, names, told = self.X, self.names, terms.told
        if isinstance(X, Registered):
            refuse_elsewhere(X, ball, terms)
            facts = _registered_counts(X, self.labels, names)
            return self._known(ball, facts, _known_by(X), partial(self._opened, X, ball, told))
        X = as_batch(X, ball, labels=self.labels, units=terms.units)
        by_class = points_by_class(X, self.labels, ball, terms.units, terms.invalid, names, told)
        facts = facts_by_class(ball, by_class, names)
        data = _marked(content_of(X, ball, terms.units, self.labels, names), facts)
        return self._known(ball, facts, data, lambda: by_class.groups)

    def _known(
        self, ball: Ball, facts: Mapping[str, Any], data: Data, points: Callable[[], Sequence[UnitPoints]]
    ) -> Known[Sequence[UnitPoints]]:
        counts = list(facts["units_by_class"])
        options = {"classes": self.names, "counts": counts, **self._spanned(facts["touched"])}
        return Known(
            facts["n"], facts["unit"], data, points, partial(public_groups, ball, counts, facts["unit"]), options
        )

    @staticmethod
    def adjacency(options: Mapping[str, Any]) -> str:
        """Return that who is in which group is public."""
        return REPLACE_ONE_UNIT_SAME_CLASSES

    def _spanned(self, touched: int) -> dict[str, Any]:
        """Refuse groups of which somebody is in several: given in how many a unit is at most, which is public."""
        if touched > 1:
            raise InvalidDataError(
                "a unit has records in {touched} groups, and nobody may be in two: each group keeps the promise "
                "by itself, and a unit in several would be touched several times. Give every unit one label for "
                "all of its records, or leave such units out. Nothing was spent.",
                touched=Public(touched),
            )
        return {}

    def _opened(self, X: Registered, ball: Ball, told: Told) -> Sequence[UnitPoints]:
        opened = X.open()
        records = as_batch(opened.records, ball)
        found = points_by_class(records, opened.labels, ball, opened.units, X.invalid, self.names, _quietly(told))
        if facts_by_class(ball, found, self.names) != dict(X.facts):
            raise InvalidDataError("the records are not those that were registered: other classes.")
        return found.groups

    @staticmethod
    def fits(X: Registered) -> bool:
        """Return whether there are public classes, two or more, and nobody is in two of them."""
        return len(_public_classes(X)) > 1 and X.facts.get("touched", 1) == 1

    @staticmethod
    def planned(X: Registered) -> tuple[Any, dict[str, Any]]:
        """Return the units of each group."""
        return list(X.facts["units_by_class"]), {}

    @staticmethod
    def given(X: Registered) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the data with their classes."""
        return (X, None), {"classes": X.classes}

    @staticmethod
    def are_counts(found: Sequence[int], facts: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether they are the units of all groups, in their order."""
        return all(found == fact["units_by_class"] for fact in facts)


@dataclass(frozen=True, eq=False)
class SpanningGroups(Groups):
    """Records of several groups with public labels, of which a unit may be in several."""

    groups: ClassVar[float] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", checked_names(self.names, least=1, kinds=object))

    def _spanned(self, touched: int) -> dict[str, Any]:
        return {"touched": touched}

    @staticmethod
    def fits(X: Registered) -> bool:
        """Return whether there are public classes."""
        return bool(_public_classes(X))

    @staticmethod
    def planned(X: Registered) -> tuple[Any, dict[str, Any]]:
        """Return the units of the smallest class."""
        return min(X.facts["units_by_class"]), {}

    @staticmethod
    def are_counts(found: Sequence[int], facts: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether they are the units of some groups."""
        return all(n in fact["units_by_class"] for n in found for fact in facts)


@dataclass(frozen=True, eq=False)
class WithCovariate(Sample[MarkedPoints]):
    """Records with a number each.

    Attributes
    ----------
    X, covariate : as in :func:`private_regression`
    range : of the covariate, (low, high); None for the one that X is registered with
    public : whether anybody may know the covariates
    """

    arguments: ClassVar[str] = "X, covariate"
    brings: ClassVar[str] = "covariate"

    X: object
    covariate: object
    range: Range | None
    public: bool

    def known(self, ball: Ball, terms: Terms, foresee: Callable[[int], None]) -> Known[MarkedPoints]:
        """Read records and covariates, or look up what is registered."""
        X, told = self.X, terms.told
        if isinstance(X, Registered):
            refuse_elsewhere(X, ball, terms)
            ends = self._registered_range(X)
            return self._known(ball, X.n, X.unit, ends, _known_by(X), partial(self._opened, X, ball, ends, told))
        ends = checked_range(self.range)
        read = marked_points(X, self.covariate, ball, terms.units, terms.invalid, told, ends)
        points = read.points
        data = _marked(read.content, {"space": repr(ball.space), "n": len(points), "unit": points.unit})
        return self._known(ball, len(points), points.unit, ends, data, lambda: points)

    def _known(
        self, ball: Ball, n: int, unit: str, ends: Range, data: Data, points: Callable[[], MarkedPoints]
    ) -> Known[MarkedPoints]:
        options = {"covariate_range": ends, "covariate_public": checked_flag(self.public, "covariate_public")}
        return Known(n, unit, data, points, partial(public_marks, ball, n), options)

    @staticmethod
    def adjacency(options: Mapping[str, Any]) -> str:
        """Return that covariates are replaced with a unit, unless they are public."""
        return REPLACE_ONE_UNIT_SAME_COVARIATES if options.get("covariate_public", False) else REPLACE_ONE_UNIT

    def _registered_range(self, X: Registered) -> Range:
        """Return the range that a regression on registered data is asked with, or refuse: from public facts."""
        known = X.covariate
        if known is None:
            raise InvalidArgumentError(
                "`covariate` is missing: X is registered without one, {id}. Register the records with "
                "`covariate=...` and `covariate_range=...`, or give the records themselves. Nothing was spent.",
                id=Public(X.id),
            )
        if self.covariate is not None:
            raise InvalidArgumentError("`covariate` is registered with X: give None in its place.")
        if checked_flag(self.public, "covariate_public") != known.public:
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
        return known.range if self.range is None else checked_range(self.range)

    @staticmethod
    def _opened(X: Registered, ball: Ball, ends: Range, told: Told) -> MarkedPoints:
        opened = X.open()
        read = marked_points(opened.records, opened.covariate, ball, opened.units, X.invalid, _quietly(told), ends)
        return _as_registered(read.points, X)

    @staticmethod
    def fits(X: Registered) -> bool:
        """Return whether there is a covariate."""
        return X.covariate is not None

    @staticmethod
    def planned(X: Registered) -> tuple[Any, dict[str, Any]]:
        """Return the number of units, and whether the covariate is public."""
        return X.n, {"covariate_public": True} if X.covariate is not None and X.covariate.public else {}

    @staticmethod
    def given(X: Registered) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the data with their covariate."""
        assert X.covariate is not None  # or they do not fit
        return (X, None), {"covariate_range": None, "covariate_public": X.covariate.public}


# -------------------------------------------------------------------- what samples share


def _marked(content: Content, facts: Mapping[str, Any]) -> Data:
    """Return what an account knows records by that may not be registered yet."""
    return lambda account: (account.marked(content, facts),)


def _known_by(*data: Registered) -> Data:
    """Return what an account knows registered data by."""
    return lambda account: data


def _quietly(told: Told) -> Told:
    """Return who is told of registered records.

    That most of them are clipped was refused when they were registered, or confirmed; by now it is too late to refuse.
    """
    return Told(told.curator, True)


P = TypeVar("P", UnitPoints, LabelledPoints, MarkedPoints)


def _as_registered(points: P, X: Registered) -> P:
    """Return points of as many units as were registered, or lose the release."""
    if len(points) != X.n or points.unit != X.unit:
        raise InvalidDataError("the records are not those that were registered: other units.")
    return points


def _opened_units(X: Registered, ball: Ball, told: Told, group: str) -> UnitPoints:
    opened = X.open()
    records = as_batch(opened.records, ball)
    return _as_registered(prepare_records(records, ball, opened.units, X.invalid, _quietly(told), group)[0], X)


def refuse_elsewhere(X: Registered, ball: Ball, terms: Terms) -> None:
    """Refuse registered data without their population's account, on another space, or as other than registered."""
    budget = terms.budget
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
    if not (terms.units is None or (is_each_record(terms.units) and X.unit == "record")):
        raise InvalidArgumentError("`units` are registered with X: give None in their place.")
    if terms.invalid not in ("raise", X.invalid):  # the first may be said without a word
        raise InvalidArgumentError(
            "`invalid` is registered with X, as {invalid!r}: leave it out, got {got}.",
            invalid=Public(X.invalid),
            got=shown(terms.invalid),
        )
    X.check()


def _public_classes(X: Registered) -> list[Any]:
    """Return the classes that are registered with public labels."""
    return (X.classes or []) if X.labels_public else []


def _registered_counts(X: Registered, labels: object, names: list[Any]) -> Mapping[str, Any]:
    """Return the facts of registered data by class, or refuse other classes than these."""
    _refuse_other_classes(X, labels, names)
    if not X.labels_public:
        raise InvalidArgumentError(
            "`X` is registered with private labels, {id}: how many units a class has is not public. "
            "private_lda takes it; for anything else by class register the records with public labels.",
            id=Public(X.id),
        )
    return X.facts


def _refuse_other_classes(X: Registered, labels: object, names: list[Any]) -> None:
    """Refuse labels, which are registered, and other classes than those."""
    if labels is not None:
        raise InvalidArgumentError("`labels` are registered with X: give None in their place.")
    if X.facts.get("classes") != written(names, "classes"):
        raise InvalidArgumentError(
            "`classes` must be those that X is registered with, in their order, got {got}. Register the "
            "records with `labels=...` and `classes=...` to ask by class.",
            got=shown(names),
        )


def _public_counts(counts: list[float], names: list[Any]) -> tuple[float, ...]:
    """Return how many units each class has, or refuse one without any: for public labels alone."""
    for name, count in zip(names, counts, strict=True):
        if count == 0:
            raise InvalidDataError("class {name!r} has no records. Leave it out of classes.", name=name)
    return tuple(counts)
