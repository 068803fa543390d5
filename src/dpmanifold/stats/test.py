"""A private test that two groups have the same mean (theory section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpmanifold._check import open_fraction
from dpmanifold._ids import UnitIds, unit_ids
from dpmanifold._labels import checked_names
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import TwoSampleTest
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.accounts import Account
from dpmanifold.progress import bar
from dpmanifold.release import Release
from dpmanifold.sources import as_source
from dpmanifold.statistic import NEIGHBOURS_BY_CLASS, Header
from dpmanifold.stats.asking import Terms
from dpmanifold.stats.content import content_of
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import fresh_bits
from dpmanifold.stats.group_plan import GroupsPlan, refuse_in_several
from dpmanifold.stats.inputs import checked_question, is_each_record, number_of_records, prepare_records
from dpmanifold.stats.records import as_batch
from dpmanifold.stats.registered import Registered
from dpmanifold.stats.registering import facts_of, opened_by_class, opened_points, refuse_elsewhere, registered_counts
from dpmanifold.stats.rehearsal import Rehearsal, public_groups
from dpmanifold.stats.requests import Question
from dpmanifold.stats.settling import Request


@bar("clipping and solving")
def private_test(
    X: object,
    Y: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    classes: Sequence[Any] | None = None,
    level: float = 0.95,
    estimand: str | None = None,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> TwoSampleTest:
    """Test whether two groups have the same mean (theory section 7).

    Who is in which group is public, and nobody is in both: each group's mean and second moment keep the whole promise,
    released as for :func:`private_region`. The noise is part of the test's variance. With ids a unit in both groups is
    refused before anything is spent; with EACH_RECORD that there is none is your word. Where an account pays,
    EACH_RECORD and two registered data sets are taken only if its unit is the record: else the same people may be in
    both, and both groups are given as arrays or sources with ids. One data set that is registered with public labels
    of two classes says itself whether somebody is in both: it is taken as :func:`private_groups` takes it, with None in
    the place of the other group and the classes by name, of which the first is the first group.

    Parameters
    ----------
    X, Y : records of the two groups, shapes (n, *space.shape) and (m, *space.shape). Or X is registered with labels,
        and Y is None
    ball, privacy, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`; ApproxDP, ZCDP
        or GDP
    units : EACH_RECORD, or a pair: one id per record of X, one id per record of Y; the names of columns, where X and Y
        have columns, or one name for both; None where both groups are registered, each record a unit of its own, or
        both in one data set
    classes : the two classes that X is registered with, in their order; None where Y is given
    level : the confidence of the interval for the distance between the means, in (0, 1)
    estimand : which mean: "frechet", the default, or "tangent", that of coordinates at the ball's centre, which takes
        one draw of each group on every space. On flat spaces they are the same
    refine : spend a fifth of the promise on one smaller ball for both groups first, found from all units together

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> X, Y = np.zeros((2, 300, 1))
    >>> private_test(X, Y, Ball(Euclidean(1), [0.0], 1.0), GDP(1.0), units=EACH_RECORD).ball.radius
    1.0
    """
    level = open_fraction(level, "level")
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    checked_question(ball, privacy, "X, Y")
    terms.check(ball)
    names = _checked_pair(X, Y, classes)
    both = _both_registered(X, Y) if names is None else ()
    if isinstance(budget, Account) and budget.unit != _RECORD and names is None:
        _refuse_untold(budget, bool(both), units)
    if isinstance(X, Registered) and names is not None:
        sizes, unit, groups = _sizes_by_class(X, ball, terms, names)
    else:
        sizes, unit, groups = _registered_sizes(both, ball, terms) if both else _read_sizes(X, Y, ball, terms)
    header = Header(ball, sum(sizes), privacy, unit, NEIGHBOURS_BY_CLASS, arithmetic)
    question = Question(TestPlan.label, TestPlan, {"counts": sizes, "estimand": estimand, "refine": refine})
    plan = question(header)
    bits = fresh_bits(rng, ball, arithmetic)

    def request(account: Account) -> Request:
        if isinstance(X, Registered):
            return question.request(header, [data.id for data in both or (X,)]), ()
        one, two = (
            account.marked(content_of(records, ball, owners), facts_of(ball, points))
            for records, owners, points in zip((X, Y), _paired_units(units), groups, strict=True)
        )
        if one.records == two.records and unit == _RECORD:
            raise InvalidArgumentError(
                "X and Y must be records of different units, got the same records twice: a unit in both groups would "
                "be counted once where it is touched twice. Nothing was spent."
            )
        return question.request(header, [one.id, two.id]), (one, two)

    def draw() -> Sequence[Release]:
        if isinstance(X, Registered) and names is not None:
            return plan.release(opened_by_class(X, ball, names, terms.told), bits)
        return plan.release(_opened_groups(both, ball, terms) if both else groups, bits)

    rehearsal = Rehearsal(
        question, header, bits.exact, plan.steps, lambda bits: plan.release(public_groups(header, sizes), bits)
    )
    first, second = terms.settle(privacy, plan.label, request, draw, rehearsal)
    return TwoSampleTest(first, second, level)


Groups = tuple[UnitPoints, ...]
_RECORD = "record"  # what a unit is called where every record is one


def _checked_pair(X: object, Y: object, classes: Sequence[Any] | None) -> list[Any] | None:
    """Return the two classes of one registered data set; None where the groups come one by one."""
    if classes is None:
        return None
    if not isinstance(X, Registered) or Y is not None:
        raise InvalidArgumentError(
            "`classes` are those of one data set that is registered with labels: give it as X, and None as Y. "
            "Groups that come one by one need no classes."
        )
    names = checked_names(classes)
    if len(names) != 2:
        raise InvalidArgumentError(
            "`classes` must be two for a test of two groups, got {n_names}. private_groups compares more of them.",
            n_names=Public(len(names)),
        )
    return names


def _sizes_by_class(X: Registered, ball: Ball, terms: Terms, names: list[Any]) -> tuple[tuple[int, int], str, Groups]:
    """Return what is registered about two classes of one data set; their points are not open yet."""
    refuse_elsewhere(X, ball, terms.units, terms.invalid, terms.budget)
    known = registered_counts(X, None, names)
    refuse_in_several(known.touched)
    first, second = known.counts
    return (first, second), known.unit, ()


def _refuse_untold(account: Account, registered: bool, units: object) -> None:
    """Refuse groups of which nobody can say before the spend that no person is in both.

    A population's neighbours differ in all that one person has in all its data sets. Whoever is in both groups would
    be paid for once and be touched twice. Ids in the records of registered data are seen after the spend, and to lose
    the release because of them would tell who is where.
    """
    if not (registered or is_each_record(units)):
        return
    what = (
        "data sets that are registered one by one are opened after the spend"
        if registered
        else "EACH_RECORD does not tell people apart"
    )
    raise InvalidArgumentError(
        "X and Y must be given as arrays or sources with ids, in one call: population {name!r} protects "
        "each {unit}, nobody may be in both groups, and {what}. Or register both groups as one data set "
        "with labels, and give it as X, None as Y and classes=[...]. Nothing was spent.",
        name=Public(account.name),
        unit=Public(account.unit),
        what=Public(what),
    )


def _read_sizes(X: object, Y: object, ball: Ball, terms: Terms) -> tuple[tuple[int, int], str, Groups]:
    """Read both groups; returns how many units they have, what a unit is, and the points."""
    owners = _paired_units(terms.units)
    X, Y = as_batch(X, ball, units=owners[0]), as_batch(Y, ball, units=owners[1])
    sources = any(as_source(records) is not None for records in (X, Y))
    if not sources:
        owners = _told_apart(owners, X, Y)
    (first, one), (second, two) = (
        prepare_records(records, ball, ids, terms.invalid, terms.told, f"{name} group")
        for records, ids, name in zip((X, Y), owners, ("first", "second"), strict=True)
    )
    if sources:  # which are read before anybody knows who is in them
        _refuse_overlap(one, two)
    return (len(first), len(second)), first.unit, (first, second)


def _both_registered(X: object, Y: object) -> tuple[Registered, ...]:
    """Return both groups where they are registered, and nothing where neither is."""
    found = tuple(data for data in (X, Y) if isinstance(data, Registered))
    if len(found) == 1:
        raise InvalidArgumentError(
            "X and Y must both be registered data, or neither. Register the other one, too; or register both groups as "
            "one data set with labels, and give it as X, None as Y and classes=[...]."
        )
    return found


def _registered_sizes(both: tuple[Registered, ...], ball: Ball, terms: Terms) -> tuple[tuple[int, int], str, Groups]:
    """Return what is registered about both groups; their points are not open yet."""
    first, second = both
    for data in both:
        refuse_elsewhere(data, ball, terms.units, terms.invalid, terms.budget)
    if any(data.unit != _RECORD for data in both):
        raise InvalidArgumentError(
            "X and Y are registered with ids, which are seen after the spend: give both groups as arrays or sources "
            "with ids, in one call, so that a unit in both is found before it. Nothing was spent."
        )
    if first.name == second.name or first.records_mark == second.records_mark:
        raise InvalidArgumentError(
            "X and Y must be data sets of different units, got {id} and {id2}: versions of one data set, or "
            "the same records under two names, have units in both groups. Nothing was spent.",
            id=Public(first.id),
            id2=Public(second.id),
        )
    return (first.n, second.n), first.unit, ()


def _opened_groups(both: tuple[Registered, ...], ball: Ball, terms: Terms) -> Groups:
    """Open both groups, of records that are units of their own. Whatever it raises, the release is lost."""
    return tuple(
        opened_points(data, ball, terms.told, f"{name} group")[0]
        for data, name in zip(both, ("first", "second"), strict=True)
    )


class TestPlan(GroupsPlan):
    """A smaller ball for both groups if one was asked for, and a mean and a second moment of each."""

    label = "two-sample test"
    __test__ = False  # for pytest, which would take it for a test of its own


def _paired_units(units: object) -> tuple[object, object]:
    """Return the units of each group as they were given."""
    if is_each_record(units) or units is None or isinstance(units, str):
        return units, units
    if not (isinstance(units, (tuple, list)) and len(units) == 2):
        raise InvalidArgumentError(
            "`units` must be EACH_RECORD or a pair: one id per record of X, one id per record of Y; or the "
            "name of a column that both have."
        )
    if any(is_each_record(part) or part is None for part in units):
        raise InvalidArgumentError(
            "`units` must be ids for both groups, or EACH_RECORD alone: one kind of unit for both."
        )
    return units[0], units[1]


def _told_apart(owners: tuple[object, object], X: object, Y: object) -> tuple[object, object]:
    """Return who owns each record by number, after a look at the ids before any at the records."""
    if is_each_record(owners[0]) or owners[0] is None:
        return owners
    first = unit_ids(owners[0], number_of_records(X), "units of X")
    second = unit_ids(owners[1], number_of_records(Y), "units of Y")
    _refuse_overlap(first, second)
    return first.group, second.group


def _refuse_overlap(first: UnitIds | None, second: UnitIds | None) -> None:
    """Refuse a unit in both groups, which would not be protected by each group's promise alone."""
    if first is not None and second is not None and first.shares_a_unit(second):
        raise InvalidArgumentError(
            "units of X and Y overlap: a unit in both groups would be counted once where it is touched twice. "
            "Leave such units out of one group."
        )
