"""The server that runs the application: one process, HTTP/1.1, TLS where there is a certificate."""

from __future__ import annotations

import asyncio
import pathlib
import socket
from typing import NamedTuple, final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpmanifold.service.service import Service
from dpmanifold.service.settings import UNIX
from dpmanifold.service.web.app import make_app
from dpmanifold.service.web.security import Forwarded

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
