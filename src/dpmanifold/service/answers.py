"""What was released, as the bytes that the service keeps and sends: one result, or one release for each class."""

from __future__ import annotations

import json
from typing import Any

from dpmanifold.errors import InvalidDataError
from dpmanifold.records import record_from_text
from dpmanifold.release import Release
from dpmanifold.result import Result, result_from_dict

MEANS = "dpmanifold means 1"
"""The format of means by class, which are several releases."""


def answer_to_record(answer: Any) -> dict[str, Any]:
    """Return a result, or the releases of classes, ready for JSON."""
    if isinstance(answer, Result):
        return answer.to_dict()
    return {"format": MEANS, "classes": [[name, release.to_dict()] for name, release in answer.items()]}


def answer_from_record(record: Any) -> Any:
    """Return the result that a record holds; for means by class a dict of releases."""
    if isinstance(record, dict) and record.get("format") == MEANS:
        pairs = record.get("classes")
        if set(record) != {"format", "classes"} or not isinstance(pairs, list):
            raise InvalidDataError(f"a record of format {MEANS!r} has classes, each with its release.")
        return {name: Release.from_dict(release) for name, release in pairs}
    return result_from_dict(record)


def answer_to_bytes(answer: Any) -> bytes:
    """Return an answer as JSON in UTF-8."""
    return json.dumps(answer_to_record(answer), ensure_ascii=False, allow_nan=False).encode("utf-8")


def answer_from_bytes(stored: bytes) -> Any:
    """Return the answer that :func:`answer_to_bytes` wrote."""
    return answer_from_record(record_from_text(stored.decode("utf-8")))


def receipt_in(stored: bytes) -> dict[str, Any] | None:
    """Return the receipt that an answer carries, without rebuilding it: all of its releases have the same one."""
    return _receipt(json.loads(stored))


def _receipt(record: Any) -> dict[str, Any] | None:
    if isinstance(record, dict):
        found = record.get("receipt")
        if isinstance(found, dict):
            return found
    inner = record.values() if isinstance(record, dict) else record if isinstance(record, list) else ()
    return next((found for found in map(_receipt, inner) if found is not None), None)
