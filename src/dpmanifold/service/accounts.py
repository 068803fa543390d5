"""Who may sign in, as what, and with which password. A name is one person's for good, also after it was closed.

Passwords are stored as Argon2id hashes: slow and large on purpose, so only so many are worked on at once.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import math
import re
import secrets
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, final

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, Row, delete, func, select, update

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.service import events, tables
from dpmanifold.service.http_errors import Conflict, NotFound, NotSignedIn, TooMany
from dpmanifold.service.service_database import Database
from dpmanifold.service.views import View

ROLES = tables.ROLES
OPERATOR = "operator"
"""Who acts on the host's command line."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TAKEN = ("operator", "others", "service")  # they mean something in the logs
_WRONG = "The name or the password is not right."


@final
@dataclass(frozen=True)
class Actor:
    """Somebody who is signed in.

    Attributes
    ----------
    name : of the account; the ledger's principal
    role : one of :data:`ROLES`
    """

    name: str
    role: str


@final
@dataclass(frozen=True)
class AccountView(View):
    """An account, for the operator and the auditor.

    Attributes
    ----------
    name, role : as of :class:`Actor`
    created : when, as stored
    closed : when, None while it is open
    changed : when the password was set
    """

    name: str
    role: str
    created: str
    closed: str | None
    changed: str


SHORTEST = 12
"""Characters of a password; there is no other rule."""

ROUNDS, MEMORY, LANES = 3, 64 * 1024, 4
"""The work of one hash: passes, KiB and parallel lanes; the second recommendation of RFC 9106."""

AT_ONCE = 2
_PATIENCE = 10  # seconds that somebody waits for their turn


@final
class Passwords:
    """Makes and verifies hashes, at most two at a time: 128 MiB, however many knock.

    Examples
    --------
    >>> passwords = Passwords()
    >>> stored = passwords.hash("correct horse battery")
    >>> passwords.holds(stored, "correct horse battery"), passwords.holds(stored, "another password")
    (True, False)
    >>> passwords.holds(None, "correct horse battery")
    False
    """

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=ROUNDS, memory_cost=MEMORY, parallelism=LANES, type=Type.ID)
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        # Of a secret that nobody has: what is verified where there is no account, so that it takes as long.
        self._nobody = self._hasher.hash(secrets.token_bytes(32))

    def hash(self, password: str) -> str:
        """Return what is stored of a password, or refuse a short one."""
        text = _normal(password)
        if len(text) < SHORTEST:
            raise InvalidArgumentError(
                f"password must have at least {SHORTEST} characters, got {len(text)}. Several words are easy to keep."
            )
        with self._turn():
            return self._hasher.hash(_bytes(text))

    def holds(self, stored: str | None, password: str) -> bool:
        """Return whether a password is the one that was stored; the same work where none was."""
        with self._turn():
            try:
                self._hasher.verify(self._nobody if stored is None else stored, _bytes(_normal(password)))
            except (VerificationError, InvalidHashError):
                return False
        return stored is not None

    def renewed(self, stored: str, password: str) -> str | None:
        """Return a new hash of a password that holds, where the stored one was made with other work; None else."""
        if not self._hasher.check_needs_rehash(stored):
            return None
        with self._turn():
            return self._hasher.hash(_bytes(_normal(password)))

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._slots.acquire(timeout=_PATIENCE):
            raise TooMany("Too many people sign in at once. Try again in a moment.", retry_after=_PATIENCE)
        try:
            yield
        finally:
            self._slots.release()


def _normal(password: object) -> str:
    """Return a password as it is compared: a letter with an accent is the same however a keyboard composes it."""
    if not isinstance(password, str):
        raise InvalidArgumentError("password must be a text.")
    return unicodedata.normalize("NFC", password)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@final
