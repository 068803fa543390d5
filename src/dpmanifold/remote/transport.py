"""HTTP as this client speaks it: encrypted or not leaving the machine, bounded in size and time, and tried again.

Everything that a client asks can be asked twice: it changes nothing, or it has a key under which the service answers
once. So whatever gets lost on the way is sent again, the same bytes, a few times and with growing pauses.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import pathlib
import random
import ssl
import time
import urllib.parse
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from dpmanifold._check import optional_module
from dpmanifold._version import __version__
from dpmanifold.errors import (
    BudgetError,
    DPManifoldError,
    InvalidArgumentError,
    InvalidDataError,
    PromiseError,
    message_from_record,
)
from dpmanifold.serialization import record_from_text

if TYPE_CHECKING:
    import httpx

API = "/api/v1/"
# Seconds between attempts; some more by chance, so that clients of a service that comes back do not come as one.
PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_LONGEST_PAUSE = 60.0  # that a service may ask for
_PATIENCE = 120.0  # for one answer as a whole; each part of it must come within _SILENCE
_CONNECTING, _SILENCE = 10.0, 30.0
LARGEST = 64 * 2**20  # bytes of an answer: more than any release has
_LONGEST_MESSAGE = 1000
_AGAIN = (408, 429, 502, 503, 504)


class ConflictError(InvalidArgumentError):
    """Something stands already that the request contradicts, such as another question under its key."""


class RemoteError(DPManifoldError, RuntimeError):
    """A service cannot be reached, does not take the token, or answers with something that is no answer.

    Where a release may have been paid for, the message names its key: asking again under it costs nothing.

    Attributes
    ----------
    exit_code : of `dpm remote`
    """

    exit_code = 1


_REFUSALS: dict[str, type[DPManifoldError]] = {
    "invalid": InvalidArgumentError,
    "guarantee": PromiseError,
    "over-budget": BudgetError,
    "conflict": ConflictError,
}


@dataclass(frozen=True)
class _Answer:
    """What came back: the status, how long to wait before another attempt, and the body."""

    status: int
    wait: float | None
    body: bytes


def checked_url(url: object) -> str:
    """Return the address of a service as it is known by: without a slash at its end, the host in small letters.

    Examples
    --------
    >>> checked_url("https://Data.Example.org/")
    'https://data.example.org'
    >>> checked_url("http://data.example.org")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: url must begin with https:// ...
    """
    said = urllib.parse.urlsplit(url) if isinstance(url, str) and url.isascii() and url.isprintable() else None
    if said is None or not said.hostname or said.scheme not in ("http", "https") or " " in said.geturl():
        raise InvalidArgumentError("url must be the address of a service, such as https://data.example.org.")
    if said.username is not None or said.password is not None or said.query or said.fragment:
        raise InvalidArgumentError(
            "url must be an address alone, without names, tokens or questions in it: addresses end up in logs. Give "
            "the token as token=, or in DPM_TOKEN."
        )
    if said.scheme == "http" and not _is_loopback(said.hostname):
        raise InvalidArgumentError(
            f"url must begin with https:// unless the service is on this machine (127.0.0.1, ::1, localhost), got "
            f"http://{said.hostname}: everybody on the way could read the token."
        )
    try:
        port = f":{said.port}" if said.port is not None else ""
    except ValueError:
        raise InvalidArgumentError("url has a port that is no number below 65536.") from None
    host = f"[{said.hostname}]" if ":" in said.hostname else said.hostname
    return f"{said.scheme}://{host}{port}{said.path.rstrip('/')}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Transport:
    """The way to one service with one token.

    Parameters
    ----------
    url : of the service, as :func:`checked_url` returns it
    token : goes into the header Authorization, and nowhere else
    ca : a file with the certificates that the service's is checked against, in the place of the usual ones
    """

    def __init__(self, url: str, token: str, ca: str | os.PathLike[str] | None = None) -> None:
        if not (token.isascii() and token.isprintable() and token and " " not in token):
            raise InvalidArgumentError("token must be the text that the service showed when it was made.")
        self._web: Any = optional_module("httpx", "client", "a client of a service")
        self.url, self._token = url, token
        # The certificate is always checked. On this machine nothing is encrypted, and reading the usual ones would take
        # longer than most answers.
        usual = True if url.startswith("https://") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._trusted = usual if ca is None else _trusting(ca)
        self._open, self._process = self._opened(), os.getpid()

    def _opened(self) -> httpx.Client:
        found: httpx.Client = self._web.Client(
            verify=self._trusted,
            # Proxies that the environment names see nothing of what is encrypted; what is not stays on the machine.
            trust_env=self.url.startswith("https://"),
            follow_redirects=False,
            timeout=self._web.Timeout(_SILENCE, connect=_CONNECTING),
            headers={"User-Agent": f"dpmanifold/{__version__}", "Accept-Encoding": "identity"},
        )
        weakref.finalize(self, found.close)  # for those who do not close it
        return found

    def close(self) -> None:
        """Let go of connections."""
        self._open.close()

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON that a service answers."""
        said = {name: str(value) for name, value in query.items() if value is not None}
        return self._read(self.bytes_of(f"{path}?{urllib.parse.urlencode(said)}" if said else path))

    def post(self, path: str, body: bytes, about: str) -> Any:
        """Send JSON and return the JSON that comes back; `about` is what it asks about."""
        return self._read(self._asked("POST", path, body, about))

    def bytes_of(self, path: str) -> bytes:
        """Return what a service answers as it is."""
        return self._asked("GET", path, None, urllib.parse.unquote(path.partition("?")[0]))

    def _asked(self, method: str, path: str, body: bytes | None, about: str) -> bytes:
        """Ask until there is an answer, a few times at most; raises what the answer says where it is a refusal."""
        for pause in (*PAUSES, None):
            wait = None
            try:
                answer = self._once(method, path, body)
                if answer.status not in _AGAIN:
                    return answer.body if answer.status in (200, 201, 202) else self._refuse(answer, about)
                trouble, wait = f"it answers with status {answer.status}", answer.wait
            except self._web.TransportError as problem:
                # Of certificates the reason helps; nothing of it is secret.
                reason = f" ({problem})" if "CERTIFICATE" in str(problem).upper() else ""
                trouble = f"{type(problem).__name__}{reason}"
            if pause is None:
                raise RemoteError(
                    f"{self.url} does not answer, after {len(PAUSES) + 1} attempts: {trouble}. Check the address and "
                    "the network, and ask again."
                )
            _sleep(max(pause, min(wait or 0.0, _LONGEST_PAUSE)) * (1 + 0.25 * random.random()))
        raise AssertionError  # the last pause is None

    def _once(self, method: str, path: str, body: bytes | None) -> _Answer:
        if self._process != os.getpid():  # after a fork connections are the parent's
            self._open, self._process = self._opened(), os.getpid()
        headers = {"Authorization": f"Bearer {self._token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        with self._open.stream(method, f"{self.url}{API}{path}", content=body, headers=headers) as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise RemoteError(f"{self.url} answers in an encoding that was not asked for.")
            wait = response.headers.get("retry-after", "")
            return _Answer(
                response.status_code, float(wait) if wait.isdecimal() else None, b"".join(self._parts(response))
            )

    def _parts(self, response: httpx.Response) -> Iterator[bytes]:
        """Give the pieces of an answer, as long as they are not too many and do not take too long."""
        size, end = 0, time.monotonic() + _PATIENCE
        for part in response.iter_raw():
            size += len(part)
            if size > LARGEST:
                raise RemoteError(f"{self.url} answers with more than {LARGEST >> 20} MiB, and no release is so large.")
            if time.monotonic() > end:
                raise self._web.ReadTimeout("an answer that does not end")
            yield part

    def _read(self, body: bytes) -> Any:
        try:
            return record_from_text(body.decode("utf-8"))
        except (ValueError, RecursionError, InvalidDataError):
            raise RemoteError(f"{self.url} answers with something that is no JSON. Check the address.") from None

    def _refuse(self, answer: _Answer, about: str) -> NoReturn:
        """Raise what an answer says that is no success."""
        kind, message = self._told(answer.body)
        if answer.status == 401:
            raise RemoteError(
                f"{self.url} does not take the token: it is expired, revoked or of another service. Make a new one on "
                "the service's account page, and store it with: dpm remote login URL."
            )
        if 300 <= answer.status < 400:
            raise RemoteError(f"{self.url} sends elsewhere, which is not followed. Give the service's own address.")
        if answer.status == 404:
            raise InvalidArgumentError(f"{about}: {message or 'there is nothing of this name.'}")
        refusal = _REFUSALS.get(kind)
        if refusal is not None and 400 <= answer.status < 500:
            raise refusal("{message}", message=message or f"the service refuses it ({kind}).")
        raise RemoteError(f"{self.url} answers with status {answer.status}{f': {message}' if message else '.'}")

    def _told(self, body: bytes) -> tuple[str, str]:
        """Return kind and message of an error, as far as a terminal can show them."""
        try:
            said = self._shown(record_from_text(body.decode("utf-8"))["error"])
            kind, message = str(said["kind"]), str(said["message"])
        except (ValueError, RecursionError, KeyError, TypeError, InvalidDataError):
            return "", ""
        with contextlib.suppress(ValueError, RecursionError, KeyError, TypeError):
            return kind, message_from_record(said)
        return kind, message

    def _shown(self, said: Any) -> Any:
        """Return a record whose texts can be shown."""
        if isinstance(said, dict):
            return {name: self._shown(value) for name, value in said.items()}
        return printable(said).replace(self._token, "(the token)") if isinstance(said, str) else said


def _trusting(ca: str | os.PathLike[str]) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=pathlib.Path(ca))
    except (OSError, ssl.SSLError):
        raise InvalidArgumentError(f"ca must be a file with certificates (.pem), got {os.fspath(ca)}.") from None


def printable(text: str) -> str:
    r"""Return text of a service as a terminal can show it: whatever it holds, it gives no orders.

    Examples
    --------
    >>> printable("\x1b[31mred")
    ' [31mred'
    """
    return "".join(letter if letter.isprintable() else " " for letter in text[:_LONGEST_MESSAGE])


def quoted(*parts: object) -> str:
    """Return parts of a path: whatever they hold, each stays one part.

    Examples
    --------
    >>> quoted("releases", "../x", "result")
    'releases/..%2Fx/result'
    """
    return "/".join(urllib.parse.quote(str(part), safe="") for part in parts)


def entry(record: Any, name: str, kind: type[Any] | tuple[type[Any], ...]) -> Any:
    """Return an entry of what a service answered, if it is there and of its kind.

    Examples
    --------
    >>> entry({"id": 3}, "id", str)
    Traceback (most recent call last):
    ...
    dpmanifold.remote.transport.RemoteError: the service's answer has no 'id' as it should: ...
    """
    if not isinstance(record, Mapping) or not isinstance(record.get(name), kind):
        raise RemoteError(f"the service's answer has no {name!r} as it should: it may be of another version.")
    return record[name]


_sleep = time.sleep
