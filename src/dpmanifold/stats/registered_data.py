"""Data that were registered with a ledger: what is public about them is known, and they are opened once paid for.

Registration happens before anything is spent: records are read, checked and counted, and what is public about them is
written down. Its errors describe data and are for whoever holds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmanifold._cells import checked_names
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference.design import Range, checked_range
from dpmanifold.stats.by_class import ByClass, labelled_points, points_by_class
from dpmanifold.stats.content import Content
from dpmanifold.stats.curator import Curator, Told
from dpmanifold.stats.inputs import as_batch, checked_ball, checked_flag, prepare_records
from dpmanifold.stats.marks import content_beside, marked_points, set_apart
from dpmanifold.stats.requests import names_in, written

PRIVATE = "private"
"""What is registered of labels that nobody may know."""
SELECTION = "selection"
"""Where, among how data are to be opened, it stands how files became their records; nothing stands there for arrays."""


@dataclass(frozen=True)
class Opened:
    """Registered records, as private calls take records. NOT PRIVATE.

    Attributes
    ----------
    records : an array or a source
    units : one id per record, the name of a column, or EACH_RECORD
    labels : one class per record, or the name of a column; None where there are no classes
    covariate : one number per record, or the name of a column; None where there is none
    """

    records: object
    units: object
    labels: object = None
    covariate: object = None


@dataclass(frozen=True)
class Covariate:
    """What is public about a registered covariate: that there is one, and none of its values.

    Attributes
    ----------
    range : (low, high), with which it was registered; calls may use another one
    public : whether anybody may know the values, and how many records a unit has
    """

    range: Range
    public: bool = False


class Registered(ABC):
    """Records that a population's steward registered; every private call takes one as X, with that population's budget.

    Plans are made from what is known here. Records are opened after the ledger and its witness have the spend, and
    whatever fails from then on makes the release lost, without a word about why.

    Attributes
    ----------
    id : of this version of the data
    ledger, population : where it is registered
    name : by which it is registered
    ball : the ball that it was registered with; calls may use another one on the same space
    n : how many units there are
    unit : what a unit is called in releases
    invalid : what records that are no points count as, "raise" (there were none) or "center"
    fingerprint : of the records under the ledger's key, so that the same ones are known under another name
    records_mark : of the records alone, the same whoever owns them and whatever their classes are
    facts : all that is public about the data, as it was registered (see
        :class:`~dpmanifold.stats.registered_data.Survey`)
    covariate : what is public about the covariate that was registered with them; None where there is none
    """

    id: str
    ledger: str
    population: str
    name: str
    ball: Ball
    n: int
    unit: str
    invalid: str
    fingerprint: str
    records_mark: str
    facts: Mapping[str, Any]
    covariate: Covariate | None = None

    @property
    def classes(self) -> list[Any] | None:
        """The classes that are registered; None where there are none."""
        return names_in(self.facts["classes"]) if "classes" in self.facts else None

    @property
    def labels_public(self) -> bool:
        """Whether anybody may know who is in which class."""
        return self.facts.get("labels") != PRIVATE

    def check(self) -> None:
        """Refuse, before anything is spent, what would only come out when the records are opened; looks at none."""
        return

    @abstractmethod
    def open(self) -> Opened:
        """Open the records and check that they are what was registered. Whatever it raises makes the release lost."""


# -------------------------------------------------------------------- registration


@dataclass(frozen=True)
class Survey:
    """What registration found.

    Attributes
    ----------
    facts : all that is public about the data, in the words of canonical JSON: "space", "n" and "unit"; where there are
        classes also "classes", "units_by_class" and "touched", in how many classes a unit has records at most; or,
        where labels are private, "classes" and "labels"
    content : gives the bytes for a fingerprint. NOT PRIVATE
    covariate : what is public about the covariate, where there is one. It is not among the facts, by which data are
        known: these stay what they are for the same records given as an array
    """

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
    labels, classes : as in :func:`private_class_means`; both or none
    labels_public : False to say that nobody may know who is in which class: then it is not public how many units a
        class has, and :func:`private_lda` alone takes the data by class
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
    names = None if classes is None else checked_names(classes, least=1)
    content = content_beside(X, ball, units, labels, names, covariate)
    if names is None:
        facts = facts_of(ball, prepare_records(X, ball, units, invalid, told)[0])
    elif checked_flag(labels_public, "labels_public"):
        facts = facts_by_class(ball, points_by_class(X, labels, ball, units, invalid, names, told), names)
    else:
        points = labelled_points(X, labels, ball, units, invalid, names, told)
        facts = {**facts_of(ball, points), "classes": written(names, "classes"), "labels": PRIVATE}
    return Survey(facts, content, beside)


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


def facts_by_class(ball: Ball, found: ByClass, names: list[Any]) -> dict[str, Any]:
    """Return what is public about records with classes that are public."""
    return {
        "space": repr(ball.space),
        "n": found.n,
        "unit": found.groups[0].unit,
        "classes": written(names, "classes"),
        "units_by_class": [len(points) for points in found.groups],
        "touched": found.touched,
    }
