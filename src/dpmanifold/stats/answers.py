"""What a private call returned as a record, and back: a result, or, of means by class, one release for each class."""

from __future__ import annotations

import json
from typing import Any

from dpmanifold.errors import InvalidDataError
from dpmanifold.records import record_from_text
from dpmanifold.release import Release
from dpmanifold.result import Result, result_from_dict

MEANS = "dpmanifold class means 2"
"""The format of means by class, which are several releases."""


def answer_to_record(answer: Any) -> dict[str, Any]:
    """Return a result, or the releases of classes, ready for JSON."""
    if isinstance(answer, Result):
        return answer.to_dict()
    return {"format": MEANS, "classes": [[name, release.to_dict()] for name, release in answer.items()]}


def answer_from_record(record: Any) -> Any:
    """Return the result that a record holds; for means by class a dict of releases."""
    if isinstance(record, dict) and record.get("format") == MEANS:
        return _means(record)
    return result_from_dict(record)


def answer_to_bytes(answer: Any) -> bytes:
    """Return an answer as JSON in UTF-8."""
    return json.dumps(answer_to_record(answer), ensure_ascii=False, allow_nan=False).encode("utf-8")


def answer_from_bytes(stored: bytes) -> Any:
    """Return the answer that :func:`answer_to_bytes` wrote."""
    return answer_from_record(record_from_text(stored.decode("utf-8")))


def _means(record: dict[str, Any]) -> dict[Any, Release]:
    pairs = record.get("classes")
    named = isinstance(pairs, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    if set(record) != {"format", "classes"} or not pairs or not named:
        raise InvalidDataError(f"a record of format {MEANS!r} has classes, each with its release.")
    if not all(isinstance(name, (str, int, float)) for name, _ in pairs):
        raise InvalidDataError("the names of classes are text or numbers.")
    found = {name: Release.from_dict(release) for name, release in pairs}
    if len(found) != len(pairs):
        raise InvalidDataError("a class is there twice.")
    return found
