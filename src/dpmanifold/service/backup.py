"""Copies of a service's two databases while it runs, and how they are put back without forgetting what was spent.

A copy is older than the present the moment it is made. So the witness is no part of it: put back, the ledger is held
against the witness, which has all that was spent since, and what is missing is entered as recovered. Results of those
spends are not recovered. Records and the ledger's key are not in a copy either; they are kept as records are.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import sqlite3
from dataclasses import dataclass
from typing import Any, final

from sqlalchemy.exc import SQLAlchemyError

from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.files import sync_folder, whole_file
from dpmanifold.ledger import Ledger
from dpmanifold.service import beats, tables
from dpmanifold.service.http_errors import Unavailable
from dpmanifold.service.service import PRINCIPAL
from dpmanifold.service.service_database import Database
from dpmanifold.service.settings import Settings
from dpmanifold.storage.sqlite import copy_database

SERVICE, LEDGER, ABOUT = "service.db", "ledger.db", "about.json"
_FORMAT = "dpmanifold backup 1"
_SERVER = "is on a server, and not in this copy: use pg_dump, and pg_restore to put it back"


@final
@dataclass(frozen=True)
class Copied:
    """What a copy holds, or what was put back.

    Attributes
    ----------
    files : by the names that they have in the folder
    remarks : what is to be known about it
    """

    files: list[str]
    remarks: list[str]


def backup(settings: Settings, folder: pathlib.Path) -> Copied:
    """Copy both databases to a new folder, each in one state; the service may run meanwhile.

    The service's own comes first: whatever is in it is in the ledger's copy as well.

    Parameters
    ----------
    settings : of the service
    folder : is made, for its owner alone
    """
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise InvalidArgumentError(f"{folder} is there already. Give a new folder for each copy.") from None
    here, remarks = _databases(settings)
    for name, where in here.items():
        _copy(where, folder / name)
    with whole_file(folder / ABOUT) as file:
        json.dump({"format": _FORMAT, "time": tables.now(), "files": [*here]}, file)
    sync_folder(folder)
    remarks.append(
        "The vault, the ledger's key and its witness are not in it: keep copies of the first two as records are kept; "
        "the witness is never put back."
    )
    return Copied([*here], remarks)


def restore(settings: Settings, folder: pathlib.Path, reason: str) -> Copied:
    """Put a copy back in the place of both databases, and reconcile the ledger with its witness.

    The present files are set aside under names that end in the time. The service must not run.

    Parameters
    ----------
    settings : of the service
    folder : that :func:`backup` made
    reason : for whoever audits the ledger

    Raises
    ------
    InvalidArgumentError : there is no copy, or the service runs
    LedgerError : the ledger and its witness cannot be reconciled; the copy is in place, and is refused until they are
    """
    if not reason.strip():
        raise InvalidArgumentError("reason must say why the copy is put back: it stays in the ledger.")
    about = _about(folder)
    _refuse_running(settings)
    here, others = _databases(settings)
    files, stamp = [name for name in here if name in about["files"]], tables.now().replace(":", "").replace(".", "")
    for name in files:
        _put_back(folder / name, here[name], stamp)
    remarks = [f"What was there has names that end in {stamp}."] if files else []
    if LEDGER in files:
        with Ledger.open(
            settings.ledger, witness=settings.witness, secret=settings.secret, principal=PRINCIPAL, reconcile=reason
        ) as ledger:
            remarks.append(f"The ledger agrees with its witness: {ledger.reconciled}")
    return Copied(files, remarks + others)


def _databases(settings: Settings) -> tuple[dict[str, pathlib.Path], list[str]]:
    """Return the databases that are files, by their names in a copy, and what is to be known about the others."""
    known = {SERVICE: ("database", settings.database), LEDGER: ("ledger", settings.ledger)}
    here = {name: pathlib.Path(where) for name, (_, where) in known.items() if "://" not in where}
    return here, [f"The {what} {_SERVER}." for what, where in known.values() if "://" in where]


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy a database in one state, whoever writes to it meanwhile."""
    if not source.is_file():
        raise InvalidArgumentError(f"there is no database {source}. Check the settings.")
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        if not copy_database(source, target):
            raise LedgerError(f"the copy of {source} is damaged, and so is the database. Check the disk.")
    except sqlite3.Error as problem:
        raise LedgerError(f"{source} cannot be copied: {problem}.") from None
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _about(folder: pathlib.Path) -> dict[str, Any]:
    try:
        with (folder / ABOUT).open(encoding="utf-8") as file:
            about: dict[str, Any] = json.load(file)
        complete = about["format"] == _FORMAT and all((folder / name).is_file() for name in about["files"])
    except (OSError, ValueError, KeyError, TypeError):
        complete = False
    if not complete:
        raise InvalidArgumentError(f"{folder} holds no whole copy of a service. Give a folder that a backup made.")
    return about


def _refuse_running(settings: Settings) -> None:
    """Refuse while a process of the service says that it is there."""
    if "://" not in settings.database and not pathlib.Path(settings.database).exists():
        return
    running = False
    damaged = (Unavailable, InvalidArgumentError, SQLAlchemyError)  # which may be why it is to be put back
    with contextlib.suppress(*damaged), Database(settings.database) as database:
        running = database.is_prepared() and any(
            beats.is_alive(database, process) for process in (beats.WORKER, beats.WEB)
        )
    if running:
        raise InvalidArgumentError("the service runs, or did a moment ago. Stop it, wait half a minute, ask again.")


def _put_back(source: pathlib.Path, target: pathlib.Path, stamp: str) -> None:
    """Put a database in the place of another, which is set aside together with its log."""
    mode, owner = 0o660, None
    if target.exists():
        status = target.stat()
        mode, owner = status.st_mode & 0o777, (status.st_uid, status.st_gid)
    fresh = target.with_name(f".{target.name}.{stamp}")
    _copy(source, fresh)
    os.chmod(fresh, mode)
    if owner is not None and hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(fresh, *owner)
    for ending in ("-wal", "-shm", ""):
        beside = target.with_name(target.name + ending)
        if beside.exists():
            beside.rename(target.with_name(f"{target.name}.{stamp}{ending}"))
    fresh.rename(target)
    sync_folder(target.parent)
