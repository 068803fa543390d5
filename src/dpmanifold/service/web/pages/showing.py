"""What the functions of all pages share: templates with their words, and errors beside the form that caused them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import HTMLResponse

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy import Promise
from dpmanifold.service.errors import Forbidden, NotFound, NotSignedIn, ServiceError, Unavailable
from dpmanifold.service.questions import AMOUNTS, promise_from_json
from dpmanifold.service.web.answers import planning
from dpmanifold.service.web.pages.words import in_form
from dpmanifold.service.web.sessions import page

T = TypeVar("T")
Render = Callable[..., HTMLResponse]


class Problem(NamedTuple):
    """Why a form was refused, for whoever sent it, and the status of the answer that says so."""

    text: str
    status: int


def show(
    request: Request, template: str, *, problem: Problem | None = None, render: Render = page, **context: Any
) -> HTMLResponse:
    """Render a template; one with a problem has that problem's status."""
    text, status = (None, 200) if problem is None else problem
    return render(request, template, status=status, problem=text, **context)


def tried(make: Callable[[], T]) -> tuple[T | None, Problem | None]:
    """Return what a call makes, or what to say beside the form; what is no fault of the form goes on."""
    try:
        with planning():
            return make(), None
    except (NotFound, NotSignedIn, Forbidden, Unavailable):
        raise
    except ServiceError as problem:
        return None, Problem(in_form(problem.message), problem.status)


def typed_promise(fields: Mapping[str, str]) -> Promise:
    """Return the promise that was typed: `kind`, `amount` and, for the kind that has one, `delta`."""
    kind = fields.get("kind", "")
    if kind not in AMOUNTS:
        raise InvalidArgumentError(f"kind must be one of {', '.join(AMOUNTS)}, got {kind[:40]!r}.")
    record = {"kind": kind, AMOUNTS[kind]: fields.get("amount", "").strip()}
    if kind == "ApproxDP":
        record["delta"] = fields.get("delta", "").strip()
    return promise_from_json(record)


def number_in(fields: Mapping[str, str], name: str) -> float:
    """Return a number that was typed."""
    text = fields.get(name, "").strip()
    try:
        return float(text)
    except ValueError:
        raise InvalidArgumentError(f"{name} must be a number, got {text[:40]!r}.") from None


def after_in(request: Request) -> int:
    """Return the number behind which a page of a long list starts."""
    after = request.query_params.get("after", "")
    return int(after) if after.isascii() and after.isdigit() and len(after) < 18 else 0


def whole_in(fields: Mapping[str, str], name: str) -> int:
    """Return a whole number that was typed."""
    text = fields.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidArgumentError(f"{name} must be a whole number, got {text[:40]!r}.")
    return int(text)
