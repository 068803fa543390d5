"""The form by which a steward has records registered, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds.registry import examples
from dpmanifold.service.person import STEWARD
from dpmanifold.service.web.answers import as_json
from dpmanifold.service.web.pages.showing import Problem, show, tried
from dpmanifold.service.web.sessions import desk, form, see_other, service_of

_EACH_RECORD = "each-record"
_FIRST = {
    "population": "", "name": "", "path": "", "space": "spd", "size": "", "columns": "", "array": "", "order": "",
    "coordinates": "", "normalize": "", "unit_kind": "column", "units": "", "radius": "", "center": "", "source": "",
    "labels": "", "classes": "", "labels_public": "", "covariate": "", "covariate_low": "", "covariate_high": "",
    "covariate_public": "", "confirm": "",
}  # fmt: skip
_TEXTS = ("size", "center", "columns", "array", "order", "coordinates")


def register(request: Request) -> Response:
    """Show the form: empty, or as it was sent before."""
    again = request.query_params.get("again", "")
    if again:
        before = desk(request).registration(again)
        return _page(request, {**fields_of(before.request), "population": before.population, "name": before.name})
    return _page(request, {**_FIRST, "population": request.query_params.get("population", "")})


def _page(request: Request, typed: Mapping[str, str], problem: Problem | None = None) -> Response:
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
        return _page(request, {**_FIRST, **fields}, problem)
    return see_other(f"/steward/registrations/{found.id}")


def request_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the request for the worker that a form says; what was left empty is left out.

    Examples
    --------
    >>> request_of({"path": "dti.csv", "unit_kind": "each-record", "radius": "2.5", "size": "3"})["units"]
    'each-record'
    """
    typed = {name: text.strip() for name, text in fields.items() if text.strip()}
    found: dict[str, Any] = {name: typed[name] for name in ("path", "space", "radius", *_TEXTS) if name in typed}
    found["source"] = typed.get("source", "")
    found["units"] = _EACH_RECORD if typed.get("unit_kind") == _EACH_RECORD else typed.get("units")
    for name in ("normalize", "confirm"):
        found[name] = typed.get(name) == "yes"
    if "labels" in typed:
        found["labels"] = typed["labels"]
        found["labels_public"] = typed.get("labels_public") == "yes"
        if "classes" in typed:
            text = typed["classes"]
            # A range such as 0..9 is for the reader of records to spell out.
            found["classes"] = text if ".." in text else [name.strip() for name in text.split(",") if name.strip()]
    if "covariate" in typed:
        found |= {"covariate": typed["covariate"], "covariate_public": typed.get("covariate_public") == "yes"}
        found["covariate_range"] = _range(typed)
    return found


def fields_of(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the form that says a request; its last box is left empty, since whoever ticks it is to be sure.

    Examples
    --------
    >>> fields_of({"path": "dti.csv", "units": "each-record", "classes": ["a", "b"]})["classes"]
    'a,b'
    """
    found = dict(_FIRST)
    for name, value in request.items():
        if name in found and value is not None and name != "confirm":
            found[name] = _typed(value)
    if found["units"] == _EACH_RECORD:
        found |= {"unit_kind": _EACH_RECORD, "units": ""}
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
