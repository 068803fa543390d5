"""From a user's data to one point per unit, with every check before anything is spent or drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from dpmanifold import frechet
from dpmanifold._check import shown
from dpmanifold._ids import UnitIds, unit_ids
from dpmanifold.ball import Ball
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Public
from dpmanifold.frechet import UnitPoints
from dpmanifold.privacy import ApproxDP, Promise, gdp_sufficient_for, split
from dpmanifold.sources import as_source
from dpmanifold.stats.curator import Curator, Tally, checked_curator
from dpmanifold.stats.records import number_of_records as number_of_records
from dpmanifold.stats.records import read_source, records_of, units_in


@final
class EachRecord:
    """The type of :data:`EACH_RECORD`."""

    def __repr__(self) -> str:
        return "EACH_RECORD"


EACH_RECORD: Final = EachRecord()
"""Give this as `units=` to say that every record is a unit of its own: nobody owns two. "each-record" says the same."""


def is_each_record(units: object) -> bool:
    """Return whether `units` says that nobody owns two records."""
    return isinstance(units, EachRecord) or (isinstance(units, str) and units == "each-record")


def checked_question(ball: object, privacy: object, before: str = "X") -> None:
    """Refuse what is no ball or no promise; `before` are the arguments that come before the ball."""
    checked_ball(ball, before)
    if not isinstance(privacy, Promise):
        raise InvalidArgumentError(
            "`privacy` must be a promise such as PureDP(1.0) or ApproxDP(0.5, 1e-6), got {got}.", got=shown(privacy)
        )


def checked_ball(ball: object, before: str = "X") -> Ball:
    """Return a ball, or refuse what is none."""
    if not isinstance(ball, Ball):
        raise InvalidArgumentError(
            "`ball` must be a Ball, got {got}. The arguments are ({before}, ball, privacy).",
            got=shown(ball),
            before=Public(before),
        )
    return ball


@dataclass(frozen=True)
class Told:
    """Whom to tell about records that do not count as they are, and whether to go on if most do not."""

    curator: Curator | None = None
    confirm: bool = False

    def __post_init__(self) -> None:
        checked_curator(self.curator, self.confirm)


def prepare(
    X: object, ball: Ball, privacy: Promise, units: object, invalid: str, told: Told, group: str = ""
) -> UnitPoints:
    """Return one point per unit in the ball's frame, or refuse."""
    checked_question(ball, privacy)
    return prepare_records(X, ball, units, invalid, told, group)[0]


def prepare_records(
    X: object, ball: Ball, units: object, invalid: str, told: Told, group: str = ""
) -> tuple[UnitPoints, UnitIds | None]:
    """Return one point per unit in the ball's frame, and who the units are, None for EACH_RECORD; or refuse.

    The one place where records are looked at; those by class have their own (stats/by_class.py).
    """
    source = as_source(X)
    if source is not None:
        named = column_or_ids(units)
        read = read_source(source, ball, named, invalid, lambda counts: _enough(units_in(counts, named is not None)[0]))
        Tally(read.records, read.clipped, read.replaced).tell(told.curator, told.confirm, group)
        return read.groups[0], read.ids
    if number_of_records(X) == 0:
        raise InvalidDataError("`X` is empty: a private statistic needs at least 2 units.")
    records = records_of(X, ball, invalid)
    ids = checked_units(units, len(records))
    checked_number(len(records) if ids is None else len(ids))
    made = frechet.made_from(records, ball, ids)
    Tally(len(records), made.clipped, made.replaced).tell(told.curator, told.confirm, group)
    return made.points.rehearse(), ids


def _enough(n: int) -> None:
    if n == 0:
        raise InvalidDataError("`X` is empty: a private statistic needs at least 2 units.")
    checked_number(n)


def checked_number(n: int) -> int:
    """Return a number of units, or refuse one or none."""
    if n < 2:
        raise InvalidDataError("a private statistic needs at least 2 units, got {n}.", n=Public(n))
    return n


def checked_units(units: object, n: int) -> UnitIds | None:
    """Return who owns each record, or None for EACH_RECORD; refuse a missing or wrong argument."""
    given = column_or_ids(units)
    return None if given is None else unit_ids(given, n)


def column_or_ids(units: object) -> object:
    """Return what says who owns each record, the name of a column or the ids; None for EACH_RECORD."""
    if is_each_record(units):
        return None
    if units is None:
        raise InvalidArgumentError(
            "`units` must say who owns each record: one id per record, or EACH_RECORD if nobody owns two. "
            "Protecting a single record of a person with many protects nobody."
        )
    return units


def divide(privacy: Promise, parts: int | Sequence[float]) -> list[Promise]:
    """Return shares that together keep the promise. An approximate one goes by way of a Gaussian one, once (section 8).

    Splitting epsilon and delta themselves would add up linearly; the Gaussian promise that implies them adds up in
    squares, and every Gaussian mechanism keeps it.
    """
    working: Promise = gdp_sufficient_for(privacy) if isinstance(privacy, ApproxDP) else privacy
    return list(split(working, parts))


def checked_flag(value: object, name: str) -> bool:
    """Return True or False, or refuse anything else."""
    if not isinstance(value, bool):
        raise InvalidArgumentError("{name} must be True or False, got {got}.", name=Argument(name), got=shown(value))
    return value
