"""What people did with the service, in an append-only log whose entries are chained by their hashes.

It has names, amounts and times, never records or what was said about them. What was spent is in the ledger as well,
which has a witness; this log has none, so whoever keeps its last hash elsewhere notices a cut end.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from sqlalchemy import Connection, RowMapping, select, text

from dpmanifold.ledger.entries import BEFORE_ALL, canonical, read_canonical, sha256_of
from dpmanifold.ledger.guards import broken_guards
from dpmanifold.service import tables

if TYPE_CHECKING:
    from dpmanifold.service.database import Database

KINDS = frozenset({
    "service-created", "account-added", "account-closed", "password-changed", "signed-in", "sign-in-failed",
    "signed-out", "token-made", "token-revoked", "population-made", "cap-raised", "granted", "registration-asked",
    "registration-done", "registration-refused", "terms-changed", "release-asked", "release-approved",
    "release-refused", "population-resumed",
})  # fmt: skip
"""What can happen."""

_PAGE = 1000
_TRIGGERS = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'service_events'",
    "postgresql": """
        SELECT tgname, pg_get_triggerdef(pg_trigger.oid, true) || ' AS ' || prosrc
        FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
        WHERE tgrelid = 'service_events'::regclass AND NOT tgisinternal AND tgenabled IN ('O', 'A')
    """,
}


@final
@dataclass(frozen=True)
class Event:
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

    seq: int
    kind: str
    who: str
    body: str
    at: str
    prev: str
    hash: str

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """What the body says; a ValueError where it is no canonical JSON of a dict."""
        found = read_canonical(self.body)
        if not isinstance(found, dict):
            raise ValueError("not canonical JSON of a dict")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return its fields, for machines."""
        names = ("seq", "kind", "who", "body", "at", "prev", "hash")
        return {name: getattr(self, name) for name in names}


def hash_of(service: str, event: Event) -> str:
    """Return the hash that an event of a service must carry: it covers the service's id and the other fields."""
    return sha256_of([service, event.seq, event.kind, event.who, event.body, event.at, event.prev])


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
    seq, prev = (1, BEFORE_ALL) if last is None else (last.seq + 1, last.hash)
    event = Event(seq, kind, who, canonical(facts), tables.now(), prev, "")
    event = replace(event, hash=hash_of(service, event))
    connection.execute(tables.events.insert(), event.to_dict())


def page(database: Database, after: int = 0, limit: int = 100) -> list[Event]:
    """Return the events behind a number, in order, at most so many."""
    asked = select(tables.events).where(tables.events.c.seq > after).order_by(tables.events.c.seq).limit(limit)
    with database.reading() as connection:
        return [_event(row) for row in connection.execute(asked).mappings()]


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
        found = _missing_guards(connection)
    before: Event | None = None
    for event in every(database):
        found += _faults(service, event, before)
        before = event
    return found if before else [*found, "the log has no events: its first one is missing."]


def _event(row: RowMapping) -> Event:
    return Event(**row)


def _faults(service: str, event: Event, before: Event | None) -> list[str]:
    name = f"event {event.seq} ({event.kind})"
    seq, prev = (1, BEFORE_ALL) if before is None else (before.seq + 1, before.hash)
    found = []
    if event.seq != seq:
        found.append(f"{name} stands where event {seq} should.")
    if event.prev != prev:
        whose = "a first event" if before is None else f"event {before.seq} before it"
        found.append(f"{name} does not name the hash of {whose}.")
    if event.hash != hash_of(service, event):
        found.append(f"{name} is not what was written: its hash is of something else.")
    try:
        _ = event.facts
    except ValueError:
        found.append(f"{name} has a body that is no canonical JSON of a dict.")
    return found


def _missing_guards(connection: Connection) -> list[str]:
    engine = connection.dialect.name
    there = [(name, made_by) for name, made_by in connection.execute(text(_TRIGGERS[engine]))]
    return [
        f"the trigger {name} is missing, or is not the one that the service made: events could be changed."
        for name in broken_guards(_wanted(engine), there)
    ]


def _wanted(engine: str) -> dict[str, str]:
    if engine == "sqlite":
        return {statement.split()[2]: statement for statement in tables.SQLITE_GUARDS}
    function, *triggers = tables.POSTGRESQL_GUARDS
    body = " ".join(function.split("$$")[1].split())
    return {statement.split()[2]: f"{statement} AS {body}" for statement in triggers}
