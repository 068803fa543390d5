"""What people and programs show once they are known: logins in browsers, and tokens. Both are stored as hashes alone.

Both are 256 random bits, so a plain hash of them suffices; and they are found by that hash, so that the time it takes
tells nothing about values that are nearly right.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import final

from sqlalchemy import Connection, delete, select, update

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.service import events, tables
from dpmanifold.service.accounts import Actor
from dpmanifold.service.http_errors import NotFound, NotSignedIn, Unavailable
from dpmanifold.service.service_database import Database
from dpmanifold.service.tables import accounts, logins, tokens
from dpmanifold.service.views import View

LONGEST = 366
"""Days that a token lasts at most."""

_SECRET = re.compile(r"dpm_[A-Za-z0-9_-]{43}")
_LABEL = 100  # characters
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
@dataclass(eq=False)
class Logins:
    """The logins of a service.

    Parameters
    ----------
    database : prepared
    hours : how long a login lasts
    """

    database: Database
    hours: float

    def begin(self, actor: Actor) -> tuple[str, Login]:
        """Begin a login of somebody whose password was right; return what the cookie holds, told this once."""
        value, time = secrets.token_urlsafe(32), tables.now()
        login = Login(actor, secrets.token_urlsafe(32), tables.later(time, 3600 * self.hours))
        with self.database.writing() as connection:
            if not _is_open(connection, actor):
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
        row = self.database.row(asked)
        if row is None:
            return None
        if row.seen < tables.later(time, -_TOUCH):
            with contextlib.suppress(Unavailable):  # the login is good anyway
                self.database.write(update(logins).where(logins.c.hash == row.hash).values(seen=time))
        return Login(Actor(row.account, row.role), row.csrf, row.expires)

    def end(self, cookie: str) -> None:
        """End a login; nothing happens where there is none."""
        with self.database.writing() as connection:
            ended = delete(logins).where(logins.c.hash == _hash(cookie)).returning(logins.c.account)
            who = connection.execute(ended).scalar()
            if who is not None:
                events.record(connection, "signed-out", who)


@final
@dataclass(frozen=True)
class TokenView(View):
    """A token, for its owner.

    Attributes
    ----------
    id : what it is revoked by; no secret
    label : what its owner calls it
    created, expires : when, as stored
    revoked : when, None where it was not
    """

    id: str
    label: str
    created: str
    expires: str
    revoked: str | None


@final
@dataclass(eq=False)
class Tokens:
    """The tokens of a service.

    Parameters
    ----------
    database : prepared
    """

    database: Database

    def make(self, actor: Actor, label: str, days: int) -> tuple[TokenView, str]:
        """Make a token; return it and its secret, which is told this once.

        Parameters
        ----------
        actor : whose it will be
        label : what to call it, at most 100 characters
        days : how long it lasts, 1 to 366
        """
        if type(days) is not int or not 1 <= days <= LONGEST:
            raise InvalidArgumentError(f"days must be a whole number from 1 to {LONGEST}, got {shown(days)}.")
        if not isinstance(label, str) or not label.strip() or len(label) > _LABEL or not label.isprintable():
            raise InvalidArgumentError(
                f"label must be a text of 1 to {_LABEL} characters without line breaks, got {shown(label)}."
            )
        secret, time = "dpm_" + secrets.token_urlsafe(32), tables.now()
        expires = tables.later(time, 86400 * days)
        view = TokenView(secrets.token_hex(8), label.strip(), time, expires, None)
        with self.database.writing() as connection:
            if not _is_open(connection, actor):
                raise NotFound
            connection.execute(tokens.insert(), {**view.to_dict(), "account": actor.name, "hash": _hash(secret)})
            events.record(connection, "token-made", actor.name, token=view.id, expires=expires)
        return view, secret

    def find(self, secret: str) -> Actor | None:
        """Return whose token it is; None for one that is revoked, expired, of a closed account, or no token."""
        if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
            return None
        asked = (
            select(accounts.c.name, accounts.c.role)
            .join(tokens, accounts.c.name == tokens.c.account)
            .where(tokens.c.hash == _hash(secret), tokens.c.expires > tables.now())
            .where(tokens.c.revoked.is_(None), accounts.c.closed.is_(None))
        )
        row = self.database.row(asked)
        return None if row is None else Actor(*row)

    def revoke(self, actor: Actor, id: str) -> None:
        """Revoke one of somebody's own tokens, from this moment on; NotFound where there is none of that id.

        Once more does nothing.
        """
        mine = (tokens.c.id == id) & (tokens.c.account == actor.name)
        with self.database.writing() as connection:
            row = connection.execute(select(tokens.c.revoked).where(mine)).one_or_none()
            if row is None:
                raise NotFound
            if row.revoked is None:
                connection.execute(update(tokens).where(mine).values(revoked=tables.now()))
                events.record(connection, "token-revoked", actor.name, token=id)

    def listed(self, actor: Actor) -> list[TokenView]:
        """Return somebody's own tokens, the newest first."""
        columns = [tokens.c.id, tokens.c.label, tokens.c.created, tokens.c.expires, tokens.c.revoked]
        asked = select(*columns).where(tokens.c.account == actor.name).order_by(tokens.c.created.desc(), tokens.c.id)
        return [TokenView(*row) for row in self.database.rows(asked)]


def _is_open(connection: Connection, actor: Actor) -> bool:
    there = (accounts.c.name == actor.name) & accounts.c.closed.is_(None)
    return connection.execute(select(accounts.c.role).where(there)).scalar() == actor.role


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
