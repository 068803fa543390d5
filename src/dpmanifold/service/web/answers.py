"""Answers: JSON, documents, files to keep, and what is said when something is refused or goes wrong.

An error says what its class says is safe to say. Of what nobody foresaw only a number is told, under which the log
has the place where it happened: not the message, which could hold anything.
"""

from __future__ import annotations

import contextlib
import html
import json
import pathlib
import re
import secrets
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, final

from starlette import types
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from dpmanifold.errors import (
    BudgetError,
    InvalidArgumentError,
    InvalidDataError,
    LedgerError,
    PromiseError,
    message_to_record,
)
from dpmanifold.service.http_errors import Broken, NotFound, NotSignedIn, OverBudget, ServiceError, Unavailable
from dpmanifold.service.logs import log
from dpmanifold.service.web.security import REPORT_POLICY, Layer, UnknownHost
from dpmanifold.service.web.sessions import ROLE, page, see_other, sign_in_path

API = "/api"
INCIDENT = "dpmanifold.incident"  # where the log finds what happened,
ROUTE = "dpmanifold.route"  # and by which line of the table
# It may have failed after a payment: what it says is true either way.
_NO_LEDGER = "The ledger does not answer. Try again later, under the same key: nothing is paid for twice."
_LONGEST_NAME = 100


@final
class Refused(ServiceError):
    """What the library refuses to plan, in its own words."""

    status, kind = 400, "invalid"


@final
class NoPromise(ServiceError):
    """A promise that cannot be kept or converted, in the library's own words."""

    status, kind = 400, "guarantee"


@contextlib.contextmanager
def planning() -> Iterator[None]:
    """Show what the library refuses; only round what depends on the request and on public numbers.

    Examples
    --------
    >>> with planning():
    ...     raise InvalidArgumentError("the radius must be positive, got -1.")
    Traceback (most recent call last):
    ...
    dpmanifold.service.web.answers.Refused: the radius must be positive, got -1.
    """
    try:
        yield
    except (InvalidArgumentError, InvalidDataError) as problem:  # the only data here are points of the request
        raise Refused("{problem}", problem=problem) from None
    except OverflowError:
        raise Refused("A number is too large, or too small, to compute with. Ask with another one.") from None
    except PromiseError as problem:
        raise NoPromise("{problem}", problem=problem) from None
    except BudgetError as problem:
        raise OverBudget("{problem}", problem=problem) from None


def as_json(content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with JSON; numbers that JSON does not know are an error here, not at the reader's."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode(), status_code=status, media_type="application/json", headers=headers)


def document(content: bytes) -> Response:
    """Answer with a report: a page of its own that can do nothing."""
    return Response(content, media_type="text/html; charset=utf-8", headers={"content-security-policy": REPORT_POLICY})


def picture(content: bytes) -> Response:
    """Answer with a picture to be shown."""
    return Response(content, media_type="image/png")


def download(content: bytes, name: str, media_type: str = "application/octet-stream") -> Response:
    """Answer with a file to keep, under a name that is safe on every system."""
    kept = {"content-disposition": f'attachment; filename="{safe_name(name)}"'}
    return Response(content, media_type=media_type, headers=kept)


def safe_name(name: str) -> str:
    r"""Return a name of a file made of letters, digits, dots, dashes and underscores.

    Examples
    --------
    >>> safe_name('cohort/dti@1\r\n"mean".json')
    'cohort-dti-1-mean-.json'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:_LONGEST_NAME] or "download"


def _told(error: Exception, incident: str) -> ServiceError:
    """Return what is told of an error."""
    match error:
        case ServiceError():
            return error
        case HTTPException():  # of the router: no such address, or not by this method
            return NotFound()
        case LedgerError():
            return Unavailable(_NO_LEDGER)
    return Broken(incident)


def _error_record(told: ServiceError) -> dict[str, Any]:
    """Return an error for programs: in words, and as what these were made of, for those that word it themselves."""
    argument = {} if told.message.argument is None else {"argument": told.message.argument}
    return {"kind": told.kind, "message": told.message, **argument, **message_to_record(told.message)}


def answer_error(request: Request, error: Exception) -> Response:
    """Answer a request that failed: as JSON to programs, as a page to people."""
    incident = secrets.token_hex(6)
    told = _told(error, incident)
    if told.status >= 500:
        _note(request.scope, error, incident)
    if isinstance(error, UnknownHost):
        return PlainTextResponse(told.message, status_code=told.status)
    if is_for_programs(request.scope["path"]):
        return as_json({"error": _error_record(told)}, told.status, told.headers)
    if isinstance(error, NotSignedIn):
        return see_other(sign_in_path(request))
    return _error_page(request, told)


def _note(scope: types.Scope, error: Exception, incident: str) -> None:
    """Leave to the log what went wrong, and where: not in which words."""
    scope[INCIDENT] = {"incident": incident, "kind": type(error).__name__, "what": _place(error)}


def _place(error: Exception) -> str:
    """Return the last place in this library that an error passed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "dpmanifold" in frame.filename] or frames
    return f"{pathlib.Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def is_for_programs(path: str) -> bool:
    """Return whether an address is read by programs, which want JSON."""
    return path == API or path.startswith(f"{API}/") or path == "/health"


def _error_page(request: Request, told: ServiceError) -> Response:
    heading = HTTPStatus(told.status).phrase
    try:
        shown = page(
            request, "error.html", status=told.status, title=heading, message=told.message, incident=told.incident
        )
    except Exception:  # the database or a template may be what is broken: an answer needs neither
        shown = HTMLResponse(_bare_page(heading, told.message), status_code=told.status)
    shown.headers.update(told.headers)
    return shown


def _bare_page(heading: str, message: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(heading)}</title></head>'
        f'<body><main><h1>{html.escape(heading)}</h1><p>{html.escape(message)}</p><p><a href="/">Start</a></p></main>'
        "</body></html>"
    )


@final
class Errors(Layer):
    """Answer whatever the layers below raise, so that no error leaves in another form.

    Parameters
    ----------
    app : the layers below
    """

    async def answer(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        """Answer as the layers below do, or with their error."""
        begun = False

        async def noted(message: types.Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as error:
            if begun:  # nobody is left to be told; the server ends the connection within the answer
                _note(scope, error, secrets.token_hex(6))
                return
            response = await run_in_threadpool(answer_error, Request(scope), error)
            await response(scope, receive, send)


_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


@final
@dataclass(eq=False)
class RequestLog(Layer):
    """Write one line of the log for each request: by which method and route, how it ended, how long it took.

    Not by whom.

    Parameters
    ----------
    app : the layers below
    routes : path templates by endpoint
    write : where a line goes
    """

    routes: Mapping[Any, str]
    write: Callable[..., None] = log

    async def answer(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        """Answer as the layers below do, and write a line."""
        begun, status = time.perf_counter(), 0

        async def noted(message: types.Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            incident = scope.get(INCIDENT)
            if incident is not None:
                self.write("incident", "error", **incident)
            self.write(
                "request",
                method=scope["method"] if scope["method"] in _METHODS else "other",
                route=scope.get(ROUTE) or self.routes.get(scope.get("endpoint")),
                status=status,
                milliseconds=round(1000 * (time.perf_counter() - begun), 1),
                role=scope.get(ROLE),
            )
