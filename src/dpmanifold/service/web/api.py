"""JSON for programs: who asks is known by the header Authorization and by nothing else.

Who shows no token learns nothing, not even which addresses there are. Whatever does not exist, is somebody else's or is
not for a role is one answer, the same to the last byte.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dpmanifold.service import limits
from dpmanifold.service.accounts import Actor
from dpmanifold.service.desk import Desk
from dpmanifold.service.errors import NotFound, NotSignedIn
from dpmanifold.service.questions import Question, promise_from_json
from dpmanifold.service.service import Service
from dpmanifold.service.views import View
from dpmanifold.service.web.answers import ROUTE, as_json, planning
from dpmanifold.service.web.endpoints import ENDPOINTS, SCHEMAS
from dpmanifold.service.web.openapi import ROOT, Endpoint, document
from dpmanifold.service.web.reading import json_body, query_of
from dpmanifold.service.web.schemas import Schema, reference
from dpmanifold.service.web.security import address, has_controls
from dpmanifold.service.web.sessions import ROLE, service_of
from dpmanifold.service.web.turns import turns_of

DOCUMENT = "/openapi.json"
_SCHEME = "bearer "
_READERS: dict[str | None, Callable[[Any, str], Any]] = {
    reference("Question")["$ref"]: lambda record, _: Question.from_dict(record),
    reference("Promise")["$ref"]: promise_from_json,
}


class _Later(NamedTuple):
    """An answer that waits for a turn: whose, at what, and how it is made."""

    who: str
    kind: str
    make: Callable[[], Response]


@final
class Api:
    """The application below :data:`ROOT`.

    Parameters
    ----------
    title : of the service, for the document
    """

    def __init__(self, title: str) -> None:
        about = Endpoint(
            "GET", DOCUMENT, lambda _: self._document, "openapi", "Return this document.", None, {"type": "object"}
        )
        self.endpoints = (*ENDPOINTS, about)
        self._document = document(title, self.endpoints, SCHEMAS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        found = await run_in_threadpool(self._answer, request)
        if isinstance(found, _Later):
            found = await turns_of(request).run(found.who, found.kind, found.make)
        await found(scope, receive, send)

    def _answer(self, request: Request) -> Response | _Later:
        endpoint, found = self._found(request.method, request.scope["path"].removeprefix(ROOT))
        if endpoint is not None:
            request.scope[ROUTE] = f"{ROOT}{endpoint.path}"
            if endpoint.roles is None:
                return as_json(self._document)
        service = service_of(request)
        actor = _actor(service, request)
        request.scope[ROLE] = actor.role
        if endpoint is None or actor.role not in (endpoint.roles or ()):
            raise NotFound
        given = query_of(request, endpoint.query, endpoint.needed)
        if endpoint.body is not None:
            given |= json_body(request, endpoint.body, SCHEMAS)
        desk, named = service.desk(actor), ["/".join(found.values())] if found else []
        if endpoint.turn:
            return _Later(actor.name, endpoint.turn, lambda: _made(endpoint, desk, named, given))
        return _made(endpoint, desk, named, given)

    def _found(self, method: str, path: str) -> tuple[Endpoint | None, dict[str, str]]:
        for endpoint in self.endpoints:
            found = endpoint.matched(method, path)
            if found is not None and not any(map(has_controls, found.values())):
                return endpoint, found
        return None, {}


def _made(endpoint: Endpoint, desk: Desk, named: list[str], given: Mapping[str, Any]) -> Response:
    entries = {} if endpoint.body is None else endpoint.body["properties"]
    with planning() if endpoint.plans else contextlib.nullcontext():
        read = {name: _read(value, name, entries.get(name, {})) for name, value in given.items()}
        answer = endpoint.call(desk, *named, **read)
    match answer:
        case None:
            return Response(status_code=endpoint.status)
        case Response():
            return answer
        case View():
            answer = answer.to_dict()
        case list() if isinstance(endpoint.answer, dict):
            (name,) = endpoint.answer["properties"]
            answer = {name: [view.to_dict() for view in answer]}
    return as_json(answer, endpoint.status)


def _read(value: Any, name: str, schema: Schema) -> Any:
    """Return what an entry of the body says."""
    reader = _READERS.get(schema.get("$ref"))
    return value if reader is None else reader(value, name)


def _actor(service: Service, request: Request) -> Actor:
    """Return whose token a request shows.

    It is looked up first: nobody guesses 256 bits, so a token that is known is taken whatever others showed from the
    same address. Those that are not known are counted, and refused in other words once they are many.
    """
    said = request.headers.getlist("authorization")
    if not said:
        raise NotSignedIn("Show a token: Authorization: Bearer dpm_...")
    secret = said[0][len(_SCHEME) :].strip() if said[0].lower().startswith(_SCHEME) else ""
    actor = service.tokens.find(secret) if len(said) == 1 else None
    if actor is not None:
        return actor
    limits.count_guess(service.database, address(request))
    raise NotSignedIn("The token is not known, expired or revoked.")
