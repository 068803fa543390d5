"""The private mean, for one group or by class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, shown
from dpmanifold._ids import UnitIds, unit_ids
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.frechet import Records, UnitPoints
from dpmanifold.manifolds.base import shorten
from dpmanifold.mechanisms import Calibration, Mechanism
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.release import NEIGHBOURS, NEIGHBOURS_BY_CLASS, Release
from dpmanifold.stats.curator import Curator, Tally
from dpmanifold.stats.draws import (
    Bits,
    draw_mean,
    fresh_bits,
    refuse_inexact,
    stated,
    timing_of,
    tolerance_of,
)
from dpmanifold.stats.inputs import (
    Told,
    checked_flag,
    checked_number,
    checked_question,
    checked_units,
    divide,
    is_each_record,
    number_of_records,
    prepare,
    spend,
)
from dpmanifold.stats.records import records_of
from dpmanifold.stats.refine import Refinement, Wanted
from dpmanifold.stats.sealed import sealed
from dpmanifold.stats.shrinkage import Shrinkage, best_shrinkage

# Mechanisms whose noise is normal in the frame of a flat ball.
_NORMAL_NOISE = ("wrapped-gaussian", "wrapped-gaussian-classical")


def private_mean(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object = None,
    estimand: str | None = None,
    mechanism: str = "auto",
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    project: bool = True,
    refine: bool = False,
    shrink: str | None = "auto",
    arithmetic: str = "auto",
    budget: Budget | None = None,
    rng: Rng = None,
) -> Release:
    """Release a mean of clipped records under a promise: the Fréchet mean, or another by name (theory 1, 3, 5).

    Parameters
    ----------
    X : records, shape (n, *space.shape)
    ball : public knowledge about where they lie
    privacy : PureDP, ApproxDP, ZCDP or GDP
    units : one id per record, all whole numbers or all text, or EACH_RECORD ("each-record"); required
    estimand : which mean: "frechet" (also if left out); "tangent", the average logarithm at the ball's centre, with
        less noise on spheres and shapes; "extrinsic", the mean direction or the full Procrustes mean, which needs no
        ball (:meth:`Ball.whole`). How far they are apart: theory, estimands
    mechanism : "auto" (exact draws, then the smallest expected noise that keeps the promise) or a name
    invalid : "raise" (the error describes data: for the curator) or "center" (a bad record counts as the centre)
    curator : a function that is told, before anything is spent, how many records were clipped or replaced (a
        :class:`Notice`). That is data about the data, for whoever holds them and nobody else
    confirm : go on although more than half of the records were clipped or replaced, which is refused otherwise
    project : move the draw into the ball, which costs nothing and never hurts
    refine : spend a tenth (pure promises) or a fifth (others) on a smaller ball first, unless public numbers say that
        this cannot help (theory section 8); `plan_mean(..., refine=True)` says what to expect
    shrink : "auto" moves the draw towards the ball's centre where its mean squared error falls by that wherever in the
        ball the mean lies (Gaussian noise on flat spaces, few units; computed, theory section 8), and keeps the draw in
        `raw`; None never does
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
    checked_flag(project, "project")
    checked_question(ball, privacy)
    shrinks = _checked_shrink(shrink)
    wanted = Wanted(mechanism, estimand)
    told = Told(curator, confirm)
    if is_each_record(units) and number_of_records(X) > 1:
        # What public numbers refuse is refused before the records are looked at.
        plan = MeanPlan(ball, number_of_records(X), privacy, wanted, refine, arithmetic)
        points = prepare(X, ball, privacy, units, invalid, told)
    else:
        points = prepare(X, ball, privacy, units, invalid, told)
        plan = MeanPlan(ball, len(points), privacy, wanted, refine, arithmetic)
    bits = fresh_bits(rng, ball, arithmetic)
    spend(budget, privacy, plan.label)
    return plan.release(points, privacy, project, bits, shrinks=shrinks)


class MeanPlan:
    """Every choice and every refusal of a private mean, from public numbers alone, before anything is spent.

    `share` is what the mean and, with `refine`, the ball before it may cost together.
    """

    def __init__(
        self, ball: Ball, n: int, share: Promise, wanted: Wanted, refine: bool, arithmetic: str = "auto"
    ) -> None:
        self.ball, self.wanted, self.arithmetic = ball, wanted, arithmetic
        self.refinement = Refinement(ball, n, share, refine, wanted)
        self.label = "mean with refined ball" if self.refinement.plan else "mean"
        self.chosen = self._chosen(ball, n)

    def _chosen(self, ball: Ball, n: int) -> tuple[Mechanism, Calibration]:
        mechanism, calibration, _ = self.wanted.choose(ball, n, self.refinement.rest)
        refuse_inexact(self.arithmetic, mechanism, ball, calibration)
        return mechanism, calibration

    def release(
        self,
        points: UnitPoints,
        total: Promise,
        project: bool,
        bits: Bits,
        neighbours: str = NEIGHBOURS,
        details: dict[str, float] | None = None,
        shrinks: bool = True,
    ) -> Release:
        """Draw; `total` is what the release states."""
        details = {**(details or {}), **self.refinement.details}
        chosen = self.chosen
        steps = self.refinement.find(points, bits, neighbours)
        if steps:
            # Where the released ball does not suit the mechanism the outer one is used: decided by the release.
            suited = sealed(lambda: self._chosen(steps[0].value, len(points)), lambda: None)
            if suited is not None:
                points, chosen = self.refinement.move(steps, points), suited
        return release_mean(points, total, chosen, project, bits, steps, neighbours, details, shrinks)


