"""One line of the log for each request: by which method and route, how it ended and how long it took. Not by whom."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpmanifold.service.logs import log
from dpmanifold.service.web.answers import INCIDENT, ROUTE
from dpmanifold.service.web.sessions import ROLE

_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


@final
class RequestLog:
    """Write the log.

    Parameters
    ----------
    app : the layers below
    routes : path templates by endpoint
    write : where a line goes
    """

    def __init__(self, app: ASGIApp, routes: Mapping[Any, str], write: Callable[..., None] = log) -> None:
        self._app = app
        self._routes = routes
        self._write = write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the layers below do, and write a line."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            incident = scope.get(INCIDENT)
            if incident is not None:
                self._write("incident", "error", **incident)
            self._write(
                "request",
                method=scope["method"] if scope["method"] in _METHODS else "other",
                route=scope.get(ROUTE) or self._routes.get(scope.get("endpoint")),
                status=status,
                milliseconds=round(1000 * (time.perf_counter() - begun), 1),
                role=scope.get(ROLE),
            )
