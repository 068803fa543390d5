"""The private mean, for one group or by class."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, shown
from dpmanifold._ids import UnitIds, unit_ids
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.frechet import Records, UnitPoints
from dpmanifold.mechanisms import Mechanism
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.progress import bar
from dpmanifold.release import NEIGHBOURS_BY_CLASS, Release
from dpmanifold.sources import Source, as_source
from dpmanifold.statistic import Header, Prepared
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator, Tally
from dpmanifold.stats.draws import fresh_bits
from dpmanifold.stats.inputs import (
    Told,
    checked_number,
    checked_question,
    checked_units,
    column_or_ids,
    divide,
    spend,
)
from dpmanifold.stats.mean import MEAN, MeanPlan
from dpmanifold.stats.public_shapes import refuse_own_records
from dpmanifold.stats.recipes import TOUCHED
from dpmanifold.stats.records import as_batch, records_of
from dpmanifold.stats.refine import Wanted
from dpmanifold.stats.shaped import plan_shaped
from dpmanifold.stats.sources import read_source, units_in


def private_mean(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    estimand: str | None = None,
    mechanism: str | Mechanism = "auto",
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    project: bool = True,
    refine: bool = False,
    shape: Any = None,
    shrink: str | None = "auto",
    arithmetic: str = "auto",
    budget: Budget | None = None,
    rng: Rng = None,
) -> Release:
    """Release a mean of clipped records under a promise: the Fréchet mean, or another by name (theory 1, 3, 5).

    Parameters
    ----------
    X : records, shape (n, *space.shape); or a source of them that is read piece by piece, such as a `data.Dataset` of
        files, a data frame or a Dask collection: the bits of the result are those of the same records in an array
    ball : public knowledge about where they lie
    privacy : PureDP, ApproxDP, ZCDP or GDP
    units : one id per record, all whole numbers or all text, or EACH_RECORD ("each-record"); or the name of a column,
        where X has columns; required
    estimand : which mean: "frechet" (also if left out); "tangent", the average logarithm at the ball's centre, with
        less noise on spheres and shapes; "extrinsic", the mean direction or the full Procrustes mean, which needs no
        ball (:meth:`Ball.whole`). How far they are apart: theory, estimands
    mechanism : "auto" (exact draws, then the smallest expected noise that keeps the promise), a name or a Mechanism
    invalid : "raise" (the error describes data: for the curator) or "center" (a bad record counts as the centre)
    curator : a function that is told, before anything is spent, how many records were clipped or replaced (a
        :class:`Notice`). That is data about the data, for whoever holds them and nobody else
    confirm : go on although more than half of the records were clipped or replaced, which is refused otherwise
    project : move the draw into the ball, which costs nothing and never hurts
    refine : spend a tenth (pure promises) or a fifth (others) on a smaller ball first, unless public numbers say that
        this cannot help (theory section 8); `plan_mean(..., refine=True)` says what to expect
    shape : how the data are expected to spread about the ball's centre: public records, in any form that X may have as
        arrays; a matrix (d, d) of second moments in coordinates there; or "private", which spends three tenths on the
        shape and on radii. Records are taken about the ball's centre, not about their own mean, and few of them are
        believed less, which a matrix made of them is not. Noise then has that shape, which is less of it in all if the
        data have it too, and the radius is found privately in its norm (theory: shaped noise). For flat spaces and
        tangent means; `plan_mean(..., shape=...)` says what to expect
    shrink : "auto" moves the draw towards the ball's centre where its mean squared error falls by that wherever in the
        ball the mean lies (Gaussian noise on flat spaces, few units; computed, theory section 8), and keeps the draw in
        `raw`; "james-stein" always does, by that rule, whose mean squared error is below that of the draw itself for
        every mean, though not below that of the draw moved into the ball, and is refused with a shape; None never does
    arithmetic : "auto" draws ideal noise and rounds it to a public grid, so that no bit of it tells more than the
        promise allows (theory: exact noise), wherever the mechanism offers that; seeded simulations draw doubles of the
        same law, which is faster. "exact" insists, "float" draws doubles
    budget : spend from this budget, before anything is drawn
    rng : None for a release; a seed or generator for simulations, which marks the result not private

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import SPD
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> ball = Ball(SPD(2), np.eye(2), 2.0, source="textbook")
    >>> X = SPD(2).random_point(500, rng=0)
    >>> release = private_mean(X, ball, GDP(1.0), units=EACH_RECORD)
    >>> release.mechanism, round(release.noise_error(), 4)
    ('wrapped-gaussian', 0.0128)
    """
    refuse_own_records(shape, X)
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, rng)
    asked: dict[str, Any] = {
        "mechanism": mechanism,
        "estimand": estimand,
        "refine": refine,
        "shape": shape,
        "project": project,
        "shrink": shrink,
    }
    return ask(lambda header: MEAN.prepared(header, **asked), X, ball, privacy, terms)


@bar("clipping and solving")
def private_means(
    X: object,
    labels: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    classes: Sequence[Any],
    labels_public: bool = True,
    estimand: str | None = None,
    mechanism: str | Mechanism = "auto",
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    project: bool = True,
    refine: bool = False,
    shape: Any = None,
    shrink: str | None = "auto",
    arithmetic: str = "auto",
    budget: Budget | None = None,
    rng: Rng = None,
) -> dict[Any, Release]:
    """Release one mean per class under one promise in total (theory section 1).

    Labels are public, and so is which unit has records in which class. If every unit is in one class, classes compose
    in parallel and each mean gets the whole promise. If units span classes, every class gets the share that lets a unit
    touch as many of them as any unit does.

    Parameters
    ----------
    X, ball, privacy, units, estimand, mechanism, invalid, curator, confirm, project, refine, shape, shrink,
        arithmetic,
        budget, rng : as in :func:`private_mean`
    labels : one class per record; or the name of a column, where X has columns
    classes : the public list of classes; a label outside it is an error
    labels_public : must be True; private labels need a mechanism of their own

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import PureDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> ball = Ball(Euclidean(1), [0.0], 1.0)
    >>> X, labels = np.zeros((40, 1)), ["a", "b"] * 20
    >>> releases = private_means(X, labels, ball, PureDP(1.0), units=EACH_RECORD, classes=["a", "b"])
    >>> sorted(releases), releases["a"].n, releases["a"].privacy
    (['a', 'b'], 20, PureDP(epsilon=1.0))
    """
    if not labels_public:
        raise InvalidArgumentError(
            "labels_public must be True: this release shows which classes have how many units. Private labels are not "
            "supported."
        )
    if not isinstance(ball, Ball):
        raise InvalidArgumentError(
            f"ball must be a Ball, got {shown(ball)}. The arguments are (X, labels, ball, privacy)."
        )
    checked_question(ball, privacy)
    told = Terms(units, invalid, curator, confirm).told
    names = list(classes)
    refuse_own_records(shape, X)
    X = as_batch(X, ball)
    source = as_source(X)
    if source is not None:
        groups, spans = _read_by_class(source, labels, ball, units, invalid, names, told)
    else:
        records = records_of(X, ball, invalid)
        ids = checked_units(units, len(records))
        which = _class_numbers(labels, names, len(records))
        groups = _points_by_class(records, ball, ids, which, names, told)
        spans = 1 if ids is None else _most_classes(ids, which, len(names))
    share = privacy if spans == 1 else divide(privacy, spans)[0]
    details = {"classes": float(len(names)), TOUCHED: float(spans)}
    wanted = Wanted(mechanism, estimand)
    headers = [Header(ball, len(points), privacy, points.unit, NEIGHBOURS_BY_CLASS, arithmetic) for points in groups]
    plans: list[Prepared] = [
        MeanPlan(header, wanted, refine, project, shrink, share, details)
        if shape is None
        else plan_shaped(
            header, Wanted(mechanism, estimand or "frechet"), shape, refine, project, shrink, share, details
        )
        for header in headers
    ]
    bits = fresh_bits(rng, ball, arithmetic)
    spend(budget, privacy, "means by class")
    return {name: plan.release(points, bits) for name, points, plan in zip(names, groups, plans, strict=True)}


def _read_by_class(
    source: Source, labels: object, ball: Ball, units: object, invalid: str, names: list[Any], told: Told
) -> tuple[list[UnitPoints], int]:
    """Return the points of each class of a source, and in how many classes a unit has records, at most."""
    _refuse_names(names)
    given = column_or_ids(units)
    by_id = given is not None

    def enough(counts: Array) -> None:
        _refuse_few(units_in(counts, by_id), names)

    numbers = functools.partial(_numbers_of_labels, names=names)
    made = read_source(source, ball, given, invalid, enough, labels, numbers, len(names))
    Tally(made.records, made.clipped, made.replaced).tell(told.curator, told.confirm)
    return made.groups, int(np.count_nonzero(made.counts, axis=1).max(initial=1)) if by_id else 1


def _points_by_class(
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
        groups = [made.points.where(label == number) for number in range(len(names))]
        clipped, replaced = made.clipped, made.replaced
    Tally(len(records), clipped, replaced).tell(told.curator, told.confirm)
    return groups


def _most_classes(ids: UnitIds, which: Array, classes: int) -> int:
    """Return in how many classes a unit has records, at most."""
    pairs = np.asarray(unit_ids(ids.group.astype(np.int64) * classes + which, len(which)).found)
    return int(np.bincount(pairs // classes).max(initial=1))


def _refuse_small(label: Array, names: list[Any]) -> None:
    _refuse_few(np.bincount(label, minlength=len(names)), names)


def _refuse_few(counts: Array, names: list[Any]) -> None:
    for found, name in zip(counts.tolist(), names, strict=True):
        if found == 0:
            raise InvalidDataError(f"class {name!r} has no records. Leave it out of classes.")
        try:
            checked_number(found)
        except InvalidDataError as problem:
            raise InvalidDataError(f"class {name!r}: {problem}") from problem


def _class_numbers(labels: object, names: list[Any], n: int) -> Array:
    given = np.asarray(labels)
    if given.shape != (n,):
        raise InvalidArgumentError(f"labels must have shape ({n},), one per record, got {given.shape}.")
    _refuse_names(names)
    return _numbers_of_labels(given, names)


def _refuse_names(names: list[Any]) -> None:
    if not names or len(set(names)) != len(names):
        raise InvalidArgumentError(f"classes must be a list of distinct names, got {shown(names)}.")


def _numbers_of_labels(given: Array, names: list[Any]) -> Array:
    number = {name: i for i, name in enumerate(names)}
    try:
        return np.array([number[label] for label in given.tolist()], dtype=np.intp)
    except KeyError as problem:
        raise InvalidDataError(
            f"a label is outside the public classes: {problem}. Add it to classes, or drop its records."
        ) from None
