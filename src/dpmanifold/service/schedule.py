"""When a release comes out: fixed when it is paid for, from public numbers, so that no clock tells about records.

Every release has a slot of its own: work begins when it starts, its outcome comes to light when it ends, and no two
slots overlap. What is not done by then is lost, which is the one bit that running time can tell.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select, update

from dpmanifold.service import tables

MARGIN = 0.25
"""Seconds at the end of a slot for what follows the work: to commit, and to tell the witness."""
# Seconds for each unit and dimension beyond the shortest slot; about twenty times what the slowest statistic takes.
_EACH = 4e-6
# How much longer than a mean some statistics take.
_LONGER = {"regression": 3.0, "components": 2.0, "median": 2.0, "groups": 1.5, "test": 1.5}


def duration(statistic: str, n: int, dim: int, shortest: float, own: float | None = None) -> float:
    """Return how long a slot is, in seconds.

    Parameters
    ----------
    statistic, n, dim : what is asked, of how many units, in how many dimensions
    shortest : the service's shortest slot
    own : what the steward says about this data set, whose units may have many records each; None for no word

    Examples
    --------
    >>> duration("mean", 1000, 6, 2.0)
    2.024
    >>> duration("mean", 1000, 6, 2.0, own=30.0)
    30.0
    """
    if own is not None:
        return max(own, shortest)
    return shortest + _EACH * _LONGER.get(statistic, 1.0) * n * dim


def free_from(connection: Connection, at: str) -> str:
    """Return when the next slot can start: now, or when the last one ends."""
    rows = select(func.max(tables.releases.c.publishes)).where(tables.releases.c.publishes > at)
    found = connection.execute(rows).scalar()
    return at if found is None else str(found)


def scheduled(connection: Connection, release: str, seconds: float, anew: bool = False) -> None:
    """Give a release that was paid for its slot, if it has none; `anew` another one, where nobody has begun it."""
    row = connection.execute(select(tables.releases).where(tables.releases.c.id == release)).one()
    if row.publishes is not None and not anew:
        return
    starts = free_from(connection, tables.now())
    ends = tables.later(starts, seconds)
    slot: dict[str, Any] = {"starts": starts, "publishes": ends, "due": tables.later(ends, -MARGIN)}
    connection.execute(update(tables.releases).where(tables.releases.c.id == release).values(state="paid", **slot))
