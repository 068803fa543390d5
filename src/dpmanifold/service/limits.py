"""How often somebody may fail to show who they are: so often for a name, and so often from an address.

An attempt counts before anything is verified, so that many at once are no way around, and it counts whether or not
there is an account of that name.
"""

from __future__ import annotations

import datetime
import ipaddress
import math

from sqlalchemy import Connection, delete, select

from dpmanifold.service import tables
from dpmanifold.service.database import Database
from dpmanifold.service.errors import TooMany
from dpmanifold.service.tables import failures

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


def count(connection: Connection, name: str, address: str | None = None) -> list[int]:
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
    rows = [failures.insert().values(what=what, at=time).returning(failures.c.id) for what in counted]
    return [connection.execute(row).scalar_one() for row in rows]


def forgive(connection: Connection, counted: list[int], name: str | None = None) -> None:
    """Take an attempt back that was none of the failures; with a name, all that were counted for it.

    Parameters
    ----------
    connection : of :meth:`Database.writing`
    counted : what :func:`count` returned
    name : whose password was right
    """
    connection.execute(delete(failures).where(failures.c.id.in_(counted)))
    if name is not None:
        connection.execute(delete(failures).where(failures.c.what == f"name:{name}"))


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
        connection.execute(failures.insert().values(what=what, at=_now(connection)))


def _now(connection: Connection) -> str:
    """Return the time, once what is older than the window is forgotten."""
    time = tables.now()
    connection.execute(delete(failures).where(failures.c.at <= tables.later(time, -WINDOW)))
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
    asked = select(failures.c.at).where(failures.c.what == what).order_by(failures.c.at.desc()).limit(most)
    found = connection.execute(asked).scalars().all()
    if len(found) < most:
        return 0
    until = tables.moment(found[-1]) + datetime.timedelta(seconds=WINDOW)
    return max(0, math.ceil((until - tables.moment(time)).total_seconds()))
