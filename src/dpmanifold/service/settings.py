"""Settings of a service: one TOML file, whose every line the environment can override."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import math
import os
import pathlib
import tomllib
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError

PREFIX = "DPM_SERVICE_"
WHICH = f"{PREFIX}CONFIG"
"""Names the file itself, for commands."""
UNIX = "unix:"
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
_LARGEST_PORT = 65_535

EXAMPLE = """\
# A service of dpmanifold. Relative paths are relative to the folder of this file.
# Every line can be overridden by the environment: DPM_SERVICE_<TABLE>_<NAME>, such as DPM_SERVICE_WEB_PORT=8443.
# After a change: dpm service check --config dpm-service.toml

[service]
title = "Private statistics"
database = "state/service.db"        # or postgresql://USER@HOST/NAME; better give an address with a password by the
                                     # environment: DPM_SERVICE_SERVICE_DATABASE
approval = false                     # whether releases of new data sets wait for a steward's approval

[web]
host = "127.0.0.1"                   # an address, or unix:PATH; anything but loopback needs the two lines of TLS below
port = 8000
url = "http://127.0.0.1:8000"        # what people type; its host is allowed in the Host header
# hosts = ["stats.example.org"]      # further hosts that are allowed, as the Host header has them (with the port)
# certificate = "tls/certificate.pem"
# private_key = "tls/private-key.pem"
# behind_proxy = true                # a proxy on this machine speaks TLS; host stays loopback or unix
login_hours = 12

[ledger]
database = "state/ledger.db"         # or postgresql://...
witness = "witness/ledger.witness"   # best on another volume
secret = "vault/ledger.key"          # the key of fingerprints: for the worker alone

[records]
root = "records"                     # stewards register files below it
vault = "vault"                      # what is registered is kept here: for the worker alone

[worker]
slot = 10                            # the shortest time from a question to its answer, in seconds
register_seconds = 600               # the longest that a registration may take
# register_memory = 4000000000       # the most memory that one may take, in bytes

