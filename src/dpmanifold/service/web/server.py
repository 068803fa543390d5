"""The server that runs the application: one process, HTTP/1.1, TLS where there is a certificate."""

from __future__ import annotations

import uvicorn

from dpmanifold.service.service import Service
from dpmanifold.service.settings import UNIX
from dpmanifold.service.web.app import make_app

MOST_CONNECTIONS = 200
LONGEST_HEAD = 16_384  # bytes of a request's first line and headers
KEEP_ALIVE, GRACE = 15, 20  # seconds that a connection may idle, and that a request has left when the service stops


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
        http="h11",
        ws="none",
        lifespan="off",
        # Only the proxy on this machine is believed about where a request came from; without one, nobody is.
        proxy_headers=settings.behind_proxy,
        forwarded_allow_ips="*" if socket is not None else "127.0.0.1,::1",
        server_header=False,
        date_header=False,
        access_log=False,  # the application writes its own, without addresses and queries
        log_config=None,
        log_level="warning",
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )
    return uvicorn.Server(config)
