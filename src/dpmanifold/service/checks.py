"""What must hold before a service runs, each in words and with what to do about it. Nothing is made or changed."""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import os
import pathlib
import socket
import ssl
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar, final

from sqlalchemy import func, select

from dpmanifold.errors import DPManifoldError
from dpmanifold.ledger import Ledger
from dpmanifold.ledger.fingerprints import KEY_BYTES
from dpmanifold.service import beats, events, registering, tables
from dpmanifold.service.processes import SAME_USER
from dpmanifold.service.service import PRINCIPAL
from dpmanifold.service.service_database import Database
from dpmanifold.service.settings import UNIX, Settings
from dpmanifold.storage.filesystems import same_volume

OK, NOTE, FAIL = "ok", "note", "FAIL"
_PACKAGES = ("starlette", "uvicorn", "jinja2", "argon2", "sqlalchemy")
_CLOCKS = 5.0  # seconds by which two clocks may differ


@final
@dataclass(frozen=True)
class Finding:
    """Whether something holds.

    Attributes
    ----------
    state : "ok", "note" (it may be meant so) or "FAIL"
    what : was looked at, and what was found
    remedy : what to do; empty where nothing is to be done
    """

    state: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.state:<5} {self.what}" + (f" {self.remedy}" if self.remedy else "")


_Answer = TypeVar("_Answer")
Check = Callable[[Settings], Iterator[Finding]]


def findings(settings: Settings) -> list[Finding]:
    """Return what holds and what does not, for the user who asks.

    Parameters
    ----------
    settings : read already, so that what they say is known to make sense
    """
    found: list[Finding] = []
    for check in (_extras, _listening, _certificate, _root, _vault, _key, _database, _ledger):
        try:
            found += check(settings)
        except (DPManifoldError, OSError) as problem:
            found.append(Finding(FAIL, f"{problem}"))
    return found


def _either(holds: object, good: str, bad: str, remedy: str) -> Finding:
    """Return what was found, in one of two sentences."""
    return Finding(OK, good) if holds else Finding(FAIL, bad, remedy)


def _extras(settings: Settings) -> Iterator[Finding]:
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    server = any("://" in where for where in (settings.database, settings.ledger))
    if server and importlib.util.find_spec("psycopg") is None:
        missing.append("psycopg")
    install = f'pip install "dpmanifold[{"server,postgres" if server else "server"}]"'
    yield _either(not missing, "All packages are installed.", f"Packages are missing: {', '.join(missing)}.", install)
    if importlib.util.find_spec("matplotlib") is None:
        yield Finding(NOTE, "Releases will have no pictures.", 'pip install "dpmanifold[plots]"')


def _listening(settings: Settings) -> Iterator[Finding]:
    where = "this machine alone can reach it" if settings.is_local else "others can reach it, by TLS"
    yield Finding(OK, f"The web process listens on {settings.host}, port {settings.port}: {where}.")
    if settings.host.startswith(UNIX):
        folder = pathlib.Path(settings.host.removeprefix(UNIX)).parent
        if not folder.is_dir():
            yield Finding(FAIL, f"The folder of the socket, {folder}, is not there.", "Make it.")
        return
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as problem:
            runs = _asked(settings, lambda database: beats.is_alive(database, beats.WEB))
            yield _either(runs, "The port is taken by the service, which runs.",
                          f"The port {settings.port} cannot be had: {problem.strerror}.",
                          "Stop who has it, or set web.port to another.")  # fmt: skip
        else:
            yield Finding(OK, "The port is free.")


