"""What an auditor reads. Nothing here writes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpmanifold.service.person import AUDITOR
from dpmanifold.service.web.answers import download
from dpmanifold.service.web.pages.showing import after_in, show
from dpmanifold.service.web.sessions import desk

_EVENTS = 100


def auditor(request: Request) -> Response:
    """Show what an audit finds now, the populations and the accounts."""
    at = desk(request)
    at.require(AUDITOR)
    return show(
        request, "auditor.html", title="Audit", audit=at.audit(), populations=at.populations(), accounts=at.accounts()
    )


def events(request: Request) -> Response:
    """Show a page of the audit log."""
    start = after_in(request)
    found = desk(request).events(start, _EVENTS)
    more = found[-1].seq if len(found) == _EVENTS else None
    return show(request, "events.html", title="Audit log", events=found, more=more, start=start)


def export(request: Request) -> Response:
    """Return the ledger to keep."""
    return download(desk(request).export(), "ledger.jsonl", "application/x-ndjson")


ROUTES = [
    Route("/auditor", auditor, methods=["GET"]),
    Route("/auditor/events", events, methods=["GET"]),
    Route("/auditor/export", export, methods=["GET"]),
]
