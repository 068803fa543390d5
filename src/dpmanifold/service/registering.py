"""Registration in the worker: files below the root become canonical records in the vault, and an entry of the ledger.

It runs in a child: what a loader does to its process is the child's affair. What is wrong with records is said to
stewards, who hold them, in the row of the registration and nowhere else; where that would quote a record, the row has
the message without it, and the vault the whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from dpmanifold.data.selection import FILES, Selection
from dpmanifold.data.specifications import EACH
from dpmanifold.errors import (
    Argument,
    DPManifoldError,
    InvalidArgumentError,
    LedgerError,
    Message,
    Public,
    message_from_record,
    message_to_record,
)
from dpmanifold.ledger.population import Population
from dpmanifold.service import canonical, events, tables
from dpmanifold.service.ordering import population_named
from dpmanifold.service.redaction import Redaction, write_notice
from dpmanifold.service.service import Service
from dpmanifold.service.service_database import Database
from dpmanifold.service.staging import Staging
from dpmanifold.stats.curator import Notice

_STAGING = ".staging-"
_NUMBERS = re.compile(r"[-+0-9.eE, ]+")


def registered(service: Service, registration: str) -> None:
    """Do what a registration asks for, and write down what came of it: done, or refused with the reason.

    Parameters
    ----------
    service : where
    registration : its id
    """
    row = service.database.by_id(tables.registrations, registration)
    request = json.loads(row.request)
    notes: list[Message] = []
    redaction = Redaction(request)
    try:
        dataset = _register(service, row, request, lambda notice: notes.append(_told(notice)), redaction)
    except LedgerError:
        refused(
            service,
            registration,
            Message("The ledger cannot be used now: dpm service check says why. Ask again later."),
        )
    except DPManifoldError as problem:
        # What the notes say is said by the refusal where it is about them.
        notes = [note for note in notes if note not in str(problem)]
        refused(service, registration, *notes, _redacted(service, registration, problem, redaction))
    except MemoryError:
        refused(service, registration, Message("There is not enough memory for these records."))
    except Exception as problem:
        kept = write_notice(service.settings.vault, f"registration-{registration}", traceback.format_exc())
        refused(
            service,
            registration,
            Message(
                "They cannot be read: an unexpected {kind}. The operator finds more in the vault, {kept}.",
                kind=Public(type(problem).__name__),
                kept=Public(kept),
            ),
        )
    else:
        _end(service, row, "done", [Message("Registered as {dataset}.", dataset=Public(dataset)), *notes], dataset)


def refused(service: Service, registration: str, *message: Message) -> None:
    """Say that a registration came to nothing, and to stewards why."""
    _end(service, service.database.by_id(tables.registrations, registration), "refused", message, None)


def begun(service: Service) -> str | None:
    """Return the id of the registration that is next, from now on at work; None where there is none."""
    rows = tables.registrations
    wanted = select(rows.c.id).where(rows.c.state == "waiting").order_by(rows.c.created).limit(1)
    found: str | None = service.database.value(wanted)
    if found is not None:
        service.database.write(update(rows).where(rows.c.id == found).values(state="working"))
    return found


def begin_anew(service: Service) -> None:
    """Queue what a worker that was killed had at work, and remove what it left in the vault."""
    at_work = tables.registrations.c.state == "working"
    service.database.write(update(tables.registrations).where(at_work).values(state="waiting"))
    remove_left(service)


def remove_left(service: Service) -> None:
    """Remove what a registration that was killed left in the vault; none may be at work."""
    canonical.remove_unfinished(service.settings.vault)
    for folder in service.settings.vault.glob(f"{_STAGING}*"):
        shutil.rmtree(folder, ignore_errors=True)


def folder_of(service: Service, population: str, dataset: str) -> pathlib.Path:
    """Return where the canonical records of a data set lie; a LedgerError where they are not in the vault."""
    wanted = select(tables.files.c.folder).where(tables.files.c.dataset == f"{population}/{dataset}")
    found: str | None = service.database.value(wanted)
    folder = service.settings.vault / (found or "")
    if found is None or not re.fullmatch(r"[0-9a-f]{32}", found) or not canonical.has_records(folder):
        raise LedgerError("the vault has no records of {dataset}.", dataset=dataset)
    return folder


def refuse_another_vault(database: Database, vault: pathlib.Path) -> None:
    """Refuse a vault that has no folder for what is registered: it may be another host's."""
    rows = database.rows(select(tables.files).order_by(tables.files.c.dataset))
    lacking = {row.dataset: row.folder for row in rows if not (vault / row.folder).is_dir()}
    if lacking:
        raise InvalidArgumentError(
            "the vault {vault} has not the records of {datasets}, which are registered in {database}. Is it the vault "
            "of another host? Set records.vault to the one where they were registered, or put these folders back from "
            "a copy: {folders}. Nothing was begun, and nothing is lost. Where records are gone for good, make an empty "
            "folder of that name in the vault: the worker starts, and the data can be registered again.",
            vault=Public(str(vault)),
            datasets=Public(", ".join(lacking)),
            database=Public(database.name),
            folders=Public(", ".join(lacking.values())),
        )


def _redacted(service: Service, registration: str, problem: DPManifoldError, redaction: Redaction) -> Message:
    """Return a message without values of records; where it had some, the vault gets the whole."""
    record, withheld = redaction.record(problem)
    said = message_from_record(record)
    if not withheld:
        return said
    kept = write_notice(service.settings.vault, f"registration-{registration}", str(problem))
    return Message("{said} The whole message is in the vault, {kept}.", said=said, kept=Public(kept))


