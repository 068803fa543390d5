"""After a loss: all data of the same people wait until a steward has looked into it.

That a release is lost is the one bit that leaves besides what was drawn. Whoever could ask again and again would have
as many bits; so the first loss is the last one, until somebody who holds the records has found out why.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update

from dpmanifold.service import tables
from dpmanifold.service.errors import Conflict
from dpmanifold.service.service import Service


def lost(service: Service, release: str, pause: bool = True) -> None:
    """Say that nothing will come of a release that was paid for, and pause its population.

    Parameters
    ----------
    service, release : which
    pause : False where its records were never opened, so that its loss tells nothing about them
    """
    chosen = (tables.releases.c.id == release) & (tables.releases.c.state == "paid")
    with service.database.writing() as connection:
        row = connection.execute(select(tables.releases).where(chosen)).one_or_none()
        if row is None:
            return
        connection.execute(update(tables.releases).where(chosen).values(state="lost"))
        if not pause:
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


def resume(connection: Connection, population: str) -> None:
    """Let a population be asked about again."""
    connection.execute(delete(tables.pauses).where(tables.pauses.c.population == population))
