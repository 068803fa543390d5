"""What a steward does on pages, and what an auditor reads: populations, grants, decisions, registrations, the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dpmanifold.data.specifications import EACH
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds.registry import examples
from dpmanifold.service.desk import Desk
from dpmanifold.service.person import AUDITOR, STEWARD
from dpmanifold.service.stewardship import REQUEST
from dpmanifold.service.web.answers import as_json, download
from dpmanifold.service.web.pages.browsing import ref_of
from dpmanifold.service.web.pages.showing import Problem, address, after_in, number_in, show, tried, typed_promise
from dpmanifold.service.web.sessions import desk, form, see_other, service_of

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
_NO_PROBLEMS: Mapping[str, Problem] = {}
_EVENTS = 100


def steward(request: Request, problems: Mapping[str, Problem] = _NO_PROBLEMS, typed: Any = _FIRST) -> Response:
    """Show what waits for a decision, populations and registrations."""
    at = desk(request, STEWARD)
    return _shown(
        request, "steward.html", problems, title="Steward", waiting=at.waiting(), populations=at.populations(),
        registrations=at.registrations()[:20], typed=typed,
    )  # fmt: skip


def _shown(request: Request, template: str, problems: Mapping[str, Problem], **context: Any) -> Response:
    """Show a page of several forms, each with its problem beside it, and what was done before."""
    texts = {name: problem.text for name, problem in problems.items()}
    done = _DONE.get(request.query_params.get("done", ""))
    return show(request, template, problem=next(iter(problems.values()), None), problems=texts, done=done, **context)


def make_population(request: Request) -> Response:
    """Make a population."""
    fields = form(request)
    at = desk(request, STEWARD)
    made, problem = tried(
        lambda: at.make_population(
            fields.get("name", "").strip(), typed_promise(fields), fields.get("unit", "").strip()
        )
    )
    if made is None:
        assert problem is not None
        return steward(request, {"made": problem}, {**_FIRST, **fields})
    return see_other(address(f"/steward/populations/{made.name}", [("done", "made")]))


def population(request: Request, problems: Mapping[str, Problem] = _NO_PROBLEMS, typed: Any = _FIRST) -> Response:
    """Show one population: its cap, grants, data sets and their terms."""
    at = desk(request, STEWARD)
    one = at.population(request.path_params["population"])
    # As they are typed; empty where the service works them out.
    slots = {data.name: "" if data.own_slot is None else f"{data.own_slot:g}" for data in one.datasets}
    analysts = [(name, name) for name in at.analysts()]
    return _shown(
        request, "population.html", problems, title=one.name, one=one, analysts=analysts, slots=slots, typed=typed
    )


def raise_cap(request: Request) -> Response:
    """Raise a cap, with a reason."""
    return _changed(request, "cap", lambda at, name, fields: at.raise_cap(name, typed_promise(fields), _reason(fields)))


def grant(request: Request) -> Response:
    """Grant an analyst a share."""

    def granted(at: Desk, name: str, fields: dict[str, str]) -> object:
        return at.grant(name, fields.get("account", ""), typed_promise(fields), _reason(fields))

    return _changed(request, "grant", granted)


def terms(request: Request) -> Response:
    """Set the terms of a data set."""

    def settled(at: Desk, _: str, fields: dict[str, str]) -> object:
        slot = number_in(fields, "slot") if fields.get("slot", "").strip() else None
        note = fields.get("note", "").replace("\r\n", "\n").strip()
        return at.set_terms(ref_of(request), approval=fields.get("approval") == "yes", slot=slot, note=note)

    return _changed(request, "terms", settled, f"terms-{request.path_params['name']}")


def resume(request: Request) -> Response:
    """Let a population be asked about again, of which a release was lost."""
    return _changed(request, "resume", lambda at, name, fields: at.resume(name, _reason(fields)))


def _reason(fields: dict[str, str]) -> str:
    return fields.get("reason", "").strip()


def _changed(
    request: Request, what: str, change: Callable[[Desk, str, dict[str, str]], object], place: str = ""
) -> Response:
    """Change something about a population, and show it again: with the problem beside its form where there is one."""
    fields = form(request)
    at, name = desk(request, STEWARD), request.path_params["population"]
    _, problem = tried(lambda: change(at, name, fields))
    if problem is not None:
        return population(request, {place or what: problem}, {**_FIRST, **fields})
    return see_other(address(f"/steward/populations/{name}", [("done", what)]))


def decide(request: Request) -> Response:
    """Approve or refuse what an analyst asked for."""
    fields = form(request)
    at = desk(request, STEWARD)
    release, reason = request.path_params["release"], _reason(fields)
    approves = fields.get("decision") == "approve"
    _, problem = tried(lambda: at.approve(release, reason) if approves else at.refuse(release, reason))
    if problem is not None:
        return steward(request, {release: problem}, {**_FIRST, "reason": reason})
    return see_other(address("/steward", [("done", "approved" if approves else "refused")]))


def auditor(request: Request) -> Response:
    """Show what an audit finds now, the populations and the accounts."""
    at = desk(request, AUDITOR)
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


# -------------------------------------------------------------------- registration of records


_EMPTY = {
    **dict.fromkeys(REQUEST, ""), "population": "", "name": "", "space": "spd", "unit_kind": "column",
    "covariate_low": "", "covariate_high": "",
}  # fmt: skip


def register(request: Request) -> Response:
    """Show the form: empty, or as it was sent before."""
    again = request.query_params.get("again", "")
    if again:
        before = desk(request).registration(again)
        return _register_page(
            request, {**fields_of(before.request), "population": before.population, "name": before.name}
        )
    return _register_page(request, {**_EMPTY, "population": request.query_params.get("population", "")})


def _register_page(request: Request, typed: Mapping[str, str], problem: Problem | None = None) -> Response:
    at = desk(request, STEWARD)
    populations = [(one.name, f"{one.name} ({one.unit})") for one in at.populations()]
    return show(
        request, "register.html", problem=problem, title="Register data", typed=typed, populations=populations,
        spaces=[(name, name) for name in examples()],
        space_facts=[(name, space.describe()) for name, space in examples().items()],
        root=service_of(request).settings.root.name,
    )  # fmt: skip


def send(request: Request) -> Response:
    """Ask the worker to register records."""
    fields = form(request)
    at = desk(request, STEWARD)
    found, problem = tried(
        lambda: at.register(fields.get("population", ""), fields.get("name", "").strip(), request_of(fields))
    )
    if found is None:
        return _register_page(request, {**_EMPTY, **fields}, problem)
    return see_other(f"/steward/registrations/{found.id}")


def request_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the request for the worker that a form says; what was left empty is None.

    Examples
    --------
    >>> request_of({"path": "dti.csv", "unit_kind": "each-record", "radius": "2.5", "size": "3"})["units"]
    'each-record'
    """
    typed = {name: text.strip() for name, text in fields.items() if text.strip()}
    found: dict[str, Any] = {
        name: typed.get(name) == "yes" if isinstance(usual, bool) else typed.get(name)
        for name, usual in REQUEST.items()
    }
    if typed.get("unit_kind") == EACH:
        found["units"] = EACH
    if "covariate" in typed:
        found["covariate_range"] = _range(typed)
    return found