def _register(
    service: Service, row: Row[Any], request: Mapping[str, Any], tell: Callable[[Notice], None], redaction: Redaction,
) -> str:  # fmt: skip
    """Return the id of the data set that the records of a request are registered as."""
    vault = service.settings.vault
    population = population_named(service, row.population).as_principal(row.steward)
    with _staged(request, service.settings.root, vault, redaction) as (chosen, copies):
        found = chosen.open(within=copies)
        chosen = replace(chosen, ball=chosen.ball_on(found.space), radius=None, center=None, source="")
        folder = canonical.write(vault, found, found.space)
    expected, registered = _expected(population, row.name), ""
    try:
        # First, so that nobody can ask about data whose records are not to be found.
        with service.database.writing() as connection:
            _place(connection, f"{row.population}/{expected}", folder)
        # Those that releases will open, and no others.
        kept = replace(found, **vars(canonical.open_folder(vault / folder)))
        confirm = request.get("confirm") is True
        registered = chosen.register(population, row.name, opened=kept, curator=tell, confirm=confirm).id
        return registered
    finally:
        if registered != expected and not _moved(service, row.population, expected, registered, folder):
            canonical.remove(vault, folder)


@contextlib.contextmanager
def _staged(
    request: Mapping[str, Any], root: pathlib.Path, vault: pathlib.Path, redaction: Redaction
) -> Iterator[tuple[Selection, pathlib.Path]]:
    """Copy what a request names, and give what it selects with the copies in its place, and the folder of these."""
    folder = vault / f"{_STAGING}{secrets.token_hex(8)}"
    folder.mkdir(mode=0o700)
    before = os.getcwd()
    try:
        staging = Staging(root, folder)
        path = staging.take(request.get("path"), "path", "records")
        redaction.copied(path, str(request.get("path")))
        beside = {name: _beside(staging, request[name], name, redaction) for name in FILES if name in request}
        said = {name: value for name, value in request.items() if name not in ("path", "confirm")}
        (folder / "empty").mkdir()
        os.chdir(folder / "empty")  # whatever is taken for the name of a file here is none
        yield Selection.from_dict({**said, **beside, "paths": [str(path)], "invalid": "center"}), folder
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)


def _beside(staging: Staging, text: object, name: str, redaction: Redaction) -> str | None:
    """Return what is said about ids, classes, a covariate or a centre: a column, numbers, or the copy of a file."""
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise InvalidArgumentError("{name} must be text.", name=Argument(name))
    if text == EACH or (name == "center" and _NUMBERS.fullmatch(text)):
        return text
    file, colon, column = text.rpartition(":")
    for candidate, rest in ((text, ""), (file, colon + column)):
        if candidate and staging.has(candidate):
            path = staging.take(candidate, name, name)
            redaction.copied(path, candidate)
            return str(path) + rest
    if "/" in text or "\\" in text or name == "center":
        raise InvalidArgumentError(
            "{name}: there is no file {text!r} below the root. Check the name.", name=Argument(name), text=text
        )
    return text


# -------------------------------------------------------------------- rows


def _told(notice: Notice) -> Message:
    """Return a notice, where it says something: counts are for stewards, and why a release was lost for the vault."""
    moved = notice.clipped or notice.replaced or notice.beyond or notice.unnumbered or notice.unlabelled
    if not (moved or notice.elsewhere):
        return Message("All records lie in the ball.")
    return Message("{notice}", notice=Public(str(notice)))


def _end(service: Service, row: Row[Any], state: str, said: Sequence[Message], dataset: str | None) -> None:
    message = json.dumps([message_to_record(one) for one in said])
    chosen = (tables.registrations.c.id == row.id) & tables.registrations.c.state.in_(("waiting", "working"))
    values = {"state": state, "message": message, "dataset": dataset, "ended": tables.now()}
    facts = {"population": row.population, "name": row.name} | ({"dataset": dataset} if dataset else {})
    with service.database.writing() as connection:
        if connection.execute(update(tables.registrations).where(chosen).values(**values)).rowcount == 1:
            events.record(connection, f"registration-{state}", row.steward, **facts)


def _expected(population: Population, name: str) -> str:
    """Return the id that new data of this name get, if nobody else registers any meanwhile."""
    return f"{name}@{1 + max((one.version for one in population.datasets() if one.name == name), default=0)}"


def _place(connection: Connection, dataset: str, folder: str) -> None:
    connection.execute(delete(tables.files).where(tables.files.c.dataset == dataset))
    connection.execute(insert(tables.files).values(dataset=dataset, folder=folder))


def _moved(service: Service, population: str, expected: str, found: str, folder: str) -> bool:
    """Take a place back that came to nothing, and return whether the folder is that of data registered before."""
    wanted = select(tables.files.c.folder).where(tables.files.c.dataset == f"{population}/{found}")
    with service.database.writing() as connection:
        connection.execute(delete(tables.files).where(tables.files.c.dataset == f"{population}/{expected}"))
        there = connection.execute(wanted).scalar()
        if not found or (there is not None and canonical.has_records(service.settings.vault / there)):
            return False
        _place(connection, f"{population}/{found}", folder)
        return True
