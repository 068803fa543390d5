"""Who looks at a page, and what pages need: a sign-in, forms that nobody else can send, templates.

A page is a plain function of a request::

    def history(request: Request) -> Response:
        view = desk(request).history(request.path_params["population"])
        return page(request, "history.html", title="History", view=view)

    def revoke(request: Request) -> Response:      # POST
        fields = form(request)                     # where it came from and its csrf field are checked here
        desk(request).revoke_token(fields["id"])
        return see_other("/account")
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import urllib.parse
from typing import Any, cast

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from dpmanifold.service.accounts import Actor
from dpmanifold.service.credentials import Login
from dpmanifold.service.desk import Desk
from dpmanifold.service.http_errors import Forbidden, NotSignedIn, ServiceError
from dpmanifold.service.service import Service
from dpmanifold.service.web.security import WrongType, body_of, content_type, cookie_of, has_controls, refuse_foreign

COOKIE = "__Host-dpm"
START_COOKIE = "__Host-dpm-start"  # of somebody who has not signed in yet
ROLE = "dpmanifold.role"  # where the log finds the role of whoever asked
_LOGIN = "dpmanifold.login"
_MOST_FIELDS = 200
_STALE = "The page was too old, or cookies are switched off. Open the page again and send it there."


def service_of(request: Request) -> Service:
    """Return the service that a request is for."""
    return cast("Service", request.app.state.service)


def current(request: Request) -> Login | None:
    """Return the login of whoever asks; None where nobody is signed in."""
    if _LOGIN not in request.scope:
        value = cookie_of(request, COOKIE)
        login = None if not value else service_of(request).logins.find(value)
        request.scope[_LOGIN] = login
        if login is not None:
            request.scope[ROLE] = login.actor.role
    return cast("Login | None", request.scope[_LOGIN])


def signed_in(request: Request) -> Login:
    """Return the login of whoever asks.

    Raises
    ------
    NotSignedIn : nobody is signed in; the answer sends a browser to the sign-in page and back afterwards
    """
    login = current(request)
    if login is None:
        raise NotSignedIn("Sign in first.")
    return login


def desk(request: Request, *roles: str) -> Desk:
    """Return the desk of whoever is signed in; where roles are given, for others there is nothing here."""
    found = service_of(request).desk(signed_in(request).actor)
    if roles:
        found.require(*roles)
    return found


def page(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a template.

    Every template knows `login` (None where nobody is signed in), `csrf` (for the hidden field of every form), `here`
    (the path of this page), `site` (the title of the service), `title` (the service's where the page gives none) and
    `static_url(name)`.
    """
    login, title = current(request), service_of(request).settings.title
    csrf = "" if login is None else login.csrf
    known = {"login": login, "csrf": csrf, "here": request.scope["path"], "site": title, "title": title}
    templates = cast("jinja2.Environment", request.app.state.templates)
    return HTMLResponse(templates.get_template(template).render({**known, **context}), status_code=status)


def see_other(path: str) -> RedirectResponse:
    """Send the browser to a page of this service, after a form was taken."""
    return RedirectResponse(local_path(path), status_code=303)


def local_path(path: str | None) -> str:
    """Return a path of this service, and the first page for anything that could lead elsewhere.

    Examples
    --------
    >>> local_path("/releases?before=3"), local_path("//evil.example"), local_path("https://evil.example")
    ('/releases?before=3', '/', '/')
    """
    if not path or not path.startswith("/") or path.startswith("//") or "\\" in path or has_controls(path):
        return "/"
    return path


def sign_in_path(request: Request) -> str:
    """Return the address of the sign-in page that leads back to what was asked for."""
    path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
    if request.method not in ("GET", "HEAD") or path == "/":
        return "/login"
    asked = urllib.parse.quote(path) + (f"?{query}" if query else "")
    return f"/login?next={urllib.parse.quote(local_path(asked), safe='/')}"


def form(request: Request) -> dict[str, str]:
    """Return the fields of a form of somebody who is signed in, once it is sure that our page sent it.

    Raises
    ------
    Forbidden : another site's page sent it, or its csrf field is not that of this login
    NotSignedIn : nobody is signed in
    """
    refuse_foreign(request, service_of(request).settings)
    login = signed_in(request)
    return _checked(_fields(request), login.csrf)


def start_page(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """Render the page of a form that is sent before one has signed in; :func:`start_form` takes it."""
    value = cookie_of(request, START_COOKIE)
    fresh = not _plausible(value)
    if fresh:
        value = secrets.token_urlsafe(32)
    response = page(request, template, status=status, **{**context, "csrf": _start_csrf(request, value)})
    if fresh:
        response.set_cookie(START_COOKIE, value, path="/", secure=True, httponly=True, samesite="strict")
    return response


def start_form(request: Request) -> dict[str, str]:
    """Return the fields of a form of :func:`start_page`, once it is sure that our page sent it."""
    refuse_foreign(request, service_of(request).settings)
    value = cookie_of(request, START_COOKIE)
    if not _plausible(value):
        raise Forbidden(_STALE)
    return _checked(_fields(request), _start_csrf(request, value))


def sign_in(request: Request, actor: Actor, path: str) -> RedirectResponse:
    """Begin a login of somebody whose password was right, and send the browser on."""
    logins = service_of(request).logins
    old = cookie_of(request, COOKIE)
    if old:
        logins.end(old)
    value, _ = logins.begin(actor)
    response = see_other(path)
    seconds = int(service_of(request).settings.login_hours * 3600)
    response.set_cookie(COOKIE, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="strict")
    response.delete_cookie(START_COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    return response


def sign_out(request: Request) -> RedirectResponse:
    """End a login; call :func:`form` before."""
    value = cookie_of(request, COOKIE)
    if value:
        service_of(request).logins.end(value)
    response = see_other("/login")
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    return response


def _plausible(value: str) -> bool:
    return len(value) == 43 and value.isascii() and value.replace("-", "").replace("_", "").isalnum()


def _start_csrf(request: Request, value: str) -> str:
    """Return what the form says of somebody with this cookie: only this process can work it out."""
    return hmac.new(request.app.state.start_key, value.encode(), hashlib.sha256).hexdigest()


def _checked(fields: dict[str, str], csrf: str) -> dict[str, str]:
    if not hmac.compare_digest(fields.pop("csrf", "").encode(), csrf.encode()):
        raise Forbidden(_STALE)
    return fields


def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a url-encoded body, each of which comes once."""
    if content_type(request) != "application/x-www-form-urlencoded":
        raise WrongType("A form must be sent as application/x-www-form-urlencoded.")
    try:
        text = body_of(request).decode("ascii")
        pairs = urllib.parse.parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise ServiceError("The form cannot be read. Open the page again and send it there.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs) or any("\x00" in name + value for name, value in pairs):
        raise ServiceError("The form has a field twice, or one that is not text.")
    return fields
