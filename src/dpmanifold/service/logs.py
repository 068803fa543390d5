"""What the processes of a service write down: lines of JSON on standard error, in words that are known beforehand.

A line has an event, and of a fixed set of fields those that belong to it. There is no field for a message, a path that
was typed, a query or a name: whatever depends on records, or on who asked, has no place to go.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import sys
from typing import IO

FIELDS = ("method", "route", "status", "milliseconds", "role", "incident", "kind", "what", "state", "process", "count")
"""What a line can have besides its time, its level and its event."""

LEVELS = ("info", "warning", "error")


def log(event: str, level: str = "info", *, stream: IO[str] | None = None, **fields: str | int | float | None) -> None:
    """Write a line.

    Parameters
    ----------
    event : what happened, in a word or two: the same whatever the records are
    level : "info", "warning" or "error"
    stream : where to; standard error where it is not given
    fields : of :data:`FIELDS`: method, route (the template, not the address), status, milliseconds and role of a
        request; incident, the number that a person was shown; kind, the class of an error; what, state, process and
        count in events of the worker

    Examples
    --------
    >>> log("request", stream=sys.stdout, method="GET", route="/releases/{id}", status=200)  # doctest: +ELLIPSIS
    {"time": "...Z", "level": "info", "event": "request", "method": "GET", "route": "/releases/{id}", "status": 200}
    """
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown or level not in LEVELS:
        raise ValueError(f"a line of the log has no {', '.join(unknown) or level}")
    time = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    said = {name: value for name, value in fields.items() if value is not None}
    target = sys.stderr if stream is None else stream
    with contextlib.suppress(OSError, ValueError):  # nobody reads it any more, or there is none
        # In one piece: processes share it.
        target.write(json.dumps({"time": time, "level": level, "event": event, **said}) + "\n")
        target.flush()
