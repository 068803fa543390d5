"""The tables of the service, beside the ledger: who may sign in, what was asked, and what came of it.

What was spent is the ledger's to say, and no table here counts it. Times are texts in UTC that sort as they passed.
"""

from __future__ import annotations

import datetime
import secrets

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.storage.schema import NAME, NUMBER, Schema

ROLES = ("analyst", "steward", "auditor")
RELEASE_STATES = ("waiting", "refused", "asked", "paid", "released", "lost")
REGISTRATION_STATES = ("waiting", "working", "done", "refused")

_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"


def new_id() -> str:
    """Return an id that nobody has: hexadecimal digits, which no shell takes for an option."""
    return secrets.token_hex(8)


def now() -> str:
    """Return the time as it is stored."""
    return stamp(datetime.datetime.now(datetime.UTC))


def stamp(when: datetime.datetime) -> str:
    """Return how a time is stored: a text in UTC, to the microsecond.

    Parameters
    ----------
    when : a time with its zone

    Examples
    --------
    >>> stamp(datetime.datetime(2026, 11, 17, 3, tzinfo=datetime.UTC))
    '2026-11-17T03:00:00.000000Z'
    """
    if when.tzinfo is None:
        raise ValueError("a time without a zone is not one moment: give it tzinfo")
    return when.astimezone(datetime.UTC).strftime(_FORM)


def moment(text: str) -> datetime.datetime:
    """Return the time that a stored text tells.

    Examples
    --------
    >>> moment("2026-11-17T03:00:00.000000Z")
    datetime.datetime(2026, 11, 17, 3, 0, tzinfo=datetime.timezone.utc)
    """
    return datetime.datetime.strptime(text, _FORM).replace(tzinfo=datetime.UTC)


def later(text: str, seconds: float) -> str:
    """Return the stored time that is so many seconds after another one; before it, if they are negative.

    Examples
    --------
    >>> later("2026-11-17T03:00:00.000000Z", 0.5)
    '2026-11-17T03:00:00.500000Z'
    """
    return stamp(moment(text) + datetime.timedelta(seconds=seconds))


def _one_of(column: str, words: tuple[str, ...]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(map(repr, words))})", name=f"service_{column}_known")


metadata = MetaData()

facts = Table(
    "service_facts",
    metadata,
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("service", Text, nullable=False),  # a random id, which the hash of every event covers
    Column("created", Text, nullable=False),
)

beats = Table(
    "service_beats",
    metadata,
    Column("process", Text, primary_key=True),  # "worker"
    Column("at", NAME, nullable=False),  # when it last said that it is there
    Column("owner", Integer, nullable=False),  # the number of the system's user that it runs as
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
)

accounts = Table(
    "service_accounts",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("role", Text, _one_of("role", ROLES), nullable=False),
    Column("password", Text, nullable=False),
    Column("created", NAME, nullable=False),
    Column("closed", NAME),
    Column("changed", NAME, nullable=False),  # when the password was set
)

logins = Table(
    "service_logins",
    metadata,
    Column("hash", Text, primary_key=True),  # sha256 of what the cookie holds
    Column("account", NAME, ForeignKey("service_accounts.name"), nullable=False, index=True),
    Column("csrf", Text, nullable=False),
    Column("created", NAME, nullable=False),
    Column("seen", NAME, nullable=False),
    Column("expires", NAME, nullable=False),
)

tokens = Table(
    "service_tokens",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("hash", Text, nullable=False, unique=True),  # sha256 of the secret
    Column("account", NAME, ForeignKey("service_accounts.name"), nullable=False, index=True),
    Column("label", Text, nullable=False),
    Column("created", NAME, nullable=False),
    Column("expires", NAME, nullable=False),
    Column("revoked", NAME),
)

failures = Table(
    "service_failures",
    metadata,
    Column("id", NUMBER, primary_key=True, autoincrement=True),
    Column("what", NAME, nullable=False),
    Column("at", NAME, nullable=False),
    Index("service_failures_of", "what", "at"),
)

terms = Table(
    "service_terms",
    metadata,
    Column("population", NAME, primary_key=True),
    Column("name", NAME, primary_key=True),
    Column("approval", Boolean, nullable=False),
    Column("slot", Float),
    Column("note", Text, nullable=False),
)

pauses = Table(
    "service_pauses",
    metadata,
    Column("population", NAME, primary_key=True),
    Column("since", NAME, nullable=False),  # when the release was to be published whose loss it is for
)

registrations = Table(
    "service_registrations",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("steward", NAME, ForeignKey("service_accounts.name"), nullable=False),
    Column("population", NAME, nullable=False),
    Column("name", NAME, nullable=False),
    Column("request", Text, nullable=False),  # JSON
    Column("state", NAME, _one_of("state", REGISTRATION_STATES), nullable=False, index=True),
    Column("message", Text, nullable=False),  # for stewards alone: it may describe records
    Column("dataset", NAME),
    Column("created", NAME, nullable=False),
    Column("ended", NAME),
)

files = Table(
    "service_files",
    metadata,
    Column("dataset", NAME, primary_key=True),  # population/name@version
    Column("folder", Text, nullable=False),
)

releases = Table(
    "service_releases",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("account", NAME, ForeignKey("service_accounts.name"), nullable=False),
    Column("population", NAME, nullable=False),
    Column("dataset", NAME, nullable=False),  # name@version
    Column("statistic", Text, nullable=False),
    Column("question", Text, nullable=False),  # JSON
    Column("key", NAME, nullable=False),
    Column("privacy", Text, nullable=False),  # JSON
    Column("request", Text, nullable=False),  # the hash of what was asked
    Column("state", NAME, _one_of("state", RELEASE_STATES), nullable=False, index=True),
    Column("asked", NAME, nullable=False),
    Column("decided_by", NAME),
    Column("decided", NAME),
    Column("reason", Text),
    Column("starts", NAME),
    Column("due", NAME),
    Column("publishes", NAME, index=True),
    Column("result", LargeBinary),
    Column("receipt", Text),  # JSON; stands in the result as well
    Column("picture", LargeBinary),
    Column("report", LargeBinary),
    UniqueConstraint("account", "population", "key", name="service_releases_once"),
    Index("service_releases_of", "account", "asked"),
)


def release_in(release: str, state: str) -> ColumnElement[bool]:
    """Return what finds a release in a state, and nothing once it has left that."""
    return (releases.c.id == release) & (releases.c.state == state)


events = Table(
    "service_events",
    metadata,
    Column("seq", NUMBER, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("body", Text, nullable=False),  # canonical JSON
    Column("at", NAME, nullable=False),
    Column("prev", Text, nullable=False, unique=True),
    Column("hash", Text, nullable=False),
)

SERVICE = Schema("service", 1, metadata, InvalidArgumentError, events.name)
"""What a service's database has."""