def _certificate(settings: Settings) -> Iterator[Finding]:
    if settings.certificate is None or settings.private_key is None:
        if settings.behind_proxy:
            yield Finding(NOTE, f"A proxy is expected to speak TLS for {settings.url}; it cannot be seen from here.")
        return
    if stat.S_IMODE(settings.private_key.stat().st_mode) & 0o007:
        yield Finding(FAIL, "The private key of TLS can be read by everybody.", f"chmod 640 {settings.private_key}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.certificate, settings.private_key)
    except (ssl.SSLError, OSError) as problem:
        yield Finding(FAIL, f"Certificate and private key cannot be used: {problem.strerror or problem}.",
                      "Check both files, and who may read them.")  # fmt: skip
    else:
        yield Finding(OK, "Certificate and private key belong together.")


def _root(settings: Settings) -> Iterator[Finding]:
    root, vault = settings.root, settings.vault
    if not root.is_dir():
        yield Finding(FAIL, f"The root of records, {root}, is no folder.", "Make it: dpm service init does.")
        return
    if _inside(vault, root) or _inside(root, vault):
        yield Finding(FAIL, f"The vault {vault} and the root {root} lie in each other.", "Set them apart.")
    mode = stat.S_IMODE(root.stat().st_mode)
    yield _either(not mode & 0o007, f"Records are registered from below {root}.",
                  f"Everybody on this machine can enter the root {root}, the web process among them.",
                  f"chmod o-rwx {root}")  # fmt: skip
    if mode & 0o070:
        yield Finding(NOTE, f"A group can enter the root {root} (mode {mode:04o}): the web process's user must not be "
                      "in it.", f"chgrp it to another group, or chmod g-rwx {root}")  # fmt: skip
    yield from _reached(settings)


def _reached(settings: Settings) -> Iterator[Finding]:
    """Look whether who asks can list what is for the worker alone: the worker is the vault's owner."""
    vault, asks = settings.vault, os.geteuid()
    if asks == 0 or not vault.is_dir() or vault.stat().st_uid == asks:
        return
    web = _asked(settings, lambda database: beats.last(database, beats.WEB))
    for what, folder in (("root", settings.root), ("vault", vault)):
        if not any(os.access(folder, right, effective_ids=True) for right in (os.R_OK, os.X_OK)):
            continue
        if web is None or web.owner == asks:
            yield Finding(FAIL, f"This user ({asks}), who is not the worker's, can look into the {what} {folder}: the "
                          "web process must not run as it.", f"Take the right away: chmod 700 {folder}")  # fmt: skip
        else:
            yield Finding(NOTE, f"This user ({asks}), who runs neither process, can look into the {what} {folder}.")


def _inside(one: pathlib.Path, other: pathlib.Path) -> bool:
    return one.resolve().is_relative_to(other.resolve())


def _vault(settings: Settings) -> Iterator[Finding]:
    vault = settings.vault
    if not vault.is_dir():
        yield Finding(FAIL, f"The vault {vault} is no folder.", "Make it: dpm service init does.")
        return
    mode = stat.S_IMODE(vault.stat().st_mode)
    yield _either(not mode & 0o077, f"The vault is its owner's alone (user {vault.stat().st_uid}).",
                  f"Others than its owner can look into the vault {vault} (mode {mode:04o}).",
                  f"chmod 700 {vault}")  # fmt: skip


def _key(settings: Settings) -> Iterator[Finding]:
    """Look at the key of fingerprints without reading it: whoever asks may be neither of the two processes."""
    path = settings.secret
    if path is None:
        if "://" in settings.ledger:
            yield Finding(NOTE, "ledger.secret is not set: the key lies beside the witness.")
            return
        path = pathlib.Path(f"{settings.ledger}.key")
    try:
        status = path.stat()
    except PermissionError:
        yield Finding(OK, "The ledger's key is out of this user's reach, as it is to be for all but the worker.")
        return
    except OSError:
        made_by = "dpm ledger create" if "://" in settings.ledger else "dpm service init"
        yield Finding(FAIL, f"The ledger's key {path} is not there.", "Put it back from where a copy is kept; for a "
                      f"new service: {made_by}.")  # fmt: skip
        return
    if stat.S_IMODE(status.st_mode) & 0o077:
        yield Finding(FAIL, f"Others than its owner can read the ledger's key {path}.", f"chmod 600 {path}")
    elif status.st_size != KEY_BYTES:
        yield Finding(FAIL, f"The ledger's key {path} holds no key.", "Put the right file there.")
    elif settings.vault.is_dir() and status.st_uid != settings.vault.stat().st_uid:
        yield Finding(FAIL, f"The ledger's key {path} is not of the vault's owner, as who the worker runs.",
                      f"chown it to user {settings.vault.stat().st_uid}.")  # fmt: skip
    else:
        yield Finding(OK, "The ledger's key is for the worker alone.")


def _database(settings: Settings) -> Iterator[Finding]:
    if "://" not in settings.database and not pathlib.Path(settings.database).exists():
        yield Finding(FAIL, f"There is no database {settings.database}.", "Make it: dpm service init.")
        return
    with Database(settings.database) as database:
        if not database.is_prepared():
            yield Finding(
                FAIL, f"The database {database.name} has no tables of a service.", "Make them: dpm service init."
            )
            return
        yield Finding(OK, f"The database {database.name} answers.")
        faults = events.verify(database)
        yield _either(not faults, "The log of events holds.",
                      f"The log of events does not hold: {''.join(faults[:1])}", "See dpm service events.")  # fmt: skip
        yield from _people(database)
        yield from _clock(database)
        yield from _users(database)
        if os.access(settings.vault, os.X_OK, effective_ids=True):
            registering.refuse_another_vault(database, settings.vault)
            yield Finding(OK, "The vault has what is registered.")


def _people(database: Database) -> Iterator[Finding]:
    open_ = tables.accounts.c.closed.is_(None)
    counted = select(tables.accounts.c.role, func.count()).where(open_).group_by(tables.accounts.c.role)
    roles = {role for role, _ in database.rows(counted)}
    missing = [role for role in tables.ROLES if role not in roles]
    if missing:
        yield Finding(
            NOTE, f"Nobody can sign in as {' or '.join(missing)}.", "dpm service account add NAME --role ROLE"
        )


def _clock(database: Database) -> Iterator[Finding]:
    last = database.value(select(func.max(tables.events.c.at)))
    ahead = 0.0 if last is None else (tables.moment(last) - datetime.datetime.now(datetime.UTC)).total_seconds()
    yield _either(ahead <= _CLOCKS, "The clock is not behind what was written down.",
                  f"The clock is behind: the last event is {ahead:.0f} seconds ahead of it.",
                  "Set the clock, and keep it by NTP: slots follow it.")  # fmt: skip


def _users(database: Database) -> Iterator[Finding]:
    web, worker = beats.last(database, beats.WEB), beats.last(database, beats.WORKER)
    if web is None or worker is None:
        yield Finding(NOTE, "Whether web and worker run as two users is seen once both have run.")
    elif web.owner == worker.owner:
        yield Finding(NOTE, SAME_USER)
    else:
        yield Finding(OK, "Web and worker run as two users.")
    if not beats.is_alive(database):
        yield Finding(NOTE, "The worker does not run now.")


def _ledger(settings: Settings) -> Iterator[Finding]:
    with Ledger.open(settings.ledger, witness=settings.witness, secret=settings.secret, principal=PRINCIPAL) as ledger:
        yield Finding(OK, f"The ledger {ledger.name} opens, and its witness agrees.")
        if not ledger.witness.writable:
            yield Finding(NOTE, "This user may not write to the witness; both processes must.")
        if "://" not in settings.ledger and same_volume(settings.ledger, str(ledger.witness.path)):
            yield Finding(NOTE, "The witness is on the ledger's own volume: put back together, the two notice nothing.",
                          "Put ledger.witness on another one before the ledger is made.")  # fmt: skip


def _asked(settings: Settings, question: Callable[[Database], _Answer]) -> _Answer | None:
    """Return what a database that is there says; None where that cannot be asked."""
    if "://" not in settings.database and not pathlib.Path(settings.database).exists():
        return None
    with contextlib.suppress(DPManifoldError), Database(settings.database) as database:
        database.prepare()
        return question(database)
    return None