@dataclass(eq=False)
class Accounts:
    """The accounts of a service.

    Parameters
    ----------
    database : prepared
    """

    database: Database
    _passwords: Passwords = field(default_factory=Passwords)

    def add(self, name: str, role: str, password: str, by: str = OPERATOR) -> Actor:
        """Make an account.

        Parameters
        ----------
        name : at most 64 letters, digits, dots, underscores and hyphens; never given to anybody else
        role : one of :data:`ROLES`, for good
        password : at least 12 characters
        by : who makes it
        """
        if role not in ROLES:
            raise InvalidArgumentError(f"role must be one of {', '.join(ROLES)}, got {shown(role)}.")
        actor = Actor(checked_account(name), role)
        stored, time = self._passwords.hash(password), tables.now()
        with self.database.writing() as connection:
            alike = func.lower(tables.accounts.c.name) == actor.name.lower()
            taken = connection.execute(select(tables.accounts.c.name).where(alike)).scalar()
            if taken is not None:
                raise Conflict(
                    f"name {actor.name!r} is taken by the account {taken!r}. Names are given once, also after an "
                    "account was closed: choose another."
                )
            row = {"name": actor.name, "role": role, "password": stored, "created": time, "changed": time}
            connection.execute(tables.accounts.insert(), row)
            events.record(connection, "account-added", by, account=actor.name, role=role)
        return actor

    def close(self, name: str, by: str = OPERATOR) -> None:
        """Close an account for good: its logins end and its tokens are revoked at once; what it spent remains."""
        with self.database.writing() as connection:
            _shut_out(connection, name, closed=tables.now())
            events.record(connection, "account-closed", by, account=name)

    def set_password(self, name: str, new: str, by: str = OPERATOR) -> None:
        """Set a password that was forgotten or known to others: logins end, and tokens are revoked."""
        self._replace(name, self._passwords.hash(new), by)

    def change_password(self, name: str, old: str, new: str) -> None:
        """Set one's own password: all logins end, also the one that it is done in, and tokens are revoked."""
        stored = self._passwords.hash(new)
        if self._verified(name, old, None) is None:
            raise InvalidArgumentError("old is not the password of this account. Give the one that you sign in with.")
        self._replace(name, stored, name)

    def _replace(self, name: str, stored: str, by: str) -> None:
        with self.database.writing() as connection:
            _shut_out(connection, name, password=stored, changed=tables.now())
            events.record(connection, "password-changed", by, account=name)

    def signed(self, name: str, password: str, address: str) -> Actor:
        """Return who has this name and this password; NotSignedIn for any other, in the same words and after as much.

        Parameters
        ----------
        name, password : as they were typed
        address : where they came from; failures are counted by name and by address
        """
        actor = self._verified(name, password, address)
        if actor is None:
            raise NotSignedIn(_WRONG)
        return actor

    def find(self, name: str) -> Actor | None:
        """Return the open account of this name."""
        accounts = tables.accounts.c
        row = self.database.row(select(accounts.name, accounts.role).where(_named(name), accounts.closed.is_(None)))
        return None if row is None else Actor(*row)

    def listed(self) -> list[AccountView]:
        """Return all accounts by name, also closed ones."""
        shown_columns = [column for column in tables.accounts.c if column.name != "password"]
        query = select(*shown_columns).order_by(tables.accounts.c.name)
        return [AccountView(**row._mapping) for row in self.database.rows(query)]

    def _verified(self, name: str, password: str, address: str | None) -> Actor | None:
        """Return whose password it is, None if it is nobody's. Whether there is such an account changes no step."""
        fit = name if isinstance(name, str) and _NAME.fullmatch(name) else "?"
        with self.database.writing() as connection:
            counted = count_attempt(connection, fit, address)
            row = _row(connection, fit)
        stored = row.password if row is not None and row.closed is None else None
        try:
            right = self._passwords.holds(stored, password)
        except TooMany:  # nothing was verified
            with self.database.writing() as connection:
                forgive(connection, counted)
            raise
        renewed = self._passwords.renewed(stored, password) if right and stored is not None else None
        with self.database.writing() as connection:
            latest = _row(connection, fit)  # it may have been closed, or its password set, while this was verified
            current = latest is not None and latest.closed is None and latest.password == stored
            if row is None or not right or not current:
                if address is not None:
                    events.record(connection, "sign-in-failed", fit if row is not None else "?")
                return None
            forgive(connection, counted, fit)
            if renewed is not None:
                connection.execute(update(tables.accounts).where(_named(fit)).values(password=renewed))
            if address is not None:
                events.record(connection, "signed-in", fit)
            return Actor(row.name, row.role)


def checked_account(value: object) -> str:
    """Return a name that an account can have, or say what is wrong with it.

    Examples
    --------
    >>> checked_account("ada.lovelace")
    'ada.lovelace'
    >>> checked_account("..")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: name must be at most 64 letters (a to z), digits, dots, underscores and
    hyphens, and begin with a letter or a digit, got '..'.
    """
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidArgumentError(
            "name must be at most 64 letters (a to z), digits, dots, underscores and hyphens, and begin with a letter "
            f"or a digit, got {shown(value)}."
        )
    if value.lower() in _TAKEN:
        raise InvalidArgumentError(f"name must be none of {', '.join(_TAKEN)}: they mean something in the logs.")
    return value


