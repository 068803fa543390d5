"""Promises and options as requests have them: text and numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms import Mechanism
from dpmanifold.privacy import Promise
from dpmanifold.privacy.promises import as_promise
from dpmanifold.stats.query import Query


def promise_record(privacy: Promise) -> dict[str, Any]:
    """Return a promise for a question: exact, text where it was typed as text.

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> promise_record(GDP("0.3"))
    {'kind': 'GDP', 'mu': '0.3'}
    """
    return {"kind": type(as_promise(privacy)).__name__, **privacy.stated}


def options_record(query: Query, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for a question: those that are not what is meant anyway.

    Examples
    --------
    >>> from dpmanifold.stats.query import query_named
    >>> options_record(query_named("region"), {"level": 0.9, "refine": False})
    {'level': 0.9}
    """
    return query.checked({name: _plain(name, value) for name, value in given.items()})


def _plain(name: str, value: Any) -> Any:
    """Return an option as JSON has it."""
    if isinstance(value, Mechanism):
        return value.name
    plain = value.item() if isinstance(value, np.generic) else value
    endless = isinstance(plain, float) and not math.isfinite(plain)
    if endless or not (plain is None or isinstance(plain, (bool, int, float, str))):
        raise InvalidArgumentError(f"{name} must be text or a number over the network, got {shown(value)}.")
    return plain
