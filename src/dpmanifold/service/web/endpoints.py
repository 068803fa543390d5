"""The table of what programs can ask. Each line is a route, its checks and its documentation at once.

Most lines name what a desk does. It is given what the path names, then what stands in the query and the body, by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from dpmanifold.privacy.promises import KINDS
from dpmanifold.service import tables
from dpmanifold.service.accounts import AccountView
from dpmanifold.service.credentials import TokenView
from dpmanifold.service.desk import Desk
from dpmanifold.service.errors import ServiceError
from dpmanifold.service.person import ANALYST, AUDITOR, STEWARD
from dpmanifold.service.questions import Question
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
)
from dpmanifold.service.web.answers import as_json, document, download, picture
from dpmanifold.service.web.openapi import Endpoint
from dpmanifold.service.web.reading import parsed
from dpmanifold.service.web.schemas import Schema, list_of, record, reference, schemas_of, text
from dpmanifold.service.web.turns import CURVE, PLAN
from dpmanifold.stats.query import QUERIES

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
        "privacy": reference("Promise"),
    },
    {
        "options": {"type": "object", "description": f"What differs from the defaults, by query: {_QUERIES}."},
        "ball": {"type": ["object", "null"]},
    },
)
SCHEMAS: dict[str, Schema] = {**schemas_of(VIEWS), "Promise": _PROMISE, "Question": _QUESTION}
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
             body=record({"name": text(200), "cap": reference("Promise"), "unit": text(200)})),
    Endpoint("GET", "/populations/{name}", Desk.population, "get_population",
             "One population.", OVERSEERS, _view(PopulationView)),
    Endpoint("POST", "/populations/{name}/resume", Desk.resume, "resume",
             "Let a population be asked about again, of which a release was lost.", (STEWARD,), _view(PopulationView),
             body=record({"reason": text(200)}), plans=True),
    Endpoint("POST", "/populations/{name}/cap", Desk.raise_cap, "raise_cap",
             "Raise a cap; the reason stays for good.", (STEWARD,), _view(PopulationView),
             body=record({"cap": reference("Promise"), "reason": text()}), plans=True),
    Endpoint("POST", "/populations/{name}/grants", Desk.grant, "grant",
             "How much an analyst may spend in all.", (STEWARD,), _view(PopulationView), plans=True,
             body=record({"account": text(100), "promise": reference("Promise"), "reason": text()})),
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
