"""What people did with the service, in an append-only log whose entries are chained by their hashes.

It has names, amounts and times, never records or what was said about them. What was spent is in the ledger as well,
which has a witness; this log has none, so whoever keeps its last hash elsewhere notices a cut end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from sqlalchemy import Connection, select

from dpmanifold.service import tables
from dpmanifold.storage.chain import Chained

if TYPE_CHECKING:
    from dpmanifold.service.service_database import Database

KINDS = frozenset({
    "service-created", "account-added", "account-closed", "password-changed", "signed-in", "sign-in-failed",
    "signed-out", "token-made", "token-revoked", "population-made", "cap-raised", "granted", "registration-asked",
    "registration-done", "registration-refused", "terms-changed", "release-asked", "release-approved",
    "release-refused", "population-resumed",
})  # fmt: skip
"""What can happen."""

_PAGE = 1000


@final
@dataclass(frozen=True)
class Event(Chained):
    """Something that happened.

    Attributes
    ----------
    seq : its number, from 1, without gaps
    kind : one of :data:`KINDS`
    who : the account that did it; "operator" for the host's command line, "?" where nobody is known
    body : what is to be known about it, canonical JSON of a dict
    at : when, as stored
    prev, hash : of the event before, 64 zeros for the first; and of this one
    """

    NOUN: ClassVar[str] = "event"

    seq: int
    kind: str
    who: str
    body: str
    at: str
    prev: str
    hash: str


def record(connection: Connection, kind: str, who: str, /, **facts: str | int) -> None:
    """Append an event, in the transaction of whoever does what it tells: both are there, or neither.

    Parameters
    ----------
    connection : of :meth:`Database.writing`
    kind : one of :data:`KINDS`
    who : the account that did it
    facts : what is to be known about it: names and amounts, never anything that depends on records
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(sorted(KINDS))}, got {kind!r}")
    if not all(isinstance(value, str) or type(value) is int for value in facts.values()):
        raise ValueError(f"facts must be texts and whole numbers; those of {kind} are not all")
    service = connection.execute(select(tables.facts.c.service)).scalar_one()
    last = connection.execute(
        select(tables.events.c.seq, tables.events.c.hash).order_by(tables.events.c.seq.desc()).limit(1)
    ).one_or_none()
    event = Event.after(service, last, facts, kind=kind, who=who, at=tables.now())
    connection.execute(tables.events.insert(), event.to_dict())


def page(database: Database, after: int = 0, limit: int = 100) -> list[Event]:
    """Return the events behind a number, in order, at most so many."""
    asked = select(tables.events).where(tables.events.c.seq > after).order_by(tables.events.c.seq).limit(limit)
    return [Event(*row) for row in database.rows(asked)]


def every(database: Database, after: int = 0) -> Iterator[Event]:
    """Yield all events behind a number, in order; no transaction stays open meanwhile."""
    while found := page(database, after, _PAGE):
        yield from found
        after = found[-1].seq


def verify(database: Database) -> list[str]:
    """Return what is wrong with the log, in sentences; [] if nothing is. It recomputes every hash.

    A log whose last events were removed by somebody who could also remove the triggers is whole as far as it goes:
    compare its last hash with one that was kept elsewhere.
    """
    with database.reading() as connection:
        service = connection.execute(select(tables.facts.c.service)).scalar_one()
        found = [
            f"the trigger {name} is missing, or is not the one that the service made: events could be changed."
            for name in tables.SERVICE.missing(connection)
        ]
    before: Event | None = None
    for event in every(database):
        found += event.faults(service, before)
        before = event
    return found if before else [*found, "the log has no events: its first one is missing."]