def fields_of(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the form that says a request; its last box is left empty, since whoever ticks it is to be sure.

    Examples
    --------
    >>> fields_of({"path": "dti.csv", "units": "each-record", "classes": ["a", "b"]})["classes"]
    'a,b'
    """
    known = {name: value for name, value in request.items() if name in REQUEST and value is not None}
    found = {**_EMPTY, **{name: _typed(value) for name, value in known.items() if name != "confirm"}}
    if found["units"] == EACH:
        found |= {"unit_kind": EACH, "units": ""}
    match request.get("covariate_range"):
        case [low, high]:
            found |= {"covariate_low": _typed(low), "covariate_high": _typed(high)}
    return found


def _typed(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return ",".join(map(_typed, value)) if isinstance(value, list) else str(value)


def _range(typed: Mapping[str, str]) -> list[float]:
    try:
        return [float(typed[name]) for name in ("covariate_low", "covariate_high")]
    except (KeyError, ValueError):
        raise InvalidArgumentError(
            "The covariate needs its range: two public numbers between which it lies, never read off the data."
        ) from None


def registration(request: Request) -> Response:
    """Show what became of a registration."""
    found = desk(request).registration(request.path_params["registration"])
    waits = found.state in ("waiting", "working")
    asked = [(name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
             for name, value in found.request.items() if value not in (None, "", False)]  # fmt: skip
    return show(
        request, "registration.html", title=f"Registration of {found.name}", one=found, asked=asked,
        refresh=3 if waits else None,
    )  # fmt: skip


def registration_state(request: Request) -> Response:
    """Return what the page of an unfinished registration looks for."""
    found = desk(request).registration(request.path_params["registration"])
    waits = found.state in ("waiting", "working")
    return as_json({"state": "pending" if waits else found.state, "seconds": None, "publishes": None})
