"""How promises and times are written in the bodies of entries: in text alone, so that nothing is rounded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dpmanifold.privacy import Promise
from dpmanifold.privacy.promises import KINDS

RESTS = "rests_on"
"""Where a spend's body names the entries that decided about it, by their numbers; 0 where there was none."""

Numbers = dict[str, int]
"""Their numbers: "cap", "spend" (the one before in the population), "own" (before it, of the principal), "grant"."""


def promise_to_body(promise: Promise) -> dict[str, str]:
    """Return a promise in text: a number as it was typed, a float as its `hex()`.

    Examples
    --------
    >>> from dpmanifold import GDP
    >>> promise_to_body(GDP(0.25))
    {'kind': 'GDP', 'mu': '0x1.0000000000000p-2'}
    """
    record: dict[str, object] = dict(promise.to_dict())
    typed = record.pop("exact", {})
    exact = typed if isinstance(typed, Mapping) else {}
    return {name: _text(exact.get(name, value)) for name, value in record.items()}


def promise_from_body(record: Mapping[str, str]) -> Promise:
    """Return the promise that an entry holds.

    Examples
    --------
    >>> promise_from_body({"kind": "GDP", "mu": (0.25).hex()})
    GDP(mu=0.25)
    """
    numbers: dict[str, Any] = {
        name: float.fromhex(text) if text.startswith("0x") else text for name, text in record.items()
    }
    return KINDS[record["kind"]](**{name: number for name, number in numbers.items() if name != "kind"})


def many(count: int, one: str, more: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> many(1, "entry", "entries"), many(2000, "entry", "entries")
    ('1 entry', '2,000 entries')
    """
    return f"{count:,} {one if count == 1 else more}"


def now() -> str:
    """Return the time in UTC, to the second. For people to read: nothing is decided by it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(value: object) -> str:
    return value.hex() if isinstance(value, float) else str(value)
