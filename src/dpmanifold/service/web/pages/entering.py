"""Signing in and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpmanifold.service.errors import NotSignedIn, TooMany
from dpmanifold.service.web.pages.showing import Problem, show
from dpmanifold.service.web.security import address
from dpmanifold.service.web.sessions import (
    current,
    form,
    local_path,
    see_other,
    service_of,
    sign_in,
    sign_out,
    start_page,
)
from dpmanifold.service.web.sessions import start_form as typed_before


def login(request: Request) -> Response:
    """Show the sign-in page; whoever is signed in goes on."""
    target = local_path(request.query_params.get("next"))
    if current(request) is not None:
        return see_other(target)
    return _page(request, target)


def _page(request: Request, target: str, problem: Problem | None = None, name: str = "") -> Response:
    return show(
        request, "login.html", problem=problem, render=start_page, title="Sign in", next=target, typed={"name": name}
    )


def enter(request: Request) -> Response:
    """Sign somebody in."""
    fields = typed_before(request)
    name, target = fields.get("name", "").strip(), local_path(fields.get("next"))
    try:
        actor = service_of(request).accounts.signed(name, fields.get("password", ""), address(request))
    except (NotSignedIn, TooMany) as problem:
        response = _page(request, target, Problem(str(problem), problem.status), name[:64])
        if isinstance(problem, TooMany):
            response.headers["retry-after"] = str(max(1, problem.retry_after))
        return response
    return sign_in(request, actor, target)


def leave(request: Request) -> Response:
    """Sign out."""
    form(request)
    return sign_out(request)


ROUTES = [
    Route("/login", login, methods=["GET"]),
    Route("/login", enter, methods=["POST"]),
    Route("/logout", leave, methods=["POST"]),
]
