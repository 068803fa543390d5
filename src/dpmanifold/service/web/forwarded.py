"""Where a request comes from, as the proxy on this machine says it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import final

from starlette.types import ASGIApp, Receive, Scope, Send

_HEADER = b"x-forwarded-for"


@final
class Forwarded:
    """Believe the last address of X-Forwarded-For, which the proxy added: those before it, anybody can write.

    Only for an application that nobody but a proxy reaches: by a socket file, or from this machine.

    Parameters
    ----------
    app : the layers below
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request with its address."""
        if scope["type"] == "http" and _is_near(scope.get("client")):
            found = last_address(value for name, value in scope["headers"] if name.lower() == _HEADER)
            if found is not None:
                scope = {**scope, "client": (found, 0)}
        await self._app(scope, receive, send)


def last_address(values: Iterable[bytes]) -> str | None:
    """Return the last address of a header that may be there several times, without a port; None where it is none.

    Examples
    --------
    >>> last_address([b"198.51.100.1, 203.0.113.9"]), last_address([b"a", b"[2001:db8::1]:80"]), last_address([b"a, "])
    ('203.0.113.9', '2001:db8::1', None)
    """
    said = b",".join(values).decode("latin-1").rpartition(",")[2].strip()
    if said.startswith("["):
        said = said[1:].partition("]")[0]
    elif said.count(":") == 1:
        said = said.partition(":")[0]
    try:
        return str(ipaddress.ip_address(said))
    except ValueError:
        return None


def _is_near(client: tuple[str, int] | None) -> bool:
    """Return whether a connection comes by a socket file or from this machine."""
    if client is None or not client[0]:
        return True
    try:
        return ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False
