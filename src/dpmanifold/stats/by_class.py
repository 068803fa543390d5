"""Units' points by class, where labels are public, and where nothing may be told of them."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from dpmanifold import frechet
from dpmanifold._cells import numbers_of_labels, plain_labels
from dpmanifold._check import Array
from dpmanifold._ids import UnitIds
from dpmanifold._merged_ids import unit_ids
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public
from dpmanifold.frechet import InClass, LabelledPoints, Records, UnitPoints
from dpmanifold.sources import SetApart, Source, as_source
from dpmanifold.stats.curator import Tally
from dpmanifold.stats.inputs import (
    Told,
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
    """The units of several classes. Points are data; the rest is public, for labels are.

    Attributes
    ----------
    groups : the points of each class
    touched : in how many classes a unit has records, at most
    n : how many units there are, each counted once
    """

    groups: list[UnitPoints]
    touched: int
    n: int


def points_by_class(
    X: object, labels: object, ball: Ball, units: object, invalid: str, names: list[Any], told: Told
) -> ByClass:
    """Return the points of each class, or refuse."""
    source = as_source(X)
    if source is not None:
        return _read_by_class(source, labels, ball, units, invalid, names, told)
    records = records_of(X, ball, invalid)
    ids = checked_units(units, len(records))
    which = class_numbers(labels, names, len(records))
    groups = _made_by_class(records, ball, ids, which, names, told)
    if ids is None:
        return ByClass(groups, 1, len(records))
    return ByClass(groups, _most_classes(ids, which, len(names)), len(ids))


def _read_by_class(
    source: Source, labels: object, ball: Ball, units: object, invalid: str, names: list[Any], told: Told
) -> ByClass:
    """Return the points of each class of a source."""
    given = column_or_ids(units)
    by_id = given is not None

    def enough(counts: Array) -> None:
        _refuse_few(units_in(counts, by_id), names)

    numbers = functools.partial(numbers_of_labels, names=names)
    made = read_source(source, ball, given, invalid, enough, labels, numbers, len(names))
    Tally(made.records, made.clipped, made.replaced).tell(told.curator, told.confirm)
    if made.ids is None:
        return ByClass(made.groups, 1, made.records)
    return ByClass(made.groups, int(np.count_nonzero(made.counts, axis=1).max(initial=1)), len(made.ids))


def _made_by_class(
    records: Records, ball: Ball, ids: UnitIds | None, which: Array, names: list[Any], told: Told
) -> list[UnitPoints]:
    """Return the points of each class, or say which class is too small. Records are looked at once, for all of them."""
    if ids is None:
        _refuse_small(which, names)
        groups, clipped, replaced = frechet.made_by_class(records, ball, which, len(names))
    else:
        # A unit counts once in each class that it has records in: who is averaged are pairs of a unit and a class.
        pairs = unit_ids(ids.group.astype(np.int64) * len(names) + which, len(which))
        label = np.asarray(pairs.found) % len(names)
        _refuse_small(label, names)
        made = frechet.made_from(records, ball, pairs)
        made.points.rehearse()
        groups = [made.points.where(label == number) for number in range(len(names))]
        clipped, replaced = made.clipped, made.replaced
    Tally(len(records), clipped, replaced).tell(told.curator, told.confirm)
    return groups


def labelled_points(
    X: object, labels: object, ball: Ball, units: object, invalid: str, names: list[Any], told: Told
) -> LabelledPoints:
    """Return all units with their classes, or refuse: nothing is refused for how many units a class has.

    A unit that has records in several classes has a point in each.
    """
    source = as_source(X)
    if source is not None:
        return _read_labelled(source, labels, ball, units, invalid, names, told)
    records = records_of(X, ball, invalid)
    ids = checked_units(units, len(records))
    which = class_numbers(labels, names, len(records), invalid)
    unlabelled = int(np.count_nonzero(which < 0))
    which = np.where(which < 0, _FIRST, which)
    checked_number(len(records) if ids is None else len(ids))
    if ids is None:
        groups, clipped, replaced = frechet.made_by_class(records, ball, which, len(names))
        Tally(len(records), clipped, replaced, unlabelled=unlabelled).tell(told.curator, told.confirm)
        return _each_in_one(groups)
    pairs = unit_ids(ids.group.astype(np.int64) * len(names) + which, len(which))
    owner, label = np.divmod(np.asarray(pairs.found), len(names))
    several = np.bincount(owner)[owner]
    made = frechet.made_from(records, ball, pairs)
    made.points.rehearse()
    Tally(len(records), made.clipped, made.replaced, unlabelled=unlabelled).tell(told.curator, told.confirm)
    parts = [
        InClass(number, many, made.points.where((label == number) & (several == many)))
        for number in range(len(names))
        for many in np.unique(several).tolist()
    ]
    # Always, even if each unit is in one class and nothing new comes of it: whether it is may be private.
    return LabelledPoints(frechet.made_from(records, ball, ids).points.rehearse(), parts)


def _read_labelled(
    source: Source, labels: object, ball: Ball, units: object, invalid: str, names: list[Any], told: Told
) -> LabelledPoints:
    """Return all units of a source with their classes.

    With ids it is read twice, even if each unit is in one class: how often must not depend on labels that are private.
    """
    given = column_or_ids(units)

    def enough(counts: Array) -> None:
        checked_number(int(counts.sum()) if given is None else len(counts))

    numbers = functools.partial(numbers_of_labels, names=names, invalid=invalid)
    made = read_source(source, ball, given, invalid, enough, labels, numbers, len(names))
    Tally(made.records, made.clipped, made.replaced, unlabelled=made.unlabelled).tell(told.curator, told.confirm)
    if given is None:
        return _each_in_one(made.groups)
    there = made.counts > 0
    several = there.sum(axis=1)
    parts = [
        InClass(number, many, made.groups[number].where(several[there[:, number]] == many))
        for number in range(len(names))
        for many in np.unique(several).tolist()
    ]
    # The column of the classes is no part of the records this time either.
    alone = SetApart(source, labels) if isinstance(labels, str) else source
    return LabelledPoints(read_source(alone, ball, given, invalid, enough).groups[0], parts)


def _each_in_one(groups: list[UnitPoints]) -> LabelledPoints:
    """Return units that are in one class each."""
    parts = [InClass(number, 1, points) for number, points in enumerate(groups)]
    return LabelledPoints(functools.reduce(UnitPoints.joined, groups), parts)


def _most_classes(ids: UnitIds, which: Array, classes: int) -> int:
    """Return in how many classes a unit has records, at most."""
    pairs = np.asarray(unit_ids(ids.group.astype(np.int64) * classes + which, len(which)).found)
    return int(np.bincount(pairs // classes).max(initial=1))


def _refuse_small(label: Array, names: list[Any]) -> None:
    _refuse_few(np.bincount(label, minlength=len(names)), names)


def _refuse_few(counts: Array, names: list[Any]) -> None:
    for found, name in zip(counts.tolist(), names, strict=True):
        if found == 0:
            raise InvalidDataError("class {name!r} has no records. Leave it out of classes.", name=name)
        try:
            checked_number(found)
        except InvalidDataError as problem:
            raise InvalidDataError("class {name!r}: {problem}", name=name, problem=problem) from problem


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
