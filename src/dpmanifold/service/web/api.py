"""JSON for programs: who asks is known by the header Authorization and by nothing else.

Who shows no token learns nothing, not even which addresses there are. Whatever does not exist, is somebody else's or is
not for a role is one answer, the same to the last byte.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dpmanifold.errors import InvalidDataError
from dpmanifold.privacy.promises import KINDS
from dpmanifold.service import accounts, tables
from dpmanifold.service.accounts import AccountView, Actor
from dpmanifold.service.credentials import TokenView
from dpmanifold.service.desk import Desk
from dpmanifold.service.http_errors import NotFound, NotSignedIn, ServiceError
from dpmanifold.service.person import ANALYST, AUDITOR, STEWARD
from dpmanifold.service.questions import Question, promise_from_json
from dpmanifold.service.service import Service
from dpmanifold.service.views import (
    AuditView,
    Curve,
    DataSetView,
    EventView,
    HistoryView,
    PopulationView,
    PriceView,
    RegistrationView,
    ReleaseView,
    View,
)
from dpmanifold.service.web.answers import ROUTE, as_json, document, download, picture, planning
from dpmanifold.service.web.openapi import (
    ROOT,
    Endpoint,
    Schema,
    fault,
    list_of,
    openapi_document,
    record,
    reference,
    schemas_of,
    text,
)
from dpmanifold.service.web.security import WrongType, address, body_of, content_type, has_controls
from dpmanifold.service.web.sessions import ROLE, service_of
from dpmanifold.service.web.turns import CURVE, PLAN, turns_of
from dpmanifold.stats.query import QUERIES

DOCUMENT = "/openapi.json"
_SCHEME = "bearer "
_READERS: dict[str | None, Callable[[Any, str], Any]] = {
    reference("Question")["$ref"]: lambda record, _: Question.from_dict(record),
    reference("PrivacyGuarantee")["$ref"]: promise_from_json,
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
        self._document = openapi_document(title, self.endpoints, SCHEMAS)

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
    accounts.count_guess(service.database, address(request))
    raise NotSignedIn("The token is not known, expired or revoked.")


# -------------------------------------------------------------------- the table of what programs can ask

# Each line is a route, its checks and its documentation at once. Most lines name what a desk does. It is given what the
# path names, then what stands in the query and the body, by name.


Record = Mapping[str, Any]
ALL = (ANALYST, STEWARD, AUDITOR)
OVERSEERS = (STEWARD, AUDITOR)
VIEWS = (AccountView, AuditView, Curve, DataSetView, EventView, HistoryView, PopulationView, PriceView,
         RegistrationView, ReleaseView, TokenView)  # fmt: skip
_AMOUNT = {"type": ["string", "number"]}
_PROMISE = {
    "type": "object",
    "properties": {"kind": {"enum": sorted(KINDS)}, **dict.fromkeys(("epsilon", "delta", "rho", "mu"), _AMOUNT)},
    "required": ["kind"],
}
_QUERIES = "; ".join(f"{query.name} ({', '.join(query.defaults) or 'no options'})" for query in QUERIES.own())
_QUESTION = record(
    {
        "statistic": text(100, description="A query, or a statistic of another distribution that is installed."),
        "privacy": reference("PrivacyGuarantee"),
    },
    {
        "options": {"type": "object", "description": f"What differs from the defaults, by query: {_QUERIES}."},
        "ball": {"type": ["object", "null"]},
    },
)
SCHEMAS: dict[str, Schema] = {**schemas_of(VIEWS), "PrivacyGuarantee": _PROMISE, "Question": _QUESTION}
_ANYTHING: Schema = {"type": "object"}
_ASKED = {"dataset": text(300), "question": reference("Question")}
_COUNT = {"type": "integer", "minimum": 1, "maximum": 1000}
_AFTER = {"type": "integer", "minimum": 0}
_PAGED = {"after": _AFTER, "limit": _COUNT}
_TERMS = record({"approval": {"type": "boolean"}}, {"slot": {"type": ["number", "null"]}, "note": text(2000)})
# What a registration takes is checked at the desk; here it is held to a length.
_REQUEST: Schema = {
    "type": "object",
    "properties": {"radius": {"maxLength": 100}, "size": {"maxLength": 100}, "center": {"maxLength": 20_000}},
    "additionalProperties": {"maxLength": 4000},
}

# A token makes no tokens: what somebody found would outlive its end and its revocation. That takes a password.


def _me(desk: Desk) -> Record:
    return {"name": desk.actor.name, "role": desk.actor.role}


def _plan(desk: Desk, dataset: str, question: Question, error: float | None = None) -> Record:
    if error is not None:
        return desk.needed(dataset, question, float(error))
    return desk.plan(dataset, question)


def _curve(desk: Desk, dataset: str, statistic: str, options: str = "{}", **promise: Any) -> Curve:
    chosen = parsed(options.encode())
    if not isinstance(chosen, dict):
        raise ServiceError("options must be an object of JSON, of names with values.")
    return desk.curve(dataset, statistic, options=chosen, **promise)


def _ask(desk: Desk, dataset: str, question: Question, key: str) -> Response:
    begun = tables.now()
    view = desk.ask(dataset, question, key)
    return as_json(view.to_dict(), 200 if view.asked < begun else 202)


def _result(desk: Desk, release: str) -> Response:
    return download(desk.result(release), f"{release}.json", "application/json")


def _picture(desk: Desk, release: str) -> Response:
    return picture(desk.picture(release))


def _report(desk: Desk, release: str) -> Response:
    return document(desk.report(release))


def _array(desk: Desk, release: str) -> Response:
    return download(desk.array(release), f"{release}.npy")


def _decide(desk: Desk, release: str, decision: str, reason: str) -> ReleaseView:
    return desk.approve(release, reason) if decision == "approve" else desk.refuse(release, reason)


def _export(desk: Desk) -> Response:
    return download(desk.export(), "ledger.jsonl", "application/jsonl")


def _view(view: type) -> Schema:
    return reference(view.__name__)


_ME = record({"name": text(), "role": {"enum": list(ALL)}})
_CURVE = {"dataset": text(300), "statistic": text(100), "kind": {"enum": sorted(KINDS)}, "delta": text(100),
          "options": text(2000)}  # fmt: skip
_DECISION = record({"decision": {"enum": ["approve", "refuse"]}, "reason": text()})
_AGAIN = (200, "It was asked before, under the same key.")

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/me", _me, "who_am_i",
             "Who the token is of.", ALL, _ME),
    Endpoint("GET", "/tokens", Desk.tokens, "list_tokens",
             "One's own tokens, without their secrets.", ALL, list_of("tokens", TokenView)),
    Endpoint("DELETE", "/tokens/{id}", Desk.revoke_token, "revoke_token",
             "End a token, at once.", ALL, _ANYTHING, status=204),
    Endpoint("GET", "/datasets", Desk.datasets, "list_datasets",
             "The data sets that one may see.", ALL, list_of("datasets", DataSetView)),
    Endpoint("GET", "/datasets/{population}/{name}", Desk.dataset, "get_dataset",
             "One data set.", ALL, _view(DataSetView)),
    Endpoint("PUT", "/datasets/{population}/{name}/terms", Desk.set_terms, "set_terms",
             "Set what holds for releases of a data set.", (STEWARD,), _view(DataSetView), body=_TERMS, plans=True),
    Endpoint("POST", "/plans", _plan, "plan",
             "What to expect, as `dpm plan --json` says it; with an error, what it takes.", ALL, _ANYTHING,
             body=record(_ASKED, {"error": {"type": "number"}}), plans=True, turn=PLAN),
    Endpoint("GET", "/curves", _curve, "get_curve",
             "What to expect for each promise of a grid; options are JSON.", ALL, _view(Curve), query=_CURVE,
             needed=("dataset", "statistic"), plans=True, turn=CURVE),
    Endpoint("POST", "/prices", Desk.price, "get_price",
             "What a question costs and leaves; spends nothing.", (ANALYST,), _view(PriceView), body=record(_ASKED),
             plans=True, turn=PLAN),
    Endpoint("POST", "/releases", _ask, "ask",
             "Ask, and pay. The same key again costs nothing.", (ANALYST,), _view(ReleaseView),
             body=record({**_ASKED, "key": text(200)}), status=202, also=_AGAIN, plans=True, turn=PLAN),
    Endpoint("GET", "/releases", Desk.releases, "list_releases",
             "Releases, the newest first.", ALL, list_of("releases", ReleaseView),
             query={"before": text(100), "limit": _COUNT}),
    Endpoint("GET", "/releases/{id}", Desk.release, "get_release",
             "One release.", ALL, _view(ReleaseView)),
    Endpoint("GET", "/releases/{id}/result", _result, "get_result",
             "What was released.", ALL, _ANYTHING),
    Endpoint("GET", "/releases/{id}/picture", _picture, "get_picture",
             "Its picture.", ALL, "image/png"),
    Endpoint("GET", "/releases/{id}/report", _report, "get_report",
             "Its report.", ALL, "text/html"),
    Endpoint("GET", "/releases/{id}/array", _array, "get_array",
             "Its value, as a .npy file.", ALL, "application/octet-stream"),
    Endpoint("GET", "/history/{population}", Desk.history, "get_history",
             "What used a cap up.", ALL, _view(HistoryView), query=_PAGED),
    Endpoint("GET", "/populations", Desk.populations, "list_populations",
             "All populations.", OVERSEERS, list_of("populations", PopulationView)),
    Endpoint("POST", "/populations", Desk.make_population, "make_population",
             "A new population and its cap.", (STEWARD,), _view(PopulationView), status=201, plans=True,
             body=record({"name": text(200), "cap": reference("PrivacyGuarantee"), "unit": text(200)})),
    Endpoint("GET", "/populations/{name}", Desk.population, "get_population",
             "One population.", OVERSEERS, _view(PopulationView)),
    Endpoint("POST", "/populations/{name}/resume", Desk.resume, "resume",
             "Let a population be asked about again, of which a release was lost.", (STEWARD,), _view(PopulationView),
             body=record({"reason": text(200)}), plans=True),
    Endpoint("POST", "/populations/{name}/cap", Desk.raise_cap, "raise_cap",
             "Raise a cap; the reason stays for good.", (STEWARD,), _view(PopulationView),
             body=record({"cap": reference("PrivacyGuarantee"), "reason": text()}), plans=True),
    Endpoint("POST", "/populations/{name}/grants", Desk.grant, "grant",
             "How much an analyst may spend in all.", (STEWARD,), _view(PopulationView), plans=True,
             body=record({"account": text(100), "privacy": reference("PrivacyGuarantee"), "reason": text()})),
    Endpoint("GET", "/registrations", Desk.registrations, "list_registrations",
             "What was asked to be registered.", (STEWARD,), list_of("registrations", RegistrationView)),
    Endpoint("POST", "/registrations", Desk.register, "register",
             "Have records below the root registered.", (STEWARD,), _view(RegistrationView), status=202, plans=True,
             body=record({"population": text(200), "name": text(200), "request": _REQUEST})),
    Endpoint("GET", "/registrations/{id}", Desk.registration, "get_registration",
             "One registration.", (STEWARD,), _view(RegistrationView)),
    Endpoint("GET", "/approvals", Desk.waiting, "list_approvals",
             "Releases that wait for a steward.", OVERSEERS, list_of("releases", ReleaseView)),
    Endpoint("POST", "/approvals/{id}", _decide, "decide",
             "Approve or refuse a release.", (STEWARD,), _view(ReleaseView), body=_DECISION, plans=True),
    Endpoint("GET", "/audit", Desk.audit, "audit",
             "Every entry of the ledger and the audit log, checked.", OVERSEERS, _view(AuditView)),
    Endpoint("GET", "/events", Desk.events, "list_events",
             "The audit log.", (AUDITOR,), list_of("events", EventView), query=_PAGED),
    Endpoint("GET", "/accounts", Desk.accounts, "list_accounts",
             "All accounts.", (AUDITOR,), list_of("accounts", AccountView)),
    Endpoint("GET", "/export", _export, "export",
             "The ledger, as lines of JSON.", (AUDITOR,), "application/jsonl"),
)  # fmt: skip


# -------------------------------------------------------------------- what programs send, read strictly


DEEPEST = 16
"""Brackets within brackets."""
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_MOST_PARAMETERS = 20
_LONGEST_NUMBER = 15  # digits of a whole number in an address


def json_body(request: Request, schema: Schema, known: Mapping[str, Schema]) -> dict[str, Any]:
    """Return the object that a request sends, held to a schema."""
    if content_type(request) != "application/json":
        raise WrongType("The body must be JSON: send it with Content-Type: application/json.")
    found = parsed(body_of(request))
    wrong = fault(found, schema, known)
    if wrong is not None:
        raise ServiceError(wrong)
    return dict(found)


def parsed(body: bytes) -> Any:
    """Return what JSON says; a key that is there twice, NaN and infinities, texts that are none are refused.

    Examples
    --------
    >>> parsed(b'{"a": 1e999}')
    Traceback (most recent call last):
    ...
    dpmanifold.service.http_errors.ServiceError: The body must be JSON: a number is not finite.
    """
    _refuse_deep(body)
    try:
        found = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_named_once,
            parse_float=_finite,
            parse_int=_whole,
            parse_constant=_no_constant,
        )
        json.dumps(found, ensure_ascii=False).encode("utf-8")  # halves of characters are no text
    except InvalidDataError as problem:
        raise ServiceError(f"The body must be JSON: {problem}.") from None
    except UnicodeError:
        raise ServiceError("The body must be JSON, in UTF-8.") from None
    except (ValueError, RecursionError):
        raise ServiceError("The body must be JSON, as a program writes it.") from None
    _refuse_unstorable(found)
    return found


def query_of(request: Request, schemas: Mapping[str, Schema], needed: tuple[str, ...]) -> dict[str, Any]:
    """Return what stands behind the question mark, each name once and held to its schema."""
    try:
        pairs = urllib.parse.parse_qsl(
            request.scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except ValueError:
        raise ServiceError("The part of the address behind the question mark cannot be read.") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in schemas or name in found:
            raise ServiceError(f"Behind the question mark go, once each: {', '.join(schemas) or 'nothing'}.")
        whole = value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER
        found[name] = int(value) if whole and schemas[name].get("type") == "integer" else value
        wrong = fault(found[name], schemas[name], {}, name)
        if wrong is not None:
            raise ServiceError(wrong)
    missing = [name for name in needed if name not in found]
    if missing:
        raise ServiceError(f"Behind the question mark {', '.join(missing)} is missing.")
    _refuse_unstorable(found)
    return found


def _refuse_deep(body: bytes) -> None:
    depth = 0
    for byte in _STRINGS.sub(b"", body):
        depth += _BRACKETS.get(byte, 0)
        if depth > DEEPEST:
            raise ServiceError(f"The body may have at most {DEEPEST} brackets within brackets.")


def _refuse_unstorable(value: Any) -> None:
    """Refuse the one character that texts of databases cannot have."""
    if isinstance(value, str) and "\x00" in value:
        raise ServiceError("A text has a character that is none.")
    if isinstance(value, dict):
        for name, one in value.items():
            _refuse_unstorable(name)
            _refuse_unstorable(one)
    if isinstance(value, list):
        for one in value:
            _refuse_unstorable(one)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidDataError("a key is there twice")
    return found


def _finite(said: str) -> float:
    number = float(said)
    if not math.isfinite(number):
        raise InvalidDataError("a number is not finite")
    return number


def _whole(said: str) -> int:
    """Return a whole number, if it has a place among the doubles: whoever takes one for a number may do so."""
    _finite(said)
    return int(said)


def _no_constant(said: str) -> NoReturn:
    raise InvalidDataError(f"{said} is no number")
