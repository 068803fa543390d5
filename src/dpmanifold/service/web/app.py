"""The application of the web process: layers, routes, templates, static files, and whether the parts answer."""

from __future__ import annotations

import asyncio
import hashlib
import pathlib
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, final

import jinja2
import uvicorn
from sqlalchemy import text
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpmanifold.service import beats
from dpmanifold.service.http_errors import NotFound
from dpmanifold.service.service import Service
from dpmanifold.service.settings import UNIX
from dpmanifold.service.web import pages
from dpmanifold.service.web.answers import API, Errors, RequestLog, answer_error, as_json
from dpmanifold.service.web.api import Api
from dpmanifold.service.web.pages.words import WORDS
from dpmanifold.service.web.security import Forwarded, KnownHosts, SecurityHeaders, WholeBody
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


# -------------------------------------------------------------------- the server that runs the application

# One process, HTTP/1.1, TLS where there is a certificate.


MOST_CONNECTIONS = 200
LONGEST_HEAD = 16_384  # bytes of a request's first line and headers
KEEP_ALIVE, GRACE = 15, 20  # seconds that a connection may idle, and that a request has left when the service stops

SOCKET_MODE = 0o660
OF_ADDRESS = 40
"""How many connections of those one address may hold, where no proxy stands between."""
LOOK_SECONDS = 20.0
"""In which the headers of a request must have arrived, and a part of an answer must have been read."""
LEAST_READ = 16_384
"""Bytes of an answer that must have been read in that time."""


class _Seen(NamedTuple):
    """What was seen of a connection: the latest request, whether it is answered, and what nobody has read yet."""

    cycle: object
    answered: bool
    unread: int


@final
class Patient(H11Protocol):
    """HTTP/1.1 that waits only so long, for a request or a reader: who is slow keeps nobody else out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look whether the other side does its part; an address that holds too many places gets no more."""
        super().connection_made(transport)
        if self._is_one_too_many():
            transport.abort()
        else:
            self._look(None)

    def _is_one_too_many(self) -> bool:
        if self.client is None or isinstance(self.config.app, Forwarded):
            return False  # they all come from the proxy, which has limits of its own
        held = [one.client[0] for one in self.connections if isinstance(one, Patient) and one.client is not None]
        return held.count(self.client[0]) > OF_ADDRESS

    def _look(self, before: _Seen | None) -> None:
        """End a connection where nothing happened since the last look; also one that is closing, but not read."""
        if self not in self.connections:
            return
        answered = self.cycle is None or self.cycle.response_complete
        now = _Seen(self.cycle, answered, self.transport.get_write_buffer_size())
        if before is not None and _is_stuck(before, now):
            self.transport.abort()  # to close it would wait for the reader
        else:
            self.loop.call_later(LOOK_SECONDS, self._look, now)


def _is_stuck(before: _Seen, now: _Seen) -> bool:
    if before.cycle is not now.cycle:
        return False
    if now.unread:
        return 0 < before.unread < now.unread + LEAST_READ
    return now.answered and not before.unread


@final
class Server(uvicorn.Server):
    """A server whose socket file is open to its user and group alone: whoever writes to it can say where from."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        if self.config.uds is not None:
            _reserve(pathlib.Path(self.config.uds))
        await super().startup(sockets)


def _reserve(path: pathlib.Path) -> None:
    """Leave a socket file with the right mode, which the server keeps: there is no moment at which it has another."""
    if not path.is_socket():
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    path.chmod(SOCKET_MODE)


def server_of(service: Service) -> Server:
    """Return the server of a service, which `run` starts; SIGTERM and SIGINT end it once requests are answered.

    Parameters
    ----------
    service : is not closed by it
    """
    settings = service.settings
    app = make_app(service)
    config = uvicorn.Config(
        # Only the proxy on this machine is believed about where a request came from; without one, nobody is.
        Forwarded(app) if settings.behind_proxy else app,
        host=settings.host,
        port=settings.port,
        uds=settings.host.removeprefix(UNIX) if settings.host.startswith(UNIX) else None,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.private_key,
        http=Patient,
        ws="none",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        access_log=False,  # the application writes its own, without addresses and queries
        log_config=None,
        log_level="error",
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )
    return Server(config)
