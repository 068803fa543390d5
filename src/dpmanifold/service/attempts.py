"""One attempt at a release, in a child of the worker: open the records, make the private call, keep what came of it.

The private call is the library's own, about registered data. Its account lets the outcome out when the slot ends, so
that neither the ledger nor a table of the service tells how long the work took. Why a release is lost is written to a
file of the vault, for whoever holds the records, and is nowhere else.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Row, update

from dpmanifold import plots
from dpmanifold.errors import InvalidArgumentError, LedgerError, ReleaseLostError
from dpmanifold.report import html_report
from dpmanifold.service import canonical, tables
from dpmanifold.service.errors import NotFound
from dpmanifold.service.ordering import Punctual, asked_before, lost, population_named
from dpmanifold.service.redaction import write_notice
from dpmanifold.service.registering import folder_of
from dpmanifold.service.service import Service
from dpmanifold.stats.answers import answer_from_bytes, answer_to_bytes
from dpmanifold.stats.curator import Notice

_DOTS = 150  # of a picture per inch: sharp on a screen with two dots for one


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
    row = service.database.by_id(tables.releases, release)
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
        outcome = {"state": "released", "result": stored, "receipt": json.dumps(receipt_in(stored))}
        once = update(tables.releases).where(tables.release_in(release, "paid")).values(**outcome)
        service.database.write(once)


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
    answer = answer_from_bytes(service.database.by_id(tables.releases, release).result)
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


def _told(service: Service, release: str, notice: Notice) -> None:
    """Keep why a release is lost; what else a curator is told, stewards were when the data were registered."""
    if notice.problem:
        write_notice(service.settings.vault, release, notice.problem)


def picture_of(answer: Any) -> bytes:
    """Return the picture of an answer as PNG; of means by class, one that shows them all where there is one.

    Parameters
    ----------
    answer : a Result, or a dict of releases by class
    """
    sheet = io.BytesIO()
    _figure(answer).savefig(sheet, format="png", dpi=_DOTS)
    return sheet.getvalue()


def _figure(answer: Any) -> Any:
    try:
        return plots.show(answer)
    except InvalidArgumentError:
        if not isinstance(answer, Mapping):
            raise
        return plots.show(next(iter(answer.values())))


def report_of(answer: Any) -> bytes:
    """Return the report of an answer, one HTML page; of means by class, their reports one after the other."""
    if not isinstance(answer, Mapping):
        return html_report(answer).encode("utf-8")
    pages = [(str(name), html_report(release)) for name, release in answer.items()]
    head, _, _ = pages[0][1].partition("<body>")
    parts = [f"<h1>Class {html.escape(name)}</h1>\n{_body(page)}" for name, page in pages]
    return f"{head}<body>\n{''.join(parts)}</body></html>\n".encode()


def _body(page: str) -> str:
    """Return what stands between the tags of a page's body; text in it has no tags of its own."""
    return page.partition("<body>")[2].rpartition("</body>")[0]
