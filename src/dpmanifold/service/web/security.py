"""What every request passes and every answer carries: hosts, sizes, headers, and where a form came from.

Plain ASGI layers, each of one idea. Nothing here knows who is asking.
"""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, final

import anyio
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpmanifold.service.http_errors import Forbidden, ServiceError
from dpmanifold.service.settings import Settings, is_loopback

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# A report is a document of its own, with its styles inside: it may show itself and do nothing.
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": (
        "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), "
        "microphone=(), midi=(), payment=(), publickey-credentials-get=(), serial=(), usb=()"
    ),
}
ONE_YEAR = 365 * 24 * 60 * 60  # seconds
KEPT = f"public, max-age={ONE_YEAR}, immutable"
STATIC = "/static/"
BODY_SECONDS = 20.0  # in which a request must have arrived: nobody holds a place by sending slowly
BODY = "dpmanifold.body"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


@final
class TooLarge(ServiceError):
    """The request is larger than the service takes."""

    status, kind = 413, "too-large"


@final
class TooSlow(ServiceError):
    """The request did not arrive in time."""

    status, kind = 408, "too-slow"


@final
class UnknownHost(ServiceError):
    """The request is for another host than this one."""

    status, kind = 421, "unknown-host"


@final
class WrongType(ServiceError):
    """The body is not of the kind that is read here."""

    status, kind = 415, "wrong-type"


@dataclass(eq=False)
class Layer(ABC):
    """A layer of the application, which goes round requests.

    Parameters
    ----------
    app : the layers below
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is no request."""
        if scope["type"] == "http":
            await self.answer(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    @abstractmethod
    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""


@final
@dataclass(eq=False)
class SecurityHeaders(Layer):
    """Put the same headers on every answer, errors and refusals included; an answer to HEAD loses its body.

    Parameters
    ----------
    app : the layers below
    https : whether browsers are told to come back by https alone
    """

    OWN: ClassVar[frozenset[bytes]] = frozenset(
        name.encode() for name in (*HEADERS, "content-security-policy", "cache-control", "strict-transport-security")
    )

    https: bool

    def __post_init__(self) -> None:
        strict = {"strict-transport-security": f"max-age={ONE_YEAR}"} if self.https else {}
        self._always = [(name.encode(), value.encode()) for name, value in {**HEADERS, **strict}.items()]

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the layers below do, with the headers."""

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", []))
                # Its own policy is left to a report, and to nothing else.
                report = (b"content-security-policy", REPORT_POLICY.encode()) in given
                kept = message["status"] == 200 and scope["path"].startswith(STATIC)
                message["headers"] = [
                    *((name, value) for name, value in given if name.lower() not in self.OWN),
                    *self._always,
                    (b"content-security-policy", (REPORT_POLICY if report else POLICY).encode()),
                    (b"cache-control", (KEPT if kept else "no-store").encode()),
                ]
            elif scope["method"] == "HEAD" and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app(scope, receive, dressed)


@final
@dataclass(eq=False)
class KnownHosts(Layer):
    """Refuse what is asked of another host: a name that an attacker points here does not get an answer.

    Parameters
    ----------
    app : the layers below
    hosts : values of the Host header that are answered, in small letters
    """

    hosts: tuple[str, ...]

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is asked of this host."""
        said = [value for name, value in scope["headers"] if name.lower() == b"host"]
        if len(said) != 1 or said[0].decode("latin-1").lower() not in self.hosts:
            raise UnknownHost("This service is not known by the host that was asked for.")
        await self.app(scope, receive, send)


@final
@dataclass(eq=False)
class WholeBody(Layer):
    """Take in the body of a request, up to a limit of bytes and of time, before anybody works on it.

    The bytes lie in the scope under :data:`BODY`, where functions that cannot wait find them.

    Parameters
    ----------
    app : the layers below
    limit : the largest body, in bytes
    """

    limit: int

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request whose body has arrived."""
        self._refuse_announced(scope)
        try:
            with anyio.fail_after(BODY_SECONDS):
                scope[BODY] = await self._taken(receive)
        except TimeoutError:
            raise TooSlow("The request did not arrive in time. Send it again.") from None
        if scope[BODY] is not None:  # else whoever asked has gone
            await self.app(scope, receive, send)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"A request may have at most {self.limit} bytes.")

    def _refuse_announced(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name.lower() == b"content-length" and (not value.isdigit() or int(value[:20]) > self.limit):
                raise self._too_large()

    async def _taken(self, receive: Receive) -> bytes | None:
        """Return the body; None where the connection ended before it did. What was announced is not believed."""
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self.limit:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)


def body_of(request: Request) -> bytes:
    """Return the body that :class:`WholeBody` took in."""
    taken: bytes = request.scope.get(BODY, b"")
    return taken


def content_type(request: Request) -> str:
    """Return what a request says its body is, without parameters, in small letters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def cookie_of(request: Request, name: str) -> str:
    """Return the value of one of our cookies; empty where it is not there, or there twice.

    A name counts as its bytes are. Another host of the same site can set cookies for this one, though none whose name
    begins with __Host-; a reader that took blanks of other alphabets off a name would take such a cookie for ours.
    """
    said = b";".join(value for key, value in request.scope["headers"] if key.lower() == b"cookie")
    pairs = [pair.strip(b" \t").partition(b"=") for pair in said.split(b";")]
    found = [value for key, _, value in pairs if key == name.encode()]
    return found[0].decode("ascii") if len(found) == 1 and found[0].isascii() else ""


def address(request: Request) -> str:
    """Return where a request comes from, for limits of attempts; one word for all that come by a socket file."""
    return request.client.host if request.client is not None else "local"


def has_controls(text: str) -> bool:
    """Return whether a text has control characters, which no name here has."""
    return _CONTROLS.search(text) is not None


def refuse_foreign(request: Request, settings: Settings) -> None:
    """Refuse a form that another site's page sent.

    A browser says where a form comes from in Origin. As our pages send no referrer, it says `null` there for their
    forms too; then, and where it says nothing, Sec-Fetch-Site decides, which no page can forge either.

    Raises
    ------
    Forbidden : the form comes from elsewhere, or from nobody knows where
    """
    origins, sites = (request.headers.getlist(name) for name in ("origin", "sec-fetch-site"))
    origin, site = (*origins, "null")[0], (*sites, None)[0]
    scheme = "https" if settings.certificate else urllib.parse.urlsplit(settings.url).scheme
    own = origin.lower() == f"{scheme}://{request.headers['host'].lower()}" and site in (None, "same-origin")
    ours = own or (origin == "null" and site == "same-origin")
    if not ours or len(origins) > 1 or len(sites) > 1:  # no browser says it twice
        raise Forbidden("This form was not sent from a page of this service. Open the page again and send it there.")


_HEADER = b"x-forwarded-for"


@final
class Forwarded(Layer):
    """Believe the last address of X-Forwarded-For, which the proxy added: those before it, anybody can write.

    Only for an application that nobody but a proxy reaches: by a socket file, or from this machine.

    Parameters
    ----------
    app : the layers below
    """

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request with its address."""
        if _is_near(scope.get("client")):
            found = last_address(value for name, value in scope["headers"] if name.lower() == _HEADER)
            if found is not None:
                scope = {**scope, "client": (found, 0)}
        await self.app(scope, receive, send)


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
    return client is None or not client[0] or is_loopback(client[0])
