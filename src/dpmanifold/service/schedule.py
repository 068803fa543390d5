"""When a release comes out: fixed when it is paid for, from public numbers, so that no clock tells about records.

Every release has a slot of its own: work begins when it starts, its outcome comes to light when it ends, and no two
slots overlap. What is not done by then is lost, which is the one bit that running time can tell. Whoever could ask
again and again would have as many bits; so after a loss all data of the same people wait until a steward, who holds the
records, has found out why.
"""

from __future__ import annotations

from sqlalchemy import Connection, func, insert, select, update

from dpmanifold.service import tables
from dpmanifold.service.errors import Conflict
from dpmanifold.service.service import Service
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


def schedule(service: Service, release: str, seconds: float, anew: bool = False) -> None:
    """Give a release that was paid for its slot, if it has none; `anew` another one, where nobody has begun it."""
    chosen = tables.releases.c.id == release
    with service.database.writing() as connection:
        row = connection.execute(select(tables.releases).where(chosen)).one_or_none()
        if row is None or (row.publishes is not None and not anew):
            return
        starts = free_from(connection, tables.now())
        ends = tables.later(starts, seconds)
        slot = {"starts": starts, "publishes": ends, "due": tables.later(ends, -MARGIN)}
        connection.execute(update(tables.releases).where(chosen).values(state="paid", **slot))


def lost(service: Service, release: str, pause: bool = True) -> None:
    """Say that nothing will come of a release that was paid for, and pause its population.

    Parameters
    ----------
    service, release : which
    pause : False where its records were never opened, so that its loss tells nothing about them
    """
    chosen = tables.release_in(release, "paid")
    with service.database.writing() as connection:
        row = connection.execute(select(tables.releases).where(chosen)).one_or_none()
        connection.execute(update(tables.releases).where(chosen).values(state="lost"))
        if row is None or not pause:
            return
        there = select(tables.pauses).where(tables.pauses.c.population == row.population)
        if connection.execute(there).one_or_none() is None:
            connection.execute(insert(tables.pauses).values(population=row.population, since=row.publishes))


def paused_since(service: Service, population: str) -> str | None:
    """Return since when nothing is released about a population; None for not at all."""
    wanted = select(tables.pauses.c.since).where(tables.pauses.c.population == population)
    since: str | None = service.database.value(wanted)
    return since


def is_paused(service: Service, population: str) -> bool:
    """Return whether people are told that a population is paused: from when the loss is published."""
    since = paused_since(service, population)
    return since is not None and since <= tables.now()


def refuse_paused(service: Service, population: str) -> None:
    """Refuse a population that is paused. Nothing is spent."""
    if is_paused(service, population):
        raise Conflict(
            f"{population} is paused: a release about it was lost, and a steward has to look into that first. Nothing "
            "was spent."
        )