def _named(name: str) -> Any:
    return tables.accounts.c.name == name


def _row(connection: Connection, name: str) -> Row[Any] | None:
    return connection.execute(select(tables.accounts).where(_named(name))).one_or_none()


def _shut_out(connection: Connection, name: str, **values: str) -> None:
    """Change an open account, and end all its logins and tokens; NotFound where there is none."""
    open_ = _named(name) & tables.accounts.c.closed.is_(None)
    if connection.execute(update(tables.accounts).where(open_).values(**values)).rowcount != 1:
        raise NotFound
    connection.execute(delete(tables.logins).where(tables.logins.c.account == name))
    alive = (tables.tokens.c.account == name) & tables.tokens.c.revoked.is_(None)
    connection.execute(update(tables.tokens).where(alive).values(revoked=tables.now()))


# -------------------------------------------------------------------- how often somebody may fail

# An attempt counts before anything is verified, so that many at once are no way around, and it counts whether or not
# there is an account of that name.


WINDOW = 15 * 60
"""Seconds after which a failure is forgotten."""

OF_NAME, OF_ADDRESS = 5, 20
"""How many failures of a name, and from an address, are taken in that time.

After that a right password is refused as well, by design: were it taken, guessing would go on, and the answer would
tell which guess was right. Whoever shares an address with somebody who guesses waits with them.
"""

OF_TOKENS = 100
"""How many tokens that are none are counted from an address in that time; the next are refused without a line in the
database. Those that are known are taken all the same."""


def count_attempt(connection: Connection, name: str, address: str | None = None) -> list[int]:
    """Count an attempt as a failure until it is forgiven, or refuse it if there were too many.

    Parameters
    ----------
    connection : of :meth:`Database.writing`
    name : that was given, fit to be an account's; "?" where it is not
    address : where the attempt came from; None where somebody is signed in already

    Returns
    -------
    What :func:`forgive` takes.
    """
    time = _now(connection)
    counted = {f"name:{name}": OF_NAME}
    if address is not None:
        counted[f"address:{network_of(address)}"] = OF_ADDRESS
    waits = [_wait(connection, what, most, time) for what, most in counted.items()]
    if any(waits):
        raise TooMany("Too many failed attempts. Wait, then try again.", retry_after=max(waits))
    rows = [tables.failures.insert().values(what=what, at=time).returning(tables.failures.c.id) for what in counted]
    return [connection.execute(row).scalar_one() for row in rows]


def forgive(connection: Connection, counted: list[int], name: str | None = None) -> None:
    """Take an attempt back that was none of the failures; with a name, all that were counted for it.

    Parameters
    ----------
    connection : of :meth:`Database.writing`
    counted : what :func:`count_attempt` returned
    name : whose password was right
    """
    connection.execute(delete(tables.failures).where(tables.failures.c.id.in_(counted)))
    if name is not None:
        connection.execute(delete(tables.failures).where(tables.failures.c.what == f"name:{name}"))


def count_guess(database: Database, address: str) -> None:
    """Count a token that is not known, or refuse it from an address that showed too many of them.

    Parameters
    ----------
    database : prepared
    address : where it came from
    """
    what = f"token:{network_of(address)}"
    with database.reading() as connection:
        wait = _wait(connection, what, OF_TOKENS, tables.now())
    if wait:
        raise TooMany("Too many tokens that are not known. Wait, then try again.", retry_after=wait)
    with database.writing() as connection:
        connection.execute(tables.failures.insert().values(what=what, at=_now(connection)))


def _now(connection: Connection) -> str:
    """Return the time, once what is older than the window is forgotten."""
    time = tables.now()
    connection.execute(delete(tables.failures).where(tables.failures.c.at <= tables.later(time, -WINDOW)))
    return time


def network_of(address: str) -> str:
    """Return what an address counts as: itself, or the 64 bits that one customer of an IPv6 network has for themselves.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("2001:db8:1:2:3:4:5:6"), network_of("::ffff:192.0.2.7"), network_of("unix")
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7', 'unix')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


def _wait(connection: Connection, what: str, most: int, time: str) -> int:
    """Return how many seconds it takes until less than `most` failures count; 0 where they do not now."""
    asked = (
        select(tables.failures.c.at)
        .where(tables.failures.c.what == what)
        .order_by(tables.failures.c.at.desc())
        .limit(most)
    )
    found = connection.execute(asked).scalars().all()
    if len(found) < most:
        return 0
    until = tables.moment(found[-1]) + datetime.timedelta(seconds=WINDOW)
    return max(0, math.ceil((until - tables.moment(time)).total_seconds()))
