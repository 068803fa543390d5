"""Signing in and out, and one's own account: tokens for programs, and the password."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.service.http_errors import NotSignedIn, TooMany
from dpmanifold.service.web.pages.showing import Problem, show, tried, whole_in
from dpmanifold.service.web.security import address
from dpmanifold.service.web.sessions import (
    current,
    desk,
    form,
    local_path,
    see_other,
    service_of,
    sign_in,
    sign_out,
    signed_in,
    start_form as typed_before,
    start_page,
)

_DONE = {
    "password": "The password is changed. Other logins have ended, and all tokens are revoked.",
    "revoked": "The token is revoked.",
}
_NOTHING: dict[str, Any] = {
    "secret": None, "token_problem": None, "password_problem": None, "typed": {"label": "", "days": ""},
}  # fmt: skip


def account(request: Request) -> Response:
    """Show tokens and forms."""
    return _page(request, done=_DONE.get(request.query_params.get("done", "")))


def _page(request: Request, problem: Problem | None = None, **context: Any) -> Response:
    shown = {**_NOTHING, "done": None, "url": service_of(request).settings.url, "tokens": desk(request).tokens()}
    return show(request, "account.html", problem=problem, title="Account", **{**shown, **context})


def make_token(request: Request) -> Response:
    """Make a token, and show its secret this once."""
    fields = form(request)
    made, problem = tried(lambda: desk(request).make_token(fields.get("label", ""), whole_in(fields, "days")))
    if made is None:
        typed = {"label": fields.get("label", ""), "days": fields.get("days", "")}
        return _page(request, problem, token_problem=None if problem is None else problem.text, typed=typed)
    return _page(request, secret=made[1])


def revoke_token(request: Request) -> Response:
    """Revoke a token."""
    form(request)
    desk(request).revoke_token(request.path_params["token"])
    return see_other("/account?done=revoked")


def change_password(request: Request) -> Response:
    """Change the password; this login goes on as a new one."""
    fields = form(request)
    at, actor = desk(request), signed_in(request).actor

    def changed() -> bool:
        if fields.get("new", "") != fields.get("again", ""):
            raise InvalidArgumentError("The new password was typed in two ways: type the same twice.")
        at.change_password(fields.get("old", ""), fields.get("new", ""))
        return True

    _, problem = tried(changed)
    if problem is not None:
        return _page(request, problem, password_problem=problem.text)
    return sign_in(request, actor, "/account?done=password")


def login(request: Request) -> Response:
    """Show the sign-in page; whoever is signed in goes on."""
    target = local_path(request.query_params.get("next"))
    if current(request) is not None:
        return see_other(target)
    return _door(request, target)


def _door(request: Request, target: str, problem: Problem | None = None, name: str = "") -> Response:
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
        response = _door(request, target, Problem(str(problem), problem.status), name[:64])
        if isinstance(problem, TooMany):
            response.headers["retry-after"] = str(max(1, problem.retry_after))
        return response
    return sign_in(request, actor, target)


def leave(request: Request) -> Response:
    """Sign out."""
    form(request)
    return sign_out(request)
