"""From a user's data to one point per unit, with every check before anything is spent or drawn.

With `invalid="center"` nothing that stands in a record stops a release by itself: not a gap, not text, not a record of
another shape. What is no point of the space counts as the ball's centre, each record judged by itself. (More than half
of them are refused all the same, unless that was confirmed: stats/curator.py.)

Ids, classes and covariates stand beside records by position. Objects of pandas are moved by their labels: after
sorting, sampling or a join the position of a person's record is another one in each of them. So objects with labelled
rows that belong together have the same labels in the same order, or are refused.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, final

import numpy as np

from dpmanifold import frechet
from dpmanifold._cells import record_cells
from dpmanifold._check import Array, shown
from dpmanifold._ids import UnitIds
from dpmanifold._merged_ids import unit_ids
from dpmanifold.ball import Ball
from dpmanifold.engines import current_engine
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.frechet import MadeOf, Reading, UnitPoints, made_of
from dpmanifold.frechet.record_blocks import Records, is_stream
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.layouts import several_a_unit
from dpmanifold.privacy import ApproxDP, Promise, gdp_sufficient_for, split
from dpmanifold.sources import Source, as_source, is_a
from dpmanifold.stats.curator import Notice, Told


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


def prepare_records(
    X: object, ball: Ball, units: object, invalid: str, told: Told, group: str = ""
) -> tuple[UnitPoints, UnitIds | None]:
    """Return one point per unit in the ball's frame, and who the units are, None for EACH_RECORD; or refuse.

    The one place where records are looked at; those by class have their own (stats/by_class.py).
    """
    source = None if isinstance(X, np.ndarray) else as_source(X)
    if source is not None:
        named = column_or_ids(units)
        read = read_source(source, ball, named, invalid, lambda counts: _enough(units_in(counts, named is not None)[0]))
        told.tell(Notice(read.records, read.clipped, read.replaced, group))
        return read.groups[0], read.ids
    if number_of_records(X) == 0:
        raise InvalidDataError("`X` is empty: a private statistic needs at least 2 units.")
    records = records_of(X, ball, invalid)
    n = len(records)
    ids = checked_units(units, n)
    checked_number(n if ids is None else len(ids))
    made = frechet.made_from(records, ball, ids)
    told.tell(Notice(n, made.clipped, made.replaced, group))
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


# -------------------------------------------------------------------- one record at a time


def read_source(
    source: Source,
    ball: Ball,
    units: object,
    invalid: str,
    enough: Callable[[Array], None],
    labels: object = None,
    numbers: Callable[[Array], Array] | None = None,
    classes: int = 1,
) -> MadeOf:
    """Read all records of a source with the engine in use, and return one point per unit, or refuse.

    Parameters
    ----------
    source : the records
    ball : the ball
    units : None where every record is a unit; else the name of a column, or one id per record
    invalid : as in :func:`private_mean`
    enough : refuses too few units, given how many records each has in each class, (units, classes)
    labels : the name of a column, or one class per record, where there are classes
    numbers : makes class numbers of labels, or refuses them
    classes : how many there are
    """
    checked_invalid(invalid)
    pieces = source.bound(ball.space, units, labels)
    take = functools.partial(records_of, ball=ball, invalid=invalid)
    made = made_of(pieces, Reading(ball, take, numbers, classes), units is not None, current_engine(), enough)
    if made.records == 0:
        raise InvalidDataError("`X` is empty: a private statistic needs at least 2 units.")
    return made


def units_in(counts: Array, by_id: bool) -> Array:
    """Return how many units each class has, given how many records each unit has in it, (units, classes)."""
    return np.asarray(np.count_nonzero(counts, axis=0) if by_id else counts.sum(axis=0))


def checked_records(X: object, ball: Ball, invalid: str, first: int = 0) -> tuple[Array, int]:
    """Return the records as points; with `invalid="center"`, bad ones replaced by the centre, and how many.

    `first` is the index of the first record, in messages.
    """
    space, X = ball.space, ball.space.as_numbers(X)
    # A warning of numpy would tell about a single record, and where warnings are errors it would stop the release.
    with np.errstate(all="ignore"):
        if not isinstance(X, np.ndarray):
            return _checked_list(X, ball, invalid, first)
        if invalid == "raise":
            return space.as_points(X, "X", batch=True, first=first), 0
        return _with_centers([(np.arange(len(np.atleast_1d(X))), X)], number_of_records(X), ball)


def records_of(X: object, ball: Ball, invalid: str, first: int = 0) -> Records:
    """Return records to be checked a block at a time where X is an array; lists are checked at once.

    `first` is the index of the first record, in messages.
    """
    checked_invalid(invalid)
    _refuse_shape(X, ball.space)
    X = ball.space.as_numbers(ball.space.from_card(X))
    if is_stream(X, ball.space):
        return Records(X, ball.space, lambda block, index: checked_records(block, ball, invalid, index), first=first)
    records, replaced = checked_records(X, ball, invalid, first)
    return Records.valid(records, ball.space, replaced)


def _refuse_shape(X: object, space: Manifold) -> None:
    """Refuse arrays whose axes are not those of records, before ids are counted: no record gives an array its axes.

    An array of objects may hold what is one axis more; it is refused where it has the axes of another layout.
    """
    if not isinstance(X, np.ndarray) or X.ndim < 2:
        return
    for shape in space.record_shapes.values():
        if X.shape[max(1, X.ndim - len(shape)) :] == shape:
            return  # records, or several of them for each person
    if X.dtype.kind != "O" or any(X.shape[1:] == layout.shape for layout in space.layouts()):
        space.as_points(np.broadcast_to(0.0, X.shape), "X", batch=True)


def as_batch(X: object, ball: object, **beside: object) -> object:
    """Return records as one batch where they come as one array for every factor of a product of spaces.

    What stands beside them (units, labels, covariate) must have the same row labels, and so must all factors.
    """
    refuse_other_rows(X=X, **beside)
    return ball.space.batch(X) if isinstance(ball, Ball) else X


def checked_invalid(invalid: object) -> None:
    """Refuse what is neither "raise" nor "center"."""
    if invalid not in ("raise", "center"):
        raise InvalidArgumentError('`invalid` must be "raise" or "center", got {got}.', got=shown(invalid))


def number_of_records(X: object, name: str = "X") -> int:
    """Return how many records there are, whatever they are; refuse what is no batch of records.

    >>> number_of_records([[1.0], None, "text"])
    3
    """
    try:
        if isinstance(X, (str, bytes, Mapping, Set)):
            raise TypeError
        return len(X)  # type: ignore[arg-type]
    except TypeError:
        remedy = " Files are data.Dataset(path)." if isinstance(X, (str, os.PathLike)) else ""
        remedy = " A function that makes blocks is data.from_blocks(function)." if callable(X) else remedy
        raise InvalidDataError(
            "{name} must be a batch of records, an array or a list, got {got}.{remedy}",
            name=Argument(name),
            got=shown(X),
            remedy=Public(remedy),
        ) from None


def _checked_list(X: object, ball: Ball, invalid: str, first: int) -> tuple[Array, int]:
    """Return the records of a list as points, each read by itself: as one array they would have the type of the worst.

    Those that have the shape of no record are left out, or refused by their index.
    """
    space, n = ball.space, number_of_records(X)
    found = [record_cells(record, space.record_shapes) for record in X]  # type: ignore[attr-defined]
    kinds = ["" if record is None else record.dtype.kind for record in found]
    batches = []
    for kind in sorted({*kinds} - {""}):
        places = [place for place, other in enumerate(kinds) if other == kind]
        batches.append((np.array(places), np.stack([r for r in found if r is not None and r.dtype.kind == kind])))
    if invalid == "center":
        return _with_centers(batches, n, ball)
    if not batches:
        return space.as_points(X, "X", batch=True, first=first), 0  # says what the shapes are
    odd = next((place for place, kind in enumerate(kinds) if kind != (kinds[0] or None)), None)
    if odd is not None:
        raise InvalidDataError(
            "`X`: the record at index {first} is not of the shape of a record on {space!r}, or not of that of "
            'the others. Repair it, or leave it out; with `invalid="center"` it counts as the center of the '
            "ball.",
            first=Public(first + odd),
            space=Public(space),
        )
    return space.as_points(batches[0][1], "X", batch=True, first=first), 0


def _with_centers(batches: list[tuple[Array, Array]], n: int, ball: Ball) -> tuple[Array, int]:
    """Return a point for each of n records, the centre for those that are none, and how many those are.

    `batches` are arrays of records of one kind and shape, with their places among the n.
    """
    space = ball.space
    records = np.broadcast_to(ball.center, (n, *space.shape)).copy()
    replaced = np.ones(n, dtype=bool)
    for places, batch in batches:
        good = space.valid(batch)
        if good.ndim != 1:
            got = np.shape(batch)
            remedy = several_a_unit(repr(space), got, good.ndim) if good.ndim else "One record is X[None]."
            raise InvalidDataError(
                "`X` must be a batch of records, one axis in front, got shape {got}. {remedy}",
                got=got,
                remedy=Public(remedy),
            )
        records[places[good]] = space.project(batch[good])
        replaced[places[good]] = False
    # Projecting rounds: what is no longer valid afterwards counts as the centre as well, and nothing shows.
    lost = ~space.valid(records)
    records[lost] = ball.center
    return records, int((replaced | lost).sum())


# -------------------------------------------------------------------- rows with labels


def refuse_other_rows(**given: object) -> None:
    """Refuse objects whose row labels are not the same, by the names of their arguments.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [0.1, 0.2], "person": ["ann", "bob"]})
    >>> refuse_other_rows(X=frame[["x"]][::-1], units=frame.person)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: units has the row labels (index) of X in another order, and would be paired
    with other people's records. Give units.loc[X.index], or reset_index(drop=True) of both where they stand in the same
    order.
    """
    labelled: list[tuple[str, Any]] = []
    for name, each in given.items():
        labelled += () if isinstance(each, np.ndarray) else _indexes(name, each)
    for name, index in labelled[1:]:
        first, known = labelled[0]
        if len(index) != len(known) or index.equals(known):
            continue  # another length is refused for what it is
        ordered = Counter(index) == Counter(known)
        other = Argument(first)
        how = Message("other row labels than {first}", first=other)
        by_name = Message("")
        if ordered:
            how = Message("the row labels (index) of {first} in another order", first=other)
        if ordered and index.is_unique and " of " not in f"{name}{first}":
            by_name = Message("{name}.loc[{first}.index], or ", name=Argument(name), first=other)
        raise InvalidArgumentError(
            "{name} has {how}, and would be paired with other people's records. Give {by_name}reset_index(drop=True) "
            "of both where they stand in the same order.",
            name=Argument(name),
            how=how,
            by_name=by_name,
        )


def _indexes(name: str, given: object) -> Iterator[tuple[str, Any]]:
    """Yield the row labels of an object, of the arrays of a tuple by what they are arrays of, of rows in a list."""
    if isinstance(given, tuple):
        for place, part in enumerate(given):
            yield from _indexes(f"factor {place} of {name}", part)
    elif isinstance(given, Source):
        yield from [] if given.index is None else [(name, given.index)]
    elif is_a(given, "pandas", "DataFrame", "Series"):
        yield name, given.index  # type: ignore[attr-defined]
    elif isinstance(given, list) and given and all(is_a(row, "pandas", "Series") for row in given):
        yield name, sys.modules["pandas"].Index([row.name for row in given])
