"""Logins of people in browsers: a random value in a cookie, of which only the hash is stored here."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from dataclasses import dataclass
from typing import final

from sqlalchemy import delete, select, update

from dpmanifold.service import events, tables
from dpmanifold.service.accounts import Actor
from dpmanifold.service.database import Database
from dpmanifold.service.errors import NotSignedIn, Unavailable
from dpmanifold.service.tables import accounts, logins

_TOUCH = 60  # seconds between two notes of when a login was last used


@final
@dataclass(frozen=True)
class Login:
    """Somebody who is signed in, in one browser.

    Attributes
    ----------
    actor : who
    csrf : what forms of this login carry, and no other site knows
    expires : when it ends at the latest, as stored
    """

    actor: Actor
    csrf: str
    expires: str


@final
class Logins:
    """The logins of a service.

    Parameters
    ----------
    database : prepared
    hours : how long a login lasts
    """

    def __init__(self, database: Database, hours: float) -> None:
        self._database = database
        self._hours = hours

    def begin(self, actor: Actor) -> tuple[str, Login]:
        """Begin a login of somebody whose password was right; return what the cookie holds, told this once."""
        value, time = secrets.token_urlsafe(32), tables.now()
        login = Login(actor, secrets.token_urlsafe(32), tables.later(time, 3600 * self._hours))
        with self._database.writing() as connection:
            there = (accounts.c.name == actor.name) & accounts.c.closed.is_(None)
            if connection.execute(select(accounts.c.role).where(there)).scalar() != actor.role:
                raise NotSignedIn("This account is closed.")
            connection.execute(delete(logins).where(logins.c.expires <= time))
            row = {"hash": _hash(value), "account": actor.name, "csrf": login.csrf, "created": time, "seen": time,
                   "expires": login.expires}  # fmt: skip
            connection.execute(logins.insert(), row)
        return value, login

    def find(self, cookie: str) -> Login | None:
        """Return the login that a cookie's value belongs to; None for one that ended, expired or never was."""
        time = tables.now()
        asked = (
            select(logins, accounts.c.role)
            .join(accounts, accounts.c.name == logins.c.account)
            .where(logins.c.hash == _hash(cookie), logins.c.expires > time, accounts.c.closed.is_(None))
        )
        row = self._database.row(asked)
        if row is None:
            return None
        if row.seen < tables.later(time, -_TOUCH):
            with contextlib.suppress(Unavailable):  # the login is good anyway
                self._database.write(update(logins).where(logins.c.hash == row.hash).values(seen=time))
        return Login(Actor(row.account, row.role), row.csrf, row.expires)

    def end(self, cookie: str) -> None:
        """End a login; nothing happens where there is none."""
        with self._database.writing() as connection:
            ended = delete(logins).where(logins.c.hash == _hash(cookie)).returning(logins.c.account)
            who = connection.execute(ended).scalar()
            if who is not None:
                events.record(connection, "signed-out", who)

    def end_all(self, name: str) -> None:
        """End all logins of an account."""
        with self._database.writing() as connection:
            ended = connection.execute(delete(logins).where(logins.c.account == name)).rowcount
            if ended:
                events.record(connection, "signed-out", name, logins=ended)


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
