"""Whether the other process is there: each says so every few seconds, and anybody can ask when it last did."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import Any

from sqlalchemy import delete, insert, select

from dpmanifold.errors import DPManifoldError
from dpmanifold.service import tables
from dpmanifold.service.service_database import Database

WORKER = "worker"
WEB = "web"
EVERY = 3.0
"""Seconds between two beats."""
_LATEST = 5 * EVERY


def beat(database: Database, process: str = WORKER) -> None:
    """Say that this process is there."""
    owner = os.geteuid() if hasattr(os, "geteuid") else 0
    row = {"process": process, "at": tables.now(), "owner": owner, "host": socket.gethostname(), "pid": os.getpid()}
    with database.writing() as connection:
        connection.execute(delete(tables.beats).where(tables.beats.c.process == process))
        connection.execute(insert(tables.beats).values(**row))


def keep_beating(database: Database, process: str) -> threading.Thread:
    """Have a thread say that this process is there, as long as it is."""

    def say() -> None:
        while True:
            with contextlib.suppress(DPManifoldError):  # the database is away; it will be told when it is back
                beat(database, process)
            time.sleep(EVERY)

    thread = threading.Thread(target=say, name="beats", daemon=True)
    thread.start()
    return thread


def last(database: Database, process: str = WORKER) -> Any:
    """Return who a process was, and when, when it last said that it is there; None if it never did."""
    return database.row(select(tables.beats).where(tables.beats.c.process == process))


def is_alive(database: Database, process: str = WORKER) -> bool:
    """Return whether a process said so lately."""
    found = last(database, process)
    return found is not None and tables.later(found.at, _LATEST) > tables.now()


def words(database: Database, process: str = WORKER) -> str:
    """Return which process said last that it is there, and when."""
    found = last(database, process)
    return "which has not said who it is" if found is None else f"process {found.pid} on {found.host}, seen {found.at}"
