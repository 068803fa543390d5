"""The table of what programs can ask. Each line is a route, its checks and its documentation at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from dpmanifold.privacy.promises import KINDS
from dpmanifold.service import tables
from dpmanifold.service.accounts import AccountView
from dpmanifold.service.errors import ServiceError
from dpmanifold.service.person import ANALYST, AUDITOR, STEWARD
from dpmanifold.service.questions import Question, promise_from_json
from dpmanifold.service.tokens import TokenView
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
from dpmanifold.service.web.openapi import Call, Endpoint
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


def _listed(name: str, views: list[Any]) -> Record:
    return {name: [view.to_dict() for view in views]}


def _asked(call: Call) -> tuple[str, Question]:
    return call.body["dataset"], Question.from_dict(call.body["question"])


# -------------------------------------------------------------------- whoever signs in

# A token makes no tokens: what somebody found would outlive its end and its revocation. That takes a password.


def who_am_i(call: Call) -> Record:
    """Who the token is of."""
    return {"name": call.actor.name, "role": call.actor.role}


def list_tokens(call: Call) -> Record:
    """One's own tokens, without their secrets."""
    return _listed("tokens", call.desk.tokens())


def revoke_token(call: Call) -> Response:
    """End a token, at once."""
    call.desk.revoke_token(call.path["id"])
    return Response(status_code=204)


# -------------------------------------------------------------------- data sets, plans, releases


def list_datasets(call: Call) -> Record:
    """The data sets that one may see."""
    return _listed("datasets", call.desk.datasets())


def get_dataset(call: Call) -> Record:
    """One data set."""
    return call.desk.dataset(_ref(call)).to_dict()


def plan(call: Call) -> Record:
    """What to expect, as `dpm plan --json` says it; with an error, what it takes."""
    ref, question = _asked(call)
    if "error" in call.body:
        return call.desk.needed(ref, question, float(call.body["error"]))
    return call.desk.plan(ref, question)


def get_curve(call: Call) -> Record:
    """What to expect for each promise of a grid; options are JSON."""
    given = dict(call.query)
    chosen = parsed(given.pop("options", "{}").encode())
    if not isinstance(chosen, dict):
        raise ServiceError("options must be an object of JSON, of names with values.")
    return call.desk.curve(given.pop("dataset"), given.pop("statistic"), options=chosen, **given).to_dict()


def get_price(call: Call) -> Record:
    """What a question costs and leaves; spends nothing."""
    return call.desk.price(*_asked(call)).to_dict()


def ask(call: Call) -> Response:
    """Ask, and pay. The same key again costs nothing."""
    begun = tables.now()
    view = call.desk.ask(*_asked(call), call.body["key"])
    return as_json(view.to_dict(), 200 if view.asked < begun else 202)


def list_releases(call: Call) -> Record:
    """Releases, the newest first."""
    return _listed("releases", call.desk.releases(**call.query))


def get_release(call: Call) -> Record:
    """One release."""
    return call.desk.release(call.path["id"]).to_dict()


def get_result(call: Call) -> Response:
    """What was released."""
    return download(call.desk.result(call.path["id"]), f"{call.path['id']}.json", "application/json")


def get_picture(call: Call) -> Response:
    """Its picture."""
    return picture(call.desk.picture(call.path["id"]))


def get_report(call: Call) -> Response:
    """Its report."""
    return document(call.desk.report(call.path["id"]))


def get_array(call: Call) -> Response:
    """Its value, as a .npy file."""
    return download(call.desk.array(call.path["id"]), f"{call.path['id']}.npy")


def get_history(call: Call) -> Record:
    """What used a cap up."""
    return call.desk.history(call.path["population"], **call.query).to_dict()


# -------------------------------------------------------------------- stewards


def list_populations(call: Call) -> Record:
    """All populations."""
    return _listed("populations", call.desk.populations())


def get_population(call: Call) -> Record:
    """One population."""
    return call.desk.population(call.path["name"]).to_dict()


def make_population(call: Call) -> Record:
    """A new population and its cap."""
    said = call.body
    return call.desk.make_population(said["name"], promise_from_json(said["cap"], "cap"), said["unit"]).to_dict()


def raise_cap(call: Call) -> Record:
    """Raise a cap; the reason stays for good."""
    cap = promise_from_json(call.body["cap"], "cap")
    return call.desk.raise_cap(call.path["name"], cap, call.body["reason"]).to_dict()


def grant(call: Call) -> Record:
    """How much an analyst may spend in all."""
    promise = promise_from_json(call.body["promise"], "promise")
    return call.desk.grant(call.path["name"], call.body["account"], promise, call.body["reason"]).to_dict()


def list_registrations(call: Call) -> Record:
    """What was asked to be registered."""
    return _listed("registrations", call.desk.registrations())


def get_registration(call: Call) -> Record:
    """One registration."""
    return call.desk.registration(call.path["id"]).to_dict()


def register(call: Call) -> Record:
    """Have records below the root registered."""
    said = call.body
    return call.desk.register(said["population"], said["name"], said["request"]).to_dict()


def set_terms(call: Call) -> Record:
    """Set what holds for releases of a data set."""
    call.desk.set_terms(_ref(call), **call.body)
    return get_dataset(call)


def resume(call: Call) -> Record:
    """Let a population be asked about again, of which a release was lost."""
    call.desk.resume(call.path["name"], call.body["reason"])
    return get_population(call)


def list_approvals(call: Call) -> Record:
    """Releases that wait for a steward."""
    return _listed("releases", call.desk.waiting())


