"""One attempt at a release, in a child of the worker: open the records, make the private call, keep what came of it.

The private call is the library's own, about registered data. Its account lets the outcome out when the slot ends, so
that neither the ledger nor a table of the service tells how long the work took. Why a release is lost is written to a
file of the vault, for whoever holds the records, and is nowhere else.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any

from sqlalchemy import Row, select, update

from dpmanifold.errors import LedgerError, ReleaseLostError
from dpmanifold.service import canonical, tables
from dpmanifold.service.counter import Punctual
from dpmanifold.service.errors import NotFound
from dpmanifold.service.notices import write_notice
from dpmanifold.service.ordering import asked_before, population_named
from dpmanifold.service.pausing import lost
from dpmanifold.service.registering import folder_of
from dpmanifold.service.service import Service
from dpmanifold.stats.answers import answer_from_bytes, answer_to_bytes
from dpmanifold.stats.curator import Notice


def receipt_in(stored: bytes) -> dict[str, Any] | None:
    """Return the receipt that an answer carries, without rebuilding it: all of its releases have the same one."""
    return _receipt(json.loads(stored))


def _receipt(record: Any) -> dict[str, Any] | None:
    if isinstance(record, dict):
        found = record.get("receipt")
        if isinstance(found, dict):
            return found
    inner = record.values() if isinstance(record, dict) else record if isinstance(record, list) else ()
    return next((found for found in map(_receipt, inner) if found is not None), None)


def attempt(service: Service, release: str, ready: Callable[[], object]) -> None:
    """Answer a release that is paid for, or find out that it is lost; either comes to light when it is due.

    One that has an outcome in the ledger gets it from there, and no records are opened.

    Parameters
    ----------
    service : where
    release : its id
    ready : called when the work is over, before the wait for the end of the slot
    """
    row = row_of(service, release)
    due = tables.moment(row.due).timestamp()
    asked = asked_before(service, row, lambda: canonical.open_folder(folder_of(service, row.population, row.dataset)))

    def in_time() -> None:
        _disarm()
        ready()

    account = Punctual(asked.account, due, in_time)
    _arm(due)
    try:
        answer = asked.call(account, row.key, curator=lambda notice: _told(service, release, notice))
        stored = answer_to_bytes(answer)
    except ReleaseLostError:
        stored = None
    except LedgerError:
        raise  # the ledger may answer later
    except Exception:
        write_notice(service.settings.vault, release, traceback.format_exc())
        raise
    _disarm()
    time.sleep(max(0.0, due - time.time()))
    if stored is None:
        lost(service, release, pause=not asked.account.recovered(row.key))
    else:
        unpublished = (tables.releases.c.id == release) & (tables.releases.c.state == "paid")  # written once
        outcome = {"state": "released", "result": stored, "receipt": json.dumps(receipt_in(stored))}
        service.database.write(update(tables.releases).where(unpublished).values(**outcome))


def _arm(due: float) -> None:
    """Have the system end this process when the slot does, whoever else is too busy to: work that is late is lost."""
    left = due - time.time()
    if left > 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, left)


def _disarm() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.0)


def dress(service: Service, release: str) -> None:
    """Make the picture and the report of a release that came out."""
    from dpmanifold.service.dressing import picture_of, report_of

    answer = answer_from_bytes(row_of(service, release).result)
    made: dict[str, bytes] = {}
    for name, make in (("report", report_of), ("picture", picture_of)):
        with contextlib.suppress(Exception):  # one can be there without the other
            made[name] = make(answer)
    if made:
        service.database.write(update(tables.releases).where(tables.releases.c.id == release).values(**made))


def status_of(service: Service, row: Row[Any]) -> str | None:
    """Return what the ledger says about the key of a release."""
    try:
        return population_named(service, row.population).as_principal(row.account).status(row.key)
    except NotFound:  # a ledger that was put back may not even have its population
        return None


def row_of(service: Service, release: str) -> Row[Any]:
    """Return the row of a release."""
    row: Row[Any] = service.database.row(select(tables.releases).where(tables.releases.c.id == release))
    return row


def _told(service: Service, release: str, notice: Notice) -> None:
    """Keep why a release is lost; what else a curator is told, stewards were when the data were registered."""
    if notice.problem:
        write_notice(service.settings.vault, release, notice.problem)


__all__ = ["attempt", "dress", "lost", "row_of", "status_of"]
