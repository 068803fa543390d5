"""Units' points by class, where labels are public, and where nothing may be told of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from dpmanifold import frechet
from dpmanifold._cells import numbers_of_labels, plain_labels
from dpmanifold._check import Array
from dpmanifold._merged_ids import unit_ids
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public
from dpmanifold.frechet import InClass, LabelledPoints, UnitPoints
from dpmanifold.sources import SetApart, Source, as_source
from dpmanifold.stats.curator import Notice, Told
from dpmanifold.stats.inputs import (
    checked_number,
    checked_units,
    column_or_ids,
    read_source,
    records_of,
    units_in,
)

# With invalid="center", a private label that is none of the classes counts as the first of them.
_FIRST = 0


class ByClass(NamedTuple):
    """The units of several classes. Points are data; the rest is public where labels are.

    Attributes
    ----------
    groups : the points of each class, where a unit counts once in each class that it has records in
    several : of each class, in how many classes its units have records; None where every record is a unit
    n : how many units there are, each counted once
    everyone : returns one point for each unit, of all its records
    """

    groups: list[UnitPoints]
    several: list[Array] | None
    n: int
    everyone: Callable[[], UnitPoints]

    @property
    def touched(self) -> int:
        """In how many classes a unit has records, at most."""
        return 1 if self.several is None else int(np.concatenate(self.several).max(initial=1))


def points_by_class(
    X: object, labels: object, ball: Ball, units: object, invalid: str, names: list[Any], told: Told
) -> ByClass:
    """Return the points of each class, or refuse: for public labels alone."""

    def enough(n: int, sizes: Array) -> None:
        for found, name in zip(sizes.tolist(), names, strict=True):
            if found == 0:
                raise InvalidDataError("class {name!r} has no records. Leave it out of classes.", name=name)
            try:
                checked_number(found)
            except InvalidDataError as problem:
                raise InvalidDataError("class {name!r}: {problem}", name=name, problem=problem) from problem

    return _read(X, labels, ball, units, invalid, names, told, "raise", enough)


def labelled_points(
    X: object, labels: object, ball: Ball, units: object, invalid: str, names: list[Any], told: Told
) -> LabelledPoints:
    """Return all units with their classes, or refuse: nothing is refused for how many units a class has.

    A unit that has records in several classes has a point in each.
    """
    found = _read(X, labels, ball, units, invalid, names, told, invalid, lambda n, sizes: checked_number(n))
    if found.several is None:
        parts = [InClass(number, 1, points) for number, points in enumerate(found.groups)]
    else:
        parts = [
            InClass(number, many, points.where(several == many))
            for number, (points, several) in enumerate(zip(found.groups, found.several, strict=True))
            for many in np.unique(np.concatenate(found.several)).tolist()
        ]
    # Always, even if each unit is in one class and nothing new comes of it: whether it is may be private.
    return LabelledPoints(found.everyone(), parts)


def _read(
    X: object, labels: object, ball: Ball, units: object, invalid: str, names: list[Any], told: Told,
    strays: str, enough: Callable[[int, Array], object],
) -> ByClass:  # fmt: skip
    """Return the points of each class, or refuse. Records are looked at once, for all of them.

    Parameters
    ----------
    strays : what is done with labels outside the classes, "raise" or "center"
    enough : refuses too few units, given how many there are and how many each class has
    """
    source = as_source(X)
    if source is not None:
        return _read_source(source, labels, ball, units, invalid, names, told, strays, enough)
    records = records_of(X, ball, invalid)
    ids = checked_units(units, len(records))
    which = class_numbers(labels, names, len(records), strays)
    unlabelled = int(np.count_nonzero(which < 0))
    which = np.where(which < 0, _FIRST, which)
    if ids is None:
        enough(len(records), np.bincount(which, minlength=len(names)))
        groups, clipped, replaced = frechet.made_by_class(records, ball, which, len(names))
        told.tell(Notice(len(records), clipped, replaced, unlabelled=unlabelled))
        return ByClass(groups, None, len(records), partial(reduce, UnitPoints.joined, groups))
    # Who is averaged are pairs of a unit and a class.
    pairs = unit_ids(ids.group.astype(np.int64) * len(names) + which, len(which))
    owner, label = np.divmod(np.asarray(pairs.found), len(names))
    enough(len(ids), np.bincount(label, minlength=len(names)))
    made = frechet.made_from(records, ball, pairs)
    made.points.rehearse()
    told.tell(Notice(len(records), made.clipped, made.replaced, unlabelled=unlabelled))
    inside = [label == number for number in range(len(names))]
    groups, several = [made.points.where(chosen) for chosen in inside], np.bincount(owner)[owner]
    return ByClass(
        groups,
        [several[chosen] for chosen in inside],
        len(ids),
        lambda: frechet.made_from(records, ball, ids).points.rehearse(),
    )


def _read_source(
    source: Source, labels: object, ball: Ball, units: object, invalid: str, names: list[Any], told: Told,
    strays: str, enough: Callable[[int, Array], object],
) -> ByClass:  # fmt: skip
    """Return the points of each class of a source.

    Who asks for everyone has it read twice, even if each unit is in one class: how often must not depend on labels that
    are private.
    """
    given = column_or_ids(units)

    def checked(counts: Array) -> None:
        enough(int(counts.sum()) if given is None else len(counts), units_in(counts, given is not None))

    numbers = partial(numbers_of_labels, names=names, invalid=strays)
    made = read_source(source, ball, given, invalid, checked, labels, numbers, len(names))
    told.tell(Notice(made.records, made.clipped, made.replaced, unlabelled=made.unlabelled))
    if made.ids is None:
        return ByClass(made.groups, None, made.records, partial(reduce, UnitPoints.joined, made.groups))
    there = made.counts > 0
    several = there.sum(axis=1)
    # The column of the classes is no part of the records the second time either.
    alone = SetApart(source, labels) if isinstance(labels, str) else source
    return ByClass(
        made.groups,
        [several[inside] for inside in there.T],
        len(made.ids),
        lambda: read_source(alone, ball, given, invalid, checked).groups[0],
    )


def class_numbers(labels: object, names: list[Any], n: int, invalid: str = "raise") -> Array:
    """Return the number of each record's class, -1 for a label outside the classes with `invalid="center"`."""
    given = plain_labels(labels)
    if len(given) != n:
        raise InvalidArgumentError(
            "`labels` must have shape ({n},), one per record, got ({n_given},).",
            n=Public(n),
            n_given=Public(len(given)),
        )
    return numbers_of_labels(given, names, invalid)