def release_mean(
    points: UnitPoints,
    privacy: Promise,
    chosen: tuple[Mechanism, Calibration],
    project: bool,
    bits: Bits,
    steps: tuple[Release, ...] = (),
    neighbours: str = NEIGHBOURS,
    details: dict[str, float] | None = None,
    shrinks: bool = False,
) -> Release:
    """Solve, draw in the frame, move back; `privacy` is the total, the calibration's the share of this step.

    Never raises: nothing behind the spend does.
    """
    mechanism, calibration = chosen
    ball = points.ball
    draw = draw_mean(ball, mechanism, calibration, points, bits)
    if mechanism.baseline:
        value, project = sealed(lambda: _baseline_value(ball, draw.point), lambda: ball.center), False
    else:
        value = sealed(lambda: placed(ball, draw.point, project), lambda: ball.center)
    rule = shrinkage_of(ball, mechanism, calibration.scale, project) if shrinks else None
    raw = None
    if rule is not None:
        raw = sealed(lambda: placed(ball, draw.point, False), lambda: ball.center)
        value = shrunken(rule, ball, raw, project)
    return Release(
        statistic="mean",
        value=value,
        privacy=privacy,
        share=calibration.privacy,
        mechanism=mechanism.name,
        scale=calibration.scale,
        rule=calibration.rule,
        sensitivity=calibration.sensitivity,
        ball=ball,
        n=len(points),
        unit=points.unit,
        tol=tolerance_of(mechanism, ball, len(points)),
        projected=project,
        private=bits.private,
        timing=timing_of(mechanism, steps),
        neighbours=neighbours,
        steps=steps,
        details=details or {},
        shrinkage="" if rule is None else rule.name,
        raw=raw,
        **stated(draw),
    )


def shrinkage_of(ball: Ball, mechanism: Mechanism, scale: float, project: bool) -> Shrinkage | None:
    """Return how a draw by this mechanism may be moved towards the centre, from public numbers; None if it may not."""
    if not ball.space.is_flat or mechanism.name not in _NORMAL_NOISE:
        return None
    return best_shrinkage(ball.space.dim, ball.radius, scale, project)


def shrunken(rule: Shrinkage, ball: Ball, raw: Array, project: bool) -> Array:
    """Move a released draw towards the ball's centre: a function of the release alone. Never raises."""
    return sealed(lambda: placed(ball, rule(ball.space.log_coords(ball.center, raw)), project), lambda: ball.center)


def _checked_shrink(shrink: object) -> bool:
    if not (shrink is None or (isinstance(shrink, str) and shrink == "auto")):
        raise InvalidArgumentError(f'shrink must be "auto" or None, got {shown(shrink)}.')
    return shrink == "auto"


def placed(ball: Ball, draw: Array, project: bool) -> Array:
    """Move a draw from the frame to the space, into the ball if asked for: post-processing."""
    value = to_space(ball, ball.in_frame.pull_in(draw) if project else draw)
    return ball.pull_in(value) if project and not ball.space.is_flat else value


def to_space(ball: Ball, point: Array) -> Array:
    """Move a draw from the frame to the space; coordinates too long to represent are shortened: post-processing."""
    if ball.space.is_flat:
        point = shorten(point[None], _farthest(ball))[0]
    return np.asarray(ball.from_frame(point[None])[0])


@lru_cache(maxsize=256)
def _farthest(ball: Ball) -> float:
    """Return the longest coordinates at the centre whose point can be written down."""
    return ball.space.farthest - float(ball.space.dist(ball.space.origin, ball.center))


def _baseline_value(ball: Ball, stored: Array) -> Array:
    """Carry a baseline's noisy numbers back by the linear map that moves points: what comes out may be no point."""
    assert ball.space.stored is not None  # or the mechanism had refused
    return ball.space.stored.carried(ball.center, stored)


def private_means(
    X: object,
    labels: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object = None,
    classes: Sequence[Any],
    labels_public: bool = True,
    estimand: str | None = None,
    mechanism: str = "auto",
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    project: bool = True,
    refine: bool = False,
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
    X, ball, privacy, units, estimand, mechanism, invalid, curator, confirm, project, refine, shrink, arithmetic,
        budget, rng : as in :func:`private_mean`
    labels : one class per record
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
    checked_flag(project, "project")
    shrinks = _checked_shrink(shrink)
    wanted = Wanted(mechanism, estimand)
    told = Told(curator, confirm)
    records = records_of(X, ball, invalid)
    ids = checked_units(units, len(records))
    names = list(classes)
    which = _class_numbers(labels, names, len(records))
    groups = _points_by_class(records, ball, ids, which, names, told)
    spans = 1 if ids is None else _most_classes(ids, which, len(names))
    shares = [privacy] if spans == 1 else divide(privacy, spans)
    prepared = [
        (name, points, MeanPlan(ball, len(points), shares[0], wanted, refine, arithmetic))
        for name, points in zip(names, groups, strict=True)
    ]
    bits = fresh_bits(rng, ball, arithmetic)
    spend(budget, privacy, "means by class")
    details = {"classes": float(len(names)), "classes a unit touches": float(spans)}
    return {
        name: plan.release(points, privacy, project, bits, NEIGHBOURS_BY_CLASS, details, shrinks)
        for name, points, plan in prepared
    }


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
    for number, name in enumerate(names):
        found = int(np.count_nonzero(label == number))
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
    if not names or len(set(names)) != len(names):
        raise InvalidArgumentError(f"classes must be a list of distinct names, got {shown(names)}.")
    number = {name: i for i, name in enumerate(names)}
    try:
        return np.array([number[label] for label in given.tolist()], dtype=np.intp)
    except KeyError as problem:
        raise InvalidDataError(
            f"a label is outside the public classes: {problem}. Add it to classes, or drop its records."
        ) from None
