"""When a release comes out: fixed when it is paid for, from public numbers, so that no clock tells about records.

Every release has a slot of its own: work begins when it starts, its outcome comes to light when it ends, and no two
slots overlap. What is not done by then is lost, which is the one bit that running time can tell.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select, update

from dpmanifold.service import tables
from dpmanifold.stats.query import Query
from dpmanifold.stats.registered import Registered

MARGIN = 0.25
"""Seconds at the end of a slot for what follows the work: to commit, and to tell the witness."""
# Seconds beyond the shortest slot: for each unit and dimension, and for each number that is drawn. Both are about ten
# times what the slowest statistic was seen to take.
_EACH, _DRAWN = 4e-6, 1e-4


def duration(query: Query, data: Registered, dim: int, shortest: float, own: float | None = None) -> float:
    """Return how long a slot is, in seconds: from what is public about the data.

    Parameters
    ----------
    query, data, dim : what is asked, of what, in how many dimensions
    shortest : the service's shortest slot
    own : what the steward says about this data set, whose units may have many records each; None for no word. It makes
        slots longer, never shorter
    """
    drawn = (dim**2 if query.squares else dim) * query.parts(data)
    return max(shortest + _EACH * query.passes * data.n * dim + _DRAWN * drawn, own or 0.0)


def free_from(connection: Connection, at: str) -> str:
    """Return when the next slot can start: now, or when the last one ends."""
    rows = select(func.max(tables.releases.c.publishes)).where(tables.releases.c.publishes > at)
    found = connection.execute(rows).scalar()
    return at if found is None else str(found)


def scheduled(connection: Connection, release: str, seconds: float, anew: bool = False) -> None:
    """Give a release that was paid for its slot, if it has none; `anew` another one, where nobody has begun it."""
    row = connection.execute(select(tables.releases).where(tables.releases.c.id == release)).one_or_none()
    if row is None or (row.publishes is not None and not anew):
        return
    starts = free_from(connection, tables.now())
    ends = tables.later(starts, seconds)
    slot: dict[str, Any] = {"starts": starts, "publishes": ends, "due": tables.later(ends, -MARGIN)}
    connection.execute(update(tables.releases).where(tables.releases.c.id == release).values(state="paid", **slot))