[limits]
body = 65536                         # the largest request, in bytes
"""


def _text(value: object, name: str, wanted: str = "text on one line, got {}.") -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidArgumentError(f"{name} must be {wanted.format(shown(value))}")
    return value


def _database(value: object, name: str) -> str:
    """Return a path or an address; what was received is not repeated, as it may hold a password."""
    return _text(value, name, "a path or an address such as postgresql://dpm@localhost/service.")


def _flag(value: object, name: str) -> bool:
    if isinstance(value, str):
        word = value.lower()
        if word in (*_TRUE, *_FALSE):
            return word in _TRUE
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{name} must be true or false, got {shown(value)}.")
    return value


def _number(value: object, name: str) -> float:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise InvalidArgumentError(f"{name} must be a number above 0, got {shown(value)}.")
    return float(value)


def _whole(value: object, name: str, most: float = math.inf) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgumentError(f"{name} must be a whole number of at least 1, got {shown(value)}.")
    if value > most:
        raise InvalidArgumentError(f"{name} must be at most {most}, got {value}.")
    return value


def _names(value: object, name: str) -> tuple[str, ...]:
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)):
        raise InvalidArgumentError(f'{name} must be a list of text such as ["stats.example.org"], got {shown(value)}.')
    return tuple(_text(entry, name).strip().lower() for entry in listed)


# What a file may say, table by table: how a value is read, and what it is where it is not given.
_KNOWN: dict[str, dict[str, tuple[Callable[[object, str], Any], Any]]] = {
    "service": {
        "title": (_text, "Private statistics"),
        "database": (_database, "state/service.db"),
        "approval": (_flag, False),
    },
    "web": {
        "host": (_text, "127.0.0.1"),
        "port": (functools.partial(_whole, most=_LARGEST_PORT), 8000),
        "url": (_text, None),
        "hosts": (_names, ()),
        "certificate": (_text, None),
        "private_key": (_text, None),
        "behind_proxy": (_flag, False),
        "login_hours": (_number, 12.0),
    },
    "ledger": {"database": (_database, "state/ledger.db"), "witness": (_text, None), "secret": (_text, None)},
    "records": {"root": (_text, "records"), "vault": (_text, "vault")},
    "worker": {
        "slot": (_number, 10.0),
        "register_seconds": (_number, 600.0),
        "register_memory": (_whole, None),
    },
    "limits": {"body": (_whole, 65_536)},
}


@final
@dataclass(frozen=True)
class Settings:
    """What a service was set up with.

    Attributes
    ----------
    path : of the file it was read from
    title : shown on every page
    database : of the service's own tables: a path, or postgresql://...
    ledger : likewise, of the ledger; witness and secret are its two other files, None for those beside it
    root : records may be registered from below this folder
    vault : the folder of what is registered, for the worker alone
    host, port : where the web process listens; a host unix:PATH is a socket in the file system
    url : the address that people type, without a slash at its end
    hosts : values of the Host header that are answered, in small letters, with the port where the header has one
    certificate, private_key : files for TLS
    behind_proxy : whether a proxy on the same machine speaks TLS
    slot : the shortest time from a question to its answer, in seconds
    login_hours : how long a login lasts
    approval : whether releases of new data sets wait for a steward
    body_limit : the largest request, in bytes
    register_seconds, register_memory : the limits of a registration; no limit of memory where it is None
    """

    path: pathlib.Path
    title: str
    database: str = field(repr=False)  # either may hold a password
    ledger: str = field(repr=False)
    witness: pathlib.Path | None
    secret: pathlib.Path | None
    root: pathlib.Path
    vault: pathlib.Path
    host: str
    port: int
    hosts: tuple[str, ...]
    url: str
    certificate: pathlib.Path | None
    private_key: pathlib.Path | None
    behind_proxy: bool
    slot: float
    login_hours: float
    approval: bool
    body_limit: int
    register_seconds: float = 600.0
    register_memory: int | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Settings:
        """Read a file, and what the environment says in its place.

        Parameters
        ----------
        path : of a TOML file
        environ : names and values; the process's own where it is not given

        Raises
        ------
        InvalidArgumentError : it cannot be read, says what is not known, or sets up what would not be safe
        """
        target = pathlib.Path(path).absolute()
        said = _overridden(_parsed(target), os.environ if environ is None else environ)
        return cls._of(target, {table: _values(target, table, said.get(table, {})) for table in _KNOWN})

    @classmethod
    def _of(cls, path: pathlib.Path, said: Mapping[str, Mapping[str, Any]]) -> Settings:
        web, ledger = said["web"], said["ledger"]
        base = path.parent

        def placed(text: str | None) -> pathlib.Path | None:
            return None if text is None else base / text

        def database(text: str) -> str:
            return text if "://" in text else str(base / text)

        host = f"{UNIX}{base / web['host'].removeprefix(UNIX)}" if web["host"].startswith(UNIX) else web["host"]
        own = _address(host, web["port"], web["certificate"] is not None)
        url = (web["url"] or own).rstrip("/")
        # By which names this machine calls itself, where only it can call.
        loopback = [f"{name}:{web['port']}" for name in ("127.0.0.1", "localhost") if is_loopback(host)]
        return cls(
            path=path,
            title=said["service"]["title"],
            database=database(said["service"]["database"]),
            ledger=database(ledger["database"]),
            witness=placed(ledger["witness"]),
            secret=placed(ledger["secret"]),
            root=base / said["records"]["root"],
            vault=base / said["records"]["vault"],
            host=host,
            port=web["port"],
            hosts=tuple(dict.fromkeys([*web["hosts"], *_hosts_of(url), *loopback])),
            url=url,
            certificate=placed(web["certificate"]),
            private_key=placed(web["private_key"]),
            behind_proxy=web["behind_proxy"],
            slot=said["worker"]["slot"],
            login_hours=web["login_hours"],
            approval=said["service"]["approval"],
            body_limit=said["limits"]["body"],
            register_seconds=said["worker"]["register_seconds"],
            register_memory=said["worker"]["register_memory"],
        )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the web process."""
        return self.host.startswith(UNIX) or is_loopback(self.host)

    def __post_init__(self) -> None:
        """Refuse to speak in the clear to anybody but this machine, and what makes no sense."""
        if (self.certificate is None) != (self.private_key is None):
            raise InvalidArgumentError("web.certificate and web.private_key go together: give both, or neither.")
        if not self.is_local and self.certificate is None:
            raise InvalidArgumentError(
                f"web.host {self.host} can be reached from elsewhere, and passwords would travel in the clear. Give "
                "web.certificate and web.private_key; or listen on 127.0.0.1 or unix:PATH behind a proxy that speaks "
                "TLS, and say web.behind_proxy = true."
            )
        scheme, where = urllib.parse.urlsplit(self.url).scheme, urllib.parse.urlsplit(self.url).hostname
        if scheme not in ("http", "https") or not where:
            raise InvalidArgumentError(f"web.url must be an address such as https://stats.example.org, got {self.url}.")
        if scheme == "http" and not is_loopback(where):
            raise InvalidArgumentError(
                f"web.url must start with https:// where it is not of this machine alone, got {self.url}."
            )

    @staticmethod
    def write_example(path: str | os.PathLike[str]) -> None:
        """Write a file to begin with, readable by its owner and group; refuse to overwrite one.

        Examples
        --------
        >>> import tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "dpm-service.toml"
        >>> Settings.write_example(path)
        >>> Settings.read(path, {"DPM_SERVICE_WEB_PORT": "8443"}).port
        8443
        """
        target = pathlib.Path(path)
        try:
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
        except FileExistsError:
            raise InvalidArgumentError(f"{target} is there already. Change it by hand, or give another name.") from None
        except OSError as problem:
            raise InvalidArgumentError(f"{target} cannot be written: {problem.strerror}.") from None
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(EXAMPLE)


