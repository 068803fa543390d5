"""A sample of two groups: two sets of records, or one data set that is registered with two classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from dpmanifold._cells import checked_names
from dpmanifold._ids import UnitIds
from dpmanifold._merged_ids import unit_ids
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.frechet import UnitPoints
from dpmanifold.privacy.budget_accounts import Account, Mark
from dpmanifold.sources import as_source
from dpmanifold.stats.content import content_of
from dpmanifold.stats.inputs import as_batch, is_each_record, number_of_records, prepare_records
from dpmanifold.stats.registered_data import Registered, facts_of
from dpmanifold.stats.rehearsal import public_groups
from dpmanifold.stats.samples import Data, Groups, Known, Sample, Units

if TYPE_CHECKING:
    from dpmanifold.stats.asking import Terms

_RECORD = "record"  # what a unit is called where every record is one
_NAMES = ("first group", "second group")


@dataclass(frozen=True, eq=False)
class Pair(Sample[Sequence[UnitPoints]]):
    """Records of two groups, every unit in one of them.

    Attributes
    ----------
    X, Y, classes : as in :func:`private_two_sample_test`
    """

    arguments: ClassVar[str] = "X, Y"
    groups: ClassVar[float] = 2
    brings: ClassVar[str] = "classes"

    X: object
    Y: object
    classes: Sequence[Any] | None

    def known(self, ball: Ball, terms: Terms, foresee: Callable[[int], None]) -> Known[Sequence[UnitPoints]]:
        """Read both groups, or look up what is registered."""
        if self.classes is not None:
            found = Groups(self.X, None, self._names()).known(ball, terms, foresee)
            return replace(found, options={"counts": tuple(found.options["counts"])})
        both = _both_registered(self.X, self.Y)
        if isinstance(terms.budget, Account) and terms.budget.unit != _RECORD:
            _refuse_untold(terms.budget, bool(both), terms.units)
        return _registered(both, ball, terms, foresee) if both else _read(self.X, self.Y, ball, terms)

    def _names(self) -> list[Any]:
        """Return the two classes of one registered data set."""
        if not isinstance(self.X, Registered) or self.Y is not None:
            raise InvalidArgumentError(
                "`classes` are those of one data set that is registered with labels: give it as X, and None as Y. "
                "Groups that come one by one need no classes."
            )
        names = checked_names(self.classes)
        if len(names) != 2:
            raise InvalidArgumentError(
                "`classes` must be two for a test of two groups, got {n_names}. private_k_sample_test compares more.",
                n_names=Public(len(names)),
            )
        return names

    # What is registered is one data set with two classes.
    adjacency = staticmethod(Groups.adjacency)
    planned = staticmethod(Groups.planned)
    given = staticmethod(Groups.given)

    @staticmethod
    def fits(X: Registered) -> bool:
        """Return whether there are two public classes, and nobody is in both."""
        return Groups.fits(X) and len(X.classes or ()) == 2

    @staticmethod
    def are_counts(found: Sequence[int], facts: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether they are the units of two data sets, or of the two classes of one."""
        return found == (facts[0].get("units_by_class") if len(facts) == 1 else [fact["n"] for fact in facts])


def _of_sizes(
    ball: Ball, sizes: tuple[int, ...], unit: str, data: Data, points: Callable[[], Sequence[UnitPoints]]
) -> Known[Sequence[UnitPoints]]:
    public = partial(public_groups, ball, sizes, unit)
    return Known(sum(sizes), unit, data, points, public, {"counts": sizes})


def _read(X: object, Y: object, ball: Ball, terms: Terms) -> Known[Sequence[UnitPoints]]:
    """Read both groups."""
    given = _paired_units(terms.units)
    groups = [as_batch(records, ball, units=units) for records, units in zip((X, Y), given, strict=True)]
    sources = any(as_source(records) is not None for records in groups)
    owners = given if sources else _told_apart(given, *groups)
    (first, one), (second, two) = (
        prepare_records(records, ball, ids, terms.invalid, terms.told, name)
        for records, ids, name in zip(groups, owners, _NAMES, strict=True)
    )
    if sources:  # which are read before anybody knows who is in them
        _refuse_overlap(one, two)

    def data(account: Account) -> Sequence[Mark]:
        known = [
            account.marked(content_of(records, ball, units), facts_of(ball, points))
            for records, units, points in zip(groups, given, (first, second), strict=True)
        ]
        if known[0].records == known[1].records and first.unit == _RECORD:
            raise InvalidArgumentError(
                "X and Y must be records of different units, got the same records twice: a unit in both groups would "
                "be counted once where it is touched twice. Nothing was spent."
            )
        return known

    return _of_sizes(ball, (len(first), len(second)), first.unit, data, lambda: (first, second))


def _both_registered(X: object, Y: object) -> tuple[Registered, ...]:
    """Return both groups where they are registered, and nothing where neither is."""
    found = tuple(data for data in (X, Y) if isinstance(data, Registered))
    if len(found) == 1:
        raise InvalidArgumentError(
            "X and Y must both be registered data, or neither. Register the other one, too; or register both groups as "
            "one data set with labels, and give it as X, None as Y and classes=[...]."
        )
    return found


def _registered(
    both: tuple[Registered, ...], ball: Ball, terms: Terms, foresee: Callable[[int], None]
) -> Known[Sequence[UnitPoints]]:
    """Look up what is registered about both groups."""
    first, second = both
    found = [Units(data, name).known(ball, terms, foresee) for data, name in zip(both, _NAMES, strict=True)]
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
    sizes = tuple(group.n for group in found)
    return _of_sizes(ball, sizes, first.unit, lambda account: both, lambda: [group.points() for group in found])


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
