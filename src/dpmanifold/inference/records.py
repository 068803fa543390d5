"""How regions, intervals and tests come back from JSON: a level and the releases they were computed from."""

from __future__ import annotations

from typing import Any

from dpmanifold.errors import InvalidDataError
from dpmanifold.release import Release


def read_parts(record: Any, expected: str, *names: str) -> tuple[Any, ...]:
    """Return the level and the named releases of a record, or say that it is not what was expected."""
    if not isinstance(record, dict) or record.get("format") != expected:
        raise InvalidDataError(f"not a record of format {expected!r}. Give a file written by save.")
    try:
        return record["level"], *(Release.from_dict(record[name]) for name in names)
    except KeyError as problem:
        raise InvalidDataError(f"the record is damaged: {problem} is missing. Write it again with save.") from problem