def is_loopback(host: str) -> bool:
    """Return whether an address is of this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _parsed(path: pathlib.Path) -> dict[str, dict[str, Any]]:
    try:
        with path.open("rb") as file:
            said = tomllib.load(file)
    except FileNotFoundError:
        raise InvalidArgumentError(f"there are no settings {path}. Write them: dpm service init.") from None
    except OSError as problem:
        raise InvalidArgumentError(f"the settings {path} cannot be read: {problem.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidArgumentError(f"the settings {path} are not TOML: {problem}.") from None
    for table, lines in said.items():
        if table not in _KNOWN or not isinstance(lines, dict):
            raise InvalidArgumentError(f"{path}: there is no table [{table}]. There are: {', '.join(_KNOWN)}.")
    return said


def _overridden(said: dict[str, dict[str, Any]], environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return what a file says with what the environment says in its place."""
    known = {f"{PREFIX}{table}_{name}".upper(): (table, name) for table, lines in _KNOWN.items() for name in lines}
    found = {table: dict(lines) for table, lines in said.items()}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable == WHICH:
            continue
        if variable not in known:
            raise InvalidArgumentError(
                f"the environment has {variable}, which sets nothing. There are: {', '.join(known)}."
            )
        table, name = known[variable]
        found.setdefault(table, {})[name] = value
    return found


def _values(path: pathlib.Path, table: str, lines: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a table, checked, with those that were not given."""
    known = _KNOWN[table]
    for name in lines:
        if name not in known:
            raise InvalidArgumentError(f"{path}: [{table}] has no {name}. It has: {', '.join(known)}.")
    return {
        name: read(lines[name], f"{table}.{name}") if name in lines else default
        for name, (read, default) in known.items()
    }


def _address(host: str, port: int, tls: bool) -> str:
    """Return the address of a host and a port."""
    if host.startswith(UNIX):
        return "https://localhost"
    shown_host = f"[{host}]" if ":" in host.strip("[]") and not host.startswith("[") else host
    return f"{'https' if tls else 'http'}://{shown_host}:{port}"


def _hosts_of(url: str) -> list[str]:
    """Return the Host header that a browser sends for an address: without the port that goes without saying."""
    parts = urllib.parse.urlsplit(url)
    try:
        usual = parts.port is None or (parts.scheme, parts.port) in (("http", 80), ("https", 443))
    except ValueError:
        raise InvalidArgumentError(f"web.url must have a port that is a number, got {url}.") from None
    name = parts.netloc.rpartition("@")[2].lower()
    return [name.rpartition(":")[0] if usual and parts.port is not None else name]
