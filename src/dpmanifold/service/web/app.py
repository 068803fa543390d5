"""The application of the web process: layers, routes, templates, static files, and whether the parts answer."""

from __future__ import annotations

import hashlib
import pathlib
import secrets
import threading
import time
from collections.abc import Callable
from typing import final

import jinja2
from sqlalchemy import text
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from dpmanifold.service import beats
from dpmanifold.service.errors import NotFound
from dpmanifold.service.service import Service
from dpmanifold.service.web import pages
from dpmanifold.service.web.answers import API, Errors, RequestLog, answer_error, as_json
from dpmanifold.service.web.api import Api
from dpmanifold.service.web.pages.words import WORDS
from dpmanifold.service.web.security import KnownHosts, SecurityHeaders, WholeBody
from dpmanifold.service.web.turns import Turns

_FRESH = 1.0  # seconds for which an answer stands: nobody has to sign in here, so asking often costs nothing
_HERE = pathlib.Path(__file__).parent


def make_app(service: Service) -> Starlette:
    """Return the application of a service.

    Parameters
    ----------
    service : what is asked; it is not closed here
    """
    settings = service.settings
    assets = Assets(_HERE / "static")
    routes: list[Route] = [Health(service).route, assets.route, *pages.ROUTES]
    app = Starlette(
        routes=[Mount(API, app=Api(settings.title)), *routes],
        middleware=[
            Middleware(SecurityHeaders, https=settings.url.startswith("https:")),
            Middleware(RequestLog, routes={route.endpoint: route.path for route in routes}),
            Middleware(Errors),
            Middleware(KnownHosts, hosts=settings.hosts),
            Middleware(WholeBody, limit=settings.body_limit),
        ],
        exception_handlers={HTTPException: answer_error},
    )
    app.router.redirect_slashes = False  # a redirect would tell that the other address is one
    app.state.service = service
    app.state.turns = Turns()
    app.state.start_key = secrets.token_bytes(32)
    app.state.templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    app.state.templates.globals.update({**WORDS, "static_url": assets.url})
    return app


@final
class Health:
    """The state of a service.

    Parameters
    ----------
    service : whose
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._until, self._known = 0.0, {"database": False, "ledger": False, "worker": False}
        self.route = Route("/health", self._answer, methods=["GET"], name="health")

    def _answer(self, _: Request) -> Response:
        with self._lock:
            if time.monotonic() >= self._until:
                self._known = {
                    "database": _answers(lambda: self._service.database.value(text("SELECT 1"))),
                    "ledger": _answers(self._service.ledger.populations),
                    "worker": _answers(lambda: beats.is_alive(self._service.database)),
                }
                self._until = time.monotonic() + _FRESH
            known = dict(self._known)
        status = 200 if known["database"] and known["ledger"] else 503  # without the worker, what people ask waits
        return as_json({"status": "ok" if all(known.values()) else "degraded", **known}, status)


def _answers(part: Callable[[], object]) -> bool:
    try:
        return part() is not False
    except Exception:  # whatever it is, it does not answer
        return False


_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


@final
class Assets:
    """The files of a folder.

    Files may name each other by relative addresses: all of them share one digest, of everything in the folder.

    Parameters
    ----------
    folder : read once; files of other kinds than pages use are left out
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): (path.read_bytes(), _TYPES[path.suffix])
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix in _TYPES
        }
        digest = hashlib.sha256()
        for name, (content, _) in self._files.items():
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        self._digest = digest.hexdigest()[:16]
        self.route = Route("/static/{digest}/{name:path}", self._answer, methods=["GET"], name="static")

    def url(self, name: str) -> str:
        """Return the address of a file; a name that is not there is an error of whoever wrote the template."""
        if name not in self._files:
            raise KeyError(f"there is no static file {name}; there are: {', '.join(self._files)}.")
        return f"/static/{self._digest}/{name}"

    def _answer(self, request: Request) -> Response:
        found = self._files.get(request.path_params["name"])
        if found is None or request.path_params["digest"] != self._digest:
            raise NotFound
        content, media_type = found
        return Response(content, media_type=media_type)
