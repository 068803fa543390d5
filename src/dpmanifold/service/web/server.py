"""The server that runs the application: one process, HTTP/1.1, TLS where there is a certificate."""

from __future__ import annotations

import asyncio
from typing import Any, final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpmanifold.service.service import Service
from dpmanifold.service.settings import UNIX
from dpmanifold.service.web.app import make_app

MOST_CONNECTIONS = 200
LONGEST_HEAD = 16_384  # bytes of a request's first line and headers
KEEP_ALIVE, GRACE = 15, 20  # seconds that a connection may idle, and that a request has left when the service stops

HEAD_SECONDS = 20.0  # in which the headers of a request must have arrived


@final
class Patient(H11Protocol):
    """HTTP/1.1 that waits for a request only so long: a connection that sends slowly keeps nobody else out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look whether requests come."""
        super().connection_made(transport)
        self._look(None)

    def _look(self, before: Any) -> None:
        """Close a connection that waits for a request as it did the last time one looked."""
        if self.transport.is_closing():
            return
        waiting = self.cycle is None or self.cycle.response_complete
        now = ("waiting", id(self.cycle)) if waiting else None
        if now is not None and now == before:
            self.transport.close()
            return
        self.loop.call_later(HEAD_SECONDS, self._look, now)


def server_of(service: Service) -> uvicorn.Server:
    """Return the server of a service, which `run` starts; SIGTERM and SIGINT end it once requests are answered.

    Parameters
    ----------
    service : is not closed by it
    """
    settings = service.settings
    socket = settings.host.removeprefix(UNIX) if settings.host.startswith(UNIX) else None
    config = uvicorn.Config(
        make_app(service),
        host=settings.host,
        port=settings.port,
        uds=socket,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.private_key,
        http=Patient,
        ws="none",
        lifespan="off",
        # Only the proxy on this machine is believed about where a request came from; without one, nobody is.
        proxy_headers=settings.behind_proxy,
        forwarded_allow_ips="*" if socket is not None else "127.0.0.1,::1",
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
    return uvicorn.Server(config)
