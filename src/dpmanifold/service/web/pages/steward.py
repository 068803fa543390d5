"""What a steward does on pages: populations, caps, grants, terms and decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpmanifold.service.desk import Desk
from dpmanifold.service.person import STEWARD
from dpmanifold.service.views import PopulationView
from dpmanifold.service.web.pages.asking import address
from dpmanifold.service.web.pages.browsing import ref_of
from dpmanifold.service.web.pages.showing import Problem, number_in, show, tried, typed_promise
from dpmanifold.service.web.sessions import desk, form, see_other

_DONE = {
    "made": "The population is made.",
    "cap": "The cap is raised. The reason is in the ledger.",
    "grant": "The grant is in the ledger.",
    "terms": "The terms hold from now on.",
    "resume": "It can be asked about again. The reason is in the log.",
    "approved": "Approved: it is paid for and on its way.",
    "refused": "Refused. Nothing was spent.",
}
_FIRST = {"name": "", "unit": "participant", "kind": "GDP", "amount": "", "delta": "1e-6", "account": "", "reason": ""}


def steward(request: Request) -> Response:
    """Show what waits for a decision, populations and registrations."""
    return _overview(request)


def _overview(request: Request, problems: dict[str, Problem] | None = None, typed: Any = _FIRST) -> Response:
    at = _steward(request)
    found = problems or {}
    return show(
        request, "steward.html", problem=next(iter(found.values()), None), title="Steward", waiting=at.waiting(),
        populations=at.populations(), registrations=at.registrations()[:20], problems=_texts(found), typed=typed,
        done=_DONE.get(request.query_params.get("done", "")),
    )  # fmt: skip


def make_population(request: Request) -> Response:
    """Make a population."""
    fields = form(request)
    at = _steward(request)
    made, problem = tried(
        lambda: at.make_population(
            fields.get("name", "").strip(), typed_promise(fields), fields.get("unit", "").strip()
        )
    )
    if made is None:
        assert problem is not None
        return _overview(request, {"made": problem}, {**_FIRST, **fields})
    return see_other(address(f"/steward/populations/{made.name}", [("done", "made")]))


def population(request: Request) -> Response:
    """Show one population: its cap, grants, data sets and their terms."""
    return _population(request)


def _population(request: Request, problems: dict[str, Problem] | None = None, typed: Any = _FIRST) -> Response:
    at = _steward(request)
    one = at.population(request.path_params["population"])
    found = problems or {}
    return show(
        request, "population.html", problem=next(iter(found.values()), None), title=one.name, one=one,
        analysts=[(name, name) for name in at.analysts()], slots=_own_slots(one),
        problems=_texts(found), typed=typed, done=_DONE.get(request.query_params.get("done", "")),
    )  # fmt: skip


def raise_cap(request: Request) -> Response:
    """Raise a cap, with a reason."""
    name = request.path_params["population"]
    return _changed(
        request,
        "cap",
        lambda at, fields: at.raise_cap(name, typed_promise(fields), fields.get("reason", "").strip()),
    )


def grant(request: Request) -> Response:
    """Grant an analyst a share."""
    name = request.path_params["population"]

    def granted(at: Desk, fields: dict[str, str]) -> object:
        return at.grant(name, fields.get("account", ""), typed_promise(fields), fields.get("reason", "").strip())

    return _changed(request, "grant", granted)


def terms(request: Request) -> Response:
    """Set the terms of a data set."""
    ref = ref_of(request)

    def settled(at: Desk, fields: dict[str, str]) -> bool:
        slot = number_in(fields, "slot") if fields.get("slot", "").strip() else None
        note = fields.get("note", "").replace("\r\n", "\n").strip()
        at.set_terms(ref, approval=fields.get("approval") == "yes", slot=slot, note=note)
        return True

    return _changed(request, "terms", settled, f"terms-{request.path_params['name']}")


def resume(request: Request) -> Response:
    """Let a population be asked about again, of which a release was lost."""
    name = request.path_params["population"]

    def resumed(at: Desk, fields: dict[str, str]) -> bool:
        at.resume(name, fields.get("reason", "").strip())
        return True

    return _changed(request, "resume", resumed, "resume")


def _own_slots(one: PopulationView) -> dict[str, str]:
    """Return the slots that a steward has set, as they are typed; empty where the service works them out."""
    return {data.name: "" if data.own_slot is None else f"{data.own_slot:g}" for data in one.datasets}


def _changed(
    request: Request, what: str, change: Callable[[Desk, dict[str, str]], object], place: str | None = None
) -> Response:
    """Change something about a population, and show it again: with the problem beside its form where there is one."""
    fields = form(request)
    at = _steward(request)
    _, problem = tried(lambda: change(at, fields))
    if problem is not None:
        return _population(request, {place or what: problem}, {**_FIRST, **fields, "form": place or what})
    return see_other(address(f"/steward/populations/{request.path_params['population']}", [("done", what)]))


def decide(request: Request) -> Response:
    """Approve or refuse what an analyst asked for."""
    fields = form(request)
    at = _steward(request)
    release, reason = request.path_params["release"], fields.get("reason", "").strip()
    approves = fields.get("decision") == "approve"
    _, problem = tried(lambda: at.approve(release, reason) if approves else at.refuse(release, reason))
    if problem is not None:
        return _overview(request, {release: problem}, {**_FIRST, "reason": reason})
    return see_other(address("/steward", [("done", "approved" if approves else "refused")]))


def _steward(request: Request) -> Desk:
    at = desk(request)
    at.require(STEWARD)
    return at


def _texts(problems: dict[str, Problem]) -> dict[str, str]:
    return {name: problem.text for name, problem in problems.items()}


ROUTES = [
    Route("/steward", steward, methods=["GET"]),
    Route("/steward/populations", make_population, methods=["POST"]),
    Route("/steward/populations/{population}", population, methods=["GET"]),
    Route("/steward/populations/{population}/cap", raise_cap, methods=["POST"]),
    Route("/steward/populations/{population}/grants", grant, methods=["POST"]),
    Route("/steward/populations/{population}/terms/{name}", terms, methods=["POST"]),
    Route("/steward/populations/{population}/resume", resume, methods=["POST"]),
    Route("/steward/approvals/{release}", decide, methods=["POST"]),
]