def decide(call: Call) -> Record:
    """Approve or refuse a release."""
    decision = call.desk.approve if call.body["decision"] == "approve" else call.desk.refuse
    return decision(call.path["id"], call.body["reason"]).to_dict()


# -------------------------------------------------------------------- auditors


def audit(call: Call) -> Record:
    """Every entry of the ledger and the audit log, checked."""
    return call.desk.audit().to_dict()


def list_events(call: Call) -> Record:
    """The audit log."""
    return _listed("events", call.desk.events(**call.query))


def list_accounts(call: Call) -> Record:
    """All accounts."""
    return _listed("accounts", call.desk.accounts())


def export(call: Call) -> Response:
    """The ledger, as lines of JSON."""
    return download(call.desk.export(), "ledger.jsonl", "application/jsonl")


def _ref(call: Call) -> str:
    return f"{call.path['population']}/{call.path['name']}"


def _view(view: type) -> Schema:
    return reference(view.__name__)


_ME = record({"name": text(), "role": {"enum": list(ALL)}})
_CURVE = {"dataset": text(300), "statistic": text(100), "kind": {"enum": sorted(KINDS)}, "delta": text(100),
          "options": text(2000)}  # fmt: skip
_DECISION = record({"decision": {"enum": ["approve", "refuse"]}, "reason": text()})
_AGAIN = (200, "It was asked before, under the same key.")

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/me", who_am_i, ALL, _ME),
    Endpoint("GET", "/tokens", list_tokens, ALL,
             list_of("tokens", TokenView)),
    Endpoint("DELETE", "/tokens/{id}", revoke_token, ALL, _ANYTHING, status=204),
    Endpoint("GET", "/datasets", list_datasets, ALL,
             list_of("datasets", DataSetView)),
    Endpoint("GET", "/datasets/{population}/{name}", get_dataset, ALL, _view(DataSetView)),
    Endpoint("PUT", "/datasets/{population}/{name}/terms", set_terms,
             (STEWARD,), _view(DataSetView), body=_TERMS, plans=True),
    Endpoint("POST", "/plans", plan,
             ALL, _ANYTHING, body=record(_ASKED, {"error": {"type": "number"}}), plans=True, turn=PLAN),
    Endpoint("GET", "/curves", get_curve, ALL,
             _view(Curve), query=_CURVE, needed=("dataset", "statistic"), plans=True, turn=CURVE),
    Endpoint("POST", "/prices", get_price, (ANALYST,),
             _view(PriceView), body=record(_ASKED), plans=True, turn=PLAN),
    Endpoint("POST", "/releases", ask, (ANALYST,),
             _view(ReleaseView), body=record({**_ASKED, "key": text(200)}), status=202, also=_AGAIN, plans=True,
             turn=PLAN),
    Endpoint("GET", "/releases", list_releases, ALL, list_of("releases", ReleaseView),
             query={"before": text(100), "limit": _COUNT}),
    Endpoint("GET", "/releases/{id}", get_release, ALL, _view(ReleaseView)),
    Endpoint("GET", "/releases/{id}/result", get_result, ALL, _ANYTHING),
    Endpoint("GET", "/releases/{id}/picture", get_picture, ALL, "image/png"),
    Endpoint("GET", "/releases/{id}/report", get_report, ALL, "text/html"),
    Endpoint("GET", "/releases/{id}/array", get_array, ALL, "application/octet-stream"),
    Endpoint("GET", "/history/{population}", get_history, ALL, _view(HistoryView),
             query=_PAGED),
    Endpoint("GET", "/populations", list_populations, OVERSEERS,
             list_of("populations", PopulationView)),
    Endpoint("POST", "/populations", make_population, (STEWARD,),
             _view(PopulationView), status=201, plans=True,
             body=record({"name": text(200), "cap": reference("Promise"), "unit": text(200)})),
    Endpoint("GET", "/populations/{name}", get_population, OVERSEERS, _view(PopulationView)),
    Endpoint("POST", "/populations/{name}/resume", resume, (STEWARD,),
             _view(PopulationView), body=record({"reason": text(200)}), plans=True),
    Endpoint("POST", "/populations/{name}/cap", raise_cap, (STEWARD,),
             _view(PopulationView), body=record({"cap": reference("Promise"), "reason": text()}), plans=True),
    Endpoint("POST", "/populations/{name}/grants", grant, (STEWARD,),
             _view(PopulationView), plans=True,
             body=record({"account": text(100), "promise": reference("Promise"), "reason": text()})),
    Endpoint("GET", "/registrations", list_registrations, (STEWARD,),
             list_of("registrations", RegistrationView)),
    Endpoint("POST", "/registrations", register, (STEWARD,),
             _view(RegistrationView), status=202, plans=True,
             body=record({"population": text(200), "name": text(200), "request": _REQUEST})),
    Endpoint("GET", "/registrations/{id}", get_registration, (STEWARD,),
             _view(RegistrationView)),
    Endpoint("GET", "/approvals", list_approvals, OVERSEERS,
             list_of("releases", ReleaseView)),
    Endpoint("POST", "/approvals/{id}", decide, (STEWARD,), _view(ReleaseView),
             body=_DECISION, plans=True),
    Endpoint("GET", "/audit", audit, OVERSEERS,
             _view(AuditView)),
    Endpoint("GET", "/events", list_events, (AUDITOR,), list_of("events", EventView), query=_PAGED),
    Endpoint("GET", "/accounts", list_accounts, (AUDITOR,), list_of("accounts", AccountView)),
    Endpoint("GET", "/export", export, (AUDITOR,), "application/jsonl"),
)  # fmt: skip
